//! The one door to the engine: load a serialized pipeline, ask what it takes and gives, make instances and run batches,
//! or make a stream of batches. `triton`, the C API and the command line call nothing else.

mod dataset;
mod feeding;
mod instance;
mod pull;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cpu::decode::{DecodeOptions, effort_of_head};
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::graph::import::PipelineFile;
use crate::graph::{Fed, Feed, Graph, GraphInput, Node, NodeKind, Plan, author};
use crate::limits;
use crate::tensor::{DType, Device, Layout, ValueType};

pub use crate::cpu::decode::JpegDecoder;
pub use crate::cpu::exact::Arithmetic;
pub use crate::deadline::{Deadline, NoDeadline, Watch};
pub use crate::executor::{Keep, Outcome, OutputSink, Tally, Target};
pub use crate::gpu::jpeg::Path as JpegPath;
pub use crate::gpu::{Allowance, Counters, Fetch, Gpu, Stream as CudaStream, devices};
pub use crate::graph::import::describe::{
    ArgumentType, Description, InputDescription, OperatorDescription, OutputDescription, StoredArgument,
};
pub use crate::memory::DeviceBytes;
pub use crate::operator::args::Value as ArgumentValue;
pub use crate::operator::{Answer, Callback, Callbacks, Decoded, Failures, Inputs, Preferences};
pub use dataset::Dataset;
pub use feeding::Feeding;
pub use instance::Instance;
pub use stream::{Delivered, Settings as StreamSettings, Stream};

/// Worker threads of an instance when neither the file nor the caller names a number. As DALI.
pub const DEFAULT_THREADS: usize = 4;

