//! Copies a window of an N-D tensor, with or without conversion, where the window may leave the source. It must not
//! know operators, arguments or how the window came about.
//!
//! ```text
//! source 0..5      window at -2, 9 long
//!          . . 0 1 2 3 4 . .     Outside::Fill
//!          0 0 0 1 2 3 4 4 4     Border::Clamp
//!          1 0 0 1 2 3 4 4 3     Border::Reflect1001
//!          2 1 0 1 2 3 4 3 2     Border::Reflect101
//!          3 4 0 1 2 3 4 0 1     Border::Wrap
//! ```

mod fill;

pub use fill::{FillValue, fill_elements};

use crate::cpu::convert::{ConvertSat, convert_truncate};
use crate::error::{Error, Result};
use crate::tensor::Shape;

/// Which element of the source stands in for one outside of it; the pictures are above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// The nearest one.
    Clamp,
    /// Mirrored, the edge twice.
    Reflect1001,
    /// Mirrored, the edge once.
    Reflect101,
    /// From the other side.
    Wrap,
}

impl Border {
    /// Where position `at` is taken from in a dimension of `len` positions, at least one.
    fn source(self, at: i64, len: i64) -> i64 {
        match self {
            Border::Clamp => at.clamp(0, len - 1),
            Border::Wrap => at.rem_euclid(len),
            Border::Reflect1001 => {
                let at = at.rem_euclid(2 * len);
                at.min(2 * len - 1 - at)
            }
            Border::Reflect101 => {
                let period = (2 * len - 2).max(1);
                let at = at.rem_euclid(period);
                at.min(period - at)
            }
        }
    }
}

/// What a window holds where it leaves the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// What [`WindowCopy::fill`] writes.
    Fill,
    /// Elements of the source.
    Border(Border),
}

/// Neighbours in the window that are neighbours in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    dst: usize,
    src: usize,
    len: usize,
}

/// One dimension of a window and of its source.
#[derive(Debug)]
struct Axis {
    /// Position in the source of the window's first one.
    anchor: i64,
    source: usize,
    extent: usize,
    /// What lies inside of the source.
    inside: Run,
    /// What stands in for the rest; `None`: nothing is copied there.
    border: Option<Border>,
    /// Distances of neighbours in elements.
    src_stride: usize,
    dst_stride: usize,
}

impl Axis {
    /// Which positions are copied from where. Not stored: a request may ask for a wide border.
    fn runs(&self) -> impl Iterator<Item = Run> {
        let (before, after) = match self.border {
            Some(_) => (0..self.inside.dst, self.inside.dst + self.inside.len..self.extent),
            None => (0..0, 0..0),
        };
        let border = self.border.unwrap_or(Border::Clamp);
        let single = move |dst: usize| {
            let src = border.source(self.anchor.saturating_add(dst as i64), self.source as i64);
            Run { dst, src: src as usize, len: 1 }
        };
        let inside = Some(self.inside).filter(|run| run.len > 0);
        before.map(single).chain(inside).chain(after.map(single))
    }
}

/// One dimension of a copy, for those who do not copy run by run: output position `i` is source position `anchor + i`,
/// of which there are `source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Positions in the output.
    pub extent: usize,
    /// Distance of neighbours in the source, in elements.
    pub stride: i64,
    /// Source position of the first one.
    pub anchor: i64,
    /// Positions in the source.
    pub source: usize,
}

impl Span {
    /// All of a dimension.
    pub fn whole(extent: usize, stride: i64) -> Self {
        Self { extent, stride, anchor: 0, source: extent }
    }
}

/// Which elements of a dense tensor go where in a dense window: worked out once, run on tensors of one shape.
#[derive(Debug)]
pub struct WindowCopy {
    /// Outermost first; dimensions behind the last one are taken whole, as one with it. None: the whole tensor.
    axes: Vec<Axis>,
    extent: Shape,
    source_len: usize,
    window_len: usize,
    leaves_source: bool,
}

