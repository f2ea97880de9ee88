//! An instance: the lanes that work on its batches, and who drives them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::allocator;
use super::api::{Instance, InstanceKind};
use super::arrivals::Arrivals;
use super::brief::Brief;
use super::crowd::Crowd;
use super::exchange::{self, Claim};
use super::execute::{self, BatchOrder};
use super::lane::{Lane, LaneDevice, Slow};
use super::metrics::OperatorSeconds;
use super::model::ModelState;
use super::slow;
use super::state::Holds;
use super::streams::Streams;
use gesso::error::{Error, Result};
use gesso::lanes::{Lanes, Places, Spares, Ticket};
use gesso::limits;
use gesso::pipeline::{self, DEFAULT_THREADS, Gpu, Pipeline, Preferences};
use gesso::tensor::Device;
use gesso::threads::Foreground;

/// Batches in flight of an instance on a device when the configuration does not say: two are on the device while the
/// next is gathered and the answers of the one before are sent.
const DEVICE_BATCHES: usize = 4;

/// The same of an instance on host threads: those that have no sample left to begin begin with the next batch, while
/// the last samples are computed and the answers sent.
const HOST_BATCHES: usize = 2;

/// What one instance needs to execute requests.
pub(super) struct InstanceState {
    /// Requests that wait for files. Ends before those who answer them.
    arrivals: Option<Arrivals>,
    runs: Arc<Runs>,
    model: Arc<ModelState>,
    /// Of a pipeline that takes videos.
    streams: Option<Streams>,
    /// Batches of the server's own that are to come, before those of clients.
    warm_ups: AtomicUsize,
}

