//! Which sequences a part of a video has, and which frames a sequence. It must not know files.

use std::ops::Range;

use crate::cpu::video::Padding;
use crate::error::{Error, Result};
use crate::limits;

/// How sequences are chosen.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub(super) length: usize,
    /// From a sequence to the next one.
    pub(super) step: usize,
    /// From a frame to the next one.
    pub(super) stride: usize,
    pub(super) padding: Padding,
    /// One sequence of frames that are spread evenly.
    pub(super) is_uniform: bool,
    /// Whether a sequence fits when its last frame does, as in the older reader; else as many frames as `stride` skips
    /// must follow.
    pub(super) ends_with_last_frame: bool,
}

/// A sequence.
pub(super) struct Sample {
    /// The number of its file.
    pub(super) file: usize,
    /// Its first frame.
    start: usize,
    /// The part of the video that it is of.
    range: Range<usize>,
}

impl Choice {
    /// Adds the sequences of `range` of file `file`.
    ///
    /// # Errors
    /// More than [`limits::MAX_DATASET_SAMPLES`].
    pub(super) fn add(&self, file: usize, range: Range<usize>, samples: &mut Vec<Sample>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        if self.is_uniform {
            return push(samples, Sample { file, start: range.start, range });
        }
        let span = match self.ends_with_last_frame {
            true => (self.length - 1).saturating_mul(self.stride).saturating_add(1),
            false => self.length.saturating_mul(self.stride),
        };
        let mut start = range.start;
        while start.checked_add(span).is_some_and(|end| end <= range.end) {
            push(samples, Sample { file, start, range: range.clone() })?;
            start = start.saturating_add(self.step);
        }
        if start < range.end && self.padding != Padding::None {
            push(samples, Sample { file, start, range })?;
        }
        Ok(())
    }

    /// The frames of a sequence; `None` stands for the fill value.
    ///
    /// # Errors
    /// Never, as only sequences that fit are added where nothing is padded.
    pub(super) fn frames(&self, sample: &Sample) -> Result<Vec<Option<usize>>> {
        let Sample { start, range, .. } = sample;
        let count = range.len();
        if self.is_uniform {
            let last = count.saturating_sub(1) as f64;
            let between = self.length.saturating_sub(1).max(1) as f64;
            let frame = |i: usize| Some(range.start + (i as f64 * (last / between) + 0.5).floor() as usize);
            return Ok((0..self.length).map(frame).collect());
        }
        let first = start - range.start;
        let frame = |i: usize| {
            let place = first.saturating_add(i.saturating_mul(self.stride));
            let place = i64::try_from(place).unwrap_or(i64::MAX);
            Ok(self.padding.frame(place, count)?.map(|frame| range.start + frame))
        };
        (0..self.length).map(frame).collect()
    }
}

fn push(samples: &mut Vec<Sample>, sample: Sample) -> Result<()> {
    if samples.len() >= limits::MAX_DATASET_SAMPLES {
        return Err(Error::invalid(format!("more than {} sequences", limits::MAX_DATASET_SAMPLES)));
    }
    samples.push(sample);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(choice: Choice, range: Range<usize>) -> Vec<Vec<i64>> {
        let mut samples = Vec::new();
        choice.add(0, range, &mut samples).unwrap();
        let numbers = |sample: &Sample| {
            let frames = choice.frames(sample).unwrap();
            frames.into_iter().map(|frame| frame.map_or(-1, |frame| frame as i64)).collect()
        };
        samples.iter().map(numbers).collect()
    }

    fn choice(length: usize, step: usize, stride: usize, padding: &str) -> Choice {
        let padding = Padding::new(padding).unwrap();
        Choice { length, step, stride, padding, is_uniform: false, ends_with_last_frame: false }
    }

    #[test]
    fn sequences_are_dalis() {
        assert_eq!(chosen(choice(5, 5, 1, "none"), 0..12), [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]);
        assert_eq!(chosen(choice(3, 1, 3, "none"), 0..12), [[0, 3, 6], [1, 4, 7], [2, 5, 8], [3, 6, 9]]);
        assert_eq!(chosen(choice(4, 3, 4, "constant"), 0..12), [[0, 4, 8, -1]]);
        assert_eq!(chosen(choice(3, 3, 1, "edge"), 2..7), [[2, 3, 4], [5, 6, 6]]);
        assert_eq!(chosen(choice(8, 8, 1, "reflect_101"), 2..7), [[2, 3, 4, 5, 6, 5, 4, 3]]);
        assert_eq!(chosen(choice(8, 8, 1, "none"), 2..7), Vec::<Vec<i64>>::new());
        let uniform = |length| Choice { is_uniform: true, ..choice(length, 1, 1, "none") };
        assert_eq!(chosen(uniform(5), 0..12), [[0, 3, 6, 8, 11]]);
        assert_eq!(chosen(uniform(3), 2..7), [[2, 4, 6]]);
        assert_eq!(chosen(uniform(1), 2..7), [[2]]);
        let older = Choice { ends_with_last_frame: true, ..choice(3, 3, 4, "none") };
        assert_eq!(chosen(older, 0..9), [[0, 4, 8]]);
    }
}
