//! Which part of the time an instance works on batches, and which part it waits for the next. It must not know batches.

use std::time::Instant;

/// Weight of the newest batch.
const NEWEST: f64 = 0.5;

/// From batch to batch.
#[derive(Debug, Default)]
pub(super) struct Pace {
    began: Option<Instant>,
    ended: Option<Instant>,
    busy: f64,
}

impl Pace {
    /// A batch begins.
    pub(super) fn begin(&mut self, now: Instant) {
        if let (Some(began), Some(ended)) = (self.began, self.ended.take()) {
            let (worked, passed) = ((ended - began).as_secs_f64(), (now - began).as_secs_f64());
            let part = if passed > 0.0 { worked / passed } else { 1.0 };
            self.busy += NEWEST * (part - self.busy);
        }
        self.began = Some(now);
    }

    /// It is done.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended = Some(now);
    }

    /// The part of the time that was work lately, 0 to 1.
    pub(super) fn busy(&self) -> f64 {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_not_spent_on_batches_is_idle() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        for _ in 0..30 {
            pace.begin(now);
            pace.end(now + Duration::from_millis(2));
            now += Duration::from_millis(8);
        }
        assert!((pace.busy() - 0.25).abs() < 1e-3, "{}", pace.busy());
        for _ in 0..30 {
            pace.begin(now);
            now += Duration::from_millis(2);
            pace.end(now);
        }
        assert!(pace.busy() > 0.99, "{}", pace.busy());
    }
}
