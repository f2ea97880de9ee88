//! Colours of 8 bits between sRGB and CIE L*a*b* (D65, 8 bits each: L of 100 is 255, a and b are moved by 128), in
//! OpenCV's integer arithmetic to the bit.

use std::sync::OnceLock;

use multiversion::multiversion;

use super::pixels::interleave;

/// From linear R, G and B to X, Y and Z.
const TO_XYZ: [[f64; 3]; 3] =
    [[0.412_453, 0.357_580, 0.180_423], [0.212_671, 0.715_160, 0.072_169], [0.019_334, 0.119_193, 0.950_227]];
/// Back.
const FROM_XYZ: [[f64; 3]; 3] = [
    [3.240_479, -1.537_15, -0.498_535],
    [-0.969_256, 1.875_991, 0.041_556],
    [0.055_648, -0.204_043, 1.057_311],
];
/// X, Y and Z of white.
const WHITE: [f64; 3] = [0.950_456, 1.0, 1.088_754];

/// Bits behind the point of linear values, of coefficients, and of what follows from both.
const GAMMA_BITS: u32 = 3;
const COEFFICIENT_BITS: u32 = 12;
const ROOT_BITS: u32 = GAMMA_BITS + COEFFICIENT_BITS;
/// Pixels that are computed side by side.
const LANES: usize = 64;
/// Entries of the table of roots.
const ROOTS: usize = (256 * 3 / 2) << GAMMA_BITS;

struct Tables {
    /// What each level of red, green and blue adds to X, Y and Z, as integers of [`ROOT_BITS`]; half of the last place
    /// that counts is in those of red.
    parts: [[[i32; 4]; 256]; 3],
    /// Cube roots of linear values.
    roots: [i32; ROOTS],
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let top = f64::from(255 << GAMMA_BITS);
        let linear = |level: usize| {
            let value = level as f64 / 255.0;
            let value = if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) };
            (top * value).round_ties_even() as i32
        };
        let root = |i: usize| {
            // Values and roots are in float32, of which the roots are cut off, not rounded.
            let value = f64::from((i as f64 / top) as f32);
            let root = if value < 0.008_856 { value * 7.787 + 16.0 / 116.0 } else { cut_off(value.cbrt()) };
            (f64::from(1 << ROOT_BITS) * root).round_ties_even() as i32
        };
        let coefficient = |i: usize, k: usize| {
            (f64::from(1 << COEFFICIENT_BITS) * TO_XYZ[i][k] / WHITE[i]).round_ties_even() as i32
        };
        let part = |k: usize, level: usize| {
            let half = if k == 0 { 1 << (COEFFICIENT_BITS - 1) } else { 0 };
            let [x, y, z] = [0, 1, 2].map(|i| coefficient(i, k) * linear(level) + half);
            [x, y, z, 0]
        };
        Tables {
            parts: std::array::from_fn(|k| std::array::from_fn(|level| part(k, level))),
            roots: std::array::from_fn(root),
        }
    })
}

/// The largest float32 that is not above `value`.
fn cut_off(value: f64) -> f64 {
    let nearest = value as f32;
    f64::from(if f64::from(nearest) > value { nearest.next_down() } else { nearest })
}

/// Half of the last place is added before the `bits` last are dropped.
#[inline(always)]
fn rounded(value: i32, bits: u32) -> i32 {
    (value + (1 << (bits - 1))) >> bits
}

/// Applies `f` to blocks of colours; the last one is filled up.
#[inline(always)]
fn each_block(src: &[[u8; 3]], dst: &mut [[u8; 3]], f: impl Fn(&[[u8; 3]; LANES], &mut [[u8; 3]; LANES])) {
    let ((blocks, rest), (to, rest_to)) = (src.as_chunks(), dst.as_chunks_mut());
    for (block, to) in blocks.iter().zip(to) {
        f(block, to);
    }
    if !rest.is_empty() {
        let (mut filled, mut to) = ([[0; 3]; LANES], [[0; 3]; LANES]);
        filled[..rest.len()].copy_from_slice(rest);
        f(&filled, &mut to);
        rest_to.copy_from_slice(&to[..rest.len()]);
    }
}

