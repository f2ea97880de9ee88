//! Distributions as libstdc++ draws them, for operators whose numbers depend on its algorithms. It must not know
//! operators.

use std::sync::LazyLock;

use super::{Philox, uniform_int};

/// Draws after which a Poisson number of a huge mean is its largest one: libstdc++ draws on for good.
const MAX_DRAWS: usize = 10_000;

macro_rules! distributions {
    ($normal:ident, $gamma:ident, $beta:ident, $real:ty, $unit:ident) => {
        /// Normal numbers with mean 0, by Marsaglia's polar method, which makes two at a time.
        #[derive(Debug, Clone, Default)]
        struct $normal {
            saved: Option<$real>,
        }

        impl $normal {
            fn draw(&mut self, random: &mut Philox) -> $real {
                if let Some(saved) = self.saved.take() {
                    return saved;
                }
                loop {
                    let x = 2.0 * $unit(random) - 1.0;
                    let y = 2.0 * $unit(random) - 1.0;
                    let square = x * x + y * y;
                    if square <= 1.0 && square != 0.0 {
                        let scale = (-2.0 * square.ln() / square).sqrt();
                        self.saved = Some(x * scale);
                        return y * scale;
                    }
                }
            }
        }

        /// Gamma numbers of scale 1, by the method of Marsaglia and Tsang.
        #[derive(Debug, Clone)]
        pub struct $gamma {
            shape: $real,
            normal: $normal,
        }

        impl $gamma {
            /// Numbers of the positive shape `shape`.
            pub fn new(shape: $real) -> Self {
                Self { shape, normal: $normal::default() }
            }

            /// The next number.
            pub fn draw(&mut self, random: &mut Philox) -> $real {
                let shape = if self.shape < 1.0 { self.shape + 1.0 } else { self.shape };
                let a1 = shape - 1.0 / 3.0;
                let a2 = 1.0 / (9.0 * a1).sqrt();
                let v = loop {
                    let (n, v) = loop {
                        let n = self.normal.draw(random);
                        let v = 1.0 + a2 * n;
                        if v > 0.0 {
                            break (n, v * v * v);
                        }
                    };
                    let u = $unit(random);
                    let n = f64::from(n);
                    let close = f64::from(u) <= 1.0 - 0.0331 * n * n * n * n;
                    if close
                        || f64::from(u.ln())
                            <= 0.5 * n * n + f64::from(a1) * (1.0 - f64::from(v) + f64::from(v.ln()))
                    {
                        break v;
                    }
                };
                if self.shape == shape {
                    return a1 * v;
                }
                let u = loop {
                    let u = $unit(random);
                    if u != 0.0 {
                        break u;
                    }
                };
                u.powf(1.0 / self.shape) * a1 * v
            }
        }

        /// Beta numbers, by two gamma numbers X and Y: X / (X + Y).
        ///
        /// Gamma numbers of a small shape are so close to 0 that both may vanish. Where both shapes are below 1, one of
        /// shape `a` is one of shape `a + 1` times a power of a uniform number, U^(1/a), and the larger of the two
        /// powers is divided away.
        #[derive(Debug, Clone)]
        pub struct $beta {
            alpha: $gamma,
            beta: $gamma,
            /// The second parameter, and how often the first one goes into it, when both are below 1.
            small: Option<[$real; 2]>,
        }

        impl $beta {
            /// Numbers of the positive parameters `alpha` and `beta`.
            pub fn new(alpha: $real, beta: $real) -> Self {
                let small = (alpha < 1.0 && beta < 1.0).then(|| [beta, beta / alpha]);
                let more = if small.is_some() { 1.0 } else { 0.0 };
                Self { alpha: $gamma::new(alpha + more), beta: $gamma::new(beta + more), small }
            }

            /// The next number.
            pub fn draw(&mut self, random: &mut Philox) -> $real {
                let (x, y) = (self.alpha.draw(random), self.beta.draw(random));
                let Some([beta, times]) = self.small else { return x / (x + y) };
                // Logarithms of uniform numbers.
                let [u, v] = [(); 2].map(|()| (1.0 - $unit(random)).ln());
                let u = u * times;
                if u < v {
                    let x = x * ((u - v) / beta).exp();
                    x / (x + y)
                } else {
                    let y = y * ((v - u) / beta).exp();
                    x / (x + y)
                }
            }
        }
    };
}
distributions!(Normal32, Gamma32, Beta32, f32, unit_f32);
distributions!(Normal64, Gamma64, Beta64, f64, unit_f64);

/// A float from 0 up to 1: `generate_canonical`.
fn unit_f32(random: &mut Philox) -> f32 {
    random.unit_f32().min(1f32.next_down())
}

fn unit_f64(random: &mut Philox) -> f64 {
    random.unit_f64().min(1f64.next_down())
}

/// ln n! for small n.
static LN_FACTORIALS: LazyLock<[f64; 20]> =
    LazyLock::new(|| std::array::from_fn(|n| (2..=n).map(|k| (k as f64).ln()).sum()));

