//! What operators describe: outputs to allocate, or other descriptions of the samples of inputs.

use crate::error::{Error, Result};
use crate::graph::plan::Step;
use crate::operator::{Inputs, Operator, Routing};
use crate::tensor::{Batch, BatchDesc, Sample};

/// Descriptions of what an operator makes, one for each of its outputs.
pub(super) fn setup(operator: &mut dyn Operator, inputs: &Inputs<'_>, step: &Step) -> Result<Vec<BatchDesc>> {
    let descs = operator.setup(inputs)?;
    if descs.len() != step.writes.len() {
        return Err(Error::internal(format!(
            "describes {} outputs, expected {}",
            descs.len(),
            step.writes.len()
        )));
    }
    Ok(descs)
}

/// The samples of inputs under other descriptions; failed ones lose their bytes, which need not fit those.
pub(super) fn view<'r>(
    operator: &mut dyn Operator,
    inputs: Inputs<'_>,
    step: &Step,
    regular: &[&Batch<'r>],
) -> Result<Vec<Batch<'r>>> {
    let descs = setup(operator, &inputs, step)?;
    // A `Split` fails with its input's samples, all others with their outputs'.
    let splits = operator.routing() == Some(Routing::Split);
    let sample = |output: usize, i: usize| {
        let (input, source) = operator.source(output, i);
        if inputs.failures().get(if splits { source } else { i }).is_some() {
            return Ok(Sample::Missing);
        }
        let sample = regular.get(input).and_then(|batch| batch.sample(source)).cloned();
        sample.ok_or_else(|| {
            Error::internal(format!("a view of sample {source} of input {input}, which is not there"))
        })
    };
    let batch = |(output, desc): (usize, BatchDesc)| {
        let samples = (0..desc.shapes.len()).map(|i| sample(output, i)).collect::<Result<_>>()?;
        Batch::new(desc, samples)
    };
    descs.into_iter().enumerate().map(batch).collect()
}
