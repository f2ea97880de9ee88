//! Largest and smallest values, and medians, of rectangles of pixels. It must not know operators or borders: pixels
//! outside of an image are there already.

use std::cmp::Ordering;

use multiversion::multiversion;

use crate::deadline::Watch;
use crate::error::Result;

/// Which value of a rectangle is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The largest.
    Largest,
    /// The smallest.
    Smallest,
}

/// Makes of every value of `values` the extreme of `count` values from it on, each `stride` behind the one before. The
/// last values, behind which there are fewer, become something between. `scratch` is as long as `values`.
pub fn extremes<T: Copy + PartialOrd>(
    values: &mut Vec<T>,
    scratch: &mut Vec<T>,
    stride: usize,
    count: usize,
    wanted: Extreme,
) {
    // Windows of twice the size at each step, and at the end two that overlap.
    let mut done = 1;
    while done < count {
        let more = done.min(count - done);
        let distance = (more * stride).min(values.len());
        let (near, far) = (values.as_slice(), &values[distance..]);
        match wanted {
            Extreme::Largest => larger(near, far, scratch),
            Extreme::Smallest => smaller(near, far, scratch),
        }
        scratch[near.len() - distance..].copy_from_slice(&near[near.len() - distance..]);
        std::mem::swap(values, scratch);
        done += more;
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn larger<T: Copy + PartialOrd>(near: &[T], far: &[T], to: &mut [T]) {
    for ((to, &a), &b) in to.iter_mut().zip(near).zip(far) {
        *to = if b > a { b } else { a };
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn smaller<T: Copy + PartialOrd>(near: &[T], far: &[T], to: &mut [T]) {
    for ((to, &a), &b) in to.iter_mut().zip(near).zip(far) {
        *to = if b < a { b } else { a };
    }
}

/// An image of interleaved channels with what lies around it.
#[derive(Debug, Clone, Copy)]
pub struct Surrounded<'a, T> {
    /// The elements.
    pub values: &'a [T],
    /// Elements of a row.
    pub pitch: usize,
    /// Channels of a pixel.
    pub channels: usize,
}

/// Numbers that can be put in order; of floats, those that are none lie outside of all others.
pub trait Ordered: Copy + PartialOrd {
    /// Which of both comes first.
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! ordered {
    ($($ty:ty),*) => { $(impl Ordered for $ty {
        fn order(&self, other: &Self) -> Ordering {
            self.cmp(other)
        }
    })* };
}
ordered!(u8, u16, i16, i32);

impl Ordered for f32 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

impl<T: Ordered> Surrounded<'_, T> {
    /// Writes for each element of `row`, row `y` of the image without what lies around it, the median of the `size`
    /// (columns and rows, odd) pixels around it. `window` is room for as many values.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub fn medians(
        &self,
        y: usize,
        row: &mut [T],
        size: [usize; 2],
        window: &mut Vec<T>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        if size == [3, 3] {
            let line = |i: usize| &self.values[(y + i) * self.pitch..][..row.len() + 2 * self.channels];
            medians_of_nine([line(0), line(1), line(2)], self.channels, row);
            return watch.charge(row.len());
        }
        let [columns, rows] = size;
        for (at, to) in row.iter_mut().enumerate() {
            window.clear();
            for line in self.values[y * self.pitch + at..].chunks(self.pitch).take(rows) {
                window.extend(line.iter().step_by(self.channels).take(columns));
            }
            let middle = window.len() / 2;
            *to = *window.select_nth_unstable_by(middle, Ordered::order).1;
            watch.charge(columns * rows)?;
        }
        Ok(())
    }
}

/// Medians of three by three pixels: exchanges that leave the middle of nine values.
#[multiversion(targets("x86_64+avx+avx2"))]
fn medians_of_nine<T: Copy + PartialOrd>(lines: [&[T]; 3], channels: usize, row: &mut [T]) {
    let len = row.len();
    let of = |line: usize, column: usize| &lines[line][column * channels..][..len];
    let nine = [of(0, 0), of(0, 1), of(0, 2), of(1, 0), of(1, 1), of(1, 2), of(2, 0), of(2, 1), of(2, 2)];
    for (i, to) in row.iter_mut().enumerate() {
        let mut v = nine.map(|of| of[i]);
        for [a, b] in EXCHANGES {
            let (low, high) = if v[b] < v[a] { (v[b], v[a]) } else { (v[a], v[b]) };
            (v[a], v[b]) = (low, high);
        }
        *to = v[4];
    }
}

/// Pairs of nine values to put in order, after which the fifth is their median: sort three columns, then take the
/// largest of the smallest, the middle of the middle and the smallest of the largest.
const EXCHANGES: [[usize; 2]; 19] = [
    [1, 2],
    [4, 5],
    [7, 8],
    [0, 1],
    [3, 4],
    [6, 7],
    [1, 2],
    [4, 5],
    [7, 8],
    [0, 3],
    [5, 8],
    [4, 7],
    [3, 6],
    [1, 4],
    [2, 5],
    [4, 7],
    [4, 2],
    [6, 4],
    [4, 2],
];

impl Surrounded<'_, u8> {
    /// [`Surrounded::medians`] by counts of levels, which are those of the pixel before but for a column: for large
    /// windows.
    pub fn medians_by_counts(&self, y: usize, row: &mut [u8], [columns, rows]: [usize; 2]) {
        let half = (columns * rows / 2) as u32;
        for channel in 0..self.channels {
            let (mut counts, mut level, mut below) = ([0u32; 256], 0, 0);
            let column = |at: usize| {
                let first = y * self.pitch + at * self.channels + channel;
                self.values[first..].iter().step_by(self.pitch).take(rows)
            };
            (0..columns - 1).flat_map(column).for_each(|&value| counts[usize::from(value)] += 1);
            for (x, to) in row.iter_mut().skip(channel).step_by(self.channels).enumerate() {
                for &value in column(x + columns - 1) {
                    counts[usize::from(value)] += 1;
                    below += u32::from(usize::from(value) < level);
                }
                // The median is the level with at most half of the values below it, and more than half with its own.
                while below > half {
                    level -= 1;
                    below -= counts[level];
                }
                while below + counts[level] <= half {
                    below += counts[level];
                    level += 1;
                }
                *to = level as u8;
                for &value in column(x) {
                    counts[usize::from(value)] -= 1;
                    below -= u32::from(usize::from(value) < level);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn extremes_are_those_of_each_window(
            values in prop::collection::vec(0u8..255, 1..60), stride in 1usize..4, count in 1usize..12,
        ) {
            for (wanted, fold) in [(Extreme::Largest, u8::max as fn(u8, u8) -> u8), (Extreme::Smallest, u8::min)] {
                let (mut found, mut scratch) = (values.clone(), values.clone());
                extremes(&mut found, &mut scratch, stride, count, wanted);
                let whole = values.len().saturating_sub((count - 1) * stride);
                for i in 0..whole {
                    let expected = (0..count).map(|k| values[i + k * stride]).reduce(fold).unwrap();
                    prop_assert_eq!(found[i], expected);
                }
            }
        }

        #[test]
        fn medians_are_the_middle_of_sorted_windows(
            values in prop::collection::vec(0u8..255, 9 * 11 * 2), half_columns in 0usize..4, half_rows in 0usize..3,
        ) {
            let (size, channels) = ([2 * half_columns + 1, 2 * half_rows + 1], 2);
            let image = Surrounded { values: &values, pitch: 11 * channels, channels };
            for y in 0..9 - size[1] + 1 {
                let width = 11 - size[0] + 1;
                let (mut row, mut counted) = (vec![0; width * channels], vec![0; width * channels]);
                image.medians(y, &mut row, size, &mut Vec::new(), &Watch::forever()).unwrap();
                image.medians_by_counts(y, &mut counted, size);
                for (i, &found) in row.iter().enumerate() {
                    let mut all: Vec<u8> = (0..size[1])
                        .flat_map(|j| (0..size[0]).map(move |k| (j, k)))
                        .map(|(j, k)| values[(y + j) * image.pitch + i + k * channels])
                        .collect();
                    all.sort_unstable();
                    prop_assert_eq!(found, all[all.len() / 2]);
                    prop_assert_eq!(counted[i], found);
                }
            }
        }
    }
}
