//! Threads that download: so many at a time, of which one host has at most half, so that a slow one holds up its own
//! files alone. Nor has one client more than its share. It must not know requests.

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
use super::room::Room;

/// Downloads that may wait for a thread.
const MAX_WAITING: usize = 16_384;
/// Of the threads and of the places to wait, the part (one in so many) that one host has at most.
const HOST_PART: usize = 2;
/// How long a thread waits for work until it ends.
const IDLE: Duration = Duration::from_secs(2);

/// A downloaded file.
#[derive(Clone)]
pub struct File {
    bytes: Arc<Vec<u8>>,
    is_cached: bool,
    _room: Arc<Room>,
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
    /// A number for the client that it is for, and how many are downloaded for that one at a time, if that is limited.
    pub share: Option<(u128, usize)>,
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
    waiting: VecDeque<Waiting>,
    /// How many of each host wait.
    places: BTreeMap<String, usize>,
    running: BTreeMap<String, usize>,
    /// How many run for each client.
    clients: BTreeMap<u128, usize>,
    threads: usize,
    idle: usize,
    closed: bool,
}

/// A file that waits for a thread.
struct Waiting {
    job: Job,
    host: String,
}

/// One more of `key`.
fn add<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
    *counts.entry(key).or_default() += 1;
}

/// One less of `key`.
fn take_off<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
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
            let host = self.client().rules().allow.owner(&job.address);
            let of_host = state.places.get(&host).copied().unwrap_or_default();
            if state.waiting.len() >= MAX_WAITING || of_host >= MAX_WAITING / HOST_PART {
                refused.push(job);
                continue;
            }
            add(&mut state.places, host.clone());
            state.waiting.push_back(Waiting { job, host });
            let threads = state.threads;
            // Those that wait for a host of which enough is fetched already keep no thread busy.
            self.0.work.notify_one();
            if state.idle < state.waiting.len() && threads < self.0.bounds.at_once {
                let shared = Arc::clone(&self.0);
                let thread =
                    std::thread::Builder::new().name("gesso-fetch".to_owned()).spawn(move || shared.live());
                match thread {
                    Ok(_) => state.threads += 1,
                    Err(_) if threads == 0 => refused.extend(state.pop_last()),
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
        state.places.clear();
        drop(state);
        self.0.work.notify_all();
        waiting.into_iter().for_each(|Waiting { job, .. }| (job.done)(Err(Failure::Abandoned)));
    }
}

impl State {
    fn pop_last(&mut self) -> Option<Job> {
        let Waiting { job, host } = self.waiting.pop_back()?;
        take_off(&mut self.places, &host);
        Some(job)
    }

    /// The first that may begin while one host has `most` threads.
    fn begin(&mut self, most: usize) -> Option<Waiting> {
        let Self { waiting, places, running, clients, .. } = self;
        let fits = |Waiting { job, host }: &Waiting| {
            let of_host = running.get(host).is_none_or(|count| *count < most);
            let share = job.share.as_ref();
            let of_client =
                share.is_none_or(|(client, most)| clients.get(client).is_none_or(|count| count < most));
            of_host && of_client
        };
        let at = waiting.iter().position(|each| fits(each) || each.job.abandoned.load(Ordering::Relaxed))?;
        let begun = waiting.remove(at)?;
        take_off(places, &begun.host);
        add(running, begun.host.clone());
        begun.job.share.iter().for_each(|(client, _)| add(clients, *client));
        Some(begun)
    }
}

impl Shared {
    /// The life of a thread.
    fn live(self: Arc<Self>) {
        while let Some(Waiting { job, host }) = self.next() {
            let start = Instant::now();
            let got = catch_unwind(AssertUnwindSafe(|| self.get(&job)));
            let got = got.unwrap_or_else(|_| {
                tracing::error!("a download has failed by a defect");
                Err(Failure::Broken)
            });
            let mut state = self.state.lock();
            take_off(&mut state.running, &host);
            job.share.iter().for_each(|(client, _)| take_off(&mut state.clients, client));
            drop(state);
            // One that waits for this host, or is for this client, may begin.
            self.work.notify_one();
            self.end(job, got, start);
        }
    }

    /// The next file. `None` when the thread is to end.
    fn next(&self) -> Option<Waiting> {
        let most = self.bounds.at_once.div_ceil(HOST_PART);
        let mut state = self.state.lock();
        loop {
            if let Some(begun) = state.begin(most) {
                return Some(begun);
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
        let room = Arc::new(Room::new(&self.held, self.bounds.held));
        let watch = Watched { abandoned: &job.abandoned, room: &room };
        if !watch.goes_on() {
            return Err(Failure::Abandoned);
        }
        let kept = self.cache.as_ref().and_then(|cache| cache.get(&name));
        match self.client.get(&job.address, kept.as_ref().map(|kept| &kept.validators), &watch) {
            Ok(Answer::Same) => {
                let Kept { bytes, room: lent, .. } = kept.ok_or(Failure::Broken)?;
                // It may leave the cache while requests hold it.
                let room = match lent.upgrade() {
                    Some(lent) => lent,
                    None if room.takes(bytes.len()) => room,
                    None => return Err(Failure::Full("memory for files")),
                };
                self.cache.iter().for_each(|cache| cache.lend(&name, &bytes, &room));
                Ok(File { bytes, is_cached: true, _room: room })
            }
            Ok(Answer::File { bytes, validators }) => {
                let bytes = Arc::new(bytes);
                match (&self.cache, validators) {
                    (Some(cache), Some(validators)) => {
                        let room = Arc::downgrade(&room);
                        cache.put(&name, Kept { bytes: Arc::clone(&bytes), validators, room });
                    }
                    (Some(cache), None) => cache.forget(&name),
                    (None, _) => {}
                }
                Ok(File { bytes, is_cached: false, _room: room })
            }
            Err(failure) => Err(failure),
        }
    }

    fn end(&self, job: Job, got: Result<File, Failure>, start: Instant) {
        let (outcome, bytes) = match &got {
            Ok(file) if file.is_cached => ("cached", 0),
            Ok(file) => ("downloaded", file.bytes.len()),
            Err(failure) => (failure.label(), 0),
        };
        self.counts.ended(outcome, bytes, start.elapsed());
        (job.done)(got);
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
        self.room.takes(bytes)
    }
}

#[cfg(test)]
mod tests;
