//! Runs a plan on a batch: setup, allocate, run, free, step by step. It knows operators and plans, not where the bytes
//! of a request come from: inputs are batches, and outputs go where an [`OutputSink`] says.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::cpu::memory::{HostBuffer, HostPool, align_up};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::graph::infer::Operators;
use crate::graph::plan::Step;
use crate::graph::{NodeKind, Plan, ValueId};
use crate::limits;
use crate::ops::{CpuCx, Failures, Inputs, Io, Operator, OutputSamples};
use crate::tensor::{Batch, BatchDesc, Sample};

/// Where outputs go: a server's response buffers, a caller's memory, a test's vectors.
pub trait OutputSink<'r> {
    /// One buffer per sample for pipeline output `output`, each of exactly the bytes of its shape; `None` for a sample
    /// that failed or that nobody asked for. Called once per output and batch, when its shapes are known.
    ///
    /// # Errors
    /// Fails the whole batch. What concerns single samples goes into `failures`.
    fn allocate(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
    ) -> Result<Vec<Option<&'r mut [u8]>>>;
}

/// A sink without buffers of its own: outputs stay in the instance's memory, see [`Outcome::outputs`].
pub struct Keep;

impl<'r> OutputSink<'r> for Keep {
    fn allocate(&mut self, _: usize, desc: &BatchDesc, _: &Failures) -> Result<Vec<Option<&'r mut [u8]>>> {
        Ok(desc.shapes.iter().map(|_| None).collect())
    }
}

/// What became of a batch.
pub struct Outcome<'r> {
    /// Which samples failed, and why.
    pub failures: Failures,
    /// The outputs in order, in the sink's buffers or, where it gave none, in the instance's memory. Empty when every
    /// sample failed.
    pub outputs: Vec<Batch<'r>>,
}

/// The state of one instance: operators, threads, memory.
pub struct Executor {
    plan: Arc<Plan>,
    operators: Operators,
    pool: rayon::ThreadPool,
    memory: Arc<HostPool>,
}

impl Executor {
    /// An executor for `plan` with `num_threads` worker threads.
    ///
    /// # Errors
    /// Unsupported when the plan needs a GPU; unavailable when the threads cannot be made.
    pub fn new(plan: Arc<Plan>, num_threads: usize) -> Result<Self> {
        if plan.needs_gpu() {
            return Err(Error::unsupported(
                "this version of Gesso runs on host threads only; use a CPU instance",
            ));
        }
        let operators = plan.operators()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(num_threads.clamp(1, limits::MAX_THREADS))
            .thread_name(|i| format!("gesso-{i}"))
            .build()
            .map_err(|error| Error::new(ErrorKind::Unavailable, format!("worker threads: {error}")))?;
        Ok(Self { plan, operators, pool, memory: Arc::new(HostPool::default()) })
    }

    /// The memory of the instance, for callers that must copy an input.
    pub fn memory(&self) -> &Arc<HostPool> {
        &self.memory
    }

    /// Runs one batch of `batch_size` samples. `inputs` stand in the order of the graph's inputs.
    ///
    /// # Errors
    /// What fails the whole batch: a type that an operator does not take, a sink that cannot allocate.
    pub fn run<'r>(
        &mut self,
        batch_size: usize,
        inputs: Vec<Batch<'r>>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Outcome<'r>> {
        let plan = Arc::clone(&self.plan);
        let mut values: Vec<Option<Batch<'r>>> = vec![None; plan.graph.values.len()];
        bind_inputs(&plan, batch_size, inputs, &mut values)?;
        let failures = Failures::none(batch_size);
        for step in &plan.steps {
            if failures.all_failed() {
                return Ok(Outcome { failures, outputs: Vec::new() });
            }
            self.step(&plan, step, &mut values, &failures, sink).context(|| step.label.clone())?;
            for &id in &step.frees {
                values[id.0] = None;
            }
        }
        for &output in &plan.copied_outputs {
            let value = value(&values, plan.graph.outputs[output].value)?;
            copy_output(output, value, &failures, sink)?;
        }
        let outputs =
            plan.graph.outputs.iter().map(|o| value(&values, o.value).cloned()).collect::<Result<_>>()?;
        Ok(Outcome { failures, outputs })
    }

