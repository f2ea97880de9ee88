//! A picture that is coded in tiles: each is decoded as a frame, laid beside the others as it is stored, and all of
//! them become RGB together, so that no edge is seen where they meet. It must not know where tiles come from.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemorytype, cuMemcpy2DAsync_v2};

use super::coded_video::{Codec, Factors};
use super::convert::{self, Window};
use super::decoder::{Decoder, HALVED_CHROMA, Shape, Surface};
use super::engines::{Engines, Loan};
use super::parser::{Events, Parser};
use super::playback::shape_of;
use super::sys::{DisplayInfo, PictureParams, VideoFormat};
use crate::error::{Error, Result};
use crate::gpu::context::driver_error;
use crate::gpu::{Event, Stream};
use crate::memory::DeviceBytes;

/// Bytes between rows of a canvas are a multiple of it.
const ALIGNMENT: usize = 256;

/// Tiles of one size, row by row. Chroma is halved along both sides, and all sides are even.
#[derive(Debug, Clone, Copy)]
pub struct Tiling {
    /// How they are compressed.
    pub codec: Codec,
    /// Columns and rows of pixels of the picture: the last tiles of rows and columns may reach beyond it.
    pub size: [usize; 2],
    /// Columns and rows of pixels of a tile.
    pub tile: [usize; 2],
    /// Tiles of a row.
    pub columns: usize,
    /// How many tiles there are.
    pub count: usize,
    /// Bits of a sample.
    pub depth: u32,
    /// How samples become colours.
    pub factors: Factors,
}

/// Bytes of the canvas of a picture of `size` whose samples have `depth` bits.
pub fn canvas_bytes(size: [usize; 2], depth: u32) -> usize {
    let [width, height] = size;
    pitch(width, depth) * (height + height / 2)
}

fn sample_bytes(depth: u32) -> usize {
    if depth > 8 { 2 } else { 1 }
}

fn pitch(width: usize, depth: u32) -> usize {
    (width * sample_bytes(depth)).next_multiple_of(ALIGNMENT)
}

/// Decodes a picture to `target`, RGB in rows without gaps, after `ready`. `frame` replaces what it is given by a tile,
/// the first behind its parameters. The planes of all tiles are kept in `canvas`, of [`canvas_bytes`] at least. All is
/// written when this returns, and nothing is under way.
///
/// # Errors
/// What the engines do not decode, and what is damaged; those of `frame`. What was written until then is of no account.
pub fn decode_tiles(
    engines: &Arc<Engines>,
    tiling: &Tiling,
    mut frame: impl FnMut(usize, &mut Vec<u8>) -> Result<()>,
    [canvas, target]: [&DeviceBytes<'_>; 2],
    ready: &Arc<Event>,
) -> Result<()> {
    if canvas.len() < canvas_bytes(tiling.size, tiling.depth) {
        return Err(Error::internal(format!("a canvas of {} bytes for {:?}", canvas.len(), tiling.size)));
    }
    let _bound = engines.gpu().bind()?;
    let laying = Laying { loan: None, engines, tiling, canvas, ready, corner: [0, 0], laid: 0 };
    let mut parser = Parser::new(engines.functions(), tiling.codec as c_int, laying)?;
    let mut bytes = Vec::new();
    for place in 0..tiling.count {
        frame(place, &mut bytes)?;
        parser.send(&bytes, place as i64)?;
    }
    parser.finish()?;
    let laying = parser.into_events().ok_or_else(|| Error::internal("somebody else keeps the tiles"))?;
    laying.end(target)
}

/// Tiles on their way to the canvas.
struct Laying<'a> {
    // First, as it waits for its stream when it goes: what is written there outlives it.
    loan: Option<Loan>,
    engines: &'a Arc<Engines>,
    tiling: &'a Tiling,
    canvas: &'a DeviceBytes<'a>,
    ready: &'a Arc<Event>,
    /// Where the first pixel of a tile is in its surface.
    corner: [usize; 2],
    /// Tiles that are there.
    laid: usize,
}

