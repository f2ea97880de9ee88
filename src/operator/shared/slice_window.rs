//! Windows given by start and end or by start and shape, in positions or relative to the sample: the arguments of
//! `Slice` and of decoders that slice. Shapes and numbers only.
//!
//! Both ends of a window are rounded, half away from zero, so that its extent depends on where it starts: 0.25 of 10
//! positions from 0.15 on is `[2, 4)`.

use super::axes::Axes;
use super::window::{OutOfBounds, Window, image_layout};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::args::numbers;
use crate::operator::{Arg, ArgSpec, Args, SampleInputs};
use crate::tensor::{Layout, View};

/// Arguments that place such a window.
pub(crate) const SLICE_ARGS: &[ArgSpec] = &[
    ArgSpec::ints("axes", "dimensions that the other arguments speak of, in their order; empty: all")
        .tensor()
        .or_computed("those of `axis_names`"),
    ArgSpec::layout("axis_names", "the same as letters of the layout; `WH`: x before y").or_string("WH"),
    ArgSpec::ints("start", "first position").tensor().or_computed("0"),
    ArgSpec::floats("rel_start", "first position, 1 being the sample's extent").tensor(),
    ArgSpec::ints("end", "position behind the last one").tensor().or_computed("the sample's extent"),
    ArgSpec::floats("rel_end", "position behind the last one, 1 being the sample's extent").tensor(),
    ArgSpec::ints("shape", "number of positions, in place of the end").tensor(),
    ArgSpec::floats("rel_shape", "number of positions, 1 being the sample's extent").tensor(),
    ArgSpec::bool("normalized_anchor", "whether a float anchor input is relative to the sample")
        .or_bool(true),
    ArgSpec::bool("normalized_shape", "whether a float shape input is relative to the sample").or_bool(true),
];

/// The window that [`SLICE_ARGS`], or two inputs behind the first, describe.
#[derive(Debug)]
pub(crate) struct SliceWindow {
    axes: Axes,
    ends: Ends,
}

#[derive(Debug)]
enum Ends {
    /// Inputs 1 and 2 hold anchor and shape; whether floats in them are relative.
    Inputs {
        relative: [bool; 2],
    },
    Named {
        start: Option<Coordinate>,
        stop: Option<Stop>,
    },
}

/// A coordinate or a length along every axis.
#[derive(Debug)]
struct Coordinate {
    arg: Arg,
    relative: bool,
}

#[derive(Debug)]
enum Stop {
    End(Coordinate),
    Shape(Coordinate),
}

impl SliceWindow {
    /// Reads the arguments of an operator with `inputs` inputs.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(crate) fn new(args: &Args, inputs: usize) -> Result<Self> {
        let axes = Axes::new(args, Axes::Named(Layout::from_letters(b"WH")))?;
        let start = one_of(args, "start", "rel_start")?;
        let stop = match (one_of(args, "end", "rel_end")?, one_of(args, "shape", "rel_shape")?) {
            (None, shape) => shape.filter(Coordinate::has_values).map(Stop::Shape),
            (end, None) => end.filter(Coordinate::has_values).map(Stop::End),
            _ => return Err(Error::invalid("both an end and a shape are given, expected one")),
        };
        let start = start.filter(Coordinate::has_values);
        let named = start.is_some() || stop.is_some();
        let ends = match (inputs, named) {
            (1, true) => Ends::Named { start, stop },
            (3, false) => {
                Ends::Inputs { relative: [args.bool("normalized_anchor")?, args.bool("normalized_shape")?] }
            }
            (1, false) => return Err(Error::invalid("no start, end or shape is given")),
            (3, true) => {
                return Err(Error::invalid(
                    "start, end or shape are given beside the inputs for anchor and shape, expected one kind",
                ));
            }
            _ => return Err(Error::invalid(format!("expected 1 or 3 inputs, found {inputs}"))),
        };
        Ok(Self { axes, ends })
    }

    /// The window of one sample of shape `shape`. It may leave the sample.
    ///
    /// # Errors
    /// An axis that the sample does not have, a wrong number of values, an end before its start.
    pub(crate) fn place(&self, sample: &SampleInputs<'_>, shape: &[usize], layout: Layout) -> Result<Window> {
        let axes = self.axes.of(sample, image_layout(layout, shape.len()), shape.len())?;
        let spans: Vec<(f64, f64)> = match &self.ends {
            Ends::Inputs { relative } => {
                let (anchor, size) = (sample.input(1)?, sample.input(2)?);
                let relative = [relative[0] && anchor.dtype.is_float(), relative[1] && size.dtype.is_float()];
                let (anchor, size) =
                    (input("anchor", &anchor, axes.len())?, input("shape", &size, axes.len())?);
                let spans = axes.iter().zip(anchor).zip(size);
                spans
                    .map(|((&axis, anchor), size)| span_of_inputs(anchor, size, relative, shape[axis]))
                    .collect()
            }
            Ends::Named { start, stop } => {
                let read = |coordinate: &Coordinate| coordinate.of(sample, axes.len());
                let start = start.as_ref().map(read).transpose()?.flatten();
                let stop = match stop {
                    None => None,
                    Some(Stop::End(end)) => read(end)?.map(|values| (values, false)),
                    Some(Stop::Shape(size)) => read(size)?.map(|values| (values, true)),
                };
                let ends = axes.iter().enumerate().map(|(i, &axis)| {
                    let start = start.as_ref().map(|values| values[i]);
                    let stop = stop.as_ref().map(|(values, is_shape)| (values[i], *is_shape));
                    span(start, stop, shape[axis])
                });
                ends.collect()
            }
        };
        let mut window = Window::whole(shape);
        for (&axis, (start, end)) in axes.iter().zip(spans) {
            let first = position(start)?;
            let extent = if start <= end { position(end)? - first } else { -1 };
            window.anchor[axis] = first;
            window.extent[axis] = usize::try_from(extent).map_err(|_| {
                Error::invalid(format!("a slice from {start} to {end} ends before it starts"))
            })?;
        }
        Ok(window)
    }

    /// The window's extents as far as they are the same for every sample, given those of the samples.
    ///
    /// # Errors
    /// Axes that no sample has.
    pub(crate) fn infer(
        &self,
        dims: &[Option<usize>],
        layout: Layout,
        policy: OutOfBounds,
    ) -> Result<Vec<Option<usize>>> {
        let Some(axes) = self.axes.known(image_layout(layout, dims.len()), dims.len()).transpose()? else {
            return Ok(vec![None; dims.len()]);
        };
        let mut dims = dims.to_vec();
        for (i, &axis) in axes.iter().enumerate() {
            dims[axis] = match &self.ends {
                Ends::Named { start, stop } if !policy.trims() => {
                    extent(start.as_ref(), stop.as_ref(), i, axes.len(), dims[axis], policy)
                }
                _ => None,
            };
        }
        Ok(dims)
    }
}

