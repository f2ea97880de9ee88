//! Images to files. It must not know why.

use turbojpeg::{Image, PixelFormat, Subsamp};

use crate::error::{Error, Result};

/// RGB pixels of `size` (height, width) as a JPEG with chroma of half the size.
///
/// # Errors
/// Invalid, when libjpeg-turbo refuses the size or the quality.
pub fn jpeg(pixels: &[u8], size: [usize; 2], quality: i32) -> Result<Vec<u8>> {
    let [height, width] = size;
    if pixels.len() != height * width * 3 {
        return Err(Error::internal(format!("an image of {size:?} pixels has {} bytes", pixels.len())));
    }
    let image = Image { pixels, width, pitch: width * 3, height, format: PixelFormat::RGB };
    turbojpeg::compress(image, quality, Subsamp::Sub2x2)
        .map(|file| file.to_vec())
        .map_err(|error| Error::invalid(format!("the image cannot be a JPEG: {error}")))
}
