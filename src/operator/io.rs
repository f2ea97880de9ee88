//! What an operator sees of a batch: [`Inputs`] while shapes are worked out, [`Io`] while pixels are. Both skip samples
//! that have failed before and carry new failures to where the request is answered.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::failures::Failures;
use crate::deadline::{Deadline, Watch};
use crate::error::{Error, Layer, Result};
use crate::memory::DeviceBytes;
use crate::tensor::{Batch, BatchDesc, Sample, Shape, View, ViewMut};
use crate::threads::Threads;

/// The inputs of an operator for one batch.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    operator: &'a Layer,
    parts: &'a [Layer],
    regular: &'a [&'a Batch<'a>],
    arguments: &'a [&'a Batch<'a>],
    failures: &'a Failures,
    first: u64,
}

impl<'a> Inputs<'a> {
    /// The inputs of the operator that errors shall call `operator`: regular ones in order, argument inputs in the
    /// order of their indices in [`crate::operator::Args`].
    pub fn new(
        operator: &'a Layer,
        regular: &'a [&'a Batch<'a>],
        arguments: &'a [&'a Batch<'a>],
        failures: &'a Failures,
    ) -> Self {
        Self { operator, parts: &[], regular, arguments, failures, first: 0 }
    }

    /// The inputs of an operator that stands for several, which errors shall call so.
    #[must_use]
    pub fn of_parts(self, parts: &'a [Layer]) -> Self {
        Self { parts, ..self }
    }

    /// These inputs, for that operator of those that it stands for: errors are that one's.
    #[must_use]
    pub fn of_part(self, part: usize) -> Self {
        Self { operator: self.parts.get(part).unwrap_or(self.operator), ..self }
    }

    /// These inputs, when the operator had `samples` samples in earlier batches.
    #[must_use]
    pub fn after(self, samples: u64) -> Self {
        Self { first: samples, ..self }
    }

    /// How many samples there were before the first one of this batch, which is all that random numbers depend on
    /// beside the seed and the place in the batch.
    pub fn first_sample(&self) -> u64 {
        self.first
    }

    /// Number of samples in the batch.
    pub fn batch_size(&self) -> usize {
        self.failures.len()
    }

    /// Number of regular inputs.
    pub fn len(&self) -> usize {
        self.regular.len()
    }

    /// Whether there is no regular input.
    pub fn is_empty(&self) -> bool {
        self.regular.is_empty()
    }

    /// Regular input `i`.
    ///
    /// # Errors
    /// When there is no such input.
    pub fn batch(&self, i: usize) -> Result<&'a Batch<'a>> {
        self.regular.get(i).copied().ok_or_else(|| {
            Error::invalid(format!("input {i} is missing, found {} inputs", self.regular.len()))
        })
    }

    /// Type, layout and shapes of regular input `i`.
    ///
    /// # Errors
    /// When there is no such input.
    pub fn desc(&self, i: usize) -> Result<&'a BatchDesc> {
        self.batch(i).map(Batch::desc)
    }

    /// The argument inputs, in the order of their indices.
    pub fn arguments(&self) -> &'a [&'a Batch<'a>] {
        self.arguments
    }

    /// Other inputs of the same operator.
    pub fn with<'b>(
        &self,
        regular: &'b [&'b Batch<'b>],
        arguments: &'b [&'b Batch<'b>],
        failures: &'b Failures,
    ) -> Inputs<'b>
    where
        'a: 'b,
    {
        Inputs::new(self.operator, regular, arguments, failures).after(self.first)
    }

    /// Calls `f` for every live sample, in order, and returns one value per sample. A sample for which `f` fails or
    /// panics is marked as failed and gets the default value, as samples do that failed before.
    pub fn map<T: Default>(&self, mut f: impl FnMut(SampleInputs<'a>) -> Result<T>) -> Vec<T> {
        (0..self.batch_size())
            .map(|index| {
                if self.failures.get(index).is_some() {
                    return T::default();
                }
                let sample = self.sample(index);
                catch_unwind(AssertUnwindSafe(|| f(sample)))
                    .unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())))
                    .unwrap_or_else(|error| {
                        self.fail(index, error);
                        T::default()
                    })
            })
            .collect()
    }

    /// [`Inputs::map`] for shapes: a failed sample gets a shape of rank `ndim` without elements.
    pub fn map_shapes(
        &self,
        ndim: usize,
        mut f: impl FnMut(SampleInputs<'a>) -> Result<Shape>,
    ) -> Vec<Shape> {
        self.map(|sample| f(sample).map(Some))
            .into_iter()
            .map(|shape| shape.unwrap_or_else(|| Shape::new(vec![0; ndim])))
            .collect()
    }

    /// Which samples have failed so far.
    pub fn failures(&self) -> &'a Failures {
        self.failures
    }

    /// Marks sample `index` as failed in this operator.
    pub fn fail(&self, index: usize, error: Error) {
        self.failures.fail(index, error.context(self.operator.clone()));
    }

    pub(crate) fn sample(&self, index: usize) -> SampleInputs<'a> {
        SampleInputs { index, regular: self.regular, arguments: self.arguments }
    }
}

