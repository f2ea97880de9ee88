//! The device's JPEG engines, through nvJPEG. A batch is dealt to lanes: each has a thread, a stream and a decoder
//! state, and puts its share into its stream with one call. It must not know operators, or where else images are
//! decoded.
//!
//! ```text
//! recorder's stream   --ready-->                                         waits for every lane's `done` --> kernels
//! lane 0 (the caller's thread)   waits for ready, decodes its share, done
//! lane 1 (a thread of its own)   waits for ready, decodes its share, done
//! ```

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::sys::{Flags, Format, Handle, Image, State};
use super::{DevicePath, Frame, Picture, Sampling, Task, sample};
use crate::error::{Error, ErrorKind, Result};
use crate::gpu::{DeviceBuffer, Event, Gpu, Recorder, Stream};
use crate::memory::DeviceBytes;

/// How many lanes a batch is dealt to: the first entry whose size is not below the batch's. The last is for all larger
/// ones.
const LANES: &[(usize, usize)] = &[(usize::MAX, 1)];

/// How the engines are used.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// What is written.
    pub format: Format,
    /// Whether chroma is upsampled smoothly, as libjpeg does; else the nearest sample is taken.
    pub interpolate: bool,
    /// Lanes for every batch, to measure what the table of lanes should say; `None`: the table decides.
    pub lanes: Option<usize>,
    /// Whether the library may keep further images on the way to the engines.
    pub pipeline: bool,
    /// Whether the library allocates ahead, which is said to make it use a memory pool.
    pub preallocate: bool,
}

impl Settings {
    /// What serves best, for `format`.
    pub fn new(format: Format, interpolate: bool) -> Self {
        // Further images on the way wait for kernels of the last ones, which wait for those of a model: 1,800 images a
        // second beside one, 25,000 without them, and as many as with them where the device has nothing else to do.
        Self { format, interpolate, lanes: None, pipeline: false, preallocate: false }
    }

    fn lanes(&self, images: usize) -> usize {
        let table = || LANES.iter().find(|(size, _)| images <= *size).map_or(1, |(_, lanes)| *lanes);
        self.lanes.unwrap_or_else(table).clamp(1, images.max(1))
    }
}

/// The engines of a device, as one instance of an operator uses them.
pub struct Engines {
    settings: Settings,
    handle: Arc<Handle>,
    count: usize,
    /// What they did not refuse when they were tried.
    samplings: Vec<Sampling>,
    /// Recorded into the stream in which destinations were allocated.
    ready: Arc<Event>,
    first: Lane,
    /// Lane 1 and so on.
    workers: Vec<Worker>,
    /// Lanes that the batch at hand uses.
    used: usize,
}

impl Engines {
    /// Opens the engines of `gpu`, and decodes a picture of every sampling: what is refused now is not tried again, and
    /// what the library sets up when it is first called is there.
    ///
    /// # Errors
    /// Unavailable, when nvJPEG is not there or the device has no engines; the text says which.
    pub fn open(gpu: &Arc<Gpu>, settings: Settings) -> Result<Self> {
        let flags = Flags { interpolate: settings.interpolate, no_pipeline: !settings.pipeline };
        let (handle, count) = Handle::open(gpu, flags)?;
        let first = Lane::new(&handle, gpu, &settings)?;
        let ready = Arc::new(Event::new(gpu)?);
        let (workers, samplings) = (Vec::new(), Sampling::ALL.to_vec());
        let mut engines = Self { settings, handle, count, samplings, ready, first, workers, used: 0 };
        engines.samplings = engines.try_samplings()?;
        if engines.samplings.is_empty() {
            return Err(Error::new(ErrorKind::Unavailable, "the JPEG engines decode no picture of ours"));
        }
        Ok(engines)
    }

    fn try_samplings(&mut self) -> Result<Vec<Sampling>> {
        let stream = Arc::clone(&self.first.stream);
        let mut taken = Vec::new();
        for sampling in Sampling::ALL {
            let file = sample::picture(sampling)?;
            let picture = Picture::read(&file).ok_or_else(|| Error::internal("our picture is unusual"))?;
            let bytes = picture.frame().width * picture.frame().height * self.settings.format.channels();
            let buffer = Arc::new(DeviceBuffer::new(&stream, bytes)?);
            let tasks = [Task { picture, target: DeviceBytes::of(&buffer, 0, bytes) }];
            let refused = self.start(&stream, &tasks);
            // The picture goes away.
            self.settle()?;
            if refused?.is_empty() {
                taken.push(sampling);
            } else {
                tracing::info!("the JPEG engines do not decode sampling {sampling:?}");
            }
        }
        Ok(taken)
    }

