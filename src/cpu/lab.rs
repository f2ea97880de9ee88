//! Colours of 8 bits between sRGB and CIE L*a*b* (D65, 8 bits each: L of 100 is 255, a and b are moved by 128). To L*a*b* it is
//! OpenCV's integer arithmetic to the bit; back, the exact values rounded.

use std::sync::OnceLock;

use multiversion::multiversion;

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
/// Entries of the table of roots.
const ROOTS: usize = (256 * 3 / 2) << GAMMA_BITS;

/// Pixels that are computed side by side: as many as is fastest.
const INTEGER_LANES: usize = 16;
const FLOAT_LANES: usize = 8;

struct Tables {
    /// What each level of red, green and blue adds to X, Y and Z, as integers of [`ROOT_BITS`]; half of the last place that counts is in
    /// those of red.
    parts: [[[i32; 4]; 256]; 3],
    /// Cube roots of linear values.
    roots: Vec<i32>,
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
            let value = i as f64 / top;
            let root = if value < 0.008_856 { value * 7.787 + 16.0 / 116.0 } else { value.cbrt() };
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
            roots: (0..ROOTS).map(root).collect(),
        }
    })
}

/// Half of the last place is added before the `bits` last are dropped.
#[inline(always)]
fn rounded(value: i32, bits: u32) -> i32 {
    (value + (1 << (bits - 1))) >> bits
}

/// Writes the L*a*b* of each colour of `src` to `dst`.
#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
pub fn from_rgb(src: &[[u8; 3]], dst: &mut [[u8; 3]]) {
    let tables = tables();
    for (colours, to) in src.chunks(INTEGER_LANES).zip(dst.chunks_mut(INTEGER_LANES)) {
        let [mut x, mut y, mut z] = [[0i32; INTEGER_LANES]; 3];
        for (lane, &[r, g, b]) in colours.iter().enumerate() {
            let [red, green, blue] = &tables.parts;
            let (red, green, blue) = (red[usize::from(r)], green[usize::from(g)], blue[usize::from(b)]);
            let mut places = [0i32; 4];
            for i in 0..4 {
                places[i] = (red[i] + green[i] + blue[i]) >> COEFFICIENT_BITS;
            }
            let root = |place: i32| tables.roots.get(place as usize).copied().unwrap_or_default();
            (x[lane], y[lane], z[lane]) = (root(places[0]), root(places[1]), root(places[2]));
        }
        let middle = 128 << ROOT_BITS;
        let mut lab = [[0u8; INTEGER_LANES]; 3];
        for lane in 0..INTEGER_LANES {
            let lightness = (116 * 255 + 50) / 100 * y[lane] - (((16 * 255) << ROOT_BITS) + 50) / 100;
            let level = |value: i32| rounded(value, ROOT_BITS).clamp(0, 255) as u8;
            lab[0][lane] = level(lightness);
            lab[1][lane] = level(500 * (x[lane] - y[lane]) + middle);
            lab[2][lane] = level(200 * (y[lane] - z[lane]) + middle);
        }
        for (lane, to) in to.iter_mut().enumerate() {
            *to = lab.map(|channel| channel[lane]);
        }
    }
}

/// The level of a linear value in sRGB.
fn srgb(value: f64) -> u8 {
    let level = if value <= 0.003_130_8 { 12.92 * value } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
    (level * 255.0).round_ties_even() as u8
}

/// What colours are made of without powers and roots.
struct Levels {
    /// The least value of the level after each.
    next: [f64; 256],
    /// Levels of values a [`STEPS`]th apart.
    starts: Vec<u8>,
    /// Of each lightness: Y and its root. How far a and b move the roots of X and Z.
    lightness: [[f64; 2]; 256],
    moves: [[f64; 2]; 256],
}

/// So many that at most one level begins between two neighbours.
const STEPS: usize = 1 << 14;

