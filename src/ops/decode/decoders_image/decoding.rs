//! What every image decoder shares: what its arguments say, and a [`Decoding`] that makes a [`Job`] of every sample. It
//! must not know on which device pixels are decoded.

use crate::cpu::decode::{self, ColorSpace, DecodeOptions, ImageInfo};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::shared::window::{OutOfBounds, Window};
use crate::operator::{Args, SampleInputs};
use crate::tensor::{BatchDesc, DType, Layout, Shape, ValueType};

/// Dimensions of a decoded image: rows, columns, channels.
const NDIM: usize = 3;

/// What the arguments of an image decoder ask for.
fn options(args: &Args) -> Result<DecodeOptions> {
    let dtype = args.dtype("dtype")?;
    decode::check_dtype(dtype)?;
    let color = color_space(args, "output_type")?;
    Ok(DecodeOptions {
        color,
        dtype,
        adjust_orientation: args.bool("adjust_orientation")?,
        fast_idct: false,
        smooth_chroma: true,
        as_pillow: is_as_pillow(args, color, dtype)?,
        to_srgb: is_to_srgb(args)?,
        window: None,
        shrink: 0,
    })
}

/// Whether argument `color_management` asks for sRGB.
fn is_to_srgb(args: &Args) -> Result<bool> {
    match args.string("color_management")? {
        "none" => Ok(false),
        "srgb" => Ok(true),
        other => Err(Error::invalid(format!(
            "argument `color_management` is `{other}`, expected `none` or `srgb`"
        ))),
    }
}

/// Whether argument `arithmetic` asks for Pillow's colours.
fn is_as_pillow(args: &Args, color: ColorSpace, dtype: DType) -> Result<bool> {
    match args.string("arithmetic")? {
        "dali" => Ok(false),
        "pillow" | "pillow13" if (color, dtype) == (ColorSpace::Rgb, DType::U8) => Ok(true),
        name @ ("pillow" | "pillow13") => Err(Error::unsupported(format!(
            "argument `arithmetic` is `{name}`, which makes uint8 RGB: expected neither another `output_type` nor another `dtype`",
        ))),
        other => Err(Error::invalid(format!(
            "argument `arithmetic` is `{other}`, expected `dali`, `pillow` or `pillow13`"
        ))),
    }
}

/// The colour space in argument `name`, RGB by default.
pub(in crate::ops) fn color_space(args: &Args, name: &str) -> Result<ColorSpace> {
    Ok(match args.int(name)? {
        0 => ColorSpace::Rgb,
        1 => ColorSpace::Bgr,
        2 => ColorSpace::Gray,
        3 => ColorSpace::YCbCr,
        4 => ColorSpace::Any,
        other => return Err(Error::invalid(format!("argument `{name}` is {other}, expected 0 to 4"))),
    })
}

/// Checks that a decoder's input can be encoded images: uint8, one dimension.
pub(in crate::ops) fn check_encoded(input: &ValueType) -> Result<()> {
    if input.dtype.is_some_and(|dtype| dtype != DType::U8) || input.ndim().is_some_and(|ndim| ndim != 1) {
        return Err(Error::invalid(format!(
            "expected encoded images as uint8 with 1 dimension, found {:?} with {:?} dimensions",
            input.dtype,
            input.ndim()
        )));
    }
    Ok(())
}

/// Which part of an image a decoder returns, in pixels after the image's orientation was applied.
pub(in crate::ops) trait Region: Send + Sync {
    /// Height and width of the part as far as they are the same for every image.
    ///
    /// # Errors
    /// When no image has such a part.
    fn infer(&self) -> Result<Vec<Option<usize>>>;

    /// Called before the parts of a batch are placed, of which `samples` samples were before.
    fn begin(&mut self, _samples: u64) {}

    /// The part of one image of `size` (height, width). It may leave the image.
    ///
    /// # Errors
    /// When the sample's arguments make no window.
    fn place(&self, sample: &SampleInputs<'_>, size: &[usize]) -> Result<Window>;
}

/// The layout that a [`Region`] is placed in.
pub(in crate::ops) fn plane() -> Layout {
    Layout::from_letters(b"HW")
}

/// What a decoder makes of its samples, wherever it runs.
pub(in crate::ops) struct Decoding {
    /// The same for every sample, except for the window.
    pub(super) options: DecodeOptions,
    /// `None`: all of the image.
    pub(super) region: Option<Box<dyn Region>>,
    /// Height and width that whole images are made smaller to behind the decoder, if they may be smaller before.
    pub(super) enough: Option<[usize; 2]>,
    /// Pixels of an encoded image, at most.
    pub(super) max_pixels: u64,
}

/// One image to decode.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Job {
    /// What its header says.
    pub(in crate::ops) info: ImageInfo,
    /// What is asked for. The window is inside the image and not all of it.
    pub(in crate::ops) options: DecodeOptions,
}

