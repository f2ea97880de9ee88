//! Weights of the pixels in a line around a place, and images seen through them. It must not know where places come
//! from.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_PI_4};

use multiversion::multiversion;

use super::convert::ConvertSat;
use super::warp::Pixels;

/// Farther away, places are not told from one another.
const FAR: f32 = 1e9;

/// The weights of four pixels in a line, from the second of which on a place is `part` of a pixel: Keys' cubic
/// convolution with a = -0.75.
#[inline(always)]
pub(super) fn cubic_weights(part: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let far = |x: f32| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let (first, second, third) = (far(part + 1.0), near(part), near(1.0 - part));
    [first, second, third, 1.0 - first - second - third]
}

/// Those of eight pixels, from the fourth of which on a place is `part` of a pixel: Lanczos' window of four pixels to
/// either side, of a sum of 1. The sine of a whole circle for two pixels differs in its sign only from pixel to pixel,
/// which the sum takes away, and that of four times as long turns by an eighth.
#[inline(always)]
fn lanczos_weights(part: f32) -> [f32; 8] {
    if part < f32::EPSILON {
        return [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    }
    let (s, c) = (part * FRAC_PI_4).sin_cos();
    let (less, more) = (FRAC_1_SQRT_2 * (c - s), FRAC_1_SQRT_2 * (s + c));
    let mut weights = [less, -c, more, -s, -less, c, -more, s];
    for (i, weight) in weights.iter_mut().enumerate() {
        let away = part + 3.0 - i as f32;
        *weight /= away * away;
    }
    let sum: f32 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

/// Writes the pixels at `places` to `row`, each the sum of 4 x 4 pixels of an image by cubic weights; outside of it is
/// 0. Pixel centers are whole numbers.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub fn cubic<T>(source: Pixels<'_, T>, places: &[[f32; 3]], row: &mut [T])
where
    T: ConvertSat<f32>,
    f32: ConvertSat<T>,
{
    for (&[x, y, _], pixel) in places.iter().zip(row.chunks_exact_mut(source.channels.max(1))) {
        weighted(source, [x, y], cubic_weights, pixel);
    }
}

/// [`cubic`] of 8 x 8 pixels by Lanczos' window.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub fn lanczos<T>(source: Pixels<'_, T>, places: &[[f32; 3]], row: &mut [T])
where
    T: ConvertSat<f32>,
    f32: ConvertSat<T>,
{
    for (&[x, y, _], pixel) in places.iter().zip(row.chunks_exact_mut(source.channels.max(1))) {
        weighted(source, [x, y], lanczos_weights, pixel);
    }
}

#[inline(always)]
fn weighted<T, const N: usize>(
    source: Pixels<'_, T>,
    place: [f32; 2],
    weights: impl Fn(f32) -> [f32; N],
    pixel: &mut [T],
) where
    T: ConvertSat<f32>,
    f32: ConvertSat<T>,
{
    let [width, height, _] = source.size;
    let place = place.map(|at| at.clamp(-FAR, FAR));
    let first = place.map(f32::floor);
    let [across, down] = [0, 1].map(|axis| weights(place[axis] - first[axis]));
    let [left, top] = first.map(|first| first as i64 - (N as i64 / 2 - 1));
    let inside = |first: i64, i: usize, extent: usize| {
        usize::try_from(first + i as i64).ok().filter(|&at| at < extent)
    };
    let columns: [Option<usize>; N] = std::array::from_fn(|i| inside(left, i, width));
    for (c, to) in pixel.iter_mut().enumerate() {
        let mut sum = 0.0;
        for (j, weight) in down.iter().enumerate() {
            let Some(y) = inside(top, j, height) else { continue };
            let mut line = 0.0;
            for (&column, weight) in columns.iter().zip(&across) {
                let Some(x) = column else { continue };
                let value: f32 = source.values[(y * width + x) * source.channels + c].convert_sat();
                line += value * weight;
            }
            sum += line * weight;
        }
        *to = sum.convert_sat();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_their_windows() {
        for part in [0.0, 1e-6, 0.25, 0.5, 0.968_75] {
            let sinc = |x: f64| if x == 0.0 { 1.0 } else { (x * std::f64::consts::PI).sin() / x };
            let window = |i: usize| {
                let away = f64::from(part) + 3.0 - i as f64;
                if away == 0.0 { 1.0 } else { sinc(away) * sinc(away / 4.0) }
            };
            let sum: f64 = (0..8).map(window).sum();
            for (i, weight) in lanczos_weights(part).into_iter().enumerate() {
                let expected = if part == 0.0 { f64::from(u8::from(i == 3)) } else { window(i) / sum };
                assert!(
                    (f64::from(weight) - expected).abs() < 1e-5,
                    "{part} {i}: {weight}, expected {expected}"
                );
            }
            assert!((cubic_weights(part).iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn outside_is_0() {
        let source = Pixels { values: &[200_u8, 100], size: [2, 1, 1], channels: 1 };
        let mut row = [9; 5];
        let places =
            [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [-1e30, 0.0, 0.0], [1e30, 2e9, 0.0], [0.0, -4.0, 0.0]];
        cubic(source, &places, &mut row);
        assert_eq!(row, [200, 100, 0, 0, 0]);
        lanczos(source, &places, &mut row);
        assert_eq!(row, [200, 100, 0, 0, 0]);
    }
}
