//! The part of each array that a reader of arrays is asked for. It must not know files.

use std::ops::Range;
use std::sync::Arc;

use half::f16;

use super::{Fed, Tensor, tensors};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::operator::args::Value;
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, Shape};

/// The arguments of a region.
pub(super) const ARGS: [ArgSpec; 9] = [
    ArgSpec::ints("roi_start", "where the region begins").or_computed("at 0"),
    ArgSpec::floats("rel_roi_start", "the same in parts of the extents").or_computed("not given"),
    ArgSpec::ints("roi_end", "where the region ends").or_computed("at the end of the array"),
    ArgSpec::floats("rel_roi_end", "the same in parts of the extents").or_computed("not given"),
    ArgSpec::ints("roi_shape", "how large the region is").or_computed("not given"),
    ArgSpec::floats("rel_roi_shape", "the same in parts of the extents").or_computed("not given"),
    ArgSpec::ints("roi_axes", "the dimensions that these are of; none: all").or_ints(&[]),
    ArgSpec::string(
        "out_of_bounds_policy",
        "of a region that is not in its array: `error`, `pad` or `trim_to_shape`",
    )
    .or_string("error"),
    ArgSpec::float("fill_value", "what is put around an array that is padded").or_float(0.0),
];

/// Pairs of which one may be given.
const PAIRS: [[&str; 2]; 3] =
    [["roi_start", "rel_roi_start"], ["roi_end", "rel_roi_end"], ["roi_shape", "rel_roi_shape"]];
/// Arguments of which one may be given.
const ENDS: [&str; 4] = ["roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape"];

/// What becomes of a region that is not in its array.
#[derive(Clone, Copy, PartialEq)]
enum Policy {
    Error,
    Pad,
    Trim,
}

/// A region: values by the names of their arguments.
pub(super) struct Region {
    given: Vec<(String, Vec<f64>)>,
    axes: Vec<i64>,
    policy: Policy,
    fill: f32,
}

impl Region {
    /// What the arguments say.
    ///
    /// # Errors
    /// Invalid for those that exclude each other.
    pub(super) fn new(args: &Args) -> Result<Self> {
        let mut given = Vec::new();
        for (name, value) in args.values().filter(|(name, _)| PAIRS.as_flattened().contains(name)) {
            let values = match value {
                Value::Ints(values) => values.iter().map(|&value| value as f64).collect(),
                Value::Floats(values) => values.iter().map(|&value| f64::from(value)).collect(),
                _ => return Err(Error::invalid(format!("`{name}` has no numbers, expected some"))),
            };
            given.push((name.to_owned(), values));
        }
        let is_given = |name: &&str| given.iter().any(|(one, _)| one == name);
        for [one, other] in PAIRS {
            if is_given(&one) && is_given(&other) {
                return Err(Error::invalid(format!("`{one}` and `{other}` are mutually exclusive")));
            }
        }
        if ENDS.iter().filter(|name| is_given(name)).count() > 1 {
            return Err(Error::invalid(
                "`roi_end`, `rel_roi_end`, `roi_shape`, and `rel_roi_shape` are mutually exclusive",
            ));
        }
        let policy = match args.string("out_of_bounds_policy")? {
            "error" => Policy::Error,
            "pad" => Policy::Pad,
            "trim_to_shape" => Policy::Trim,
            other => {
                return Err(Error::invalid(format!(
                    "`out_of_bounds_policy` is `{other}`, expected `error`, `pad` or `trim_to_shape`"
                )));
            }
        };
        let axes = args.ints("roi_axes")?;
        Ok(Self { given, axes, policy, fill: args.float("fill_value")? })
    }

    /// Whether all of each array is wanted.
    pub(super) fn is_whole(&self, fed: Fed<'_>) -> bool {
        self.given.iter().chain(fed).all(|(_, values)| values.is_empty())
    }

