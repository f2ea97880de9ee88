//! Planes of luma and chroma to RGB, in the integers of FFmpeg's scaler, which is what DALI converts with on a CPU:
//! chroma is interpolated linearly between the centres of its samples, to 15 bits along rows and then between rows.
//! It must not know codecs.

mod factors;

use multiversion::multiversion;

pub use factors::Factors;
pub(super) use factors::{Color, Matrix};

/// A picture of three planes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Bits of a sample, 8 to 15.
    pub(super) depth: u32,
    /// How often columns and rows of chroma are halved; `None`: there is no chroma.
    pub(super) halved: Option<[u32; 2]>,
    /// Whether samples of chroma lie evenly over the picture, as in FFmpeg; else each lies in the middle of the pixels
    /// that it is for. Sides that are odd make the difference: their last sample is for fewer pixels.
    pub(super) spread: bool,
}

/// Where samples come from.
pub(super) trait Planes {
    /// Writes the samples of row `y` of plane 0 (luma), 1 (blue) or 2 (red), as many as `row` takes.
    fn read(&self, plane: usize, y: usize, row: &mut [u16]);
}

/// Between which two samples of `from` sample `at` of `to` lies, and how near to the second, in parts of `1 << bits`.
fn between(at: usize, from: usize, to: usize, bits: u32) -> (usize, usize, i32) {
    let place = (at as f64 + 0.5) * from as f64 / to as f64 - 0.5;
    let first = place.floor();
    let part = ((place - first) * f64::from(1_u32 << bits)).round() as i32;
    let last = from.saturating_sub(1);
    let clamped = |place: f64| (place.max(0.0) as usize).min(last);
    (clamped(first), clamped(first + 1.0), part)
}

/// One row of chroma, as wide as the picture, in 15 bits.
struct Row {
    y: usize,
    samples: [Vec<i16>; 2],
}

/// Writes a picture as RGB, row after row without gaps.
pub(super) fn to_rgb(planes: &dyn Planes, layout: Layout, color: Color, out: &mut [u8]) {
    let row = layout.width * 3;
    let mut rows = out.chunks_exact_mut(row.max(1));
    to_rows(planes, layout, color, &mut |_, write| {
        rows.next().map(write);
    });
}

/// Takes the number of a row, from the top, and what writes it to as many bytes as it has.
pub type TakeRow<'t> = dyn FnMut(usize, &mut dyn FnMut(&mut [u8])) + 't;

/// Hands the rows of a picture to `take`, in RGB.
pub(super) fn to_rows(planes: &dyn Planes, layout: Layout, color: Color, take: &mut TakeRow<'_>) {
    let Layout { width, height, depth, halved, .. } = layout;
    if width == 0 {
        return;
    }
    let factors = Factors::new(color);
    let mut chroma = Chroma::new(layout);
    // Gray, where there is no chroma.
    let gray = vec![1 << 14; if halved.is_none() { width } else { 0 }];
    let mut luma = vec![0_u16; width];
    for y in 0..height {
        take(y, &mut |out| {
            planes.read(0, y, &mut luma);
            let (rows, part) =
                if halved.is_some() { chroma.at(planes, y) } else { ([[gray.as_slice(); 2]; 2], 0) };
            convert(&luma, rows, part, 15 - depth, factors, out);
        });
    }
}

/// The rows of chroma that a row of the picture lies between.
struct Chroma {
    depth: u32,
    columns: usize,
    rows: usize,
    over_height: usize,
    across: Across,
    raw: Vec<u16>,
    kept: [Row; 2],
}

/// How samples of a row become as many as the picture has columns.
enum Across {
    /// They are.
    As,
    /// Each is for two columns.
    Doubled,
    /// Between which samples each column lies, and how near to the second.
    Between(Vec<(usize, usize, i32)>),
}

impl Chroma {
    fn new(layout: Layout) -> Self {
        let Layout { width, height, depth, halved, spread } = layout;
        let [across, down] = halved.unwrap_or_default();
        let (columns, rows) = (width.div_ceil(1 << across), height.div_ceil(1 << down));
        // Sides of what chroma lies over.
        let side =
            |pixels: usize, samples: usize, halved: u32| if spread { pixels } else { samples << halved };
        let (over_width, over_height) = (side(width, columns, across), side(height, rows, down));
        let way = if across == 0 {
            Across::As
        } else if over_width == 2 * columns && depth <= DOUBLED_BITS {
            Across::Doubled
        } else {
            Across::Between((0..width).map(|x| between(x, columns, over_width, 14)).collect())
        };
        // With room for what is doubled.
        let row = || vec![0_i16; width.next_multiple_of(2)];
        let kept = [(); 2].map(|()| Row { y: usize::MAX, samples: [row(), row()] });
        Self { depth, columns, rows, over_height, across: way, raw: vec![0; columns], kept }
    }

