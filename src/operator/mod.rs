//! What an operator is: the trait that it implements, its definition as data, and what it sees of a batch. It must not
//! know which operators there are (`ops` does), nor how a plan runs them (`executor` does).

pub mod args;
mod callback;
mod deferred;
mod failures;
mod frames;
mod fusions;
pub(crate) mod gpu_io;
mod instance;
mod io;
pub(crate) mod shared;
pub mod spec;
#[cfg(test)]
pub(crate) mod testing;
mod value;

use std::sync::Arc;

use crate::cpu::encoded::Encoded;
use crate::cpu::exact::Arithmetic;
use crate::cpu::formats::Formats;
use crate::cpu::video::Sequences;
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, KernelSpec};
use crate::tensor::{BatchDesc, Device, Origins, ValueType};

pub use args::{Arg, Args};
pub use callback::{Answer, CALLBACK, CALLBACK_SOURCE, Callback, Callbacks};
pub(crate) use callback::{Calls, types as types_of_callback};
pub use deferred::Deferred;
pub use failures::Failures;
pub use fusions::{Fusion, MAX_FUSED};
pub use gpu_io::{DeviceOutput, DeviceSample, GpuCx, GpuIo, Source, prepare_copy};
pub use io::{CpuCx, Inputs, Io, OutputSamples, SampleInputs, SampleIo};
pub use spec::{ArgKind, ArgSpec, ArgTable, DefaultValue, EVERYWHERE, SEED};

/// One instance of an operator: parameters read once at load, scratch state of the batch at hand.
///
/// For every batch the executor calls `work_ahead` and `setup`, allocates the outputs that it describes, and calls
/// `run_cpu` or `run_gpu`.
pub trait Operator: Send {
    /// What is known of the argument inputs before there is a batch, ahead of [`Operator::infer`].
    fn infer_arguments(&mut self, _arguments: &[ValueType]) {}

    /// What is known of the outputs before there is a batch. An error here fails the load of the model.
    ///
    /// `inputs` holds the regular inputs in order.
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>>;

    /// Called before [`Operator::setup`] on the host, where only the work itself tells how large outputs become: does
    /// it on the instance's threads and keeps what it made. A sample that cannot be processed is marked in `inputs`.
    fn work_ahead(&mut self, _cx: &CpuCx<'_>, _inputs: &Inputs<'_>) -> Result<()> {
        Ok(())
    }

    /// The same on a device, for an operator with [`OpDef::sizes_by_work`]: records what makes its outputs, runs it and
    /// keeps what it made.
    fn work_ahead_on_gpu(&mut self, _cx: &mut GpuCx<'_>, _inputs: &Inputs<'_>) -> Result<()> {
        Ok(())
    }

    /// Types and shapes of the outputs for this batch, from shapes and argument values only; never from pixels.
    /// A sample that cannot be processed is marked in `inputs` (see [`Inputs::map`]); an error fails the whole batch.
    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>>;

    /// [`Operator::setup`] of frames, of which as many as `counts` says follow one another in each sequence. Where
    /// shapes depend on an argument that differs from frame to frame, those of a sequence get one shape.
    fn setup_frames(&mut self, inputs: &Inputs<'_>, _counts: &[usize]) -> Result<Vec<BatchDesc>> {
        self.setup(inputs)
    }

    /// After [`Operator::setup`]: what sample `sample` is expected to take on the host, beyond writing its outputs
    /// once.
    fn effort(&self, _sample: usize) -> Effort {
        Effort::default()
    }

    /// Computes the outputs of every live sample on host threads.
    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()>;

    /// Called once for an instance on a device, before the first batch: compiles the kernels that `inputs`, as far as
    /// they are known, will need, so that no request waits for a compiler.
    fn prepare_gpu(&mut self, _gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        Ok(())
    }

    /// Records what computes the outputs of every live sample on the device. Nothing has run yet, so inputs on the
    /// device have addresses and shapes but no bytes; those on the host (arguments, encoded images) can be read.
    fn run_gpu(&mut self, _cx: &mut GpuCx<'_>, _io: &mut GpuIo<'_>) -> Result<()> {
        Err(Error::unsupported("this operator does not run on a GPU"))
    }

    /// Takes what the model's author wishes, before [`Operator::prepare_gpu`].
    fn prefer(&mut self, _preferences: &Preferences) {}

    /// Itself, if it puts work off or takes work that another puts off.
    fn deferred(&mut self) -> Option<&mut dyn Deferred> {
        None
    }

