//! The bytes of a video: borrowed, or shared with whoever keeps them. Nobody writes to them meanwhile. It must not know
//! what they mean.

use std::fmt;
use std::ops::Deref;

use crate::memory::SharedBytes;

/// A whole file.
pub enum File<'a> {
    /// Of a caller who keeps it for as long as the video.
    Borrowed(&'a [u8]),
    /// In memory that goes with the last who holds it.
    Shared(SharedBytes),
}

impl Deref for File<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            File::Borrowed(bytes) => bytes,
            File::Shared(bytes) => (**bytes).as_ref(),
        }
    }
}

impl fmt::Debug for File<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl<'a> From<&'a [u8]> for File<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        File::Borrowed(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for File<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        File::Borrowed(bytes)
    }
}

impl From<Vec<u8>> for File<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        File::Shared(std::sync::Arc::new(bytes))
    }
}
