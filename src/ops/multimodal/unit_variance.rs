//! `gesso__UnitVariance`: wav2vec 2.0's form of a sound.

use super::log_mel::{floats_only, length};
use crate::cpu::audio::unit_variance::normalize;
use crate::error::{Error, Result};
use crate::operator::shared::dtypes;
use crate::operator::{Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, Device, ValueType};

struct UnitVariance;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__UnitVariance",
    doc: "A sound of one channel with a mean of 0 and a variance of 1, as wav2vec 2.0 takes it",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    build: &build,
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
