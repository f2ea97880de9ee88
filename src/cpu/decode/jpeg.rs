//! JPEG by libjpeg-turbo: header, pixels, CMYK. It must not know other formats, except that TIFF may hold JPEGs.
//!
//! libjpeg goes on after damage and reports only the first of its warnings. What DALI makes of them, and so we:
//! a file that ends before its end marker is an error; whatever else libjpeg can go on after is not.

use parking_lot::Mutex;
use turbojpeg::{Decompressor, Image, PixelFormat, ScalingFactor};

use super::color::Luma;
use super::picture::{Picture, Samples};
use super::{ColorSpace, Header, Job, MAX_SHRINK, orientation};
use crate::error::{Error, Result};
use crate::limits;

const SOI: u8 = 0xD8;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const APP0: u8 = 0xE0;
const APP1: u8 = 0xE1;
const APP2: u8 = 0xE2;
const APP14: u8 = 0xEE;
const APP15: u8 = 0xEF;

/// Whether `marker` starts a frame header. C4, C8 and CC lie between but are tables.
fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC)
}

/// Whether the frame that `marker` starts is made of differences of pixels instead of cosine transforms.
fn is_lossless(marker: u8) -> bool {
    matches!(marker, 0xC3 | 0xC7 | 0xCB | 0xCF)
}

/// Whether `marker` stands alone, without a length and a payload.
fn is_bare(marker: u8) -> bool {
    matches!(marker, 0x01 | 0xD0..=0xD7)
}

/// One marker segment: where its marker byte is and what it holds.
struct Segment<'a> {
    marker: u8,
    at: usize,
    payload: &'a [u8],
}

/// The segments up to and with the first scan header.
struct Segments<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Segments<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 2 }
    }

    fn next(&mut self) -> Result<Segment<'a>> {
        loop {
            let found = self.byte(self.at)?;
            if found != 0xFF {
                return Err(Error::invalid(format!(
                    "damaged header: expected a marker at byte {}, found `{found:02x}`",
                    self.at
                )));
            }
            // A marker may be preceded by any number of fill bytes.
            while self.byte(self.at)? == 0xFF {
                self.at += 1;
            }
            let (at, marker) = (self.at, self.byte(self.at)?);
            self.at += 1;
            if is_bare(marker) {
                continue;
            }
            if matches!(marker, 0 | SOI | EOI) {
                return Err(Error::invalid(format!(
                    "damaged header: found marker `{marker:02x}` at byte {at} before the first scan"
                )));
            }
            let length = usize::from(u16::from_be_bytes([self.byte(at + 1)?, self.byte(at + 2)?]));
            let payload = self.bytes.get(at + 3..(at + 1).saturating_add(length)).ok_or_else(|| {
                if length < 2 {
                    Error::invalid(format!(
                        "damaged header: segment of {length} bytes at byte {at}, expected 2 or more"
                    ))
                } else {
                    self.ended()
                }
            })?;
            self.at = at + 1 + length;
            return Ok(Segment { marker, at, payload });
        }
    }

    fn byte(&self, at: usize) -> Result<u8> {
        self.bytes.get(at).copied().ok_or_else(|| self.ended())
    }

    fn ended(&self) -> Error {
        Error::invalid(format!(
            "truncated header: the input ends after {} bytes, before the first scan",
            self.bytes.len()
        ))
    }
}

/// Reads a header up to its first scan.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    Ok(read_header(bytes)?.0)
}