impl WindowCopy {
    /// The window of `extent` positions from `anchor` on of a tensor of shape `shape`; all three have the same length.
    ///
    /// # Errors
    /// Invalid when the window is larger than a sample may be, or when a border is wanted of a source without elements.
    pub fn new(shape: &[usize], anchor: &[i64], extent: &[usize], outside: Outside) -> Result<Self> {
        if shape.len() != anchor.len() || shape.len() != extent.len() {
            return Err(Error::internal(format!(
                "a window from {anchor:?} of {extent:?} positions in a tensor of shape {shape:?}"
            )));
        }
        let extent = Shape::new(extent);
        let source_len = Shape::new(shape).volume()?;
        let window_len = extent.volume()?;
        let mut copy = Self { axes: Vec::new(), extent, source_len, window_len, leaves_source: false };
        if window_len == 0 {
            return Ok(copy);
        }
        let (mut src_stride, mut dst_stride) = (1, 1);
        for ((&len, &anchor), &extent) in shape.iter().zip(anchor).zip(copy.extent.iter()).rev() {
            let inside = inside(len, anchor, extent);
            let leaves = inside.len < extent;
            let border = match outside {
                Outside::Border(border) if leaves => Some(border),
                _ => None,
            };
            if border.is_some() && len == 0 {
                return Err(Error::invalid(
                    "a window leaves a tensor without elements, which has no border to repeat",
                ));
            }
            copy.leaves_source |= leaves && border.is_none();
            if leaves || len != extent || !copy.axes.is_empty() {
                copy.axes.push(Axis { anchor, source: len, extent, inside, border, src_stride, dst_stride });
            }
            src_stride *= len;
            dst_stride *= extent;
        }
        copy.axes.reverse();
        Ok(copy)
    }

    /// Extents of the window.
    pub fn extent(&self) -> &Shape {
        &self.extent
    }

    /// The dimensions of the window, outermost first; those that are taken whole at the end are one.
    pub fn spans(&self) -> Vec<Span> {
        let run = self.axes.last().map_or(self.window_len, |axis| axis.src_stride);
        let axes = self.axes.iter().map(|axis| Span {
            extent: axis.extent,
            stride: axis.src_stride as i64,
            anchor: axis.anchor,
            source: axis.source,
        });
        axes.chain([Span::whole(run, 1)]).collect()
    }

    /// Writes `values` to a window that leaves its source, to be copied over: one value, or one for each position of
    /// dimension `channel`. Does nothing when every element of the window has a source.
    ///
    /// # Errors
    /// When `dst` has another size, or the number of values is neither 1 nor the extent of `channel`.
    pub fn fill<T: FillValue>(&self, dst: &mut [T], values: &[f32], channel: usize) -> Result<()> {
        if !self.leaves_source {
            return Ok(());
        }
        self.check(self.source_len, dst.len())?;
        if let [value] = values {
            dst.fill(T::fill_value(*value));
            return Ok(());
        }
        if self.extent.get(channel) != Some(&values.len()) {
            return Err(Error::internal(format!(
                "{} fill values for dimension {channel} of {}",
                values.len(),
                self.extent
            )));
        }
        // One value after the other is slow where channels are interleaved: copies of all of them, ever longer, are
        // not.
        let inner: usize = self.extent[channel + 1..].iter().product();
        let mut done = inner * values.len();
        for (part, &value) in dst.chunks_exact_mut(inner).zip(values) {
            part.fill(T::fill_value(value));
        }
        while done < dst.len() {
            let more = done.min(dst.len() - done);
            dst.copy_within(..more, done);
            done += more;
        }
        Ok(())
    }

    /// Copies what the window has of `src`, a tensor of the shape that the window was made for, to `dst`.
    ///
    /// # Errors
    /// When a slice does not have the size of its shape.
    pub fn copy<T: Copy>(&self, src: &[T], dst: &mut [T]) -> Result<()> {
        self.check(src.len(), dst.len())?;
        self.each_run(|run| dst[run.dst..][..run.len].copy_from_slice(&src[run.src..][..run.len]));
        Ok(())
    }

