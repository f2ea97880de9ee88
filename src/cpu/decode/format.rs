//! What the file of an image format says of it, and which format an encoded image has by its first bytes. It must not
//! know what follows them.

use std::fmt;

use super::effort::{Cost, Measures};
use super::profile::Profile;
use super::{Decoder, Format, Header, Job};
use crate::error::{Error, Result};

/// A format, as its own file describes it.
pub(super) struct ImageFormat {
    /// Its name in errors.
    pub(super) name: &'static str,
    /// Its name in the parameter `formats`.
    pub(super) parameter: &'static str,
    /// Whether a file begins as one of it.
    pub(super) is_one: fn(&[u8]) -> bool,
    /// Reads the header; pixels may be missing.
    pub(super) header: fn(&[u8]) -> Result<Header>,
    /// Decodes what the job asks for to memory whose size was checked.
    pub(super) decode: fn(&Decoder, &[u8], &Job<'_>, &mut [u8]) -> Result<()>,
    /// What the file says of its colours; `None` where it says nothing, or sRGB.
    pub(super) profile: for<'a> fn(&'a [u8]) -> Result<Option<Profile<'a>>>,
    /// What that is expected to take, from the header.
    pub(super) effort: fn(&Measures<'_>) -> Cost,
}

/// Makes `Format` of the formats, each with the module whose `FORMAT` describes it.
macro_rules! image_formats {
    ($($format:ident $module:ident)*) => {
        /// A file format that can be decoded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum Format {
            $($format),*
        }

        impl Format {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$format),*];

            /// What its file says.
            fn row(self) -> &'static format::ImageFormat {
                match self {
                    $(Self::$format => &$module::FORMAT),*
                }
            }
        }
    };
}
pub(super) use image_formats;

impl Format {
    /// Its name in the parameter `formats`.
    pub fn parameter(self) -> &'static str {
        self.row().parameter
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().name)
    }
}

/// Bytes that an error shows of an input of unknown format.
const SHOWN_BYTES: usize = 12;

/// The format of `bytes`.
///
/// # Errors
/// When there are no bytes, when the format is known but not supported, and when it is unknown.
pub(super) fn detect(bytes: &[u8]) -> Result<Format> {
    if bytes.is_empty() {
        return Err(Error::invalid("empty input, expected an encoded image"));
    }
    if let Some(format) = Format::ALL.iter().find(|format| (format.row().is_one)(bytes)) {
        return Ok(*format);
    }
    let unsupported = match bytes {
        [b'P', b'7', b'\n', ..] => "PAM",
        _ => {
            let first: Vec<String> = bytes.iter().take(SHOWN_BYTES).map(|b| format!("{b:02x}")).collect();
            return Err(Error::invalid(format!(
                "unknown image format: the input of {} bytes starts with `{}`",
                bytes.len(),
                first.join(" ")
            )));
        }
    };
    let known: Vec<&str> = Format::ALL.iter().map(|format| format.row().name).collect();
    Err(Error::unsupported(format!(
        "images of format {unsupported} are not supported, expected one of {}",
        known.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_of_two_formats() {
        let beginnings: [&[u8]; 19] = [
            b"\xff\xd8\xff",
            b"\x89PNG\r\n\x1a\n",
            b"BM",
            b"GIF89a",
            b"GIF87a",
            b"II*\0",
            b"MM\0+",
            b"RIFF\0\0\0\0WEBP",
            b"P1\n",
            b"P6#",
            b"\0\0\0\x0cjP  ",
            b"\xff\x4f\xff\x51",
            b"\xff\x0a",
            b"\0\0\0\x0cJXL ",
            b"\0\0\0\x10ftypavif\0\0\0\0",
            b"\0\0\0\x14ftypmif1\0\0\0\0avis",
            b"\0\0\0\x10ftypheix\0\0\0\0",
            b"\0\0\0\x14ftypmsf1\0\0\0\0hevc",
            b"\0\0\0\x18ftypmif1\0\0\0\0mif1miaf",
        ];
        let mut found = Vec::new();
        for bytes in beginnings {
            let of: Vec<Format> =
                Format::ALL.iter().copied().filter(|format| (format.row().is_one)(bytes)).collect();
            assert_eq!(of.len(), 1, "{bytes:?} is {of:?}");
            assert_eq!(detect(bytes).unwrap(), of[0]);
            found.extend(of);
        }
        assert!(Format::ALL.iter().all(|format| found.contains(format)));
        let error = detect(b"P7\n").unwrap_err().to_string();
        assert!(error.contains("format PAM are not supported, expected one of JPEG, JPEG 2000"), "{error}");
    }
}
