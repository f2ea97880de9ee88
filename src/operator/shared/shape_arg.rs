//! The argument `shape` of operators that make tensors: extents that are fixed in the file, differ from sample to
//! sample, or are those of an input.

use super::majority::of_one_rank;
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{Arg, Args, Inputs, SampleInputs};
use crate::tensor::Shape;

/// Where the shape of an output comes from.
pub(crate) enum ShapeArg {
    /// The argument `shape`.
    Given(Arg),
    /// Regular input 0.
    Like,
    /// Neither: a scalar.
    Scalar,
}

impl ShapeArg {
    /// Reads `shape`. With `like`, input 0 gives the shape instead.
    ///
    /// # Errors
    /// When both do, or an extent is no extent.
    pub(crate) fn new(args: &Args, like: bool) -> Result<Self> {
        let given = args.given_arg("shape")?;
        if let Some(extents) = given.as_ref().and_then(Arg::known) {
            shape(extents)?;
        }
        match given {
            Some(_) if like => {
                Err(Error::invalid("argument `shape` and an input that gives the shape exclude each other"))
            }
            Some(given) => Ok(ShapeArg::Given(given)),
            None if like => Ok(ShapeArg::Like),
            None => Ok(ShapeArg::Scalar),
        }
    }

    /// What is known of it at load, where input 0 has the extents `like`.
    pub(crate) fn infer(&self, like: Option<&Vec<Option<usize>>>) -> Option<Vec<Option<usize>>> {
        match self {
            ShapeArg::Given(arg) => {
                arg.known().map(|all| all.iter().map(|&extent| Some(extent as usize)).collect())
            }
            ShapeArg::Like => like.cloned(),
            ShapeArg::Scalar => Some(Vec::new()),
        }
    }

    fn of(&self, sample: &SampleInputs<'_>) -> Result<Shape> {
        match self {
            ShapeArg::Given(arg) => {
                if let Some(view) = arg.tensor(sample)?
                    && view.shape.volume()? > limits::MAX_NDIM
                {
                    return Err(Error::invalid(format!("the shape is a tensor of shape {}", view.shape)));
                }
                let shape = shape(&arg.numbers(sample)?)?;
                // Requests may give it.
                shape.bytes_of_input(1)?;
                Ok(shape)
            }
            ShapeArg::Like => Ok(sample.input(0)?.shape.clone()),
            ShapeArg::Scalar => Ok(Shape::default()),
        }
    }

    /// The shapes of a batch. A sample whose rank is not that of most fails.
    pub(crate) fn shapes(&self, inputs: &Inputs<'_>) -> Vec<Shape> {
        of_one_rank(inputs, inputs.map(|sample| self.of(&sample).map(Some)))
    }
}

/// The shape with these extents.
fn shape(extents: &[f64]) -> Result<Shape> {
    if extents.len() > limits::MAX_NDIM {
        return Err(Error::invalid(format!(
            "argument `shape` has {} extents, expected at most {}",
            extents.len(),
            limits::MAX_NDIM
        )));
    }
    let extent = |&extent: &f64| {
        if (0.0..=limits::MAX_SAMPLE_BYTES as f64).contains(&extent) {
            return Ok(extent as usize);
        }
        Err(Error::invalid(format!(
            "argument `shape` has an extent of {extent}, expected 0 to {}",
            limits::MAX_SAMPLE_BYTES
        )))
    };
    Ok(Shape::from(extents.iter().map(extent).collect::<Result<Vec<_>>>()?))
}
