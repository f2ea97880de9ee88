//! `ToDecibels`: the logarithm of a ratio to a reference.

use super::floats_only;
use crate::error::{Error, Result};
use crate::ops::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
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
    aliases: &[],
    doc: "Magnitudes or powers as decibels of a reference",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::fixed("multiplier", "factor of the decimal logarithm, 10 for powers; default 10"),
        ArgSpec::fixed("reference", "what is 0 dB; default 0: the sample's largest value"),
        ArgSpec::fixed("cutoff_db", "lowest result; default -200"),
    ],
    shared_args: &[],
    build: &build,
    outputs: &one_output,
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let multiplier = args.float("multiplier")?.unwrap_or(10.0);
    let cutoff = args.float("cutoff_db")?.unwrap_or(-200.0);
    let reference = args.float("reference")?.filter(|&reference| reference != 0.0);
    if multiplier == 0.0 {
        return Err(Error::invalid("argument `multiplier` is 0"));
    }
    let floor = 10.0f32.powf(cutoff / multiplier);
    Ok(Box::new(ToDecibels { multiplier, reference, floor: floor.max(f32::from_bits(1)) }))
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
        let factor = (f64::from(self.multiplier) / 10.0f64.log2()) as f32;
        let (given, floor) = (self.reference, self.floor);
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            let (src, dst) = (input.as_slice::<f32>()?, output.as_slice_mut::<f32>()?);
            let largest = || src.iter().fold(0.0f32, |most, &value| if value > most { value } else { most });
            let reference = given.unwrap_or_else(largest);
            let inverse = if reference == 0.0 { 1.0 } else { 1.0 / reference };
            for (to, from) in dst.iter_mut().zip(src) {
                let ratio = from * inverse;
                *to = factor * if floor < ratio { ratio } else { floor }.log2();
            }
            Ok(())
        })
    }
}
