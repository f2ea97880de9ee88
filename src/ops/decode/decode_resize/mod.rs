//! An image decoder and the `Resize` behind it as one operator, so that a batch of decoded images is never in memory.
//! The graph puts it in place of the two (`graph/fuse.rs`); it stands in no file.

pub(in crate::ops) mod device;
pub(in crate::ops) mod host;

use parking_lot::Mutex;

use super::decoders_image::Image;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::operator::Args;
use crate::tensor::DType;

/// The decoder and its reader among the operators that it stands for.
const DECODER: usize = 0;
const READER: usize = 1;

/// A decoder of whole images, with the arguments of the first operator.
fn whole(args: &Args) -> Result<Image> {
    Image::new(args, None)
}

/// Whether nobody asks for more than the resized images, of bytes.
fn is_plain(args: &[&Args]) -> bool {
    let [decoder, resize, ..] = args else { return false };
    let bytes = decoder.dtype("dtype").is_ok_and(|dtype| dtype == DType::U8);
    bytes && !resize.bool("save_attrs").is_ok_and(|save| save)
}

/// What the graph gives of too few operators.
fn too_few(count: usize) -> Error {
    Error::internal(format!("{count} operators, expected more"))
}

/// Memory for pictures of as many threads as work at once, kept for the next batch.
#[derive(Default)]
pub(super) struct Pictures(Mutex<Vec<Vec<u8>>>);

impl Pictures {
    /// Runs `work` with `len` bytes, which hold anything.
    ///
    /// # Errors
    /// Unavailable, when there is no such memory; those of `work`.
    pub(super) fn with(&self, len: usize, work: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        let mut picture = self.0.lock().pop().unwrap_or_default();
        if picture.len() < len {
            drop(picture);
            // Zeroed by the system, page by page as they are touched: nobody waits for memory of which little is used
            // in the end.
            picture = bytemuck::allocation::try_zeroed_vec(len).map_err(|()| {
                Error::new(ErrorKind::Unavailable, format!("no memory for a picture of {len} bytes"))
            })?;
        }
        let result = work(&mut picture[..len]);
        if picture.len() <= limits::MAX_RETAINED_PIXEL_BYTES {
            self.0.lock().push(picture);
        }
        result
    }
}