/// The inputs of one sample.
#[derive(Clone, Copy)]
pub struct SampleInputs<'a> {
    /// Which sample of the batch.
    pub index: usize,
    regular: &'a [&'a Batch<'a>],
    arguments: &'a [&'a Batch<'a>],
}

impl<'a> SampleInputs<'a> {
    /// Regular input `i`.
    ///
    /// # Errors
    /// When there is no such input.
    pub fn input(&self, i: usize) -> Result<View<'a>> {
        view(self.regular, i, self.index)
    }

    /// Where regular input `i` comes from; empty where nobody knows.
    pub fn origin(&self, i: usize) -> &'a str {
        self.regular.get(i).map_or("", |batch| batch.origin(self.index))
    }

    /// Where regular input `i` is, on the host or on the device.
    ///
    /// # Errors
    /// When there is no such input.
    pub fn place(&self, i: usize) -> Result<&'a Sample<'a>> {
        let place = self.regular.get(i).and_then(|batch| batch.sample(self.index));
        place.ok_or_else(|| Error::invalid(format!("input {i} is missing")))
    }

    /// Where regular input `i` is on the device.
    ///
    /// # Errors
    /// Internal, when it is not there.
    pub fn device(&self, i: usize) -> Result<&'a DeviceBytes<'a>> {
        let batch = self.regular.get(i).ok_or_else(|| Error::invalid(format!("input {i} is missing")))?;
        batch.device(self.index)
    }

    /// Argument input `i`.
    ///
    /// # Errors
    /// When there is no such input.
    pub fn argument(&self, i: usize) -> Result<View<'a>> {
        view(self.arguments, i, self.index)
    }
}

fn view<'a>(batches: &'a [&'a Batch<'a>], i: usize, index: usize) -> Result<View<'a>> {
    let batch = batches.get(i).ok_or_else(|| Error::invalid(format!("input {i} is missing")))?;
    Ok(batch.view(index))
}

/// What `run_cpu` may use: the instance's threads.
pub struct CpuCx<'a> {
    /// Worker threads of the instance.
    pub pool: &'a Threads,
    /// Who waits for the batch.
    pub deadline: &'a dyn Deadline,
}

impl<'a> CpuCx<'a> {
    /// What is asked while one works on sample `index` of those whose failures these are.
    pub fn watch(&self, failures: &Failures, index: usize) -> Watch<'a> {
        Watch::new(self.deadline, failures.waited_for(index))
    }
}

/// The buffers of one output, one per sample; a sample that failed has none.
pub struct OutputSamples<'a> {
    /// Type, layout and shapes.
    pub desc: &'a BatchDesc,
    /// The bytes of each sample.
    pub buffers: Vec<Option<&'a mut [u8]>>,
}

/// Batches of fewer bytes than this, read and written, are worked on in the thread that has them: the scalars and small
/// lists with which pipelines compute arguments.
const SMALL_BYTES: usize = 4_096;

/// What is done with one sample.
type Work<'f, 'a> = dyn Fn(&mut SampleIo<'a>) -> Result<()> + Sync + 'f;

/// Inputs and output buffers of an operator while it runs.
pub struct Io<'a> {
    inputs: Inputs<'a>,
    outputs: Vec<OutputSamples<'a>>,
}

impl<'a> Io<'a> {
    /// Inputs, and outputs in order.
    pub fn new(inputs: Inputs<'a>, outputs: Vec<OutputSamples<'a>>) -> Self {
        Self { inputs, outputs }
    }

