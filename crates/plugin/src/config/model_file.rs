//! Where the file of a model is and what is in it, as bytes. It does not know the format.
//!
//! A version's directory holds the file that the configuration names. Names and paths may hold anything that the file
//! system allows: they never reach a shell. A link may lead out of the directory; a name may not.

use std::fs::File;
use std::io::{ErrorKind as IoKind, Read};
use std::path::{Component, Path, PathBuf};

use super::DEFAULT_MODEL_FILE;
use gesso::error::{Error, ErrorKind, Result};
use gesso::limits;

/// Models written in Python, which stand in for a model file that is not there or holds no pipeline. DALI's backend
/// knows the first.
const PYTHON_MODEL_FILES: [&str; 2] = ["dali.py", "pipeline.py"];

/// A model directory called `NAME.gesso` needs no configuration; the server then assumes this name for the model file.
/// The author has chosen none.
const ASSUMED_MODEL_FILE: &str = "model.gesso";

/// The file of a model as it was found.
#[derive(Debug)]
pub struct ModelFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub content: Content,
    /// The Python file beside it, which makes the pipeline should this one hold none.
    pub fallback: Option<PathBuf>,
}

/// What a model file holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// A serialized pipeline, as far as the name says: at most [`limits::MAX_PIPELINE_BYTES`].
    Pipeline(Vec<u8>),
    /// Python that makes one.
    Python,
}

impl ModelFile {
    /// Reads `<directory>/<version>/<name>`, or finds `dali.py` or `pipeline.py` beside it. `directory` is the model's,
    /// `name` from [`ModelConfig::model_filename`](super::ModelConfig::model_filename).
    ///
    /// # Errors
    /// Invalid for a name that leaves the directory, and for a file that is none or is too large. Not found, with all
    /// the paths that were tried. What the operating system says, with the path.
    pub fn read(directory: &Path, version: u64, name: &str) -> Result<Self> {
        check_name(name)?;
        let folder = directory.join(version.to_string());
        let mut python = None;
        for path in PYTHON_MODEL_FILES.map(|name| folder.join(name)) {
            if python.is_none() && exists(&path)? {
                python = Some(path);
            }
        }
        let mut tried = Vec::new();
        let defaults = (name == ASSUMED_MODEL_FILE).then_some(DEFAULT_MODEL_FILE);
        for candidate in [name].into_iter().chain(defaults) {
            let path = folder.join(candidate);
            if !exists(&path)? {
                tried.push(path);
                continue;
            }
            if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py")) {
                return Ok(Self { path, content: Content::Python, fallback: None });
            }
            let content = Content::Pipeline(read(&path)?);
            return Ok(Self { path, content, fallback: python });
        }
        if let Some(path) = python {
            return Ok(Self { path, content: Content::Python, fallback: None });
        }
        tried.extend(PYTHON_MODEL_FILES.map(|name| folder.join(name)));
        let tried: Vec<String> = tried.iter().map(|path| format!("`{}`", path.display())).collect();
        Err(Error::not_found(format!("there is no model file: looked for {}", tried.join(" and "))))
    }
}

fn check_name(name: &str) -> Result<()> {
    let inside =
        Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if inside && !name.is_empty() && !name.contains('\0') {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "`default_model_filename` is `{}`, expected the name of a file in the version's directory, without `..` and not \
         absolute",
        name.escape_debug()
    )))
}