    /// Images and frames decoded since the last call, for an operator that decodes some.
    fn take_decoded(&mut self) -> Decoded {
        Decoded::default()
    }

    /// Whether the outputs' samples are those of inputs under other descriptions, so that no byte needs to move and
    /// `run_cpu` is not called.
    fn is_view(&self) -> bool {
        false
    }

    /// For a view, after `setup`: the regular input, and the sample of it, that sample `sample` of output `output` is.
    fn source(&self, _output: usize, sample: usize) -> (usize, usize) {
        (0, sample)
    }

    /// After `setup`, of an operator whose output has several samples in one, or that brings samples: where each sample
    /// of output `output` comes from.
    fn origins(&self, _inputs: &Inputs<'_>, _output: usize) -> Option<Origins> {
        None
    }

    /// Takes what whoever runs the pipeline expects of its outputs, as far as that is not known from the file: where
    /// every sample brings a type of its own, those of another fail alone, and have no say in what the batch is.
    fn expect(&mut self, _outputs: &[ValueType]) {}

    /// Whether outputs have other samples of the batch than inputs, by the one argument input.
    fn routing(&self) -> Option<Routing> {
        None
    }
}

/// How a conditional changes which samples of the batch a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// From one to two branches: where a predicate is true, and where it is false.
    Split,
    /// From the two branches back.
    Merge,
}

/// What the author of a model, or who makes an instance of it, may wish beyond what the pipeline says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preferences {
    /// Where JPEGs are decoded that can be decoded there; `None`: where it takes least time.
    pub jpeg_path: Option<crate::gpu::jpeg::Path>,
    /// Whether a file becomes the same pixels in every run, whatever runs beside it; then `jpeg_path` does not count.
    pub deterministic: bool,
    /// Who decodes JPEGs on the host.
    pub jpeg_decoder: crate::cpu::decode::JpegDecoder,
    /// Whether decoders may make smaller images where an operator behind them makes them smaller anyway: other pixels
    /// than DALI's.
    pub jpeg_scaled_decode: bool,
    /// Whether somebody may write to the memory of inputs while a batch runs, as a client of a server who shares it.
    /// What decides where operators read and write is copied first, then.
    pub inputs_may_change: bool,
    /// The formats of files that may be decoded.
    pub formats: Formats,
    /// Pixels of one encoded image; `None` is as many as [`crate::limits::MAX_IMAGE_PIXELS`].
    pub max_pixels: Option<u64>,
    /// Bytes of host memory that a batch may take at a time; `None`: only its single values are bounded.
    pub max_memory: Option<usize>,
}

/// Numbers of decoded images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decoded {
    /// By the JPEG engines of a device.
    pub engine: usize,
    /// By the device's SMs, damaged ones included.
    pub sms: usize,
    /// By threads of the host.
    pub cpu: usize,
    /// Frames of videos, by threads of the host.
    pub frames: usize,
    /// Frames of videos, by the video engines of a device.
    pub engine_frames: usize,
}

impl std::ops::AddAssign for Decoded {
    fn add_assign(&mut self, more: Self) {
        self.engine += more.engine;
        self.sms += more.sms;
        self.cpu += more.cpu;
        self.frames += more.frames;
        self.engine_frames += more.engine_frames;
    }
}

/// Some of an operator's regular inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSet {
    /// No input.
    None,
    /// The first.
    First,
    /// Every input.
    All,
}

impl InputSet {
    /// Whether regular input `input` is one of them.
    pub fn has(self, input: usize) -> bool {
        match self {
            Self::None => false,
            Self::First => input == 0,
            Self::All => true,
        }
    }
}