    /// Of blue and red the rows that row `y` of the picture lies between, and how near to the second.
    fn at(&mut self, planes: &dyn Planes, y: usize) -> ([[&[i16]; 2]; 2], i32) {
        let (a, b, part) = between(y, self.rows, self.over_height, 12);
        // Rows come in order: what is needed again is the later one.
        if self.kept[0].y != a {
            self.kept.swap(0, 1);
            if self.kept[0].y != a {
                self.read(planes, a, 0);
            }
        }
        if a != b && self.kept[1].y != b {
            self.read(planes, b, 1);
        }
        let [first, second] = &self.kept;
        let second = if a == b { first } else { second };
        let pair = |plane: usize| [first.samples[plane].as_slice(), second.samples[plane].as_slice()];
        ([pair(0), pair(1)], part)
    }

    fn read(&mut self, planes: &dyn Planes, y: usize, slot: usize) {
        let Self { depth, raw, across, kept, .. } = self;
        let row = &mut kept[slot];
        row.y = y;
        for (plane, to) in row.samples.iter_mut().enumerate() {
            planes.read(plane + 1, y, raw);
            match across {
                Across::As => {
                    for (to, &sample) in to.iter_mut().zip(&*raw) {
                        *to = (sample << (15 - *depth)) as i16;
                    }
                }
                Across::Doubled => double(raw, 13 - *depth, &mut to[..2 * self.columns]),
                Across::Between(places) => {
                    for (to, &(a, b, part)) in to.iter_mut().zip(&*places) {
                        let mixed = i32::from(raw[a]) * ((1 << 14) - part) + i32::from(raw[b]) * part;
                        *to = (mixed >> (*depth - 1)) as i16;
                    }
                }
            }
        }
    }
}

/// Writes one plane as levels of 0 to 255, rounded: row after row, each level `step` places behind the one before.
pub(super) fn to_levels(
    planes: &dyn Planes,
    plane: usize,
    layout: Layout,
    full_range: bool,
    out: &mut [u8],
    step: usize,
) {
    let (black, white) = if full_range {
        (0, (1 << layout.depth) - 1)
    } else {
        (16 << (layout.depth - 8), 235 << (layout.depth - 8))
    };
    let span = white - black;
    let level = |sample: i32| (((sample - black) * 255 + span / 2).max(0) / span).min(255) as u8;
    let levels: Vec<u8> = (0..1 << layout.depth).map(level).collect();
    let mut row = vec![0_u16; layout.width];
    let mut places = out.iter_mut().step_by(step);
    for y in 0..layout.height {
        planes.read(plane, y, &mut row);
        for (sample, to) in row.iter().zip(places.by_ref()) {
            *to = levels.get(usize::from(*sample)).copied().unwrap_or(u8::MAX);
        }
    }
}

/// Bits of samples of which four are no more than 15.
const DOUBLED_BITS: u32 = 13;

/// A row of chroma of which each sample is for two pixels, in 15 bits: a pixel lies three times as far from one sample
/// as from the other.
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn double(samples: &[u16], shift: u32, out: &mut [i16]) {
    let pair = |before: u16, here: u16, behind: u16| {
        let here = here.wrapping_mul(3);
        [before.wrapping_add(here), here.wrapping_add(behind)].map(|sum| (sum << shift) as i16)
    };
    let (pairs, count) = (out.as_chunks_mut::<2>().0, samples.len());
    if count > 2 {
        let near = samples[..count - 2].iter().zip(&samples[1..count - 1]).zip(&samples[2..]);
        for (to, ((&before, &here), &behind)) in pairs[1..].iter_mut().zip(near) {
            *to = pair(before, here, behind);
        }
    }
    // Beyond the ends their samples go on.
    let last = count.saturating_sub(1);
    for at in [0, last] {
        let sample = |at: usize| samples.get(at).copied().unwrap_or_default();
        if let Some(to) = pairs.get_mut(at) {
            *to = pair(sample(at.saturating_sub(1)), sample(at), sample((at + 1).min(last)));
        }
    }
}

