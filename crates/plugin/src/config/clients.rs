//! What one client may have of a model: parameters, typed. It must not know requests, or who counts them.

use super::quota::number;
use gesso::error::{Error, Result};

const CLIENT_HEADER: &str = "client_header";
const MAX_REQUESTS: &str = "max_requests_per_client";
const MAX_REQUESTS_PER_SECOND: &str = "max_requests_per_client_per_second";

/// Bytes of the name of a header.
const MAX_HEADER_BYTES: usize = 128;
const MOST_REQUESTS: u64 = 65_536;
const MOST_REQUESTS_PER_SECOND: u64 = 1_000_000;

/// What one client may have of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// `client_header`: the name of the parameter of a request that says whose it is, in small letters.
    pub header: Option<String>,
    /// `max_requests_per_client`: requests that are not answered yet. `None`: as many as come.
    pub in_flight: Option<usize>,
    /// `max_requests_per_client_per_second`: requests of a second. `None`: as many as come.
    pub per_second: Option<u64>,
}

impl ClientLimits {
    /// The parameters.
    pub(super) const KEYS: [&str; 3] = [CLIENT_HEADER, MAX_REQUESTS, MAX_REQUESTS_PER_SECOND];

    /// Sets one of [`ClientLimits::KEYS`]; does nothing for another `key`.
    ///
    /// # Errors
    /// Invalid when the text is no value of the parameter.
    pub(super) fn set(&mut self, key: &str, text: &str) -> Result<()> {
        match key {
            CLIENT_HEADER => self.header = Some(header(text)?),
            MAX_REQUESTS => self.in_flight = Some(number(key, text, MOST_REQUESTS)? as usize),
            MAX_REQUESTS_PER_SECOND => self.per_second = Some(number(key, text, MOST_REQUESTS_PER_SECOND)?),
            _ => {}
        }
        Ok(())
    }

    /// Whether all is said that is needed.
    ///
    /// # Errors
    /// Invalid for a limit that does not know clients, and for a header that nothing is limited by.
    pub(super) fn check(&self) -> Result<()> {
        let limit = self.in_flight.map(|_| MAX_REQUESTS).or(self.per_second.map(|_| MAX_REQUESTS_PER_SECOND));
        match (&self.header, limit) {
            (None, Some(limit)) => Err(Error::invalid(format!(
                "parameter `{limit}` needs `{CLIENT_HEADER}`, the header that says whose a request is, such as `x-api-key`"
            ))),
            (Some(_), None) => Err(Error::invalid(format!(
                "parameter `{CLIENT_HEADER}` limits nothing alone, expected `{MAX_REQUESTS}` or `{MAX_REQUESTS_PER_SECOND}` beside it"
            ))),
            _ => Ok(()),
        }
    }
}

/// A name as HTTP's headers have it.
fn header(text: &str) -> Result<String> {
    let name = text.trim();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if (1..=MAX_HEADER_BYTES).contains(&name.len()) && name.bytes().all(is_part) {
        return Ok(name.to_ascii_lowercase());
    }
    Err(Error::invalid(format!(
        "parameter `{CLIENT_HEADER}` is `{}`, expected the name of a header, such as `x-api-key`: letters, digits and `-`, at \
         most {MAX_HEADER_BYTES}",
        text.escape_debug()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_bounds() {
        let mut limits = ClientLimits::default();
        limits.check().unwrap();
        for (key, text) in ClientLimits::KEYS.into_iter().zip([" X-Api-Key", "2", " 3\n"]) {
            limits.set(key, text).unwrap();
        }
        assert_eq!(limits.header.as_deref(), Some("x-api-key"));
        assert_eq!((limits.in_flight, limits.per_second), (Some(2), Some(3)));
        limits.check().unwrap();
        for wrong in ["", " ", "x api", "x:y", "x\r\ny", "ä", &"x".repeat(129)] {
            let error = limits.set(CLIENT_HEADER, wrong).unwrap_err().to_string();
            assert!(error.contains("expected the name of a header"), "{error}");
        }
        for (key, most) in [(MAX_REQUESTS, 65_536), (MAX_REQUESTS_PER_SECOND, 1_000_000)] {
            for wrong in ["0", "-1", "many", &(most + 1).to_string()] {
                let error = limits.set(key, wrong).unwrap_err().to_string();
                assert_eq!(error, format!("parameter `{key}` is `{wrong}`, expected 1 to {most}"));
            }
        }
    }

    #[test]
    fn a_limit_needs_a_header_and_a_header_a_limit() {
        let of = |keys: &[(&str, &str)]| {
            let mut limits = ClientLimits::default();
            keys.iter().for_each(|(key, text)| limits.set(key, text).unwrap());
            limits.check().err().map(|error| error.to_string())
        };
        for limit in [MAX_REQUESTS, MAX_REQUESTS_PER_SECOND] {
            let error = of(&[(limit, "1")]).unwrap();
            assert!(error.starts_with(&format!("parameter `{limit}` needs `client_header`")), "{error}");
            assert_eq!(of(&[(limit, "1"), (CLIENT_HEADER, "x")]), None);
        }
        assert!(of(&[(CLIENT_HEADER, "x")]).unwrap().contains("limits nothing alone"));
    }
}
