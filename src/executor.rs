//! Runs a plan on a batch: setup, allocate, run, free, step by step. It knows operators and plans, not where the bytes
//! of a request come from: inputs are batches, and outputs go where an [`OutputSink`] says.
//!
//! Steps on a device are only recorded; when all steps are, they are submitted at once and waited for once.

mod device;
mod expect;
mod formats;
mod host;
mod origins;
mod own;
mod run;
mod settle;
mod sink;
mod state;
mod step;
mod tally;
mod view;

use std::sync::Arc;
use std::time::Instant;

use crate::cpu::formats::Formats;
use crate::error::{Context, Error, Result, caught};
use crate::gpu::{Counters, Gpu, Recorder};
use crate::graph::infer::Operators;
use crate::graph::{Node, Plan, ValueId};
use crate::memory::HostPool;
use crate::operator::{Decoded, Failures, Preferences};
use crate::tensor::{Batch, Device, ValueType};
use crate::threads::{self, Foreground, Threads};
use host::copy_output;
use state::State;

pub use sink::{Keep, OutputSink, Target};
pub use tally::Tally;

/// What became of a batch.
pub struct Outcome<'r> {
    /// Which samples failed, and why.
    pub failures: Failures,
    /// The outputs in order, in the sink's buffers or, where it gave none, in the instance's memory. Empty when every
    /// sample failed.
    pub outputs: Vec<Batch<'r>>,
    /// How many samples each branch of a conditional has had in this batch and those before it, for
    /// [`Executor::go_on_in_branches`]; empty unless random numbers depend on it.
    pub branch_samples: Vec<u64>,
}

/// The state of one instance: operators, threads, memory, and the recorder of its device if it has one.
pub struct Executor {
    plan: Arc<Plan>,
    operators: Operators,
    pool: Arc<Threads>,
    memory: Arc<HostPool>,
    inputs_may_change: bool,
    formats: Formats,
    recorder: Option<Recorder>,
    /// Whether a sample may turn out to have failed after the batch has run: no other depends on it.
    may_settle: bool,
    /// What the last batch cost on the device.
    counters: Counters,
    tally: Tally,
    /// Why the device can no longer be used.
    broken: Option<Error>,
    /// Samples that each branch of a conditional had in earlier batches, which depends on their data; empty if no
    /// numbers are drawn in branches.
    branch_samples: Vec<u64>,
}

impl Executor {
    /// An executor for `plan` with `num_threads` worker threads, on `gpu` if the plan was made for one.
    ///
    /// # Errors
    /// Unavailable when the threads cannot be made; what preparing the operators on the device fails with.
    pub fn new(
        plan: Arc<Plan>,
        num_threads: usize,
        gpu: Option<&Arc<Gpu>>,
        preferences: &Preferences,
    ) -> Result<Self> {
        let memory = HostPool::within(preferences.max_memory.unwrap_or(usize::MAX));
        Self::with(plan, threads::start(num_threads)?, memory, gpu, preferences)
    }

    /// Leaves a core to `others` while they are there: see [`Threads::yield_core_to`].
    pub fn yield_core_to(&self, others: &Arc<Foreground>) {
        self.pool.yield_core_to(others);
    }

    /// Another one for batches that are worked on at the same time, on the same threads and the same device: see
    /// [`HostPool::beside`].
    ///
    /// # Errors
    /// What preparing the operators on the device fails with.
    pub fn beside(&self, preferences: &Preferences) -> Result<Self> {
        let gpu = self.gpu();
        let (plan, pool) = (Arc::clone(&self.plan), Arc::clone(&self.pool));
        Self::with(plan, pool, self.memory.beside(), gpu, preferences)
    }

    fn with(
        plan: Arc<Plan>,
        pool: Arc<Threads>,
        memory: HostPool,
        gpu: Option<&Arc<Gpu>>,
        preferences: &Preferences,
    ) -> Result<Self> {
        if plan.needs_gpu() && gpu.is_none() {
            return Err(Error::internal("a plan for a device runs without one"));
        }
        let mut operators = plan.operators()?;
        if preferences.jpeg_scaled_decode {
            plan.reduce(&mut operators);
        }
        plan.make_exact(&mut operators);
        expect::expect(&plan, &mut operators, &vec![ValueType::default(); plan.graph.outputs.len()]);
        operators.iter_mut().flatten().for_each(|operator| operator.prefer(preferences));
        if let Some(gpu) = gpu {
            device::prepare(&plan, &mut operators, gpu)?;
        }
        let recorder = gpu.map(Recorder::new).transpose()?;
        let may_settle = !plan.graph.nodes.iter().any(Node::mixes_samples);
        let branch_samples =
            if plan.draws_in_branches() { vec![0; plan.branches.count()] } else { Vec::new() };
        Ok(Self {
            plan,
            operators,
            pool,
            memory: Arc::new(memory),
            inputs_may_change: preferences.inputs_may_change,
            formats: preferences.formats,
            recorder,
            may_settle,
            counters: Counters::default(),
            tally: Tally::default(),
            broken: None,
            branch_samples,
        })
    }

