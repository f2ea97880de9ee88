//! How long work on a sample may take: whether anybody still waits for it, and what it is expected to take. It must not
//! know what the work is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// Until when a batch is wanted. Threads that work on it ask now and then.
pub trait Deadline: Sync {
    /// Asks for sample `sample` of the batch, or, for `None`, whether anybody may still wait for the batch at all.
    ///
    /// # Errors
    /// Why nobody waits any more.
    fn check(&self, sample: Option<usize>) -> Result<()>;

    /// How long they wait yet; `None` is as long as it takes.
    fn left(&self) -> Option<Duration> {
        None
    }
}

/// None: the batch is wanted however long it takes.
pub struct NoDeadline;

impl Deadline for NoDeadline {
    fn check(&self, _sample: Option<usize>) -> Result<()> {
        Ok(())
    }
}

/// A function that says whether the batch is still wanted.
impl<F: Fn() -> bool + Sync> Deadline for F {
    fn check(&self, _sample: Option<usize>) -> Result<()> {
        match self() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Cancelled, "nobody waits any more")),
        }
    }
}

/// Work between two looks at the clock, in pixels or bytes: some tens of microseconds.
const WORK_BETWEEN_LOOKS: usize = 1 << 16;

/// What threads ask while they work on one sample.
pub struct Watch<'w> {
    deadline: &'w dyn Deadline,
    sample: Option<usize>,
    /// Since the last look, about: what threads count at the same moment may be lost.
    work: AtomicUsize,
}

impl Watch<'static> {
    /// For work that takes as long as it takes.
    pub fn forever() -> Self {
        Watch::new(&NoDeadline, None)
    }
}

impl<'w> Watch<'w> {
    /// For sample `sample`, for which `waiting` waits.
    pub fn new(deadline: &'w dyn Deadline, sample: Option<usize>) -> Self {
        Self { deadline, sample, work: AtomicUsize::new(0) }
    }

    /// Counts some `work` that is done, in pixels or bytes, and asks when it has become much.
    ///
    /// # Errors
    /// Those of [`Watch::check`].
    #[inline]
    pub fn charge(&self, work: usize) -> Result<()> {
        let total = self.work.load(Ordering::Relaxed).saturating_add(work);
        if total < WORK_BETWEEN_LOOKS {
            self.work.store(total, Ordering::Relaxed);
            return Ok(());
        }
        self.work.store(0, Ordering::Relaxed);
        self.check()
    }

    /// Asks now.
    ///
    /// # Errors
    /// Why nobody waits for the sample any more. It stays so.
    pub fn check(&self) -> Result<()> {
        self.deadline.check(self.sample)
    }

    /// Asks before work that cannot be interrupted and takes `expected`.
    ///
    /// # Errors
    /// Unavailable when nobody waits that long.
    pub fn ensure_time(&self, expected: Duration) -> Result<()> {
        self.check()?;
        match self.deadline.left() {
            Some(left) if left < expected => Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "is expected to take {} ms, of the time for its request {} ms are left",
                    expected.as_millis(),
                    left.as_millis()
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// What an operator expects of one sample, beyond moving its bytes: from headers and shapes, and not exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// Time of one core.
    pub time: Duration,
    /// Bytes of memory beside the outputs, while it is at work.
    pub scratch: usize,
}

impl Effort {
    /// So many nanoseconds of one core, and bytes beside the outputs.
    pub fn new(nanoseconds: f64, scratch: usize) -> Self {
        Self { time: Duration::from_nanos(nanoseconds as u64), scratch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct For(Duration);

    impl Deadline for For {
        fn check(&self, _sample: Option<usize>) -> Result<()> {
            if self.0.is_zero() { Err(Error::invalid("late")) } else { Ok(()) }
        }

        fn left(&self) -> Option<Duration> {
            Some(self.0)
        }
    }

    #[test]
    fn the_clock_is_looked_at_when_work_has_become_much() {
        let late = For(Duration::ZERO);
        let watch = Watch::new(&late, None);
        assert!(watch.charge(WORK_BETWEEN_LOOKS - 1).is_ok());
        assert!(watch.charge(1).is_err());
        assert!(watch.charge(1).is_ok());
        assert!(watch.check().is_err());
        assert!(Watch::forever().charge(usize::MAX).is_ok());
    }

    #[test]
    fn work_that_cannot_be_interrupted_begins_if_it_will_end_in_time() {
        let second = For(Duration::from_secs(1));
        let watch = Watch::new(&second, None);
        assert!(watch.ensure_time(Duration::from_secs(1)).is_ok());
        let error = watch.ensure_time(Duration::from_secs(2)).unwrap_err().to_string();
        assert_eq!(error, "is expected to take 2000 ms, of the time for its request 1000 ms are left");
        assert!(Watch::forever().ensure_time(Duration::MAX).is_ok());
    }
}
