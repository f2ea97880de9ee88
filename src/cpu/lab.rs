//! Colours of 8 bits between sRGB and CIE L*a*b* (D65, 8 bits each: L of 100 is 255, a and b are moved by 128). To L*a*b* it is
//! OpenCV's integer arithmetic to the bit; back, the exact values rounded.

use std::sync::OnceLock;

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

struct Tables {
    /// Linear values of levels.
    linear: Vec<i64>,
    /// Cube roots of linear values.
    roots: Vec<i64>,
    coefficients: [[i64; 3]; 3],
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let top = f64::from(255 << GAMMA_BITS);
        let linear = |level: usize| {
            let value = level as f64 / 255.0;
            let value = if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) };
            (top * value).round_ties_even() as i64
        };
        let root = |i: usize| {
            let value = i as f64 / top;
            let root = if value < 0.008_856 { value * 7.787 + 16.0 / 116.0 } else { value.cbrt() };
            (f64::from(1 << ROOT_BITS) * root).round_ties_even() as i64
        };
        let coefficient = |i: usize, k: usize| {
            (f64::from(1 << COEFFICIENT_BITS) * TO_XYZ[i][k] / WHITE[i]).round_ties_even()
        };
        Tables {
            linear: (0..256).map(linear).collect(),
            roots: (0..ROOTS).map(root).collect(),
            coefficients: std::array::from_fn(|i| std::array::from_fn(|k| coefficient(i, k) as i64)),
        }
    })
}

/// Half of the last place is added before the `bits` last are dropped.
fn rounded(value: i64, bits: u32) -> i64 {
    (value + (1 << (bits - 1))) >> bits
}

/// The L*a*b* of a colour.
pub fn from_rgb(rgb: [u8; 3]) -> [u8; 3] {
    let tables = tables();
    let [r, g, b] = rgb;
    let [r, g, b] =
        [tables.linear[usize::from(r)], tables.linear[usize::from(g)], tables.linear[usize::from(b)]];
    let root = |row: &[i64; 3]| {
        let sum = row[0] * r + row[1] * g + row[2] * b;
        tables.roots[(rounded(sum, COEFFICIENT_BITS).max(0) as usize).min(ROOTS - 1)]
    };
    let [x, y, z] = &tables.coefficients;
    let (x, y, z) = (root(x), root(y), root(z));
    let middle = 128 << ROOT_BITS;
    let lightness = (116 * 255 + 50) / 100 * y - (((16 * 255) << ROOT_BITS) + 50) / 100;
    let level = |value: i64| rounded(value, ROOT_BITS).clamp(0, 255) as u8;
    [level(lightness), level(500 * (x - y) + middle), level(200 * (y - z) + middle)]
}

/// The level of a linear value in sRGB.
fn srgb(value: f64) -> u8 {
    let level = if value <= 0.003_130_8 { 12.92 * value } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
    (level * 255.0).round_ties_even() as u8
}

/// [`srgb`] without its power.
struct Levels {
    /// The least value of each level but 0.
    least: Vec<f64>,
    /// Levels of values a [`STEPS`]th apart.
    starts: Vec<u8>,
}

/// So many that most pairs of neighbours have one level.
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
        let starts = (0..=STEPS).map(|i| srgb(i as f64 / STEPS as f64)).collect();
        Levels { least: (1..=255).map(least).collect(), starts }
    })
}

impl Levels {
    fn of(&self, value: f64) -> u8 {
        let start = (value * STEPS as f64) as i32;
        let mut level = self.starts[start.clamp(0, STEPS as i32) as usize];
        while self.least.get(usize::from(level)).is_some_and(|&next| value >= next) {
            level += 1;
        }
        level
    }
}

/// The colour of a L*a*b*.
pub fn to_rgb([lightness, a, b]: [u8; 3]) -> [u8; 3] {
    const LINEAR_UP_TO: f64 = 6.0 / 29.0;
    let lightness = f64::from(lightness) * 100.0 / 255.0;
    let cube = |root: f64| if root <= LINEAR_UP_TO { (root - 16.0 / 116.0) / 7.787 } else { root.powi(3) };
    let (y, root) = if lightness <= 8.0 {
        (lightness / 903.3, 7.787 * (lightness / 903.3) + 16.0 / 116.0)
    } else {
        let root = (lightness + 16.0) / 116.0;
        (root.powi(3), root)
    };
    let x = cube(root + (f64::from(a) - 128.0) / 500.0) * WHITE[0];
    let z = cube(root - (f64::from(b) - 128.0) / 200.0) * WHITE[2];
    let (levels, mut rgb) = (levels(), [0; 3]);
    for (to, row) in rgb.iter_mut().zip(&FROM_XYZ) {
        *to = levels.of(row[0] * x + row[1] * y + row[2] * z);
    }
    rgb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_need_no_power() {
        for i in -50..=10_500 {
            let value = f64::from(i) / 10_000.0;
            assert_eq!(levels().of(value), srgb(value), "{value}");
        }
        for &least in &levels().least {
            for value in [least.next_down(), least, least.next_up()] {
                assert_eq!(levels().of(value), srgb(value), "{value}");
            }
        }
    }

    #[test]
    fn colours_come_back() {
        assert_eq!(from_rgb([255; 3]), [255, 128, 128]);
        assert_eq!(from_rgb([0; 3]), [0, 128, 128]);
        for rgb in [[0, 0, 0], [255, 255, 255], [200, 30, 70], [12, 99, 240], [128, 128, 127]] {
            for (found, expected) in to_rgb(from_rgb(rgb)).into_iter().zip(rgb) {
                assert!(found.abs_diff(expected) <= 4, "{rgb:?}: {found} {expected}");
            }
        }
    }
}