    /// The part of an array of this shape that is wanted, in each dimension from where to where; `None`: all of it.
    ///
    /// # Errors
    /// Invalid for what is no region of it.
    pub(super) fn of(&self, shape: &Shape, fed: Fed<'_>) -> Result<Option<Part>> {
        let own = self.given.iter().filter(|(name, _)| !fed.iter().any(|(one, _)| one == name));
        let values: Vec<_> = own.chain(fed).filter(|(_, values)| !values.is_empty()).collect();
        if values.is_empty() {
            return Ok(None);
        }
        let axes = self.axes(shape.len())?;
        for (name, values) in &values {
            if ![1, axes.len()].contains(&values.len()) {
                let (found, count) = (values.len(), axes.len());
                return Err(Error::invalid(format!(
                    "`{name}` has {found} values, expected one, or one for each of {count} axes"
                )));
            }
        }
        let mut bounds: Vec<(i64, i64)> = shape.iter().map(|&extent| (0, extent as i64)).collect();
        for (k, &axis) in axes.iter().enumerate() {
            let value = |name: &str| {
                let (_, values) = values.iter().find(|(one, _)| one == name)?;
                values.get(k).or(values.first()).copied()
            };
            if let (Some(bound), Some(&extent)) = (bounds.get_mut(axis), shape.get(axis)) {
                *bound = ends(value, extent)?;
            }
        }
        let is_outside =
            bounds.iter().zip(shape.iter()).any(|(&(begin, end), &n)| begin < 0 || end > n as i64);
        if is_outside && self.policy == Policy::Error {
            return Err(Error::invalid(format!(
                "the region {bounds:?} is out of bounds of the array of shape {shape}: `out_of_bounds_policy` may be `pad` or \
                 `trim_to_shape`"
            )));
        }
        let clamped = |(&(begin, end), &n): (&(i64, i64), &usize)| {
            let begin = begin.max(0).min(n as i64);
            begin as usize..end.clamp(begin, n as i64) as usize
        };
        let inside = bounds.iter().zip(shape.iter()).map(clamped).collect();
        let padded = (is_outside && self.policy == Policy::Pad).then_some(bounds);
        Ok(Some(Part { inside, padded, fill: self.fill }))
    }

    fn axes(&self, ndim: usize) -> Result<Vec<usize>> {
        if self.axes.is_empty() {
            return Ok((0..ndim).collect());
        }
        let mut found = Vec::new();
        for &axis in &self.axes {
            let place = usize::try_from(if axis < 0 { axis.saturating_add(ndim as i64) } else { axis });
            let place = place.ok().filter(|place| *place < ndim && !found.contains(place));
            found.push(place.ok_or_else(|| {
                let axes = &self.axes;
                Error::invalid(format!(
                    "`roi_axes` is {axes:?}, expected different dimensions of an array that has {ndim}"
                ))
            })?);
        }
        Ok(found)
    }
}

/// Start and end in a dimension. Both are rounded, so that the extent depends on the start. Products are of 32 bits,
/// unless a relative shape is added to a relative start: so DALI rounds.
fn ends(value: impl Fn(&str) -> Option<f64>, extent: usize) -> Result<(i64, i64)> {
    let scaled = |value: f64| f64::from(value as f32 * extent as f32);
    let relative = value("rel_roi_start");
    let start = relative.map(scaled).or(value("roi_start")).unwrap_or(0.0);
    let (shape, part) = (value("roi_shape"), value("rel_roi_shape"));
    let end = match (value("roi_end"), value("rel_roi_end"), shape, part, relative) {
        (Some(end), ..) => end,
        (_, Some(end), ..) => scaled(end),
        (_, _, Some(shape), ..) => start + shape,
        (_, _, _, Some(part), Some(relative)) => {
            (f64::from(relative as f32) + f64::from(part as f32)) * extent as f64
        }
        (_, _, _, Some(part), None) => start + scaled(part),
        _ => extent as f64,
    };
    // What is no number is neither.
    if !(shape.or(part).unwrap_or(0.0) >= 0.0 && end >= start) {
        return Err(Error::invalid(format!(
            "end coordinates can't be before start coordinates. Got: start={start} end={end}"
        )));
    }
    // The nearest whole number, of two the one that is farther from 0.
    Ok((start.round() as i64, end.round() as i64))
}

/// A part of an array.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    /// What of the array is in it, in each dimension.
    pub(super) inside: Vec<Range<usize>>,
    /// Where it begins and ends, if there is more in it than the array has.
    padded: Option<Vec<(i64, i64)>>,
    fill: f32,
}

