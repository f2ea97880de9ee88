//! An instance: the lanes that work on its batches, and who drives them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use parking_lot::Mutex;

use super::api::{Instance, InstanceKind};
use super::exchange::{self, Claim};
use super::execute::{self, Turn};
use super::lane::{Lane, LaneDevice, Slow};
use super::metrics::OperatorSeconds;
use super::model::ModelState;
use super::slow;
use super::state::Holds;
use gesso::error::{Error, Result};
use gesso::lanes::{Lanes, Places, Ticket};
use gesso::pipeline::{DEFAULT_THREADS, Gpu, Pipeline, Preferences};
use gesso::tensor::Device;

/// Batches in flight of an instance on a device when the configuration does not say: one is on the device while the next
/// is gathered.
const DEVICE_BATCHES: usize = 2;

/// Batches in flight of an instance on host threads when the configuration does not say: a batch occupies all of them.
const HOST_BATCHES: usize = 1;

/// What one instance needs to execute requests.
pub(super) struct InstanceState {
    work: Work,
}

impl Holds for Instance {
    type State = InstanceState;
    const WHAT: &'static str = "the model instance";
}

/// Who works on the batches.
enum Work {
    /// The thread that Triton calls from: one batch at a time, so nobody ever waits for this lock.
    Caller(Box<Mutex<Lane>>),
    /// Threads of ours: as many batches at a time.
    Lanes(Lanes<Job>, Option<Arc<Places>>),
}

impl InstanceState {
    /// Makes an instance of a loaded model.
    ///
    /// # Errors
    /// Unavailable when its device cannot be used, saying what is missing; what the pipeline fails with.
    pub(super) fn new(instance: &Instance, model: &Arc<ModelState>) -> Result<Self> {
        let name = instance.name()?;
        // What is of no kind of ours runs on the host.
        let ordinal = match instance.kind()? {
            InstanceKind::Gpu => Some(usize::try_from(instance.device()?).map_err(|_| {
                Error::invalid(format!("instance `{name}` is on a device with a negative number"))
            })?),
            _ => None,
        };
        let pipeline = model.pipeline(if ordinal.is_some() { Device::Gpu } else { Device::Cpu })?;
        let gpu = match ordinal {
            Some(ordinal) if pipeline.needs_gpu() => Some(open(model, &name, ordinal)?),
            _ => None,
        };
        // Which numbers a branch draws depends on what went into it before: only one lane that runs all batches knows.
        let default = if gpu.is_some() && !pipeline.needs_order() { DEVICE_BATCHES } else { HOST_BATCHES };
        let count = model.settings.max_batches_in_flight.unwrap_or(default);
        let preferences = Preferences {
            jpeg_path: model.settings.jpeg_path,
            jpeg_decoder: model.settings.jpeg_decoder.unwrap_or_default(),
            jpeg_scaled_decode: model.settings.jpeg_scaled_decode,
            // A client's shared memory.
            inputs_may_change: true,
            max_pixels: model.settings.quota.max_pixels,
            max_memory: Some(model.settings.quota.max_memory()),
        };
        let maker = Maker {
            instance: *instance,
            model: Arc::clone(model),
            pipeline: Arc::clone(&pipeline),
            preferences,
            ordinal,
            gpu: gpu.clone(),
        };
        let mut lanes = (0..count).map(|_| maker.lane()).collect::<Result<Vec<_>>>()?;
        // On a device a batch is made of what all requests need; numbers of a branch, and samples that look at others, need the others.
        let apart = gpu.is_none() && !pipeline.needs_order();
        if apart && lanes.iter().all(|lane| !lane.runner.mixes_samples()) {
            let slow = maker.slow()?;
            lanes.iter_mut().for_each(|lane| lane.slow = Some(slow.clone()));
        }
        let only = if count == 1 { lanes.pop() } else { None };
        let work = if let Some(lane) = only {
            Work::Caller(Box::new(Mutex::new(lane)))
        } else {
            let workers = lanes.into_iter().map(worker).collect();
            // The next batch goes on with the numbers of the last, whichever lanes draw them.
            let counts = pipeline.is_seeded() && !pipeline.needs_order() && !pipeline.takes_videos();
            let places = counts.then(Arc::default);
            Work::Lanes(Lanes::start(workers)?, places)
        };
        tracing::info!(
            model = model.name,
            instance = name,
            device = gpu.as_ref().map_or("host", |gpu| gpu.name()),
            batches_in_flight = count,
            "instance is ready"
        );
        Ok(Self { work })
    }

    /// Answers every claim, now or, from another thread, later. Returns when the instance can take the next batch.
    pub(super) fn execute(&self, claims: &mut Vec<Claim>) {
        match &self.work {
            Work::Caller(lane) => execute::execute(&mut lane.lock(), claims, Turn::Next),
            Work::Lanes(lanes, places) => {
                let ticket = places.as_ref().map(Places::ticket);
                lanes.submit((std::mem::take(claims), ticket));
            }
        }
    }
}

/// What all lanes of an instance are made of.
struct Maker {
    instance: Instance,
    model: Arc<ModelState>,
    pipeline: Arc<Pipeline>,
    preferences: Preferences,
    ordinal: Option<usize>,
    gpu: Option<Arc<Gpu>>,
}

impl Maker {
    fn lane(&self) -> Result<Lane> {
        let Self { instance, model, pipeline, preferences, ordinal, gpu } = self;
        let mut runner = pipeline.instance_with(model.settings.num_threads, gpu.as_ref(), preferences)?;
        runner.expect(&model.tensors.output_types());
        Ok(Lane {
            instance: *instance,
            model: Arc::clone(model),
            pipeline: Arc::clone(pipeline),
            runner,
            seconds: OperatorSeconds::new(
                instance.server(),
                &model.labels(),
                &pipeline.operators(),
                gpu.is_some(),
            ),
            device: ordinal.map(|ordinal| LaneDevice::new(model, ordinal)),
            slow: None,
        })
    }

    /// The slow lane, which makes its lane when it needs it.
    fn slow(self) -> Result<Slow> {
        let wanted = self.model.settings.num_threads.or(self.pipeline.num_threads());
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = wanted.unwrap_or(DEFAULT_THREADS).clamp(1, cores);
        let from = self.model.settings.quota.slow_request();
        let background = slow::start(move || self.lane())?;
        Ok(Slow { background, from, threads: u32::try_from(threads).unwrap_or(1) })
    }
}

/// What a thread does with the batches that it is given.
fn worker(mut lane: Lane) -> impl FnMut(Job) {
    move |(claims, ticket)| {
        let turn = ticket.map_or(Turn::Next, Turn::Ticket);
        exchange::answer(claims, |claims| execute::execute(&mut lane, claims, turn));
    }
}

/// A batch for a lane, with its place among those whose samples draw random numbers.
type Job = (Vec<Claim>, Option<Ticket>);

fn open(model: &ModelState, instance: &str, ordinal: usize) -> Result<Arc<Gpu>> {
    model.gpu(ordinal).map_err(|error| {
        Error::new(
            error.kind(),
            format!(
                "instance `{instance}` is of kind {} on device {ordinal}, which cannot be used: {error}; or let it run on \
                 host threads: set `instance_group {{ kind: KIND_CPU }}` in config.pbtxt",
                InstanceKind::Gpu
            ),
        )
    })
}
