//! Which format an encoded image has, by its first bytes. It must not know what follows them.

use std::fmt;

use crate::cpu::atoms::atoms;
use crate::error::{Error, Result};

/// A file format that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Format {
    Jpeg,
    Png,
    Bmp,
    Gif,
    Tiff,
    WebP,
    Avif,
    Jpeg2000,
    JpegXl,
    /// Netpbm's `P1` to `P6`.
    Pnm,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Jpeg => "JPEG",
            Format::Png => "PNG",
            Format::Bmp => "BMP",
            Format::Gif => "GIF",
            Format::Tiff => "TIFF",
            Format::WebP => "WebP",
            Format::Avif => "AVIF",
            Format::Jpeg2000 => "JPEG 2000",
            Format::JpegXl => "JPEG XL",
            Format::Pnm => "PNM",
        })
    }
}

/// Whether the box `ftyp` that `bytes` begin with has a brand of AVIF, or is cut off behind one.
fn is_avif(bytes: &[u8]) -> bool {
    let brands = atoms(bytes).next().map(|ftyp| ftyp.body).unwrap_or_default();
    // Between the first one and those that it is compatible with stands a version.
    let (brands, _) = brands.as_chunks();
    brands.iter().enumerate().any(|(place, brand)| place != 1 && [b"avif", b"avis"].contains(&brand))
}

/// Bytes that an error shows of an input of unknown format.
const SHOWN_BYTES: usize = 12;

/// The format of `bytes`.
///
/// # Errors
/// When there are no bytes, when the format is known but not supported, and when it is unknown.
pub(super) fn detect(bytes: &[u8]) -> Result<Format> {
    let unsupported = match bytes {
        [] => return Err(Error::invalid("empty input, expected an encoded image")),
        [0xFF, 0xD8, ..] => return Ok(Format::Jpeg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => return Ok(Format::Png),
        [b'B', b'M', ..] => return Ok(Format::Bmp),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => return Ok(Format::Gif),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => return Ok(Format::Tiff),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => return Ok(Format::WebP),
        [b'P', b'1'..=b'6', b' ' | b'\t' | b'\r' | b'\n' | b'#', ..] => return Ok(Format::Pnm),
        [b'P', b'7', b'\n', ..] => "PAM",
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xFF, 0x4F, 0xFF, 0x51, ..] => {
            return Ok(Format::Jpeg2000);
        }
        [0xFF, 0x0A, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => return Ok(Format::JpegXl),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] if is_avif(bytes) => return Ok(Format::Avif),
        [_, _, _, _, b'f', b't', b'y', b'p', b'h' | b'm', ..] => "HEIF",
        _ => {
            let first: Vec<String> = bytes.iter().take(SHOWN_BYTES).map(|b| format!("{b:02x}")).collect();
            return Err(Error::invalid(format!(
                "unknown image format: the input of {} bytes starts with `{}`",
                bytes.len(),
                first.join(" ")
            )));
        }
    };
    Err(Error::unsupported(format!(
        "images of format {unsupported} are not supported, expected one of JPEG, JPEG 2000, JPEG XL, PNG, BMP, GIF, TIFF, WebP, AVIF, PNM"
    )))
}
