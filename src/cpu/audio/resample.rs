//! A signal at another rate, by a windowed sinc from a table. It must not know where rates come from. Steps and their
//! order are DALI's on a CPU, four taps at once in signals of one channel.

use std::f64::consts::PI;
use std::time::Duration;

use multiversion::multiversion;

use crate::deadline::Watch;
use crate::error::Result;

/// Output samples between positions that are computed in double precision; from there each is the last one and a step.
const BLOCK: usize = 1 << 8;

/// Entries of the table for each lobe, and from one tap to the next.
const ENTRIES_PER_LOBE: usize = 64;
const ENTRIES_PER_TAP: usize = 32;

/// Blocks between two looks at the clock.
const BLOCKS: usize = 16;

/// Nanoseconds of one core for each tap of an output sample.
const TAP: f64 = 0.5;

/// The most lobes, of the best quality.
const MAX_LOBES: usize = 64;

/// A sinc under a Hann window.
#[derive(Debug)]
pub struct Resampler {
    lobes: i64,
    scale: f32,
    center: f32,
    /// Starts and ends with zeros, so that interpolation needs no bounds.
    table: Vec<f32>,
    /// The entries, and how far it is from each to the next.
    slopes: Vec<[f32; 2]>,
    phases: Phases,
}

/// The entries in another order: those that neighbouring taps have, a tap apart, are neighbours.
#[derive(Debug)]
struct Phases {
    /// Entries of a phase, with zeros behind them for all taps.
    len: usize,
    values: Vec<f32>,
    slopes: Vec<f32>,
}

/// For each tap of a sample: where it is in the window, how far behind an entry, and its weighted value.
struct Scratch {
    xs: [f32; 2 * MAX_LOBES],
    rests: [f32; 2 * MAX_LOBES],
    products: [f32; 2 * MAX_LOBES],
}

impl Phases {
    fn new(slopes: &[[f32; 2]]) -> Self {
        let len = slopes.len() / ENTRIES_PER_TAP + 1 + 2 * MAX_LOBES;
        let zeros = vec![0.0; len * ENTRIES_PER_TAP];
        let mut phases = Self { len, values: zeros.clone(), slopes: zeros };
        for (i, &[value, slope]) in slopes.iter().enumerate() {
            let place = phases.place(i);
            (phases.values[place], phases.slopes[place]) = (value, slope);
        }
        phases
    }

    /// Where entry `i` is.
    #[inline(always)]
    fn place(&self, i: usize) -> usize {
        (i % ENTRIES_PER_TAP * self.len).saturating_add(i / ENTRIES_PER_TAP)
    }
}

/// A resampler's window: a table that is interpolated, at `x * scale + center` for `x` from the middle of the window.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// The entries.
    pub table: &'a [f32],
    /// Entries from one tap to the next.
    pub scale: f32,
    /// The entry in the middle.
    pub center: f32,
    /// Taps on either side.
    pub lobes: i64,
}