/// Writes the L*a*b* of each colour of `src` to `dst`.
#[multiversion(targets("x86_64+avx+avx2"))]
pub fn from_rgb(src: &[[u8; 3]], dst: &mut [[u8; 3]]) {
    let tables = tables();
    each_block(src, dst, |colours, to| {
        let [mut x, mut y, mut z] = [[0i32; LANES]; 3];
        for (lane, &[r, g, b]) in colours.iter().enumerate() {
            let [red, green, blue] = &tables.parts;
            let (red, green, blue) = (red[usize::from(r)], green[usize::from(g)], blue[usize::from(b)]);
            let mut places = [0i32; 4];
            for i in 0..4 {
                places[i] = (red[i] + green[i] + blue[i]) >> COEFFICIENT_BITS;
            }
            let root = |place: i32| tables.roots[(place as usize).min(ROOTS - 1)];
            (x[lane], y[lane], z[lane]) = (root(places[0]), root(places[1]), root(places[2]));
        }
        let middle = 128 << ROOT_BITS;
        let mut lab = [[0u8; LANES]; 3];
        for lane in 0..LANES {
            let lightness = (116 * 255 + 50) / 100 * y[lane] - (((16 * 255) << ROOT_BITS) + 50) / 100;
            let level = |value: i32| rounded(value, ROOT_BITS).clamp(0, 255) as u8;
            lab[0][lane] = level(lightness);
            lab[1][lane] = level(500 * (x[lane] - y[lane]) + middle);
            lab[2][lane] = level(200 * (y[lane] - z[lane]) + middle);
        }
        interleave([&lab[0], &lab[1], &lab[2]], to);
    });
}

/// Bits behind the point of X, Y and Z and their roots on the way back, and of what levels are looked up by.
const BACK_BITS: u32 = 14;
const LEVEL_BITS: u32 = 12;
const LEVELS: usize = 1 << LEVEL_BITS;
/// The largest root of a dark colour, where X and Z follow it in a straight line: 6 / 29.
const LINEAR_UP_TO: i32 = 3_390;

struct BackTables {
    /// Of each lightness: Y and its root. How far a and b move the roots of X and Z.
    lightness: [[i32; 2]; 256],
    moves: [[i32; 2]; 256],
    /// From X, Y and Z to linear R, G and B.
    coefficients: [[i32; 3]; 3],
    /// Levels of linear values.
    levels: [u8; LEVELS],
}

fn back_tables() -> &'static BackTables {
    static TABLES: OnceLock<BackTables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let one = f64::from(1 << BACK_BITS);
        let whole = |value: f64| value.round_ties_even() as i32;
        let lightness = |level: usize| {
            let lightness = level as f64 * 100.0 / 255.0;
            // What is elsewhere 903.3 and 7.787 is (29 / 3)^3 and 841 / 108.
            if level <= 20 {
                let y = lightness * 27.0 / 24_389.0;
                [whole(one * y), whole(one * (16.0 / 116.0 + y * 841.0 / 108.0))]
            } else {
                let root = (lightness + 16.0) / 116.0;
                [whole(one * root.powi(3)), whole(one * root)]
            }
        };
        let moves = |level: usize| {
            let level = level as i32;
            let a = ((5 * level * 53_687 + (1 << 7)) >> 13) - 128 * (1 << BACK_BITS) / 500;
            let b = ((level * 41_943 + (1 << 4)) >> 9) - 128 * (1 << BACK_BITS) / 200 + 1;
            [a, b]
        };
        let level = |i: usize| {
            let value = i as f64 / f64::from(1 << LEVEL_BITS);
            let level =
                if value <= 0.003_130_8 { 12.92 * value } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
            (level * 255.0).round_ties_even() as u8
        };
        BackTables {
            lightness: std::array::from_fn(lightness),
            moves: std::array::from_fn(moves),
            coefficients: FROM_XYZ.map(|row| {
                std::array::from_fn(|i| whole(f64::from(1 << COEFFICIENT_BITS) * row[i] * WHITE[i]))
            }),
            levels: std::array::from_fn(level),
        }
    })
}