impl Part {
    /// The part of an array of this shape. `elements` are those of the array from number `first` on, in the order of
    /// the file; `is_fortran`: neighbours differ in the first dimension there.
    ///
    /// # Errors
    /// A part that is larger than a sample may be.
    pub(super) fn cut(
        &self,
        dtype: DType,
        shape: &Shape,
        is_fortran: bool,
        (elements, first): (&[u8], usize),
        memory: &Arc<HostPool>,
    ) -> Result<Tensor> {
        let size = dtype.size();
        let (extents, begin): (Vec<usize>, Vec<usize>) = match &self.padded {
            None => (self.inside.iter().map(ExactSizeIterator::len).collect(), vec![0; shape.len()]),
            Some(bounds) => {
                let of = |(&(begin, end), inside): (&(i64, i64), &Range<usize>)| {
                    (
                        (end - begin).max(0) as usize,
                        (inside.start as i64).saturating_sub(begin).max(0) as usize,
                    )
                };
                bounds.iter().zip(&self.inside).map(of).unzip()
            }
        };
        let made = Shape::from(extents.clone());
        let bytes = made.bytes(size)?;
        if bytes > limits::MAX_SAMPLE_BYTES {
            let most = limits::MAX_SAMPLE_BYTES;
            return Err(Error::invalid(format!("a region of {bytes} bytes, more than the limit of {most}")));
        }
        let mut buffer = memory.take(bytes)?;
        let to = buffer.bytes_mut().get_mut(..bytes).unwrap_or_default();
        if self.padded.is_some() {
            let fill = filled(dtype, self.fill);
            to.chunks_exact_mut(size).for_each(|element| element.copy_from_slice(&fill));
        }
        let (from, into) = (strides(shape, is_fortran), strides(&made, false));
        let mut counts: Vec<usize> = self.inside.iter().map(ExactSizeIterator::len).collect();
        // Neighbours of the last dimension are copied at once where they are neighbours in the file.
        let run = match counts.last_mut().filter(|count| !is_fortran && **count > 0) {
            Some(count) => std::mem::replace(count, 1) * size,
            None => size,
        };
        let source = |place: &[usize]| {
            let place = place.iter().zip(&self.inside).zip(&from);
            place.map(|((i, inside), stride)| (i + inside.start) * stride).sum::<usize>()
        };
        let target = |place: &[usize]| {
            let place = place.iter().zip(&begin).zip(&into);
            place.map(|((i, begin), stride)| (i + begin) * stride).sum::<usize>()
        };
        each(&counts, |place| {
            let read =
                source(place).checked_sub(first).and_then(|at| elements.get(at * size..at * size + run));
            let at = target(place) * size;
            if let (Some(read), Some(write)) = (read, to.get_mut(at..at + run)) {
                write.copy_from_slice(read);
            }
        });
        Ok(Tensor { shape: made, ..tensors::part(&Arc::new(buffer), 0..bytes, dtype) })
    }
}

/// Distances of elements in each dimension.
fn strides(shape: &Shape, is_fortran: bool) -> Vec<usize> {
    let mut strides = vec![0; shape.len()];
    let mut stride = 1_usize;
    let mut next = |i: usize| {
        strides[i] = stride;
        stride = stride.saturating_mul(shape[i]);
    };
    if is_fortran {
        (0..shape.len()).for_each(&mut next);
    } else {
        (0..shape.len()).rev().for_each(&mut next);
    }
    strides
}

/// Calls `work` with each place of an array of these extents, row by row.
fn each(counts: &[usize], mut work: impl FnMut(&[usize])) {
    if counts.contains(&0) {
        return;
    }
    let mut place = vec![0; counts.len()];
    loop {
        work(&place);
        let step = place.iter_mut().zip(counts).rev().find_map(|(i, &count)| {
            *i = if *i + 1 < count { *i + 1 } else { 0 };
            (*i > 0).then_some(())
        });
        if step.is_none() {
            return;
        }
    }
}