impl Resampler {
    /// Its window.
    pub fn window(&self) -> Window<'_> {
        Window { table: &self.table, scale: self.scale, center: self.center, lobes: self.lobes }
    }

    /// Of a quality from 0 (3 lobes) to 100 (64 lobes).
    pub fn new(quality: f64) -> Self {
        let lobes =
            (0.007 * quality * quality - 0.09 * quality + 3.0).round().clamp(1.0, MAX_LOBES as f64) as usize;
        let entries = lobes * ENTRIES_PER_LOBE + 1;
        let scale = 2.0 * lobes as f32 / (entries - 1) as f32;
        let envelope_scale = 2.0 / entries as f32;
        let center = (entries - 1) / 2;
        let mut table = vec![0.0; entries + 5];
        for (i, to) in table[1..=entries].iter_mut().enumerate() {
            let place = i as f32 - center as f32;
            let envelope = 0.5 * (1.0 + (f64::from(place * envelope_scale) * PI).cos());
            *to = (f64::from(sinc(place * scale)) * envelope) as f32;
        }
        let slopes: Vec<_> = table.array_windows().map(|[a, b]| [*a, b - a]).collect();
        let phases = Phases::new(&slopes);
        Self { lobes: lobes as i64, scale: 1.0 / scale, center: (center + 1) as f32, table, slopes, phases }
    }

    /// Samples of a signal of `length` samples at another rate.
    pub fn length(length: usize, in_rate: f64, out_rate: f64) -> f64 {
        (length as f64 * out_rate / in_rate).ceil()
    }

    /// What writing so many samples of all channels is expected to take.
    pub fn effort(&self, samples: usize) -> Duration {
        Duration::from_nanos((samples as f64 * 2.0 * self.lobes as f64 * TAP) as u64)
    }

    /// Writes to `out` the signal `input` of interleaved `channels` at another rate, the second of `rates`; both start
    /// at the same time.
    ///
    /// # Errors
    /// Those of `watch`, which is asked now and then.
    pub fn run(
        &self,
        input: &[f32],
        out: &mut [f32],
        channels: usize,
        [in_rate, out_rate]: [f64; 2],
        watch: &Watch<'_>,
    ) -> Result<()> {
        let step = in_rate / out_rate;
        for (i, out) in out.chunks_mut(BLOCKS * BLOCK * channels.max(1)).enumerate() {
            run(self, input, out, channels, (i * BLOCKS, step));
            watch.charge(out.len().saturating_mul(self.lobes as usize))?;
        }
        Ok(())
    }

    /// Writes blocks from number `first` on.
    #[inline(always)]
    fn resample(&self, input: &[f32], out: &mut [f32], channels: usize, (first, step): (usize, f64)) {
        let length = (input.len() / channels.max(1)) as i64;
        let zeros = [0.0; 2 * MAX_LOBES];
        let mut scratch = Scratch { xs: zeros, rests: zeros, products: zeros };
        for (block, out) in out.chunks_mut(BLOCK * channels.max(1)).enumerate() {
            let start = ((first + block) * BLOCK) as f64 * step;
            let base = start.floor();
            let mut place = (start - base) as f32;
            let base = base as i64;
            for out in out.chunks_exact_mut(channels.max(1)) {
                let middle = place.ceil() as i64;
                let first = (middle - self.lobes).max(-base);
                let last = (middle + self.lobes).min(length - base);
                out.fill(0.0);
                if first < last {
                    let taps = &input[(first + base) as usize * channels..(last + base) as usize * channels];
                    match out {
                        [out] => *out = self.one(taps, first as f32 - place, &mut scratch),
                        out => self.several(taps, first as f32 - place, out),
                    }
                }
                place += step as f32;
            }
        }
    }

    /// The window at `x` from its middle.
    #[inline(always)]
    fn at(&self, x: f32) -> f32 {
        let place = x * self.scale + self.center;
        let i = place.floor();
        match self.slopes.get((i as i32).max(0) as usize) {
            Some([value, slope]) => value + (place - i) * slope,
            None => 0.0,
        }
    }

    /// The sum over `taps`, of which the first is `x` from the middle of the window: of each fourth tap, of those four
    /// sums, and of the last taps, one to four, one by one.
    #[inline(always)]
    fn one(&self, taps: &[f32], x: f32, scratch: &mut Scratch) -> f32 {
        let Scratch { xs, rests, products } = scratch;
        let (Some(xs), Some(rests), Some(products)) =
            (xs.get_mut(..taps.len()), rests.get_mut(..taps.len()), products.get_mut(..taps.len()))
        else {
            return 0.0;
        };
        let together = taps.len().saturating_sub(1) / 4 * 4;
        let (fours, last) = xs.split_at_mut(together);
        let mut four = [x, x + 1.0, x + 2.0, x + 3.0];
        for to in fours.as_chunks_mut::<4>().0 {
            *to = four;
            for x in &mut four {
                *x += 4.0;
            }
        }
        let mut one = together as f32 + x;
        for to in last {
            *to = one;
            one += 1.0;
        }
        self.weigh(taps, xs, rests, products);
        let (fours, last) = products.split_at(together);
        let mut sums = [0.0; 4];
        for four in fours.as_chunks::<4>().0 {
            for lane in 0..4 {
                sums[lane] += four[lane];
            }
        }
        last.iter().fold((sums[0] + sums[2]) + (sums[1] + sums[3]), |sum, product| sum + product)
    }

    /// Multiplies `taps` by the window at each of `xs`, which are one apart but for rounding: then their entries are
    /// neighbours in [`Phases`]. All have one length.
    #[inline(always)]
    fn weigh(&self, taps: &[f32], xs: &[f32], rests: &mut [f32], products: &mut [f32]) {
        let first = xs.first().map_or(0, |x| entry((x * self.scale + self.center).floor()));
        let (mut expected, mut differs) = (first, 0);
        for (x, rest) in xs.iter().zip(rests.iter_mut()) {
            let place = x * self.scale + self.center;
            let i = place.floor();
            *rest = place - i;
            differs |= entry(i) ^ expected;
            expected = expected.wrapping_add(ENTRIES_PER_TAP as i32);
        }
        let start = self.phases.place(usize::try_from(first).unwrap_or(usize::MAX));
        let phase = start..start.saturating_add(xs.len());
        match (self.phases.values.get(phase.clone()), self.phases.slopes.get(phase)) {
            (Some(values), Some(slopes)) if differs == 0 && first >= 0 => {
                let entries = values.iter().zip(slopes).zip(rests);
                for ((to, tap), ((value, slope), rest)) in products.iter_mut().zip(taps).zip(entries) {
                    *to = tap * (value + *rest * slope);
                }
            }
            // Rounding has moved one to the entry beside, or it is before the first one.
            _ => {
                for ((to, tap), x) in products.iter_mut().zip(taps).zip(xs) {
                    *to = tap * self.at(*x);
                }
            }
        }
    }

    #[inline(always)]
    fn several(&self, taps: &[f32], mut x: f32, out: &mut [f32]) {
        for taps in taps.chunks_exact(out.len()) {
            let weight = self.at(x);
            for (sum, tap) in out.iter_mut().zip(taps) {
                *sum += tap * weight;
            }
            x += 1.0;
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn run(resampler: &Resampler, input: &[f32], out: &mut [f32], channels: usize, part: (usize, f64)) {
    resampler.resample(input, out, channels, part);
}

/// A whole number of less than 2^22 as an integer. Unlike `as` it becomes vector code.
#[inline(always)]
fn entry(i: f32) -> i32 {
    // 1.5 * 2^23: the sum has the number in its lowest bits.
    const TO_LOWEST_BIT: f32 = 12_582_912.0;
    (i + TO_LOWEST_BIT).to_bits().wrapping_sub(TO_LOWEST_BIT.to_bits()) as i32
}

fn sinc(x: f32) -> f32 {
    let x = (f64::from(x) * PI) as f32;
    if x.abs() < 1e-5 { 1.0 - x * x * (1.0 / 6.0) } else { x.sin() / x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_stays_one_away_from_its_ends() {
        let input = vec![1.0f32; 2000];
        for (rate, channels) in [(2.0, 1), (0.7, 1), (1.0, 2), (3.3, 2)] {
            let frames = Resampler::length(input.len() / channels, 1.0, rate) as usize;
            let mut out = vec![0.0; frames * channels];
            Resampler::new(50.0).run(&input, &mut out, channels, [1.0, rate], &Watch::forever()).unwrap();
            assert!((out[out.len() / 2] - 1.0).abs() < 1e-3, "{rate}: {}", out[out.len() / 2]);
        }
    }

    #[test]
    fn work_that_nobody_waits_for_ends() {
        struct Nobody;
        impl crate::deadline::Deadline for Nobody {
            fn check(&self, _sample: Option<usize>) -> Result<()> {
                Err(crate::error::Error::invalid("nobody waits"))
            }
        }
        let input = vec![1.0f32; 100];
        let mut out = vec![7.0; 100 * BLOCKS * BLOCK];
        let rates = [100.0, out.len() as f64];
        let watch = Watch::new(&Nobody, None);
        assert!(Resampler::new(50.0).run(&input, &mut out, 1, rates, &watch).is_err());
        assert_eq!(out.iter().filter(|&&value| value == 7.0).count(), 99 * BLOCKS * BLOCK);
    }

    #[test]
    fn degenerate_signals_are_silence() {
        let mut out = [1.0; 5];
        Resampler::new(0.0).run(&[], &mut out, 1, [1.0, 2.0], &Watch::forever()).unwrap();
        assert_eq!(out, [0.0; 5]);
    }
}
