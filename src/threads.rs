//! Worker threads that batches share, each of which is handed to them sample by sample. It must not know what is done
//! with a sample.
//!
//! ```text
//! batch 1    its own thread  [0][2][3]   [5]      the thread that brings a batch works on it
//!            a helper        [ 1  ][4]            as long as fewer threads work than there may
//! batch 2    its own thread        [0][1][2] ..   the helper of batch 1 leaves behind its sample: too many would work
//! ```
//!
//! As many batches as there are threads are worked on without one thread having to wake another, and what a thread has
//! copied for a sample is in its core's cache when it works on it.

use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, ErrorKind, Result};
use crate::limits;

/// Threads, and how many of them and of those that bring batches work.
pub struct Threads {
    pool: ThreadPool,
    working: AtomicUsize,
    /// To whom a core is left, and how many may work while they are there.
    others: OnceLock<(Arc<Foreground>, usize)>,
}

/// Those who work on the same cores now and then, and to whom threads leave one meanwhile. However low a thread's
/// priority is, one on every core holds up who wakes.
#[derive(Debug, Default)]
pub struct Foreground {
    /// When they were there last, in milliseconds, behind 1; 0: never.
    last: AtomicU64,
}

/// They count as there for so long.
const OTHERS_STAY: Duration = Duration::from_millis(100);

impl Foreground {
    /// They have just worked.
    pub fn touch(&self) {
        self.last.store(1 + milliseconds(), Ordering::Relaxed);
    }

    fn is_active(&self) -> bool {
        self.is_active_at(milliseconds())
    }

    fn is_active_at(&self, now: u64) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        last > 0 && u128::from(now.saturating_sub(last - 1)) <= OTHERS_STAY.as_millis()
    }
}

fn milliseconds() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
}

impl Deref for Threads {
    type Target = ThreadPool;

    fn deref(&self) -> &ThreadPool {
        &self.pool
    }
}

/// Starts `count` threads, or as many as may be.
///
/// # Errors
/// Unavailable when they cannot be made.
pub fn start(count: usize) -> Result<Arc<Threads>> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(count.clamp(1, limits::MAX_THREADS))
        .thread_name(|i| format!("gesso-{i}"))
        .build()
        .map_err(|error| Error::new(ErrorKind::Unavailable, format!("worker threads: {error}")))?;
    Ok(Arc::new(Threads { pool, working: AtomicUsize::new(0), others: OnceLock::new() }))
}

/// The threads that streams share to read samples. A process that was forked off makes its own, since threads stay
/// behind.
///
/// # Errors
/// Unavailable when they cannot be made.
pub fn shared() -> Result<Arc<ThreadPool>> {
    static SHARED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let process = std::process::id();
    let mut shared = SHARED.lock();
    if let Some((made_in, pool)) = &*shared
        && *made_in == process
    {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new()
        .thread_name(|i| format!("gesso-shared-{i}"))
        .build()
        .map_err(|error| Error::new(ErrorKind::Unavailable, format!("worker threads: {error}")))?;
    let pool = Arc::new(pool);
    // To end threads that are not there would wake them.
    std::mem::forget(shared.replace((process, Arc::clone(&pool))));
    Ok(pool)
}

/// Does `work`, which is divided among threads: those of the pool that it is done in, else those that are shared.
///
/// # Errors
/// Unavailable when there are no threads.
pub fn divided<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    match rayon::current_thread_index() {
        Some(_) => Ok(work()),
        None => Ok(shared()?.install(work)),
    }
}

/// One that works, until it is dropped.
struct Working<'a>(&'a AtomicUsize);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Threads {
    /// Runs `work` on each of `items`, begun from the first to the last, in the calling thread and in others that have
    /// nothing to do. Returns when all are done.
    pub fn for_each<T: Send>(&self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        self.working.fetch_add(1, Ordering::Relaxed);
        let _working = Working(&self.working);
        if let [only] = items {
            return work(only);
        }
        let left = Mutex::new(items.iter_mut());
        let job = Job { threads: self, left: &left, work: &work };
        self.pool.in_place_scope(|scope| job.work_off(scope, false));
    }

    /// Leaves a core to `others` while they are there, from the next sample on that a thread begins. The first ones
    /// that are named count.
    pub fn yield_core_to(&self, others: &Arc<Foreground>) {
        self.others.get_or_init(|| {
            let cores = available_parallelism().map_or(1, NonZeroUsize::get);
            (Arc::clone(others), self.current_num_threads().min(cores.saturating_sub(1)).max(1))
        });
    }

    /// How many may work now.
    fn most(&self) -> usize {
        match self.others.get() {
            Some((others, beside)) if others.is_active() => *beside,
            _ => self.current_num_threads(),
        }
    }

    /// `None` if there are as many already as there may be.
    fn begin(&self) -> Option<Working<'_>> {
        let most = self.most();
        let more = |working: usize| (working < most).then_some(working + 1);
        let begun = self.working.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        begun.is_ok().then(|| Working(&self.working))
    }

    /// Whether more work than may.
    fn are_crowded(&self) -> bool {
        self.working.load(Ordering::Relaxed) > self.most()
    }
}

