//! `gesso__UnitVariance`: wav2vec 2.0's form of a sound.

use std::sync::Arc;

use super::log_mel::{floats_only, length};
use crate::cpu::audio::pairwise;
use crate::cpu::audio::unit_variance::{EPSILON, normalize};
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::shared::dtypes;
use crate::operator::{Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, Device, ValueType};

struct UnitVariance;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__UnitVariance",
    doc: "A sound of one channel with a mean of 0 and a variance of 1, as wav2vec 2.0 takes it",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    build: &build,
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(_args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(UnitVariance))
}

impl Operator for UnitVariance {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, floats_only)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        floats_only(desc.dtype)?;
        inputs.map(|sample| match length(sample.input(0)?.shape)? {
            0 => Err(Error::invalid("a signal without samples, expected one at least")),
            _ => Ok(()),
        });
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            normalize(input.as_slice()?, output.as_slice_mut()?);
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mut rows = io.rows(|sample| {
            let elements = sample.input(0)?.shape.volume()?;
            let (depth, elements) = (pairwise::depth(elements), elements as u64);
            Ok(Row { to: sample.target(0)?, from: sample.source(0)?, sums: 0, elements, depth, unused: 0 })
        });
        let bytes = |row: &Row| (2 * size_of::<f32>() as u64) << row.depth;
        let mut sums = cx.recorder.scratch(rows.iter().map(bytes).sum::<u64>().max(1) as usize)?;
        for row in &mut rows {
            row.sums = sums;
            sums += bytes(row);
        }
        cx.launch_blocks(&kernel(), (1, THREADS), &Params { epsilon: EPSILON }, &rows)
    }
}

/// Of the block that makes a signal.
const THREADS: u32 = 512;

device_constants! {
    fn constants;

    /// Values up to which a sum is one loop, and sums side by side in it.
    const PART: usize = pairwise::BLOCK;
    const LANES: usize = pairwise::LANES;
}

const HEADER: Header = Header { name: "unit_variance", text: || text_with::<Row, Params>(&constants()) };

device_struct! {
    /// A signal, as `kernels/unit_variance.cu` sees it.
    struct Row as Row {
        to: u64 = "float *",
        from: u64 = "const float *",
        /// room for 2 << depth
        sums: u64 = "float *",
        elements: u64,
        /// how often elements are halved until all parts have at most PART
        depth: u32,
        unused: u32,
    }
}

device_struct! {
    struct Params as Params {
        /// added to the variance
        epsilon: f32,
    }
}

fn kernel() -> KernelSpec {
    KernelSpec::of::<Row, Params>("unit_variance", "unit_variance").header(HEADER)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    vec![kernel()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn signals_without_samples_or_of_two_channels_are_errors() {
        let none: [f32; 0] = [];
        for (shape, signal) in [(&[0][..], &none[..]), (&[2, 2], &[0.0; 4])] {
            let made = run(&DEF, &args(&[], &[]), &[batch(&[(shape, signal)])], &[]).unwrap();
            assert!(made.error(0).contains("expected one"), "{shape:?}");
        }
    }
}