    /// Lets random numbers in branches go on where another executor of the same plan was behind a batch
    /// ([`Outcome::branch_samples`]).
    ///
    /// # Errors
    /// Invalid when that is another number of branches.
    pub fn go_on_in_branches(&mut self, branch_samples: &[u64]) -> Result<()> {
        let (found, expected) = (branch_samples.len(), self.branch_samples.len());
        if found != expected {
            return Err(Error::invalid(format!("samples of {found} branches, expected those of {expected}")));
        }
        self.branch_samples.copy_from_slice(branch_samples);
        Ok(())
    }

    /// What it runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The memory of the instance, for callers that must copy an input.
    pub fn memory(&self) -> &Arc<HostPool> {
        &self.memory
    }

    /// Whether what becomes of a sample depends on the others of its batch.
    pub fn mixes_samples(&self) -> bool {
        !self.may_settle
    }

    /// What the last batch cost on the device.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The formats of files that it decodes.
    pub fn formats(&self) -> Formats {
        self.formats
    }

    /// What the last batch took.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Counts what was decoded for the last batch before it began.
    pub fn add_decoded(&mut self, decoded: Decoded) {
        self.tally.decoded += decoded;
    }

    /// Its device, if it has one.
    pub fn gpu(&self) -> Option<&Arc<Gpu>> {
        self.recorder.as_ref().map(Recorder::gpu)
    }

    /// Free and total bytes of the device, if there is one.
    ///
    /// # Errors
    /// What the device says.
    pub fn device_memory(&self) -> Result<Option<(usize, usize)>> {
        self.recorder.as_ref().map(|recorder| recorder.gpu().memory()).transpose()
    }

