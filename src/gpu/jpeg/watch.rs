//! How long a path took, without stopping anyone: whoever comes by looks whether it is done. It must not know what the
//! path does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::gpu::Event;

const NEVER: u64 = u64::MAX;

/// Bounds on the time that work on the device takes, from looks at its events.
pub struct Watch {
    begun: Instant,
    events: Vec<Arc<Event>>,
    /// Before, an event tells of the last batch.
    submitted: AtomicBool,
    /// Nanoseconds at the last look that found work, and at the first that found none.
    running: AtomicU64,
    done: AtomicU64,
}

impl Watch {
    /// Starts the clock for work that `events` will mark the ends of.
    pub fn new(events: Vec<Arc<Event>>) -> Self {
        Self {
            begun: Instant::now(),
            events,
            submitted: AtomicBool::new(false),
            running: AtomicU64::new(0),
            done: AtomicU64::new(NEVER),
        }
    }

    /// Says that all work is submitted, and looks.
    pub fn submitted(&self) {
        self.submitted.store(true, Ordering::Release);
        self.look();
    }

    /// Looks whether the work is done. A device that fails tells whoever waits for the batch.
    pub fn look(&self) {
        if !self.submitted.load(Ordering::Acquire) || self.done.load(Ordering::Relaxed) != NEVER {
            return;
        }
        let done = self.events.iter().all(|event| event.is_done().unwrap_or(true));
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(NEVER);
        if done {
            self.done.fetch_min(now, Ordering::Relaxed);
        } else {
            self.running.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// The work took at least and at most so long.
    pub fn bounds(&self) -> (Duration, Option<Duration>) {
        let (running, done) = (self.running.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed));
        (Duration::from_nanos(running.min(done)), (done != NEVER).then(|| Duration::from_nanos(done)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_before_the_work_is_submitted() {
        let watch = Watch::new(Vec::new());
        watch.look();
        assert_eq!(watch.bounds(), (Duration::ZERO, None));
        watch.submitted();
        let (least, most) = watch.bounds();
        assert!(least == Duration::ZERO && most.is_some());
        watch.look();
        assert_eq!(watch.bounds(), (least, most));
    }
}
