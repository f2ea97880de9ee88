//! Rules by which models choose frames of a video. Numbers are those of the libraries, in their order of operations:
//! doubles, and float32 where torch has it. It must not know operators.

use crate::error::{Error, Result};

/// Whose rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// transformers' default: frames at equal distances from the first one on.
    Uniform,
    /// That of transformers' class for Qwen2-VL: the same distances in float32, and a number of frames that is a
    /// multiple.
    Qwen2Vl,
    /// That of transformers' class for Qwen3-VL: from the first frame to the last one.
    Qwen3Vl,
    /// That of the package qwen-vl-utils: from the first frame to the last one in float32, and a number of frames that
    /// is a multiple.
    QwenVlUtils,
}

/// How many frames are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Of a second; not together with `frames`.
    pub(super) fps: Option<f64>,
    /// In all.
    pub(super) frames: Option<u64>,
    /// Fewest, where `fps` decides.
    pub(super) least: u64,
    /// Most, where `fps` decides.
    pub(super) most: u64,
    /// What the number becomes a multiple of.
    pub(super) multiple: u64,
}

impl Rule {
    /// The frames of a video of `total` frames, so many a second.
    ///
    /// # Errors
    /// When it has none, or fewer than are asked for.
    pub(super) fn choose(self, asked: &Asked, total: u64, rate: f64) -> Result<Vec<usize>> {
        let frames = match self {
            Self::Uniform => uniform(asked, total, rate),
            Self::Qwen2Vl => qwen2_vl(asked, total, rate),
            Self::Qwen3Vl => qwen3_vl(asked, total, rate),
            Self::QwenVlUtils => qwen_vl_utils(asked, total, rate),
        };
        // Qwen3-VL takes frames more than once.
        let is_there = frames > 0 && (frames <= total || self == Self::Qwen3Vl);
        if !is_there {
            return Err(Error::invalid(format!(
                "{frames} frames of a video of {total}, expected 1 to {total}"
            )));
        }
        let (last, step) = (total - 1, total as f64 / frames as f64);
        Ok((0..frames)
            .map(|i| match self {
                Self::Uniform => i * total / frames,
                // torch computes in doubles and keeps float32.
                Self::Qwen2Vl => ((step * i as f64) as f32 as u64).min(last),
                Self::Qwen3Vl => from_first_to_last(i, frames, last),
                Self::QwenVlUtils => from_first_to_last_in_float32(i, frames, last),
            })
            .map(|frame| frame as usize)
            .collect())
    }
}

fn uniform(asked: &Asked, total: u64, rate: f64) -> u64 {
    match (asked.frames, asked.fps) {
        (Some(frames), _) => frames,
        (None, Some(fps)) => ((total as f64 / rate * fps) as u64).max(1),
        (None, None) => total,
    }
}

fn qwen2_vl(asked: &Asked, total: u64, rate: f64) -> u64 {
    let multiple = asked.multiple;
    if let Some(frames) = asked.frames {
        return nearest_multiple(frames, multiple);
    }
    let most = asked.most.min(total) / multiple * multiple;
    let wanted = total as f64 / rate * asked.fps.unwrap_or_default();
    let frames = wanted.max(asked.least as f64).min(most as f64).min(total as f64);
    (frames / multiple as f64).floor() as u64 * multiple
}

fn qwen3_vl(asked: &Asked, total: u64, rate: f64) -> u64 {
    match (asked.frames, asked.fps) {
        (Some(frames), _) => frames,
        (None, Some(fps)) => ((total as f64 / rate * fps) as u64).max(asked.least).min(asked.most).min(total),
        (None, None) => total.max(asked.least).min(asked.most),
    }
}

fn qwen_vl_utils(asked: &Asked, total: u64, rate: f64) -> u64 {
    let multiple = asked.multiple;
    if let Some(frames) = asked.frames {
        return nearest_multiple(frames, multiple);
    }
    let Some(fps) = asked.fps else { return total / multiple * multiple };
    let least = asked.least.next_multiple_of(multiple);
    let most = asked.most.min(total) / multiple * multiple;
    let frames = (total as f64 / rate * fps).max(least as f64).min(most as f64).min(total as f64);
    (frames / multiple as f64).floor() as u64 * multiple
}

/// Halves to even.
fn nearest_multiple(frames: u64, multiple: u64) -> u64 {
    (frames as f64 / multiple as f64).round_ties_even() as u64 * multiple
}

/// numpy's `linspace(0, last, frames).round()`.
fn from_first_to_last(i: u64, frames: u64, last: u64) -> u64 {
    if i > 0 && i + 1 == frames {
        return last;
    }
    let step = last as f64 / (frames.max(2) - 1) as f64;
    (i as f64 * step).round_ties_even() as u64
}

/// torch's `linspace(0, last, frames).round()`, whose second half is counted from the end.
fn from_first_to_last_in_float32(i: u64, frames: u64, last: u64) -> u64 {
    if frames == 1 {
        return 0;
    }
    let (last, step) = (last as f32, last as f32 / (frames - 1) as f32);
    let place = if i < frames / 2 { step * i as f32 } else { last - step * (frames - i - 1) as f32 };
    place.round_ties_even() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked = Asked { fps: Some(2.0), frames: None, least: 4, most: 768, multiple: 2 };

    #[test]
    fn every_rule_takes_frames_that_there_are() {
        for rule in [Rule::Uniform, Rule::Qwen2Vl, Rule::Qwen3Vl, Rule::QwenVlUtils] {
            for total in [2, 3, 7, 100, 1 << 20] {
                for rate in [0.001, 1.0, 30_000.0 / 1001.0, 1000.0] {
                    if let Ok(frames) = rule.choose(&ASKED, total, rate) {
                        assert!(frames.is_sorted() && !frames.is_empty(), "{rule:?} {total} {rate}");
                        assert!(
                            frames.iter().all(|&frame| (frame as u64) < total),
                            "{rule:?} {total} {rate}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn more_frames_than_there_are_is_an_error() {
        let asked = Asked { fps: None, frames: Some(9), ..ASKED };
        for rule in [Rule::Uniform, Rule::Qwen2Vl, Rule::QwenVlUtils] {
            assert!(rule.choose(&asked, 5, 25.0).unwrap_err().to_string().contains("of a video of 5"));
        }
        assert_eq!(Rule::Qwen3Vl.choose(&asked, 2, 25.0).unwrap(), [0, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert!(Rule::Qwen2Vl.choose(&ASKED, 1, 25.0).is_err());
    }
}
