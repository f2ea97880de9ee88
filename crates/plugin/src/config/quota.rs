//! What a request may take of a model: parameters, typed, and what they are when nobody says. It must not know who
//! holds requests to it.

use std::time::Duration;

use gesso::error::{Error, Result};
use gesso::limits;

const MAX_PIXELS: &str = "max_pixels";
const MAX_REQUEST_MS: &str = "max_request_ms";
const MAX_MEMORY_MB: &str = "max_memory_mb";
const SLOW_REQUEST_MS: &str = "slow_request_ms";

/// What a request may take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    /// `max_pixels`: pixels of one encoded image, up to [`limits::MAX_IMAGE_PIXELS`]. `None`: as many.
    pub max_pixels: Option<u64>,
    max_request: Option<Duration>,
    max_memory: Option<usize>,
    slow_request: Option<Duration>,
}

impl Quota {
    /// The parameters.
    pub(super) const KEYS: [&str; 4] = [MAX_PIXELS, MAX_REQUEST_MS, MAX_MEMORY_MB, SLOW_REQUEST_MS];

    /// Sets one of [`Quota::KEYS`]; does nothing for another `key`.
    ///
    /// # Errors
    /// Invalid when the text is no value of the parameter.
    pub(super) fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let milliseconds =
            || number(key, text, limits::MAX_REQUEST_MS).map(|ms| Some(Duration::from_millis(ms)));
        match key {
            MAX_PIXELS => self.max_pixels = Some(number(key, text, limits::MAX_IMAGE_PIXELS)?),
            MAX_REQUEST_MS => self.max_request = milliseconds()?,
            MAX_MEMORY_MB => {
                let most = number(key, text, limits::MAX_MEMORY_MB as u64)?;
                self.max_memory = Some((most as usize) << 20);
            }
            SLOW_REQUEST_MS => self.slow_request = milliseconds()?,
            _ => {}
        }
        Ok(())
    }

    /// This quota, and where it says nothing, the backend's.
    pub(super) fn or(self, backend: &Self) -> Self {
        Self {
            max_pixels: self.max_pixels.or(backend.max_pixels),
            max_request: self.max_request.or(backend.max_request),
            max_memory: self.max_memory.or(backend.max_memory),
            slow_request: self.slow_request.or(backend.slow_request),
        }
    }

    /// `max_request_ms`: how long a request may take from when it arrived, up to [`limits::MAX_REQUEST_MS`].
    pub fn max_request(&self) -> Duration {
        self.max_request.unwrap_or(Duration::from_millis(limits::DEFAULT_REQUEST_MS))
    }

    /// `max_memory_mb`: bytes (in the configuration: 2^20 of them) of host memory that a batch may take at a time, up
    /// to [`limits::MAX_MEMORY_MB`].
    pub fn max_memory(&self) -> usize {
        self.max_memory.unwrap_or(limits::DEFAULT_MEMORY_MB << 20)
    }

    /// `slow_request_ms`: how long one operator may be expected to take at most for a request that is worked on beside
    /// others, up to [`limits::MAX_REQUEST_MS`].
    pub fn slow_request(&self) -> Duration {
        self.slow_request.unwrap_or(Duration::from_millis(limits::DEFAULT_SLOW_REQUEST_MS))
    }
}

/// A whole number from 1 to `most`.
pub(super) fn number(key: &str, text: &str, most: u64) -> Result<u64> {
    let number = text.trim().parse::<u64>().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| {
        Error::invalid(format!("parameter `{key}` is `{}`, expected 1 to {most}", text.escape_debug()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_a_whole_number_in_its_range() {
        let most = [1 << 27, 3_600_000, 1 << 24, 3_600_000];
        for (key, most) in Quota::KEYS.into_iter().zip(most) {
            for fitting in ["1", " 12\n", &most.to_string()] {
                let mut quota = Quota::default();
                quota.set(key, fitting).unwrap();
                assert_ne!(quota, Quota::default(), "{key}");
            }
            for wrong in ["", "0", "-1", "1.5", "many", &(most + 1).to_string()] {
                let error = Quota::default().set(key, wrong).unwrap_err().to_string();
                assert_eq!(error, format!("parameter `{key}` is `{wrong}`, expected 1 to {most}"));
            }
        }
    }

    #[test]
    fn a_model_goes_before_the_backend_and_that_before_what_is_built_in() {
        let mut backend = Quota::default();
        backend.set(MAX_REQUEST_MS, "2000").unwrap();
        backend.set(MAX_MEMORY_MB, "100").unwrap();
        let mut model = Quota::default();
        model.set(MAX_MEMORY_MB, "7").unwrap();
        let both = model.or(&backend);
        assert_eq!((both.max_request(), both.max_memory()), (Duration::from_secs(2), 7 << 20));
        assert_eq!((both.slow_request(), both.max_pixels), (Duration::from_millis(50), None));
    }
}
