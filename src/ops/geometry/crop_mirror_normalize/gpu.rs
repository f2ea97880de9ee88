//! Crop, mirror and normalise on the device: rows of the table for `kernels/crop_mirror_normalize.cu`.

use std::sync::Arc;

use bytemuck::Zeroable;

use super::{CropMirrorNormalize, Job};
use crate::cpu::normalize::tables::Table;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::{DType, ValueType};

/// Dimensions that a row has room for: a sequence of volumes.
const MAX_DIMENSIONS: usize = 5;

device_struct! {
    struct Dimension as Dimension {
        /// elements between neighbours in the source
        stride: i64,
        /// of the window
        anchor: i64,
        /// elements of the source along it
        source: u32,
        /// elements of the output along it
        window: u32,
        mirror: u32,
        unused: u32,
    }
}

device_struct! {
    /// A sample, as the kernel sees it.
    struct Row as Row {
        to: u64 = "DST *",
        from: u64 = "const SRC *",
        /// a value for each channel of the output; with TABLES 256 values for each channel of the source
        factor: u64 = "const float *",
        bias: u64 = "const float *",
        fill: u64 = "const float *",
        /// of the output
        elements: u64,
        /// which dimension
        channel: u32,
        /// of the source
        channels: u32,
        /// NDIM of them are used
        dimensions: [Dimension; MAX_DIMENSIONS],
    }
}

/// The kernel for tensors of `ndim` dimensions, by DALI's arithmetic or by tables.
fn kernel(from: DType, to: DType, ndim: usize, by_tables: bool) -> KernelSpec {
    let kernel = KernelSpec::of::<Row, NoParams>("crop_mirror_normalize", "crop_mirror_normalize")
        .dtype("SRC", from)
        .dtype("DST", to)
        .define("NDIM", ndim)
        .define("MAX_NDIM", MAX_DIMENSIONS);
    if by_tables { kernel.define("TABLES", 1) } else { kernel }
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    [
        (DType::U8, DType::F32, 3, false),
        (DType::U8, DType::F16, 4, false),
        (DType::F16, DType::I8, 3, false),
        (DType::I32, DType::U8, 5, false),
        (DType::U8, DType::F32, 3, true),
        (DType::U8, DType::F16, 3, true),
    ]
    .map(|(from, to, ndim, by_tables)| kernel(from, to, ndim, by_tables))
    .to_vec()
}

/// Compiles what an input of type `input` needs.
pub(super) fn prepare(gpu: &Arc<Gpu>, input: &ValueType, to: DType, by_tables: bool) -> Result<()> {
    match (input.dtype, input.ndim()) {
        (Some(from), Some(ndim @ 1..=MAX_DIMENSIONS)) => {
            gpu.kernel(&kernel(from, to, ndim, by_tables)).map(drop)
        }
        _ => Ok(()),
    }
}

impl Job {
    /// Factor, bias and fill value of every channel of the output. Those that the input has not are 0 whatever the fill
    /// values, as DALI's GPU operator has them. With a library's arithmetic the 256 values of every channel of the
    /// input, one value, and fill values as on the CPU.
    pub(in crate::ops) fn per_channel(&self) -> &[Vec<f32>; 3] {
        self.per_channel.get_or_init(|| self.new_per_channel())
    }

    fn new_per_channel(&self) -> [Vec<f32>; 3] {
        if !self.tables.is_empty() {
            return [
                self.tables.iter().flat_map(Table::values).copied().collect(),
                vec![0.0],
                self.fill.clone(),
            ];
        }
        let (mut factor, mut bias): (Vec<f32>, Vec<f32>) =
            self.affine.iter().map(|affine| affine.factor_and_bias()).unzip();
        let mut fill = self.fill[..factor.len()].to_vec();
        for values in [&mut factor, &mut bias, &mut fill] {
            values.resize(self.fill.len(), 0.0);
        }
        [factor, bias, fill]
    }
}

impl CropMirrorNormalize {
    /// Records the work on every live sample.
    pub(super) fn record(&self, cx: &mut GpuCx<'_>, io: &GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let order = &self.order;
        let ndim = order.axes.len();
        if ndim > MAX_DIMENSIONS {
            return Err(Error::unsupported(format!(
                "{ndim} dimensions, expected at most {MAX_DIMENSIONS} on a GPU"
            )));
        }
        // Most batches have the same statistics for all samples: they go up once.
        let mut staged: Option<(&[Vec<f32>; 3], [u64; 3])> = None;
        let mut most = 0;
        let mut rows = Vec::new();
        for (job, source, target, shape, elements) in io.rows(|sample| {
            let job = self.jobs.get(sample.index()).and_then(Option::as_ref);
            let job = job.ok_or_else(|| Error::internal("a sample has no window"))?;
            let elements = sample.output_shape(0)?.volume()?;
            Ok((job, sample.source(0)?, sample.target(0)?, sample.input(0)?.shape, elements))
        }) {
            let values = job.per_channel();
            let addresses = match &staged {
                Some((known, addresses)) if *known == values => *addresses,
                _ => {
                    let mut addresses = [0; 3];
                    for (address, values) in addresses.iter_mut().zip(values) {
                        *address = cx.recorder.stage(bytemuck::cast_slice(values))?.address();
                    }
                    staged = Some((values, addresses));
                    addresses
                }
            };
            let strides = shape.strides();
            let mut dimensions = [Dimension::zeroed(); MAX_DIMENSIONS];
            for (dimension, &axis) in dimensions.iter_mut().zip(&order.axes) {
                let is_channel = axis == order.channel;
                *dimension = Dimension {
                    stride: strides[axis] as i64,
                    anchor: job.window.anchor[axis],
                    source: shape[axis] as u32,
                    window: (if is_channel { job.fill.len() } else { job.window.extent[axis] }) as u32,
                    mirror: u32::from(job.mirror && order.input_layout.find(b'W') == Some(axis)),
                    unused: 0,
                };
            }
            most = most.max(elements);
            rows.push(Row {
                to: target,
                from: source,
                factor: addresses[0],
                bias: addresses[1],
                fill: addresses[2],
                elements: elements as u64,
                channel: order.axes.iter().position(|&axis| axis == order.channel).unwrap_or_default() as u32,
                channels: job.affine.len().max(job.tables.len()) as u32,
                dimensions,
            });
        }
        cx.launch(&kernel(from, self.dtype, ndim, self.library.is_some()), most, &NoParams::default(), &rows)
    }
}