/// Pixels that are converted at once: colour by colour, which are woven into pixels afterwards.
const BLOCK: usize = 64;
/// Added to levels so that none is negative, and a multiple of it fits where they are computed.
const ABOVE_ZERO: u16 = 384;
/// Where the ones of levels are in what they are computed in.
const ONE: u32 = 22;

/// A row of pixels from luma and, of blue and red, the two rows of chroma that it lies between.
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn convert(luma: &[u16], chroma: [[&[i16]; 2]; 2], part: i32, shift: u32, factors: Factors, out: &mut [u8]) {
    let [[blue, blue_below], [red, red_below]] = chroma;
    let whole = luma.len() / BLOCK * BLOCK;
    let mut levels = [[0; BLOCK]; 3];
    let blocks = out.as_chunks_mut::<3>().0.as_chunks_mut::<BLOCK>().0.iter_mut();
    let blue_blocks = blue.as_chunks::<BLOCK>().0.iter().zip(blue_below.as_chunks::<BLOCK>().0);
    let red_blocks = red.as_chunks::<BLOCK>().0.iter().zip(red_below.as_chunks::<BLOCK>().0);
    for (((to, luma), blue), red) in blocks.zip(luma.as_chunks::<BLOCK>().0).zip(blue_blocks).zip(red_blocks)
    {
        convert_block(luma, [[blue.0, blue.1], [red.0, red.1]], part, shift, factors, &mut levels);
        for (i, to) in to.iter_mut().enumerate() {
            *to = [levels[0][i], levels[1][i], levels[2][i]];
        }
    }
    let rest = luma.get(whole..).unwrap_or_default();
    if !rest.is_empty() {
        let luma = filled(rest);
        let [blue, red] = [[blue, blue_below], [red, red_below]]
            .map(|pair| pair.map(|row| filled(row.get(whole..whole + rest.len()).unwrap_or_default())));
        convert_block(&luma, [blue.each_ref(), red.each_ref()], part, shift, factors, &mut levels);
        for (i, to) in out.as_chunks_mut::<3>().0.iter_mut().skip(whole).enumerate().take(rest.len()) {
            *to = [levels[0][i], levels[1][i], levels[2][i]];
        }
    }
}

/// A block that begins with `samples`.
fn filled<T: Copy + Default>(samples: &[T]) -> [T; BLOCK] {
    let mut block = [T::default(); BLOCK];
    block.iter_mut().zip(samples).for_each(|(to, from)| *to = *from);
    block
}

