//! The pictures of an animation as they are shown, one whole picture after the other: GIF and APNG by crate `image`,
//! WebP frame by frame by libwebp. A file that does not move has one picture. It must not know operators.

use super::frames::CHANNELS;
use super::{ColorSpace, Conditions, DecodeOptions, Decoder, Format, check_size, format, gif, png, webp};
use crate::deadline::Watch;
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::memory::zeroed;

/// Nanoseconds for each pixel of a picture that is decoded and laid on those before it; of small ones more.
pub const ANIMATED_PIXEL: f64 = 40.0;

/// What the header of an animation says, and the headers of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnimationInfo {
    /// Columns of every picture.
    pub width: usize,
    /// Rows of every picture.
    pub height: usize,
    /// Pictures; 1 where the file does not move.
    pub frames: usize,
    /// Whether its frames are laid one over the other, as an animation's are.
    is_animated: bool,
}

/// Reads the headers of a file: nothing is decoded.
///
/// # Errors
/// Those of [`super::probe`]; more than [`limits::MAX_FRAMES`] pictures, or than [`limits::MAX_ANIMATION_PIXELS`]
/// pixels in all.
pub fn probe_animation(bytes: &[u8]) -> Result<AnimationInfo> {
    let format = format::detect(bytes)?;
    let header = (format.row().header)(bytes).context(|| format!("`{format}` image"))?;
    check_size(header.width as u64, header.height as u64)?;
    let animated = match format {
        Format::Gif => Some(gif::frame_count(bytes)),
        Format::Png => png::frame_count(bytes).context(|| format!("`{format}` image"))?,
        Format::WebP => webp::frame_count(bytes),
        _ => None,
    };
    let frames = animated.unwrap_or(1);
    if frames == 0 || frames > limits::MAX_FRAMES {
        return Err(Error::invalid(format!(
            "an animation of {frames} pictures, expected 1 to {}",
            limits::MAX_FRAMES
        )));
    }
    let pixels = frames as u64 * header.width as u64 * header.height as u64;
    if pixels > limits::MAX_ANIMATION_PIXELS {
        return Err(Error::invalid(format!(
            "{frames} pictures of {} x {} pixels are more than the limit of {} pixels",
            header.width,
            header.height,
            limits::MAX_ANIMATION_PIXELS
        )));
    }
    Ok(AnimationInfo { width: header.width, height: header.height, frames, is_animated: animated.is_some() })
}

impl Decoder {
    /// Decodes all pictures of `bytes`, whose headers said `info`, to `out`: FHWC, dense, RGB, or RGBA with `alpha`.
    /// Returns for how many milliseconds each is shown; 0 where the file does not move. Colours under what is not seen
    /// are as the file has them, and black where it has none.
    ///
    /// # Errors
    /// Damaged or truncated files; why nobody waits any more. Then `out` holds anything.
    pub fn decode_animation(
        &self,
        conditions: Conditions<'_>,
        bytes: &[u8],
        info: &AnimationInfo,
        alpha: bool,
        out: &mut [u8],
    ) -> Result<Vec<f32>> {
        let channels = if alpha { CHANNELS } else { CHANNELS - 1 };
        let size = info.width * info.height;
        if out.len() != info.frames * size * channels {
            return Err(Error::internal(format!("an animation is decoded to {} bytes", out.len())));
        }
        let format = format::detect(bytes)?;
        let decoded = match info.is_animated {
            true => moving(format, bytes, info, conditions.watch, (channels, out)),
            false => self.still(conditions, bytes, (alpha, size), out).map(|()| vec![0.0]),
        };
        // That a decoder was interrupted looks like damage.
        decoded
            .or_else(|error| conditions.watch.check().and(Err(error)))
            .context(|| format!("`{format}` image"))
    }

    /// The one picture of a file that does not move.
    fn still(
        &self,
        conditions: Conditions<'_>,
        bytes: &[u8],
        (alpha, size): (bool, usize),
        out: &mut [u8],
    ) -> Result<()> {
        let as_stored = DecodeOptions { adjust_orientation: false, ..DecodeOptions::default() };
        if !alpha {
            return self.decode_under(conditions, bytes, &as_stored, out);
        }
        let info = super::probe(bytes, false)?;
        // The fourth channel of a JPEG is an ink.
        let stored = match info.channels {
            2 | 4 if info.format != Format::Jpeg => info.channels,
            _ => 3,
        };
        let color = if stored == 3 { ColorSpace::Rgb } else { ColorSpace::Any };
        let mut pixels = zeroed(size * stored)?;
        self.decode_under(conditions, bytes, &DecodeOptions { color, ..as_stored }, &mut pixels)?;
        for (to, from) in out.chunks_exact_mut(CHANNELS).zip(pixels.chunks_exact(stored)) {
            to.copy_from_slice(&match *from {
                [r, g, b, a] => [r, g, b, a],
                [r, g, b] => [r, g, b, u8::MAX],
                [gray, a] => [gray, gray, gray, a],
                _ => [0; CHANNELS],
            });
        }
        Ok(())
    }
}

/// The pictures of a file that moves, written to `out` with so many channels.
fn moving(
    format: Format,
    bytes: &[u8],
    info: &AnimationInfo,
    watch: &Watch<'_>,
    (channels, out): (usize, &mut [u8]),
) -> Result<Vec<f32>> {
    let size = info.width * info.height;
    let mut places = out.chunks_exact_mut(size * channels);
    let mut durations = Vec::with_capacity(info.frames);
    let mut take = |picture: &[u8], milliseconds: f32| {
        watch.charge(size)?;
        let place = places.next().filter(|_| picture.len() == size * CHANNELS);
        let place =
            place.ok_or_else(|| Error::invalid("damaged: a picture that its headers did not tell of"))?;
        for (to, from) in place.chunks_exact_mut(channels).zip(picture.chunks_exact(CHANNELS)) {
            to.copy_from_slice(&from[..channels]);
        }
        durations.push(milliseconds);
        Ok(())
    };
    match format {
        Format::Gif => gif::animation(bytes, watch, &mut take)?,
        Format::Png => png::animation(bytes, watch, &mut take)?,
        _ => webp::animation(bytes, (info.width, info.height), &mut take)?,
    }
    if durations.len() != info.frames {
        return Err(Error::invalid(format!(
            "truncated: {} of {} pictures are there",
            durations.len(),
            info.frames
        )));
    }
    Ok(durations)
}
