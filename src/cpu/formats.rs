//! Formats of pictures, sounds and videos, and which of them may be decoded. It must not know how a file's format is
//! found.

use std::fmt;

use crate::cpu::decode;
use crate::error::{Error, Result};

macro_rules! formats {
    ($($format:ident $name:literal)*) => {
        /// A format that can be decoded. That of a video is how its frames are compressed, whatever container they are
        /// in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum Format {
            Image(decode::Format),
            $($format),*
        }

        impl Format {
            /// Those of sounds and videos.
            const OTHERS: &[Self] = &[$(Self::$format),*];

            /// Its name in the parameter `formats`.
            pub fn name(self) -> &'static str {
                match self {
                    Self::Image(format) => format.parameter(),
                    $(Self::$format => $name),*
                }
            }
        }
    };
}
// `decode::Format` has those of images.
formats! {
    Wav "wav" Aiff "aiff" Au "au" Caf "caf" Flac "flac" Vorbis "vorbis" Opus "opus" Mp3 "mp3"
    Aac "aac" Alac "alac"
    H264 "h264" H265 "h265" Vp8 "vp8" Vp9 "vp9" Av1 "av1" Mjpeg "mjpeg" Mpeg4 "mpeg4"
}

impl Format {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        decode::Format::ALL.iter().map(|&format| Self::Image(format)).chain(Self::OTHERS.iter().copied())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The formats that may be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats(u32);

impl Default for Formats {
    fn default() -> Self {
        Self::ALL
    }
}

impl Formats {
    /// All that can be decoded.
    pub const ALL: Self = Self(u32::MAX);

    /// Those of a list with commas between: `jpeg,png` are these alone, `-avif,-av1` all but these.
    ///
    /// # Errors
    /// An unknown name, names with and without `-`, no name.
    pub fn parse(text: &str) -> Result<Self> {
        let (mut with, mut without) = (0, 0);
        for word in text.split(',').map(str::trim) {
            let (name, bits) = match word.strip_prefix('-') {
                Some(name) => (name, &mut without),
                None => (word, &mut with),
            };
            let format = Format::all().find(|format| format.name() == name).ok_or_else(|| {
                let known: Vec<&str> = Format::all().map(Format::name).collect();
                Error::invalid(format!(
                    "`{}` is no format, expected some of {}",
                    name.escape_debug(),
                    known.join(", ")
                ))
            })?;
            *bits |= bit(format);
        }
        match (with, without) {
            (with, 0) => Ok(Self(with)),
            (0, without) => Ok(Self(!without)),
            _ => Err(Error::invalid(
                "formats with and without `-`, expected those to take, `jpeg,png`, or those to leave out, `-avif,-av1`",
            )),
        }
    }

    /// Whether all that can be decoded may be.
    pub fn is_all(self) -> bool {
        self == Self::ALL
    }

    /// Whether `format` may be decoded.
    ///
    /// # Errors
    /// Unsupported when it may not.
    pub fn check(self, format: Format) -> Result<()> {
        match self.0 & bit(format) {
            0 => Err(Error::unsupported(format!("format `{format}` is switched off by parameter `formats`"))),
            _ => Ok(()),
        }
    }
}

fn bit(format: Format) -> u32 {
    let place = Format::all().position(|one| one == format);
    place.and_then(|place| 1_u32.checked_shl(place as u32)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_what_is_taken_or_what_is_left_out() {
        let taken = |text: &str| {
            let formats = Formats::parse(text).unwrap();
            let names = Format::all().filter(|&format| formats.check(format).is_ok());
            names.map(Format::name).collect::<Vec<_>>()
        };
        assert_eq!(taken("jpeg, png"), ["jpeg", "png"]);
        let most = taken("-avif,-av1");
        assert!(most.len() == Format::all().count() - 2 && !most.contains(&"avif") && !most.contains(&"av1"));
        assert!(Format::all().all(|format| bit(format) != 0), "more formats than bits");
        assert!(Formats::default().is_all() && !Formats::parse("-av1").unwrap().is_all());
        for (wrong, said) in [
            ("", "`` is no format, expected some of jpeg, jpeg2000,"),
            ("jpg", "`jpg` is no format, expected some of jpeg, jpeg2000,"),
            ("JPEG", "`JPEG` is no format"),
            ("jpeg,,png", "`` is no format"),
            ("jpeg,-avif", "formats with and without `-`"),
        ] {
            let error = Formats::parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
