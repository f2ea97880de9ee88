//! Whether the batches of an instance wait for one another. Those that do are worked on at the same time, by threads of
//! ours; one that nobody waits behind is sooner done in the thread that brings it. It must not know batches.

use std::time::{Duration, Instant};

/// Who comes so soon after a batch was done has waited for it. A client that sends when it has its answer takes longer:
/// twice through a socket and through the server's queues.
const WAITED: Duration = Duration::from_micros(50);

/// Batches in a row that have waited, until they overlap.
const BEGINS: u32 = 2;

/// Batches in a row that have not, until they no longer do.
const ENDS: u32 = 16;

/// What was seen of the batches.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    is_there: bool,
    /// The last batches, in a row, that say otherwise.
    against: u32,
    /// When the last batch was done.
    ended: Option<Instant>,
}

impl Crowd {
    /// A batch of so many requests comes, while others are `in_flight` or not. Whether batches overlap from now on.
    pub(super) fn comes(&mut self, now: Instant, requests: usize, in_flight: bool) -> bool {
        let soon = self.ended.is_some_and(|ended| now.saturating_duration_since(ended) < WAITED);
        let waited = in_flight || soon || requests > 1;
        if waited == self.is_there {
            self.against = 0;
            return self.is_there;
        }
        self.against += 1;
        if self.against >= if self.is_there { ENDS } else { BEGINS } {
            (self.is_there, self.against) = (waited, 0);
        }
        self.is_there
    }

    /// A batch is done.
    pub(super) fn ends(&mut self, now: Instant) {
        self.ended = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_millis(1);

    #[test]
    fn batches_overlap_when_they_wait_and_no_longer_when_they_do_not() {
        let (mut crowd, mut now) = (Crowd::default(), Instant::now());
        let mut comes = |after, requests, in_flight| {
            now += after;
            let overlaps = crowd.comes(now, requests, in_flight);
            crowd.ends(now);
            overlaps
        };
        assert!((0..100).all(|_| !comes(LONG, 1, false)));
        // One that comes by chance while another is worked on changes nothing.
        assert!(!comes(Duration::ZERO, 1, false));
        assert!(!comes(LONG, 1, false));
        // Two are no chance, however it is seen that they have waited.
        for (after, requests, in_flight) in [(WAITED / 2, 1, false), (LONG, 2, false), (LONG, 1, true)] {
            assert!(!comes(after, requests, in_flight));
            assert!(comes(after, requests, in_flight));
            assert!((1..ENDS).all(|_| comes(LONG, 1, false)));
            assert!((0..100).all(|_| !comes(LONG, 1, false)));
        }
    }
}
