//! The filters of Pillow and torchvision, and the weights that they give to the pixels of a line. In float64, in the
//! order of operations of the two libraries: a weight that is rounded otherwise changes pixels. It must not know
//! pixels.

use std::f64::consts::PI;

use super::axis::Axis;

/// A filter, as a curve over the distance from the place that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Curve {
    Box,
    Bilinear,
    Hamming,
    Bicubic,
    Lanczos,
}

/// A part of a line of `length` pixels, from `start` to `end`, of which `outputs` pixels are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) length: usize,
    pub(super) start: f32,
    pub(super) end: f32,
    pub(super) outputs: usize,
}

impl Line {
    /// All of it.
    #[cfg(test)]
    pub(super) fn whole(length: usize, outputs: usize) -> Self {
        Self { length, start: 0.0, end: length as f32, outputs }
    }

    /// Pixels of the line for one of the output. Pillow subtracts in float32.
    pub(super) fn scale(&self) -> f64 {
        f64::from(self.end - self.start) / self.outputs as f64
    }

    /// The most weights that an output can have.
    pub(super) fn taps(&self, curve: Curve) -> usize {
        let reach = curve.support() * self.scale().max(1.0);
        (reach.ceil() as usize).saturating_mul(2).saturating_add(1)
    }
}

impl Curve {
    /// From this distance on it is 0, for a filter that is not stretched.
    pub(super) fn support(self) -> f64 {
        match self {
            Curve::Box => 0.5,
            Curve::Bilinear | Curve::Hamming => 1.0,
            Curve::Bicubic => 2.0,
            Curve::Lanczos => 3.0,
        }
    }

    fn at(self, x: f64) -> f64 {
        let distance = x.abs();
        match self {
            Curve::Box => f64::from(u8::from(x > -0.5 && x <= 0.5)),
            Curve::Bilinear => (1.0 - distance).max(0.0),
            Curve::Hamming => hamming(distance),
            Curve::Bicubic => bicubic(distance),
            Curve::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Curve::Lanczos => 0.0,
        }
    }
}

/// Pillow's constants are float32.
fn hamming(distance: f64) -> f64 {
    if distance == 0.0 {
        return 1.0;
    }
    if distance >= 1.0 {
        return 0.0;
    }
    let turn = distance * PI;
    turn.sin() / turn * (f64::from(0.54_f32) + f64::from(0.46_f32) * turn.cos())
}

/// Keys' cubic convolution with a = -0.5.
fn bicubic(distance: f64) -> f64 {
    const A: f64 = -0.5;
    if distance < 1.0 {
        ((A + 2.0) * distance - (A + 3.0)) * distance * distance + 1.0
    } else if distance < 2.0 {
        (((distance - 5.0) * distance + 8.0) * distance - 4.0) * A
    } else {
        0.0
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let turn = x * PI;
    turn.sin() / turn
}

/// The weights of every output of a line. Pixels outside of the part take part, pixels outside of the line do not.
pub(super) fn weights(line: &Line, curve: Curve) -> Axis<f64> {
    let scale = line.scale();
    let stretch = scale.max(1.0);
    let (reach, shrink) = (curve.support() * stretch, 1.0 / stretch);
    let most = line.taps(curve);
    let mut axis = Axis::with_capacity(line.outputs, most.min(line.length));
    for output in 0..line.outputs {
        let center = f64::from(line.start) + (output as f64 + 0.5) * scale;
        // A cast to an integer cuts the fraction off, as in C.
        let first = ((center - reach + 0.5) as i64).max(0);
        let end = ((center + reach + 0.5) as i64).min(line.length as i64);
        let count = (end - first).clamp(0, most as i64);
        let weights = axis
            .push(first as usize, (0..count).map(|i| curve.at(((i + first) as f64 - center + 0.5) * shrink)));
        let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
        if sum != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_a_sum_of_1_and_stay_inside() {
        for curve in [Curve::Box, Curve::Bilinear, Curve::Hamming, Curve::Bicubic, Curve::Lanczos] {
            for (length, outputs) in [(1, 1), (1, 40), (500, 224), (224, 500), (4000, 3), (7, 7)] {
                let axis = weights(&Line::whole(length, outputs), curve);
                assert_eq!(axis.len(), outputs);
                for (first, weights) in (0..outputs).map(|i| axis.at(i)) {
                    assert!(first + weights.len() <= length, "{curve:?} {length} {outputs}");
                    assert!(
                        (weights.iter().sum::<f64>() - 1.0).abs() < 1e-12,
                        "{curve:?} {length} {outputs}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_part_sees_pixels_around_it() {
        let axis = weights(&Line { length: 10, start: 4.0, end: 6.0, outputs: 4 }, Curve::Bicubic);
        assert_eq!(axis.at(0).0, 2);
        assert_eq!(axis.span(), (2, 8));
    }
}
