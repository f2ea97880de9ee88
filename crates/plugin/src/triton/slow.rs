//! The slow lane of an instance on host threads: requests that would hold up the small ones, one at a time, in a thread
//! of lower priority that has an executor of its own while there are some. It must not know which requests those are.

use std::sync::Arc;
use std::time::Duration;

use super::allocator;
use super::exchange;
use super::execute::{self, BatchOrder};
use super::lane::{Job, Lane};
use gesso::error::Result;
use gesso::lanes::{Background, Worker};
use gesso::limits;

/// How nice its threads are to the others: between equals they get a tenth of a core.
const NICENESS: i32 = 10;

/// Starts the thread, which makes its lane when it needs one.
///
/// # Errors
/// Unavailable when the thread cannot be made.
pub(super) fn start(make: impl Fn() -> Result<Lane> + Send + 'static) -> Result<Arc<Background<Job>>> {
    let idle = Duration::from_millis(limits::SLOW_IDLE_MS);
    let worker = SlowWorker { make, lane: None };
    Background::start("gesso-slow", limits::MAX_SLOW_REQUESTS, idle, worker).map(Arc::new)
}

struct SlowWorker<M> {
    make: M,
    lane: Option<Lane>,
}

impl<M: Fn() -> Result<Lane>> SlowWorker<M> {
    fn lane(&mut self) -> Result<&mut Lane> {
        match &mut self.lane {
            Some(lane) => Ok(lane),
            none => Ok(none.insert((self.make)()?)),
        }
    }
}

impl<M: Fn() -> Result<Lane> + Send> Worker<Job> for SlowWorker<M> {
    fn begin(&mut self) {
        // Threads that this one makes are as nice. Linux counts this for a thread.
        if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
            tracing::warn!("slow requests have the priority of others: {error}");
        }
    }

    fn work(&mut self, Job { claim, place }: Job) {
        match self.lane() {
            Ok(lane) => exchange::answer(vec![claim], |claims| {
                execute::execute(lane, claims, place.map_or(BatchOrder::Next, BatchOrder::Among));
            }),
            Err(error) => claim.fail(&error),
        }
    }

    fn rest(&mut self) {
        // Its buffers and its threads' scratch memory may be gigabytes.
        self.lane = None;
        allocator::give_back();
    }
}
