//! Which part of a batch the engines take from the SMs when others want the SMs, too: as much as leaves the
//! instance time to spare. Pure arithmetic: it must not know devices.
//!
//! A batch that the multiprocessors decode is done soonest, but each of its images costs a model behind it 3 us of
//! them, on an engine 1 us. So as long as others keep the device busy and the instance waits for work, images go to the
//! engines, batch by batch more; when it has no time to spare, batch by batch fewer.

/// From which part of the time on that others are busy the engines help, and below which they stop.
const OTHERS_FROM: f64 = 0.3;
const OTHERS_TO: f64 = 0.15;

/// Of the instance's time: below the first there is time to spare, above the second there is none.
const SPARE: f64 = 0.7;
const FULL: f64 = 0.9;

/// What a batch changes.
const STEP: f32 = 0.125;

/// What the engines take, from batch to batch.
#[derive(Debug, Default)]
pub struct EngineOffload {
    is_shared: bool,
    part: f32,
}

impl EngineOffload {
    /// The part of the images for the engines, 0 to 1. `others`: the part of the time that others keep the device busy;
    /// `busy`: that the instance works on batches.
    pub fn follow(&mut self, others: f64, busy: f64) -> f32 {
        self.is_shared = others > if self.is_shared { OTHERS_TO } else { OTHERS_FROM };
        self.part = match busy {
            _ if !self.is_shared => 0.0,
            ..SPARE => (self.part + STEP).min(1.0),
            FULL.. => (self.part - STEP).max(0.0),
            _ => self.part,
        };
        self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_help_only_where_others_want_the_device() {
        let mut offload = EngineOffload::default();
        assert_eq!(offload.follow(0.2, 0.1), 0.0);
        assert_eq!(offload.follow(0.4, 0.1), STEP);
        // What others do comes and goes: a little less of it changes nothing.
        assert_eq!(offload.follow(0.2, 0.1), 2.0 * STEP);
        assert_eq!(offload.follow(0.1, 0.1), 0.0);
        assert_eq!(offload.follow(0.2, 0.1), 0.0);
    }

    #[test]
    fn the_part_follows_the_time_to_spare() {
        let mut offload = EngineOffload::default();
        for _ in 0..20 {
            offload.follow(1.0, 0.5);
        }
        assert_eq!(offload.follow(1.0, 0.8), 1.0);
        assert_eq!(offload.follow(1.0, 0.95), 1.0 - STEP);
        for _ in 0..20 {
            offload.follow(1.0, 1.0);
        }
        assert_eq!(offload.follow(1.0, 0.8), 0.0);
    }
}