    /// How many engines there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many lanes a batch of `images` is dealt to; they are there then.
    fn lanes(&mut self, gpu: &Arc<Gpu>, images: usize) -> Result<usize> {
        let lanes = self.settings.lanes(images);
        while self.workers.len() + 1 < lanes {
            let lane = Lane::new(&self.handle, gpu, &self.settings)?;
            self.workers.push(Worker::new(lane, self.workers.len() + 1)?);
        }
        Ok(lanes)
    }

    /// Waits until no lane does anything.
    fn settle(&self) -> Result<()> {
        let streams =
            std::iter::once(&self.first.stream).chain(self.workers.iter().map(|worker| &worker.stream));
        let mut settled = Ok(());
        for stream in streams {
            settled = settled.and(stream.synchronize());
        }
        settled
    }
}

impl DevicePath for Engines {
    fn format(&self) -> Format {
        self.settings.format
    }

    fn samplings(&self) -> &[Sampling] {
        &self.samplings
    }

    fn prepare(&mut self, recorder: &mut Recorder, images: usize) -> Result<Vec<Arc<Event>>> {
        let lanes = self.lanes(recorder.gpu(), images)?;
        let workers = self.workers.iter().map(|worker| (&worker.stream, &worker.done));
        let used = std::iter::once((&self.first.stream, &self.first.done)).chain(workers).take(lanes);
        let done = |(stream, done): (&Arc<Stream>, &Arc<Event>)| {
            recorder.work_in(stream);
            Arc::clone(done)
        };
        Ok(used.map(done).collect())
    }

    fn start(&mut self, stream: &Arc<Stream>, tasks: &[Task<'_>]) -> Result<Vec<usize>> {
        self.used = 0;
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let channels = self.settings.format.channels();
        for task in tasks {
            task.check(channels)?;
        }
        let lanes = self.lanes(stream.gpu(), tasks.len())?;
        self.ready.record(stream)?;
        // Sorted by sampling and size and dealt round-robin, so that lanes get equal shares.
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        let key = |i: usize| {
            let Frame { sampling, width, height } = *tasks[i].picture.frame();
            (sampling, std::cmp::Reverse(width * height), i)
        };
        order.sort_unstable_by_key(|&i| key(i));
        let share = |lane: usize| {
            let mine = order.iter().copied().skip(lane).step_by(lanes);
            Share::new(mine.map(|i| (i, &tasks[i])), channels, &self.ready)
        };
        self.used = lanes;
        let mut in_flight = InFlight::default();
        for (worker, lane) in self.workers.iter().take(lanes - 1).zip(1..) {
            in_flight.send(worker, share(lane));
        }
        let mut mine = share(0);
        let outcome = self.first.decode(&mut mine);
        in_flight.join();
        let mut refused = Vec::new();
        let mut failed = in_flight.failed.take();
        for (share, outcome) in std::iter::once((mine, outcome)).chain(in_flight.outcomes.drain(..)) {
            match outcome {
                Ok(places) => refused.extend(places.into_iter().filter_map(|place| share.tasks.get(place))),
                Err(error) => failed = Some(error),
            }
        }
        drop(in_flight);
        match failed {
            None => Ok(refused),
            Some(error) => {
                // The other lanes' work must not outlive this error: their pictures may go away with it.
                self.used = 0;
                self.settle()?;
                Err(error)
            }
        }
    }

    fn join(&self, recorder: &mut Recorder) {
        let done = self.workers.iter().map(|worker| &worker.done);
        for done in std::iter::once(&self.first.done).chain(done).take(self.used) {
            recorder.wait_for(Arc::clone(done));
        }
    }
}

/// Files of one lane. The pointers are of [`Engines::start`]'s tasks, which outlive its wait for the lane.
struct Share {
    /// Which task each file is.
    tasks: Vec<usize>,
    data: Vec<*const u8>,
    lengths: Vec<usize>,
    images: Vec<Image>,
    ready: Arc<Event>,
}

// SAFETY: what the pointers lead to is only read, and stays until the thread that made the share has got it back.
unsafe impl Send for Share {}

impl Share {
    fn new<'a>(
        tasks: impl Iterator<Item = (usize, &'a Task<'a>)>,
        channels: usize,
        ready: &Arc<Event>,
    ) -> Self {
        let mut share = Self {
            tasks: Vec::new(),
            data: Vec::new(),
            lengths: Vec::new(),
            images: Vec::new(),
            ready: Arc::clone(ready),
        };
        for (index, task) in tasks {
            let bytes = task.picture.bytes();
            share.tasks.push(index);
            share.data.push(bytes.as_ptr());
            share.lengths.push(bytes.len());
            share.images.push(Image::new(task.target.address(), task.picture.frame().width * channels));
        }
        share
    }
}

