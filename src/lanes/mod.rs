//! Threads that work on one batch each, so that batches overlap: while one is on the device, the next is gathered. They
//! must not know what a batch is.
//!
//! ```text
//! push(job):    a free lane takes the job, now or later
//! submit(job):  the same, and wait until a lane is free again: a server forms the next batch no earlier
//! overstayed:   all lanes work on jobs that take much longer than others: `submit` waits no more, a spare lane comes
//! drop:         the lanes finish what they have, then end
//! ```

mod background;
mod places;
mod spares;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result, caught};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Condvar, Mutex};
use spares::{Pace, Work};

pub use background::{Background, Worker};
pub use places::{Places, Ticket};
pub use spares::Spares;

/// Worker threads that share a queue of jobs.
pub struct Lanes<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    /// By their numbers.
    threads: Mutex<Vec<(usize, JoinHandle<()>)>>,
    spares: Option<Spares<T>>,
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    /// A job waits, or there will be none.
    work: Condvar,
    /// A lane has finished a job.
    free: Condvar,
}

struct Queue<T> {
    /// Jobs with the requests in each.
    waiting: VecDeque<(usize, T)>,
    /// Jobs that were submitted and are not finished.
    in_flight: usize,
    /// Lanes, the spare ones too.
    lanes: usize,
    /// Those of them that are spare.
    spare: usize,
    /// How long jobs take.
    pace: Pace,
    /// Spare lanes whose threads end.
    gone: Vec<usize>,
    /// Lanes that there were.
    begun: usize,
    closed: bool,
}

impl<T: Send + 'static> Lanes<T> {
    /// One lane for each of `workers`, which its jobs are given to.
    ///
    /// # Errors
    /// Unavailable when a thread cannot be made.
    pub fn start<W: FnMut(T) + Send + 'static>(workers: Vec<W>) -> Result<Self> {
        let queue = Queue {
            waiting: VecDeque::new(),
            in_flight: 0,
            lanes: workers.len(),
            spare: 0,
            pace: Pace::default(),
            gone: Vec::new(),
            begun: workers.len(),
            closed: false,
        };
        let shared =
            Arc::new(Shared { queue: Mutex::new(queue), work: Condvar::new(), free: Condvar::new() });
        // Made first: if a later thread cannot be made, dropping it ends the earlier ones.
        let lanes = Self { shared, threads: Mutex::new(Vec::with_capacity(workers.len())), spares: None };
        for (number, worker) in workers.into_iter().enumerate() {
            lanes.begin(number, Box::new(worker), None)?;
        }
        Ok(lanes)
    }

    /// The same lanes with spare ones.
    #[must_use]
    pub fn with_spares(mut self, spares: Spares<T>) -> Self {
        self.spares = Some(spares);
        self
    }

    /// Hands `job` over.
    pub fn push(&self, job: T) {
        self.hand(job, 1);
    }

    fn hand(&self, job: T, requests: usize) {
        let mut queue = self.shared.queue.lock();
        queue.waiting.push_back((requests, job));
        queue.in_flight += 1;
        self.shared.work.notify_one();
    }

    /// Whether a job is in flight.
    pub fn is_busy(&self) -> bool {
        self.shared.queue.lock().in_flight > 0
    }

    /// Hands `job` over, which has so many requests, and returns when fewer jobs are in flight than there are lanes.
    pub fn submit(&self, job: T, requests: usize) {
        self.hand(job, requests);
        let mut queue = self.shared.queue.lock();
        while queue.in_flight >= queue.lanes {
            let left = match &self.spares {
                Some(spares) if queue.spare < spares.most => Some(queue.left(spares.patience)),
                _ => None,
            };
            match left {
                None => self.shared.free.wait(&mut queue),
                Some(left) if left.is_zero() => {
                    drop(queue);
                    let added = self.add();
                    queue = self.shared.queue.lock();
                    if let Err(error) = added {
                        tracing::warn!("no spare lane: {error}");
                        self.shared.free.wait(&mut queue);
                    }
                }
                Some(left) => {
                    let _ = self.shared.free.wait_for(&mut queue, left);
                }
            }
        }
    }

    /// Begins with another lane.
    fn add(&self) -> Result<()> {
        let Some(spares) = &self.spares else { return Ok(()) };
        let worker = (spares.make)()?;
        let (number, gone) = {
            let mut queue = self.shared.queue.lock();
            queue.spare += 1;
            queue.lanes += 1;
            queue.begun += 1;
            (queue.begun - 1, std::mem::take(&mut queue.gone))
        };
        let mut threads = self.threads.lock();
        let (ended, others) = threads.drain(..).partition(|(number, _)| gone.contains(number));
        *threads = others;
        drop(threads);
        join(ended);
        let begun = self.begin(number, worker, Some(spares.idle));
        if begun.is_err() {
            let mut queue = self.shared.queue.lock();
            queue.spare -= 1;
            queue.lanes -= 1;
        }
        begun
    }

    fn begin(&self, number: usize, worker: Work<T>, idle: Option<Duration>) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new()
            .name(format!("gesso-lane-{number}"))
            .spawn(move || shared.work_off(number, worker, idle))
            .map_err(|error| Error::new(ErrorKind::Unavailable, format!("a lane: {error}")))?;
        self.threads.lock().push((number, thread));
        Ok(())
    }
}

impl<T: Send + 'static> Drop for Lanes<T> {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.work.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock());
        join(threads);
    }
}

