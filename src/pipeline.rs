//! The one door to the engine: load a serialized pipeline, ask what it takes and gives, make instances, run batches.
//! `triton`, the C API and the command line call nothing else.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::graph::import::PipelineFile;
use crate::graph::{Graph, NodeKind, Plan, author};
use crate::limits;
use crate::tensor::{DType, Device, Layout, ValueType};

pub use crate::executor::{Keep, Outcome, OutputSink, Tally, Target};
pub use crate::gpu::jpeg::Path as JpegPath;
pub use crate::gpu::{Counters, DeviceBytes, Fetch, Gpu, Stream, devices};
pub use crate::graph::import::describe::{
    ArgumentType, Description, InputDescription, OperatorDescription, OutputDescription, StoredArgument,
};
pub use crate::ops::args::Value as ArgumentValue;
pub use crate::ops::{Decoded, Failures, Preferences};

/// Worker threads of an instance when neither the file nor the caller names a number. As DALI.
pub const DEFAULT_THREADS: usize = 4;

/// What a caller feeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Name of the input.
    pub name: String,
    /// Declared element type; data of another type is refused.
    pub dtype: Option<DType>,
    /// Declared rank of a sample; data of another rank is refused.
    pub ndim: Option<usize>,
    /// Declared layout, empty when there is none. Batches for this input must carry it.
    pub layout: Layout,
    /// Where the pipeline reads it. For [`Device::Gpu`], samples may be on the device; for [`Device::Cpu`], never.
    pub device: Device,
}

/// What a caller gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Name of the output.
    pub name: String,
    /// What is known of it before there is a batch.
    pub ty: ValueType,
}

/// A pipeline planned for one device. Immutable; instances share it.
pub struct Pipeline {
    plan: Arc<Plan>,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
}

impl Pipeline {
    /// Reads a file written by DALI's `Pipeline.serialize` and plans it for `device`. For [`Device::Cpu`] the devices
    /// in the file are ignored.
    ///
    /// # Errors
    /// The first thing that is malformed or not supported, with the operator and the instance it stands in.
    pub fn load(bytes: &[u8], device: Device) -> Result<Self> {
        Self::plan(&PipelineFile::parse(bytes)?, device)
    }

    /// Whether `bytes` are a serialized pipeline at all, whatever its operators.
    ///
    /// # Errors
    /// Why they are not.
    pub fn check_file(bytes: &[u8]) -> Result<()> {
        PipelineFile::parse(bytes).map(drop)
    }

    /// What a file says, also one with operators that cannot be run here.
    ///
    /// # Errors
    /// Why the bytes are no serialized pipeline.
    pub fn describe(bytes: &[u8]) -> Result<Description> {
        Ok(PipelineFile::parse(bytes)?.describe())
    }

    /// The bytes of a file that says what `description` says: what [`Pipeline::describe`] made, or somebody wrote.
    ///
    /// # Errors
    /// What no file can say, such as edges that nothing produces.
    pub fn author(description: &Description) -> Result<Vec<u8>> {
        author::author(description)
    }

    /// [`Pipeline::load`] for [`Device::Gpu`], as if the file's author had put every operator there that can run there.
    ///
    /// # Errors
    /// Those of [`Pipeline::load`].
    pub fn load_moved_to_device(bytes: &[u8]) -> Result<Self> {
        Self::plan(&PipelineFile::parse(bytes)?.moved_to_device(), Device::Gpu)
    }

    fn plan(file: &PipelineFile, device: Device) -> Result<Self> {
        let plan = Plan::new(file.graph(device)?)?;
        let inputs = plan
            .graph
            .inputs
            .iter()
            .enumerate()
            .map(|(i, input)| Input {
                name: input.name.clone(),
                dtype: input.dtype,
                ndim: input.ndim,
                layout: input.layout,
                device: plan.input_device(i),
            })
            .collect();
        let outputs = plan
            .graph
            .outputs
            .iter()
            .map(|o| {
                let mut ty = plan.graph.value(o.value).ty.clone();
                ty.dtype = ty.dtype.or(o.dtype);
                ty.dims = ty.dims.or_else(|| o.ndim.map(|n| vec![None; n]));
                Output { name: o.name.clone(), ty }
            })
            .collect();
        Ok(Self { plan: Arc::new(plan), inputs, outputs })
    }

