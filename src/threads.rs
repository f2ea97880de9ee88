//! Worker threads that batches share, each of which is handed to them sample by sample. It must not know what is done with a sample.
//!
//! ```text
//! batch 1    thread 1  [0][2][3]   [5]
//!            thread 2  [ 1  ][4]
//! batch 2    thread 2           [0][1] ...    it has threads as soon as the one before has no sample left to begin
//! ```
//!
//! A thread that has begun with a batch stays with it. Splitting a batch in halves, as rayon's parallel iterators do, would let the thread
//! that waits for the other half begin with the batch behind, and the first batch would be done when the second is.

use std::sync::Arc;

use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, ErrorKind, Result};
use crate::limits;

/// Starts `count` threads, or as many as may be.
///
/// # Errors
/// Unavailable when they cannot be made.
pub fn start(count: usize) -> Result<Arc<ThreadPool>> {
    ThreadPoolBuilder::new()
        .num_threads(count.clamp(1, limits::MAX_THREADS))
        .thread_name(|i| format!("gesso-{i}"))
        .build()
        .map(Arc::new)
        .map_err(|error| Error::new(ErrorKind::Unavailable, format!("worker threads: {error}")))
}

/// Runs `work` on each of `items`, from the first to the last, on the threads of `pool`. Returns when all are done; the calling thread
/// waits, unless it is one of the pool.
pub fn for_each<T: Send>(pool: &ThreadPool, items: &mut [T], work: impl Fn(&mut T) + Sync) {
    let threads = pool.current_num_threads().min(items.len());
    let left = Mutex::new(items.iter_mut());
    let (left, work) = (&left, &work);
    let next = || left.lock().next();
    pool.in_place_scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move |_| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        for (threads, count) in [(1, 0), (1, 5), (3, 2), (3, 100)] {
            let pool = start(threads).unwrap();
            let mut items = vec![1; count];
            for_each(&pool, &mut items, |item| *item += 1);
            assert_eq!(items, vec![2; count]);
        }
    }

    /// The second batch is begun by the thread that has no sample of the first left, and is not done before it.
    #[test]
    fn a_batch_does_not_wait_for_the_one_behind() {
        let pool = start(2).unwrap();
        let (say, said) = channel();
        let (hold, held) = channel::<()>();
        let held = Mutex::new(held);
        let (begun, begins) = channel();
        std::thread::scope(|scope| {
            let (pool, held) = (&pool, &held);
            let first = say.clone();
            scope.spawn(move || {
                for_each(pool, &mut [0, 1], |item| {
                    begun.send(()).unwrap();
                    if *item == 1 {
                        // Until the test lets go.
                        assert!(held.lock().recv().is_err());
                    }
                });
                first.send("first").unwrap();
            });
            (0..2).for_each(|_| begins.recv().unwrap());
            let (inside, inside_of) = channel();
            let (end, ended) = channel::<()>();
            let ended = Mutex::new(ended);
            let second = say.clone();
            scope.spawn(move || {
                for_each(pool, &mut [0, 1], |item| {
                    if *item == 0 {
                        inside.send(()).unwrap();
                        assert!(ended.lock().recv().is_err());
                    }
                });
                second.send("second").unwrap();
            });
            // The first batch has a sample under way, the second has begun.
            inside_of.recv().unwrap();
            drop(hold);
            assert_eq!(said.recv_timeout(Duration::from_secs(60)), Ok("first"));
            drop(end);
            assert_eq!(said.recv_timeout(Duration::from_secs(60)), Ok("second"));
        });
    }
}