    fn step<'r>(
        &mut self,
        plan: &Plan,
        step: &Step,
        values: &mut [Option<Batch<'r>>],
        failures: &Failures,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<()> {
        let node = &plan.graph.nodes[step.node];
        let (NodeKind::Operator(..), Some(operator)) = (&node.kind, &mut self.operators[step.node]) else {
            return Err(Error::internal("a transfer stands in the plan of an instance without a device"));
        };
        let collect = |ids: &[ValueId]| ids.iter().map(|&id| value(values, id)).collect::<Result<Vec<_>>>();
        let (regular, arguments) = (collect(&node.inputs)?, collect(&node.arguments)?);
        let inputs = Inputs::new(&step.label, &regular, &arguments, failures);
        // After a panic the operator's scratch state is stale, but every batch starts with a new setup.
        let outputs = catch_unwind(AssertUnwindSafe(|| {
            run_operator(operator.as_mut(), inputs, step, &self.pool, &self.memory, sink, &regular)
        }))
        .unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())))?;
        for (&id, batch) in node.outputs.iter().zip(outputs) {
            values[id.0] = Some(batch);
        }
        Ok(())
    }
}

fn bind_inputs<'r>(
    plan: &Plan,
    batch_size: usize,
    inputs: Vec<Batch<'r>>,
    values: &mut [Option<Batch<'r>>],
) -> Result<()> {
    let expected = plan.graph.inputs.len();
    if inputs.len() != expected {
        return Err(Error::invalid(format!("{} inputs, expected {expected}", inputs.len())));
    }
    for (input, batch) in plan.graph.inputs.iter().zip(inputs) {
        let desc = batch.desc();
        if batch.len() != batch_size {
            return Err(Error::invalid(format!(
                "input `{}` has {} samples, expected {batch_size}",
                input.name,
                batch.len()
            )));
        }
        if let Some(dtype) = input.dtype.filter(|&dtype| dtype != desc.dtype) {
            return Err(Error::invalid(format!(
                "input `{}` is {}, expected {dtype}",
                input.name, desc.dtype
            )));
        }
        if let Some(ndim) = input.ndim
            && let Some(shape) = desc.shapes.iter().find(|shape| shape.len() != ndim)
        {
            return Err(Error::invalid(format!(
                "input `{}` has samples of shape {shape}, expected {ndim} dimensions",
                input.name
            )));
        }
        values[input.value.0] = Some(batch);
    }
    Ok(())
}

/// Copies a value that its operator could not write into the response itself.
fn copy_output<'r>(
    output: usize,
    value: &Batch<'r>,
    failures: &Failures,
    sink: &mut dyn OutputSink<'r>,
) -> Result<()> {
    let buffers = sink.allocate(output, value.desc(), failures)?;
    check_buffers(&buffers, value.desc())?;
    for (i, buffer) in buffers.into_iter().enumerate() {
        if let (Some(buffer), None) = (buffer, failures.get(i)) {
            buffer.copy_from_slice(value.view(i).bytes);
        }
    }
    Ok(())
}

fn value<'v, 'r>(values: &'v [Option<Batch<'r>>], id: ValueId) -> Result<&'v Batch<'r>> {
    values[id.0].as_ref().ok_or_else(|| Error::internal(format!("value {} is used before it is made", id.0)))
}

fn run_operator<'r>(
    operator: &mut dyn Operator,
    inputs: Inputs<'_>,
    step: &Step,
    pool: &rayon::ThreadPool,
    memory: &Arc<HostPool>,
    sink: &mut dyn OutputSink<'r>,
    regular: &[&Batch<'r>],
) -> Result<Vec<Batch<'r>>> {
    let descs = operator.setup(&inputs)?;
    if descs.len() != step.writes.len() {
        return Err(Error::internal(format!(
            "describes {} outputs, expected {}",
            descs.len(),
            step.writes.len()
        )));
    }
    if operator.is_view() {
        let failed = |i: usize| inputs.failures().get(i).is_some();
        return descs.into_iter().zip(regular).map(|(desc, input)| input.reinterpret(desc, failed)).collect();
    }
    let mut storage = Vec::with_capacity(descs.len());
    for (desc, &target) in descs.into_iter().zip(&step.writes) {
        storage.push(Storage::allocate(desc, target, &inputs, memory, sink)?);
    }
    let outputs = storage.iter_mut().map(Storage::samples).collect();
    operator.run_cpu(&CpuCx { pool }, &mut Io::new(inputs, outputs))?;
    storage.into_iter().map(Storage::into_batch).collect()
}