    /// The inputs, in the order in which [`Instance::run`] takes them.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The outputs in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Where output `i` is made. A sink may have it on the host all the same.
    pub fn output_device(&self, i: usize) -> Device {
        let output = self.plan.graph.outputs.get(i);
        output.map_or(Device::Cpu, |output| self.plan.graph.value(output.value).device)
    }

    /// Names of the operators, as [`Tally::operators`] counts them.
    pub fn operators(&self) -> Vec<String> {
        self.plan.graph.nodes.iter().map(|node| Graph::op_name(node).to_owned()).collect()
    }

    /// The largest batch that the file was made for; larger ones run too.
    pub fn max_batch_size(&self) -> usize {
        self.plan.graph.max_batch_size
    }

    /// Worker threads that the file asks for.
    pub fn num_threads(&self) -> Option<usize> {
        self.plan.graph.num_threads
    }

    /// Whether a step runs on a GPU: then an instance needs one.
    pub fn needs_gpu(&self) -> bool {
        self.plan.needs_gpu()
    }

    /// Whether numbers are drawn from a seed of the file: then every instance draws the same ones, batch after batch.
    pub fn is_seeded(&self) -> bool {
        let seeded = |kind: &NodeKind| matches!(kind, NodeKind::Operator(_, args) if args.has("seed"));
        self.plan.graph.nodes.iter().any(|node| seeded(&node.kind))
    }

    /// What the author should know although the pipeline runs.
    pub fn warnings(&self) -> &[String] {
        &self.plan.graph.warnings
    }

    /// A new instance with `num_threads` worker threads, or as many as the file asks for; on `gpu` when the pipeline
    /// [needs one](Pipeline::needs_gpu).
    ///
    /// # Errors
    /// Invalid for a number of threads outside 1 to [`limits::MAX_THREADS`]; what [`Executor::new`] fails with.
    pub fn instance(&self, num_threads: Option<usize>, gpu: Option<&Arc<Gpu>>) -> Result<Instance> {
        self.instance_with(num_threads, gpu, &Preferences::default())
    }

    /// [`Pipeline::instance`] with wishes of the model's author.
    ///
    /// # Errors
    /// As there.
    pub fn instance_with(
        &self,
        num_threads: Option<usize>,
        gpu: Option<&Arc<Gpu>>,
        preferences: &Preferences,
    ) -> Result<Instance> {
        let threads = num_threads.or(self.num_threads()).unwrap_or(DEFAULT_THREADS);
        if threads == 0 || threads > limits::MAX_THREADS {
            return Err(Error::invalid(format!("{threads} threads, expected 1 to {}", limits::MAX_THREADS)));
        }
        Ok(Instance { executor: Executor::new(Arc::clone(&self.plan), threads, gpu, preferences)? })
    }
}

impl fmt::Display for Pipeline {
    /// The plan as a table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.plan, f)
    }
}

/// One instance: runs one batch at a time.
pub struct Instance {
    executor: Executor,
}

impl Instance {
    /// Runs one batch: see [`Executor::run`].
    ///
    /// # Errors
    /// What fails the whole batch.
    pub fn run<'r>(
        &mut self,
        batch_size: usize,
        inputs: Vec<crate::tensor::Batch<'r>>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Outcome<'r>> {
        self.executor.run(batch_size, inputs, sink)
    }

    /// What the last batch cost on the device: copies, launches, waits.
    pub fn counters(&self) -> Counters {
        self.executor.counters()
    }

    /// What the last batch took, operator by operator.
    pub fn tally(&self) -> &Tally {
        self.executor.tally()
    }

    /// Free and total bytes of the instance's device, if it has one.
    ///
    /// # Errors
    /// What the device says.
    pub fn device_memory(&self) -> Result<Option<(usize, usize)>> {
        self.executor.device_memory()
    }

    /// A batch in host memory, for callers that kept an output on the device.
    ///
    /// # Errors
    /// What the device says.
    pub fn to_host<'r>(&mut self, batch: &crate::tensor::Batch<'r>) -> Result<crate::tensor::Batch<'r>> {
        self.executor.to_host(batch)
    }

    /// Memory for callers that must copy an input before it can be read in place.
    pub fn memory(&self) -> &Arc<crate::cpu::memory::HostPool> {
        self.executor.memory()
    }
}