    /// The inputs.
    pub fn inputs(&self) -> Inputs<'a> {
        self.inputs
    }

    /// See [`Inputs::of_part`].
    pub(crate) fn set_part(&mut self, part: usize) {
        self.inputs = self.inputs.of_part(part);
    }

    /// Takes the outputs, so that their buffers can be written in other portions.
    pub(crate) fn take_outputs(&mut self) -> Vec<OutputSamples<'a>> {
        std::mem::take(&mut self.outputs)
    }

    /// Runs `f` for every live sample, in this thread and on idle ones of the pool. An error or a panic fails its
    /// sample and no other. Called once per run.
    ///
    /// # Errors
    /// Internal, when an output has not one buffer per sample.
    pub fn for_each_sample(
        &mut self,
        cx: &CpuCx<'_>,
        f: impl Fn(&mut SampleIo<'a>) -> Result<()> + Sync,
    ) -> Result<()> {
        // There are hundreds of `f`, for all operators and element types: what follows is compiled once.
        self.run_samples(cx, &f)
    }

    fn run_samples(&mut self, cx: &CpuCx<'_>, f: &Work<'_, 'a>) -> Result<()> {
        let small = self.bytes() < SMALL_BYTES;
        let mut samples = self.live_samples()?;
        let inputs = self.inputs;
        let run = |sample: &mut SampleIo<'a>| run_sample(&inputs, sample, f);
        // Nothing is gained from another thread, which is not awake before the work is done.
        if small {
            samples.iter_mut().for_each(run);
        } else {
            cx.pool.for_each(&mut samples, |sample| match cx.deadline.check(None) {
                Ok(()) => run(sample),
                Err(late) => inputs.fail(sample.index(), late),
            });
        }
        Ok(())
    }

    /// Bytes that are read and written, as far as they are on the host.
    fn bytes(&self) -> usize {
        let regular = self.inputs.regular.iter();
        let read = regular.flat_map(|batch| (0..batch.len()).map(|i| batch.view(i).bytes.len()));
        let written =
            self.outputs.iter().flat_map(|output| output.buffers.iter().flatten().map(|buffer| buffer.len()));
        read.chain(written).sum()
    }

    /// Takes the buffers of the samples that have not failed.
    fn live_samples(&mut self) -> Result<Vec<SampleIo<'a>>> {
        let mut samples: Vec<SampleIo<'a>> = (0..self.inputs.batch_size())
            .map(|index| SampleIo {
                inputs: self.inputs.sample(index),
                outputs: Vec::with_capacity(self.outputs.len()),
            })
            .collect();
        for output in self.outputs.drain(..) {
            let (desc, found) = (output.desc, output.buffers.len());
            if found != samples.len() || desc.shapes.len() != samples.len() {
                return Err(Error::internal(format!(
                    "an output has {found} buffers for {} samples",
                    samples.len()
                )));
            }
            for ((sample, buffer), shape) in samples.iter_mut().zip(output.buffers).zip(&desc.shapes) {
                let Some(bytes) = buffer else { continue };
                sample.outputs.push(ViewMut { dtype: desc.dtype, layout: desc.layout, shape, bytes });
            }
        }
        samples.retain(|sample| self.inputs.failures.get(sample.inputs.index).is_none());
        Ok(samples)
    }
}

/// Runs `f` on one sample; an error or a panic fails it.
fn run_sample<'a>(inputs: &Inputs<'a>, sample: &mut SampleIo<'a>, f: &Work<'_, 'a>) {
    let index = sample.inputs.index;
    match catch_unwind(AssertUnwindSafe(|| f(sample))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => inputs.fail(index, error),
        Err(panic) => inputs.fail(index, Error::from_panic(panic.as_ref())),
    }
}

/// One sample while it is computed.
pub struct SampleIo<'a> {
    /// Its inputs.
    pub inputs: SampleInputs<'a>,
    outputs: Vec<ViewMut<'a>>,
}

impl<'a> SampleIo<'a> {
    /// Which sample of the batch.
    pub fn index(&self) -> usize {
        self.inputs.index
    }

    /// Regular input `i`.
    ///
    /// # Errors
    /// When there is no such input.
    pub fn input(&self, i: usize) -> Result<View<'a>> {
        self.inputs.input(i)
    }

    /// Output `i` to write.
    ///
    /// # Errors
    /// Internal, when there is no such output.
    pub fn output(&mut self, i: usize) -> Result<&mut ViewMut<'a>> {
        self.outputs.get_mut(i).ok_or_else(|| Error::internal(format!("output {i} has no buffer")))
    }

    /// Reads input 0 and writes output 0 at once: the common case.
    ///
    /// # Errors
    /// When one of them is missing.
    pub fn unary(&mut self) -> Result<(View<'a>, &mut ViewMut<'a>)> {
        let input = self.input(0)?;
        Ok((input, self.output(0)?))
    }
}
