//! A signal at another rate, by a windowed sinc from a table. It must not know where rates come from. Steps and their order are
//! DALI's on a CPU, four taps at once in signals of one channel.

use std::f64::consts::PI;

use multiversion::multiversion;

/// Output samples between positions that are computed in double precision; from there each is the last one and a step.
const BLOCK: usize = 1 << 8;

/// Entries of the table for each lobe.
const ENTRIES_PER_LOBE: usize = 64;

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
        let lobes = (0.007 * quality * quality - 0.09 * quality + 3.0).round().max(1.0) as usize;
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
        let slopes = table.array_windows().map(|[a, b]| [*a, b - a]).collect();
        Self { lobes: lobes as i64, scale: 1.0 / scale, center: (center + 1) as f32, table, slopes }
    }

    /// Samples of a signal of `length` samples at another rate.
    pub fn length(length: usize, in_rate: f64, out_rate: f64) -> f64 {
        (length as f64 * out_rate / in_rate).ceil()
    }

    /// Writes to `out` the signal `input` of interleaved `channels`; both start at the same time.
    pub fn run(&self, input: &[f32], out: &mut [f32], channels: usize, in_rate: f64, out_rate: f64) {
        run(self, input, out, channels, [in_rate, out_rate]);
    }

    #[inline(always)]
    fn resample(&self, input: &[f32], out: &mut [f32], channels: usize, [in_rate, out_rate]: [f64; 2]) {
        let length = (input.len() / channels.max(1)) as i64;
        let step = in_rate / out_rate;
        for (block, out) in out.chunks_mut(BLOCK * channels.max(1)).enumerate() {
            let start = (block * BLOCK) as f64 * step;
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
                        [out] => *out = self.one(taps, first as f32 - place),
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

    /// The sum over `taps`, of which the first is `x` from the middle of the window.
    #[inline(always)]
    fn one(&self, taps: &[f32], x: f32) -> f32 {
        let mut sums = [0.0f32; 4];
        let mut xs = [x, x + 1.0, x + 2.0, x + 3.0];
        // The last taps, one to four, are added one by one.
        let together = taps.len().saturating_sub(1) / 4 * 4;
        let (fours, rest) = taps.split_at(together);
        for four in fours.as_chunks::<4>().0 {
            // Step by step for all four, so that steps become vector code.
            let (mut rests, mut pairs) = ([0.0; 4], [&[0.0; 2]; 4]);
            for lane in 0..4 {
                let place = xs[lane] * self.scale + self.center;
                let i = place.floor();
                rests[lane] = place - i;
                pairs[lane] = self.slopes.get((i as i32).max(0) as usize).unwrap_or(&[0.0; 2]);
                xs[lane] += 4.0;
            }
            for lane in 0..4 {
                let [value, slope] = pairs[lane];
                sums[lane] += four[lane] * (value + rests[lane] * slope);
            }
        }
        let mut sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
        let mut x = together as f32 + x;
        for tap in rest {
            sum += tap * self.at(x);
            x += 1.0;
        }
        sum
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

#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
fn run(resampler: &Resampler, input: &[f32], out: &mut [f32], channels: usize, rates: [f64; 2]) {
    resampler.resample(input, out, channels, rates);
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
            Resampler::new(50.0).run(&input, &mut out, channels, 1.0, rate);
            assert!((out[out.len() / 2] - 1.0).abs() < 1e-3, "{rate}: {}", out[out.len() / 2]);
        }
    }

    #[test]
    fn degenerate_signals_are_silence() {
        let mut out = [1.0; 5];
        Resampler::new(0.0).run(&[], &mut out, 1, 1.0, 2.0);
        assert_eq!(out, [0.0; 5]);
    }
}