/// The definition of an operator: one line of the table of all operators.
pub struct OpDef {
    /// Schema name in a file, without a leading underscore.
    pub name: &'static str,
    /// Other spellings, of older or newer versions of DALI.
    pub aliases: &'static [&'static str],
    /// One sentence for `docs/reference/operators.md`.
    pub doc: &'static str,
    /// Where it runs.
    pub devices: &'static [Device],
    /// Fewest and most regular inputs.
    pub inputs: (usize, usize),
    /// Arguments it accepts.
    pub args: &'static [ArgSpec],
    /// Argument tables it shares with other operators.
    pub shared_args: &'static [&'static [ArgSpec]],
    /// The values that a model's parameter `arithmetic` may give its argument of that name, where the file does not.
    pub arithmetics: &'static [Arithmetic],
    /// Makes an instance from its arguments, which have the defaults of the tables. `inputs` is the number of regular
    /// inputs.
    pub build: &'static Build,
    /// How many outputs an instance with these arguments and so many inputs has.
    pub outputs: &'static Outputs,
    /// The kernels it launches: those that tests compile for all architectures. One for each path through the source,
    /// not one for each type.
    pub kernels: &'static [fn() -> Vec<KernelSpec>],
    /// The first of the regular inputs that are read on the host wherever the operator runs, as they say what to do
    /// rather than what to do it with. 0: it reads all of them there and writes to the device, which DALI calls
    /// `mixed`.
    pub host_inputs: Option<usize>,
    /// The regular inputs that are read where they are, in memory that a client may write to meanwhile. Their bytes
    /// decide values of outputs and nothing else. Those of all others may decide where the operator reads and writes
    /// (encoded files, extents, anchors): they are copied first, as every argument input is. Views do not read the
    /// input that they show.
    pub reads_in_place: InputSet,
    /// What its first input is, if that is an encoded file.
    pub encoded: Option<Encoded>,
    /// Of the other regular inputs: those of which the operator, on a device, copies itself what it looks at more than
    /// once.
    pub copies_input: InputSet,
    /// Whether on a device, too, only the work itself tells how large outputs become: the batch is waited for there in
    /// its middle, and what steps before have to mend is mended first.
    pub sizes_by_work: bool,
    /// Whether, by the arguments, a sample of the output depends on other samples of the batch: then a failure must be
    /// known before.
    pub mixes_samples: fn(&Args) -> bool,
    /// Whether samples may be sequences, whose layout begins with `F`.
    pub sequences: bool,
    /// Whether such inputs, the first one too, are taken apart into frames: the operator itself knows no sequences.
    pub splits_inputs: bool,
    /// Whether DALI writes the name with a leading underscore since 2.0.
    pub underscored: bool,
    /// Whether it is an input of the pipeline, which callers feed and nothing computes.
    pub is_input: bool,
    /// Of an input that videos are fed to: how they are cut into samples.
    pub videos: Option<&'static OfVideos>,
}

/// Makes an instance of an operator.
pub type Build = dyn Fn(&Args, usize) -> Result<Box<dyn Operator>> + Send + Sync;

/// What the arguments say of sequences.
pub type OfVideos = dyn Fn(&Args) -> Result<Sequences> + Send + Sync;

/// Counts the outputs of an instance, from its arguments and the number of its regular inputs.
pub type Outputs = dyn Fn(&Args, usize) -> Result<usize> + Send + Sync;

impl OpDef {
    /// What most operators have: one output, on the host; no arguments, other spellings or kernels. It cannot be built.
    /// Its inputs are copied before a client can change them: that is always safe.
    pub const BASE: Self = Self {
        name: "",
        aliases: &[],
        doc: "",
        devices: &[Device::Cpu],
        inputs: (1, 1),
        args: &[],
        shared_args: &[],
        arithmetics: &[],
        build: &|_, _| Err(Error::internal("an operator without `build`")),
        outputs: &one_output,
        kernels: &[],
        host_inputs: None,
        reads_in_place: InputSet::None,
        encoded: None,
        copies_input: InputSet::None,
        sizes_by_work: false,
        mixes_samples: |_| false,
        sequences: false,
        splits_inputs: false,
        underscored: false,
        is_input: false,
        videos: None,
    };

    /// Whether it runs on a device.
    pub fn runs_on_gpu(&self) -> bool {
        self.devices.contains(&Device::Gpu)
    }

    /// Whether regular input `i` is read on the host, wherever the operator runs.
    pub fn reads_on_host(&self, i: usize) -> bool {
        self.host_inputs.is_some_and(|first| i >= first)
    }

    /// Whether it reads on the host what it writes to a device.
    pub fn is_mixed(&self) -> bool {
        self.host_inputs == Some(0) && self.runs_on_gpu()
    }

    /// Whether it draws random numbers.
    pub fn is_random(&self) -> bool {
        self.all_args().any(|arg| arg.name == SEED)
    }

    /// Every argument in the operator's tables.
    pub fn all_args(&self) -> impl Iterator<Item = &'static ArgSpec> {
        self.arg_table().all()
    }

    /// Its tables of arguments, from which [`Args`] take defaults.
    pub fn arg_table(&self) -> ArgTable {
        ArgTable { own: self.args, shared: self.shared_args }
    }
}

/// `outputs` of an operator that has one.
pub fn one_output(_: &Args, _inputs: usize) -> Result<usize> {
    Ok(1)
}
