//! Operands of different shapes meet as in numpy: aligned at the last dimension, an extent of 1 stands for any. What
//! shape and layout come out, and which elements of an operand belong to a stretch of the result.

use crate::error::{Error, Result};
use crate::tensor::{Layout, Shape};

/// The shape in which operands of `shapes` meet. No shapes: a scalar.
///
/// # Errors
/// Invalid when two extents differ and neither is 1.
pub(super) fn shape(shapes: &[&Shape]) -> Result<Shape> {
    let known: Vec<Vec<Option<usize>>> =
        shapes.iter().map(|shape| shape.iter().map(|&extent| Some(extent)).collect()).collect();
    let dims = dims(&known.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    // Every extent is known, since those of the operands are.
    Ok(Shape::from(dims.into_iter().flatten().collect::<Vec<_>>()))
}

/// The same for extents that may not be known yet.
///
/// # Errors
/// As [`shape`].
pub(super) fn dims(operands: &[&[Option<usize>]]) -> Result<Vec<Option<usize>>> {
    let ndim = operands.iter().map(|dims| dims.len()).max().unwrap_or_default();
    let mut result = vec![Some(1); ndim];
    for dims in operands {
        for (met, &extent) in result.iter_mut().rev().zip(dims.iter().rev()) {
            *met = match (*met, extent) {
                (Some(1), extent) => extent,
                (met, Some(1)) => met,
                (None, extent) | (extent, None) => extent,
                (Some(a), Some(b)) if a == b => Some(a),
                (Some(a), Some(b)) => {
                    return Err(Error::invalid(format!(
                        "operands of shapes {} do not fit: an extent is {a} here and {b} there",
                        describe(operands)
                    )));
                }
            };
        }
    }
    Ok(result)
}

fn describe(operands: &[&[Option<usize>]]) -> String {
    let extent = |extent: &Option<usize>| extent.map_or("?".to_owned(), |extent| extent.to_string());
    let shape =
        |dims: &&[Option<usize>]| format!("[{}]", dims.iter().map(extent).collect::<Vec<_>>().join(", "));
    operands.iter().map(shape).collect::<Vec<_>>().join(" and ")
}

/// The layout of the result of operands with `layouts`: the longest, of which the others must be the end.
///
/// # Errors
/// Invalid when they are not.
pub(super) fn layout(layouts: impl IntoIterator<Item = Layout>) -> Result<Layout> {
    let mut longest = Layout::NONE;
    for layout in layouts {
        let (long, short) = if layout.letters().len() > longest.letters().len() {
            (layout, longest)
        } else {
            (longest, layout)
        };
        if !long.letters().ends_with(short.letters()) {
            return Err(Error::invalid(format!(
                "operands have layouts `{longest}` and `{layout}`, expected equal ones or one that ends with the other"
            )));
        }
        longest = long;
    }
    Ok(longest)
}

/// Where the elements of an operand are, for the elements of the result in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Access {
    /// One element for all.
    Scalar,
    /// One for one.
    Dense,
    /// See [`Pattern`].
    Broadcast(Pattern),
}

/// Blocks of the result: in each, some neighbouring elements of the operand are repeated. Outer dimensions say where
/// the elements of a block begin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern {
    outer: Vec<Dim>,
    /// Elements of the result in a block.
    block: usize,
    /// Elements of the operand that are repeated in it.
    period: usize,
}

/// A dimension of the result: its extent, and how far apart its neighbours are in the operand; 0: they are one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Dim {
    extent: usize,
    stride: usize,
}

impl Access {
    /// How an operand of shape `operand` is read for a result of shape `result`, in which it fits.
    pub(super) fn new(operand: &Shape, result: &Shape) -> Self {
        let volume = |shape: &Shape| shape.iter().product::<usize>();
        match volume(operand) {
            1 => return Access::Scalar,
            elements if elements == volume(result) => return Access::Dense,
            _ => {}
        }
        let mut dims: Vec<Dim> = Vec::new();
        let strides = operand.strides();
        let missing = result.len().saturating_sub(operand.len());
        for (d, &extent) in result.iter().enumerate().filter(|&(_, &extent)| extent != 1) {
            let own = d.checked_sub(missing);
            let stride = own.filter(|&d| operand[d] != 1).map_or(0, |d| strides[d]);
            match dims.last_mut() {
                // Neighbours that the operand has too, or that it has neither of, are one dimension.
                Some(last) if last.stride == stride * extent && (last.stride == 0) == (stride == 0) => {
                    *last = Dim { extent: last.extent * extent, stride };
                }
                _ => dims.push(Dim { extent, stride }),
            }
        }
        let mut pattern = Pattern { outer: dims, block: 1, period: 1 };
        if let Some(own) = pattern.outer.pop_if(|last| last.stride != 0) {
            (pattern.period, pattern.block) = (own.extent, own.extent);
        }
        if let Some(repeated) = pattern.outer.pop_if(|last| last.stride == 0) {
            pattern.block *= repeated.extent;
        }
        Access::Broadcast(pattern)
    }
}