/// Places in a share whose files the engines refused.
type Refused = Vec<usize>;

/// A decoder state with its stream. Used by one thread.
struct Lane {
    // Before the stream, which it uses.
    state: State,
    stream: Arc<Stream>,
    done: Arc<Event>,
}

impl Lane {
    fn new(handle: &Arc<Handle>, gpu: &Arc<Gpu>, settings: &Settings) -> Result<Self> {
        let state = State::new(handle, settings.format, settings.preallocate)?;
        Ok(Self { state, stream: gpu.stream()?, done: Arc::new(Event::new(gpu)?) })
    }

    /// Puts `share` into the stream and marks its end with `done`.
    fn decode(&mut self, share: &mut Share) -> Result<Refused> {
        self.stream.wait(&share.ready)?;
        let Share { data, lengths, images, .. } = share;
        let mut refused = Vec::new();
        // One bad file fails its whole call: halves are tried until it is alone. The next part is the last of the list.
        let mut parts = vec![(0, data.len())];
        while let Some((start, end)) = parts.pop() {
            let (Some(data), Some(lengths), Some(images)) =
                (data.get(start..end), lengths.get(start..end), images.get_mut(start..end))
            else {
                return Err(Error::internal("a share without its files"));
            };
            // SAFETY: the files and destinations are those of tasks whose sizes were checked; the caller of
            // `Engines::start` keeps them until the batch is done. A lane is idle when a batch starts, because the
            // recorder has waited for the last one, also when that was given up; and between two parts the stream is
            // waited for.
            let decoded = unsafe { self.state.decode(data, lengths, images, &self.stream) };
            if let Err(error) = &decoded {
                if error.kind() == ErrorKind::Unavailable {
                    // Halves would fail too, and so would each of their files.
                    self.stream.synchronize()?;
                    return Err(error.clone());
                }
                tracing::debug!("the JPEG engines refuse a share of {}: {error}", data.len());
                match data.len() {
                    0 | 1 => refused.push(start),
                    more => parts.extend([(start + more / 2, end), (start, start + more / 2)]),
                }
            }
            if decoded.is_err() || !parts.is_empty() {
                self.stream.synchronize()?;
            }
        }
        self.done.record(&self.stream)?;
        Ok(refused)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // The state must not go before what it does; after a panic that may still be under way.
        let _ = self.stream.synchronize();
    }
}

/// A lane with a thread of its own.
struct Worker {
    shares: SyncSender<Share>,
    outcomes: Receiver<(Share, Result<Refused>)>,
    stream: Arc<Stream>,
    done: Arc<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn new(lane: Lane, number: usize) -> Result<Self> {
        let (stream, done) = (Arc::clone(&lane.stream), Arc::clone(&lane.done));
        let (shares, work) = sync_channel(1);
        let (answers, outcomes) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(format!("gesso-jpeg-{number}"))
            .spawn(move || serve(lane, &work, &answers))
            .map_err(|error| Error::new(ErrorKind::Unavailable, format!("a decoder thread: {error}")))?;
        Ok(Self { shares, outcomes, stream, done, thread: Some(thread) })
    }
}

/// Decodes shares until nobody sends any more.
fn serve(mut lane: Lane, work: &Receiver<Share>, answers: &SyncSender<(Share, Result<Refused>)>) {
    while let Ok(mut share) = work.recv() {
        let outcome = lane.decode(&mut share);
        if answers.send((share, outcome)).is_err() {
            return;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The thread ends when its sender is gone.
        let (closed, _) = sync_channel(1);
        self.shares = closed;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Shares that workers have: waited for in any case, because they point to the caller's memory.
#[derive(Default)]
struct InFlight<'a> {
    workers: Vec<&'a Worker>,
    outcomes: Vec<(Share, Result<Refused>)>,
    failed: Option<Error>,
}

impl<'a> InFlight<'a> {
    fn send(&mut self, worker: &'a Worker, share: Share) {
        match worker.shares.send(share) {
            Ok(()) => self.workers.push(worker),
            Err(_) => self.failed = Some(Error::internal("a decoder thread has ended")),
        }
    }

    fn join(&mut self) {
        for worker in self.workers.drain(..) {
            match worker.outcomes.recv() {
                Ok(answer) => self.outcomes.push(answer),
                Err(_) => self.failed = Some(Error::internal("a decoder thread has ended")),
            }
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.join();
    }
}
