//! JPEG: our own decoder, and libjpeg-turbo for what that one leaves. It must not know other formats, except that TIFF may hold
//! JPEGs.
//!
//! ```text
//! bytes > frame (headers) > bits (data without stuffing) > entropy > transform, reduced > planes > rows (upsampling) > color
//!             |                   |                        |  progressive   |
//!             +-------------------+-----------+------------+----------------+   anything rare or odd
//!                                             v
//!                                     turbo (libjpeg-turbo), from the file's beginning
//! ```
//!
//! Pixels are those of libjpeg-turbo to the bit (`tests/cpu/jpeg_equal.rs`), so nobody can tell which of both decoded a file.
//! docs/jpeg-on-cpu.md says how it works and why it is made so.

mod bits;
mod color;
mod entropy;
mod frame;
mod header;
mod huffman;
mod layout;
mod own;
mod planes;
mod progressive;
mod reduced;
mod rows;
mod scans;
mod transform;
mod turbo;
mod vector;

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::color::Luma;
use super::picture::{Picture, Samples};
use super::{ColorSpace, Job, MAX_SHRINK, Window};
use crate::error::{Error, Result};
use crate::limits;

pub(super) use header::header;
pub use vector::Vectors;

/// Who decodes JPEGs on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JpegDecoder {
    /// Our own decoder; libjpeg-turbo for files that it leaves.
    #[default]
    Own,
    /// libjpeg-turbo alone.
    LibjpegTurbo,
}

/// What a decoder makes of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rgb,
    Bgr,
    Gray,
    /// Cyan, magenta, yellow, black, as the file has them.
    Inks,
}

impl Kind {
    fn channels(self) -> usize {
        match self {
            Kind::Rgb | Kind::Bgr => 3,
            Kind::Gray => 1,
            Kind::Inks => 4,
        }
    }
}

/// What is asked of a decoder.
#[derive(Debug, Clone, Copy)]
struct Ask {
    kind: Kind,
    /// How often sides are halved, at most [`MAX_SHRINK`].
    shrink: u32,
    /// Whether chroma is upsampled smoothly.
    smooth: bool,
    /// The part of the stored picture, as reduced; `None` is all of it.
    window: Option<Window>,
}

/// Memory that no thread uses now.
#[derive(Default)]
struct Spare {
    pixels: Vec<u8>,
    scratch: own::Scratch,
}

/// Decodes JPEGs; any thread may call it.
pub(super) struct Decoder {
    by: JpegDecoder,
    vectors: Vectors,
    spares: Mutex<Vec<Spare>>,
    left: AtomicU64,
}

impl Default for Decoder {
    fn default() -> Self {
        // Without vectors libjpeg-turbo is the faster one.
        let vectors = Vectors::best();
        let by = if vectors.are_plain() { JpegDecoder::LibjpegTurbo } else { JpegDecoder::default() };
        Self::new(by, vectors)
    }
}

impl Decoder {
    pub(super) fn new(by: JpegDecoder, vectors: Vectors) -> Self {
        Self { by, vectors, spares: Mutex::default(), left: AtomicU64::new(0) }
    }

    /// Images that our own decoder has left to libjpeg-turbo.
    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Decodes what `job` asks for to `out`, whose size was checked.
    pub(super) fn decode(&self, bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
        let mut spare = self.spares.lock().pop().unwrap_or_default();
        let decoded = self.decode_with(bytes, job, &mut spare, out);
        if spare.pixels.capacity() > limits::MAX_RETAINED_PIXEL_BYTES {
            spare.pixels = Vec::new();
        }
        if spare.scratch.size() > limits::MAX_RETAINED_PIXEL_BYTES {
            spare.scratch = own::Scratch::default();
        }
        self.spares.lock().push(spare);
        decoded
    }

    fn decode_with(&self, bytes: &[u8], job: &Job<'_>, spare: &mut Spare, out: &mut [u8]) -> Result<()> {
        let (width, height) = job.info.stored_size();
        let inks = job.info.channels == 4;
        let kind = match job.options.color {
            ColorSpace::Any if inks => {
                return Err(Error::unsupported(
                    "the channels of a CMYK image are not returned as they are, expected another output type than ANY_DATA",
                ));
            }
            _ if inks => Kind::Inks,
            ColorSpace::Gray => Kind::Gray,
            ColorSpace::Any if job.info.channels == 1 => Kind::Gray,
            ColorSpace::Bgr if job.is_plain() => Kind::Bgr,
            _ => Kind::Rgb,
        };
        let shrink = if job.info.halves { job.options.shrink.min(MAX_SHRINK) } else { 0 };
        let ask = Ask { kind, shrink, smooth: job.options.smooth_chroma, window: None };
        let Spare { pixels, scratch } = spare;
        if job.is_plain() && !inks && job.options.color != ColorSpace::YCbCr {
            return self.pixels(bytes, &ask, (width, height), scratch, out);
        }
        pixels.resize(width * height * kind.channels(), 0);
        self.pixels(bytes, &ask, (width, height), scratch, pixels)?;
        if inks {
            rgb_of_inks(pixels, header::read_header(bytes)?.1);
        }
        let channels = pixels.len() / (width * height);
        Picture { samples: Samples::U8(pixels), channels, luma: Luma::FloatFloor }.write(job, out)
    }

    /// Decodes to pixels, dense, as stored.
    fn pixels(
        &self,
        bytes: &[u8],
        ask: &Ask,
        size: (usize, usize),
        scratch: &mut own::Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        if self.by == JpegDecoder::Own {
            if own::decode(bytes, ask, self.vectors, scratch, out).is_some() {
                return Ok(());
            }
            self.left.fetch_add(1, Ordering::Relaxed);
        }
        turbo::decode(bytes, ask, size, out)
    }
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
}
