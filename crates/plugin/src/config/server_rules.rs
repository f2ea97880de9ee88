//! What the server itself makes of a configuration without asking a backend: fields at which it refuses a model, or
//! ends.

use serde_json::{Map, Value};

use super::{ModelConfig, in_config, read};
use gesso::error::{Context, Error, Result};

/// Where sizes of batches are that a scheduler waits for: a field, and one in it.
const PREFERRED: [(&str, Option<&str>); 2] =
    [("dynamic_batching", None), ("sequence_batching", Some("oldest"))];

impl ModelConfig {
    /// Refuses what the server refuses of a configuration as it was written, before the backend completes it.
    ///
    /// # Errors
    /// Invalid for sizes of batches that no batch can have.
    pub fn check_as_written(&self) -> Result<()> {
        for (field, inner) in PREFERRED {
            let Some(scheduler) = read::object(&self.fields, field).context(in_config)? else { continue };
            let scheduler = match inner {
                Some(inner) => read::object(scheduler, inner).context(in_config)?,
                None => Some(scheduler),
            };
            let Some(scheduler) = scheduler else { continue };
            let sizes = read::ints(scheduler, "preferred_batch_size").context(in_config)?;
            if sizes.iter().all(|size| (1..=self.max_batch_size).contains(size)) {
                continue;
            }
            let expected = if self.max_batch_size > 0 {
                format!("1 to {}, the max_batch_size", self.max_batch_size)
            } else {
                "a max_batch_size beside it: the server reads both before the pipeline says how large batches are"
                    .to_owned()
            };
            return Err(Error::invalid(format!(
                "`{field}` has the preferred_batch_size {sizes:?}, expected {expected}"
            )));
        }
        Ok(())
    }
}

/// Refuses labels of a model's metrics at which the server ends; also of an ensemble, of which no backend is told.
///
/// # Errors
/// Invalid for a key of `metric_tags` that makes no label.
pub fn check_metric_tags(config: &Map<String, Value>) -> Result<()> {
    let tags = read::object(config, "metric_tags").context(in_config)?;
    // The server puts `_` in front: then digits may begin, and another `_` may not.
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let fits = |tag: &String| tag.bytes().all(is_part) && !tag.starts_with('_');
    match tags.and_then(|tags| tags.keys().find(|tag| !fits(tag))) {
        None => Ok(()),
        Some(tag) => Err(Error::invalid(format!(
            "`metric_tags` has the key `{}`, expected letters of ASCII, digits and `_`, which must not come first: the server ends \
             at a label that Prometheus does not take",
            tag.escape_debug()
        ))),
    }
}