impl Laying<'_> {
    fn decoder(&mut self) -> Result<&mut Decoder> {
        let loan = self.loan.as_mut();
        loan.ok_or_else(|| Error::invalid("a frame before the parameters that it needs"))?.decoder()
    }

    /// Converts the canvas, and gives the decoder back.
    fn end(mut self, target: &DeviceBytes<'_>) -> Result<()> {
        let Tiling { size: [width, height], count, depth, factors, .. } = *self.tiling;
        if self.laid != count {
            return Err(Error::invalid(format!("{} of {count} tiles come out of the engines", self.laid)));
        }
        let shape = Shape { width: width as u32, height: height as u32, ..*self.decoder()?.shape() };
        let surface = Surface { address: self.canvas.address(), pitch: pitch(width, depth) as u32 };
        let window = Window { left: 0, top: 0, width, height };
        let decoder = self.decoder()?;
        // SAFETY: the canvas has the planes of this shape, as its length was checked; canvas and target are there until
        // the decoder is given back, which waits for its stream, or goes, which does so, too.
        unsafe { convert::convert(decoder.stream(), (&shape, surface), window, factors, target) }?;
        self.loan.take().map_or(Ok(()), Loan::give_back)
    }
}

impl Events for Laying<'_> {
    fn begin(&mut self, format: &VideoFormat) -> Result<c_int> {
        let (shape, window) = shape_of(format)?;
        let Tiling { tile, depth, .. } = *self.tiling;
        if self.loan.is_some() || [window.width, window.height] != tile {
            return Err(Error::unsupported("tiles that differ from what their container says"));
        }
        if shape.chroma != HALVED_CHROMA || shape.depth != depth {
            return Err(Error::unsupported(format!("tiles of {} bits, expected {depth}", shape.depth)));
        }
        self.engines.check(&shape)?;
        self.corner = [window.left, window.top];
        self.loan = Some(self.engines.lend(shape)?);
        let ready = self.ready;
        let decoder = self.decoder()?;
        decoder.stream().wait(ready)?;
        Ok(decoder.surfaces() as c_int)
    }

    unsafe fn decode(&mut self, params: *mut PictureParams) -> Result<()> {
        // SAFETY: the caller vouches for the parameters; the decoder was lent for the format that was told.
        unsafe { self.decoder()?.decode(params) }
    }

    fn show(&mut self, display: &DisplayInfo) -> Result<()> {
        let place = self.laid;
        if display.timestamp != place as i64 || place >= self.tiling.count {
            return Err(Error::invalid("tiles that come out of the engines in another order"));
        }
        self.laid += 1;
        let (tiling, canvas, [left, top]) = (self.tiling, self.canvas, self.corner);
        self.decoder()?.show(display, |decoder, surface| {
            let pitch = surface.pitch as usize;
            let start = top * pitch + left * sample_bytes(tiling.depth);
            // Blue and red take turns in a plane of half as many rows, which is behind that of luma.
            let halved =
                (decoder.shape().height as usize + top / 2) * pitch + left * sample_bytes(tiling.depth);
            let planes = [start, halved].map(|start| surface.address + start as u64);
            lay(decoder.stream(), (planes, pitch), tiling, place, canvas)
        })
    }
}

/// Puts copies of a tile's planes, between whose rows are `from_pitch` bytes, to the canvas into `stream`, as far as
/// the picture reaches.
fn lay(
    stream: &Stream,
    (planes, from_pitch): ([u64; 2], usize),
    tiling: &Tiling,
    place: usize,
    canvas: &DeviceBytes<'_>,
) -> Result<()> {
    let Tiling { size, tile, columns, depth, .. } = *tiling;
    let corner = [place % columns * tile[0], place / columns * tile[1]];
    let [width, height] = [0, 1].map(|side| tile[side].min(size[side].saturating_sub(corner[side])));
    if width == 0 || height == 0 {
        return Ok(());
    }
    let (to_pitch, bytes) = (pitch(size[0], depth), sample_bytes(depth));
    for (from, (start, halved)) in planes.into_iter().zip([(0, 1), (to_pitch * size[1], 2)]) {
        let to = start + corner[1] / halved * to_pitch + corner[0] * bytes;
        let rows = height / halved;
        if to + (rows - 1) * to_pitch + width * bytes > canvas.len() {
            return Err(Error::internal("a tile beyond its canvas"));
        }
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: from,
            srcArray: ptr::null_mut(),
            srcPitch: from_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: canvas.address() + to as u64,
            dstArray: ptr::null_mut(),
            dstPitch: to_pitch,
            WidthInBytes: width * bytes,
            Height: rows,
        };
        // SAFETY: the surface is a mapped one that has such planes, of at least the tile's size; the end of what is
        // written was checked. Both are there until the stream was waited for: see `Laying`.
        unsafe { cuMemcpy2DAsync_v2(&raw const copy, stream.raw()) }
            .result()
            .map_err(|error| driver_error("copying a tile on the device", error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canvas_has_room_for_luma_and_half_as_much_chroma() {
        assert_eq!(canvas_bytes([256, 4], 8), 256 * 6);
        assert_eq!(canvas_bytes([258, 4], 10), 768 * 6);
    }
}