/// All tables, as `Lab` of `kernels/clahe.cu` has them: those on the way to L*a*b*, then those of the way back.
pub fn on_device() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let (to, back) = (tables(), back_tables());
        let words = to.parts.as_flattened().as_flattened().iter().chain(&to.roots);
        let words = words.chain(back.lightness.as_flattened()).chain(back.moves.as_flattened());
        let words = words.chain(back.coefficients.as_flattened());
        words.flat_map(|word| word.to_le_bytes()).chain(back.levels).collect()
    })
}

/// X or Z of a root.
#[inline(always)]
fn cubed(root: i32) -> i32 {
    (((root * root) >> BACK_BITS) * root) >> BACK_BITS
}

/// The same of a dark colour.
fn linear(root: i32) -> i32 {
    root * 108 / 841 - (1 << BACK_BITS) * 16 / 116 * 108 / 841
}

/// Writes the colour of each L*a*b* of `src` to `dst`.
#[multiversion(targets("x86_64+avx+avx2"))]
pub fn to_rgb(src: &[[u8; 3]], dst: &mut [[u8; 3]]) {
    let tables = back_tables();
    each_block(src, dst, |colours, to| {
        let [mut xs, mut ys, mut zs] = [[0i32; LANES]; 3];
        for (lane, &[lightness, a, b]) in colours.iter().enumerate() {
            let [y, root] = tables.lightness[usize::from(lightness)];
            ys[lane] = y;
            xs[lane] = root + tables.moves[usize::from(a)][0];
            zs[lane] = root - tables.moves[usize::from(b)][1];
        }
        for roots in [&mut xs, &mut zs] {
            let (old, mut are_dark) = (*roots, false);
            for root in roots.iter_mut() {
                are_dark |= *root <= LINEAR_UP_TO;
                *root = cubed(*root);
            }
            if are_dark {
                for (root, old) in roots.iter_mut().zip(old).filter(|(_, old)| *old <= LINEAR_UP_TO) {
                    *root = linear(old);
                }
            }
        }
        let mut places = [[0i32; LANES]; 3];
        for (places, row) in places.iter_mut().zip(&tables.coefficients) {
            for lane in 0..LANES {
                let sum = row[0] * xs[lane] + row[1] * ys[lane] + row[2] * zs[lane];
                places[lane] = rounded(sum, BACK_BITS).clamp(0, LEVELS as i32 - 1);
            }
        }
        for lane in 0..LANES {
            to[lane] = [0, 1, 2].map(|c: usize| tables.levels[(places[c][lane] as usize).min(LEVELS - 1)]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<const N: usize>(colours: [[u8; 3]; N]) -> [[[u8; 3]; N]; 2] {
        let (mut lab, mut rgb) = ([[0; 3]; N], [[0; 3]; N]);
        from_rgb(&colours, &mut lab);
        to_rgb(&lab, &mut rgb);
        [lab, rgb]
    }

    #[test]
    fn colours_come_back() {
        assert_eq!(there_and_back([[255; 3], [0; 3]])[0], [[255, 128, 128], [0, 128, 128]]);
        let colours = [[0, 0, 0], [255, 255, 255], [200, 30, 70], [12, 99, 240], [128, 128, 127]];
        let [_, back] = there_and_back(colours);
        for (found, expected) in back.as_flattened().iter().zip(colours.as_flattened()) {
            assert!(found.abs_diff(*expected) <= 4, "{colours:?}: {back:?}");
        }
    }

    /// Blocks of colours are computed as single ones are.
    #[test]
    fn the_last_colours_are_those_of_a_block() {
        let colours: [[u8; 3]; 19] =
            std::array::from_fn(|i| [i * 13 % 251, 255 - i * 7, i * i % 251].map(|level| level as u8));
        let [lab, rgb] = there_and_back(colours);
        for i in 0..19 {
            let [one, back] = there_and_back([colours[i]]);
            assert_eq!((one[0], back[0]), (lab[i], rgb[i]), "{i}");
        }
    }

    #[test]
    fn tables_for_a_device_are_as_long_as_their_struct() {
        assert_eq!(on_device().len(), 4 * (3 * 256 * 4 + 3072 + 2 * 512 + 9) + 4096);
    }
}