#[inline(always)]
fn convert_block(
    luma: &[u16; BLOCK],
    chroma: [[&[i16; BLOCK]; 2]; 2],
    part: i32,
    shift: u32,
    factors: Factors,
    levels: &mut [[u8; BLOCK]; 3],
) {
    let Factors { black, luma: of_luma, .. } = factors;
    // Half a level, too, so that levels are rounded. What encoders do not write may wrap around.
    let above = (1_i32 << (ONE - 1)).wrapping_sub(black * of_luma);
    let above = above.wrapping_add((i32::from(ABOVE_ZERO)).wrapping_shl(ONE));
    // Chroma between two rows, as its distance from gray in 2^-9 of a level.
    let mix =
        |[a, b]: [i16; 2]| (i32::from(a) * (4_096 - part) + i32::from(b) * part + 512 - (128 << 19)) >> 10;
    let level = |sum: i32| (((sum as u32) >> ONE) as u16).saturating_sub(ABOVE_ZERO).min(255) as u8;
    let [[blue, blue_below], [red, red_below]] = chroma;
    let [reds, greens, blues] = levels;
    for i in 0..BLOCK {
        let y = i32::from(luma[i]).wrapping_mul(of_luma << (shift + 2)).wrapping_add(above);
        let (blue, red) = (mix([blue[i], blue_below[i]]), mix([red[i], red_below[i]]));
        let green =
            red.wrapping_mul(factors.green_of_red).wrapping_add(blue.wrapping_mul(factors.green_of_blue));
        reds[i] = level(y.wrapping_add(red.wrapping_mul(factors.red_of_red)));
        greens[i] = level(y.wrapping_add(green));
        blues[i] = level(y.wrapping_add(blue.wrapping_mul(factors.blue_of_blue)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Flat([u16; 3]);

    impl Planes for Flat {
        fn read(&self, plane: usize, _: usize, row: &mut [u16]) {
            row.fill(self.0[plane]);
        }
    }

    fn color_of(samples: [u16; 3], depth: u32, color: Color) -> [u8; 3] {
        let layout = Layout { width: 3, height: 3, depth, halved: Some([1, 1]), spread: true };
        let mut out = [0; 27];
        to_rgb(&Flat(samples), layout, color, &mut out);
        assert!(out.as_chunks::<3>().0.iter().all(|pixel| *pixel == out[..3]));
        [out[0], out[1], out[2]]
    }

    #[test]
    fn ranges_matrices_and_depths_are_told_apart() {
        let of = |matrix, full_range| Color { matrix, full_range };
        assert_eq!(color_of([16, 128, 128], 8, of(Matrix::BT601, false)), [0, 0, 0]);
        assert_eq!(color_of([235, 128, 128], 8, of(Matrix::BT601, false)), [255, 255, 255]);
        assert_eq!(color_of([235, 128, 128], 8, of(Matrix::BT601, true)), [235, 235, 235]);
        assert_eq!(color_of([940, 512, 512], 10, of(Matrix::BT709, false)), [255, 255, 255]);
        // Red of BT.601 and of BT.709.
        assert_eq!(color_of([81, 90, 240], 8, of(Matrix::BT601, false)), [254, 0, 0]);
        assert_eq!(color_of([63, 102, 240], 8, of(Matrix::numbered(1), false)), [255, 1, 0]);
        // What no encoder writes does not wrap around.
        assert_eq!(color_of([255, 255, 255], 8, of(Matrix::BT601, false)), [255, 125, 255]);
        assert_eq!(color_of([0, 0, 0], 8, of(Matrix::BT2020, true)), [0, 94, 0]);
    }

    /// Chroma of two columns, of the first none.
    struct Ramp;

    impl Planes for Ramp {
        fn read(&self, plane: usize, _: usize, row: &mut [u16]) {
            row.fill(128);
            if let ([first, ..], 2) = (row, plane) {
                *first = 0;
            }
        }
    }

    #[test]
    fn chroma_lies_over_the_picture_or_over_its_own_pixels() {
        let red = |spread| {
            let layout = Layout { width: 3, height: 1, depth: 8, halved: Some([1, 1]), spread };
            let (mut out, color) = ([0; 9], Color { matrix: Matrix::BT601, full_range: true });
            to_rgb(&Ramp, layout, color, &mut out);
            [out[0], out[3], out[6]]
        };
        // Centres of chroma at 3/4 and 9/4 of three pixels, or at 1 and 3.
        assert_eq!(red(true), [0, 38, 128]);
        assert_eq!(red(false), [0, 0, 83]);
    }

    #[test]
    fn doubled_rows_are_those_of_places() {
        for (columns, depth) in [(1_usize, 8), (2, 8), (3, 10), (33, 12)] {
            let samples: Vec<u16> = (0..columns).map(|x| (x * 977 % (1 << depth)) as u16).collect();
            let mut found = vec![0; 2 * columns];
            double(&samples, 13 - depth, &mut found);
            let expected = (0..2 * columns).map(|x| {
                let (a, b, part) = between(x, columns, 2 * columns, 14);
                ((i32::from(samples[a]) * ((1 << 14) - part) + i32::from(samples[b]) * part) >> (depth - 1))
                    as i16
            });
            assert!(found.into_iter().eq(expected), "{columns} columns of {depth} bits");
        }
    }

    #[test]
    fn one_plane_becomes_levels_where_they_are_wanted() {
        let of = |sample: u16, depth, full_range| {
            let layout = Layout { width: 2, height: 2, depth, halved: Some([0, 0]), spread: true };
            let mut out = [9; 8];
            to_levels(&Flat([0, sample, 0]), 1, layout, full_range, &mut out[1..], 2);
            assert_eq!(out, [9, out[1], 9, out[1], 9, out[1], 9, out[1]]);
            out[1]
        };
        assert_eq!([of(0, 8, true), of(77, 8, true), of(255, 8, true)], [0, 77, 255]);
        assert_eq!(
            [of(3, 8, false), of(16, 8, false), of(126, 8, false), of(250, 8, false)],
            [0, 0, 128, 255]
        );
        assert_eq!([of(1023, 10, true), of(514, 10, true), of(2, 10, true)], [255, 128, 0]);
        assert_eq!([of(64, 10, false), of(940, 10, false), of(4095, 12, true)], [0, 255, 255]);
    }
}