    /// A batch in host memory, wherever it is now.
    ///
    /// # Errors
    /// What the device says.
    pub fn to_host<'r>(&mut self, batch: &Batch<'r>) -> Result<Batch<'r>> {
        match &mut self.recorder {
            Some(recorder) if (0..batch.len()).any(|i| batch.device(i).is_ok()) => {
                let failures = Failures::none(batch.len());
                let moved = caught(|| device::download(recorder, batch, &failures, &self.memory));
                // Not even a panic may leave copies from the batch's memory behind.
                if moved.is_ok() {
                    recorder.clear();
                } else {
                    recorder.abandon();
                }
                moved?.pop().ok_or_else(|| Error::internal("a download without a value"))
            }
            _ => Ok(batch.clone()),
        }
    }

    /// Runs one batch, before which there were `first` samples. `failures` has a place for each of its samples, and the
    /// error of those that failed already: they have no bytes, and are not computed. `inputs` stand in the order of the
    /// graph's inputs.
    ///
    /// # Errors
    /// What fails the whole batch: a type that an operator does not take, a sink that cannot allocate, a device that
    /// fails.
    pub fn run<'r>(
        &mut self,
        first: u64,
        failures: Failures,
        inputs: Vec<Batch<'r>>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Outcome<'r>> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        // For operators of others, which find the device that their thread has; the caller's thread gets its own back.
        let gpu = self.recorder.as_ref().map(|recorder| Arc::clone(recorder.gpu()));
        let _bound = gpu.as_ref().map(|gpu| gpu.bind()).transpose()?;
        let _in_flight = gpu.as_ref().map(|gpu| gpu.begin_batch());
        let plan = Arc::clone(&self.plan);
        let mut state = State {
            values: vec![None; plan.graph.values.len()],
            branches: vec![None; plan.branches.count()],
            failures,
            first,
            landings: Vec::new(),
            unsettled: Vec::new(),
            own: Vec::new(),
        };
        self.tally = Tally::begin(plan.graph.nodes.len());
        state.own = self.bind_inputs(&plan, &state.failures, inputs, &mut state.values, sink)?;
        // Not even a panic may leave work behind: it would write into memory that the caller gives away.
        let recorded = caught(|| self.record(&plan, &mut state, sink));
        let submitted = Instant::now();
        let finished = recorded.and_then(|()| caught(|| self.finish(&plan, &mut state)));
        if let Some(recorder) = &self.recorder {
            self.tally.device = recorder.started().unwrap_or(submitted).elapsed();
        }
        if let Some(recorder) = &mut self.recorder {
            self.counters = recorder.counters();
            match &finished {
                Ok(()) => recorder.clear(),
                Err(error) => {
                    recorder.abandon();
                    self.broken = device::broken(recorder.gpu(), error);
                }
            }
        }
        for (samples, branch) in self.branch_samples.iter_mut().zip(&state.branches) {
            *samples = samples.wrapping_add(branch.as_ref().map_or(0, |branch| branch.len() as u64));
        }
        finished?;
        let State { values, failures, .. } = state;
        let outputs = if failures.all_failed() {
            Vec::new()
        } else {
            plan.graph.outputs.iter().map(|o| value(&values, o.value).cloned()).collect::<Result<_>>()?
        };
        Ok(Outcome { failures, outputs, branch_samples: self.branch_samples.clone() })
    }

    /// Does what runs on the host, and records what runs on the device.
    fn record<'r>(
        &mut self,
        plan: &Plan,
        state: &mut State<'r>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<()> {
        for (number, step) in plan.steps.iter().enumerate() {
            sink.poll_cancelled(&state.failures);
            if state.failures.all_failed() {
                return Ok(());
            }
            if !state.unsettled.is_empty() && plan.reads_back(step) {
                self.settle(plan, state)?;
            }
            let begun = Instant::now();
            self.step(plan, step, state, sink).context(|| step.label.clone())?;
            self.remember(plan, number, state)?;
            let operator = self.operators.get_mut(step.node).and_then(Option::as_mut);
            self.tally.add(step.node, begun, operator);
            for &id in &step.frees {
                state.values[id.0] = None;
            }
        }
        if state.failures.all_failed() {
            return Ok(());
        }
        for &output in &plan.copied_outputs {
            let declared = &plan.graph.outputs[output];
            let batch = value(&state.values, declared.value)?.clone();
            match &mut self.recorder {
                Some(recorder) if plan.graph.value(declared.value).device == Device::Gpu => {
                    let copied = device::copy_output(recorder, output, declared, &batch, state, sink)?;
                    state.values[declared.value.0] = Some(copied);
                }
                _ => copy_output(output, &batch, &state.failures, sink)?,
            }
        }
        Ok(())
    }

    /// Checks `inputs` and makes them the plan's first values. Returns what the batch works on in place of the caller's
    /// memory.
    fn bind_inputs<'r>(
        &self,
        plan: &Plan,
        failures: &Failures,
        inputs: Vec<Batch<'r>>,
        values: &mut [Option<Batch<'r>>],
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Vec<Batch<'r>>> {
        let (batch_size, expected) = (failures.len(), plan.graph.inputs.len());
        if inputs.len() != expected {
            return Err(Error::invalid(format!("{} inputs, expected {expected}", inputs.len())));
        }
        let mut own = Vec::new();
        for (input, mut batch) in plan.graph.inputs.iter().zip(inputs) {
            let desc = batch.desc();
            if batch.len() != batch_size {
                let text =
                    format!("input `{}` has {} samples, expected {batch_size}", input.name, batch.len());
                return Err(Error::invalid(text).of_input(&input.name));
            }
            if let Some(dtype) = input.dtype.filter(|&dtype| dtype != desc.dtype) {
                let text = format!("input `{}` is {}, expected {dtype}", input.name, desc.dtype);
                return Err(Error::invalid(text).of_input(&input.name));
            }
            if let Some(ndim) = input.ndim
                && let Some(shape) = desc.shapes.iter().find(|shape| shape.len() != ndim)
            {
                let text = format!(
                    "input `{}` has samples of shape {shape}, expected {ndim} dimensions",
                    input.name
                );
                return Err(Error::invalid(text).of_input(&input.name));
            }
            let id = input.value.0;
            // What was looked at to refuse its format is what is decoded.
            let readers_copy = plan.copied_by_readers[id] && self.formats.is_all();
            if self.inputs_may_change && plan.steers[id] && !readers_copy {
                if sink.wants_estimates() {
                    let copied = own::foreign(&batch, failures).into_iter();
                    let copied: Vec<_> = copied.map(|(i, bytes)| (i, own::reading(bytes.len()))).collect();
                    sink.admit(&copied, failures);
                }
                own::take(&mut batch, failures, &self.pool, &self.memory)?;
                own.push(batch.clone());
            }
            values[id] = Some(batch);
        }
        Ok(own)
    }
}

fn value<'v, 'r>(values: &'v [Option<Batch<'r>>], id: ValueId) -> Result<&'v Batch<'r>> {
    values[id.0].as_ref().ok_or_else(|| Error::internal(format!("value {} is used before it is made", id.0)))
}