    /// [`WindowCopy::copy`] to another type: fractions are dropped, values out of range saturate.
    ///
    /// # Errors
    /// When a slice does not have the size of its shape.
    pub fn convert<S: ConvertSat<T>, T>(&self, src: &[S], dst: &mut [T]) -> Result<()> {
        self.check(src.len(), dst.len())?;
        self.each_run(|run| convert_truncate(&src[run.src..][..run.len], &mut dst[run.dst..][..run.len]));
        Ok(())
    }

    fn each_run(&self, mut f: impl FnMut(Run)) {
        if self.window_len > 0 && self.axes.is_empty() {
            f(Run { dst: 0, src: 0, len: self.window_len });
        }
        walk(&self.axes, 0, 0, &mut f);
    }

    fn check(&self, src: usize, dst: usize) -> Result<()> {
        if (src, dst) == (self.source_len, self.window_len) {
            return Ok(());
        }
        Err(Error::internal(format!(
            "a window of {} in {} elements is copied from {src} to {dst} elements",
            self.window_len, self.source_len
        )))
    }
}

/// Calls `f` for every run of elements below `axes`, which start at `src` and `dst`.
fn walk(axes: &[Axis], src: usize, dst: usize, f: &mut impl FnMut(Run)) {
    let Some((axis, inner)) = axes.split_first() else { return };
    for run in axis.runs() {
        let (src, dst) = (src + run.src * axis.src_stride, dst + run.dst * axis.dst_stride);
        if inner.is_empty() {
            // Dimensions behind the last axis are taken whole, so its positions are as far apart in either.
            f(Run { dst, src, len: run.len * axis.src_stride });
            continue;
        }
        for i in 0..run.len {
            walk(inner, src + i * axis.src_stride, dst + i * axis.dst_stride, f);
        }
    }
}

