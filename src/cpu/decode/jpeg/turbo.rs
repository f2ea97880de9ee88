//! JPEG by libjpeg-turbo: the files that our own decoder leaves to it, and the judgement of all that is damaged. It
//! must not know what a caller makes of pixels.
//!
//! libjpeg goes on after damage and reports only the first of its warnings. What DALI makes of them, and so we:
//! a file that ends before its end marker is an error; whatever else libjpeg can go on after is not.

use turbojpeg::PixelFormat;

use super::behind::reaches_its_end;
use super::handle::{Handle, Samples, Told};
use super::header::{APP0, APP2, APP14, APP15, SOS, Segment, Segments, header, is_adobe};
use super::{Ask, Kind};
use crate::error::{Error, Result};
use crate::limits;

/// Decodes a JPEG of `width` x `height` pixels, as reduced, to `samples`, dense, as stored, of as many bits as the file
/// has.
pub(super) fn decode(
    bytes: &[u8],
    ask: &Ask,
    (width, height): (usize, usize),
    mut samples: Samples<'_>,
) -> Result<()> {
    // One for each file: libjpeg keeps tables, and would decode a file that has none with those of another.
    let mut handle = Handle::new(ask.shrink).map_err(failed)?;
    handle.limit_scans(limits::MAX_JPEG_SCANS).map_err(failed)?;
    handle.repeat_chroma(!ask.smooth).map_err(failed)?;
    let format = match ask.kind {
        Kind::Rgb => PixelFormat::RGB,
        Kind::Bgr => PixelFormat::BGR,
        Kind::Gray => PixelFormat::GRAY,
        Kind::Inks => PixelFormat::CMYK,
    };
    let mut attempt =
        |handle: &mut Handle, bytes: &[u8]| handle.decode(bytes, format, (width, height), samples.again());
    let mut outcome = attempt(&mut handle, bytes);
    if warns(&outcome) && handle.read_header(bytes).is_err() {
        // After any warning about the header nothing is decoded, harmless as it may be.
        let quiet = quiet_header(bytes, true)?;
        handle.read_header(&quiet).map_err(failed)?;
        outcome = attempt(&mut handle, &quiet);
    }
    match outcome {
        Ok(()) => Ok(()),
        // Of a file that goes on after its first damage libjpeg would not say that it ends too early.
        Err(_) if !reaches_its_end(bytes)? => Err(Error::invalid(format!(
            "truncated: the input of {} bytes ends before the image does",
            bytes.len()
        ))),
        outcome if warns(&outcome) => Ok(()),
        outcome => outcome.map_err(failed),
    }
}

/// What libjpeg's warnings start with, except that a file ends too early. An error replaces the warning before it, and
/// none looks like these.
const WARNINGS: [&str; 5] = [
    "Corrupt JPEG data",
    "Inconsistent progression sequence",
    "Invalid SOS parameters for sequential JPEG",
    "Unknown Adobe color transform code",
    "Warning: unknown JFIF revision number",
];

/// Whether libjpeg could go on after what it complains about.
fn warns(outcome: &Told<()>) -> bool {
    outcome.as_ref().is_err_and(|text| WARNINGS.iter().any(|known| text.starts_with(known)))
}

fn failed(mut text: String) -> Error {
    text.insert_str(0, "libjpeg-turbo: ");
    Error::invalid(text)
}

/// A copy whose header makes libjpeg decode the same without a warning: its segments alone, without what stands between
/// them. Without `colors` the header does not say which colours the components are.
pub(super) fn quiet_header(bytes: &[u8], colors: bool) -> Result<Vec<u8>> {
    let mut quiet = bytes.get(..2).unwrap_or_default().to_vec();
    let mut segments = Segments::new(bytes);
    let channels = header(bytes)?.channels;
    loop {
        let Segment { marker, payload, .. } = segments.next()?;
        let length = u16::try_from(payload.len() + 2).unwrap_or(u16::MAX);
        // Profiles are not used: as another application's segment nobody looks at them.
        let is_unused = marker == APP2 || (!colors && matches!(marker, APP0 | APP14));
        quiet.extend([0xFF, if is_unused { APP15 } else { marker }]);
        quiet.extend(length.to_be_bytes());
        let start = quiet.len();
        quiet.extend(payload);
        let mut set = |offset: usize, value: u8| {
            if let Some(byte) = quiet.get_mut(start + offset) {
                *byte = value;
            }
        };
        match marker {
            SOS => {
                quiet.extend(bytes.get(segments.at..).unwrap_or_default());
                return Ok(quiet);
            }
            APP0 if payload.starts_with(b"JFIF\0") && payload.len() > 5 => set(5, 1),
            APP14 if is_adobe(payload) => {
                match (channels, payload[11]) {
                    // What libjpeg takes an unknown transform for.
                    (3, transform) if transform > 1 => set(11, 1),
                    (4, transform) if transform != 0 => set(11, 2),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}
