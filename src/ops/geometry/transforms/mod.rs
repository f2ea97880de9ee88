//! `transforms__*`: matrices of affine transformations, alone or applied to another one. Each operator's file says
//! which matrix it makes ([`Generator`]); [`Transform`] applies it.

pub(in crate::ops) mod combine;
pub(in crate::ops) mod crop;
pub(in crate::ops) mod rotation;
pub(in crate::ops) mod scale;
pub(in crate::ops) mod shear;
pub(in crate::ops) mod translation;

use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Layout, Shape, ValueType, View};

/// Most dimensions of the points that are transformed.
const MAX_POINT_DIMS: usize = 6;

/// Arguments of all of them.
const ARGS: &[ArgSpec] = &[ArgSpec::bool(
    "reverse_order",
    "whether the input is applied after this transformation instead of before",
)
.or_bool(false)];

/// The layout of matrices.
fn layout() -> Layout {
    Layout::from_letters(b"**")
}

/// A matrix of `ndim` rows and one more column, row-major: what points of `ndim` coordinates are multiplied by.
#[derive(Debug, Clone, PartialEq)]
struct Affine {
    ndim: usize,
    elements: Vec<f32>,
}

impl Affine {
    /// Leaves points of `ndim` coordinates where they are.
    fn identity(ndim: usize) -> Result<Self> {
        if !(1..=MAX_POINT_DIMS).contains(&ndim) {
            return Err(Error::invalid(format!("{ndim} dimensions, expected 1 to {MAX_POINT_DIMS}")));
        }
        let element = |i| if i % (ndim + 2) == 0 { 1.0 } else { 0.0 };
        Ok(Self { ndim, elements: (0..ndim * (ndim + 1)).map(element).collect() })
    }

    /// From a tensor of such a matrix.
    fn read(view: &View<'_>) -> Result<Self> {
        Ok(Self { ndim: ndim_of(view)?, elements: view.as_slice::<f32>()?.to_vec() })
    }

    /// The element in `row` and `column`; below the last row is 0, ..., 0, 1.
    fn at(&self, row: usize, column: usize) -> f32 {
        let below = if column == self.ndim { 1.0 } else { 0.0 };
        if row == self.ndim { below } else { self.elements[row * (self.ndim + 1) + column] }
    }

    fn set(&mut self, row: usize, column: usize, value: f32) {
        self.elements[row * (self.ndim + 1) + column] = value;
    }

    /// What applies `first` and then `self`.
    fn after(&self, first: &Affine) -> Self {
        let mut product = self.clone();
        for row in 0..self.ndim {
            for column in 0..=self.ndim {
                let sum = (1..=self.ndim).fold(self.at(row, 0) * first.at(0, column), |sum, k| {
                    sum + self.at(row, k) * first.at(k, column)
                });
                product.set(row, column, sum);
            }
        }
        product
    }

    /// The same around `center` instead of the origin.
    fn around(mut self, center: Option<&[f32]>) -> Result<Self> {
        let Some(center) = center else { return Ok(self) };
        let center = for_all_axes("center", center, self.ndim)?;
        for row in 0..self.ndim {
            let moved = (1..self.ndim)
                .fold(self.at(row, 0) * -center[0], |sum, k| sum + self.at(row, k) * -center[k]);
            self.set(row, self.ndim, moved + center[row]);
        }
        Ok(self)
    }
}

/// A value of the argument `name` for each of `ndim` axes; one value is that of all.
fn for_all_axes(name: &str, values: &[f32], ndim: usize) -> Result<Vec<f32>> {
    match values {
        [all] => Ok(vec![*all; ndim]),
        _ if values.len() == ndim => Ok(values.to_vec()),
        _ => Err(Error::invalid(format!(
            "argument `{name}` has {} values, expected 1 or {ndim}",
            values.len()
        ))),
    }
}

/// The dimensions of the points that the matrix in `view` is for.
fn ndim_of(view: &View<'_>) -> Result<usize> {
    match view.shape[..] {
        [rows, columns] if columns == rows + 1 && view.dtype == DType::F32 => {
            Affine::identity(rows).map(|matrix| matrix.ndim)
        }
        _ => Err(Error::invalid(format!(
            "an input of type {} and shape {}, expected a float32 matrix with a column more than rows",
            view.dtype, view.shape
        ))),
    }
}

