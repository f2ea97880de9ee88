//! When a job overstays, and what spare lanes are made of: they come while all lanes work on such jobs, so that these
//! hold up no others, and go when there is nothing to do for them. They must not know what a job is.

use std::time::{Duration, Instant};

use super::Queue;
use crate::error::Result;

/// What a lane does with its jobs.
pub(super) type Work<T> = Box<dyn FnMut(T) + Send>;

/// A job overstays when it takes so many times as long as jobs usually take: where all are long, none is in the way of
/// others.
const TIMES_USUAL: u32 = 4;

/// What a job that is of no more than a moment may add to what is usual.
const MOMENT: Duration = Duration::from_millis(1);

/// Makes what a spare lane does.
pub(super) type Make<T> = Box<dyn Fn() -> Result<Box<dyn FnMut(T) + Send>> + Send + Sync>;

/// Lanes that come when all others work on jobs that overstay.
pub struct Spares<T> {
    /// Makes what such a lane does.
    pub make: Make<T>,
    /// As many at a time.
    pub most: usize,
    /// No job overstays that has taken less.
    pub patience: Duration,
    /// A spare lane for which nothing came for so long goes.
    pub idle: Duration,
}

/// How long jobs take.
#[derive(Default)]
pub(super) struct Pace {
    /// Those that are worked on.
    at_work: Vec<AtWork>,
    /// What one request of a job usually takes. One that takes much longer than that counts as twice of it, so that
    /// many are needed until long ones are usual.
    usual: Duration,
}

struct AtWork {
    lane: usize,
    began: Instant,
    requests: usize,
}

impl Pace {
    /// A lane begins with a job of so many requests.
    pub(super) fn begins(&mut self, lane: usize, now: Instant, requests: usize) {
        self.at_work.push(AtWork { lane, began: now, requests });
    }

    /// The lane's job is done.
    pub(super) fn ends(&mut self, lane: usize, now: Instant) {
        let Some(i) = self.at_work.iter().position(|job| job.lane == lane) else { return };
        let AtWork { began, requests, .. } = self.at_work.swap_remove(i);
        let each = now.saturating_duration_since(began) / shares(requests);
        let counted = each.min(self.usual * 2 + MOMENT);
        self.usual = self.usual - self.usual / 8 + counted / 8;
    }

    /// How long it is until every job at hand has overstayed, where none does that has taken less than `patience`.
    fn left(&self, now: Instant, patience: Duration) -> Duration {
        let left = |job: &AtWork| {
            let usual = self.usual.saturating_mul(TIMES_USUAL).saturating_mul(shares(job.requests));
            patience.max(usual).saturating_sub(now.saturating_duration_since(job.began))
        };
        self.at_work.iter().map(left).max().unwrap_or(patience)
    }
}

fn shares(requests: usize) -> u32 {
    u32::try_from(requests).unwrap_or(u32::MAX).max(1)
}

impl<T> Queue<T> {
    /// How long it is until a spare lane should come.
    pub(super) fn left(&self, patience: Duration) -> Duration {
        // One that is about to take a job has all of its time.
        let idle = self.pace.at_work.len() < self.lanes;
        if idle { patience } else { self.pace.left(Instant::now(), patience) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn a_job_overstays_when_others_take_much_less() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.left(start, PATIENCE), PATIENCE);
        pace.begins(0, start, 1);
        assert_eq!(pace.left(start + ms(30), PATIENCE), ms(70));
        // All have to.
        pace.begins(1, start + ms(30), 1);
        assert_eq!(pace.left(start + ms(100), PATIENCE), ms(30));
        assert_eq!(pace.left(start + ms(900), PATIENCE), Duration::ZERO);
        // A few that overstay are not usual.
        pace.ends(0, start + ms(9_000));
        pace.ends(1, start + ms(9_000));
        pace.begins(0, start, 1);
        assert_eq!(pace.left(start, PATIENCE), PATIENCE);
    }

    #[test]
    fn where_all_jobs_are_long_none_overstays() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for _ in 0..100 {
            pace.begins(0, start, 2);
            pace.ends(0, start + ms(1_000));
        }
        assert!(pace.usual > ms(450) && pace.usual <= ms(500), "{:?}", pace.usual);
        pace.begins(0, start, 2);
        assert!(pace.left(start, PATIENCE) > ms(3_500));
        // Short ones make it short again.
        for _ in 0..100 {
            pace.begins(1, start, 1);
            pace.ends(1, start + ms(1));
        }
        assert_eq!(pace.left(start, PATIENCE), PATIENCE);
    }
}