/// What a caller feeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Name of the input.
    pub name: String,
    /// Element type, declared or the only one that its reader takes; data of another type is refused.
    pub dtype: Option<DType>,
    /// Rank of a sample, declared or the only one that its reader takes; data of another rank is refused.
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
    /// The element type that the author declared.
    pub dtype: Option<DType>,
    /// The rank of a sample that the author declared.
    pub ndim: Option<usize>,
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
        Self::plan(PipelineFile::parse(bytes)?.graph(device)?)
    }

    /// [`Pipeline::load`], as if the file's author had given `arithmetic` to every operator that has it and that the
    /// file gives none.
    ///
    /// # Errors
    /// Those of [`Pipeline::load`].
    pub fn load_with_arithmetic(
        bytes: &[u8],
        device: Device,
        arithmetic: Option<Arithmetic>,
    ) -> Result<Self> {
        let file = PipelineFile::parse(bytes)?;
        let file = match arithmetic {
            Some(arithmetic) => file.with_arithmetic(arithmetic),
            None => file,
        };
        Self::plan(file.graph(device)?)
    }

    /// [`Pipeline::load`] of a file with operators that are functions of the program.
    ///
    /// # Errors
    /// Those of [`Pipeline::load`].
    pub fn load_with_callbacks(bytes: &[u8], device: Device, callbacks: &Callbacks) -> Result<Self> {
        Self::plan(PipelineFile::parse(bytes)?.graph_with(device, callbacks)?)
    }

    /// [`Pipeline::load`] with sources in place of the caller: each with the names of the inputs that its outputs feed.
    ///
    /// # Errors
    /// Those of [`Pipeline::load`]; an input that does not exist or that a source does not fit.
    #[cfg(feature = "testing")]
    pub fn load_with_sources(
        bytes: &[u8],
        device: Device,
        sources: &[(Vec<String>, crate::source::MakeSource)],
    ) -> Result<Self> {
        let mut graph = PipelineFile::parse(bytes)?.graph(device)?;
        for (names, make) in sources {
            graph.feed(names, Arc::clone(make))?;
        }
        Self::plan(graph)
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
    #[cfg(feature = "testing")]
    pub fn load_moved_to_device(bytes: &[u8]) -> Result<Self> {
        Self::plan(PipelineFile::parse(bytes)?.moved_to_device().graph(Device::Gpu)?)
    }

    fn plan(graph: Graph) -> Result<Self> {
        let plan = Plan::new(graph)?;
        let inputs = plan
            .graph
            .inputs
            .iter()
            .enumerate()
            .filter_map(|(i, input)| {
                let device = plan.input_device(i);
                let GraphInput { name, dtype, ndim, layout, .. } = input.clone();
                let declared = Input { name, dtype, ndim, layout, device };
                let Feed::Source { source, .. } = input.feed else { return Some(declared) };
                match plan.graph.sources.get(source)?.fed {
                    Fed::Nothing => None,
                    Fed::Batch => Some(Input { device: Device::Cpu, ..declared }),
                    Fed::Videos => {
                        let name = declared.name;
                        let (dtype, ndim) = (Some(DType::U8), Some(1));
                        Some(Input { name, dtype, ndim, layout: Layout::NONE, device: Device::Cpu })
                    }
                }
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
                Output { name: o.name.clone(), ty, dtype: o.dtype, ndim: o.ndim }
            })
            .collect();
        Ok(Self { plan: Arc::new(plan), inputs, outputs })
    }

    /// The inputs that a caller feeds, in the order in which [`Instance::run`] takes them.
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

    /// Names of the operators, as [`Tally::operators`] counts them: several that run as one are one.
    pub fn operators(&self) -> Vec<String> {
        self.plan.graph.nodes.iter().map(|node| Graph::op_name(node).to_owned()).collect()
    }

    /// How many operators the file has that do something here, and copies between host and device.
    pub fn operator_count(&self) -> usize {
        let count = |node: &Node| match &node.kind {
            NodeKind::Fused(_, args) => args.len(),
            NodeKind::Operator(..) | NodeKind::Callback(..) | NodeKind::Transfer => 1,
        };
        self.plan.graph.nodes.iter().map(count).sum()
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

    /// Whether the pipeline reads a data set by itself: then [`Pipeline::stream`] runs it.
    pub fn reads(&self) -> bool {
        self.plan.graph.sources.iter().any(|source| source.fed == Fed::Nothing)
    }

    /// Whether a caller brings a video, of which many batches are made: [`Instance::feed`] takes it, or a stream.
    pub fn takes_videos(&self) -> bool {
        self.plan.graph.takes_videos()
    }

    /// Whether what callers bring decides how much there is to do for its bytes: encoded files, sizes, places.
    pub fn is_steered(&self) -> bool {
        self.plan.graph.inputs.iter().any(|input| self.plan.steers.get(input.value.0) == Some(&true))
    }

    /// What the work of a sample that follows from input `name` is expected to take one core, of which `head` are the
    /// first of `length` bytes. `None`: nobody can tell from that.
    pub fn expected(&self, name: &str, head: &[u8], length: usize) -> Option<Duration> {
        let input = self.plan.graph.inputs.iter().find(|input| input.name == name)?;
        match (self.plan.steers.get(input.value.0)?, self.plan.is_picture.get(input.value.0)?) {
            (false, _) => Some(Duration::ZERO),
            (true, true) => Some(effort_of_head(head, length, &DecodeOptions::default())?.time),
            (true, false) => None,
        }
    }

    /// Whether numbers are drawn from a seed of the file. Those of a sample follow from the seed, the samples of
    /// earlier batches and its place in its own: every instance draws the same ones, and [`Instance::run_at`] draws
    /// those of any batch.
    pub fn is_seeded(&self) -> bool {
        self.plan.seeded().next().is_some()
    }

    /// Whether some of those numbers are drawn in a branch of a conditional. How many samples went into it before
    /// depends on what was in earlier batches, so one instance must run all of them, in their order. So it must where
    /// functions of the program are called.
    pub fn needs_order(&self) -> bool {
        self.calls_back() || self.plan.draws_in_branches()
    }

    /// Whether operators are functions of the program.
    pub fn calls_back(&self) -> bool {
        self.plan.graph.nodes.iter().any(|node| matches!(node.kind, NodeKind::Callback(..)))
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
        let is_read = |input: &&GraphInput| match input.feed {
            Feed::Caller => false,
            Feed::Source { source, .. } => {
                self.plan.graph.sources.get(source).is_none_or(|source| source.fed == Fed::Nothing)
            }
        };
        match self.plan.graph.inputs.iter().find(is_read) {
            Some(input) => Err(Error::invalid(format!(
                "input `{}` is fed by a source, such as a reader: such pipelines run as streams, by `gesso run`, in Python and from C, and not in \
                 Triton",
                input.name
            ))),
            None => Ok(Instance::new(self.executor(num_threads, gpu, preferences)?)),
        }
    }

    /// The batches of a pipeline whose inputs sources feed, or which has none, or which [takes
    /// videos](Self::takes_videos); on `gpu` when the pipeline [needs one](Pipeline::needs_gpu). Beside sources, a
    /// caller may feed inputs: [`Stream::next_with`].
    ///
    /// # Errors
    /// Invalid for an input that nobody feeds, without any source; what making sources and instances fails with.
    pub fn stream(&self, settings: &StreamSettings, gpu: Option<&Arc<Gpu>>) -> Result<Stream> {
        let left = self.plan.graph.inputs.iter().find(|input| input.feed == Feed::Caller);
        if let Some(input) = left.filter(|_| self.plan.graph.sources.is_empty()) {
            return Err(Error::invalid(format!("input `{}` is fed by no source", input.name)));
        }
        let in_callers_thread = self.calls_back() || left.is_some();
        let lanes = if in_callers_thread || self.needs_order() {
            1
        } else {
            settings.lanes.clamp(1, settings.prefetch.max(1))
        };
        let executor = || self.executor(settings.num_threads, gpu, &settings.preferences);
        let mut executors = (0..lanes).map(|_| executor()).collect::<Result<Vec<_>>>()?;
        if !settings.branch_samples.is_empty() {
            executors.iter_mut().try_for_each(|it| it.go_on_in_branches(&settings.branch_samples))?;
        }
        Stream::new(&self.plan.graph, executors, in_callers_thread, settings)
    }

    fn executor(
        &self,
        num_threads: Option<usize>,
        gpu: Option<&Arc<Gpu>>,
        preferences: &Preferences,
    ) -> Result<Executor> {
        let threads = num_threads.or(self.num_threads()).unwrap_or(DEFAULT_THREADS);
        if threads == 0 || threads > limits::MAX_THREADS {
            return Err(Error::invalid(format!("{threads} threads, expected 1 to {}", limits::MAX_THREADS)));
        }
        Executor::new(Arc::clone(&self.plan), threads, gpu, preferences)
    }
}

impl fmt::Display for Pipeline {
    /// The plan as a table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.plan, f)
    }
}