/// A dimension of a result in which several operands meet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// Positions in the result.
    pub(super) extent: usize,
    /// For every operand, the distance of neighbours in elements; 0: they are one.
    pub(super) strides: Vec<usize>,
}

/// The dimensions of `result`, which has elements, innermost first and as few as possible: neighbours that lie together
/// in every operand are one. No dimensions: a single element.
pub(super) fn axes(operands: &[&Shape], result: &Shape) -> Vec<Axis> {
    let strides: Vec<Vec<usize>> = operands.iter().map(|operand| operand.strides()).collect();
    let mut axes: Vec<Axis> = Vec::new();
    for (d, &extent) in result.iter().enumerate().rev().filter(|&(_, &extent)| extent != 1) {
        let stride = |(operand, strides): (&&Shape, &Vec<usize>)| {
            let missing = result.len().saturating_sub(operand.len());
            let own = d.checked_sub(missing).filter(|&own| operand[own] != 1);
            own.map_or(0, |own| strides[own])
        };
        let strides: Vec<usize> = operands.iter().zip(&strides).map(stride).collect();
        match axes.last_mut() {
            Some(inner) if strides.iter().zip(&inner.strides).all(|(&s, &i)| s == i * inner.extent) => {
                inner.extent *= extent;
            }
            _ => axes.push(Axis { extent, strides }),
        }
    }
    axes
}

impl Pattern {
    /// Writes to `dst` what the operand's elements `src`, of `size` bytes each, are for the elements of the result from
    /// `start` on.
    pub(super) fn gather(&self, src: &[u8], size: usize, start: usize, dst: &mut [u8]) {
        let mut at = start;
        let mut rest = dst;
        while !rest.is_empty() {
            let (block, inside) = (at / self.block, at % self.block);
            let len = (self.block - inside).min(rest.len() / size);
            let (now, later) = rest.split_at_mut(len * size);
            let own = &src[self.offset(block) * size..][..self.period * size];
            cycle(own, inside % self.period * size, now);
            rest = later;
            at += len;
        }
    }

    /// Offset in the operand of the elements of block number `block`.
    fn offset(&self, mut block: usize) -> usize {
        let mut offset = 0;
        for dim in self.outer.iter().rev() {
            offset += block % dim.extent * dim.stride;
            block /= dim.extent;
        }
        offset
    }
}

