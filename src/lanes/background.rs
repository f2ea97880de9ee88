//! One thread for jobs that would hold up others: the shortest first, one at a time, and no more than so many that
//! wait. It must not know what a job is.
//!
//! ```text
//! push      the job waits                   or comes back, where too many wait
//! work      of those that wait, the one that is expected to take least
//! rest      nothing has waited for a while: the worker lets go of what it holds
//! drop      what waits is worked on, then the thread ends
//! ```

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result, caught};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Condvar, Mutex};

/// What the thread does.
pub trait Worker<T>: Send {
    /// Called in the thread before anything else.
    fn begin(&mut self) {}

    /// Does a job.
    fn work(&mut self, job: T);

    /// Called once when nothing came for a while after a job.
    fn rest(&mut self) {}
}

/// A thread with a queue.
pub struct Background<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    /// A job waits, or there will be none.
    work: Condvar,
    /// Jobs that may wait.
    most: usize,
    /// How long nothing must come until the worker rests.
    idle: Duration,
}

struct Queue<T> {
    /// In the order in which they came, with what each is expected to take.
    waiting: Vec<(Duration, T)>,
    closed: bool,
}

enum Next<T> {
    Job(T),
    Rest,
    End,
}

impl<T: Send + 'static> Background<T> {
    /// Starts the thread, for which at most `most` jobs wait. When none came for `idle`, its worker rests.
    ///
    /// # Errors
    /// Unavailable when the thread cannot be made.
    pub fn start(
        name: &str,
        most: usize,
        idle: Duration,
        mut worker: impl Worker<T> + 'static,
    ) -> Result<Self> {
        let queue = Mutex::new(Queue { waiting: Vec::new(), closed: false });
        let shared = Arc::new(Shared { queue, work: Condvar::new(), most, idle });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                worker.begin();
                theirs.work_off(&mut worker);
            })
            .map_err(|error| Error::new(ErrorKind::Unavailable, format!("thread `{name}`: {error}")))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Hands over a job that is expected to take `expected`.
    ///
    /// # Errors
    /// The job, when as many wait as may.
    pub fn push(&self, expected: Duration, job: T) -> Result<(), T> {
        let mut queue = self.shared.queue.lock();
        if queue.waiting.len() >= self.shared.most {
            return Err(job);
        }
        queue.waiting.push((expected, job));
        self.shared.work.notify_one();
        Ok(())
    }
}

impl<T: Send + 'static> Drop for Background<T> {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // An error is a panic outside of a job, which there is no one left to tell.
            let _ = thread.join();
        }
    }
}

impl<T> Shared<T> {
    /// The life of the thread.
    fn work_off(&self, worker: &mut impl Worker<T>) {
        let mut rested = true;
        loop {
            let done = match self.next(rested) {
                Next::Job(job) => {
                    rested = false;
                    caught(|| {
                        worker.work(job);
                        Ok(())
                    })
                }
                Next::Rest => {
                    rested = true;
                    caught(|| {
                        worker.rest();
                        Ok(())
                    })
                }
                Next::End => return,
            };
            if let Err(error) = done {
                tracing::error!("a thread in the background {error}");
            }
        }
    }

    fn next(&self, rested: bool) -> Next<T> {
        let mut queue = self.queue.lock();
        loop {
            let shortest = queue.waiting.iter().enumerate().min_by_key(|(_, (expected, _))| *expected);
            if let Some((i, _)) = shortest {
                return Next::Job(queue.waiting.remove(i).1);
            }
            if queue.closed {
                return Next::End;
            }
            if rested {
                self.work.wait(&mut queue);
            } else if self.work.wait_for(&mut queue, self.idle).timed_out() && queue.waiting.is_empty() {
                return Next::Rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    enum Job {
        Say(u32),
        /// Lasts until the other end is dropped.
        Hold(Receiver<()>),
        Panic,
    }

    struct Speaker(Sender<Option<u32>>);

    impl Worker<Job> for Speaker {
        fn work(&mut self, job: Job) {
            match job {
                Job::Say(number) => self.0.send(Some(number)).unwrap(),
                Job::Hold(wait) => assert!(wait.recv().is_err()),
                Job::Panic => panic!("as the test wants"),
            }
        }

        fn rest(&mut self) {
            self.0.send(None).unwrap();
        }
    }

    fn speaker(most: usize, idle: Duration) -> (Background<Job>, Receiver<Option<u32>>) {
        let (say, said) = channel();
        (Background::start("test", most, idle, Speaker(say)).unwrap(), said)
    }

    fn milliseconds(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    /// Occupies the thread until what is returned is dropped.
    fn hold(background: &Background<Job>) -> Sender<()> {
        let (hold, wait) = channel();
        assert!(background.push(Duration::ZERO, Job::Hold(wait)).is_ok());
        while !background.shared.queue.lock().waiting.is_empty() {
            std::thread::yield_now();
        }
        hold
    }

    #[test]
    fn the_shortest_job_is_next_and_none_is_lost() {
        let (background, said) = speaker(3, Duration::MAX);
        let held = hold(&background);
        for (expected, number) in [(30, 3), (10, 1), (20, 2)] {
            assert!(background.push(milliseconds(expected), Job::Say(number)).is_ok());
        }
        assert!(matches!(background.push(Duration::ZERO, Job::Say(4)), Err(Job::Say(4))));
        drop(held);
        drop(background);
        assert_eq!(said.try_iter().collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn it_rests_once_after_work() {
        let (background, said) = speaker(1, milliseconds(20));
        for number in 0..2 {
            assert!(background.push(Duration::ZERO, Job::Say(number)).is_ok());
            assert_eq!(said.recv(), Ok(Some(number)));
            assert_eq!(said.recv(), Ok(None));
        }
        assert!(said.recv_timeout(milliseconds(60)).is_err());
    }

    #[test]
    fn it_outlives_a_panic() {
        let (background, said) = speaker(2, Duration::MAX);
        assert!(background.push(Duration::ZERO, Job::Panic).is_ok());
        assert!(background.push(milliseconds(1), Job::Say(7)).is_ok());
        assert_eq!(said.recv(), Ok(Some(7)));
    }
}
