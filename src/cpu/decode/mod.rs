//! Encoded images to HWC pixels, with the results of DALI's CPU decoders. It must not know operators, graphs or
//! batches: bytes and options in, pixels out.
//!
//! ```text
//! bytes -> format -> header -> ImageInfo            `probe`: no pixel is decoded
//!                      |
//!                      v
//!   library's pixels -> strided view (orientation, window) -> colour -> dtype -> out     `Decoder::decode_into`
//! ```
//!
//! JPEG is decoded as libjpeg-turbo decodes it (accurate IDCT, smooth chroma upsampling unless asked otherwise),
//! straight into the output when it is uint8 RGB, BGR or gray and nothing else is to be done. WebP is decoded by
//! libwebp (crate `webp`), AVIF by `re_rav1d` and HEIC by `rusty_h265`, which decode videos too (HEIC of other chroma
//! by `heic-decoder`), TIFF by our own code, the other formats by the crates `image`, `hayro-jpeg2000` and `jxl`. What
//! differs from DALI, and why, is in docs/reference/differences.md.

mod animation;
mod avif;
mod black;
mod bmp;
mod color;
mod color_table;
mod effort;
mod format;
mod frames;
mod gif;
mod head;
mod heic;
mod heif;
mod jpeg;
mod jpeg2000;
mod jpeg_xl;
mod orientation;
mod picture;
mod pillow;
mod png;
mod pnm;
mod profile;
mod raster;
mod srgb;
mod tiff;
mod watched;
mod webp;

use std::time::Duration;

use crate::deadline::Watch;
use crate::error::{Context, Error, Result};
use crate::tensor::DType;
use crate::{faults, limits};

pub use animation::{ANIMATED_PIXEL, AnimationInfo, probe_animation};
pub use color::Scaling;
pub use color_table::{ColorTable, ProfileKey, SIDE as COLOR_TABLE_SIDE, profile_key};
pub use effort::effort;
pub use head::effort_of_head;
pub use heif::Tiles;
pub use jpeg::{JpegDecoder, Vectors};
pub use orientation::Orientation;
pub use picture::{View, stored_window};

// The order is that in which a file is asked whether it is one of them. Each has a file with its `FORMAT`.
format::image_formats! {
    Jpeg jpeg
    Jpeg2000 jpeg2000
    JpegXl jpeg_xl
    Png png
    Bmp bmp
    Gif gif
    Tiff tiff
    WebP webp
    Pnm pnm
    Avif avif
    Heic heic
}

/// Channels of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColorSpace {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Luma. For a JPEG its own Y, else a weighted sum whose rounding depends on the format, as in DALI.
    Gray,
    /// BT.601 studio range (Y 16-235, chroma 16-240 for uint8), computed from RGB.
    YCbCr,
    /// The channels of the file, as many as [`ImageInfo::channels`].
    Any,
}

impl ColorSpace {
    /// Channels of the output for a file with `file_channels`.
    pub fn channels(self, file_channels: usize) -> usize {
        match self {
            ColorSpace::Rgb | ColorSpace::Bgr | ColorSpace::YCbCr => 3,
            ColorSpace::Gray => 1,
            ColorSpace::Any => file_channels,
        }
    }
}

/// A rectangle of the image, in pixels, after its orientation was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Window {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

/// What to make of an image.
#[derive(Debug, Clone, Copy)]
pub struct DecodeOptions {
    /// Channels of the output.
    pub color: ColorSpace,
    /// Type of the output; values are scaled to its range (floating point: 0 to 1). Not float16, 64-bit or bool.
    pub dtype: DType,
    /// Whether to turn the image as its EXIF orientation says.
    pub adjust_orientation: bool,
    /// Accepted and without effect: see the module.
    pub fast_idct: bool,
    /// Whether chroma of a JPEG is upsampled smoothly, as DALI does on a CPU; else the nearest sample is taken, as its
    /// GPU decoders do unless asked otherwise.
    pub smooth_chroma: bool,
    /// Whether colours become 8-bit RGB as Pillow's `convert("RGB")` makes it: see `pillow.rs` beside this file.
    pub as_pillow: bool,
    /// Whether colours are converted to sRGB from those that the file says it has ([`has_profile`]).
    pub to_srgb: bool,
    /// The part of the image to return; `None` is all of it.
    pub window: Option<Window>,
    /// How often the sides of a JPEG are halved, rounded up, by transforming less of it: at most [`MAX_SHRINK`]. The
    /// window is one of the smaller image.
    pub shrink: u32,
}

