//! The one error type of the crate: a kind that maps 1:1 to Triton's error codes, a message, and the layers it
//! came through (model, operator, sample). It must not know Triton: `triton/` does that mapping.
//!
//! Messages are lower case, without a full stop, name literals in backticks and say what was expected and what was
//! found. Each layer adds its context once, outermost last.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What went wrong, in the classes that a client can act on. One kind per error code of Triton's C API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Nothing better is known.
    Unknown,
    /// A defect of ours, or of a library we call.
    Internal,
    /// A file, tensor or operator that does not exist.
    NotFound,
    /// The caller's data, pipeline or configuration is wrong.
    InvalidArg,
    /// A resource is used up now; the same call may succeed later.
    Unavailable,
    /// Valid, but this version or this device cannot do it.
    Unsupported,
    /// A name is taken.
    AlreadyExists,
    /// The client no longer wants the answer.
    Cancelled,
}

/// An error with its kind and the chain of contexts it passed through.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    context: Vec<String>,
}

/// What a caller is told of a panic.
const PANICKED: &str = "failed by a fault of the program, of which its log says more";

/// Panics of which the log has all.
const LOGGED_PANICS: usize = 64;

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` that reads `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), context: Vec::new() }
    }

    /// The caller's data, pipeline or configuration is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArg, message)
    }

    /// Valid, but not supported here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Something that was named does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// A defect of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The error of a panic that was caught. The panic's own words, which tell of what is inside, go to the log and to
    /// no client; the first of them, and then fewer and fewer: files that are damaged in one way may come without end.
    pub fn from_panic(payload: &(dyn std::any::Any + Send)) -> Self {
        static CAUGHT: AtomicUsize = AtomicUsize::new(0);
        let words = payload.downcast_ref::<&str>().copied();
        let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let number = CAUGHT.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if number <= LOGGED_PANICS || number.is_power_of_two() {
            tracing::error!(number, "a panic was caught: {}", words.unwrap_or("without a text"));
        }
        Self::internal(PANICKED)
    }

    /// Adds the layer that the error passes through; a layer calls this once.
    #[must_use]
    pub fn context(mut self, layer: impl Into<String>) -> Self {
        self.context.push(layer.into());
        self
    }

    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for layer in self.context.iter().rev() {
            write!(f, "{layer}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Adds a context to the error of a result; the text is made only when there is an error.
pub trait Context<T> {
    /// See [`Error::context`].
    fn context(self, layer: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for Result<T> {
    fn context(self, layer: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| error.context(layer()))
    }
}

/// Runs `body`; a panic becomes an `Internal` error, without the panic's words. What `body` changes may be left half
/// done.
///
/// # Errors
/// Those of `body`.
pub fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_from_the_outermost_layer_inwards() {
        let error = Error::invalid("expected rank 3, found 2").context("operator `r`").context("model `m`");
        assert_eq!(error.to_string(), "model `m`: operator `r`: expected rank 3, found 2");
        assert_eq!(error.kind(), ErrorKind::InvalidArg);
    }

    #[test]
    fn the_words_of_a_panic_reach_nobody() {
        for error in [
            caught::<()>(|| panic!("index 7 of {}", "secret.rs")),
            caught(|| panic!("plain")),
            caught(|| std::panic::panic_any(3_u8)),
        ] {
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert_eq!(error.to_string(), "failed by a fault of the program, of which its log says more");
        }
    }
}
