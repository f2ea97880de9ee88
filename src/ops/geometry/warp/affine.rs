//! `WarpAffine`: an image or volume seen through the affine map that a matrix gives.

use super::{ARGS, Placement, build};
use crate::cpu::warp::Map;
use crate::error::{Error, Result};
use crate::operator::args::numbers;
use crate::operator::{Arg, ArgSpec, Args, InputSet, OpDef, Operator, SampleInputs, one_output};
use crate::tensor::Device;

struct WarpAffine {
    /// The argument; the second input when there is none.
    matrix: Option<Arg>,
    /// Whether the matrix leads from the output to the input.
    inverse_map: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "WarpAffine",
    doc: "An affine transformation of images and volumes",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 2),
    args: &[
        ArgSpec::floats("matrix", "coefficients of x, y (and z) and an offset, for each of them")
            .tensor()
            .per_frame()
            .or_floats(&[]),
        ArgSpec::bool("inverse_map", "whether it leads from the output to the input").or_bool(true),
    ],
    shared_args: &[ARGS],
    build: &new,
    outputs: &one_output,
    kernels: &[super::kernels],
    host_inputs: Some(1),
    reads_in_place: InputSet::First,
    ..OpDef::BASE
};

fn new(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let matrix = args.given_arg("matrix")?;
    if matrix.is_some() == (inputs == 2) {
        return Err(Error::invalid("expected one matrix: the argument `matrix` or the second input"));
    }
    build(WarpAffine { matrix, inverse_map: args.bool("inverse_map")? }, args)
}

impl Placement for WarpAffine {
    fn map(&self, sample: &SampleInputs<'_>, from: &[usize], _to: &[usize]) -> Result<Map> {
        let numbers = match &self.matrix {
            Some(matrix) => matrix.numbers(sample)?,
            None => numbers(&sample.input(1)?)?,
        };
        let n = from.len();
        if numbers.len() != n * (n + 1) {
            let expected = n * (n + 1);
            return Err(Error::invalid(format!(
                "a matrix of {} elements, expected {expected}",
                numbers.len()
            )));
        }
        let mut map = Map::default();
        for (row, values) in map.iter_mut().zip(numbers.chunks_exact(n + 1)) {
            for (to, &from) in row.iter_mut().zip(&values[..n]) {
                *to = from as f32;
            }
            row[3] = values[n] as f32;
        }
        if self.inverse_map { Ok(map) } else { inverse(&map, n) }
    }

    fn keeps_size(&self) -> bool {
        true
    }
}

/// The map that undoes `map`, of `n` dimensions.
fn inverse(map: &Map, n: usize) -> Result<Map> {
    let singular = || Error::invalid("the matrix cannot be inverted");
    let mut result = Map::default();
    if n == 2 {
        let [[a, b, ..], [c, d, ..], _] = *map;
        let determinant = a * d - b * c;
        if determinant == 0.0 {
            return Err(singular());
        }
        result[0][..2].copy_from_slice(&[d / determinant, -b / determinant]);
        result[1][..2].copy_from_slice(&[-c / determinant, a / determinant]);
    } else {
        let rows = |row: usize| [map[row][0], map[row][1], map[row][2]];
        let inverted = eliminated([rows(0), rows(1), rows(2)]).ok_or_else(singular)?;
        for (row, values) in result.iter_mut().zip(inverted) {
            row[..3].copy_from_slice(&values);
        }
    }
    for row in result.iter_mut().take(n) {
        row[3] = (1..n).fold(-row[0] * map[0][3], |sum, k| sum + -row[k] * map[k][3]);
    }
    Ok(result)
}

/// The inverse of a matrix, by elimination with the largest pivot; `None` when it has none.
fn eliminated(mut a: [[f32; 3]; 3]) -> Option<[[f32; 3]; 3]> {
    let mut b = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0f32]];
    for v in 0..3 {
        let pivot = (v..3).fold(v, |best, i| if a[i][v].abs() > a[best][v].abs() { i } else { best });
        if a[pivot][v] == 0.0 {
            return None;
        }
        a.swap(v, pivot);
        b.swap(v, pivot);
        let scale = 1.0 / a[v][v];
        a[v][v] = 1.0;
        a[v][v + 1..].iter_mut().for_each(|x| *x *= scale);
        b[v].iter_mut().for_each(|x| *x *= scale);
        let (pivot_a, pivot_b) = (a[v], b[v]);
        for i in (0..3).filter(|&i| i != v) {
            let factor = -a[i][v];
            a[i][v] = 0.0;
            for j in v + 1..3 {
                a[i][j] = factor.mul_add(pivot_a[j], a[i][j]);
            }
            for j in 0..3 {
                b[i][j] = factor.mul_add(pivot_b[j], b[i][j]);
            }
        }
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_leads_back() {
        let map = [[0.0, 2.0, 1.0, 5.0], [1.0, 0.0, 3.0, -2.0], [0.5, 1.0, 0.0, 1.0]];
        let back = inverse(&map, 3).unwrap();
        let apply = |map: &Map, p: [f32; 3]| map.map(|[x, y, z, t]| x * p[0] + y * p[1] + z * p[2] + t);
        for (found, expected) in apply(&back, apply(&map, [3.0, 4.0, 5.0])).iter().zip([3.0, 4.0, 5.0]) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
        assert!(inverse(&Map::default(), 2).is_err());
        assert!(inverse(&Map::default(), 3).is_err());
    }
}