fn levels() -> &'static Levels {
    static LEVELS: OnceLock<Levels> = OnceLock::new();
    LEVELS.get_or_init(|| {
        // Bits of positive floats are in the order of their values.
        let least = |level: u8| {
            let (mut below, mut from) = (0f64.to_bits(), 1f64.to_bits());
            while from - below > 1 {
                let middle = below.midpoint(from);
                let half = if srgb(f64::from_bits(middle)) < level { &mut below } else { &mut from };
                *half = middle;
            }
            f64::from_bits(from)
        };
        let lightness = |level: usize| {
            let lightness = level as f64 * 100.0 / 255.0;
            if lightness <= 8.0 {
                [lightness / 903.3, 7.787 * (lightness / 903.3) + 16.0 / 116.0]
            } else {
                let root = (lightness + 16.0) / 116.0;
                [root.powi(3), root]
            }
        };
        Levels {
            next: std::array::from_fn(
                |level| if level < 255 { least(level as u8 + 1) } else { f64::INFINITY },
            ),
            starts: (0..=STEPS).map(|i| srgb(i as f64 / STEPS as f64)).collect(),
            lightness: std::array::from_fn(lightness),
            moves: std::array::from_fn(|level| [500.0, 200.0].map(|part| (level as f64 - 128.0) / part)),
        }
    })
}

impl Levels {
    #[inline(always)]
    fn of(&self, value: f64, start: i32) -> u8 {
        let level = self.starts.get(start as usize).copied().unwrap_or_default();
        level + u8::from(value >= self.next[usize::from(level)])
    }
}

/// Writes the colour of each L*a*b* of `src` to `dst`.
#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
pub fn to_rgb(src: &[[u8; 3]], dst: &mut [[u8; 3]]) {
    const LINEAR_UP_TO: f64 = 6.0 / 29.0;
    let levels = levels();
    for (colours, to) in src.chunks(FLOAT_LANES).zip(dst.chunks_mut(FLOAT_LANES)) {
        let (mut xs, mut ys, mut zs) = ([0.0; FLOAT_LANES], [0.0; FLOAT_LANES], [0.0; FLOAT_LANES]);
        for (lane, &[lightness, a, b]) in colours.iter().enumerate() {
            let [y, root] = levels.lightness[usize::from(lightness)];
            ys[lane] = y;
            xs[lane] = root + levels.moves[usize::from(a)][0];
            zs[lane] = root - levels.moves[usize::from(b)][1];
        }
        for (roots, white) in [(&mut xs, WHITE[0]), (&mut zs, WHITE[2])] {
            let old = *roots;
            for root in roots.iter_mut() {
                *root = root.powi(3) * white;
            }
            // Rare: dark colours.
            if old.iter().any(|root| *root <= LINEAR_UP_TO) {
                for (root, old) in roots.iter_mut().zip(old).filter(|(_, old)| *old <= LINEAR_UP_TO) {
                    *root = (old - 16.0 / 116.0) / 7.787 * white;
                }
            }
        }
        let mut rgb = [[0u8; FLOAT_LANES]; 3];
        for (channel, row) in rgb.iter_mut().zip(&FROM_XYZ) {
            let (mut values, mut starts) = ([0.0; FLOAT_LANES], [0i32; FLOAT_LANES]);
            for lane in 0..FLOAT_LANES {
                values[lane] = row[0] * xs[lane] + row[1] * ys[lane] + row[2] * zs[lane];
                // Without this bound the conversion is not vector code.
                starts[lane] = (values[lane] * STEPS as f64).clamp(0.0, STEPS as f64) as i32;
            }
            for lane in 0..FLOAT_LANES {
                channel[lane] = levels.of(values[lane], starts[lane]);
            }
        }
        for (lane, to) in to.iter_mut().enumerate() {
            *to = rgb.map(|channel| channel[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_need_no_power() {
        let of = |value: f64| levels().of(value, (value * STEPS as f64).clamp(0.0, STEPS as f64) as i32);
        for i in -50..=10_500 {
            let value = f64::from(i) / 10_000.0;
            assert_eq!(of(value), srgb(value), "{value}");
        }
        for &least in &levels().next[..255] {
            for value in [least.next_down(), least, least.next_up()] {
                assert_eq!(of(value), srgb(value), "{value}");
            }
        }
    }

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
}
