//! Pillow's `reducing_gap`: the image is made smaller by whole factors before it is resized, each pixel the mean of a
//! block. It must not know weights.

use std::array::from_fn;

use super::filters::{Curve, Line};
use super::rows::Rows;
use crate::deadline::Watch;
use crate::error::Result;

/// What is reduced before. Pairs are rows, then columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reduction {
    /// Pixels of the crop, first and end.
    part: [(usize, usize); 2],
    /// Of so many pixels one is made.
    factors: [usize; 2],
    /// The region that is resized then.
    region: [(f32, f32); 2],
}

impl Reduction {
    /// What `Image.resize` reduces before it filters `lines`, rows and columns, with `curve`; `None` where it does not.
    pub(super) fn new(lines: [Line; 2], curve: Curve, gap: f32) -> Option<Self> {
        let ends = lines.map(|line| (f64::from(line.start), f64::from(line.end)));
        let scales: [f64; 2] = from_fn(|d| (ends[d].1 - ends[d].0) / lines[d].outputs as f64);
        let factors = scales.map(|scale| ((scale / f64::from(gap)) as usize).max(1));
        if factors == [1, 1] {
            return None;
        }
        // Pixels that the filter sees around the region.
        let part: [(usize, usize); 2] = from_fn(|d| {
            let around = (curve.support() - 0.5) * scales[d];
            let (first, end) = ((ends[d].0 - around).max(0.0), (ends[d].1 + around).ceil());
            (first as usize, (end as usize).min(lines[d].length))
        });
        let region = from_fn(|d| {
            let place = |at: f64| ((at - part[d].0 as f64) / factors[d] as f64) as f32;
            (place(ends[d].0), place(ends[d].1))
        });
        Some(Self { part, factors, region })
    }

    /// Rows and columns that are made.
    pub(super) fn size(&self) -> [usize; 2] {
        from_fn(|d| (self.part[d].1 - self.part[d].0).div_ceil(self.factors[d]))
    }

    /// The region that is resized then, in pixels of what is made.
    pub(super) fn region(&self) -> [(f32, f32); 2] {
        self.region
    }

    /// Makes the means of `src`, pixels of `channels` elements. Blocks at the ends have fewer pixels.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub(super) fn run(
        &self,
        src: &Rows<'_>,
        channels: usize,
        dst: &mut [u8],
        watch: &Watch<'_>,
    ) -> Result<()> {
        let ([rows, columns], [down, across]) = (self.part, self.factors);
        let src = src.part(rows, (columns.0 * channels, columns.1 * channels));
        let width = columns.1 - columns.0;
        let row_len = self.size()[1] * channels;
        let mut sums = vec![0_u32; row_len];
        for (y, dst) in dst.chunks_exact_mut(row_len).enumerate() {
            sums.fill(0);
            let lines = down.min(src.count - y * down);
            for line in 0..lines {
                let row = src.row(y * down + line).chunks(across * channels);
                for (block, sums) in row.zip(sums.chunks_exact_mut(channels)) {
                    for pixel in block.chunks_exact(channels) {
                        for (sum, &value) in sums.iter_mut().zip(pixel) {
                            *sum = sum.wrapping_add(u32::from(value));
                        }
                    }
                }
            }
            for (x, (dst, sums)) in
                dst.chunks_exact_mut(channels).zip(sums.chunks_exact(channels)).enumerate()
            {
                let count = lines * across.min(width - x * across);
                for (to, &sum) in dst.iter_mut().zip(sums) {
                    *to = mean(sum, count);
                }
            }
            watch.charge(src.len * lines)?;
        }
        Ok(())
    }
}

/// The mean of `count` bytes, as `libImaging/Reduce.c` rounds it: by a factor of 32 bits, which float32 makes. Sums
/// wrap around, as there.
fn mean(sum: u32, count: usize) -> u8 {
    let factor = ((1_u64 << 32) as f32 / ((count as u64) << 8) as f32) as u32;
    (sum.wrapping_add(count as u32 / 2).wrapping_mul(factor) >> 24) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded() {
        assert_eq!([mean(1, 2), mean(2, 4), mean(1, 4), mean(255 * 9, 9)], [1, 1, 0, 255]);
    }
}