/// Makes the matrix of an operator.
trait Generator: Send {
    /// The matrix of one sample, for points of `ndim` coordinates where an input says how many.
    fn matrix(&self, sample: &SampleInputs<'_>, ndim: Option<usize>) -> Result<Affine>;
}

struct Transform<G> {
    generator: G,
    reverse_order: bool,
    matrices: Vec<Option<Affine>>,
}

fn build<G: Generator + 'static>(generator: G, args: &Args) -> Result<Box<dyn Operator>> {
    let reverse_order = args.bool("reverse_order")?;
    Ok(Box::new(Transform { generator, reverse_order, matrices: Vec::new() }))
}

impl<G: Generator> Operator for Transform<G> {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![match inputs {
            [input] => ValueType { layout: Some(layout()), ..input.clone() },
            _ => ValueType::ranked(DType::F32, 2, layout()),
        }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let has_input = !inputs.is_empty();
        self.matrices = inputs.map(|sample| {
            let ndim = if has_input { Some(ndim_of(&sample.input(0)?)?) } else { None };
            let matrix = self.generator.matrix(&sample, ndim)?;
            if let Some(ndim) = ndim.filter(|&ndim| ndim != matrix.ndim) {
                return Err(Error::invalid(format!(
                    "the input is for {ndim} dimensions, the arguments are for {}",
                    matrix.ndim
                )));
            }
            Ok(Some(matrix))
        });
        let shapes = self.matrices.iter().map(|matrix| {
            let ndim = matrix.as_ref().map(|matrix| matrix.ndim);
            Shape::from(ndim.map_or([0, 0], |ndim| [ndim, ndim + 1]))
        });
        Ok(vec![BatchDesc::new(DType::F32, layout(), shapes.collect())])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (matrices, reverse_order) = (&self.matrices, self.reverse_order);
        let has_input = !io.inputs().is_empty();
        io.for_each_sample(cx, |sample| {
            let matrix = matrices.get(sample.index()).and_then(Option::as_ref);
            let matrix = matrix.ok_or_else(|| Error::internal("a live sample has no matrix"))?;
            let result = if has_input {
                let input = Affine::read(&sample.input(0)?)?;
                if reverse_order { input.after(matrix) } else { matrix.after(&input) }
            } else {
                matrix.clone()
            };
            sample.output(0)?.as_slice_mut::<f32>()?.copy_from_slice(&result.elements);
            Ok(())
        })
    }
}

/// Radians of an angle in degrees, as DALI rounds them.
pub(in crate::ops) fn radians(degrees: f32) -> f32 {
    degrees * (std::f64::consts::PI / 180.0) as f32
}

/// A rotation by `angle` radians around `axis`.
///
/// # Errors
/// When the axis has no direction.
pub(in crate::ops) fn rotation_3d(axis: [f32; 3], angle: f32) -> Result<[[f32; 3]; 3]> {
    let length = (axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]).sqrt();
    if !(length > 0.0 && length.is_finite()) {
        return Err(Error::invalid(format!(
            "argument `axis` is {axis:?}, expected a vector with a direction"
        )));
    }
    if angle == 0.0 {
        return Ok([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    }
    let (s, c) = angle.sin_cos();
    let [u, v, w] = axis.map(|x| x / length);
    let [uu, vv, ww, uv, uw, vw] = [u * u, v * v, w * w, u * v, u * w, v * w];
    Ok([
        [uu + (vv + ww) * c, uv * (1.0 - c) - w * s, uw * (1.0 - c) + v * s],
        [uv * (1.0 - c) + w * s, vv + (uu + ww) * c, vw * (1.0 - c) - u * s],
        [uw * (1.0 - c) - v * s, vw * (1.0 - c) + u * s, ww + (uu + vv) * c],
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn what_is_no_matrix_fails_its_sample() {
        let offset = args(&[("offset", Value::Floats(vec![1.0, 2.0]))], &[]);
        let bad: &[f32] = &[0.0; 9];
        let good = &[1.0, 0.0, 5.0, 0.0, 1.0, 6.0];
        let input = batch::<f32>(&[(&[3, 3], bad), (&[2, 3], good), (&[1, 2], &[1.0, 0.0])]);
        let outcome = run(&translation::DEF, &offset, &[input], &[]).unwrap();
        assert!(outcome.error(0).contains("a column more than rows"));
        assert_eq!(outcome.values::<f32>(1), [1.0, 0.0, 6.0, 0.0, 1.0, 8.0]);
        assert!(outcome.error(2).contains("for 1 dimensions"));
    }

    #[test]
    fn an_axis_needs_a_direction() {
        assert!(rotation_3d([0.0; 3], 1.0).is_err());
        assert!(rotation_3d([f32::NAN, 0.0, 1.0], 1.0).is_err());
    }
}