fn join(threads: Vec<(usize, JoinHandle<()>)>) {
    for (_, thread) in threads {
        // An error is a panic outside of a job, which there is no one left to tell.
        let _ = thread.join();
    }
}

impl<T> Shared<T> {
    /// The life of one lane. A spare one goes when nothing came for as long as it may be `idle`.
    fn work_off(&self, number: usize, mut worker: Work<T>, idle: Option<Duration>) {
        while let Some(job) = self.next(number, idle) {
            let done = caught(|| {
                worker(job);
                Ok(())
            });
            if let Err(error) = done {
                tracing::error!("a lane {error}");
            }
            let mut queue = self.queue.lock();
            queue.in_flight -= 1;
            queue.pace.ends(number, Instant::now());
            drop(queue);
            self.free.notify_all();
        }
    }

    /// The next job; `None` when there will be none.
    fn next(&self, number: usize, idle: Option<Duration>) -> Option<T> {
        let mut queue = self.queue.lock();
        loop {
            if let Some((requests, job)) = queue.waiting.pop_front() {
                queue.pace.begins(number, Instant::now(), requests);
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            let Some(idle) = idle else {
                self.work.wait(&mut queue);
                continue;
            };
            if self.work.wait_for(&mut queue, idle).timed_out() && queue.waiting.is_empty() {
                queue.lanes -= 1;
                queue.spare -= 1;
                queue.gone.push(number);
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

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

    /// Submits a job in another thread; something is received when that has returned.
    fn submitted(lanes: &Arc<Lanes<Job>>, job: Job) -> (Receiver<()>, std::thread::JoinHandle<()>) {
        let (lanes, (say, said)) = (Arc::clone(lanes), channel());
        let submitter = std::thread::spawn(move || {
            lanes.submit(job, 1);
            say.send(()).unwrap();
        });
        (said, submitter)
    }

    #[test]
    fn the_second_of_two_lanes_takes_a_job_while_the_first_works() {
        let lanes = lanes(2);
        let (hold, first) = held();
        lanes.submit(first, 1);
        let (say, said) = channel();
        lanes.submit(Box::new(move || say.send(7).unwrap()), 1);
        assert_eq!(said.recv(), Ok(7));
        drop(hold);
    }

    #[test]
    fn submitting_waits_for_a_free_lane() {
        let lanes = Arc::new(lanes(2));
        let ((hold_first, first), (hold_second, second)) = (held(), held());
        lanes.submit(first, 1);
        let (said, submitter) = submitted(&lanes, second);
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
            lanes.submit(
                Box::new(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    say.send(i).unwrap();
                }),
                1,
            );
        }
        drop(lanes);
        let mut found: Vec<i32> = said.try_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [0, 1]);
    }

    #[test]
    fn a_lane_outlives_a_panic() {
        let lanes = lanes(1);
        lanes.submit(Box::new(|| panic!("as the test wants")), 1);
        let (say, said) = channel();
        lanes.submit(Box::new(move || say.send(7).unwrap()), 1);
        assert_eq!(said.recv(), Ok(7));
    }

    /// How many spare lanes there are, counted when each is made and when it goes.
    fn with_spares(most: usize, idle: Duration) -> (Lanes<Job>, Arc<AtomicUsize>) {
        struct Lane(Arc<AtomicUsize>);
        impl Drop for Lane {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let count = Arc::new(AtomicUsize::new(0));
        let there = Arc::clone(&count);
        let make = move || {
            there.fetch_add(1, Ordering::SeqCst);
            let lane = Lane(Arc::clone(&there));
            let work = move |job: Job| {
                let _lane = &lane;
                job();
            };
            Ok(Box::new(work) as Box<dyn FnMut(Job) + Send>)
        };
        let patience = Duration::from_millis(20);
        (lanes(1).with_spares(Spares { make: Box::new(make), most, patience, idle }), count)
    }

    #[test]
    fn spare_lanes_work_while_the_others_overstay_and_go() {
        let (lanes, count) = with_spares(2, Duration::from_millis(300));
        let (holds, jobs): (Vec<_>, Vec<_>) = (0..2).map(|_| held()).unzip();
        for job in jobs {
            lanes.submit(job, 1);
        }
        assert_eq!(count.load(Ordering::SeqCst), 2);
        let (say, said) = channel();
        let tell = say.clone();
        // A job that ends soon needs no further lane.
        lanes.submit(Box::new(move || tell.send(7).unwrap()), 1);
        assert_eq!(said.recv(), Ok(7));
        drop(holds);
        while count.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        // They come again, and their threads are not lost.
        let (hold, job) = held();
        lanes.submit(job, 1);
        lanes.submit(Box::new(move || say.send(8).unwrap()), 1);
        assert_eq!(said.recv(), Ok(8));
        drop(hold);
        drop(lanes);
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn no_more_spare_lanes_come_than_may() {
        let (lanes, count) = with_spares(1, Duration::from_secs(60));
        let lanes = Arc::new(lanes);
        let (hold, first) = held();
        lanes.submit(first, 1);
        let (hold_second, second) = held();
        let (said, submitter) = submitted(&lanes, second);
        assert_eq!(said.recv_timeout(Duration::from_millis(100)), Err(RecvTimeoutError::Timeout));
        drop(hold_second);
        assert_eq!(said.recv(), Ok(()));
        assert_eq!(count.load(Ordering::SeqCst), 1);
        drop(hold);
        submitter.join().unwrap();
    }
}
