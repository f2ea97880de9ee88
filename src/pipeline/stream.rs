//! Batches one after the other, as fast as they are taken: sources are asked ahead, several batches are worked on at
//! once, and what comes out is in the order in which it was asked for. It must not know what a source reads, or who
//! takes the batches.
//!
//! ```text
//! source --> puller (a thread) --> files read --> lanes (a thread each) --> next()
//!            says which samples    several        run batches, in any       in order
//!            a batch has           batches        order
//!            '------------------- at most `prefetch` batches -------------'
//! ```
//!
//! Nothing waits for what does not come: each batch has a channel of its own, and an end of a channel that goes away,
//! by a panic or because the stream is dropped, wakes the other.

mod puller;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::feeding::{engines, sources};
use super::pull::Wires;
use crate::error::{Error, ErrorKind, Result, caught};
use crate::executor::{Executor, Keep, Outcome, Tally};
use crate::graph::{Feed, Graph};
use crate::lanes::Lanes;
use crate::memory::HostPool;
use crate::operator::Preferences;
use crate::source::{Facts, Interrupt, Source};
use crate::tensor::Batch;
use puller::{Pulled, Puller, Sources};
use work::{run, worker};

/// How a stream works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Samples that a source is asked for at once; absent: as many as the file was made for.
    pub batch_size: Option<usize>,
    /// Batches that are pulled from the sources and not yet taken, at most. That bounds the memory of a stream.
    pub prefetch: usize,
    /// Batches that are worked on at the same time, at most `prefetch`; 1 for a pipeline that
    /// [needs order](super::Pipeline::needs_order). Each has threads and memory of its own. A pipeline that calls
    /// functions of the program or takes inputs from the caller has none: who takes a batch runs it.
    pub lanes: usize,
    /// Worker threads of each lane; absent: as many as the file asks for.
    pub num_threads: Option<usize>,
    /// Samples before the first batch: those of a stream that this one goes on from. Readers skip as many.
    pub first: u64,
    /// [`Outcome::branch_samples`] of the batch that the stream goes on behind; empty at its beginning.
    pub branch_samples: Vec<u64>,
    /// Samples that readers have given before, of which they leave out what is left of the epoch; absent: they go on
    /// behind `first`.
    pub next_epoch: Option<u64>,
    /// Whether outputs that are made on a device are brought into host memory.
    pub to_host: bool,
    /// Wishes of the author.
    pub preferences: Preferences,
}

impl Default for Settings {
    /// One batch at a time, while the next is read.
    fn default() -> Self {
        Self {
            batch_size: None,
            prefetch: 2,
            lanes: 1,
            num_threads: None,
            first: 0,
            branch_samples: Vec::new(),
            next_epoch: None,
            to_host: false,
            preferences: Preferences::default(),
        }
    }
}

/// A batch that has run.
pub struct Delivered<'r> {
    /// How many samples of the stream are before it. A stream that goes on behind it has [`Settings::first`] as many
    /// and its own more.
    pub first: u64,
    /// Its outputs, and which samples failed.
    pub outcome: Outcome<'r>,
    /// What it took.
    pub tally: Tally,
}

/// Batches in order. An error is one of the batch that would have come in its place, and the next call gives the next
/// batch; after a panic of a source there is none.
///
/// `None` is the end of what the sources have: of an epoch, of a video. [`Stream::resume`] asks them for more, and
/// [`Stream::feed`] does so with something new. Dropped, a stream ends what it is doing at the next operator.
pub struct Stream {
    sources: Sources,
    /// What readers know of their data sets, by their names.
    facts: Vec<(String, Facts)>,
    /// The names of the inputs, and who feeds each.
    inputs: Vec<(String, Feed)>,
    /// Which source videos are fed to.
    videos: Option<usize>,
    phase: Phase,
    /// Runs the batches in the thread that takes them, if no lanes do.
    executor: Option<Executor>,
    to_host: bool,
    is_closed: Arc<AtomicBool>,
    interrupts: Vec<Interrupt>,
    /// `None` when the stream is being dropped.
    ends: Option<Ends>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was asked for.
    New,
    /// The puller pulls.
    Running,
    /// It waits to be told to go on.
    Ended,
    /// It is gone: a source panicked.
    Stopped,
}