fn one_of(args: &Args, absolute: &'static str, relative: &'static str) -> Result<Option<Coordinate>> {
    match (args.given_arg(absolute)?, args.given_arg(relative)?) {
        (Some(_), Some(_)) => Err(Error::invalid(format!(
            "arguments `{absolute}` and `{relative}` are both given, expected one"
        ))),
        (Some(arg), None) => Ok(Some(Coordinate { arg, relative: false })),
        (None, arg) => Ok(arg.map(|arg| Coordinate { arg, relative: true })),
    }
}

/// One number of a [`Coordinate`], and whether it is relative.
type Value = (f64, bool);

impl Coordinate {
    /// As in DALI, an empty list is as none.
    fn has_values(&self) -> bool {
        !self.arg.known().is_some_and(<[f64]>::is_empty)
    }

    /// The values for `len` axes of a sample; none where its tensor is empty.
    fn of(&self, sample: &SampleInputs<'_>, len: usize) -> Result<Option<Vec<Value>>> {
        let values = self.arg.numbers(sample)?;
        if values.is_empty() { Ok(None) } else { self.spread(&values, len).map(Some) }
    }

    /// One value for each of `len` axes; a single one serves for all.
    fn spread(&self, values: &[f64], len: usize) -> Result<Vec<Value>> {
        match values {
            [value] => Ok(vec![(*value, self.relative); len]),
            values if values.len() == len => Ok(values.iter().map(|&value| (value, self.relative)).collect()),
            _ => Err(Error::invalid(format!("a slice has {} values for {len} axes", values.len()))),
        }
    }

    /// The value for axis `i` of `len`, when it is the same for every sample.
    fn known(&self, i: usize, len: usize) -> Option<Value> {
        self.spread(self.arg.known()?, len).ok()?.get(i).copied()
    }
}

/// The numbers of an input that must have one for each axis.
fn input(name: &str, view: &View<'_>, axes: usize) -> Result<Vec<f64>> {
    let values = numbers(view)?;
    if values.len() == axes {
        return Ok(values);
    }
    Err(Error::invalid(format!(
        "the {name} input has {} values, expected one for each of {axes} axes",
        values.len()
    )))
}

/// Start and end before rounding, of coordinates given by name: products are made in float32, except that a relative
/// start and a relative shape are added first. That is how DALI 2.4 rounds.
fn span(start: Option<Value>, stop: Option<(Value, bool)>, extent: usize) -> (f64, f64) {
    let scaled = |(value, relative): Value| {
        if relative { f64::from(value as f32 * extent as f32) } else { value }
    };
    let first = start.map_or(0.0, scaled);
    let end = match (stop, start) {
        (None, _) => extent as f64,
        (Some((end, false)), _) => scaled(end),
        (Some(((size, _), true)), _) if size.is_nan() || size < 0.0 => f64::NEG_INFINITY,
        (Some(((size, true), true)), Some((start, true))) => (start + size) * extent as f64,
        (Some((size, true)), _) => first + scaled(size),
    };
    (first, end)
}

