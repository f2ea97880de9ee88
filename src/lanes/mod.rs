//! Threads that work on one batch each, so that batches overlap: while one is on the device, the next is gathered. They must not
//! know what a batch is.
//!
//! ```text
//! push(job):    a free lane takes the job, now or later
//! submit(job):  the same, and wait until a lane is free again: a server forms the next batch no earlier
//! drop:         the lanes finish what they have, then end
//! ```

mod background;
mod places;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result, caught};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Condvar, Mutex};

pub use background::{Background, Worker};
pub use places::{Places, Ticket};

/// Worker threads that share a queue of jobs.
pub struct Lanes<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    /// A job waits, or there will be none.
    work: Condvar,
    /// A lane has finished a job.
    free: Condvar,
}

struct Queue<T> {
    waiting: VecDeque<T>,
    /// Jobs that were submitted and are not finished.
    in_flight: usize,
    closed: bool,
}

impl<T: Send + 'static> Lanes<T> {
    /// One lane for each of `workers`, which its jobs are given to.
    ///
    /// # Errors
    /// Unavailable when a thread cannot be made.
    pub fn start<W: FnMut(T) + Send + 'static>(workers: Vec<W>) -> Result<Self> {
        let queue = Queue { waiting: VecDeque::new(), in_flight: 0, closed: false };
        let shared =
            Arc::new(Shared { queue: Mutex::new(queue), work: Condvar::new(), free: Condvar::new() });
        // Made first: if a later thread cannot be made, dropping it ends the earlier ones.
        let mut lanes = Self { shared, threads: Vec::with_capacity(workers.len()) };
        for (i, worker) in workers.into_iter().enumerate() {
            let shared = Arc::clone(&lanes.shared);
            let thread = thread::Builder::new()
                .name(format!("gesso-lane-{i}"))
                .spawn(move || shared.work_off(worker))
                .map_err(|error| Error::new(ErrorKind::Unavailable, format!("a lane: {error}")))?;
            lanes.threads.push(thread);
        }
        Ok(lanes)
    }

    /// Hands `job` over.
    pub fn push(&self, job: T) {
        let mut queue = self.shared.queue.lock();
        queue.waiting.push_back(job);
        queue.in_flight += 1;
        self.shared.work.notify_one();
    }

    /// Whether a job is in flight.
    pub fn is_busy(&self) -> bool {
        self.shared.queue.lock().in_flight > 0
    }

    /// Hands `job` over, and returns when fewer jobs are in flight than there are lanes.
    pub fn submit(&self, job: T) {
        self.push(job);
        let mut queue = self.shared.queue.lock();
        while queue.in_flight >= self.threads.len() {
            self.shared.free.wait(&mut queue);
        }
    }
}

impl<T: Send + 'static> Drop for Lanes<T> {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // An error is a panic outside of a job, which there is no one left to tell.
            let _ = thread.join();
        }
    }
}

impl<T> Shared<T> {
    /// The life of one lane.
    fn work_off(&self, mut worker: impl FnMut(T)) {
        while let Some(job) = self.next() {
            let done = caught(|| {
                worker(job);
                Ok(())
            });
            if let Err(error) = done {
                tracing::error!("a lane {error}");
            }
            self.queue.lock().in_flight -= 1;
            self.free.notify_all();
        }
    }

    /// The next job; `None` when there will be none.
    fn next(&self) -> Option<T> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.waiting.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            self.work.wait(&mut queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::Duration;

    use super::*;

    type Job = Box<dyn FnOnce() + Send>;

    fn lanes(count: usize) -> Lanes<Job> {
        Lanes::start((0..count).map(|_| |job: Job| job()).collect()).unwrap()
    }

    /// A job that ends when its sender is dropped.
    fn held() -> (std::sync::mpsc::Sender<()>, Job) {
        let (hold, wait): (_, Receiver<()>) = channel();
        (hold, Box::new(move || assert!(wait.recv().is_err())))
    }

    #[test]
    fn the_second_of_two_lanes_takes_a_job_while_the_first_works() {
        let lanes = lanes(2);
        let (hold, first) = held();
        lanes.submit(first);
        let (say, said) = channel();
        lanes.submit(Box::new(move || say.send(7).unwrap()));
        assert_eq!(said.recv(), Ok(7));
        drop(hold);
    }

    #[test]
    fn submitting_waits_for_a_free_lane() {
        let lanes = Arc::new(lanes(2));
        let ((hold_first, first), (hold_second, second)) = (held(), held());
        lanes.submit(first);
        let (say, said) = channel();
        let submitter = std::thread::spawn({
            let lanes = Arc::clone(&lanes);
            move || {
                lanes.submit(second);
                say.send(()).unwrap();
            }
        });
        assert_eq!(said.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
        drop(hold_first);
        assert_eq!(said.recv(), Ok(()));
        drop(hold_second);
        submitter.join().unwrap();
    }

    #[test]
    fn dropping_finishes_what_was_submitted() {
        let lanes = lanes(3);
        let (say, said) = channel();
        for i in 0..2 {
            let say = say.clone();
            lanes.submit(Box::new(move || {
                std::thread::sleep(Duration::from_millis(20));
                say.send(i).unwrap();
            }));
        }
        drop(lanes);
        let mut found: Vec<i32> = said.try_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [0, 1]);
    }

    #[test]
    fn a_lane_outlives_a_panic() {
        let lanes = lanes(1);
        lanes.submit(Box::new(|| panic!("as the test wants")));
        let (say, said) = channel();
        lanes.submit(Box::new(move || say.send(7).unwrap()));
        assert_eq!(said.recv(), Ok(7));
    }
}
