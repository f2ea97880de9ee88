//! `ToDecibels`: the logarithm of a ratio to a reference.

use std::sync::Arc;

use super::floats_only;
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, Device, ValueType};

struct ToDecibels {
    multiplier: f32,
    /// The largest value of the sample when it is not given.
    reference: Option<f32>,
    /// The lowest ratio.
    floor: f32,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ToDecibels",
    doc: "Magnitudes or powers as decibels of a reference",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("multiplier", "factor of the decimal logarithm, 10 for powers").or_float(10.0),
        ArgSpec::float("reference", "what is 0 dB, 0: the sample's largest value").or_float(0.0),
        ArgSpec::float("cutoff_db", "lowest result").or_float(-200.0),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let multiplier = args.float("multiplier")?;
    let cutoff = args.float("cutoff_db")?;
    let reference = args.given_float("reference")?.filter(|&reference| reference != 0.0);
    if multiplier == 0.0 {
        return Err(Error::invalid("argument `multiplier` is 0"));
    }
    let floor = 10.0f32.powf(cutoff / multiplier);
    Ok(Box::new(ToDecibels { multiplier, reference, floor: floor.max(f32::from_bits(1)) }))
}

impl ToDecibels {
    /// What the binary logarithm is multiplied by.
    fn factor(&self) -> f32 {
        (f64::from(self.multiplier) / 10.0f64.log2()) as f32
    }
}

/// What ratios are multiplied by.
fn inverse(reference: f32) -> f32 {
    if reference == 0.0 { 1.0 } else { 1.0 / reference }
}

impl Operator for ToDecibels {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), floats_only)?;
        Ok(vec![inputs[0].clone()])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        floats_only(desc.dtype)?;
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (factor, given, floor) = (self.factor(), self.reference, self.floor);
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            let (src, dst) = (input.as_slice::<f32>()?, output.as_slice_mut::<f32>()?);
            let largest = || src.iter().fold(0.0f32, |most, &value| if value > most { value } else { most });
            let inverse = inverse(given.unwrap_or_else(largest));
            for (to, from) in dst.iter_mut().zip(src) {
                let ratio = from * inverse;
                *to = factor * if floor < ratio { ratio } else { floor }.log2();
            }
            Ok(())
        })
    }
    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        if self.reference.is_none() {
            gpu.kernel(&kernel("largest"))?;
        }
        gpu.kernel(&kernel("decibels")).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mut rows = io.rows(|sample| {
            let elements = sample.output_shape(0)?.volume()? as u64;
            Ok(Row { to: sample.target(0)?, from: sample.source(0)?, largest: 0, elements })
        });
        let inverse = inverse(self.reference.unwrap_or_default());
        let params = Params { factor: self.factor(), floor: self.floor, inverse };
        if self.reference.is_none() {
            const BYTES: usize = PARTS * size_of::<f32>();
            let parts = cx.recorder.scratch(rows.len() * BYTES)?;
            for (i, row) in rows.iter_mut().enumerate() {
                row.largest = parts + (i * BYTES) as u64;
            }
            cx.launch_blocks(&kernel("largest"), (PARTS, THREADS), &params, &rows)?;
        }
        let most = rows.iter().map(|row| row.elements as usize).max().unwrap_or_default();
        cx.launch(&kernel("decibels"), most, &params, &rows)
    }
}

device_constants! {
    fn constants;

    /// Blocks that look for the largest value of a sample, and their threads.
    const PARTS: usize = 64;
    const THREADS: u32 = 256;
}

const HEADER: Header = Header { name: "decibels", text: || text_with::<Row, Params>(&constants()) };

device_struct! {
    /// A sample, as `kernels/decibels.cu` sees it.
    struct Row as Row {
        to: u64 = "float *",
        from: u64 = "const float *",
        /// of each of PARTS parts; nothing: 0
        largest: u64 = "float *",
        elements: u64,
    }
}

device_struct! {
    struct Params as Params {
        /// of the binary logarithm
        factor: f32,
        /// the lowest ratio
        floor: f32,
        /// of a given reference
        inverse: f32,
    }
}

/// Its function `entry`.
pub(super) fn kernel(entry: &'static str) -> KernelSpec {
    KernelSpec::of::<Row, Params>("decibels", entry).header(HEADER)
}