/// Our ends of the channels to the puller.
struct Ends {
    /// What was asked of the sources, in order.
    asked: Receiver<Pulled>,
    /// As many as there are batches that were not taken.
    in_flight: Receiver<()>,
    resume: Sender<()>,
}

impl Stream {
    /// A stream over the sources of `graph`, in which each of `executors` works on one batch at a time, in a thread of
    /// its own; or one in the thread that takes the batches, if `in_callers_thread`.
    pub(super) fn new(
        graph: &Graph,
        mut executors: Vec<Executor>,
        in_callers_thread: bool,
        settings: &Settings,
    ) -> Result<Self> {
        let engines = engines(graph, executors.first().and_then(Executor::gpu));
        let mut made = sources(graph, engines.as_ref(), settings.preferences.formats)?;
        let names = graph.sources.iter().map(|source| source.name.clone());
        let facts = names.zip(&made).filter_map(|(name, source)| Some((name, source.facts()?))).collect();
        let interrupts = made.iter().filter_map(|source| source.interrupter()).collect();
        let batch_size = settings.batch_size.unwrap_or(graph.max_batch_size).max(1);
        for source in &mut made {
            source.skip(settings.next_epoch.unwrap_or(settings.first), batch_size)?;
            if settings.next_epoch.is_some() {
                source.next_epoch();
            }
        }
        let sources: Sources = Arc::new(Mutex::new(made));
        let is_closed = Arc::new(AtomicBool::new(false));
        let executor = if in_callers_thread { executors.pop() } else { None };
        let workers = executors.into_iter().map(|it| worker(it, settings.to_host, Arc::clone(&is_closed)));
        let lanes = if executor.is_none() { Some(Lanes::start(workers.collect())?) } else { None };
        let (told, asked) = channel();
        let (begin, in_flight) = sync_channel(settings.prefetch.max(1));
        let (resume, resumed) = channel();
        let puller = Puller {
            sources: Arc::clone(&sources),
            wires: Arc::new(Wires::new(graph)),
            memory: Arc::new(HostPool::default()),
            batch_size,
            first: settings.first,
            is_closed: Arc::clone(&is_closed),
            lanes,
            asked: told,
            in_flight: begin,
            resumed,
        };
        let thread = std::thread::Builder::new()
            .name("gesso-source".to_owned())
            .spawn(move || puller.run())
            .map_err(|error| Error::new(ErrorKind::Unavailable, format!("a stream's thread: {error}")))?;
        Ok(Self {
            sources,
            facts,
            inputs: graph.inputs.iter().map(|input| (input.name.clone(), input.feed)).collect(),
            videos: graph.videos(),
            phase: Phase::New,
            executor,
            to_host: settings.to_host,
            is_closed,
            interrupts,
            ends: Some(Ends { asked, in_flight, resume }),
            thread: Some(thread),
        })
    }

    /// Gives the source of input `input` what it makes batches of, and goes on if the stream had ended. While it is
    /// running this waits for the batch that is being read.
    ///
    /// # Errors
    /// Not found for an input without a source; what the source says; those of [`Stream::resume`].
    pub fn feed(&mut self, input: &str, batch: &Batch<'_>) -> Result<()> {
        self.feed_by(input, |source| source.feed(batch))
    }

    /// The same with memory that stays as it is until the stream has ended, or is dropped: a video is read where it is.
    ///
    /// # Errors
    /// As there.
    pub fn feed_kept(&mut self, input: &str, batch: &Batch<'static>) -> Result<()> {
        self.feed_by(input, |source| source.feed_kept(batch))
    }

