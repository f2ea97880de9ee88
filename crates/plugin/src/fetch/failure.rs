//! Why a file was not downloaded, in words that tell nothing of the network behind the server.

use std::time::Duration;

use gesso::error::{Error, ErrorKind};

/// Why there is no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No entry of `fetch_allow` has it, or it is none; why.
    NotAllowed(&'static str),
    /// Its host is in a network that is not for everybody.
    Network,
    /// It leads somewhere else, too often or where nothing may be fetched; what is wrong.
    Redirect(&'static str),
    /// It took longer than this.
    Late(Duration),
    /// It has more bytes than this.
    TooLarge(usize),
    /// The host answered with this status.
    Status(u16),
    /// What the host sent is no whole answer.
    Broken,
    /// The host has no address, does not answer, or is not who it should be.
    Unreachable(&'static str),
    /// Other downloads take all that there is; of what.
    Full(&'static str),
    /// Nobody waits for it.
    Abandoned,
}

impl Failure {
    /// Its name on the metrics port.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NotAllowed(_) => "not_allowed",
            Self::Network => "network",
            Self::Redirect(_) => "redirect",
            Self::Late(_) => "late",
            Self::TooLarge(_) => "too_large",
            Self::Status(_) => "status",
            Self::Broken => "broken",
            Self::Unreachable(_) => "unreachable",
            Self::Full(_) => "full",
            Self::Abandoned => "abandoned",
        }
    }

    /// All names, and that of a success from the host and from the cache.
    pub const LABELS: [&str; 12] = [
        "downloaded",
        "cached",
        "not_allowed",
        "network",
        "redirect",
        "late",
        "too_large",
        "status",
        "broken",
        "unreachable",
        "full",
        "abandoned",
    ];
}

impl From<&Failure> for Error {
    fn from(failure: &Failure) -> Self {
        let (kind, text) = match failure {
            Failure::NotAllowed(why) => {
                (ErrorKind::InvalidArg, format!("the address is not allowed by `fetch_allow`: {why}"))
            }
            Failure::Network => (
                ErrorKind::InvalidArg,
                "the address is in a network that is not allowed by `fetch_networks`".to_owned(),
            ),
            Failure::Redirect(what) => {
                (ErrorKind::InvalidArg, format!("the address leads to another: {what}"))
            }
            Failure::Late(limit) => {
                (ErrorKind::Unavailable, format!("the download took longer than {} s", limit.as_secs()))
            }
            Failure::TooLarge(limit) => {
                (ErrorKind::InvalidArg, format!("the file at the address is larger than {limit} bytes"))
            }
            Failure::Status(status @ (404 | 410)) => {
                (ErrorKind::NotFound, format!("the address answered with status {status}"))
            }
            Failure::Status(status) => {
                let kind = if *status < 500 { ErrorKind::InvalidArg } else { ErrorKind::Unavailable };
                (kind, format!("the address answered with status {status}, expected 200"))
            }
            Failure::Broken => {
                (ErrorKind::Unavailable, "the answer of the address is cut off or malformed".to_owned())
            }
            Failure::Unreachable(what) => {
                (ErrorKind::Unavailable, format!("the address cannot be reached: {what}"))
            }
            Failure::Full(what) => {
                (ErrorKind::Unavailable, format!("other downloads take all of the {what}"))
            }
            Failure::Abandoned => (ErrorKind::Cancelled, "the client no longer waits".to_owned()),
        };
        Error::new(kind, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_label_and_a_text() {
        let all = [
            Failure::NotAllowed("x"),
            Failure::Network,
            Failure::Redirect("x"),
            Failure::Late(Duration::from_secs(10)),
            Failure::TooLarge(7),
            Failure::Status(404),
            Failure::Broken,
            Failure::Unreachable("x"),
            Failure::Full("x"),
            Failure::Abandoned,
        ];
        for failure in &all {
            assert!(Failure::LABELS.contains(&failure.label()));
            assert!(!Error::from(failure).to_string().is_empty());
        }
        assert_eq!(all.len() + 2, Failure::LABELS.len());
        assert_eq!(
            Error::from(&Failure::Late(Duration::from_secs(10))).to_string(),
            "the download took longer than 10 s"
        );
        assert_eq!(Error::from(&Failure::Status(404)).kind(), ErrorKind::NotFound);
    }
}