/// The part of a window along one dimension that lies inside of the source.
fn inside(source: usize, anchor: i64, extent: usize) -> Run {
    let (source, window) = (source as i64, extent as i64);
    let start = anchor.saturating_neg().clamp(0, window);
    let end = source.saturating_sub(anchor).clamp(start, window);
    Run { dst: start as usize, src: anchor.max(0) as usize, len: (end - start) as usize }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(shape: &[usize], anchor: &[i64], extent: &[usize], outside: Outside) -> Vec<i32> {
        let src: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
        let copy = WindowCopy::new(shape, anchor, extent, outside).unwrap();
        let mut dst = vec![-7; extent.iter().product()];
        copy.fill(&mut dst, &[-1.0], 0).unwrap();
        copy.copy(&src, &mut dst).unwrap();
        dst
    }

    #[test]
    fn borders_are_those_of_the_picture() {
        let line = |outside| cut(&[5], &[-2], &[9], outside);
        assert_eq!(line(Outside::Fill), [-1, -1, 0, 1, 2, 3, 4, -1, -1]);
        assert_eq!(line(Outside::Border(Border::Clamp)), [0, 0, 0, 1, 2, 3, 4, 4, 4]);
        assert_eq!(line(Outside::Border(Border::Reflect1001)), [1, 0, 0, 1, 2, 3, 4, 4, 3]);
        assert_eq!(line(Outside::Border(Border::Reflect101)), [2, 1, 0, 1, 2, 3, 4, 3, 2]);
        assert_eq!(line(Outside::Border(Border::Wrap)), [3, 4, 0, 1, 2, 3, 4, 0, 1]);
    }

    #[test]
    fn a_border_of_one_element_repeats_it() {
        for border in [Border::Clamp, Border::Reflect1001, Border::Reflect101, Border::Wrap] {
            assert_eq!(cut(&[1], &[-3], &[6], Outside::Border(border)), [0; 6]);
        }
    }

    #[test]
    fn dimensions_that_are_taken_whole_are_one_run() {
        let copy = WindowCopy::new(&[4, 5, 3], &[1, 0, 0], &[2, 5, 3], Outside::Fill).unwrap();
        let mut runs = Vec::new();
        copy.each_run(|run| runs.push(run));
        assert_eq!(runs, [Run { dst: 0, src: 15, len: 30 }]);
        assert_eq!(cut(&[2, 3], &[0, 0], &[2, 3], Outside::Fill), [0, 1, 2, 3, 4, 5]);
        assert_eq!(cut(&[], &[], &[], Outside::Fill), [0]);
    }

    #[test]
    fn windows_leave_the_source_on_every_side() {
        assert_eq!(cut(&[2, 2], &[-1, 1], &[3, 2], Outside::Fill), [-1, -1, 1, -1, 3, -1]);
        assert_eq!(cut(&[2, 2], &[2, 0], &[1, 2], Outside::Fill), [-1, -1]);
        assert_eq!(cut(&[2, 2], &[i64::MIN, i64::MAX], &[1, 2], Outside::Fill), [-1, -1]);
        assert_eq!(cut(&[0, 2], &[0, 0], &[1, 1], Outside::Fill), [-1]);
        assert!(cut(&[2, 2], &[0, 0], &[0, 2], Outside::Fill).is_empty());
    }

    proptest! {
        #[test]
        fn every_element_comes_from_its_place(
            dims in prop::collection::vec((1usize..5, -7i64..7, 0usize..9), 0..4),
            outside in prop::sample::select(vec![
                Outside::Fill,
                Outside::Border(Border::Clamp),
                Outside::Border(Border::Reflect1001),
                Outside::Border(Border::Reflect101),
                Outside::Border(Border::Wrap),
            ]),
        ) {
            let shape: Vec<usize> = dims.iter().map(|d| d.0).collect();
            let anchor: Vec<i64> = dims.iter().map(|d| d.1).collect();
            let extent: Vec<usize> = dims.iter().map(|d| d.2).collect();
            let expected = (0..extent.iter().product::<usize>()).map(|mut i| {
                let (mut at, mut stride) = (0, 1);
                for &(len, anchor, extent) in dims.iter().rev() {
                    let place = anchor + (i % extent) as i64;
                    let place = match outside {
                        Outside::Border(border) => border.source(place, len as i64),
                        Outside::Fill if (0..len as i64).contains(&place) => place,
                        Outside::Fill => return -1,
                    };
                    (at, stride, i) = (at + place as i32 * stride, stride * len as i32, i / extent);
                }
                at
            });
            prop_assert_eq!(cut(&shape, &anchor, &extent, outside), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_wide_border_takes_no_memory() {
        let border = Outside::Border(Border::Wrap);
        assert!(WindowCopy::new(&[1], &[0], &[1 << 31], border).is_ok());
    }

    #[test]
    fn what_cannot_be_cut_is_an_error() {
        let border = Outside::Border(Border::Wrap);
        assert!(WindowCopy::new(&[0, 2], &[0, 0], &[1, 1], border).is_err());
        assert!(WindowCopy::new(&[2, 2], &[0, 0], &[usize::MAX, 2], Outside::Fill).is_err());
        let copy = WindowCopy::new(&[4], &[1], &[2], Outside::Fill).unwrap();
        assert!(copy.copy(&[0u8; 4], &mut [0; 3]).is_err());
        assert!(copy.copy(&[0u8; 3], &mut [0; 2]).is_err());
    }

    #[test]
    fn channels_have_fill_values_of_their_own() {
        let copy = WindowCopy::new(&[2, 1, 1], &[0, -1, 0], &[2, 2, 1], Outside::Fill).unwrap();
        let mut dst = [0u8; 4];
        copy.fill(&mut dst, &[7.0, 8.0], 0).unwrap();
        copy.copy(&[1, 2], &mut dst).unwrap();
        assert_eq!(dst, [7, 1, 8, 2]);
        assert!(copy.fill(&mut dst, &[7.0, 8.0, 9.0], 0).is_err());
        assert!(copy.fill(&mut dst, &[7.0, 8.0], 5).is_err());
    }
}
