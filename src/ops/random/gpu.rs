//! Random numbers on the device: rows of the tables for `kernels/random.cu` and `kernels/noise.cu`. They are those of
//! the host: DALI's operators on a GPU use the same generator at the same places.

use super::is_wide;
use crate::cpu::random::BatchRandom;
use crate::error::Result;
use crate::gpu::layout::device_struct;
use crate::gpu::{KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::DType;

/// How the numbers of a sample are drawn; each distribution reads what it needs.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ops) struct Draw<'a> {
    /// What is chosen from.
    pub(super) values: &'a [f32],
    /// The largest word that means one.
    pub(super) most: u32,
    /// The lower end, or the mean.
    pub(super) low: f64,
    /// What a word is multiplied by, or the standard deviation.
    pub(super) factor: f64,
    /// The largest number.
    pub(super) last: f64,
}

device_struct! {
    /// A sample, as `kernels/random.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        elements: u64,
        key: u64,
        sequence: u64,
        /// of `one_of`, `count` of them
        values: u64 = "const float *",
        /// for `coin_flip` the largest word that means one
        count: u64,
        /// for `normal` the mean and the deviation
        low: f64,
        factor: f64,
        /// largest number of `uniform`
        last: f64,
    }
}

/// The type that numbers of type `dtype` are drawn in.
fn real(dtype: DType) -> DType {
    if is_wide(dtype) { DType::F64 } else { DType::F32 }
}

/// Function `entry` for numbers of type `dtype`.
pub(super) fn kernel(entry: &'static str, dtype: DType) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("random", entry).dtype("TO", dtype).dtype("REAL", real(dtype))
}

/// Records the drawing of every live sample's numbers by function `entry`, as `draw` says for each.
pub(super) fn run<'d>(
    cx: &mut GpuCx<'_>,
    io: &GpuIo<'_>,
    (entry, dtype): (&'static str, DType),
    batch: &BatchRandom,
    draw: impl Fn(usize) -> Draw<'d>,
) -> Result<()> {
    let mut most = 0;
    let samples = io.rows(|sample| {
        let elements = sample.output_shape(0)?.volume()?;
        most = most.max(elements);
        Ok((sample.index(), sample.target(0)?, elements as u64))
    });
    let mut rows = Vec::with_capacity(samples.len());
    let mut staged: Option<(&[f32], u64)> = None;
    for (index, to, elements) in samples {
        let draw = draw(index);
        // Most batches have one list for all samples: it goes up once.
        let values = match staged {
            _ if draw.values.is_empty() => 0,
            Some((known, address)) if known == draw.values => address,
            _ => cx.recorder.stage(bytemuck::cast_slice(draw.values))?.address(),
        };
        staged = Some((draw.values, values));
        let (key, sequence) = batch.position(index);
        let count = if draw.values.is_empty() { u64::from(draw.most) } else { draw.values.len() as u64 };
        let Draw { low, factor, last, .. } = draw;
        rows.push(Row { to, elements, key, sequence, values, count, low, factor, last });
    }
    cx.launch(&kernel(entry, dtype), most, &NoParams::default(), &rows)
}

/// What becomes of the pixels of a sample; a pixel is what has one random number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Change {
    pub(super) channels: usize,
    /// Elements from a pixel to the next, and from a channel to the next.
    pub(super) steps: [usize; 2],
    /// The bytes of bright and of dark elements.
    pub(super) extremes: [u64; 2],
    /// Mean and standard deviation; or what the numbers of errors and of bright errors are below; or what an event
    /// adds.
    pub(super) bounds: [f32; 2],
}

device_struct! {
    /// An image, as `kernels/noise.cu` sees it.
    struct NoiseRow as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        key: u64,
        sequence: u64,
        /// of which each has a random number
        pixels: u64,
        channels: u64,
        /// elements from one to the next
        pixel_step: u64,
        channel_step: u64,
        /// the bytes of bright and of dark elements
        salt: u64,
        pepper: u64,
        /// mean and deviation; what the numbers of errors and of bright errors are below; what an event adds
        first: f32,
        second: f32,
    }
}

/// Function `entry` for images of type `dtype`.
pub(super) fn noise_kernel(entry: &'static str, dtype: DType) -> KernelSpec {
    KernelSpec::of::<NoiseRow, NoParams>("noise", entry).dtype("ELEMENT", dtype).dtype("REAL", real(dtype))
}

/// Records the changes of every live sample by function `entry`, of which a thread makes `per_thread`, as `change` says
/// for one with so many elements.
pub(super) fn run_noise(
    cx: &mut GpuCx<'_>,
    io: &GpuIo<'_>,
    (entry, per_thread): (&'static str, usize),
    batch: &BatchRandom,
    change: impl Fn(usize, &[usize]) -> Result<Change>,
) -> Result<()> {
    let dtype = io.inputs().desc(0)?.dtype;
    let mut most = 0;
    let rows = io.rows(|sample| {
        let shape = sample.output_shape(0)?;
        let Change { channels, steps, extremes, bounds } = change(sample.index(), shape)?;
        let ([pixel_step, channel_step], [salt, pepper], [first, second]) = (steps, extremes, bounds);
        let pixels = shape.volume()?.checked_div(channels).unwrap_or_default();
        most = most.max(pixels);
        let (key, sequence) = batch.position(sample.index());
        Ok(NoiseRow {
            to: sample.target(0)?,
            from: sample.source(0)?,
            key,
            sequence,
            pixels: pixels as u64,
            channels: channels as u64,
            pixel_step: pixel_step as u64,
            channel_step: channel_step as u64,
            salt,
            pepper,
            first,
            second,
        })
    });
    cx.launch(&noise_kernel(entry, dtype), most.div_ceil(per_thread), &NoParams::default(), &rows)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let mut specs =
        vec![noise_kernel("salt_and_pepper", DType::U8), noise_kernel("salt_and_pepper", DType::F32)];
    for dtype in [DType::U8, DType::F32, DType::I64, DType::F64] {
        specs.extend(["uniform", "one_of", "normal"].map(|entry| kernel(entry, dtype)));
    }
    specs.extend([DType::Bool, DType::I32].map(|dtype| kernel("coin_flip", dtype)));
    for entry in ["gaussian", "shot"] {
        specs.extend([DType::U8, DType::I64, DType::F32].map(|dtype| noise_kernel(entry, dtype)));
    }
    specs
}