/// Start and end before rounding, of anchor and shape given by inputs: all in double precision, as DALI 2.4 does.
fn span_of_inputs(anchor: f64, size: f64, relative: [bool; 2], extent: usize) -> (f64, f64) {
    let scaled = |value: f64, relative| if relative { value * extent as f64 } else { value };
    let start = scaled(anchor, relative[0]);
    let end = match relative {
        [true, true] => (anchor + size) * extent as f64,
        _ => start + scaled(size, relative[1]),
    };
    (start, end)
}

/// Rounds a coordinate, half away from zero.
fn position(value: f64) -> Result<i64> {
    if (-limits::MAX_COORDINATE..=limits::MAX_COORDINATE).contains(&value) {
        return Ok(value.round() as i64);
    }
    Err(Error::invalid(format!("a slice has coordinate {value}")))
}

/// The extent along axis `i` of `len`, when it is the same for every sample; `dim` is that of the samples.
fn extent(
    start: Option<&Coordinate>,
    stop: Option<&Stop>,
    i: usize,
    len: usize,
    dim: Option<usize>,
    policy: OutOfBounds,
) -> Option<usize> {
    let first = match start {
        Some(start) => start.known(i, len).map(Some),
        None => Some(None),
    };
    let stop = match stop {
        None => None,
        Some(Stop::End(end)) => Some((end.known(i, len)?, false)),
        Some(Stop::Shape(size)) => Some((size.known(i, len)?, true)),
    };
    // A fixed number of positions needs neither the start nor the sample, unless the start is a fraction below zero.
    if let Some(((size, false), true)) = stop
        && size.fract() == 0.0
        && (policy == OutOfBounds::Error || start.is_none_or(|start| !start.relative))
    {
        return (0.0..=limits::MAX_COORDINATE).contains(&size).then_some(size as usize);
    }
    let first = first?;
    let needs_dim =
        first.is_some_and(|(_, relative)| relative) || stop.is_none_or(|((_, relative), _)| relative);
    let dim = if needs_dim { dim? } else { 0 };
    let (start, end) = span(first, stop, dim);
    usize::try_from(position(end).ok()? - position(start).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::window::Outside;

    #[test]
    fn both_ends_are_rounded() {
        let rounded = |(start, end): (f64, f64)| (position(start).unwrap(), position(end).unwrap());
        let rel = |value: f32| (f64::from(value), true);
        assert_eq!(rounded(span(Some(rel(0.15)), Some((rel(0.25), true)), 10)), (2, 4));
        assert_eq!(rounded(span(Some(rel(0.3)), Some(((2.0, false), true)), 5)), (2, 4));
        assert_eq!(rounded(span(None, None, 7)), (0, 7));
        assert_eq!(rounded(span_of_inputs(0.25, 0.5, [true, true], 10)), (3, 8));
    }

    #[test]
    fn products_are_rounded_to_float() {
        // DALI 2.4 on these values: a product in double would end one earlier.
        assert_eq!(span(None, Some(((f64::from(0.392_857_13_f32), true), false)), 14).1.round(), 6.0);
        // But not when two relative values are added.
        let (start, size) = (f64::from(0.788_135_6_f32), f64::from(0.050_847_456_f32));
        assert_eq!(span(Some((start, true)), Some(((size, true), true)), 59), (46.5, (start + size) * 59.0));
    }

    #[test]
    fn extents_are_known_where_no_sample_can_change_them() {
        let absolute = |values: &[f64]| Some(Coordinate { arg: Arg::fixed("a", values), relative: false });
        let relative = |values: &[f64]| Some(Coordinate { arg: Arg::fixed("a", values), relative: true });
        let known = |start: Option<Coordinate>, stop: Option<Stop>, dim, policy| {
            extent(start.as_ref(), stop.as_ref(), 0, 1, dim, policy)
        };
        let (error, pad) = (OutOfBounds::Error, OutOfBounds::Outside(Outside::Fill));
        let (end, shape) =
            (|c: Option<Coordinate>| c.map(Stop::End), |c: Option<Coordinate>| c.map(Stop::Shape));
        assert_eq!(known(None, shape(absolute(&[3.0])), None, pad), Some(3));
        assert_eq!(known(relative(&[0.5]), shape(absolute(&[3.0])), None, error), Some(3));
        assert_eq!(known(relative(&[0.5]), shape(absolute(&[3.0])), None, pad), None);
        assert_eq!(known(absolute(&[1.0]), end(absolute(&[3.0])), None, error), Some(2));
        assert_eq!(known(absolute(&[1.0]), None, None, error), None);
        assert_eq!(known(absolute(&[1.0]), None, Some(5), error), Some(4));
        assert_eq!(known(relative(&[0.5]), end(relative(&[1.0])), Some(5), error), Some(2));
        assert_eq!(known(absolute(&[3.0]), end(absolute(&[1.0])), None, error), None);
    }

    #[test]
    fn coordinates_that_are_no_numbers_are_errors() {
        for value in [f64::NAN, f64::INFINITY, -1e300] {
            assert!(position(value).is_err(), "{value}");
        }
    }
}
