//! Samples between samples by filters of six taps, in two rows of eight samples at a time, by AVX2.

use super::*;

/// Two rows of eight samples.
type Pair = __m256i;

/// Where samples are read: from two rows and columns ahead of a block on, in rows that are `width` apart. Of two
/// blocks, which are moved alike.
#[derive(Clone, Copy)]
pub(in super::super) struct Source<'a> {
    pub(in super::super) blocks: [&'a [u8]; 2],
    pub(in super::super) width: usize,
    /// The signed taps between columns and between rows; `None`: samples are taken as they are.
    pub(in super::super) across: Option<[i8; 6]>,
    pub(in super::super) down: Option<[i8; 6]>,
}

/// Where samples are written to.
pub(in super::super) enum Target<'a> {
    /// Both blocks beside one another.
    Beside(&'a mut [u8]),
    Each([&'a mut [u8]; 2]),
    /// The first block alone.
    First(&'a mut [u8]),
}

/// Bytes that are read of each row: those of eight samples, five around them, and others that count for nothing.
const READ: usize = 16;
const AHEAD: usize = 2;
const MORE: usize = 5;

/// Predicts two blocks of `ROWS` rows of `BYTES` samples, at most eight, into rows that are `stride` apart. Not done
/// where there are no such samples.
pub(in super::super) fn predict<const ROWS: usize, const BYTES: usize>(
    _: Avx2,
    source: Source<'_>,
    target: Target<'_>,
    stride: usize,
) -> bool {
    const { assert!(ROWS <= 16 && BYTES <= 8, "what there is room for") };
    let rows = source.width.checked_mul(ROWS + MORE - 1).and_then(|rows| rows.checked_add(READ));
    let is_read = rows.is_some_and(|rows| source.blocks.iter().all(|block| block.len() >= rows));
    if !is_read {
        return false;
    }
    match target {
        Target::Beside(block) => {
            let Some(mut area) = Area::<ROWS, 16>::new(block, 0, stride) else { return false };
            let write = |y, samples: [[u8; 8]; 2]| area.row(y).copy_from_slice(samples.as_flattened());
            // SAFETY: the processor has AVX2, and both blocks have READ bytes in each of ROWS and MORE rows.
            unsafe { two::<ROWS>(source, write) };
        }
        Target::Each([first, second]) => {
            let of = |block| Area::<ROWS, BYTES>::new(block, 0, stride);
            let (Some(mut first), Some(mut second)) = (of(first), of(second)) else { return false };
            let write = |y, samples: [[u8; 8]; 2]| {
                first.row(y).copy_from_slice(&samples[0][..BYTES]);
                second.row(y).copy_from_slice(&samples[1][..BYTES]);
            };
            // SAFETY: as above.
            unsafe { two::<ROWS>(source, write) };
        }
        Target::First(block) => {
            let Some(mut area) = Area::<ROWS, BYTES>::new(block, 0, stride) else { return false };
            let write = |y, samples: [[u8; 8]; 2]| area.row(y).copy_from_slice(&samples[0][..BYTES]);
            // SAFETY: as above.
            unsafe { two::<ROWS>(source, write) };
        }
    }
    true
}

/// Pairs of taps: of the outermost samples, the second and fourth, the third and fifth.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs([a, b, c, d, e, f]: [i8; 6]) -> [Pair; 3] {
    [[a, f], [b, d], [c, e]].map(|pair| _mm256_set1_epi16(i16::from_le_bytes(pair.map(|tap| tap as u8))))
}

/// Sixteen sums of six products, rounded. A sum that is too large saturates, as does the sample that it stands for; the
/// first products are never below zero, so that nothing is taken from a sum that did.
#[inline]
#[target_feature(enable = "avx2")]
fn sums([outer, second, third]: [Pair; 3], taps: &[Pair; 3]) -> Pair {
    let inner =
        _mm256_adds_epi16(_mm256_maddubs_epi16(second, taps[1]), _mm256_maddubs_epi16(third, taps[2]));
    let sum = _mm256_adds_epi16(inner, _mm256_maddubs_epi16(outer, taps[0]));
    // Times 2^8, divided by 2^15.
    let rounded = _mm256_mulhrs_epi16(sum, _mm256_set1_epi16(1 << 8));
    _mm256_packus_epi16(rounded, rounded)
}

/// # Safety
/// Of each block READ bytes are there in each of ROWS and MORE rows.
#[target_feature(enable = "avx2")]
unsafe fn two<const ROWS: usize>(source: Source<'_>, mut target: impl FnMut(usize, [[u8; 8]; 2])) {
    let read = |row: usize, ahead: usize| {
        debug_assert!(row < ROWS + MORE && ahead <= AHEAD, "a row that was found");
        let halves = source.blocks.map(|block| {
            let at = row * source.width;
            if ahead == 0 {
                // SAFETY: 16 bytes are READ, which are there as the caller says.
                unsafe { _mm_loadu_si128(block.as_ptr().wrapping_add(at).cast()) }
            } else {
                // SAFETY: 8 bytes behind the 2 ahead of the block are among the READ that are there.
                unsafe { _mm_loadl_epi64(block.as_ptr().wrapping_add(at + AHEAD).cast()) }
            }
        });
        _mm256_set_m128i(halves[1], halves[0])
    };
    let mut write = |y: usize, samples: Pair| {
        target(y, [low(_mm256_castsi256_si128(samples)), low(_mm256_extracti128_si256::<1>(samples))]);
    };
    let places = [(0, 5), (1, 3), (2, 4)].map(|(a, b): (i8, i8)| {
        let bytes: [i8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
            .map(|i: i8| i / 2 + if i % 2 == 0 { a } else { b });
        let [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ca, cb, cc, cd, ce, cf] = bytes;
        _mm256_broadcastsi128_si256(_mm_setr_epi8(
            c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ca, cb, cc, cd, ce, cf,
        ))
    });
    let row = |row: usize, taps: &[Pair; 3]| {
        let samples = read(row, 0);
        sums(places.map(|places| _mm256_shuffle_epi8(samples, places)), taps)
    };
    match (source.across.map(|taps| pairs(taps)), source.down.map(|taps| pairs(taps))) {
        (None, None) => (0..ROWS).for_each(|y| write(y, read(y + AHEAD, AHEAD))),
        (Some(across), None) => (0..ROWS).for_each(|y| write(y, row(y + AHEAD, &across))),
        (across, Some(down)) => {
            // Enough for the tallest block.
            let mut rows = [_mm256_setzero_si256(); 16 + MORE];
            for (y, made) in rows.iter_mut().enumerate().take(ROWS + MORE) {
                *made = match &across {
                    Some(across) => row(y, across),
                    None => read(y, AHEAD),
                };
            }
            for y in 0..ROWS {
                let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|i| rows[y + i]);
                let pairs = [(a, f), (b, d), (c, e)].map(|(a, b)| _mm256_unpacklo_epi8(a, b));
                write(y, sums(pairs, &down));
            }
        }
    }
}
