//! `GaussianBlur`: every element becomes a mean of its neighbours, weighted by a Gaussian along each dimension.

use super::separable::{self, Job, Term, Weights};
use super::spatial::{Spatial, per_axis};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{Arg, ArgSpec, Args, InputSet, OpDef, Operator, SampleInputs, one_output};
use crate::tensor::Device;

struct GaussianBlur {
    sigma: Arg,
    window_size: Arg,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "GaussianBlur",
    doc: "Blurs along one to three dimensions by a Gaussian",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::floats("sigma", "standard deviation, one or per dimension; 0 follows from the window")
            .tensor()
            .per_frame()
            .or_floats(&[0.0]),
        ArgSpec::ints("window_size", "elements of the window, odd; 0 follows from `sigma`")
            .tensor()
            .per_frame()
            .or_ints(&[0]),
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
    let weights = GaussianBlur { sigma: args.arg("sigma")?, window_size: args.arg("window_size")? };
    separable::operator(weights, args)
}

/// The weights of a Gaussian; a deviation or a size of 0 follows from the other.
fn window(sigma: f32, size: f32) -> Result<Vec<f32>> {
    if !(sigma >= 0.0 && size >= 0.0) || (sigma == 0.0 && size == 0.0) {
        return Err(Error::invalid(format!(
            "`sigma` is {sigma} and `window_size` {size}, expected one of them to be positive and none negative"
        )));
    }
    let size = if size == 0.0 { 2.0 * (3.0 * sigma).ceil() + 1.0 } else { size.trunc() };
    if !(size <= limits::MAX_FILTER_WINDOW as f32 && size % 2.0 == 1.0) {
        return Err(Error::invalid(format!(
            "a window of {size} elements, expected an odd number of at most {}",
            limits::MAX_FILTER_WINDOW
        )));
    }
    let radius = size as usize / 2;
    let sigma = if sigma == 0.0 { ((radius as f64 - 1.0) * 0.3 + 0.8) as f32 } else { sigma };
    let scale = 0.5 / (sigma * sigma);
    let distances = (1..=radius).rev();
    let half: Vec<f32> = distances.map(|x| (-((x * x) as f32 * scale)).exp()).collect();
    let factor = 1.0 / (half.iter().sum::<f32>() * 2.0 + 1.0);
    let half = half.iter().map(|weight| weight * factor);
    Ok(half.clone().chain([factor]).chain(half.rev()).collect())
}

impl Weights for GaussianBlur {
    const TERM_FOR_EACH: bool = false;

    fn job(&self, sample: &SampleInputs<'_>) -> Result<Job> {
        let input = sample.input(0)?;
        let spatial = Spatial::new(input.layout, input.shape.len())?;
        let sigmas = per_axis("sigma", &self.sigma.floats(sample)?, spatial.axes)?;
        let sizes = per_axis("window_size", &self.window_size.floats(sample)?, spatial.axes)?;
        let windows = sigmas.iter().zip(&sizes).map(|(&sigma, &size)| window(sigma, size));
        let windows = windows.collect::<Result<_>>()?;
        Job::new(&input, spatial, vec![Term { windows, scale: 1.0 }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing;
    use crate::tensor::{Batch, BatchDesc, DType, Layout, Sample, Shape};

    #[test]
    fn huge_frames_of_which_there_are_none_are_an_error() {
        let shapes = vec![Shape::from([0, 1 << 40, 1 << 40, 3])];
        let desc = BatchDesc::new(DType::U8, Layout::from_letters(b"FHWC"), shapes);
        let input = Batch::new(desc, vec![Sample::Borrowed(&[])]).unwrap();
        let args = testing::args(&[("sigma", Value::Floats(vec![1.0]))], &[]);
        let done = testing::run(&DEF, &args, &[input], &[]).unwrap();
        assert!(done.error(0).contains("at most"), "{}", done.error(0));
    }

    #[test]
    fn windows_are_symmetric_and_sum_to_one() {
        for (sigma, size) in [(1.0, 0.0), (0.0, 7.0), (2.5, 5.0), (0.0, 1.0), (0.0, 3.0)] {
            let window = window(sigma, size).unwrap();
            assert!((window.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{sigma} {size}");
            assert!(window.iter().eq(window.iter().rev()));
        }
        assert_eq!(window(1.0, 0.0).unwrap().len(), 7);
    }

    #[test]
    fn impossible_windows_are_errors() {
        for (sigma, size) in [
            (0.0, 0.0),
            (-1.0, 3.0),
            (1.0, -3.0),
            (1.0, 4.0),
            (1e9, 0.0),
            (0.0, 1e9),
            (f32::NAN, 0.0),
            (1.0, f32::NAN),
        ] {
            assert!(window(sigma, size).is_err(), "{sigma} {size}");
        }
    }
}
