//! Elements of signals, and the samples of a sound file as such elements. It must not know tensors.

use std::ops::Range;

use super::decode::decode;
use super::sound::{Block, Header};
use crate::cpu::convert::ConvertSat;
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// An element of a signal as a float: signed ones between -1 and 1, unsigned ones between 0 and 1.
pub trait Level: Copy {
    /// Whether there is nothing below silence.
    const IS_UNSIGNED: bool;
    /// The element as a level.
    fn level(self) -> f32;
    /// The element of a level, rounded.
    fn from_level(level: f32) -> Self;
}

macro_rules! integer_levels {
    ($($t:ty),*) => { $(impl Level for $t {
        const IS_UNSIGNED: bool = <$t>::MIN == 0;
        fn level(self) -> f32 {
            let (value, full): (f32, f32) = (self.convert_sat(), <$t>::MAX.convert_sat());
            value * (1.0 / full)
        }
        fn from_level(level: f32) -> Self {
            let full: f32 = <$t>::MAX.convert_sat();
            (level * full).convert_sat()
        }
    })* };
}
integer_levels!(u8, i8, u16, i16, u32, i32);

impl Level for f32 {
    const IS_UNSIGNED: bool = false;
    fn level(self) -> f32 {
        self
    }
    fn from_level(level: f32) -> Self {
        level
    }
}

/// A sample of 32 bits as a float.
fn level(sample: i32) -> f32 {
    sample as f32 * (1.0 / 2_147_483_648.0)
}

/// An element that a sound file is decoded to.
pub trait Stored: Level {
    /// Writes samples of 32 bits. Integers stay what they are.
    fn store_integers(samples: &[i32], dst: &mut [Self]);
}

impl Stored for i16 {
    fn store_integers(samples: &[i32], dst: &mut [Self]) {
        dst.iter_mut().zip(samples).for_each(|(to, from)| *to = (from >> 16) as Self);
    }
}

impl Stored for i32 {
    fn store_integers(samples: &[i32], dst: &mut [Self]) {
        dst.iter_mut().zip(samples).for_each(|(to, from)| *to = *from);
    }
}

impl Stored for f32 {
    fn store_integers(samples: &[i32], dst: &mut [Self]) {
        dst.iter_mut().zip(samples).for_each(|(to, from)| *to = level(*from));
    }
}

/// Writes levels as elements.
pub fn store<T: Level>(signal: &[f32], dst: &mut [T]) {
    dst.iter_mut().zip(signal).for_each(|(to, &level)| *to = T::from_level(level));
}

/// Writes the `frames` of a sound file whose header is `header` to `dst`; `mixes`: their mean over channels. All of the
/// file is decoded, as only its end says that it is whole.
///
/// # Errors
/// A damaged file; `dst` of another length; those of `watch`.
pub fn write<T: Stored>(
    bytes: &[u8],
    header: &Header,
    mixes: bool,
    frames: Range<usize>,
    watch: &Watch<'_>,
    mut dst: &mut [T],
) -> Result<()> {
    let channels = header.channels.max(1);
    let mixes = mixes && channels > 1;
    let weight = 1.0 / channels as f32;
    let (mut levels, mut begin) = (Vec::new(), 0);
    decode(bytes, header, watch, &mut |block| {
        let end = begin + block.len() / channels;
        let wanted = begin.max(frames.start)..end.min(frames.end);
        let inside =
            wanted.start.saturating_sub(begin) * channels..wanted.end.saturating_sub(begin) * channels;
        begin = end;
        if inside.is_empty() {
            return Ok(());
        }
        let count = if mixes { inside.len() / channels } else { inside.len() };
        let missing = || Error::internal("more samples than expected");
        let to = dst.split_off_mut(..count).ok_or_else(missing)?;
        match block {
            Block::Integers(samples) if !mixes => {
                T::store_integers(samples.get(inside).ok_or_else(missing)?, to);
            }
            Block::Floats(samples) if !mixes => store(samples.get(inside).ok_or_else(missing)?, to),
            block => {
                levels.clear();
                match block {
                    Block::Integers(samples) => {
                        levels.extend(samples.get(inside).ok_or_else(missing)?.iter().copied().map(level));
                    }
                    Block::Floats(samples) => {
                        levels.extend_from_slice(samples.get(inside).ok_or_else(missing)?);
                    }
                }
                for (to, frame) in to.iter_mut().zip(levels.chunks_exact(channels)) {
                    let mean = frame.iter().skip(1).fold(frame[0] * weight, |sum, x| sum + x * weight);
                    *to = T::from_level(mean);
                }
            }
        }
        Ok(())
    })
}
