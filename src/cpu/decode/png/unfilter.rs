//! From filtered rows of a PNG to its samples: <https://www.w3.org/TR/png-3/#9Filters>. It must not know files.

use super::filter::Filter;
#[cfg(target_arch = "x86_64")]
use super::staggered;

/// Makes rows of `stride` bytes, pixels of `N` bytes. `filtered` are their bytes as in the file, the filter in front of
/// each row; `rows` are the row above, which was made before, and behind it room for the others.
///
/// Returns whether all filters are known and the lengths fit together.
pub(super) fn unfilter<const N: usize>(filtered: &[u8], rows: &mut [u8], stride: usize) -> bool {
    let count = filtered.len() / (stride + 1);
    if !stride.is_multiple_of(N)
        || filtered.len() != count * (stride + 1)
        || rows.len() != (count + 1) * stride
    {
        return false;
    }
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    while let Some(together) = staggered::together::<N>(count - done, stride) {
        let filtered = &filtered[done * (stride + 1)..][..together * (stride + 1)];
        let rows = &mut rows[done * stride..][..(together + 1) * stride];
        let mut filters = [Filter::None; staggered::MOST];
        for (filter, row) in filters.iter_mut().zip(filtered.chunks_exact(stride + 1)) {
            let Some(known) = Filter::numbered(row[0]) else { return false };
            *filter = known;
        }
        if !filters.iter().any(|filter| filter.waits()) {
            one_after_the_other::<N>(filtered, rows, stride);
        } else {
            staggered::unfilter::<N>(&filters[..together], filtered, rows, stride);
        }
        done += together;
    }
    one_after_the_other::<N>(&filtered[done * (stride + 1)..], &mut rows[done * stride..], stride)
}

/// As [`unfilter`], a row and then the next one.
fn one_after_the_other<const N: usize>(filtered: &[u8], rows: &mut [u8], stride: usize) -> bool {
    for (r, filtered) in filtered.chunks_exact(stride + 1).enumerate() {
        let (above, row) = rows[r * stride..][..2 * stride].split_at_mut(stride);
        let Some(filter) = Filter::numbered(filtered[0]) else { return false };
        one::<N>(filter, &filtered[1..], above, row);
    }
    true
}

/// Makes a row.
fn one<const N: usize>(filter: Filter, filtered: &[u8], above: &[u8], row: &mut [u8]) {
    match filter {
        Filter::None => row.copy_from_slice(filtered),
        Filter::Up => {
            for ((sample, &filtered), &above) in row.iter_mut().zip(filtered).zip(above) {
                *sample = filtered.wrapping_add(above);
            }
        }
        Filter::Sub => each_pixel::<N>(filtered, above, row, |a, _, _| a),
        Filter::Average => each_pixel::<N>(filtered, above, row, |a, b, _| (a + b) >> 1),
        Filter::Paeth => each_pixel::<N>(filtered, above, row, paeth),
    }
}

/// Makes a row whose samples are predicted from those to the left, above, and above to the left.
#[inline(always)]
fn each_pixel<const N: usize>(
    filtered: &[u8],
    above: &[u8],
    row: &mut [u8],
    predicted: impl Fn(i16, i16, i16) -> i16,
) {
    let (mut left, mut corner) = ([0; N], [0; N]);
    let pixels = filtered.as_chunks::<N>().0.iter().zip(above.as_chunks::<N>().0);
    for (pixel, (filtered, above)) in row.as_chunks_mut::<N>().0.iter_mut().zip(pixels) {
        let above = above.map(i16::from);
        for i in 0..N {
            pixel[i] = filtered[i].wrapping_add(predicted(left[i], above[i], corner[i]) as u8);
        }
        (left, corner) = (pixel.map(i16::from), above);
    }
}

/// The one of `a`, `b` and `c` that is nearest to `a + b - c`; the first of those that are as near.
///
/// Said otherwise: `c` where it lies between the others by enough, else the one of those on its far side.
#[inline(always)]
fn paeth(a: i16, b: i16, c: i16) -> i16 {
    let (low, high) = (a.min(b), a.max(b));
    let threshold = 3 * c - a - b;
    let nearest = if high > threshold { c } else { low };
    if threshold > low { nearest } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the specification says it.
    fn specified(a: i16, b: i16, c: i16) -> i16 {
        let estimate = a + b - c;
        let [near_a, near_b, near_c] = [a, b, c].map(|sample| (estimate - sample).abs());
        if near_a <= near_b && near_a <= near_c {
            a
        } else if near_b <= near_c {
            b
        } else {
            c
        }
    }

    #[test]
    fn paeth_is_as_specified() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert!((0..=255).all(|c| paeth(a, b, c) == specified(a, b, c)), "{a} {b}");
            }
        }
    }

    /// Rows at a time beside rows one after the other.
    fn compare<const N: usize>(width: usize, height: usize, state: &mut u64) {
        let stride = width * N;
        let mut byte = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 56) as u8
        };
        let mut filtered: Vec<u8> = (0..height * (stride + 1)).map(|_| byte()).collect();
        for row in filtered.chunks_exact_mut(stride + 1) {
            // Half of the files have one filter in all their rows.
            row[0] = if height.is_multiple_of(2) { byte() % 5 } else { (width % 5) as u8 };
        }
        let mut expected: Vec<u8> = (0..(height + 1) * stride).map(|_| byte()).collect();
        let mut found = expected.clone();
        found[stride..].fill(0xA5);
        assert!(one_after_the_other::<N>(&filtered, &mut expected, stride));
        assert!(unfilter::<N>(&filtered, &mut found, stride));
        assert!(found == expected, "{width} x {height} pixels of {N} bytes");
        if height > 0 {
            let last = (height - 1) * (stride + 1);
            filtered[last] = 5;
            assert!(!unfilter::<N>(&filtered, &mut found, stride), "an unknown filter");
            assert!(!unfilter::<N>(&filtered[1..], &mut found, stride), "a byte is missing");
        }
    }

    #[test]
    fn rows_at_a_time_are_those_one_after_the_other() {
        let mut state = 1;
        for width in (1..=40).chain([95, 96, 97, 98, 99, 100, 127, 1000]) {
            for height in [0, 1, 3, 4, 5, 7, 8, 9, 11, 12, 21] {
                compare::<1>(width, height, &mut state);
                compare::<2>(width, height, &mut state);
                compare::<3>(width, height, &mut state);
                compare::<4>(width, height, &mut state);
            }
        }
    }
}
