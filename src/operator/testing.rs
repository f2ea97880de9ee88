//! Runs one operator on one batch, for unit tests of what the recorded pipelines cannot show: bad samples, hostile
//! arguments, types that DALI refuses.

use crate::deadline::NoDeadline;
use crate::error::Error;
use crate::operator::args::Value;
use crate::operator::{Args, CpuCx, Failures, Inputs, Io, OpDef, OutputSamples};
use crate::tensor::{Batch, BatchDesc, Element, Layout, Sample, Shape};
use crate::threads;

/// Arguments with fixed values, and with tensors by their index among the argument inputs.
pub(crate) fn args(values: &[(&str, Value)], tensors: &[&str]) -> Args {
    Args::new(
        values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        tensors.iter().enumerate().map(|(i, name)| ((*name).to_owned(), i)).collect(),
    )
}

/// A batch of samples, each with its shape.
pub(crate) fn batch<'a, T: Element>(samples: &[(&[usize], &'a [T])]) -> Batch<'a> {
    let shapes = samples.iter().map(|(shape, _)| Shape::new(*shape)).collect();
    let bytes = samples.iter().map(|(_, values)| Sample::Borrowed(bytemuck::cast_slice(values))).collect();
    Batch::new(BatchDesc::new(T::DTYPE, Layout::NONE, shapes), bytes).unwrap()
}

/// What an operator with one output made of a batch.
pub(crate) struct Outcome {
    pub(crate) desc: BatchDesc,
    /// The elements of each sample, or its error.
    samples: Vec<Result<Vec<u64>, Error>>,
}

impl Outcome {
    /// The elements of sample `i`.
    pub(crate) fn values<T: Element>(&self, i: usize) -> Vec<T> {
        assert_eq!(self.desc.dtype, T::DTYPE);
        let elements = self.desc.shapes[i].volume().unwrap();
        bytemuck::cast_slice(self.samples[i].as_ref().unwrap())[..elements].to_vec()
    }

    /// The bytes of sample `i`, eight at a time, or its error.
    pub(crate) fn words(&self, i: usize) -> Result<&[u64], String> {
        self.samples[i].as_deref().map_err(ToString::to_string)
    }

    /// The error of sample `i`.
    pub(crate) fn error(&self, i: usize) -> String {
        self.samples[i].as_ref().unwrap_err().to_string()
    }
}

/// Builds the operator `def` and runs it.
pub(crate) fn run(
    def: &OpDef,
    args: &Args,
    regular: &[Batch<'_>],
    arguments: &[Batch<'_>],
) -> Result<Outcome, Error> {
    let mut operator = def.instantiate(args, regular.len())?;
    let (regular, arguments): (Vec<_>, Vec<_>) = (regular.iter().collect(), arguments.iter().collect());
    let failures = Failures::none(regular.iter().chain(&arguments).next().map_or(1, |batch| batch.len()));
    let name = def.name.into();
    let inputs = Inputs::new(&name, &regular, &arguments, &failures);
    let pool = threads::start(2).unwrap();
    operator.work_ahead(&CpuCx { pool: &pool, deadline: &NoDeadline }, &inputs)?;
    let desc = operator.setup(&inputs)?.remove(0);
    let bytes: Vec<usize> = desc.shapes.iter().map(|s| s.bytes(desc.dtype.size()).unwrap()).collect();
    let mut samples: Vec<Vec<u64>> = bytes.iter().map(|bytes| vec![u64::MAX; bytes.div_ceil(8)]).collect();
    if !operator.is_view() {
        let buffers = samples.iter_mut().zip(&bytes).enumerate().map(|(i, (words, &len))| {
            failures.get(i).is_none().then(|| &mut bytemuck::cast_slice_mut(words)[..len])
        });
        let outputs = vec![OutputSamples { desc: &desc, buffers: buffers.collect() }];
        operator.run_cpu(&CpuCx { pool: &pool, deadline: &NoDeadline }, &mut Io::new(inputs, outputs))?;
    }
    let samples = samples
        .into_iter()
        .enumerate()
        .map(|(i, words)| failures.get(i).map_or(Ok(words), |error| Err(error.clone())))
        .collect();
    Ok(Outcome { desc, samples })
}
