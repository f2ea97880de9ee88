//! How the formats that move hand on their pictures. It must not know any one format.

use image::{AnimationDecoder, Frame, ImageResult};

use super::raster::failed;
use crate::error::Result;

/// Red, green, blue, and how much of them is seen.
pub(super) const CHANNELS: usize = 4;

/// Takes a picture, RGBA, and the milliseconds for which it is shown.
pub(super) type Take<'t> = dyn FnMut(&[u8], f32) -> Result<()> + 't;

/// Hands on what one of `image`'s decoders makes.
pub(super) fn hand_on<'a>(decoder: impl AnimationDecoder<'a>, take: &mut Take<'_>) -> Result<()> {
    decoder.into_frames().try_for_each(|frame: ImageResult<Frame>| {
        let frame = frame.map_err(failed)?;
        let (numerator, denominator) = frame.delay().numer_denom_ms();
        take(frame.buffer(), numerator as f32 / denominator.max(1) as f32)
    })
}