/// Fills `dst` with the bytes of `period` over and over, beginning at `phase`.
pub(super) fn cycle(period: &[u8], phase: usize, dst: &mut [u8]) {
    let (before, from) = period.split_at(phase);
    let mut filled = 0;
    for part in [from, before] {
        let len = part.len().min(dst.len() - filled);
        dst[filled..filled + len].copy_from_slice(&part[..len]);
        filled += len;
    }
    // What is there is whole periods: copy it behind itself, twice as much each time.
    while filled < dst.len() && filled > 0 {
        let len = filled.min(dst.len() - filled);
        dst.copy_within(..len, filled);
        filled += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_meet_as_in_numpy() {
        let meet = |a: &[usize], b: &[usize]| shape(&[&Shape::new(a), &Shape::new(b)]);
        assert_eq!(*meet(&[2, 3, 4], &[4]).unwrap(), [2, 3, 4]);
        assert_eq!(*meet(&[2, 1], &[1, 3]).unwrap(), [2, 3]);
        assert_eq!(*meet(&[], &[5]).unwrap(), [5]);
        assert_eq!(*meet(&[0, 2], &[1, 2]).unwrap(), [0, 2]);
        assert!(shape(&[]).unwrap().is_empty());
        let error = meet(&[2, 3], &[2]).unwrap_err().to_string();
        assert!(error.contains("[2, 3] and [2]"), "{error}");
    }

    #[test]
    fn unknown_extents_meet_what_is_certain() {
        let (unknown, three, one) = ([None], [Some(3)], [Some(1)]);
        assert_eq!(dims(&[&unknown, &three]).unwrap(), [Some(3)]);
        assert_eq!(dims(&[&one, &unknown]).unwrap(), [None]);
        assert_eq!(dims(&[&unknown, &unknown]).unwrap(), [None]);
        assert_eq!(dims(&[&[None, Some(2)], &[]]).unwrap(), [None, Some(2)]);
    }

    #[test]
    fn layouts_end_with_each_other() {
        let of = |texts: &[&str]| layout(texts.iter().map(|text| Layout::new(text).unwrap()));
        assert_eq!(of(&["HWC", "", "C"]).unwrap().as_str(), "HWC");
        assert_eq!(of(&["W", "HW", ""]).unwrap().as_str(), "HW");
        let error = of(&["HWC", "CHW"]).unwrap_err().to_string();
        assert!(error.contains("`HWC` and `CHW`"), "{error}");
        assert!(of(&["HWC", "HW"]).is_err());
    }

    /// Every pattern of own and repeated dimensions, from every start, against the definition.
    #[test]
    fn gathers_what_the_definition_says() {
        let result = Shape::from([2, 3, 4, 5]);
        let (strides, volume) = (result.strides(), 120);
        for mask in 0..15 {
            let own: Vec<usize> = (0..4).map(|d| if mask >> d & 1 == 1 { result[d] } else { 1 }).collect();
            for skipped in 0..=own.iter().take_while(|&&extent| extent == 1).count().min(3) {
                let operand = Shape::from(own[skipped..].to_vec());
                let src: Vec<u16> = (0..operand.volume().unwrap() as u16).map(|i| 300 + i).collect();
                let own_strides = operand.strides();
                let expected: Vec<u16> = (0..volume)
                    .map(|i| {
                        let index = (skipped..4).map(|d| i / strides[d] % result[d]);
                        let of_operand =
                            index.zip(operand.iter()).map(|(i, &extent)| if extent == 1 { 0 } else { i });
                        src[of_operand.zip(&own_strides).map(|(i, stride)| i * stride).sum::<usize>()]
                    })
                    .collect();
                let pattern = match Access::new(&operand, &result) {
                    Access::Broadcast(pattern) => pattern,
                    access => {
                        assert_eq!(access, Access::Scalar);
                        continue;
                    }
                };
                for start in 0..volume {
                    let len = 37.min(volume - start);
                    let mut dst = vec![0u16; len];
                    pattern.gather(bytemuck::cast_slice(&src), 2, start, bytemuck::cast_slice_mut(&mut dst));
                    assert_eq!(dst, expected[start..start + len], "{operand} from {start}");
                }
            }
        }
    }

    #[test]
    fn axes_are_joined_where_all_operands_are_whole() {
        let result = Shape::from([2, 3, 1, 4]);
        let axes = |shapes: &[&[usize]]| {
            let shapes: Vec<Shape> = shapes.iter().map(|&shape| Shape::new(shape)).collect();
            let axes = axes(&shapes.iter().collect::<Vec<_>>(), &result);
            axes.into_iter().map(|axis| (axis.extent, axis.strides)).collect::<Vec<_>>()
        };
        assert_eq!(axes(&[&[2, 3, 1, 4], &[], &[1, 1]]), [(24, vec![1, 0, 0])]);
        assert_eq!(axes(&[&[2, 3, 1, 4], &[4]]), [(4, vec![1, 1]), (6, vec![4, 0])]);
        assert_eq!(axes(&[&[2, 1, 1, 1], &[3, 1, 4]]), [(12, vec![0, 1]), (2, vec![1, 0])]);
        assert!(super::axes(&[&Shape::from([1])], &Shape::from([1, 1])).is_empty());
    }

    #[test]
    fn the_same_elements_need_no_pattern() {
        let result = Shape::from([2, 1, 3]);
        assert_eq!(Access::new(&Shape::from([2, 1, 3]), &result), Access::Dense);
        assert_eq!(Access::new(&Shape::from([1, 1]), &result), Access::Scalar);
    }
}
