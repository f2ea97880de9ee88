//! `PermuteBatch`: samples in another order. A view: no byte moves.

use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, Shape, ValueType};

struct PermuteBatch {
    indices: Arg,
    /// Where each sample of the batch at hand comes from.
    sources: Vec<usize>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "PermuteBatch",
    doc: "The samples of a batch in another order, without a copy",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::ints("indices", "which sample comes first, second, ...").tensor().required()],
    build: &build,
    outputs: &one_output,
    reads_in_place: InputSet::All,
    mixes_samples: |_| true,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let indices = args.arg("indices")?;
    Ok(Box::new(PermuteBatch { indices, sources: Vec::new() }))
}

impl Operator for PermuteBatch {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        // The samples come from anywhere, but their extents are those of all.
        Ok(vec![inputs[0].clone()])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let (samples, failures) = (inputs.batch_size(), inputs.failures());
        let failed: Vec<bool> = (0..samples).map(|i| failures.get(i).is_some()).collect();
        self.sources = inputs.map(|sample| {
            let index = match self.indices.known() {
                None => self.indices.int(&sample)?,
                Some(all) if all.len() == samples => all[sample.index] as i64,
                Some(all) => {
                    return Err(Error::invalid(format!("{} indices for a batch of {samples}", all.len())));
                }
            };
            let source = usize::try_from(index).ok().filter(|&source| source < samples);
            let source =
                source.ok_or_else(|| Error::invalid(format!("index {index} in a batch of {samples}")))?;
            if failed[source] {
                return Err(Error::invalid(format!("the sample that is taken, {source}, failed before")));
            }
            Ok(source)
        });
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let shape = |(i, &source): (usize, &usize)| {
            if failures.get(i).is_some() { Shape::new(vec![0; ndim]) } else { desc.shapes[source].clone() }
        };
        let shapes = self.sources.iter().enumerate().map(shape).collect();
        Ok(vec![BatchDesc::new(desc.dtype, desc.layout, shapes)])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn source(&self, _output: usize, sample: usize) -> (usize, usize) {
        (0, self.sources.get(sample).copied().unwrap_or(sample))
    }
}
