//! A picture as an engine stores it to RGB, by the kernel `video`. It must not know who decoded it.

use super::coded_video::Factors;
use super::decoder::{Shape, Surface};
use crate::error::{Error, Result};
use crate::gpu::kernel::{Launch, NoParams};
use crate::gpu::layout::device_struct;
use crate::gpu::{Grid, Kernel, KernelSpec, Stream};
use crate::memory::DeviceBytes;
use crate::tensor::DType;

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks of a picture: enough for any device.
const MAX_BLOCKS: u32 = 2048;

device_struct! {
    /// A picture, as `kernels/video.cu` sees it.
    struct Params as Params {
        to: u64 = "uint8_t *",
        /// of the window that is shown; of samples of blue and red that take turns, `red` is not used
        luma: u64 = "const uint8_t *",
        blue: u64 = "const uint8_t *",
        red: u64 = "const uint8_t *",
        /// bytes from a row to the next one
        pitch: u32,
        width: u32,
        height: u32,
        /// bits of a sample
        depth: u32,
        factors: Factors,
    }
}

fn kernel(is_planar: bool, is_deep: bool) -> KernelSpec {
    KernelSpec::of::<NoParams, Params>("video", "video")
        .dtype("SAMPLE", if is_deep { DType::U16 } else { DType::U8 })
        .define("PLANAR", u8::from(is_planar))
}

/// One for each way in which pictures are stored.
pub(super) fn kernels() -> Vec<KernelSpec> {
    [false, true].into_iter().flat_map(|planar| [false, true].map(|deep| kernel(planar, deep))).collect()
}

/// The part of a stored picture that is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Puts the conversion of `window` of `surface` into `stream`: RGB, in rows without gaps, to `target`.
///
/// # Errors
/// Internal, when the target has another size; what the driver says.
///
/// # Safety
/// The surface is a mapped one of this shape, larger than the window's end, and stays until the stream is done with it,
/// as the target does.
pub(super) unsafe fn convert(
    stream: &Stream,
    (shape, surface): (&Shape, Surface),
    window: Window,
    factors: Factors,
    target: &DeviceBytes<'_>,
) -> Result<()> {
    let Window { left, top, width, height } = window;
    if target.len() != width * height * 3 {
        return Err(Error::internal(format!(
            "a frame of {width} x {height} pixels is written to {} bytes",
            target.len()
        )));
    }
    let (sample, pitch) = (if shape.depth > 8 { 2 } else { 1 }, surface.pitch as usize);
    let plane = |number: usize| surface.address + (number * pitch * shape.height as usize) as u64;
    let at = |row: usize, column: usize| (row * pitch + column * sample) as u64;
    let whole = at(top, left);
    let (blue, red) = match shape.is_planar() {
        true => (plane(1) + whole, plane(2) + whole),
        // Samples of blue and red take turns, so a row of halved chroma begins where one of luma would.
        false => (plane(1) + at(top / 2, left), 0),
    };
    let params = Params {
        to: target.address(),
        luma: plane(0) + whole,
        blue,
        red,
        pitch: surface.pitch,
        width: width as u32,
        height: height as u32,
        depth: shape.depth,
        factors,
    };
    let kernel: Kernel = stream.gpu().kernel(&kernel(shape.is_planar(), shape.depth > 8))?;
    kernel.check::<NoParams, Params>()?;
    let blocks = (params.width * params.height).div_ceil(THREADS).clamp(1, MAX_BLOCKS);
    let grid = Grid { blocks: [blocks, 1, 1], threads: THREADS };
    let words = bytemuck::cast_slice::<u8, u64>(bytemuck::bytes_of(&params)).to_vec();
    let mut launch = Launch { kernel, grid, rows: 0, count: 0, params: words };
    let _bound = stream.gpu().bind()?;
    // SAFETY: the kernel reads no table; the caller vouches for surface and target.
    unsafe { launch.enqueue(stream.raw()) }
}

/// The parameters are words, as a launch takes them.
const _: () = assert!(size_of::<Params>().is_multiple_of(8) && align_of::<Params>() == 8);
