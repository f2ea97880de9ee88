//! Threads that download: so many at a time, of which one host has at most half, so that a slow one holds up its own
//! files alone. It must not know requests.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::address::Address;
use super::cache::{Cache, Kept};
use super::client::{Answer, Client, Watch};
use super::failure::Failure;

/// Downloads that may wait for a thread.
const MAX_WAITING: usize = 16_384;
/// Of the threads, the part (one in so many) that one host has at most.
const HOST_PART: usize = 2;
/// How long a thread waits for work until it ends.
const IDLE: Duration = Duration::from_secs(2);

/// A downloaded file.
#[derive(Clone)]
pub struct File {
    bytes: Arc<Vec<u8>>,
    room: Option<Arc<Room>>,
}

impl File {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A file to download.
pub struct Job {
    /// Which one.
    pub address: Address,
    /// Whether nobody waits for it any more.
    pub abandoned: Arc<AtomicBool>,
    /// Who is told, once.
    pub done: Box<dyn FnOnce(Result<File, Failure>) + Send>,
}

/// Who counts.
pub trait Counts: Send + Sync {
    /// A download has ended, as a label of [`Failure::LABELS`] says, with so many bytes from its host.
    fn ended(&self, outcome: &'static str, bytes: usize, took: Duration);
}

/// Bounds of a pool.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Downloads at a time.
    pub at_once: usize,
    /// Bytes of files that requests hold or wait for.
    pub held: usize,
    /// Bytes of the cache; none where it is 0.
    pub cache: usize,
}

/// The threads. Once it is dropped they end, after what they are at.
pub struct Pool(Arc<Shared>);

struct Shared {
    client: Client,
    cache: Option<Cache>,
    bounds: Bounds,
    held: Arc<AtomicUsize>,
    counts: Box<dyn Counts>,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    running: BTreeMap<String, usize>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    /// A pool without threads, which come when they are needed.
    pub fn new(client: Client, bounds: Bounds, counts: Box<dyn Counts>) -> Self {
        let cache = (bounds.cache > 0).then(|| Cache::new(bounds.cache));
        let shared = Shared {
            client,
            cache,
            bounds,
            held: Arc::default(),
            counts,
            state: Mutex::default(),
            work: Condvar::new(),
        };
        Self(Arc::new(shared))
    }

    /// Who downloads.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Downloads files, as soon as there is a thread for each.
    pub fn push(&self, jobs: Vec<Job>) {
        let mut refused = Vec::new();
        let mut state = self.0.state.lock();
        for job in jobs {
            if state.waiting.len() >= MAX_WAITING {
                refused.push(job);
                continue;
            }
            state.waiting.push_back(job);
            let threads = state.threads;
            // Those that wait for a host of which enough is fetched already keep no thread busy.
            self.0.work.notify_one();
            if state.idle < state.waiting.len() && threads < self.0.bounds.at_once {
                let shared = Arc::clone(&self.0);
                let thread =
                    std::thread::Builder::new().name("gesso-fetch".to_owned()).spawn(move || shared.live());
                match thread {
                    Ok(_) => state.threads += 1,
                    Err(_) if threads == 0 => refused.extend(state.waiting.pop_back()),
                    Err(_) => {}
                }
            }
        }
        drop(state);
        refused
            .into_iter()
            .for_each(|job| self.0.end(job, Err(Failure::Full("places to wait")), Instant::now()));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.0.work.notify_all();
        waiting.into_iter().for_each(|job| (job.done)(Err(Failure::Abandoned)));
    }
}

impl Shared {
    /// The life of a thread.
    fn live(self: Arc<Self>) {
        while let Some((job, host)) = self.next() {
            let start = Instant::now();
            let got = catch_unwind(AssertUnwindSafe(|| self.get(&job)));
            let got = got.unwrap_or_else(|_| {
                tracing::error!("a download has failed by a defect");
                Err(Failure::Broken)
            });
            let mut state = self.state.lock();
            if let Some(running) = state.running.get_mut(&host) {
                *running -= 1;
                if *running == 0 {
                    state.running.remove(&host);
                }
            }
            drop(state);
            // One that waits for this host may begin.
            self.work.notify_one();
            self.end(job, got, start);
        }
    }

    /// The next file, and the host that it is counted for. `None` when the thread is to end.
    fn next(&self) -> Option<(Job, String)> {
        let most = self.bounds.at_once.div_ceil(HOST_PART);
        let mut state = self.state.lock();
        loop {
            let State { waiting, running, .. } = &mut *state;
            let fits = |job: &Job| running.get(job.address.host()).is_none_or(|count| *count < most);
            let found = waiting.iter().position(|job| fits(job) || job.abandoned.load(Ordering::Relaxed));
            if let Some(job) = found.and_then(|at| waiting.remove(at)) {
                let host = job.address.host().to_owned();
                *running.entry(host.clone()).or_default() += 1;
                return Some((job, host));
            }
            if state.closed {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let timed_out = self.work.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            // Where files wait for their host, the threads that work for it take them.
            if timed_out && state.waiting.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }

    fn get(&self, job: &Job) -> Result<File, Failure> {
        let name = job.address.name();
        let room = Room { held: Arc::clone(&self.held), most: self.bounds.held, bytes: AtomicUsize::new(0) };
        let watch = Watched { abandoned: &job.abandoned, room: &room };
        if !watch.goes_on() {
            return Err(Failure::Abandoned);
        }
        let kept = self.cache.as_ref().and_then(|cache| cache.get(&name));
        match self.client.get(&job.address, kept.as_ref().map(|kept| &kept.validators), &watch) {
            Ok(Answer::Same) => {
                let Kept { bytes, .. } = kept.ok_or(Failure::Broken)?;
                Ok(File { bytes, room: None })
            }
            Ok(Answer::File { bytes, validators }) => {
                let bytes = Arc::new(bytes);
                match (&self.cache, validators) {
                    (Some(cache), Some(validators)) => {
                        cache.put(&name, Kept { bytes: Arc::clone(&bytes), validators });
                    }
                    (Some(cache), None) => cache.forget(&name),
                    (None, _) => {}
                }
                Ok(File { bytes, room: Some(Arc::new(room)) })
            }
            Err(failure) => Err(failure),
        }
    }

    fn end(&self, job: Job, got: Result<File, Failure>, start: Instant) {
        let (outcome, bytes) = match &got {
            Ok(file) if file.room.is_none() => ("cached", 0),
            Ok(file) => ("downloaded", file.bytes.len()),
            Err(failure) => (failure.label(), 0),
        };
        self.counts.ended(outcome, bytes, start.elapsed());
        (job.done)(got);
    }
}

/// Bytes that a file takes of what all files may.
struct Room {
    held: Arc<AtomicUsize>,
    most: usize,
    bytes: AtomicUsize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

struct Watched<'a> {
    abandoned: &'a AtomicBool,
    room: &'a Room,
}

impl Watch for Watched<'_> {
    fn goes_on(&self) -> bool {
        !self.abandoned.load(Ordering::Relaxed)
    }

    fn takes(&self, bytes: usize) -> bool {
        let Room { held, most, bytes: own } = self.room;
        let fits = |held: usize| held.checked_add(bytes).filter(|sum| sum <= most);
        let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            own.fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }
}

#[cfg(test)]
mod tests;