impl Decoding {
    /// Reads [`super::ARGS`].
    ///
    /// # Errors
    /// When one of them has no such value.
    pub(in crate::ops) fn new(args: &Args, region: Option<Box<dyn Region>>) -> Result<Self> {
        Ok(Self { options: options(args)?, region, enough: None, max_pixels: limits::MAX_IMAGE_PIXELS })
    }

    /// What is known of the pixels before there is an image.
    ///
    /// # Errors
    /// When the first of `inputs` cannot be encoded images, or when no image has such a region.
    pub(in crate::ops) fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        check_encoded(&inputs[0])?;
        let channels = (self.options.color != ColorSpace::Any).then(|| self.options.color.channels(0));
        let mut dims = match &self.region {
            Some(region) => region.infer()?,
            None => vec![None, None],
        };
        dims.push(channels);
        Ok(ValueType { dtype: Some(self.options.dtype), dims: Some(dims), layout: Some(Layout::hwc()) })
    }

    /// What to decode for one sample, from its `file`'s header and its arguments.
    ///
    /// # Errors
    /// A header that cannot be read; a window that is empty or leaves the image.
    pub(in crate::ops) fn job(&self, sample: &SampleInputs<'_>, file: &[u8]) -> Result<Job> {
        let info = decode::probe(file, self.options.adjust_orientation)?;
        let size = [info.height, info.width];
        if (info.width as u64).saturating_mul(info.height as u64) > self.max_pixels {
            return Err(Error::invalid(format!(
                "image of {} x {} pixels is larger than the model's limit of {} pixels (`max_pixels`)",
                info.width, info.height, self.max_pixels
            )));
        }
        let window = match &self.region {
            Some(region) => settle(region.place(sample, &size)?, &size)?,
            None => None,
        };
        let shrink = match (&self.region, self.enough) {
            (None, Some(enough)) if info.halves => reduction(size, enough),
            _ => 0,
        };
        let to_srgb = self.options.to_srgb && decode::has_profile(file)?;
        Ok(Job { info, options: DecodeOptions { window, shrink, to_srgb, ..self.options } })
    }

    /// Type, layout and shapes of the pixels that `jobs` make; `None` stands for a sample that failed.
    pub(in crate::ops) fn describe(&self, jobs: &[Option<Job>]) -> BatchDesc {
        let shapes = jobs.iter().map(|job| match job {
            Some(job) => Shape::from(decode::output_shape(&job.info, &job.options)),
            None => Shape::new(vec![0; NDIM]),
        });
        BatchDesc::new(self.options.dtype, Layout::hwc(), shapes.collect())
    }
}

/// How often the sides of an image of `size` can be halved so that neither gets smaller than `enough`.
fn reduction(size: [usize; 2], enough: [usize; 2]) -> u32 {
    let fits = |shrink: &u32| size.iter().zip(enough).all(|(side, enough)| side >> shrink >= enough);
    (1..=decode::MAX_SHRINK).rev().find(fits).unwrap_or(0)
}

/// A window of an image of `size` (height, width) as the decoders take it; `None` when it is all of the image.
fn settle(window: Window, size: &[usize]) -> Result<Option<decode::Window>> {
    let window = OutOfBounds::Error.settle(window, size)?;
    if window == Window::whole(size) {
        return Ok(None);
    }
    let start: Vec<usize> = window.anchor.iter().filter_map(|&at| usize::try_from(at).ok()).collect();
    let (&[y, x], &[height, width]) = (start.as_slice(), window.extent.as_slice()) else {
        return Err(Error::internal(format!("an image is cropped to {window:?}")));
    };
    // DALI's decoders refuse it too, unlike its `Crop` and `Slice`.
    if height == 0 || width == 0 {
        return Err(Error::invalid(format!("a window of {width} x {height} pixels of an image is empty")));
    }
    Ok(Some(decode::Window { x, y, width, height }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_stay_as_large_as_they_must_be() {
        let cases = [
            ([1080, 1920], 2),
            ([448, 448], 1),
            ([447, 2_000], 0),
            ([224, 224], 0),
            ([100, 100], 0),
            ([9_000, 9_000], 3),
        ];
        for (size, expected) in cases {
            assert_eq!(reduction(size, [224, 224]), expected, "{size:?}");
        }
        assert_eq!(reduction([7, 7], [1, 1]), 2);
    }
}