impl Drop for InstanceState {
    fn drop(&mut self) {
        self.model.instances.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Holds for Instance {
    type State = InstanceState;
    const WHAT: &'static str = "the model instance";
}

/// Who works on the batches, for those who bring them: one at a time.
struct Runs {
    work: Work,
    /// With memory for the beginnings of files.
    turn: Mutex<Vec<u8>>,
}

/// Who works on the batches.
enum Work {
    /// The thread that Triton calls from: one batch at a time, so nobody ever waits for this lock.
    Caller(Box<Mutex<Lane>>),
    /// Threads of ours: as many batches at a time. Or, where there may be a crowd or not, the caller as long as there
    /// is none, for those that are brief.
    Lanes { threads: Lanes<Job>, stack: Arc<Stack>, rows: Rows, brief: Option<Brief> },
}

/// What an instance's threads have together.
struct Stack {
    /// Those that work on no batch. The next one is what worked last: its memory is in the processor's caches.
    idle: Mutex<Vec<Lane>>,
    crowd: Mutex<Crowd>,
}

/// The rows in which batches have places that are worked on at the same time.
struct Rows {
    /// Of samples that draw random numbers: the next batch goes on with the numbers of the last, whichever lanes draw
    /// them.
    numbers: Option<Arc<Places>>,
    /// For memory, of which a later batch may take less: on the host, where a video is not a batch.
    memory: Option<Arc<Places>>,
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
        let default = match gpu {
            // Which numbers a branch draws depends on what went into it before: only one lane that runs all batches
            // knows.
            _ if pipeline.needs_order() => 1,
            Some(_) => DEVICE_BATCHES,
            // A video is many batches.
            None if pipeline.takes_videos() => 1,
            None => HOST_BATCHES,
        };
        let count = model.settings.max_batches_in_flight.unwrap_or(default);
        let preferences = Preferences {
            jpeg_path: model.settings.jpeg_path,
            deterministic: model.settings.deterministic,
            formats: model.settings.formats.unwrap_or_default(),
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
        let mut lanes = maker.lanes(count)?;
        // On a device a batch is made of what all requests need; numbers of a branch, and samples that look at others,
        // need the others.
        let apart = gpu.is_none() && !pipeline.needs_order();
        if apart && lanes.iter().all(|lane| !lane.runner.mixes_samples()) {
            let slow = maker.slow()?;
            lanes.iter_mut().for_each(|lane| lane.slow = Some(slow.clone()));
        }
        // A branch draws its numbers in one lane alone; so does a video, whose numbers follow from the samples that its
        // lane has run.
        let is_whole = pipeline.needs_order() || (pipeline.takes_videos() && pipeline.is_seeded());
        let spares = if gpu.is_none() && !is_whole { Some(maker.spare(&lanes)?) } else { None };
        let only = if count == 1 && spares.is_none() { lanes.pop() } else { None };
        let work = if let Some(lane) = only {
            Work::Caller(Box::new(Mutex::new(lane)))
        } else {
            let stack = Arc::new(Stack { idle: Mutex::new(lanes), crowd: Mutex::default() });
            let workers = (0..count).map(|_| worker(Arc::clone(&stack))).collect();
            let counts = pipeline.is_seeded() && !pipeline.needs_order() && !pipeline.takes_videos();
            let bounds = gpu.is_none() && !pipeline.takes_videos();
            let rows = Rows { numbers: counts.then(Arc::default), memory: bounds.then(Arc::default) };
            let adapts = model.settings.max_batches_in_flight.is_none() && !pipeline.takes_videos();
            let brief = Brief { model: Arc::clone(model), pipeline: Arc::clone(&pipeline) };
            let brief = adapts.then_some(brief);
            let mut threads = Lanes::start(workers)?;
            if let Some(spare) = spares {
                threads = threads.with_spares(spare.spares(&stack));
            }
            Work::Lanes { threads, stack, rows, brief }
        };
        tracing::info!(
            model = model.name,
            instance = name,
            device = gpu.as_ref().map_or("host", |gpu| gpu.name()),
            batches_in_flight = count,
            "instance is ready"
        );
        model.instances.fetch_add(1, Ordering::Relaxed);
        let streams = pipeline.takes_videos().then(|| Streams::new(model));
        let runs = Arc::new(Runs { work, turn: Mutex::default() });
        let arrivals = model.downloads.as_ref().map(|_| {
            let runs = Arc::clone(&runs);
            Arrivals::start(model, move |claims| runs.execute(claims))
        });
        let warm_ups = AtomicUsize::new(model.warm_ups);
        Ok(Self { arrivals: arrivals.transpose()?, runs, model: Arc::clone(model), streams, warm_ups })
    }

    /// Answers every claim, now or, from another thread, later. Returns when the instance can take the next batch.
    pub(super) fn execute(&self, claims: &mut Vec<Claim>) {
        self.admit(claims);
        if let Some(arrivals) = &self.arrivals {
            arrivals.take(claims);
        }
        if !claims.is_empty() {
            self.runs.execute(claims);
        }
    }

    /// Refuses those of `claims` whose clients have reached their limits, and notes which pieces of videos others are.
    fn admit(&self, claims: &mut Vec<Claim>) {
        if self.model.clients.is_none() && self.streams.is_none() {
            return;
        }
        let clients = self.model.clients.as_ref().filter(|_| !self.is_warm_up());
        for mut claim in std::mem::take(claims) {
            match clients.map(|clients| clients.admit(claim.request())).transpose() {
                Ok(seat) => {
                    claim.set_seat(seat);
                    if let Some(streams) = &self.streams {
                        claim.set_piece(streams.enter(claim.request()));
                    }
                    claims.push(claim);
                }
                Err(error) => {
                    if let Some(streams) = &self.streams {
                        streams.skip(claim.request());
                    }
                    self.model.metrics.failed(&error);
                    claim.fail(&error);
                }
            }
        }
    }

    /// Whether a batch is the server's own. Those come first, and are counted here.
    fn is_warm_up(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        self.warm_ups.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }
}

impl Runs {
    fn execute(&self, claims: &mut Vec<Claim>) {
        let mut head = self.turn.lock();
        match &self.work {
            Work::Caller(lane) => execute::execute(&mut lane.lock(), claims, BatchOrder::Next),
            Work::Lanes { threads, stack, rows, brief } => {
                let job = Job {
                    claims: std::mem::take(claims),
                    number: rows.numbers.as_ref().map(Places::ticket),
                    memory: rows.memory.as_ref().map(Places::ticket),
                };
                let (is_busy, requests) = (threads.is_busy(), job.claims.len());
                let overlaps = stack.crowd.lock().comes(Instant::now(), requests, is_busy);
                let is_brief = |brief: &Brief| brief.is(&job.claims, &mut head);
                if !is_busy && !overlaps && brief.as_ref().is_some_and(is_brief) {
                    stack.work(job);
                } else {
                    threads.submit(job, requests);
                }
            }
        }
    }
}

/// What all lanes of an instance are made of.
#[derive(Clone)]
struct Maker {
    instance: Instance,
    model: Arc<ModelState>,
    pipeline: Arc<Pipeline>,
    preferences: Preferences,
    ordinal: Option<usize>,
    gpu: Option<Arc<Gpu>>,
}

impl Maker {
    /// The lanes of an instance. On the host they have its threads together; on a device each has threads that prepare
    /// its batch.
    fn lanes(&self, count: usize) -> Result<Vec<Lane>> {
        let first = self.lane()?;
        let next = |_| match self.gpu {
            Some(_) => self.lane(),
            None => self.lane_of(first.runner.beside(&self.preferences)?),
        };
        let others = (1..count).map(next).collect::<Result<Vec<_>>>()?;
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// A lane with threads of its own.
    fn lane(&self) -> Result<Lane> {
        let threads = self.model.settings.num_threads;
        self.lane_of(self.pipeline.instance_with(threads, self.gpu.as_ref(), &self.preferences)?)
    }

    fn lane_of(&self, mut runner: pipeline::Instance) -> Result<Lane> {
        let Self { instance, model, pipeline, ordinal, gpu, .. } = self;
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

    /// What spare lanes are made of, which share what `lanes` share.
    fn spare(&self, lanes: &[Lane]) -> Result<Spare> {
        let [first, ..] = lanes else { return Err(Error::internal("an instance without a lane")) };
        let like = first.runner.beside(&self.preferences)?;
        Ok(Spare { maker: self.clone(), like: Mutex::new(like), slow: first.slow.clone() })
    }

    /// The slow lane, which makes its lane when it needs it.
    fn slow(&self) -> Result<Slow> {
        let wanted = self.model.settings.num_threads.or(self.pipeline.num_threads());
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = wanted.unwrap_or(DEFAULT_THREADS).clamp(1, cores);
        let from = self.model.settings.quota.slow_request();
        let others = Arc::<Foreground>::default();
        let neighbours = Arc::clone(&others);
        let maker = self.clone();
        let background = slow::start(move || {
            let lane = maker.lane()?;
            lane.runner.yield_core_to(&neighbours);
            Ok(lane)
        })?;
        Ok(Slow { background, from, threads: u32::try_from(threads).unwrap_or(1), others })
    }
}

/// What a thread does with the batches that it is given.
fn worker(stack: Arc<Stack>) -> impl FnMut(Job) {
    move |job| stack.work(job)
}

impl Stack {
    /// Answers all claims of a batch. Not by more threads at a time than there are lanes: then claims are dropped, and
    /// say so.
    fn work(&self, Job { claims, number, memory }: Job) {
        let Some(mut lane) = self.idle.lock().pop() else { return };
        let memory = memory.map(|ticket| lane.runner.memory().in_turn(ticket));
        let turn = number.map_or(BatchOrder::Next, BatchOrder::Ticket);
        exchange::answer(claims, |claims| execute::execute(&mut lane, claims, turn));
        drop(memory);
        self.idle.lock().push(lane);
        self.crowd.lock().ends(Instant::now());
    }
}

/// Makes lanes for an instance whose others all work on batches that overstay.
struct Spare {
    maker: Maker,
    /// What they are made after. It runs nothing.
    like: Mutex<pipeline::Instance>,
    slow: Option<Slow>,
}

impl Spare {
    fn spares(self, stack: &Arc<Stack>) -> Spares<Job> {
        let stack = Arc::clone(stack);
        let make = move || {
            let runner = self.like.lock().beside(&self.maker.preferences)?;
            let lane = Lane { slow: self.slow.clone(), ..self.maker.lane_of(runner)? };
            tracing::info!(
                model = self.maker.model.name,
                "all lanes are at work for long: another one comes"
            );
            stack.idle.lock().push(lane);
            let place = SparePlace(Arc::clone(&stack));
            Ok(Box::new(move |job| place.0.work(job)) as Box<dyn FnMut(Job) + Send>)
        };
        Spares {
            make: Box::new(make),
            most: limits::MAX_SPARE_LANES,
            patience: Duration::from_millis(limits::OVERSTAY_MS),
            idle: Duration::from_millis(limits::SLOW_IDLE_MS),
        }
    }
}

/// That a stack has one lane more, until this is dropped.
struct SparePlace(Arc<Stack>);

impl Drop for SparePlace {
    fn drop(&mut self) {
        // That which worked the longest ago. Its thread works on nothing, so there is one.
        let mut idle = self.0.idle.lock();
        let lane = (!idle.is_empty()).then(|| idle.remove(0));
        drop(idle);
        drop(lane);
        allocator::give_back();
    }
}

/// A batch for a lane, with its places in the [`Rows`].
struct Job {
    claims: Vec<Claim>,
    number: Option<Ticket>,
    memory: Option<Ticket>,
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