/// The bytes of an element with this value.
fn filled(dtype: DType, value: f32) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(value != 0.0)],
        DType::U8 => vec![value as u8],
        DType::I8 => (value as i8).to_le_bytes().to_vec(),
        DType::U16 => (value as u16).to_le_bytes().to_vec(),
        DType::I16 => (value as i16).to_le_bytes().to_vec(),
        DType::U32 => (value as u32).to_le_bytes().to_vec(),
        DType::I32 => (value as i32).to_le_bytes().to_vec(),
        DType::U64 => (value as u64).to_le_bytes().to_vec(),
        DType::I64 => (value as i64).to_le_bytes().to_vec(),
        DType::F16 => f16::from_f32(value).to_le_bytes().to_vec(),
        DType::F32 => value.to_le_bytes().to_vec(),
        DType::F64 => f64::from(value).to_le_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(given: &[(&str, &[f64])], axes: &[i64], policy: Policy) -> Region {
        let given = given.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect();
        Region { given, axes: axes.to_vec(), policy, fill: 9.0 }
    }

    #[test]
    fn regions_are_given_in_many_ways() {
        let shape = Shape::from([10, 7]);
        let of = |given: &[(&str, &[f64])], axes: &[i64]| region(given, axes, Policy::Error).of(&shape, &[]);
        let inside = |given: &[(&str, &[f64])], axes: &[i64]| of(given, axes).unwrap().unwrap().inside;
        assert_eq!(of(&[("roi_start", &[])], &[]).unwrap(), None);
        assert_eq!(inside(&[("roi_start", &[1.0, 2.0])], &[]), [1..10, 2..7]);
        assert_eq!(inside(&[("roi_start", &[1.0]), ("roi_shape", &[3.0])], &[-1]), [0..10, 1..4]);
        assert_eq!(inside(&[("rel_roi_start", &[0.25]), ("rel_roi_shape", &[0.5])], &[0]), [3..8, 0..7]);
        assert_eq!(inside(&[("rel_roi_end", &[0.5])], &[]), [0..5, 0..4]);
        assert_eq!(inside(&[("rel_roi_shape", &[0.5]), ("roi_start", &[2.0])], &[1]), [0..10, 2..6]);
        for (given, axes) in [
            (&[("roi_start", &[5.0][..]), ("roi_end", &[4.0])][..], &[][..]),
            (&[("roi_shape", &[-1.0])], &[]),
            (&[("roi_end", &[11.0])], &[0]),
            (&[("roi_end", &[1.0, 2.0, 3.0])], &[]),
            (&[("roi_end", &[1.0])], &[0, -2]),
            (&[("roi_end", &[1.0])], &[2]),
            (&[("rel_roi_end", &[f64::NAN])], &[]),
        ] {
            assert!(of(given, axes).is_err(), "{given:?} {axes:?}");
        }
    }

    #[test]
    fn parts_are_cut_and_padded() {
        let shape = Shape::from([2, 3]);
        let memory = Arc::default();
        let cut = |region: &Region, elements: &[u8], is_fortran| {
            let part = region.of(&shape, &[]).unwrap().unwrap();
            let made = part.cut(DType::U8, &shape, is_fortran, (elements, 0), &memory).unwrap();
            (made.shape.to_vec(), made.bytes.bytes().to_vec())
        };
        let both = [([1_u8, 2, 3, 4, 5, 6], false), ([1, 4, 2, 5, 3, 6], true)];
        for (elements, is_fortran) in both {
            let right = region(&[("roi_start", &[0.0, 1.0])], &[], Policy::Error);
            assert_eq!(cut(&right, &elements, is_fortran), (vec![2, 2], vec![2, 3, 5, 6]));
            let around = [("roi_start", &[-1.0, 2.0][..]), ("roi_end", &[1.0, 4.0])];
            assert_eq!(
                cut(&region(&around, &[], Policy::Pad), &elements, is_fortran),
                (vec![2, 2], vec![9, 9, 3, 9])
            );
            assert_eq!(
                cut(&region(&around, &[], Policy::Trim), &elements, is_fortran),
                (vec![1, 1], vec![3])
            );
        }
        let far = region(&[("roi_start", &[1e18]), ("roi_shape", &[1e18])], &[], Policy::Pad);
        let part = far.of(&shape, &[]).unwrap().unwrap();
        assert!(part.cut(DType::U8, &shape, false, (&[0; 6], 0), &memory).is_err());
    }
}
