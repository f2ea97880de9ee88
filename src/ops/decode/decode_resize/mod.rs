//! An image decoder and the `Resize` behind it as one operator, so that a batch of decoded images is never in memory.
//! The graph puts it in place of the two (`graph/fuse.rs`); it stands in no file.

pub(in crate::ops) mod device;
pub(in crate::ops) mod host;

use super::decoders_image::Image;
use crate::error::{Error, Result};
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