/// The header, and whether it has Adobe's marker.
fn read_header(bytes: &[u8]) -> Result<(Header, bool)> {
    let mut segments = Segments::new(bytes);
    let mut turn = orientation::Orientation::default();
    let mut frame = None;
    let mut adobe = false;
    loop {
        let segment = segments.next()?;
        match segment.marker {
            APP1 => {
                // A later EXIF block replaces an earlier one, as in DALI.
                if let Some(block) = orientation::exif_block(segment.payload) {
                    turn = orientation::from_exif_block(block);
                }
            }
            APP14 => adobe |= is_adobe(segment.payload),
            SOS => break,
            marker if is_frame(marker) => {
                let &[precision, h1, h0, w1, w0, components, ..] = segment.payload else {
                    return Err(Error::invalid(format!(
                        "damaged header: frame header of {} bytes, expected at least 6",
                        segment.payload.len()
                    )));
                };
                let size = [[w1, w0], [h1, h0]].map(|bytes| usize::from(u16::from_be_bytes(bytes)));
                if frame.replace((marker, precision, size, components)).is_some() {
                    return Err(Error::invalid("damaged header: more than one frame header"));
                }
            }
            _ => {}
        }
    }
    let Some((marker, precision, [width, height], components)) = frame else {
        return Err(Error::invalid("damaged header: a scan without a frame header"));
    };
    if !matches!(components, 1 | 3 | 4) {
        return Err(Error::unsupported(format!("{components} components, expected 1, 3 or 4")));
    }
    if precision != 8 {
        return Err(Error::unsupported(format!("{precision} bits a sample, expected 8")));
    }
    let (channels, bit_depth) = (usize::from(components), usize::from(precision));
    let halves = !is_lossless(marker);
    Ok((Header { width, height, channels, bit_depth, orientation: turn, halves }, adobe))
}

/// Whether an APP14 segment is one that libjpeg reads.
fn is_adobe(payload: &[u8]) -> bool {
    payload.starts_with(b"Adobe") && payload.len() >= 12
}

/// Memory for pixels that need more work, and that no thread uses now.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Decodes what `job` asks for to `out`, whose size was checked.
    pub(super) fn decode(&self, bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
        let mut pixels = self.0.lock().pop().unwrap_or_default();
        let decoded = decode(bytes, job, &mut pixels, out);
        if pixels.capacity() <= limits::MAX_RETAINED_PIXEL_BYTES {
            self.0.lock().push(pixels);
        }
        decoded
    }
}

fn decode(bytes: &[u8], job: &Job<'_>, pixels: &mut Vec<u8>, out: &mut [u8]) -> Result<()> {
    let (width, height) = job.info.stored_size();
    let inks = job.info.channels == 4;
    // One for each file: libjpeg keeps tables, and would decode a file that has none with those of another.
    let mut decompressor = Decompressor::new().map_err(failed)?;
    decompressor.set_scan_limit(limits::MAX_JPEG_SCANS).map_err(failed)?;
    decompressor.set_fast_upsample(!job.options.smooth_chroma).map_err(failed)?;
    let shrink = if job.info.halves { job.options.shrink.min(MAX_SHRINK) } else { 0 };
    let scale = ScalingFactor::new(1, 1 << shrink);
    decompressor.set_scaling_factor(scale).map_err(failed)?;
    let direct = match job.options.color {
        ColorSpace::Any if inks => {
            return Err(Error::unsupported(
                "the channels of a CMYK image are not returned as they are, expected another output type than ANY_DATA",
            ));
        }
        _ if inks => PixelFormat::CMYK,
        ColorSpace::Gray => PixelFormat::GRAY,
        ColorSpace::Any if job.info.channels == 1 => PixelFormat::GRAY,
        ColorSpace::Bgr if job.is_plain() => PixelFormat::BGR,
        _ => PixelFormat::RGB,
    };
    if job.is_plain() && !inks && job.options.color != ColorSpace::YCbCr {
        return decompress(&mut decompressor, bytes, out, width, height, direct);
    }
    pixels.resize(width * height * direct.size(), 0);
    decompress(&mut decompressor, bytes, pixels, width, height, direct)?;
    if inks {
        rgb_of_inks(pixels, read_header(bytes)?.1);
    }
    let channels = pixels.len() / (width * height);
    Picture { samples: Samples::U8(pixels), channels, luma: Luma::FloatFloor }.write(job, out)
}

/// Turns CMYK to RGB in place and drops the fourth quarter. Adobe writes inks `inverted`, 255 for none.
fn rgb_of_inks(pixels: &mut Vec<u8>, inverted: bool) {
    let flip = if inverted { 0 } else { 255 };
    let count = pixels.len() / 4;
    for i in 0..count {
        let black = u16::from(pixels[4 * i + 3] ^ flip);
        for c in 0..3 {
            pixels[3 * i + c] = (u16::from(pixels[4 * i + c] ^ flip) * black / 255) as u8;
        }
    }
    pixels.truncate(3 * count);
}

