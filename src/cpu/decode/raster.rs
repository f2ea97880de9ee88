//! What the formats that crate `image` decodes share: limits, errors, reading pixels. It must not know any one format.

use image::{ColorType, ImageDecoder, ImageError};

use super::color::Luma;
use super::picture::{Picture, Samples};
use super::{ColorSpace, Job};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::zeroed;

/// What one of `image`'s decoders may allocate for itself; pixels are in our memory.
pub(super) fn scratch_limits() -> image::Limits {
    let mut allowed = image::Limits::no_limits();
    allowed.max_alloc = Some(limits::MAX_DECODER_SCRATCH_BYTES as u64);
    allowed
}

/// An error of `image` in our terms.
pub(super) fn failed(error: ImageError) -> Error {
    match error {
        ImageError::Unsupported(error) => Error::unsupported(error.to_string()),
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Error::invalid("truncated: the input ends before the image does")
        }
        error => Error::invalid(format!("damaged: {error}")),
    }
}

/// Decodes by `decoder`: straight to `out` when the pixels are what `job` asks for, else by way of a buffer.
pub(super) fn read_pixels(
    decoder: impl ImageDecoder,
    luma: Luma,
    job: &Job<'_>,
    out: &mut [u8],
) -> Result<()> {
    let color = decoder.color_type();
    let (width, height) = job.info.stored_size();
    let (w, h) = decoder.dimensions();
    if (w as usize, h as usize) != (width, height) {
        return Err(Error::internal(format!("{w} x {h} pixels were decoded, expected {width} x {height}")));
    }
    let as_asked = match job.options.color {
        ColorSpace::Rgb => color == ColorType::Rgb8,
        ColorSpace::Gray => color == ColorType::L8,
        ColorSpace::Any => {
            color.bits_per_pixel() == 8 * u16::from(color.channel_count())
                && usize::from(color.channel_count()) == job.info.channels
        }
        ColorSpace::Bgr | ColorSpace::YCbCr => false,
    };
    if job.is_plain() && as_asked {
        return decoder.read_image(out).map_err(failed);
    }
    let channels = usize::from(color.channel_count());
    let count = width * height * channels;
    match color {
        ColorType::L8 | ColorType::La8 | ColorType::Rgb8 | ColorType::Rgba8 => {
            let mut samples = zeroed::<u8>(count)?;
            decoder.read_image(&mut samples).map_err(failed)?;
            Picture { samples: Samples::U8(&samples), channels, luma }.write(job, out)
        }
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => {
            let mut samples = zeroed::<u16>(count)?;
            decoder.read_image(bytemuck::cast_slice_mut(&mut samples)).map_err(failed)?;
            Picture { samples: Samples::U16(&samples), channels, luma }.write(job, out)
        }
        other => Err(Error::unsupported(format!("pixels of type {other:?}"))),
    }
}

/// An error of `image` about a header.
pub(super) fn truncated_header(error: ImageError) -> Error {
    match error {
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Error::invalid("truncated header")
        }
        error => failed(error),
    }
}