fn exists(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|error| failed(path, &error))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    // Before it is opened: opening a pipe would wait for somebody to write.
    let metadata = path.metadata().map_err(|error| failed(path, &error))?;
    if !metadata.is_file() {
        return Err(Error::invalid(format!("model file `{}` is not a regular file", path.display())));
    }
    let limit = limits::MAX_PIPELINE_BYTES as u64;
    let file = File::open(path).map_err(|error| failed(path, &error))?;
    let mut bytes = Vec::with_capacity(metadata.len().min(limit) as usize);
    // One more than allowed, as the file may have grown.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    if bytes.len() > limits::MAX_PIPELINE_BYTES {
        return Err(Error::invalid(format!(
            "model file `{}` has {} bytes, expected at most {limit}",
            path.display(),
            metadata.len().max(bytes.len() as u64)
        )));
    }
    Ok(bytes)
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        IoKind::NotFound => ErrorKind::NotFound,
        IoKind::OutOfMemory => ErrorKind::Unavailable,
        _ => ErrorKind::InvalidArg,
    };
    Error::new(kind, format!("cannot read model file `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A model directory that goes away with the value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("gesso {name} é+@= {}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("3")).unwrap();
            Self(path)
        }

        fn with(self, name: &str, bytes: &[u8]) -> Self {
            fs::write(self.0.join("3").join(name), bytes).unwrap();
            self
        }

        fn read(&self, name: &str) -> Result<ModelFile> {
            ModelFile::read(&self.0, 3, name)
        }

        fn bytes(&self, name: &str) -> Vec<u8> {
            match self.read(name).unwrap().content {
                Content::Pipeline(bytes) => bytes,
                Content::Python => panic!("`{name}` is Python"),
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_that_the_system_refuses_is_named_with_its_reason() {
        let folder = Folder::new("refused");
        let long = format!("{}.dali", "x".repeat(300));
        let error = folder.read(&long).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArg);
        let text = error.to_string();
        assert!(text.contains("cannot read model file") && text.contains(&long), "{text}");
    }

    #[test]
    fn any_name_that_the_file_system_allows() {
        let name = "mein Möhren-\"$(x)`'; 模型.dali";
        let folder = Folder::new("names").with(name, b"pipeline");
        let file = folder.read(name).unwrap();
        assert_eq!(file.content, Content::Pipeline(b"pipeline".to_vec()));
        assert_eq!(file.path, folder.0.join("3").join(name));
        assert!(folder.read(&format!("./{name}")).is_ok());
    }

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        let folder = Folder::new("escape").with("model.dali", b"x");
        for name in ["..", "../3/model.dali", "a/../model.dali", "/etc/passwd", "", "model.dali\0"] {
            let error = folder.read(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArg);
            assert!(error.to_string().contains(&name.escape_debug().to_string()), "{error}");
        }
        // Two dots in a name are no way out.
        assert_eq!(folder.with("a..b", b"y").bytes("a..b"), b"y");
    }

    #[test]
    fn what_was_looked_for_is_said() {
        let folder = Folder::new("missing");
        let error = folder.read("model.dali").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        for name in ["3/model.dali", "3/dali.py", "3/pipeline.py"] {
            assert!(error.to_string().contains(&folder.0.join(name).display().to_string()), "{error}");
        }
        // No version directory is the same to the reader.
        assert_eq!(ModelFile::read(&folder.0, 4, "model.dali").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn the_servers_assumed_name_means_the_default() {
        let folder = Folder::new("assumed").with("model.dali", b"default");
        assert_eq!(folder.bytes("model.gesso"), b"default");
        assert_eq!(folder.read("other.gesso").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(folder.with("model.gesso", b"own").bytes("model.gesso"), b"own");
        let error = Folder::new("neither").read("model.gesso").unwrap_err().to_string();
        assert!(error.contains("3/model.gesso` and `") && error.contains("3/model.dali` and `"), "{error}");
    }

    #[test]
    fn python_is_found_by_its_name_and_stands_behind_a_pipeline() {
        let folder = Folder::new("python").with("dali.py", b"import nvidia").with("own.PY", b"");
        for (name, found) in [("model.dali", "dali.py"), ("dali.py", "dali.py"), ("own.PY", "own.PY")] {
            let file = folder.read(name).unwrap();
            assert_eq!((file.content, file.fallback), (Content::Python, None), "{name}");
            assert_eq!(file.path, folder.0.join("3").join(found));
        }
        let other = Folder::new("other python").with("pipeline.py", b"import gesso");
        assert_eq!(other.read("model.dali").unwrap().path, other.0.join("3/pipeline.py"));
        let folder = folder.with("model.dali", b"x").with("pipeline.py", b"import gesso");
        assert_eq!(folder.bytes("model.dali"), b"x");
        assert_eq!(folder.read("model.dali").unwrap().fallback, Some(folder.0.join("3/dali.py")));
    }

    #[test]
    fn too_large_and_not_a_file() {
        let folder = Folder::new("kinds").with("big", b"").with("fits", b"");
        fs::create_dir(folder.0.join("3/model.dali")).unwrap();
        let error = folder.read("model.dali").unwrap_err().to_string();
        assert!(error.contains("3/model.dali` is not a regular file"), "{error}");
        let resize = |name: &str, len: usize| {
            File::options()
                .write(true)
                .open(folder.0.join("3").join(name))
                .unwrap()
                .set_len(len as u64)
                .unwrap();
        };
        resize("big", limits::MAX_PIPELINE_BYTES + 1);
        resize("fits", limits::MAX_PIPELINE_BYTES);
        let error = folder.read("big").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArg);
        let limit = limits::MAX_PIPELINE_BYTES;
        let text = format!("has {} bytes, expected at most {limit}", limit + 1);
        assert!(error.to_string().contains(&text), "{error}");
        assert_eq!(folder.bytes("fits").len(), limits::MAX_PIPELINE_BYTES);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed() {
        let folder = Folder::new("link").with("model.dali", b"x");
        std::os::unix::fs::symlink(folder.0.join("3/model.dali"), folder.0.join("3/link.dali")).unwrap();
        assert_eq!(folder.bytes("link.dali"), b"x");
    }
}
