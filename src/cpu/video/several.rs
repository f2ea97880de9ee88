//! Frames of a video in any order, some more than once: what needs nothing of one another is decoded at the same time.
//! It must not know who asks for them.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use rayon::prelude::*;

use super::{Budget, Frame, Padding, Video, codec};
use crate::error::{Error, Result};
use crate::threads;

/// A frame, or none, and the bytes that are made of it.
pub type Target<'t> = (Option<usize>, &'t mut [u8]);

/// More levels than these are not named in an error.
const SHOWN_LEVELS: usize = 8;

impl Video<'_> {
    /// Writes `frames` to `out`, one behind the other, in RGB; `None` stands for a frame of the colour `fill`. At most
    /// so many `decoders` are at work at a time, each in a thread of rayon's.
    ///
    /// # Errors
    /// Those of [`Video::decode`].
    pub fn write_all(
        &self,
        frames: &[Option<usize>],
        fill: [u8; 3],
        out: &mut [u8],
        budget: &Budget<'_>,
        decoders: usize,
    ) -> Result<()> {
        let size = self.height() * self.width() * fill.len();
        let targets: Vec<Target<'_>> = frames.iter().copied().zip(out.chunks_exact_mut(size)).collect();
        let fill = |target: &mut [u8]| {
            target.as_chunks_mut().0.fill(fill);
            Ok(())
        };
        self.write_each(targets, &fill, &|frame, target| frame.write(target), budget, decoders)
    }

    /// Lets `write` make each of the `targets` of its frame, and `fill` those that have none. Frames are decoded as in
    /// [`Video::write_all`].
    ///
    /// # Errors
    /// Those of [`Video::decode`], `fill` and `write`.
    pub fn write_each(
        &self,
        targets: Vec<Target<'_>>,
        fill: &dyn Fn(&mut [u8]) -> Result<()>,
        write: &(dyn Fn(&Frame<'_>, &mut [u8]) -> Result<()> + Sync),
        budget: &Budget<'_>,
        decoders: usize,
    ) -> Result<()> {
        // What every frame of the video is written to.
        let mut of_frames = BTreeMap::<usize, Vec<&mut [u8]>>::new();
        for (frame, target) in targets {
            match frame {
                Some(frame) => of_frames.entry(frame).or_default().push(target),
                None => fill(target)?,
            }
        }
        let wanted: Vec<usize> = of_frames.keys().copied().collect();
        let mut targets = of_frames.into_values();
        let runs: Vec<(usize, &[usize], Vec<_>)> = self
            .runs(&wanted)?
            .into_iter()
            .enumerate()
            .map(|(number, run)| (number, run, targets.by_ref().take(run.len()).collect()))
            .collect();
        let decode = |run: &[usize], mut targets: Vec<Vec<&mut [u8]>>| {
            self.decode(run, budget, &mut |number, frame| {
                let place = run.binary_search(&number).ok().and_then(|place| targets.get_mut(place));
                let Some([first, copies @ ..]) = place.map(Vec::as_mut_slice) else {
                    return Err(Error::internal("a frame that nobody asked for"));
                };
                write(frame, first)?;
                copies.iter_mut().for_each(|copy| copy.copy_from_slice(first));
                Ok(())
            })
        };
        let decoders = decoders.clamp(1, runs.len().max(1));
        let runs = Mutex::new(runs.into_iter());
        // The error of the earliest run, whichever comes first: those before it were begun before it, and end.
        let failed = Mutex::<Option<(usize, Error)>>::default();
        let (has_failed, next) = (|| failed.lock().is_some(), || runs.lock().next());
        let work = |_| {
            while !has_failed()
                && let Some((number, run, targets)) = next()
            {
                let Err(error) = decode(run, targets) else { continue };
                let mut failed = failed.lock();
                if failed.as_ref().is_none_or(|(earliest, _)| number < *earliest) {
                    *failed = Some((number, error));
                }
            }
        };
        threads::divided(|| (0..decoders).into_par_iter().for_each(work))?;
        failed.into_inner().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// What [`Video::write_all`] of these frames is expected to take, in threads that are as many as its runs, and
    /// bytes of memory for each decoder.
    pub fn effort(&self, frames: &[Option<usize>]) -> Efforts {
        let mut wanted: Vec<usize> = frames.iter().flatten().copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let ends = self.track.packets.iter().scan(0_usize, |sum, packet| {
            *sum = sum.saturating_add(packet.range().len());
            Some(*sum)
        });
        let ends: Vec<usize> = ends.collect();
        let before =
            |packet: usize| packet.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
        let (runs, cost) = (self.runs(&wanted).unwrap_or_default(), codec::cost(self.track.codec));
        let time = runs.iter().map(|run| {
            let packets = run.iter().filter_map(|frame| Some(self.shown.get(*frame)?.packet));
            let (Some(last), Some(Ok(key))) = (packets.max(), run.first().map(|frame| self.key_of(*frame)))
            else {
                return Duration::ZERO;
            };
            let end = self.end_of(key, last);
            let bytes = before(end).saturating_sub(before(key));
            cost.of([self.size[0].saturating_mul(self.size[1]), end.saturating_sub(key)], bytes)
        });
        let time = time.fold(Duration::ZERO, Duration::saturating_add);
        let first = self.packet(0).unwrap_or_default();
        Efforts { time, decoder: codec::needs(&self.track, first), runs: runs.len() }
    }
}

/// What decoding frames is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Efforts {
    /// Of one core.
    pub time: Duration,
    /// Bytes of memory that each decoder takes at most.
    pub decoder: usize,
    /// Runs, of which each has a decoder.
    pub runs: usize,
}

/// The colour that `levels` give, from 0 to 255: one for all channels, or one for each. How many they are is of no
/// account where `padding` does not use it.
///
/// # Errors
/// Invalid for others, and for another number of them.
pub fn fill_color(levels: &[i64], padding: Padding) -> Result<[u8; 3]> {
    let fits: Vec<u8> = levels.iter().filter_map(|&level| u8::try_from(level).ok()).collect();
    let fill = match fits.as_slice() {
        _ if fits.len() != levels.len() => None,
        &[level] => Some([level; 3]),
        &[first, ..] if padding != Padding::Constant => Some([first; 3]),
        fits => fits.try_into().ok(),
    };
    fill.ok_or_else(|| {
        let found = match *levels {
            [level] => level.to_string(),
            _ if levels.len() <= SHOWN_LEVELS => format!("{levels:?}"),
            _ => format!("{} values", levels.len()),
        };
        Error::invalid(format!("argument `fill_value` is {found}, expected 1 or 3 values from 0 to 255"))
    })
}
