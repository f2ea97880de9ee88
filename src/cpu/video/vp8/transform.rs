//! The inverse transforms (RFC 6386, section 14).

#[cfg(target_arch = "x86_64")]
use super::vector::{Avx2, cosine};

/// What libvpx keeps of a value between the two dimensions: 16 bits. Those of valid files fit; more, of a damaged one,
/// would overflow the second dimension.
#[inline(always)]
fn kept(value: i32) -> i32 {
    i32::from(value as i16)
}

/// The inverse Walsh-Hadamard transform: the means of the 16 blocks of luma.
pub(super) fn means(input: &[i16; 16]) -> [i16; 16] {
    let mut columns = [0_i32; 16];
    for i in 0..4 {
        let [a, b, c, d] = [0, 4, 8, 12].map(|row| i32::from(input[row + i]));
        columns[i] = a + d + b + c;
        columns[4 + i] = b - c + a - d;
        columns[8 + i] = a + d - b - c;
        columns[12 + i] = a - d - b + c;
    }
    let mut out = [0; 16];
    for (out, row) in out.as_chunks_mut::<4>().0.iter_mut().zip(columns.as_chunks::<4>().0) {
        let [a, b, c, d] = row.map(kept);
        *out =
            [a + d + b + c, b - c + a - d, a + d - b - c, a - d - b + c].map(|sum| ((sum + 3) >> 3) as i16);
    }
    out
}

/// By the root of 2 times the cosine of pi/8, and times its sine.
fn by_cosine(value: i32) -> i32 {
    value + ((value * 20_091) >> 16)
}

fn by_sine(value: i32) -> i32 {
    (value * 35_468) >> 16
}

/// One dimension of the inverse cosine transform, of four columns at a time.
#[inline(always)]
fn dimension([a, b, c, d]: [[i32; 4]; 4]) -> [[i32; 4]; 4] {
    let mut out = [[0; 4]; 4];
    for i in 0..4 {
        let (even, odd) = (a[i] + c[i], a[i] - c[i]);
        let (low, high) = (by_sine(b[i]) - by_cosine(d[i]), by_cosine(b[i]) + by_sine(d[i]));
        (out[0][i], out[1][i], out[2][i], out[3][i]) = (even + high, odd + low, odd - low, even - high);
    }
    out
}

#[inline(always)]
fn transposed(rows: [[i32; 4]; 4]) -> [[i32; 4]; 4] {
    [0, 1, 2, 3].map(|i| [rows[0][i], rows[1][i], rows[2][i], rows[3][i]])
}

/// Adds the inverse cosine transform of `block` to 4x4 samples, which begin with sample `at` and whose rows are
/// `stride` apart; `end` is the place behind its last coefficient.
pub(super) fn add(samples: &mut [u8], at: usize, stride: usize, block: &[i16; 16], end: u8) {
    if end == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if end > 1
        && let Some(avx2) = Avx2::find()
        && cosine::add_one(avx2, samples, at, stride, block)
    {
        return;
    }
    let Some(samples) = samples.get_mut(at..) else { return };
    match end {
        1 => add_mean(samples, stride, block[0]),
        _ => add_whole(samples, stride, block),
    }
}

