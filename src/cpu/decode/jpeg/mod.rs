//! JPEG: our own decoder, and libjpeg-turbo for what that one leaves. It must not know other formats, except that TIFF
//! may hold JPEGs.
//!
//! ```text
//! bytes > frame (headers) > bits (without stuffing) > entropy > transform, reduced > planes > rows (upsampled) > color
//!             |                   |                coded, multiscan    |
//!             +-------------------+-----------+-------+----------------+   anything rare or odd
//!                                             v
//!                                     turbo (libjpeg-turbo), from the file's beginning
//!                                             |  samples of other than 8 bits, lossless files
//!                                             v
//!                                           deep
//! ```
//!
//! Pixels are those of libjpeg-turbo to the bit (`tests/cpu/jpeg_equal.rs`), so nobody can tell which of both decoded a
//! file. docs/explanation/jpeg-on-cpu.md says how it works and why it is made so.

mod bands;
mod behind;
mod bits;
mod canvas;
mod coded;
mod color;
mod deep;
mod entropy;
mod frame;
mod handle;
mod header;
mod huffman;
mod layout;
mod multiscan;
mod own;
mod planes;
mod reduced;
mod rows;
mod scans;
mod scratch;
mod segments;
mod sink;
mod transform;
mod turbo;
mod vector;

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::color::Luma;
use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::picture::{Picture, Samples, View, stored_window};
use super::{ColorSpace, Conditions, ImageInfo, Job, MAX_SHRINK, Orientation, RowSink, Window, pillow};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::grow;
use crate::memory::pattern;
use crate::tensor::DType;
use sink::Whole;

use header::profile;
pub(super) use header::{header, is_sequential, scans};
pub use vector::Vectors;

/// Nanoseconds for each pixel: transform and colours.
const PIXEL: f64 = 0.6;

/// For each byte of data: codes.
const BYTE: f64 = 4.0;

/// For each pixel, each time that a scan goes over the coefficients.
const SCAN_PIXEL: f64 = 0.4;

/// For each sample of 12 bits, or of a lossless file.
const DEEP_SAMPLE: f64 = 2.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "JPEG",
    parameter: "jpeg",
    is_one: |bytes| matches!(bytes, [0xFF, 0xD8, ..]),
    header,
    decode: |decoder, bytes, job, out| decoder.jpeg.decode(bytes, job, out),
    profile,
    effort: expected,
};

fn expected(image: &Measures<'_>) -> Cost {
    let scans = scans(image.bytes);
    let passes = if scans > 1 { f64::from(scans) } else { 0.0 };
    let (of_deep, own) = match is_deep(image.info) {
        // Samples have memory of their own, too, and so have inks as bytes.
        true => (DEEP_SAMPLE, if image.is_output { image.stored } else { image.samples }),
        false => (0.0, 0.0),
    };
    Cost {
        nanoseconds: image.pixels * (PIXEL + passes * SCAN_PIXEL)
            + image.length * BYTE
            + image.samples * of_deep,
        // Data without markers; of files with several scans all coefficients.
        scratch: image.length + if scans > 1 { 2.5 * image.samples } else { 0.0 } + own,
    }
}

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
    scratch: scratch::Scratch,
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
        self.with_spare(|spare| self.decode_with(bytes, job, spare, out))
    }

    /// Decodes what `job` asks for row by row. False: it was not, or not all of it.
    pub(super) fn decode_rows(&self, bytes: &[u8], job: &Job<'_>, out: &mut dyn RowSink) -> bool {
        if self.by != JpegDecoder::Own || !is_stored(job) {
            return false;
        }
        let ask = Ask { window: Some(stored_window(&job.info, job.options.window)), ..ask(job, true) };
        let conditions = Conditions { pool: None, ..job.conditions };
        self.with_spare(|spare| {
            own::decode(bytes, &ask, self.vectors, conditions, &mut spare.scratch, out).is_some()
        })
    }

    fn with_spare<T>(&self, work: impl FnOnce(&mut Spare) -> T) -> T {
        let mut spare = self.spares.lock().pop().unwrap_or_default();
        if let Some(pattern) = pattern() {
            spare.pixels.fill(pattern);
            spare.scratch.fill(pattern);
        }
        let done = work(&mut spare);
        if spare.pixels.capacity() > limits::MAX_RETAINED_PIXEL_BYTES {
            spare.pixels = Vec::new();
        }
        if spare.scratch.size() > limits::MAX_RETAINED_PIXEL_BYTES {
            spare.scratch = scratch::Scratch::default();
        }
        self.spares.lock().push(spare);
        done
    }

    fn decode_with(&self, bytes: &[u8], job: &Job<'_>, spare: &mut Spare, out: &mut [u8]) -> Result<()> {
        if job.info.channels == 4 && job.options.color == ColorSpace::Any && !job.inks {
            return Err(Error::unsupported(
                "the channels of a CMYK image are not returned as they are, expected another output type than ANY_DATA",
            ));
        }
        if self.by == JpegDecoder::Own {
            if self.by_ourselves(bytes, job, spare, out)? {
                return Ok(());
            }
            self.left.fetch_add(1, Ordering::Relaxed);
        }
        job.must_end_in_time()?;
        if is_deep(&job.info) {
            return deep::decode(bytes, job, out);
        }
        let plain = job.is_plain() && is_direct(job);
        let (width, height) = job.info.stored_size();
        let ask = ask(job, plain);
        if plain {
            return turbo::decode(bytes, &ask, (width, height), handle::Samples::U8(out));
        }
        grow(&mut spare.pixels, width * height * ask.kind.channels(), 0)?;
        turbo::decode(bytes, &ask, (width, height), handle::Samples::U8(&mut spare.pixels))?;
        finish(bytes, job, &mut spare.pixels, out)
    }

    /// Decodes what is under the window. False: libjpeg-turbo shall do it.
    fn by_ourselves(&self, bytes: &[u8], job: &Job<'_>, spare: &mut Spare, out: &mut [u8]) -> Result<bool> {
        let Spare { pixels, scratch } = spare;
        let window = stored_window(&job.info, job.options.window);
        let (width, height) =
            job.options.window.map_or((job.info.width, job.info.height), |w| (w.width, w.height));
        // What is under the window is all that there is.
        let info = ImageInfo { width, height, ..job.info };
        let cut = Job { info, view: View::new(&info, None)?, ..*job };
        let direct = is_stored(job);
        let ask = Ask { window: Some(window), ..ask(job, direct) };
        let row = window.width * ask.kind.channels();
        if direct {
            let out = &mut Whole::new(out, row);
            return Ok(own::decode(bytes, &ask, self.vectors, job.conditions, scratch, out).is_some());
        }
        grow(pixels, row * window.height, 0)?;
        let whole = &mut Whole::new(pixels, row);
        if own::decode(bytes, &ask, self.vectors, job.conditions, scratch, whole).is_none() {
            return Ok(false);
        }
        finish(bytes, &cut, pixels, out)?;
        Ok(true)
    }
}

