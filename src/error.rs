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

/// An error with its kind and the layers that it passed through.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    /// The innermost first.
    layers: Vec<Layer>,
    /// The input that the message names, if it names one.
    input: Option<String>,
}

/// A layer that an error passed through: words for people, and for programs the names in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// Words.
    Text(String),
    /// An operator of a pipeline.
    Operator {
        /// What it is.
        name: String,
        /// Its name in the pipeline.
        instance: String,
    },
    /// What feeds a pipeline.
    Source {
        /// Which of the pipeline's sources.
        number: usize,
        /// Its name in the pipeline, or that of the input that it feeds; empty when it has none.
        name: String,
    },
    /// A file, by its path.
    File(String),
}

impl Layer {
    /// An operator that is a `name`, called `instance` in the pipeline.
    pub fn operator(name: &str, instance: &str) -> Self {
        Self::Operator { name: name.to_owned(), instance: instance.to_owned() }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Operator { name, instance } => write!(f, "operator `{name}` (`{instance}`)"),
            Self::Source { number, name } if name.is_empty() => write!(f, "source {number}"),
            Self::Source { number, name } => write!(f, "source {number} (`{name}`)"),
            Self::File(path) => write!(f, "the file `{path}`"),
        }
    }
}

impl From<String> for Layer {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Layer {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
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
        Self { kind, message: message.into(), layers: Vec::new(), input: None }
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
    pub fn context(mut self, layer: impl Into<Layer>) -> Self {
        self.layers.push(layer.into());
        self
    }

    /// Says that the message names this input of a pipeline.
    #[must_use]
    pub fn of_input(self, name: &str) -> Self {
        Self { input: Some(name.to_owned()), ..self }
    }

    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The name in its pipeline of the operator that failed.
    pub fn operator(&self) -> Option<&str> {
        self.layers.iter().find_map(|layer| match layer {
            Layer::Operator { instance, .. } => Some(instance.as_str()),
            _ => None,
        })
    }

    /// The name in its pipeline of the source that failed, or of the input that is wrong.
    pub fn source_name(&self) -> Option<&str> {
        let named = self.layers.iter().find_map(|layer| match layer {
            Layer::Source { name, .. } => Some(name.as_str()),
            _ => None,
        });
        named.or(self.input.as_deref())
    }

    /// The path of the file that could not be read.
    pub fn file(&self) -> Option<&str> {
        self.layers.iter().find_map(|layer| match layer {
            Layer::File(path) => Some(path.as_str()),
            _ => None,
        })
    }

    /// The text behind the name of the operator or the source that failed: all of it where neither is known.
    pub fn reason(&self) -> String {
        let is_named = |layer: &Layer| matches!(layer, Layer::Operator { .. } | Layer::Source { .. });
        let inside = self.layers.iter().position(is_named).unwrap_or(self.layers.len());
        Self { layers: self.layers[..inside].to_vec(), ..self.clone() }.to_string()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for layer in self.layers.iter().rev() {
            write!(f, "{layer}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Adds a context to the error of a result; the text is made only when there is an error.
pub trait Context<T> {
    /// See [`Error::context`].
    fn context<L: Into<Layer>>(self, layer: impl FnOnce() -> L) -> Result<T>;
}

impl<T> Context<T> for Result<T> {
    fn context<L: Into<Layer>>(self, layer: impl FnOnce() -> L) -> Result<T> {
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
    fn names_are_told_beside_the_words() {
        let error = Error::not_found("no such file").context(Layer::File("a.jpg".to_owned()));
        let error = error.context(Layer::Source { number: 1, name: "files".to_owned() }).context("model `m`");
        assert_eq!(error.to_string(), "model `m`: source 1 (`files`): the file `a.jpg`: no such file");
        let named = (error.operator(), error.source_name(), error.file());
        assert_eq!(named, (None, Some("files"), Some("a.jpg")));
        assert_eq!(error.reason(), "the file `a.jpg`: no such file");
        let error = Error::invalid("too large").context(Layer::operator("Crop", "crop_1"));
        assert_eq!((error.operator(), error.reason().as_str()), (Some("crop_1"), "too large"));
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