/// ln n! for an integer n.
fn ln_factorial(n: f64) -> f64 {
    if let Some(&tabled) = LN_FACTORIALS.get(n as usize) {
        return tabled;
    }
    // Stirling's series, exact to the last bits from here on.
    let x = n + 1.0;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1_260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

/// A Poisson number: of small means by multiplying uniform ones, else by the rejection method of Devroye.
pub fn poisson(random: &mut Philox, mean: f64) -> i32 {
    const LARGE: f64 = 12.0;
    if mean.is_nan() || mean <= 0.0 {
        return 0;
    }
    if mean >= f64::from(i32::MAX) {
        return i32::MAX;
    }
    if mean < LARGE {
        let (limit, mut product, mut number) = ((-mean).exp(), 1.0, 0);
        loop {
            product *= unit_f64(random);
            if product <= limit {
                return number;
            }
            number += 1;
        }
    }
    let m = mean.floor();
    let quarter_pi = std::f64::consts::FRAC_PI_4;
    let d = (2.0 * m * (32.0 * m / quarter_pi).ln()).sqrt().min(m).max(6.0).round();
    let cx = 2.0 * m + d;
    // Multiplied where libstdc++ multiplies: a rounding may decide between two numbers.
    let inverse = 1.0 / cx;
    let cb = 2.0 * cx * (-d * inverse * (1.0 + d / 2.0)).exp() / d;
    let root = m.sqrt();
    let c1 = root * (std::f64::consts::PI / 2.0).sqrt();
    let c2 = (quarter_pi * cx).sqrt() * inverse.exp() + c1;
    let (c3, c4) = (c2 + 1.0, c2 + 2.0);
    let c5 = c4 + (1.0 / 78f64).exp();
    let (ln_mean, ln_m) = (mean.ln(), ln_factorial(m));
    let mut normal = Normal64::default();
    for _ in 0..MAX_DRAWS {
        let u = (cb + c5) * unit_f64(random);
        let e = -(1.0 - unit_f64(random)).ln();
        let (x, w) = if u <= c1 {
            let n = normal.draw(random);
            let x = (-n.abs() * root - 1.0).floor();
            if x < -m {
                continue;
            }
            (x, -n * n / 2.0)
        } else if u <= c2 {
            let y = 1.0 + normal.draw(random).abs() * (cx / 2.0).sqrt();
            let x = y.ceil();
            if x > d {
                continue;
            }
            (x, y * (2.0 - y) * inverse)
        } else if u <= c3 {
            (-1.0, 0.0)
        } else if u <= c4 {
            (0.0, 0.0)
        } else if u <= c5 {
            (1.0, 1.0 / 78.0)
        } else {
            let v = -(1.0 - unit_f64(random)).ln();
            let y = d + v * 2.0 * cx / d;
            (y.ceil(), -d * inverse * (1.0 + y / 2.0))
        };
        let number = x + m;
        if w - e - x * ln_mean <= ln_m - ln_factorial(number) && number < f64::from(i32::MAX) {
            return number as i32;
        }
    }
    i32::MAX
}

/// Puts `items` in random order: `std::shuffle`, which takes two places from one number where it can.
pub fn shuffle<T>(random: &mut Philox, items: &mut [T]) {
    let last = items.len().min(1 << 15) as u32;
    let mut next = 1;
    // With an even number of items, the first is drawn alone.
    if last > 1 && last.is_multiple_of(2) {
        items.swap(1, uniform_int(random, 1) as usize);
        next = 2;
    }
    while next + 1 < last {
        let (one, two) = (next + 1, next + 2);
        let drawn = uniform_int(random, one * two - 1);
        items.swap(next as usize, (drawn / two) as usize);
        items.swap(next as usize + 1, (drawn % two) as usize);
        next += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorials_meet_their_series() {
        let sum: f64 = (2..=40).map(|k| f64::from(k).ln()).sum();
        assert!((ln_factorial(40.0) - sum).abs() < 1e-12);
        assert_eq!((ln_factorial(0.0), ln_factorial(1.0)), (0.0, 0.0));
    }

    #[test]
    fn poisson_numbers_have_their_mean_and_end() {
        for mean in [0.3, 11.9, 12.0, 40.5, 5_000.0] {
            let mut random = Philox::new(1, 0);
            let sum: f64 = (0..2_000).map(|_| f64::from(poisson(&mut random, mean))).sum();
            assert!((sum / 2_000.0 - mean).abs() < 5.0 * (mean / 2_000.0).sqrt(), "{mean}");
        }
        let mut random = Philox::new(1, 0);
        for mean in [f64::NAN, -1.0, 0.0, f64::INFINITY, 1e300, 2_147_483_600.0] {
            poisson(&mut random, mean);
        }
    }

    #[test]
    fn small_beta_numbers_have_their_mean_and_variance() {
        for [alpha, beta] in [[0.5, 0.5], [0.3, 0.7], [0.01, 0.02], [1e-6, 1e-6]] {
            let (mut random, mut numbers) = (Philox::new(1, 0), Beta64::new(alpha, beta));
            let drawn: Vec<f64> = (0..4_000).map(|_| numbers.draw(&mut random)).collect();
            let mean = drawn.iter().sum::<f64>() / 4_000.0;
            let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4_000.0;
            let sum = alpha + beta;
            let expected = [alpha / sum, alpha * beta / (sum * sum * (sum + 1.0))];
            assert!((mean - expected[0]).abs() < 0.04, "{alpha} {beta}: {mean}, expected {expected:?}");
            assert!(
                (variance - expected[1]).abs() < 0.02,
                "{alpha} {beta}: {variance}, expected {expected:?}"
            );
        }
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        for count in [0, 1, 2, 3, 8, 101] {
            let mut items: Vec<usize> = (0..count).collect();
            shuffle(&mut Philox::new(5, 0), &mut items);
            items.sort_unstable();
            assert_eq!(items, (0..count).collect::<Vec<_>>());
        }
    }
}
