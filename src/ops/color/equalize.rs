//! `Equalize`: the histogram of every channel, spread over the whole range.

use std::sync::Arc;

use crate::cpu::color::equalize;
use crate::error::Result;
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 6] = ["HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"];

struct Equalize;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Equalize",
    aliases: &["experimental__Equalize"],
    doc: "Equalizes the histogram of every channel of 8-bit images",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[],
    build: &|_, _| Ok(Box::new(Equalize)),
    outputs: &one_output,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8])
}

impl Operator for Equalize {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), check)?;
        let layout = layouts::of_type(&inputs[0], &LAYOUTS)?;
        Ok(vec![ValueType { dtype: Some(DType::U8), layout, dims: inputs[0].dims.clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        Ok(vec![BatchDesc { layout: layouts::of_batch(desc, &LAYOUTS)?, ..desc.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            let (plane, channels) = planes(input.shape, output.layout);
            if plane == 0 {
                return Ok(());
            }
            let (src, dst) = (input.as_slice()?, output.as_slice_mut()?);
            for (src, dst) in src.chunks_exact(plane).zip(dst.chunks_exact_mut(plane)) {
                equalize(src, dst, channels);
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let layout = layouts::of_batch(io.inputs().desc(0)?, &LAYOUTS)?;
        let rows = io.rows(|sample| {
            let shape = sample.output_shape(0)?;
            let (plane, channels) = planes(shape, layout);
            let count = shape.volume()?.checked_div(plane).unwrap_or_default();
            let (to, from) = (sample.target(0)?, sample.source(0)?);
            let row = |i: usize| {
                let offset = (i / channels * plane + i % channels) as u64;
                let pixels = (plane / channels) as u64;
                Row { to: to + offset, from: from + offset, pixels, step: channels as u64 }
            };
            Ok((0..count * channels).map(row).collect::<Vec<_>>())
        });
        let rows: Vec<Row> = rows.into_iter().flatten().collect();
        cx.launch_blocks(&kernel(), (1, 1024), &NoParams::default(), &rows)
    }
}

device_struct! {
    /// A channel, as `kernels/equalize.cu` sees it.
    struct Row as Row {
        to: u64 = "uint8_t *",
        from: u64 = "const uint8_t *",
        pixels: u64,
        /// elements from one pixel to the next
        step: u64,
    }
}

fn kernel() -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("equalize", "equalize")
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    vec![kernel()]
}

/// Elements that belong together, and how many channels are interleaved in them.
fn planes(shape: &Shape, layout: Layout) -> (usize, usize) {
    let rows = layout.find(b'H').unwrap_or_default();
    let plane = shape.get(rows..).unwrap_or_default().iter().product();
    let channels = layout.find(b'C').filter(|&axis| axis > rows).and_then(|axis| shape.get(axis).copied());
    (plane, channels.unwrap_or(1))
}