/// The most that a JPEG is reduced: to a pixel of each of its blocks.
pub const MAX_SHRINK: u32 = 3;

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            color: ColorSpace::Rgb,
            dtype: DType::U8,
            adjust_orientation: true,
            fast_idct: false,
            smooth_chroma: true,
            as_pillow: false,
            to_srgb: false,
            window: None,
            shrink: 0,
        }
    }
}

/// What the header of an encoded image says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    /// File format.
    pub format: Format,
    /// Columns, after `orientation`.
    pub width: usize,
    /// Rows, after `orientation`.
    pub height: usize,
    /// Channels of the file: 1 gray, 2 gray and alpha, 3 colour (palettes too), 4 colour and alpha or CMYK.
    pub channels: usize,
    /// Bits of one sample in the file.
    pub bit_depth: usize,
    /// How stored pixels are turned to get `width` x `height`; the identity when that was not asked for.
    pub orientation: Orientation,
    /// Whether its decoder can halve the sides: a JPEG that is made of cosine transforms.
    pub halves: bool,
}

impl ImageInfo {
    /// Columns and rows as the file stores them.
    pub fn stored_size(&self) -> (usize, usize) {
        if self.orientation.transposes() { (self.height, self.width) } else { (self.width, self.height) }
    }

    /// What a decoder makes of it that halves its sides `shrink` times, if it can.
    #[must_use]
    pub fn reduced(self, shrink: u32) -> Self {
        let shrink = if self.halves { shrink.min(MAX_SHRINK) } else { 0 };
        let [width, height] = [self.width, self.height].map(|side| side.div_ceil(1 << shrink));
        Self { width, height, ..self }
    }
}

/// A header as a format's reader sees it: sizes as stored.
struct Header {
    width: usize,
    height: usize,
    channels: usize,
    bit_depth: usize,
    orientation: Orientation,
    halves: bool,
}

impl Header {
    /// What it says of a picture that is not turned.
    fn as_stored(&self, format: Format) -> ImageInfo {
        let &Self { width, height, channels, bit_depth, halves, .. } = self;
        ImageInfo { format, width, height, channels, bit_depth, orientation: Orientation::default(), halves }
    }
}

/// Reads the header of an encoded image; pixels may be missing.
///
/// # Errors
/// When the input is empty, of no known or of an unsupported format, when its header is damaged or ends too early, and
/// when the image has more than [`limits::MAX_IMAGE_PIXELS`] pixels or none.
pub fn probe(bytes: &[u8], adjust_orientation: bool) -> Result<ImageInfo> {
    let format = format::detect(bytes)?;
    let header = (format.row().header)(bytes).context(|| format!("`{format}` image"))?;
    check_size(header.width as u64, header.height as u64)?;
    let orientation = if adjust_orientation { header.orientation } else { Orientation::default() };
    let (width, height) = match orientation.transposes() {
        true => (header.height, header.width),
        false => (header.width, header.height),
    };
    Ok(ImageInfo { width, height, orientation, ..header.as_stored(format) })
}

/// The format of a file, as its first bytes say; `None` where it is none that is decoded.
pub fn file_format(bytes: &[u8]) -> Option<Format> {
    format::detect(bytes).ok()
}

