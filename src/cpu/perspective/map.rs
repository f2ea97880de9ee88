//! Where the pixels of a row are taken from, by a projective map. It must not know images.

use multiversion::multiversion;
use multiversion::target::target_cfg_f;

/// From homogeneous coordinates of the output to those of the source, pixel centers at integers.
pub type Matrix = [[f64; 3]; 3];

/// The places of a row's pixels.
pub(super) struct Places {
    pub(super) x: Vec<f32>,
    pub(super) y: Vec<f32>,
}

impl Places {
    /// Room for those of `width` pixels.
    pub(super) fn of(width: usize) -> Self {
        Self { x: vec![0.0; width], y: vec![0.0; width] }
    }

    /// Those of row `y`.
    pub(super) fn exactly(&mut self, matrix: &[[f32; 3]; 3], y: f32) {
        exactly(matrix, y, &mut self.x, &mut self.y);
    }
}

/// See [`Places::exactly`]. Product and sum are one step where a processor can do that. OpenCV computes 16 places at
/// once, and what is left of a row in another order.
#[multiversion(targets("x86_64+avx+avx2+fma+f16c"))]
fn exactly(matrix: &[[f32; 3]; 3], y: f32, xs: &mut [f32], ys: &mut [f32]) {
    const AT_ONCE: usize = 16;
    let is_fused = target_cfg_f!(target_feature = "fma");
    let sum =
        |along: f32, x: f32, other: f32| if is_fused { along.mul_add(x, other) } else { along * x + other };
    let [u, v, w] = *matrix;
    let moved = [u, v, w].map(|[_, down, _]| down * y);
    let offset = [moved[0] + u[2], moved[1] + v[2], moved[2] + w[2]];
    let whole = xs.len() / AT_ONCE * AT_ONCE;
    let (xs, last_xs) = xs.split_at_mut(whole);
    let (ys, last_ys) = ys.split_at_mut(whole);
    divided(xs, ys, 0, |x| [sum(u[0], x, offset[0]), sum(v[0], x, offset[1]), sum(w[0], x, offset[2])]);
    divided(last_xs, last_ys, whole, |x| {
        [sum(u[0], x, moved[0]) + u[2], sum(v[0], x, moved[1]) + v[2], sum(w[0], x, moved[2]) + w[2]]
    });
}

/// Places from homogeneous ones, for columns from `first` on.
#[inline(always)]
fn divided(xs: &mut [f32], ys: &mut [f32], first: usize, at: impl Fn(f32) -> [f32; 3]) {
    for (i, (to_x, to_y)) in xs.iter_mut().zip(ys).enumerate() {
        let [u, v, w] = at((first + i) as i32 as f32);
        (*to_x, *to_y) = (u / w, v / w);
    }
}

/// A coordinate as an integer; what is no number is far outside.
#[inline(always)]
fn whole(place: f64) -> i64 {
    if place.is_nan() { i64::from(i32::MIN) } else { place.clamp(i32::MIN.into(), i32::MAX.into()) as i64 }
}

/// Where a pixel is taken from, in parts of which a pixel has `parts`.
#[inline(always)]
pub(super) fn on_grid(matrix: &Matrix, x: usize, y: usize, parts: f64) -> [i64; 2] {
    let [u, v, w] = matrix.map(|row| row[0] * x as f64 + row[1] * y as f64 + row[2]);
    let scale = if w == 0.0 { 0.0 } else { parts / w };
    [u, v].map(|place| whole((place * scale).round_ties_even()))
}

/// The map that undoes `matrix`; `None` when there is none.
pub fn inverse(matrix: &Matrix) -> Option<Matrix> {
    let m = |row: usize, column: usize| matrix[row % 3][column % 3];
    let cofactor = |i: usize, k: usize| m(i + 1, k + 1) * m(i + 2, k + 2) - m(i + 1, k + 2) * m(i + 2, k + 1);
    let determinant: f64 = (0..3).map(|k| m(0, k) * cofactor(0, k)).sum();
    let scale = 1.0 / determinant;
    let inverted = std::array::from_fn(|i| std::array::from_fn(|k| cofactor(k, i) * scale));
    (determinant != 0.0 && determinant.is_finite()).then_some(inverted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_leads_back() {
        let matrix = [[1.0, 0.5, 3.0], [0.25, 2.0, -1.0], [0.01, 0.02, 1.0]];
        let back = inverse(&matrix).unwrap();
        for (i, row) in matrix.iter().enumerate() {
            for k in 0..3 {
                let product: f64 = row.iter().zip(&back).map(|(value, column)| value * column[k]).sum();
                assert!((product - f64::from(u8::from(i == k))).abs() < 1e-12);
            }
        }
        assert!(inverse(&[[0.0; 3]; 3]).is_none());
    }
}
