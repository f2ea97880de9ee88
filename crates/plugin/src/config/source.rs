//! The bytes of a model's pipeline: what its file holds, or what Python makes of it.

use std::path::PathBuf;

use super::{Content, ModelFile, autoserialize};
use gesso::error::Result;
use gesso::pipeline::{self, Pipeline};

/// A serialized pipeline and where it came from.
pub struct Source {
    /// The file that holds it, or the Python that made it.
    pub path: PathBuf,
    /// The pipeline.
    pub bytes: Vec<u8>,
    /// What the author should know although there is a pipeline.
    pub warning: Option<String>,
}

impl Source {
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
