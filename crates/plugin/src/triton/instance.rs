//! An instance: the lanes that work on its batches, and the device that they use.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::api::{Instance, InstanceKind};
use super::exchange::{self, Exchange};
use super::execute;
use super::lanes::Lanes;
use super::metrics::OperatorSeconds;
use super::model::ModelState;
use gesso::error::{Error, Result};
use gesso::pipeline::{self, Fetch, Gpu, Pipeline, Preferences, Stream};
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

/// Who works on the batches.
enum Work {
    /// The thread that Triton calls from: one batch at a time, so nobody ever waits for this lock.
    Caller(Box<Mutex<Lane>>),
    /// Threads of ours: as many batches at a time.
    Lanes(Lanes<Vec<Exchange>>),
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
        // The next batch of a seeded pipeline goes on with the numbers of the last: two lanes would draw each twice.
        let default = if gpu.is_some() && !pipeline.is_seeded() { DEVICE_BATCHES } else { HOST_BATCHES };
        let count = model.settings.max_batches_in_flight.unwrap_or(default);
        let preferences = Preferences {
            jpeg_path: model.settings.jpeg_path,
            jpeg_decoder: model.settings.jpeg_decoder.unwrap_or_default(),
            jpeg_scaled_decode: model.settings.jpeg_scaled_decode,
        };
        let lane = || {
            let device = ordinal.map(|ordinal| LaneDevice::new(model, ordinal));
            Ok(Lane {
                instance: *instance,
                model: Arc::clone(model),
                pipeline: Arc::clone(&pipeline),
                runner: pipeline.instance_with(model.settings.num_threads, gpu.as_ref(), &preferences)?,
                seconds: OperatorSeconds::new(
                    instance.server(),
                    &model.labels(),
                    &pipeline.operators(),
                    gpu.is_some(),
                ),
                device,
            })
        };
        let work = if count == 1 {
            Work::Caller(Box::new(Mutex::new(lane()?)))
        } else {
            let workers = (0..count).map(|_| lane().map(worker)).collect::<Result<Vec<_>>>()?;
            Work::Lanes(Lanes::start(workers)?)
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

    /// Answers every exchange, now or, from another thread, later. Returns when the instance can take the next batch.
    pub(super) fn execute(&self, exchanges: &mut Vec<Exchange>) {
        match &self.work {
            Work::Caller(lane) => execute::execute(&mut lane.lock(), exchanges),
            Work::Lanes(lanes) => lanes.submit(std::mem::take(exchanges)),
        }
    }
}

/// What a thread does with the batches that it is given.
fn worker(mut lane: Lane) -> impl FnMut(Vec<Exchange>) {
    move |exchanges| exchange::answer(exchanges, |exchanges| execute::execute(&mut lane, exchanges))
}

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

/// What works on one batch at a time.
pub(super) struct Lane {
    /// Triton's handle, to report to. It is valid until the instance is finalized, which waits for its lanes.
    pub(super) instance: Instance,
    /// What it shares with the other instances.
    pub(super) model: Arc<ModelState>,
    /// What it runs.
    pub(super) pipeline: Arc<Pipeline>,
    /// Runs the batches.
    pub(super) runner: pipeline::Instance,
    /// Where it counts the time of its operators.
    pub(super) seconds: OperatorSeconds,
    /// The device of an instance that has one, even if its pipeline needs none: tensors may come from there.
    pub(super) device: Option<LaneDevice>,
}

/// How a lane gets at memory of its device outside of a batch.
pub(super) struct LaneDevice {
    /// The device.
    pub(super) link: Link,
    /// Where tensors land that are needed on the host.
    pub(super) landing: Option<Fetch>,
}

impl LaneDevice {
    fn new(model: &Arc<ModelState>, ordinal: usize) -> Self {
        Self { link: Link { model: Arc::clone(model), ordinal, stream: OnceLock::new() }, landing: None }
    }
}

/// A device, opened when something needs it.
pub(super) struct Link {
    model: Arc<ModelState>,
    /// Its number.
    pub(super) ordinal: usize,
    stream: OnceLock<Arc<Stream>>,
}

impl Link {
    /// A stream for copies.
    ///
    /// # Errors
    /// What opening the device fails with.
    pub(super) fn stream(&self) -> Result<&Arc<Stream>> {
        if let Some(stream) = self.stream.get() {
            return Ok(stream);
        }
        let stream = self.model.gpu(self.ordinal)?.stream()?;
        Ok(self.stream.get_or_init(|| stream))
    }
}