    fn feed_by(&mut self, input: &str, feed: impl FnOnce(&mut dyn Source) -> Result<()>) -> Result<()> {
        let source = self.inputs.iter().find_map(|(name, feed)| match feed {
            Feed::Source { source, .. } if name == input => Some(*source),
            _ => None,
        });
        let number = source.ok_or_else(|| Error::not_found(format!("no source feeds an input `{input}`")))?;
        let mut sources = self.sources.lock();
        let source = sources.get_mut(number).ok_or_else(|| Error::internal("an input without a source"))?;
        caught(|| feed(source.as_mut()))?;
        drop(sources);
        // What stands beside a video makes no batch.
        if self.videos.is_some_and(|videos| videos != number) { Ok(()) } else { self.resume() }
    }

    /// Asks the sources on after the end, for another epoch; or for the first batches, before they are wanted.
    ///
    /// # Errors
    /// Internal, when a source has panicked.
    pub fn resume(&mut self) -> Result<()> {
        match &self.ends {
            _ if self.phase == Phase::Running => return Ok(()),
            Some(ends) if self.phase != Phase::Stopped && ends.resume.send(()).is_ok() => {}
            _ => return Err(Error::internal("the stream has stopped for good: one of its sources panicked")),
        }
        self.phase = Phase::Running;
        Ok(())
    }

    /// What the pipeline's readers know of their data sets, with their names in the file.
    pub fn readers(&self) -> &[(String, Facts)] {
        &self.facts
    }
}

impl Iterator for Stream {
    type Item = Result<Delivered<'static>>;

    /// Waits for the next batch.
    fn next(&mut self) -> Option<Self::Item> {
        self.next_with(Vec::new())
    }
}

impl Stream {
    /// The next batch of a pipeline that takes inputs from the caller, too: `given`, in the order of
    /// [`super::Pipeline::inputs`], of as many samples as the sources give. Runs it in this thread.
    pub fn next_with<'r>(&mut self, given: Vec<Batch<'r>>) -> Option<Result<Delivered<'r>>> {
        if self.phase == Phase::New {
            self.resume().ok()?;
        }
        let ends = self.ends.as_ref().filter(|_| self.phase == Phase::Running)?;
        let (delivered, phase) = match ends.asked.recv() {
            Ok(Pulled::Batch(batch)) => {
                let delivered = batch.recv().unwrap_or_else(|_| Err(Error::internal("a batch was lost")));
                (Some(delivered), Phase::Running)
            }
            Ok(Pulled::ToRun(coming)) => {
                let lost = || Err(Error::internal("a batch that nobody runs"));
                let run = |executor| run(executor, coming, given, self.to_host, &mut Keep);
                (Some(self.executor.as_mut().map_or_else(lost, run)), Phase::Running)
            }
            Ok(Pulled::End) => {
                let _ = ends.in_flight.recv();
                self.phase = Phase::Ended;
                // A video may have come while the end of the one before was on its way here.
                let sources = self.sources.lock();
                let videos = self.videos.and_then(|videos| sources.get(videos));
                let has_more = videos.is_some_and(|videos| !videos.is_used_up());
                drop(sources);
                return if has_more { self.resume().ok().and_then(|()| self.next_with(given)) } else { None };
            }
            Err(_) => (None, Phase::Stopped),
        };
        // Taken, so that one more may be pulled.
        let _ = ends.in_flight.recv();
        self.phase = phase;
        delivered
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.ends = None;
        for interrupt in &self.interrupts {
            let interrupted = caught(|| {
                interrupt();
                Ok(())
            });
            if let Err(error) = interrupted {
                tracing::error!("a source could not be interrupted: {error}");
            }
        }
        if let Some(thread) = self.thread.take() {
            // An error is a panic, which there is no one left to tell.
            let _ = thread.join();
        }
    }
}
