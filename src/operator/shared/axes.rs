//! The arguments `axes` and `axis_names`: which dimensions of a sample an operator works on.

use crate::error::{Error, Result};
use crate::operator::{Arg, Args, SampleInputs};
use crate::tensor::Layout;

/// Dimensions by number or by letter, fixed or per sample.
#[derive(Debug, Clone)]
pub(crate) enum Axes {
    /// All of them, outermost first.
    All,
    /// Those with these letters.
    Named(Layout),
    /// Numbers, negative ones from the back.
    Numbered(Arg),
}

impl Axes {
    /// Reads `axes` or `axis_names`; `default` when neither is given, [`Axes::All`] when what is given is empty.
    ///
    /// # Errors
    /// When both are given.
    pub(crate) fn new(args: &Args, default: Axes) -> Result<Self> {
        if args.has("axes") && args.has("axis_names") {
            return Err(Error::invalid("arguments `axes` and `axis_names` are both given, expected one"));
        }
        if let Some(names) = args.given_string("axis_names")? {
            return Ok(if names.is_empty() { Axes::All } else { Axes::Named(Layout::new(names)?) });
        }
        Ok(match args.given_arg("axes")? {
            Some(axes) if axes.known().is_some_and(<[f64]>::is_empty) => Axes::All,
            Some(axes) => Axes::Numbered(axes),
            None => default,
        })
    }

    /// The dimensions of one sample with `ndim` of them, in the order of the argument.
    ///
    /// # Errors
    /// A dimension that the sample does not have, or that is given twice.
    pub(crate) fn of(&self, sample: &SampleInputs<'_>, layout: Layout, ndim: usize) -> Result<Vec<usize>> {
        match self {
            Axes::Numbered(axes) => match axes.numbers(sample)?.as_slice() {
                [] => Ok((0..ndim).collect()),
                axes => numbered(axes, ndim),
            },
            Axes::All | Axes::Named(_) => self.known(layout, ndim).unwrap_or_else(|| Ok(Vec::new())),
        }
    }

    /// The dimensions when they are the same for every sample: for type inference.
    pub(crate) fn known(&self, layout: Layout, ndim: usize) -> Option<Result<Vec<usize>>> {
        match self {
            Axes::All => Some(Ok((0..ndim).collect())),
            Axes::Named(names) => Some(named(*names, layout, ndim)),
            Axes::Numbered(axes) => axes.known().map(|axes| numbered(axes, ndim)),
        }
    }
}

fn named(names: Layout, layout: Layout, ndim: usize) -> Result<Vec<usize>> {
    let axes = names.letters().iter().map(|&letter| {
        layout.find(letter).filter(|&axis| axis < ndim).ok_or_else(|| {
            Error::invalid(format!("layout `{layout}` has no dimension `{}`", char::from(letter)))
        })
    });
    distinct(axes.collect::<Result<_>>()?)
}

fn numbered(numbers: &[f64], ndim: usize) -> Result<Vec<usize>> {
    let axes = numbers.iter().map(|&number| {
        let from_front = if number < 0.0 { number + ndim as f64 } else { number };
        if (0.0..ndim as f64).contains(&from_front) {
            return Ok(from_front as usize);
        }
        Err(Error::invalid(format!("axis {number} of a sample with {ndim} dimensions")))
    });
    distinct(axes.collect::<Result<_>>()?)
}

fn distinct(axes: Vec<usize>) -> Result<Vec<usize>> {
    for (i, axis) in axes.iter().enumerate() {
        if axes[..i].contains(axis) {
            return Err(Error::invalid(format!("axis {axis} is given twice")));
        }
    }
    Ok(axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_from_either_end() {
        assert_eq!(numbered(&[-1.0, 0.0], 3).unwrap(), [2, 0]);
        for wrong in [[3.0, 0.0], [-4.0, 0.0], [0.0, -3.0], [f64::NAN, 0.0]] {
            assert!(numbered(&wrong, 3).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn letters_are_looked_up_in_the_layout() {
        let layout = Layout::hwc();
        assert_eq!(named(Layout::from_letters(b"WH"), layout, 3).unwrap(), [1, 0]);
        assert!(named(Layout::from_letters(b"F"), layout, 3).is_err());
        assert!(named(Layout::from_letters(b"HH"), layout, 3).is_err());
        assert!(named(Layout::from_letters(b"C"), layout, 2).is_err());
    }
}
