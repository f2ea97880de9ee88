//! Planes of luma and chroma to RGB, in the integers of FFmpeg's scaler, which is what DALI converts with on a CPU:
//! chroma is interpolated linearly between the centres of its samples, to 15 bits along rows and then between rows.
//! It must not know codecs.

#[cfg(target_arch = "x86_64")]
mod vector;

use multiversion::multiversion;

/// How much red and blue count in luma.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matrix {
    red: f64,
    blue: f64,
}

impl Matrix {
    pub(super) const BT601: Self = Self { red: 0.299, blue: 0.114 };
    const BT709: Self = Self { red: 0.2126, blue: 0.0722 };
    const BT2020: Self = Self { red: 0.2627, blue: 0.0593 };
    const FCC: Self = Self { red: 0.30, blue: 0.11 };
    const SMPTE240M: Self = Self { red: 0.212, blue: 0.087 };

    /// The one with a number of ISO/IEC 23091-2, as H.264, H.265 and AV1 have it; BT.601 where a stream does not say.
    pub(super) fn numbered(number: u8) -> Self {
        match number {
            1 => Self::BT709,
            4 => Self::FCC,
            7 => Self::SMPTE240M,
            9 | 10 => Self::BT2020,
            _ => Self::BT601,
        }
    }
}

/// What samples mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Color {
    pub(super) matrix: Matrix,
    /// Whether samples take the whole range of their bits; else 16 to 235 (chroma: 240) of 255.
    pub(super) full_range: bool,
}

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

/// From luma and the distances of chroma from gray to RGB: factors of 2^-13, for differences of 2^-9 of a level.
#[derive(Debug, Clone, Copy)]
pub struct Factors {
    /// Luma of black.
    pub black: i32,
    /// What luma adds to each colour.
    pub luma: i32,
    /// What red chroma adds to red.
    pub red_of_red: i32,
    /// What red chroma adds to green.
    pub green_of_red: i32,
    /// What blue chroma adds to green.
    pub green_of_blue: i32,
    /// What blue chroma adds to blue.
    pub blue_of_blue: i32,
}

impl Factors {
    pub(super) fn new(color: Color) -> Self {
        let Matrix { red, blue } = color.matrix;
        let green = 1.0 - red - blue;
        let one = f64::from(1 << 16);
        // First in 2^-16 for limited chroma, from which all others are made.
        let limited = |factor: f64| (factor * 255.0 / 224.0 * one).round() as i64;
        let chroma = |factor: f64| {
            let factor = limited(factor);
            let factor = if color.full_range { factor * 224 / 255 } else { factor };
            ((factor + 4) >> 3) as i32
        };
        let (black, luma) =
            if color.full_range { (0, 8_192) } else { (16 << 9, (65_536 * 255 / 219 + 4) >> 3) };
        Self {
            black,
            luma,
            red_of_red: chroma(2.0 * (1.0 - red)),
            green_of_red: -chroma(2.0 * red * (1.0 - red) / green),
            green_of_blue: -chroma(2.0 * blue * (1.0 - blue) / green),
            blue_of_blue: chroma(2.0 * (1.0 - blue)),
        }
    }
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
    samples: [Vec<i32>; 2],
}

/// Writes a picture as RGB, row after row without gaps.
pub(super) fn to_rgb(planes: &dyn Planes, layout: Layout, color: Color, out: &mut [u8]) {
    if layout.width == 0 {
        return;
    }
    let factors = Factors::new(color);
    #[cfg(target_arch = "x86_64")]
    if vector::to_rgb(planes, layout, factors, out) {
        return;
    }
    to_rgb_without_vectors(planes, layout, factors, out);
}

