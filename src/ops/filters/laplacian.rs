//! `Laplacian`: the sum of second derivatives along the dimensions, each smoothed along the others.

use super::separable::{self, Job, Term, Weights};
use super::spatial::{Spatial, per_axis};
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, InputSet, OpDef, Operator, SampleInputs, one_output};
use crate::tensor::Device;

/// Largest window: from there on float32 does not hold its weights.
const MAX_WINDOW: i64 = 31;

struct Laplacian {
    window_size: Arg,
    /// The window size when it is not given.
    smoothing_size: Option<Arg>,
    scale: Arg,
    is_normalized: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Laplacian",
    doc: "The sum of second derivatives along one to three dimensions",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("window_size", "elements of a derivative's window, odd, one or per dimension")
            .tensor()
            .per_frame()
            .or_ints(&[3]),
        ArgSpec::ints("smoothing_size", "elements of the windows across it")
            .tensor()
            .per_frame()
            .or_computed("the window's"),
        ArgSpec::floats("scale", "factor of the derivatives, one or per dimension")
            .tensor()
            .per_frame()
            .or_floats(&[1.0]),
        ArgSpec::bool("normalized_kernel", "whether the windows' sums are scaled to 1").or_bool(false),
        ArgSpec::dtype("dtype", "element type of the output: float32 or the input's")
            .or_computed("the input's"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::separable::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let is_normalized = args.bool("normalized_kernel")?;
    if is_normalized && args.has("scale") {
        return Err(Error::invalid("arguments `scale` and `normalized_kernel` are both given, expected one"));
    }
    let weights = Laplacian {
        window_size: args.arg("window_size")?,
        smoothing_size: args.given_arg("smoothing_size")?,
        scale: args.arg("scale")?,
        is_normalized,
    };
    separable::operator(weights, args)
}

/// Sizes of windows, each odd and at least `least`.
fn sizes(name: &str, values: &[i64], axes: usize, least: i64) -> Result<Vec<usize>> {
    let values = per_axis(name, values, axes)?;
    match values.iter().find(|size| !(least..=MAX_WINDOW).contains(*size) || *size % 2 == 0) {
        None => Ok(values.iter().map(|&size| size as usize).collect()),
        Some(size) => Err(Error::invalid(format!(
            "argument `{name}` holds {size}, expected odd sizes from {least} to {MAX_WINDOW}"
        ))),
    }
}

/// `window` convolved with 1 and `second`.
fn spread(window: &[f32], second: f32) -> Vec<f32> {
    let padded = |i: usize| window.get(i).copied().unwrap_or_default();
    (0..=window.len()).map(|i| padded(i) * second + if i > 0 { padded(i - 1) } else { 0.0 }).collect()
}

/// The binomial coefficients: `size` of them.
fn smoothing(size: usize) -> Vec<f32> {
    (1..size).fold(vec![1.0], |window, _| spread(&window, 1.0))
}

/// The second difference of a smoothing window, `size` elements in all.
fn derivative(size: usize) -> Vec<f32> {
    spread(&spread(&smoothing(size - 2), -1.0), -1.0)
}

impl Weights for Laplacian {
    const TERM_FOR_EACH: bool = true;

    fn job(&self, sample: &SampleInputs<'_>) -> Result<Job> {
        let input = sample.input(0)?;
        let spatial = Spatial::new(input.layout, input.shape.len())?;
        let axes = spatial.axes;
        let deriving = sizes("window_size", &self.window_size.ints(sample)?, axes, 3)?;
        let across = match &self.smoothing_size {
            Some(size) => Some(sizes("smoothing_size", &size.ints(sample)?, axes, 1)?),
            None => None,
        };
        let scale = per_axis("scale", &self.scale.floats(sample)?, axes)?;
        let terms = (0..axes).map(|i| {
            let size = |j: usize| match &across {
                Some(across) if i != j => across[j],
                Some(_) => deriving[i],
                None => deriving[i],
            };
            let windows: Vec<Vec<f32>> =
                (0..axes).map(|j| if i == j { derivative(size(j)) } else { smoothing(size(j)) }).collect();
            let total: usize = (0..axes).map(size).sum();
            let normal = (-(total as f32 - axes as f32 - 2.0)).exp2();
            Term { windows, scale: if self.is_normalized { normal } else { scale[i] } }
        });
        Job::new(&input, spatial, terms.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_opencv() {
        assert_eq!(smoothing(1), [1.0]);
        assert_eq!(smoothing(5), [1.0, 4.0, 6.0, 4.0, 1.0]);
        assert_eq!(derivative(3), [1.0, -2.0, 1.0]);
        assert_eq!(derivative(5), [1.0, 0.0, -2.0, 0.0, 1.0]);
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for size in [0, 1, 4, 33, -3, i64::MAX] {
            assert!(sizes("window_size", &[size], 2, 3).is_err(), "{size}");
        }
        assert!(sizes("window_size", &[3, 3, 3], 2, 3).is_err());
    }
}