/// Whether a file says of its colours that they are others than those of sRGB. Files of formats that may not say it
/// have none.
///
/// # Errors
/// Those of [`probe`] about its format; what says it is damaged.
pub fn has_profile(bytes: &[u8]) -> Result<bool> {
    Ok(profile_of(bytes, format::detect(bytes)?)?.is_some())
}

fn profile_of(bytes: &[u8], format: Format) -> Result<Option<profile::Profile<'_>>> {
    (format.row().profile)(bytes).context(|| format!("`{format}` image"))
}

fn check_size(width: u64, height: u64) -> Result<()> {
    if width == 0 || height == 0 {
        return Err(Error::invalid(format!("image of {width} x {height} pixels, expected at least one")));
    }
    if width.checked_mul(height).is_none_or(|pixels| pixels > limits::MAX_IMAGE_PIXELS) {
        return Err(Error::invalid(format!(
            "image of {width} x {height} pixels is larger than the limit of {} pixels",
            limits::MAX_IMAGE_PIXELS
        )));
    }
    Ok(())
}

/// Height, width and channels of what [`Decoder::decode_into`] writes. `info` must come from [`probe`] with the same
/// `adjust_orientation`; a window is not checked here.
pub fn output_shape(info: &ImageInfo, options: &DecodeOptions) -> [usize; 3] {
    let info = info.reduced(options.shrink);
    let (height, width) =
        options.window.map_or((info.height, info.width), |window| (window.height, window.width));
    [height, width, options.color.channels(info.channels)]
}

/// Whether the output is the stored pixels in their order, 8 bits each.
pub fn is_plain(info: &ImageInfo, options: &DecodeOptions) -> bool {
    options.dtype == DType::U8 && options.window.is_none() && info.orientation == Orientation::default()
}

/// Whether images can be decoded to `dtype`.
///
/// # Errors
/// Unsupported, naming the types that can be had.
pub fn check_dtype(dtype: DType) -> Result<()> {
    if let DType::F16 | DType::F64 | DType::I64 | DType::U64 | DType::Bool = dtype {
        return Err(Error::unsupported(format!(
            "images cannot be decoded to `{dtype}`, expected one of `uint8`, `int8`, `uint16`, `int16`, `uint32`, \
             `int32`, `float32`"
        )));
    }
    Ok(())
}

/// Under what an image is decoded.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// Whether somebody still waits for it.
    pub watch: &'a Watch<'a>,
    /// Threads that have nothing else to do, the caller's perhaps among them: a JPEG of many rows is shared among them,
    /// with the same pixels.
    pub pool: Option<&'a rayon::ThreadPool>,
}

/// Takes an image's rows of pixels one after the other, from the top.
pub trait RowSink {
    /// How many rows it takes, and bytes of each.
    fn size(&self) -> (usize, usize);

    /// Where row `y` goes.
    fn row(&mut self, y: usize) -> &mut [u8];

    /// Row `y` is there, and will not be asked for again.
    fn done(&mut self, y: usize);

    /// All rows at once, if it has room for them; then they may come in any order, and nothing is done row by row.
    fn whole(&mut self) -> Option<&mut [u8]> {
        None
    }
}

/// One image to decode: what is known of it and what is asked for.
#[derive(Clone, Copy)]
struct Job<'a> {
    /// As it becomes when it is reduced.
    info: ImageInfo,
    options: &'a DecodeOptions,
    view: View,
    conditions: Conditions<'a>,
    /// What it takes, about.
    expected: Duration,
    /// Whether of a file of inks these are asked for, 255 for all of one, instead of colours.
    inks: bool,
}

impl<'a> Job<'a> {
    fn new(
        bytes: &[u8],
        whole: &ImageInfo,
        options: &'a DecodeOptions,
        conditions: Conditions<'a>,
    ) -> Result<Self> {
        check_dtype(options.dtype)?;
        let info = whole.reduced(options.shrink);
        let view = View::new(&info, options.window)?;
        let expected = effort(bytes, whole, options).time;
        Ok(Self { info, options, view, conditions, expected, inks: false })
    }

