//! What the server's command line says to this backend (`--backend-config=NAME,KEY=VALUE`), typed. It must not know
//! models.

use std::path::PathBuf;

use serde_json::Value;

use super::api::Backend;
use super::log::Format;
use super::state::Holds;
use crate::config::Settings;
use crate::config::spelling::hint;
use gesso::error::{Error, Result};

/// The interpreter that serializes pipelines written in Python, when nothing else is said.
const DEFAULT_PYTHON: &str = "python3";

const PYTHON: &str = "python";
/// DALI's: frees memory when the last model is unloaded. Here memory always goes back.
const RELEASE_AFTER_UNLOAD: &str = "release_after_unload";
/// Libraries with operators of their own, `:` between them; DALI's name, but not DALI's libraries.
const PLUGIN_LIBS: &str = "plugin_libs";

/// What a line of the log is: `text` or `json`.
const LOG_FORMAT: &str = "log_format";
/// Where models may record requests.
const RECORD_FOLDER: &str = "record_folder";

/// Those that are no model's parameters.
const OWN: [&str; 5] = [LOG_FORMAT, PLUGIN_LIBS, PYTHON, RECORD_FOLDER, RELEASE_AFTER_UNLOAD];

/// What the server itself adds for every backend.
const OF_THE_SERVER: [&str; 4] =
    ["auto-complete-config", "backend-directory", "min-compute-capability", "default-max-batch-size"];

/// Settings of all models of one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// The interpreter that serializes pipelines written in Python.
    pub(super) python: String,
    /// What a model has whose own parameters do not say it.
    pub(super) defaults: Settings,
    /// Libraries with operators.
    pub(super) operators: Vec<PathBuf>,
    /// What a line of the log is.
    pub(super) log_format: Format,
    /// The folder below which models may record requests.
    pub(super) record_folder: Option<PathBuf>,
    /// What the one who started the server should know; a line each.
    pub(super) warnings: Vec<String>,
}

impl Holds for Backend {
    type State = Options;
    const WHAT: &'static str = "the backend";
}

impl Default for Options {
    fn default() -> Self {
        let (defaults, operators, log_format, record_folder, warnings) = Default::default();
        Self { python: DEFAULT_PYTHON.to_owned(), defaults, operators, log_format, record_folder, warnings }
    }
}

impl Options {
    /// Reads `{"cmdline": {key: text}}`.
    ///
    /// # Errors
    /// Invalid when a value is none of its key, naming both.
    pub(super) fn parse(json: &str) -> Result<Self> {
        let root: Value = serde_json::from_str(json)
            .map_err(|error| Error::invalid(format!("the backend's configuration is not JSON: {error}")))?;
        let mut options = Self::default();
        let Some(cmdline) = root.get("cmdline").and_then(Value::as_object) else { return Ok(options) };
        for (key, value) in cmdline {
            let Some(text) = value.as_str() else {
                return Err(Error::invalid(format!("backend option `{}` is no text", key.escape_debug())));
            };
            if OF_THE_SERVER.contains(&key.as_str()) {
                continue;
            }
            // The server writes `-` in its own.
            match key.replace('-', "_").as_str() {
                PYTHON => text.clone_into(&mut options.python),
                key if Settings::shared().any(|known| known == key) => options.defaults.set(key, text)?,
                RELEASE_AFTER_UNLOAD => {}
                PLUGIN_LIBS => {
                    options
                        .operators
                        .extend(text.split(':').filter(|path| !path.is_empty()).map(PathBuf::from));
                }
                LOG_FORMAT => options.log_format = log_format(text)?,
                RECORD_FOLDER => options.record_folder = Some(text.into()).filter(|_| !text.is_empty()),
                other => {
                    let known: Vec<&str> = Settings::shared().chain(OWN).collect();
                    options.warnings.push(format!(
                        "unknown backend option `{}`, without effect; known are `{}`{}",
                        key.escape_debug(),
                        known.join("`, `"),
                        hint(other, known.iter().copied())
                    ));
                }
            }
        }
        Ok(options)
    }
}

fn log_format(text: &str) -> Result<Format> {
    match text.trim() {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        other => Err(Error::invalid(format!(
            "backend option `{LOG_FORMAT}` is `{}`, expected `text` or `json`",
            other.escape_debug()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_options_are_typed_and_others_are_named() {
        let json = r#"{"cmdline":{"auto-complete-config":"true","num_threads":"3","max_batches_in_flight":"2",
            "python":"/opt/p y/bin/python3","release_after_unload":"True","plugin_libs":"/a.so:/b.so","num-thread":"4",
            "log-format":"json","record_folder":"/r"}}"#;
        let options = Options::parse(json).unwrap();
        assert_eq!(options.python, "/opt/p y/bin/python3");
        let defaults = &options.defaults;
        assert_eq!((defaults.num_threads, defaults.max_batches_in_flight), (Some(3), Some(2)));
        assert_eq!(options.operators, [PathBuf::from("/a.so"), PathBuf::from("/b.so")]);
        assert_eq!((options.log_format, options.record_folder), (Format::Json, Some("/r".into())));
        let [unknown] = options.warnings.as_slice() else { panic!("{:?}", options.warnings) };
        assert!(
            unknown.contains("`num-thread`") && unknown.contains("did you mean `num_threads`?"),
            "{unknown}"
        );
        for empty in ["{}", r#"{"cmdline":{}}"#, "[]"] {
            assert_eq!(Options::parse(empty).unwrap(), Options::default());
        }
    }

    #[test]
    fn a_wrong_value_is_an_error() {
        let error = |json| Options::parse(json).unwrap_err().to_string();
        assert!(error(r#"{"cmdline":{"num_threads":"many"}}"#).contains("`num_threads` is `many`"));
        assert!(error(r#"{"cmdline":{"num_threads":3}}"#).contains("`num_threads` is no text"));
        assert!(
            error(r#"{"cmdline":{"log_format":"xml"}}"#).contains("`log_format` is `xml`, expected `text`")
        );
        assert!(error("").contains("is not JSON"));
    }
}