/// [`to_rgb`] for all pictures and processors.
fn to_rgb_without_vectors(planes: &dyn Planes, layout: Layout, factors: Factors, out: &mut [u8]) {
    let Layout { width, height, depth, halved, spread } = layout;
    let [across, down] = halved.unwrap_or_default();
    let (columns, rows) = (width.div_ceil(1 << across), height.div_ceil(1 << down));
    // Sides of what chroma lies over.
    let side = |pixels: usize, samples: usize, halved: u32| if spread { pixels } else { samples << halved };
    let (over_width, over_height) = (side(width, columns, across), side(height, rows, down));
    let places: Vec<(usize, usize, i32)> = (0..width).map(|x| between(x, columns, over_width, 14)).collect();
    let mut raw = vec![0_u16; width];
    let mut read = |y: usize| {
        let samples = [1, 2].map(|plane| {
            planes.read(plane, y, &mut raw[..columns]);
            if across == 0 {
                return raw.iter().map(|&sample| i32::from(sample) << (15 - depth)).collect();
            }
            if over_width == 2 * columns {
                let mut doubled = vec![0; 2 * columns];
                double(&raw[..columns], depth, &mut doubled);
                doubled.truncate(width);
                return doubled;
            }
            let mix = |&(a, b, part): &(usize, usize, i32)| {
                (i32::from(raw[a]) * ((1 << 14) - part) + i32::from(raw[b]) * part) >> (depth - 1)
            };
            places.iter().map(mix).collect()
        });
        Row { y, samples }
    };
    let mut kept: [Option<Row>; 2] = [None, None];
    let mut luma = vec![0_u16; width];
    let mut chroma = [vec![0_i32; width], vec![0_i32; width]];
    for (y, out) in out.chunks_exact_mut(width * 3).take(height).enumerate() {
        planes.read(0, y, &mut luma);
        if halved.is_some() {
            let (a, b, part) = between(y, rows, over_height, 12);
            // Rows come in order: what is needed again is the later one.
            if kept[0].as_ref().is_none_or(|row| row.y != a) {
                kept.swap(0, 1);
                if kept[0].as_ref().is_none_or(|row| row.y != a) {
                    kept[0] = Some(read(a));
                }
            }
            if kept[1].as_ref().is_none_or(|row| row.y != b) {
                kept[1] = Some(read(b));
            }
            if let [Some(first), Some(second)] = &kept {
                for (to, (first, second)) in chroma.iter_mut().zip(first.samples.iter().zip(&second.samples))
                {
                    mix_rows(first, second, part, to);
                }
            }
        }
        convert(&luma, [&chroma[0], &chroma[1]], 15 - depth, factors, out);
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

/// A row of chroma of which each sample is for two pixels, in 15 bits: a pixel lies three times as far from one sample
/// as from the other.
#[multiversion(targets("x86_64+avx+avx2"))]
fn double(samples: &[u16], depth: u32, out: &mut [i32]) {
    let pair = |before: u16, here: u16, behind: u16| {
        let [before, here, behind] = [before, here, behind].map(|sample| i32::from(sample) << 12);
        [(before + 3 * here) >> (depth - 1), (3 * here + behind) >> (depth - 1)]
    };
    let pairs = out.as_chunks_mut::<2>().0;
    let inner = pairs.get_mut(1..).unwrap_or_default();
    for (pair_out, near) in inner.iter_mut().zip(samples.windows(3)) {
        *pair_out = pair(near[0], near[1], near[2]);
    }
    // Beyond the ends their samples go on.
    let last = samples.len().saturating_sub(1);
    for at in [0, last] {
        let sample = |at: usize| samples.get(at).copied().unwrap_or_default();
        if let Some(to) = pairs.get_mut(at) {
            *to = pair(sample(at.saturating_sub(1)), sample(at), sample((at + 1).min(last)));
        }
    }
}

/// Chroma between two rows, as its distance from gray in 2^-9 of a level.
#[multiversion(targets("x86_64+avx+avx2"))]
fn mix_rows(first: &[i32], second: &[i32], part: i32, out: &mut [i32]) {
    for ((to, a), b) in out.iter_mut().zip(first).zip(second) {
        *to = (a * (4_096 - part) + b * part + 512 - (128 << 19)) >> 10;
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn convert(luma: &[u16], chroma: [&[i32]; 2], shift: u32, factors: Factors, out: &mut [u8]) {
    // Half of the sum, which may have one bit too many.
    let sum = |a: i32, b: i32| (a >> 1) + (b >> 1) + (a & b & 1);
    let level = |y: i32, chroma: i32| (sum(y, chroma) >> 21).clamp(0, 255) as u8;
    for (((to, &y), &blue), &red) in
        out.as_chunks_mut::<3>().0.iter_mut().zip(luma).zip(chroma[0]).zip(chroma[1])
    {
        let y = (((i32::from(y) << shift) * 4) - factors.black) * factors.luma + (1 << 21);
        *to = [
            level(y, red * factors.red_of_red),
            level(y, red * factors.green_of_red + blue * factors.green_of_blue),
            level(y, blue * factors.blue_of_blue),
        ];
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

    /// Noise, from any number.
    struct Noise;

    impl Planes for Noise {
        fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
            for (x, sample) in row.iter_mut().enumerate() {
                let number = ((x * 3 + plane) * 4_099 + y) as u32;
                *sample =
                    (number.wrapping_mul(0x9E37_79B1) >> 23 & 0x1FF).min(383).saturating_sub(128) as u16;
            }
        }
    }

    #[test]
    fn vectors_make_the_same_pixels() {
        for (width, height) in [(2, 2), (16, 4), (18, 6), (64, 34), (1, 1), (33, 7), (46, 5), (130, 2)] {
            for spread in [false, true] {
                for (matrix, full_range) in
                    [Matrix::BT601, Matrix::BT709, Matrix::BT2020, Matrix::FCC, Matrix::SMPTE240M]
                        .into_iter()
                        .flat_map(|matrix| [(matrix, false), (matrix, true)])
                {
                    let layout = Layout { width, height, depth: 8, halved: Some([1, 1]), spread };
                    let color = Color { matrix, full_range };
                    let [mut found, mut expected] = [(); 2].map(|()| vec![0; width * height * 3]);
                    to_rgb(&Noise, layout, color, &mut found);
                    to_rgb_without_vectors(&Noise, layout, Factors::new(color), &mut expected);
                    assert!(found == expected, "{layout:?}, {color:?}");
                }
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
            double(&samples, depth, &mut found);
            let expected = (0..2 * columns).map(|x| {
                let (a, b, part) = between(x, columns, 2 * columns, 14);
                (i32::from(samples[a]) * ((1 << 14) - part) + i32::from(samples[b]) * part) >> (depth - 1)
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