    /// Asked before a library decodes that cannot be interrupted.
    fn must_end_in_time(&self) -> Result<()> {
        self.conditions.watch.ensure_time(self.expected)
    }

    fn is_plain(&self) -> bool {
        is_plain(&self.info, self.options)
    }
}

/// Decodes images. Holds memory for as many threads as have used it at once; any thread may call it.
#[derive(Default)]
pub struct Decoder {
    jpeg: jpeg::Decoder,
}

impl Decoder {
    /// A decoder without memory: that is taken when it is first needed.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder whose JPEGs are decoded as asked, with vector instructions that may be less than the best.
    pub fn with_jpeg(by: JpegDecoder, vectors: Vectors) -> Self {
        Self { jpeg: jpeg::Decoder::new(by, vectors) }
    }

    /// JPEGs that our own decoder has left to libjpeg-turbo, so far.
    pub fn left_to_libjpeg_turbo(&self) -> u64 {
        self.jpeg.left()
    }

    /// Decodes `bytes` to `out`: HWC, dense, elements of `options.dtype` in native byte order, as many as
    /// [`output_shape`] says.
    ///
    /// # Errors
    /// Those of [`probe`]; damaged or truncated pixels; a type or colour that the format cannot give; a window that is
    /// not inside the image; `out` of another size or not aligned for the type. Then `out` holds anything.
    pub fn decode_into(&self, bytes: &[u8], options: &DecodeOptions, out: &mut [u8]) -> Result<()> {
        let conditions = Conditions { watch: &Watch::forever(), pool: None };
        self.decode_under(conditions, bytes, options, out)
    }

    /// [`Decoder::decode_into`] for as long as somebody waits. JPEG, JPEG XL, PNG and TIFF stop in the middle, AVIF and
    /// HEIC between the pictures of a grid. WebP, JPEG 2000, what libjpeg-turbo decodes, and one picture of AVIF or
    /// HEIC cannot be interrupted: they do not begin when they are not expected to end in time.
    ///
    /// # Errors
    /// Those of [`Decoder::decode_into`], and why nobody waits any more.
    pub fn decode_under(
        &self,
        conditions: Conditions<'_>,
        bytes: &[u8],
        options: &DecodeOptions,
        out: &mut [u8],
    ) -> Result<()> {
        let whole = probe(bytes, options.adjust_orientation)?;
        let job = Job::new(bytes, &whole, options, conditions)?;
        let expected = output_shape(&whole, options).iter().product::<usize>() * options.dtype.size();
        if out.len() != expected {
            return Err(Error::internal(format!(
                "an image is decoded to {} bytes, expected {expected}",
                out.len()
            )));
        }
        if expected == 0 {
            return Ok(());
        }
        faults::reach(whole.format.parameter());
        let profile = if options.to_srgb { profile_of(bytes, whole.format)? } else { None };
        let decoded = match profile {
            Some(profile) => srgb::decode(self, bytes, &profile, &job, out),
            None => (whole.format.row().decode)(self, bytes, &job, out),
        };
        // That a decoder was interrupted looks like damage.
        decoded
            .or_else(|error| conditions.watch.check().and(Err(error)))
            .context(|| format!("`{}` image", whole.format))
    }

    /// Decodes `bytes` row by row, where its decoder makes rows in their order: a JPEG as stored. False where it does
    /// not, or where something is wrong with the file or with what is asked for: [`Decoder::decode_under`] tells. Some
    /// rows may have come then.
    pub fn decode_rows(
        &self,
        conditions: Conditions<'_>,
        bytes: &[u8],
        options: &DecodeOptions,
        rows: &mut dyn RowSink,
    ) -> bool {
        let job = probe(bytes, options.adjust_orientation)
            .and_then(|whole| Job::new(bytes, &whole, options, conditions));
        match job {
            Ok(job) if job.info.format == Format::Jpeg && !options.to_srgb => {
                self.jpeg.decode_rows(bytes, &job, rows)
            }
            _ => false,
        }
    }
}
