//! Takes what is left of other videos out of a decoder's surfaces. Where a frame is damaged, the engines leave a part
//! of its surface as it was, and of some codecs they do not tell. It must not know what is decoded then.

use std::ffi::c_int;
use std::sync::Arc;

use super::decoder::Decoder;
use super::gray;
use super::parser::{Events, Parser};
use super::sys::{DisplayInfo, Functions, PictureParams, VideoFormat};
use crate::error::{Error, Result};

/// Whoever decodes the gray frame.
struct Washing {
    decoder: Decoder,
    is_done: bool,
}

impl Events for Washing {
    fn begin(&mut self, _: &VideoFormat) -> Result<c_int> {
        Ok(self.decoder.surfaces() as c_int)
    }

    unsafe fn decode(&mut self, params: *mut PictureParams) -> Result<()> {
        self.is_done = true;
        // SAFETY: the caller vouches for the parameters, which are those of a key frame of the decoder's size.
        unsafe { self.decoder.decode_to_all(params) }
    }

    fn show(&mut self, _: &DisplayInfo) -> Result<()> {
        Ok(())
    }
}

/// Makes all surfaces of `decoder` gray, if damage of its codec goes unnoticed.
///
/// # Errors
/// What the library says; then the decoder goes.
pub(super) fn wash(functions: &Arc<Functions>, decoder: Decoder) -> Result<Decoder> {
    let shape = *decoder.shape();
    let Some(frame) = gray::frame(&shape) else { return Ok(decoder) };
    let mut parser = Parser::new(functions, shape.codec, Washing { decoder, is_done: false })?;
    parser.send(&frame, 0)?;
    parser.finish()?;
    match parser.into_events() {
        Some(Washing { decoder, is_done: true }) => Ok(decoder),
        _ => Err(Error::internal("the surfaces of a video decoder were not cleared")),
    }
}