/// Lets `helpers` threads of a pool do `work` in `scope`. Each wakes two at most: to wake one takes longer than many a
/// piece of work, and who wakes all of them does nothing else meanwhile.
pub fn call<'s, W: Fn() + Sync>(scope: &Scope<'s>, work: &'s W, helpers: usize) {
    let first = helpers.div_ceil(2);
    for called in [first, helpers - first].into_iter().filter(|&called| called > 0) {
        scope.spawn(move |scope| {
            call(scope, work, called - 1);
            work();
        });
    }
}

/// What threads do together.
struct Job<'a, 'i, T, W> {
    threads: &'a Threads,
    left: &'a Mutex<std::slice::IterMut<'i, T>>,
    work: &'a W,
}

impl<'a, T: Send, W: Fn(&mut T) + Sync> Job<'a, '_, T, W> {
    /// Works until nothing is left, a helper until too many work. Calls helpers for what is left, as long as there may
    /// be more.
    fn work_off<'s>(&self, scope: &Scope<'s>, helps: bool)
    where
        'a: 's,
        Self: 's,
    {
        while !(helps && self.threads.are_crowded()) {
            let (item, others) = {
                let mut left = self.left.lock();
                (left.next(), left.len())
            };
            let Some(item) = item else { return };
            if others > 0
                && let Some(working) = self.threads.begin()
            {
                let job = Job { ..*self };
                scope.spawn(move |scope| {
                    let _working = working;
                    job.work_off(scope, true);
                });
            }
            (self.work)(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        for (threads, count) in [(1, 0), (1, 5), (3, 2), (3, 100)] {
            let pool = start(threads).unwrap();
            let mut items = vec![1; count];
            pool.for_each(&mut items, |item| *item += 1);
            assert_eq!(items, vec![2; count]);
        }
    }

    #[test]
    fn as_many_helpers_work_as_are_called() {
        let pool = start(3).unwrap();
        for helpers in [0, 1, 2, 3, 8, 33] {
            let count = AtomicUsize::new(0);
            let work = || {
                count.fetch_add(1, Ordering::Relaxed);
            };
            pool.in_place_scope(|scope| call(scope, &work, helpers));
            assert_eq!(count.into_inner(), helpers);
        }
    }

    #[test]
    fn others_are_there_for_a_while() {
        let (pool, others) = (start(64).unwrap(), Arc::default());
        pool.yield_core_to(&others);
        assert_eq!(pool.most(), 64);
        // Hours ahead: the test may be as slow as it likes.
        others.last.store(u64::MAX / 2, Ordering::Relaxed);
        let cores = available_parallelism().unwrap().get();
        assert_eq!(pool.most(), 64.min(cores - 1).max(1));
    }

    #[test]
    fn others_stay_for_a_tenth_of_a_second() {
        let others = Foreground::default();
        assert!(!others.is_active_at(0), "they never worked");
        others.last.store(1 + 7_000, Ordering::Relaxed);
        assert!(others.is_active_at(7_000) && others.is_active_at(7_100));
        assert!(!others.is_active_at(7_101));
        others.touch();
        assert!(!others.is_active_at(milliseconds() + 200));
    }

    /// A batch has all threads until another one comes, and again when that one is done.
    #[test]
    fn as_many_threads_work_as_there_are() {
        let pool = start(2).unwrap();
        let (say, said) = channel();
        // Each item says that it has begun, and ends when the test lets it.
        let item = |name: &'static str| {
            let (end, ended) = channel::<()>();
            (end, (name, Mutex::new(ended)))
        };
        let work = |(name, ended): &mut (&'static str, Mutex<Receiver<()>>)| {
            say.send(*name).unwrap();
            ended.lock().recv().unwrap();
        };
        let next = || said.recv_timeout(Duration::from_secs(60)).unwrap();
        let none =
            || assert_eq!(said.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
        let (mut ends, mut items): (Vec<_>, Vec<_>) = ["a", "b", "c", "d", "e"].map(item).into_iter().unzip();
        let (mut other_ends, mut others): (Vec<_>, Vec<_>) = ["x", "y"].map(item).into_iter().unzip();
        let end = |all: &mut Vec<Sender<()>>| all.remove(0).send(()).unwrap();
        std::thread::scope(|scope| {
            let (pool, work) = (&pool, &work);
            scope.spawn(move || pool.for_each(&mut items, work));
            let mut begun = [next(), next()];
            begun.sort_unstable();
            assert_eq!(begun, ["a", "b"]);
            none();
            let other = scope.spawn(move || pool.for_each(&mut others, work));
            assert_eq!(next(), "x");
            // Three work: the helper leaves, or the thread that it helped goes on alone.
            end(&mut ends);
            end(&mut ends);
            assert_eq!(next(), "c");
            none();
            end(&mut other_ends);
            assert_eq!(next(), "y");
            end(&mut other_ends);
            other.join().unwrap();
            end(&mut ends);
            let mut begun = [next(), next()];
            begun.sort_unstable();
            assert_eq!(begun, ["d", "e"]);
            end(&mut ends);
            end(&mut ends);
        });
    }
}
