//! Small pictures to try a decoder with when a model is loaded: what it refuses then, no request has to find out, and
//! the first request does not wait for what the library sets up on its first call. It must not know the decoder.

use turbojpeg::{Compressor, Image, PixelFormat, Subsamp};

use super::Sampling;
use crate::error::{Error, Result};

/// Columns and rows: whole blocks of every sampling, and larger than the smallest picture that engines take.
const SIZE: (usize, usize) = (128, 96);

/// A JPEG with `sampling`: a gradient.
///
/// # Errors
/// Internal, when libjpeg-turbo does not make it.
pub(super) fn picture(sampling: Sampling) -> Result<Vec<u8>> {
    let (width, height) = SIZE;
    let pixel = |i: usize| [(i % width) as u8, (i / width) as u8, (i / 7) as u8];
    let pixels: Vec<u8> = (0..width * height).flat_map(pixel).collect();
    let subsamp = match sampling {
        Sampling::Gray => Subsamp::Gray,
        Sampling::Full => Subsamp::None,
        Sampling::HalfColumns => Subsamp::Sub2x1,
        Sampling::HalfRows => Subsamp::Sub1x2,
        Sampling::Quarter => Subsamp::Sub2x2,
    };
    let image =
        Image { pixels: pixels.as_slice(), width, pitch: width * 3, height, format: PixelFormat::RGB };
    let encode = || {
        let mut compressor = Compressor::new()?;
        compressor.set_quality(80)?;
        compressor.set_subsamp(subsamp)?;
        compressor.compress_to_vec(image)
    };
    encode().map_err(|error| Error::internal(format!("libjpeg-turbo: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::jpeg::{Frame, Picture};

    #[test]
    fn every_sampling_has_a_picture() {
        for sampling in Sampling::ALL {
            let file = picture(sampling).unwrap();
            let frame = *Picture::read(&file).unwrap().frame();
            assert_eq!(frame, Frame { width: SIZE.0, height: SIZE.1, sampling });
        }
    }
}
