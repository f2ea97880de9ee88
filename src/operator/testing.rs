//! Runs one operator on one batch, for unit tests of what the recorded pipelines cannot show: bad samples, hostile
//! arguments, types that DALI refuses.

use crate::deadline::NoDeadline;
use crate::error::Error;
use crate::operator::args::Value;
use crate::operator::{Args, CpuCx, Failures, Inputs, Io, OpDef, Operator, OutputSamples};
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

/// What an operator made of a batch: its first output.
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
    run_operator(def.name, def.instantiate(args, regular.len())?, regular, arguments)
}

/// Runs an operator that a test made.
pub(crate) fn run_operator(
    name: &'static str,
    mut operator: Box<dyn Operator>,
    regular: &[Batch<'_>],
    arguments: &[Batch<'_>],
) -> Result<Outcome, Error> {
    let (regular, arguments): (Vec<_>, Vec<_>) = (regular.iter().collect(), arguments.iter().collect());
    let failures = Failures::none(regular.iter().chain(&arguments).next().map_or(1, |batch| batch.len()));
    let name = name.into();
    let inputs = Inputs::new(&name, &regular, &arguments, &failures);
    let pool = threads::start(2).unwrap();
    operator.work_ahead(&CpuCx { pool: &pool, deadline: &NoDeadline }, &inputs)?;
    let mut descs = operator.setup(&inputs)?;
    let bytes = |desc: &BatchDesc, i: usize| desc.shapes[i].bytes(desc.dtype.size()).unwrap();
    let words = |desc: &BatchDesc, i: usize| vec![u64::MAX; bytes(desc, i).div_ceil(8)];
    let mut made: Vec<Vec<Vec<u64>>> =
        descs.iter().map(|desc| (0..desc.shapes.len()).map(|i| words(desc, i)).collect()).collect();
    if !operator.is_view() {
        let outputs = made.iter_mut().zip(&descs).map(|(samples, desc)| {
            let buffers = samples.iter_mut().enumerate().map(|(i, words)| {
                let len = bytes(desc, i);
                failures.get(i).is_none().then(|| &mut bytemuck::cast_slice_mut(words)[..len])
            });
            OutputSamples { desc, buffers: buffers.collect() }
        });
        let outputs = outputs.collect();
        operator.run_cpu(&CpuCx { pool: &pool, deadline: &NoDeadline }, &mut Io::new(inputs, outputs))?;
    }
    let (desc, samples) = (descs.remove(0), made.remove(0));
    let samples = samples
        .into_iter()
        .enumerate()
        .map(|(i, words)| failures.get(i).map_or(Ok(words), |error| Err(error.clone())))
        .collect();
    Ok(Outcome { desc, samples })
}