/// Whether a file is lossless, or has another number of bits than most.
fn is_deep(info: &ImageInfo) -> bool {
    info.bit_depth != 8 || !info.halves
}

/// Whether a decoder makes the colours that are asked for.
fn is_direct(job: &Job<'_>) -> bool {
    job.info.channels != 4 && job.options.color != ColorSpace::YCbCr
}

/// Whether pixels as stored, in those colours, are the output.
fn is_stored(job: &Job<'_>) -> bool {
    is_direct(job) && job.options.dtype == DType::U8 && job.info.orientation == Orientation::default()
}

/// What a decoder is asked for. With `direct` its pixels are the output.
fn ask(job: &Job<'_>, direct: bool) -> Ask {
    let kind = match job.options.color {
        _ if job.info.channels == 4 => Kind::Inks,
        ColorSpace::Gray => Kind::Gray,
        ColorSpace::Any if job.info.channels == 1 => Kind::Gray,
        ColorSpace::Bgr if direct => Kind::Bgr,
        _ => Kind::Rgb,
    };
    let shrink = if job.info.halves { job.options.shrink.min(MAX_SHRINK) } else { 0 };
    Ask { kind, shrink, smooth: job.options.smooth_chroma, window: None }
}

/// Pixels of `job` as stored to what it asks for.
fn finish(bytes: &[u8], job: &Job<'_>, pixels: &mut Vec<u8>, out: &mut [u8]) -> Result<()> {
    let (width, height) = job.info.stored_size();
    if job.info.channels == 4 {
        let inverted = header::read_header(bytes)?.1.is_adobes();
        match (job.inks, job.options.as_pillow) {
            // Pillow takes all for Adobe's.
            (true, as_pillow) if inverted || as_pillow => pixels.iter_mut().for_each(|ink| *ink = !*ink),
            (true, _) => {}
            (false, true) => rgb_of_inks(pixels, true, pillow::light),
            (false, false) => rgb_of_inks(pixels, inverted, multiplied),
        }
    }
    let channels = pixels.len() / (width * height);
    Picture { samples: Samples::U8(pixels), channels, luma: Luma::FloatFloor }.write(job, out)
}

/// Turns CMYK to RGB in place and drops the fourth quarter. Adobe writes inks `inverted`, 255 for none. `light` makes
/// what is seen of an ink and of black, both inverted.
fn rgb_of_inks(pixels: &mut Vec<u8>, inverted: bool, light: impl Fn(u16, u16) -> u8) {
    let flip = if inverted { 0 } else { 255 };
    let count = pixels.len() / 4;
    for i in 0..count {
        let black = u16::from(pixels[4 * i + 3] ^ flip);
        for c in 0..3 {
            pixels[3 * i + c] = light(u16::from(pixels[4 * i + c] ^ flip), black);
        }
    }
    pixels.truncate(3 * count);
}

/// Light behind an ink and black, as DALI has it.
fn multiplied(ink: u16, black: u16) -> u8 {
    (ink * black / 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_multiply() {
        let mut pixels = vec![255, 128, 0, 255, 200, 100, 50, 128];
        rgb_of_inks(&mut pixels, true, multiplied);
        assert_eq!(pixels, [255, 128, 0, 100, 50, 25]);
        let mut pixels = vec![0, 127, 255, 0];
        rgb_of_inks(&mut pixels, false, multiplied);
        assert_eq!(pixels, [255, 128, 0]);
    }
}
