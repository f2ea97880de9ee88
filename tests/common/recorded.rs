//! Recorded pipelines of `tests/conformance/data`, and a folder for the files of a test.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use serde::Deserialize;

/// The project's folder: where it is now, or where this test was built.
pub(crate) fn root() -> PathBuf {
    let package: PathBuf =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into();
    // Packages of the workspace are two folders below it.
    let project = package.ancestors().find(|folder| folder.join("tests").is_dir()).unwrap_or(&package);
    project.to_owned()
}

/// The cases of one recorded module.
pub(crate) struct Recording {
    pub(crate) cases: Vec<Case>,
}

/// A pipeline, its inputs and DALI's answers.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) tol: f64,
    pub(crate) pipeline: Vec<u8>,
    pub(crate) inputs: BTreeMap<String, Vec<Array>>,
    pub(crate) outputs: Vec<Vec<Array>>,
}

/// One sample.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct Index {
    cases: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    tol: f64,
    pipeline: Stored,
    inputs: BTreeMap<String, Vec<Stored>>,
    outputs: Vec<Vec<Stored>>,
}

#[derive(Deserialize)]
struct Stored {
    key: String,
    dtype: String,
    shape: Vec<usize>,
}

impl Recording {
    pub(crate) fn open(module: &str) -> Self {
        let path = root().join(format!("tests/conformance/data/{module}.zip"));
        let mut archive = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
        let mut files = BTreeMap::new();
        for i in 0..archive.len() {
            let mut entry = archive.by_index(i).unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(entry.name().unwrap().into_owned(), bytes);
        }
        let index: Index = serde_json::from_slice(&files["index.json"]).unwrap();
        let array = |stored: &Stored| Array {
            dtype: stored.dtype.clone(),
            shape: stored.shape.clone(),
            bytes: files[&stored.key].clone(),
        };
        let arrays = |stored: &Vec<Stored>| stored.iter().map(array).collect();
        let case = |entry: &Entry| Case {
            name: entry.name.clone(),
            tol: entry.tol,
            pipeline: files[&entry.pipeline.key].clone(),
            inputs: entry.inputs.iter().map(|(name, samples)| (name.clone(), arrays(samples))).collect(),
            outputs: entry.outputs.iter().map(arrays).collect(),
        };
        Self { cases: index.cases.iter().map(case).collect() }
    }

    pub(crate) fn case(&self, name: &str) -> Case {
        self.cases.iter().find(|case| case.name == name).unwrap().clone()
    }
}

impl Array {
    /// The largest difference from `other`, which has the same type and shape.
    pub(crate) fn farthest(&self, other: &[u8]) -> f64 {
        assert_eq!(self.bytes.len(), other.len());
        let number = |bytes: &[u8]| match self.dtype.as_str() {
            "float32" => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
            "float16" => half::f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
            "uint8" | "bool" => f64::from(bytes[0]),
            other => panic!("no numbers of {other}"),
        };
        let size = match self.dtype.as_str() {
            "float32" => 4,
            "float16" => 2,
            _ => 1,
        };
        let pairs = self.bytes.chunks(size).zip(other.chunks(size));
        pairs.map(|(a, b)| (number(a) - number(b)).abs()).fold(0.0, f64::max)
    }
}

/// A folder of a test, which goes with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gesso {name} {}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, with the folders that it is in, and says where.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
