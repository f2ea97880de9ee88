//! The bytes of a model's pipeline: what its file holds, or what Python makes of it.

use std::path::PathBuf;

use super::{Content, ModelFile, autoserialize};
use gesso::error::Result;
use gesso::pipeline::{self, Pipeline};

/// A serialized pipeline and where it came from.
pub struct SerializedPipeline {
    /// The file that holds it, or the Python that made it.
    pub path: PathBuf,
    /// The pipeline.
    pub bytes: Vec<u8>,
    /// What the author should know although there is a pipeline.
    pub warning: Option<String>,
}

impl SerializedPipeline {
    /// What is in `file`, or what `python` makes of it. `name` is the model's, for the log.
    ///
    /// # Errors
    /// What [`autoserialize::serialize`] fails with.
    pub fn new(name: &str, file: ModelFile, python: &str) -> Result<Self> {
        let ModelFile { path, content, fallback } = file;
        let bytes = match content {
            Content::Python => return Self::from_python(name, path, python),
            Content::Pipeline(bytes) => bytes,
        };
        match (fallback, Pipeline::check_file(&bytes)) {
            (Some(source), Err(error)) => {
                let made = Self::from_python(name, source, python)?;
                let passed_over = format!("`{}` is passed over: {error}", path.display());
                let warning =
                    [Some(passed_over), made.warning].into_iter().flatten().collect::<Vec<_>>().join("; ");
                Ok(Self { warning: Some(warning), ..made })
            }
            // Without a fallback, planning says what is wrong.
            _ => Ok(Self { path, bytes, warning: None }),
        }
    }

    fn from_python(name: &str, path: PathBuf, python: &str) -> Result<Self> {
        tracing::info!(model = name, "`{python}` serializes the pipeline of `{}`", path.display());
        let (bytes, warning) = autoserialize::serialize(python, &path, pipeline::devices().is_ok())?;
        Ok(Self { path, bytes, warning })
    }
}

#[cfg(test)]
mod tests {
    use super::super::autoserialize::write_program;
    use super::*;

    #[test]
    fn python_makes_what_a_file_does_not_hold() {
        let folder = std::env::temp_dir().join(format!("gesso-source-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // What it is called with does not matter here: `autoserialize` has tests of that.
        let python = folder.join("python");
        write_program(&python, "printf made");
        let (file, model) = (folder.join("model.dali"), folder.join("dali.py"));
        let source = |path: &PathBuf, content, fallback| {
            let file = ModelFile { path: path.clone(), content, fallback };
            SerializedPipeline::new("model", file, python.to_str().unwrap())
        };
        let made = source(&model, Content::Python, None).unwrap();
        assert_eq!((&made.path, &made.bytes[..], made.warning), (&model, &b"made"[..], None));
        // A file that is there comes first, unless it is no pipeline.
        let pipeline = include_bytes!("../../../../tests/plugin/models/prepare/1/model.dali").to_vec();
        let kept = source(&file, Content::Pipeline(pipeline.clone()), Some(model.clone())).unwrap();
        assert_eq!((&kept.path, kept.bytes, kept.warning), (&file, pipeline, None));
        let damaged = || Content::Pipeline(b"damaged".to_vec());
        let instead = source(&file, damaged(), Some(model.clone())).unwrap();
        assert_eq!((&instead.path, &instead.bytes[..]), (&model, &b"made"[..]));
        assert!(
            instead.warning.unwrap().contains("model.dali` is passed over: not a serialized DALI pipeline")
        );
        assert_eq!(source(&file, damaged(), None).unwrap().bytes, b"damaged");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