/// The memory of one output while its operator writes it: response buffers where the sink gave some, one pooled buffer
/// for the rest.
struct Storage<'r> {
    desc: BatchDesc,
    direct: Vec<Option<&'r mut [u8]>>,
    pooled: HostBuffer,
    ranges: Vec<Option<Range<usize>>>,
}

impl<'r> Storage<'r> {
    fn allocate(
        desc: BatchDesc,
        target: Option<usize>,
        inputs: &Inputs<'_>,
        memory: &Arc<HostPool>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Self> {
        let failures = inputs.failures();
        if desc.shapes.len() != failures.len() {
            return Err(Error::internal(format!(
                "{} shapes, expected {}",
                desc.shapes.len(),
                failures.len()
            )));
        }
        bound_bytes(&desc, inputs);
        let direct = match target {
            Some(output) => sink.allocate(output, &desc, failures)?,
            None => (0..desc.shapes.len()).map(|_| None).collect(),
        };
        check_buffers(&direct, &desc)?;
        let mut end = 0;
        let mut ranges = Vec::with_capacity(direct.len());
        for (i, (buffer, shape)) in direct.iter().zip(&desc.shapes).enumerate() {
            if buffer.is_some() || failures.get(i).is_some() {
                ranges.push(None);
                continue;
            }
            let bytes = shape.bytes(desc.dtype.size())?;
            ranges.push(Some(end..end + bytes));
            end += align_up(bytes);
        }
        Ok(Self { desc, direct, pooled: memory.take(end)?, ranges })
    }

    fn samples(&mut self) -> OutputSamples<'_> {
        let mut rest = self.pooled.bytes_mut();
        let mut buffers = Vec::with_capacity(self.ranges.len());
        for (direct, range) in self.direct.iter_mut().zip(&self.ranges) {
            let Some(range) = range else {
                buffers.push(direct.as_deref_mut());
                continue;
            };
            let (sample, tail) = std::mem::take(&mut rest).split_at_mut(align_up(range.len()));
            rest = tail;
            buffers.push(Some(&mut sample[..range.len()]));
        }
        OutputSamples { desc: &self.desc, buffers }
    }

    fn into_batch(self) -> Result<Batch<'r>> {
        let pooled = Arc::new(self.pooled);
        let samples = self
            .direct
            .into_iter()
            .zip(self.ranges)
            .map(|(direct, range)| match (direct, range) {
                (Some(bytes), _) => Sample::Borrowed(bytes),
                (None, Some(range)) => Sample::Pooled(Arc::clone(&pooled), range),
                (None, None) => Sample::Missing,
            })
            .collect();
        Batch::new(self.desc, samples)
    }
}

/// Marks samples as failed that are too large by themselves or, from the smallest on, do not fit into a batch any more.
fn bound_bytes(desc: &BatchDesc, inputs: &Inputs<'_>) {
    let mut sizes = Vec::with_capacity(desc.shapes.len());
    for (i, shape) in desc.shapes.iter().enumerate() {
        match shape.bytes(desc.dtype.size()) {
            Ok(bytes) if inputs.failures().get(i).is_none() => sizes.push((bytes, i)),
            Ok(_) => {}
            Err(error) => inputs.fail(i, error),
        }
    }
    sizes.sort_unstable();
    let mut total = 0usize;
    for (bytes, i) in sizes {
        total = total.saturating_add(align_up(bytes));
        if total > limits::MAX_BATCH_BYTES {
            let text = format!(
                "a sample of {bytes} bytes does not fit into its batch any more, whose limit is {} bytes",
                limits::MAX_BATCH_BYTES
            );
            inputs.fail(i, Error::new(ErrorKind::Unavailable, text));
        }
    }
}

fn check_buffers(buffers: &[Option<&mut [u8]>], desc: &BatchDesc) -> Result<()> {
    if buffers.len() != desc.shapes.len() {
        return Err(Error::internal(format!(
            "{} output buffers, expected {}",
            buffers.len(),
            desc.shapes.len()
        )));
    }
    for (buffer, shape) in buffers.iter().zip(&desc.shapes) {
        let Some(buffer) = buffer else { continue };
        let expected = shape.bytes(desc.dtype.size())?;
        if buffer.len() != expected {
            return Err(Error::internal(format!(
                "an output buffer of {} bytes, expected {expected}",
                buffer.len()
            )));
        }
    }
    Ok(())
}
