//! What a model fetches by addresses that requests name in place of files: parameters, typed. It must not know who
//! fetches.

use std::time::Duration;

use super::quota::number;
use crate::fetch::{Allowed, Networks};
use gesso::error::{Context, Error, Result};

const FETCH_ALLOW: &str = "fetch_allow";
const FETCH_NETWORKS: &str = "fetch_networks";
const FETCH_MAX_MB: &str = "fetch_max_mb";
const FETCH_SECONDS: &str = "fetch_seconds";
const FETCH_REDIRECTS: &str = "fetch_redirects";
const FETCH_AT_ONCE: &str = "fetch_at_once";
const FETCH_CACHE_MB: &str = "fetch_cache_mb";

/// MiB of one file: a sample has no more bytes.
const MOST_MB: u64 = 2_047;
const DEFAULT_MB: u64 = 32;
const MOST_SECONDS: u64 = 3_600;
const DEFAULT_SECONDS: u64 = 10;
const MOST_REDIRECTS: u64 = 10;
const DEFAULT_REDIRECTS: u64 = 3;
/// Each is a thread.
const MOST_AT_ONCE: u64 = 256;
const DEFAULT_AT_ONCE: u64 = 16;
const MOST_CACHE_MB: u64 = 1 << 20;

/// What a model fetches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetching {
    /// `fetch_allow`: from where. `None`: nothing is fetched.
    pub allow: Option<Allowed>,
    /// `fetch_networks`: networks beside those for everybody.
    pub networks: Networks,
    max_mb: Option<u64>,
    seconds: Option<u64>,
    redirects: Option<u64>,
    at_once: Option<u64>,
    cache_mb: Option<u64>,
}

impl Fetching {
    /// The parameters.
    pub(super) const KEYS: [&str; 7] = [
        FETCH_ALLOW,
        FETCH_NETWORKS,
        FETCH_MAX_MB,
        FETCH_SECONDS,
        FETCH_REDIRECTS,
        FETCH_AT_ONCE,
        FETCH_CACHE_MB,
    ];

    /// Sets one of [`Fetching::KEYS`]; does nothing for another `key`.
    ///
    /// # Errors
    /// Invalid when the text is no value of the parameter.
    pub(super) fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let parameter = || format!("parameter `{key}`");
        match key {
            FETCH_ALLOW => self.allow = Some(Allowed::parse(text).context(parameter)?),
            FETCH_NETWORKS => self.networks = Networks::parse(text).context(parameter)?,
            FETCH_MAX_MB => self.max_mb = Some(number(key, text, MOST_MB)?),
            FETCH_SECONDS => self.seconds = Some(number(key, text, MOST_SECONDS)?),
            FETCH_REDIRECTS => self.redirects = Some(or_none(key, text, MOST_REDIRECTS)?),
            FETCH_AT_ONCE => self.at_once = Some(number(key, text, MOST_AT_ONCE)?),
            FETCH_CACHE_MB => self.cache_mb = Some(or_none(key, text, MOST_CACHE_MB)?),
            _ => {}
        }
        Ok(())
    }

    /// `fetch_max_mb`: bytes (in the configuration: 2^20 of them) of one file.
    pub fn max_bytes(&self) -> usize {
        bytes(self.max_mb.unwrap_or(DEFAULT_MB))
    }

    /// `fetch_seconds`: what one download may take, with its redirects.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(DEFAULT_SECONDS))
    }

    /// `fetch_redirects`: redirects of one download.
    pub fn redirects(&self) -> u32 {
        u32::try_from(self.redirects.unwrap_or(DEFAULT_REDIRECTS)).unwrap_or_default()
    }

    /// `fetch_at_once`: downloads at a time.
    pub fn at_once(&self) -> usize {
        usize::try_from(self.at_once.unwrap_or(DEFAULT_AT_ONCE)).unwrap_or(1)
    }

    /// `fetch_cache_mb`: bytes (in the configuration: 2^20 of them) of files that are kept. 0: none are.
    pub fn cache(&self) -> usize {
        bytes(self.cache_mb.unwrap_or_default())
    }
}

fn bytes(mb: u64) -> usize {
    usize::try_from(mb << 20).unwrap_or(usize::MAX)
}

/// A whole number from 0 to `most`.
fn or_none(key: &str, text: &str, most: u64) -> Result<u64> {
    let number = text.trim().parse::<u64>().ok().filter(|number| *number <= most);
    number.ok_or_else(|| {
        Error::invalid(format!("parameter `{key}` is `{}`, expected 0 to {most}", text.escape_debug()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_bounds() {
        let mut fetching = Fetching::default();
        assert!(fetching.allow.is_none());
        assert_eq!((fetching.max_bytes(), fetching.time()), (32 << 20, Duration::from_secs(10)));
        assert_eq!((fetching.redirects(), fetching.at_once(), fetching.cache()), (3, 16, 0));
        let texts = ["https://a.example.com/x/", "10.0.0.0/8", "1", " 2 ", "0", "4", "5"];
        for (key, text) in Fetching::KEYS.into_iter().zip(texts) {
            fetching.set(key, text).unwrap();
        }
        assert!(fetching.allow.is_some() && fetching.networks.allow([10, 0, 0, 1].into()));
        assert_eq!((fetching.max_bytes(), fetching.time()), (1 << 20, Duration::from_secs(2)));
        assert_eq!((fetching.redirects(), fetching.at_once(), fetching.cache()), (0, 4, 5 << 20));
        let wrong = ["ftp://a.example.com/", "10.0.0.0/99", "0", "0", "11", "257", "-1"];
        for (key, text) in Fetching::KEYS.into_iter().zip(wrong) {
            let error = fetching.set(key, text).unwrap_err().to_string();
            assert!(error.contains(&format!("parameter `{key}`")) && error.contains("expected"), "{error}");
        }
    }
}