/// [`add`] of two blocks beside one another.
pub(super) fn add_two(samples: &mut [u8], at: usize, stride: usize, blocks: [&[i16; 16]; 2], ends: [u8; 2]) {
    if ends == [0; 2] {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Avx2::find() {
        let is_done = if ends.iter().all(|&end| end <= 1) {
            cosine::add_two_means(avx2, samples, at, stride, blocks.map(|block| block[0]))
        } else {
            cosine::add_two(avx2, samples, at, stride, blocks)
        };
        if is_done {
            return;
        }
    }
    add(samples, at, stride, blocks[0], ends[0]);
    add(samples, at + 4, stride, blocks[1], ends[1]);
}

/// The same for a block whatever its coefficients are.
fn add_whole(samples: &mut [u8], stride: usize, block: &[i16; 16]) {
    let rows = [0, 4, 8, 12].map(|row| [0, 1, 2, 3].map(|i| i32::from(block[row + i])));
    // Down the columns first, which is not the same as along the rows first.
    let residue = transposed(dimension(transposed(dimension(rows).map(|row| row.map(kept)))));
    for (row, residue) in samples.chunks_mut(stride).zip(residue) {
        if let Some(row) = row.first_chunk_mut::<4>() {
            for (sample, residue) in row.iter_mut().zip(residue) {
                *sample = (i32::from(*sample) + ((residue + 4) >> 3)).clamp(0, 255) as u8;
            }
        }
    }
}

/// The same for a block that has a mean alone.
fn add_mean(samples: &mut [u8], stride: usize, mean: i16) {
    let mean = (i32::from(mean) + 4) >> 3;
    let [add, subtract] = [mean, -mean].map(|value| value.clamp(0, 255) as u8);
    for row in samples.chunks_mut(stride).take(4) {
        if let Some(row) = row.first_chunk_mut::<4>() {
            for sample in row {
                *sample = sample.saturating_add(add).saturating_sub(subtract);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_alone_is_the_same_both_ways() {
        for mean in [-2_000, -4, -1, 3, 4, 77, 2_000] {
            let (mut whole, mut short) = ([100; 16], [100; 16]);
            let mut block = [0; 16];
            block[0] = mean;
            add_whole(&mut whole, 4, &block);
            add_mean(&mut short, 4, mean);
            assert_eq!(whole, short);
            assert_eq!(means(&block), [(mean + 3) >> 3; 16]);
        }
    }

    /// As damaged files have them.
    #[test]
    fn the_largest_values_do_not_overflow() {
        for seed in 0..1_000_u32 {
            let block: [i16; 16] = std::array::from_fn(|i| {
                if seed.wrapping_mul(0x9E37_79B1) >> (i + 8) & 1 == 1 { i16::MAX } else { i16::MIN }
            });
            add_whole(&mut [128; 16], 4, &block);
            let _ = means(&block);
        }
        for mean in [i16::MIN, i16::MAX] {
            add_mean(&mut [128; 16], 4, mean);
        }
    }

    #[test]
    fn the_first_frequency_is_a_cosine() {
        let mut samples = [128; 16];
        let mut block = [0; 16];
        block[1] = 400;
        add_whole(&mut samples, 4, &block);
        assert_eq!(samples[..4], [193, 155, 101, 63]);
        assert!(samples.chunks(4).all(|row| row == &samples[..4]));
    }

    /// By vectors where there are some, beside what has none.
    #[test]
    fn blocks_together_are_blocks_one_by_one() {
        let mut seed = 1_u32;
        let mut number = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as i16
        };
        for round in 0..4_000 {
            // From small numbers to those that no valid file has.
            let shift = round % 12;
            let mut blocks = [[0_i16; 16]; 2];
            blocks.as_flattened_mut().iter_mut().for_each(|coefficient| *coefficient = number() >> shift);
            let ends = [round / 12 % 3, round / 36 % 3].map(|end| end as u8);
            for (block, end) in blocks.iter_mut().zip(ends) {
                block[usize::from(end).min(1)..].iter_mut().for_each(|coefficient| {
                    if end < 2 {
                        *coefficient = 0;
                    }
                });
            }
            let samples: [u8; 64] = std::array::from_fn(|_| number() as u8);
            let (mut both, mut each, mut one) = (samples, samples, samples);
            add_two(&mut both, 3, 11, blocks.each_ref(), ends);
            for (at, block) in [3, 7].into_iter().zip(&blocks) {
                add_whole(&mut each[at..], 11, block);
            }
            for ((at, block), end) in [3, 7].into_iter().zip(&blocks).zip(ends) {
                add(&mut one, at, 11, block, end);
            }
            assert_eq!(both, each, "{blocks:?}");
            assert_eq!(one, each, "{blocks:?}");
        }
    }
}
