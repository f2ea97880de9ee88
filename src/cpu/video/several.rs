//! Frames of a video in any order, some more than once: what needs nothing of one another is decoded at the same time.
//! It must not know who asks for them.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{Budget, Video};
use crate::error::{Error, Result};
use crate::threads;

impl Video<'_> {
    /// Writes `frames` to `out`, one behind the other, in RGB; `None` stands for a frame of the colour `fill`.
    ///
    /// # Errors
    /// Those of [`Video::decode`].
    pub fn write_all(&self, frames: &[Option<usize>], fill: [u8; 3], out: &mut [u8]) -> Result<()> {
        // What every frame of the video is written to.
        let mut targets = BTreeMap::<usize, Vec<&mut [u8]>>::new();
        let size = self.height() * self.width() * fill.len();
        for (frame, target) in frames.iter().zip(out.chunks_exact_mut(size)) {
            match frame {
                Some(frame) => targets.entry(*frame).or_default().push(target),
                None => target.as_chunks_mut().0.fill(fill),
            }
        }
        let budget = Budget::default();
        let wanted: Vec<usize> = targets.keys().copied().collect();
        let mut targets = targets.into_values();
        let runs: Vec<(&[usize], Vec<_>)> = self
            .runs(&wanted)?
            .into_iter()
            .map(|run| (run, targets.by_ref().take(run.len()).collect()))
            .collect();
        let decode = |(run, mut targets): (&[usize], Vec<Vec<&mut [u8]>>)| {
            self.decode(run, &budget, &mut |frame, write| {
                let place = run.binary_search(&frame).ok().and_then(|place| targets.get_mut(place));
                let Some([first, copies @ ..]) = place.map(Vec::as_mut_slice) else {
                    return Err(Error::internal("a frame that nobody asked for"));
                };
                write(first)?;
                copies.iter_mut().for_each(|copy| copy.copy_from_slice(first));
                Ok(())
            })
        };
        threads::divided(|| runs.into_par_iter().try_for_each(decode))?
    }
}

/// The colour that `levels` give, from 0 to 255: one for all channels, or one for each.
///
/// # Errors
/// Invalid for others, and for another number of them.
pub fn fill_color(levels: &[i64]) -> Result<[u8; 3]> {
    let fits: Vec<u8> = levels.iter().filter_map(|&level| u8::try_from(level).ok()).collect();
    let fill = match fits.as_slice() {
        _ if fits.len() != levels.len() => None,
        &[level] => Some([level; 3]),
        fits => fits.try_into().ok(),
    };
    fill.ok_or_else(|| Error::invalid("argument `fill_value`: expected 1 or 3 values from 0 to 255"))
}
