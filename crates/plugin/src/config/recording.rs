//! What a model records of its requests: parameters, typed. It must not know who records.

use super::quota::number;
use gesso::error::{Error, Result};

const RECORD_REQUESTS: &str = "record_requests";
const RECORD_MAX_MB: &str = "record_max_mb";
const RECORD_MAX_COUNT: &str = "record_max_count";

/// Bytes of the name of a folder.
const MAX_NAME_BYTES: usize = 100;
/// MiB that may be recorded at most.
const MOST_MB: u64 = 1 << 20;
const DEFAULT_MB: u64 = 1_024;
/// Requests that may be recorded at most. A folder with more names than this is slow to list.
const MOST_COUNT: u64 = 1_000_000;
const DEFAULT_COUNT: u64 = 1_000;

/// What a model records of its requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// `record_requests`: the name of a folder below the one that the backend allows. `None`: nothing is recorded.
    pub folder: Option<String>,
    max_mb: Option<u64>,
    max_count: Option<u64>,
}

impl Recording {
    /// The parameters.
    pub(super) const KEYS: [&str; 3] = [RECORD_REQUESTS, RECORD_MAX_MB, RECORD_MAX_COUNT];

    /// Sets one of [`Recording::KEYS`]; does nothing for another `key`.
    ///
    /// # Errors
    /// Invalid when the text is no value of the parameter.
    pub(super) fn set(&mut self, key: &str, text: &str) -> Result<()> {
        match key {
            RECORD_REQUESTS => self.folder = Some(folder(text)?),
            RECORD_MAX_MB => self.max_mb = Some(number(key, text, MOST_MB)?),
            RECORD_MAX_COUNT => self.max_count = Some(number(key, text, MOST_COUNT)?),
            _ => {}
        }
        Ok(())
    }

    /// `record_max_mb`: bytes (in the configuration: 2^20 of them) that the folder may hold.
    pub fn max_bytes(&self) -> u64 {
        self.max_mb.unwrap_or(DEFAULT_MB) << 20
    }

    /// `record_max_count`: requests that the folder may hold.
    pub fn max_count(&self) -> u64 {
        self.max_count.unwrap_or(DEFAULT_COUNT)
    }
}

/// One part of a path that is no way up and not hidden.
fn folder(text: &str) -> Result<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = text.len() <= MAX_NAME_BYTES && text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if fits && text.chars().all(is_part) {
        return Ok(text.to_owned());
    }
    Err(Error::invalid(format!(
        "parameter `{RECORD_REQUESTS}` is `{}`, expected the name of a folder: letters, digits, `-`, `_` and `.`, at most \
         {MAX_NAME_BYTES}",
        text.escape_debug()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_name() {
        let mut recording = Recording::default();
        assert_eq!((recording.max_bytes(), recording.max_count()), (1 << 30, 1_000));
        for (key, text) in Recording::KEYS.into_iter().zip(["week-48.a", "3", " 7 "]) {
            recording.set(key, text).unwrap();
        }
        assert_eq!(recording.folder.as_deref(), Some("week-48.a"));
        assert_eq!((recording.max_bytes(), recording.max_count()), (3 << 20, 7));
        for wrong in ["", ".", "..", "../a", "a/b", "/a", ".a", "a\0", "ä", &"a".repeat(101)] {
            let error = Recording::default().set(RECORD_REQUESTS, wrong).unwrap_err().to_string();
            assert!(error.contains("expected the name of a folder"), "{error}");
        }
        for key in [RECORD_MAX_MB, RECORD_MAX_COUNT] {
            assert!(recording.set(key, "0").is_err() && recording.set(key, "many").is_err());
        }
    }
}