/// Decodes a JPEG, whole or reduced, to `pixels`, dense, as stored.
fn decompress(
    decompressor: &mut Decompressor,
    bytes: &[u8],
    pixels: &mut [u8],
    width: usize,
    height: usize,
    format: PixelFormat,
) -> Result<()> {
    let pitch = width * format.size();
    let mut attempt = |decompressor: &mut Decompressor, bytes: &[u8]| {
        decompressor.decompress(bytes, Image { pixels: &mut *pixels, width, pitch, height, format })
    };
    let mut outcome = attempt(decompressor, bytes);
    if warns(&outcome) && decompressor.read_header(bytes).is_err() {
        // turbojpeg decodes nothing after any warning about the header, harmless as it may be.
        let quiet = quiet_header(bytes)?;
        decompressor.read_header(&quiet).map_err(failed)?;
        outcome = attempt(decompressor, &quiet);
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
fn warns(outcome: &turbojpeg::Result<()>) -> bool {
    let Err(turbojpeg::Error::TurboJpegError(text)) = outcome else { return false };
    WARNINGS.iter().any(|known| text.starts_with(known))
}

fn failed(error: turbojpeg::Error) -> Error {
    match error {
        turbojpeg::Error::TurboJpegError(text) => Error::invalid(format!("libjpeg-turbo: {text}")),
        other => Error::internal(format!("libjpeg-turbo: {other}")),
    }
}

/// A copy whose header makes libjpeg decode the same without a warning.
fn quiet_header(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut quiet = bytes.to_vec();
    let mut segments = Segments::new(bytes);
    let channels = header(bytes)?.channels;
    loop {
        let Segment { marker, at, payload } = segments.next()?;
        let mut set = |offset: usize, value: u8| {
            if let Some(byte) = quiet.get_mut(at + offset) {
                *byte = value;
            }
        };
        match marker {
            SOS => return Ok(quiet),
            APP0 if payload.starts_with(b"JFIF\0") && payload.len() > 5 => set(3 + 5, 1),
            // Profiles are not used: as another application's segment nobody looks at them.
            APP2 => set(0, APP15),
            APP14 if is_adobe(payload) => {
                match (channels, payload[11]) {
                    // What libjpeg takes an unknown transform for.
                    (3, transform) if transform > 1 => set(3 + 11, 1),
                    (4, transform) if transform != 0 => set(3 + 11, 2),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Whether an end marker follows the first scan; scans and tables between them are skipped.
fn reaches_its_end(bytes: &[u8]) -> Result<bool> {
    let mut segments = Segments::new(bytes);
    while segments.next()?.marker != SOS {}
    let mut rest = bytes.get(segments.at..).unwrap_or_default();
    while let Some(at) = rest.iter().position(|&byte| byte == 0xFF) {
        rest = &rest[at + 1..];
        match *rest {
            [EOI, ..] => return Ok(true),
            // Data, fill bytes, restarts, and markers that nobody uses.
            [0..=0xBF | 0xD0..=0xD7 | 0xFF, ..] => {}
            [_, high, low, ..] => {
                let length = usize::from(u16::from_be_bytes([high, low]));
                rest = rest.get(1 + length..).unwrap_or_default();
            }
            _ => return Ok(false),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_multiply() {
        let mut pixels = vec![255, 128, 0, 255, 200, 100, 50, 128];
        rgb_of_inks(&mut pixels, true);
        assert_eq!(pixels, [255, 128, 0, 100, 50, 25]);
        let mut pixels = vec![0, 127, 255, 0];
        rgb_of_inks(&mut pixels, false);
        assert_eq!(pixels, [255, 128, 0]);
    }

    #[test]
    fn headers_end_with_a_reason() {
        let text = |bytes: &[u8]| header(bytes).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(text(&[0xFF, 0xD8]).contains("truncated header"));
        assert!(text(&[0xFF, 0xD8, 0xFF, 0xDB, 0, 1, 0]).contains("segment of 1 bytes"));
        assert!(text(&[0xFF, 0xD8, 7]).contains("expected a marker at byte 2"));
        assert!(text(&[0xFF, 0xD8, 0xFF, 0xDA, 0, 2]).contains("without a frame header"));
    }
}
