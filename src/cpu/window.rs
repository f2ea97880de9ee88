//! Copies a window of an N-D tensor, with or without conversion, where the window may leave the source. It must not know
//! operators, arguments or how the window came about.
//!
//! ```text
//! source 0..5      window at -2, 9 long
//!          . . 0 1 2 3 4 . .     Outside::Fill
//!          0 0 0 1 2 3 4 4 4     Border::Clamp
//!          1 0 0 1 2 3 4 4 3     Border::Reflect1001
//!          2 1 0 1 2 3 4 3 2     Border::Reflect101
//!          3 4 0 1 2 3 4 0 1     Border::Wrap
//! ```

use half::f16;

use crate::cpu::convert::{ConvertSat, convert_truncate};
use crate::error::{Error, Result};
use crate::tensor::{Bool, Shape};

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

/// One dimension: its runs, and the distance of neighbours in elements.
#[derive(Debug)]
struct Axis {
    runs: Vec<Run>,
    src_stride: usize,
    dst_stride: usize,
}

/// Which elements of a dense tensor go where in a dense window: worked out once, run on tensors of one shape.
#[derive(Debug)]
pub struct WindowCopy {
    /// Outermost first. The last one is in elements: dimensions behind it that are taken whole are part of its runs.
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
            let runs = runs(len, anchor, extent, outside)?;
            copy.leaves_source |= runs.iter().map(|run| run.len).sum::<usize>() < extent;
            let whole = runs == [Run { dst: 0, src: 0, len }] && len == extent;
            if !whole || !copy.axes.is_empty() {
                copy.axes.push(Axis { runs, src_stride, dst_stride });
            }
            src_stride *= len;
            dst_stride *= extent;
        }
        match copy.axes.first_mut() {
            None => {
                let runs = vec![Run { dst: 0, src: 0, len: source_len }];
                copy.axes.push(Axis { runs, src_stride: 1, dst_stride: 1 });
            }
            Some(last) => {
                for run in &mut last.runs {
                    run.dst *= last.dst_stride;
                    run.src *= last.src_stride;
                    run.len *= last.src_stride;
                }
            }
        }
        copy.axes.reverse();
        Ok(copy)
    }

    /// Extents of the window.
    pub fn extent(&self) -> &Shape {
        &self.extent
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
        let inner = self.extent[channel + 1..].iter().product();
        for (part, &value) in dst.chunks_exact_mut(inner).zip(values.iter().cycle()) {
            part.fill(T::fill_value(value));
        }
        Ok(())
    }

    /// Copies what the window has of `src`, a tensor of the shape that the window was made for, to `dst`.
    ///
    /// # Errors
    /// When a slice does not have the size of its shape.
    pub fn copy<T: Copy>(&self, src: &[T], dst: &mut [T]) -> Result<()> {
        self.check(src.len(), dst.len())?;
        let mut copy = |run: Run| dst[run.dst..][..run.len].copy_from_slice(&src[run.src..][..run.len]);
        walk(&self.axes, 0, 0, &mut copy);
        Ok(())
    }

    /// [`WindowCopy::copy`] to another type: fractions are dropped, values out of range saturate.
    ///
    /// # Errors
    /// When a slice does not have the size of its shape.
    pub fn convert<S: ConvertSat<T>, T>(&self, src: &[S], dst: &mut [T]) -> Result<()> {
        self.check(src.len(), dst.len())?;
        let mut convert =
            |run: Run| convert_truncate(&src[run.src..][..run.len], &mut dst[run.dst..][..run.len]);
        walk(&self.axes, 0, 0, &mut convert);
        Ok(())
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
    for run in &axis.runs {
        if inner.is_empty() {
            f(Run { dst: dst + run.dst, src: src + run.src, len: run.len });
            continue;
        }
        for i in 0..run.len {
            walk(inner, src + (run.src + i) * axis.src_stride, dst + (run.dst + i) * axis.dst_stride, f);
        }
    }
}

/// The runs of one dimension, in the order of the window.
fn runs(len: usize, anchor: i64, extent: usize, outside: Outside) -> Result<Vec<Run>> {
    let (source, window) = (len as i64, extent as i64);
    let start = anchor.saturating_neg().clamp(0, window);
    let end = source.saturating_sub(anchor).clamp(start, window);
    let inside = Run { dst: start as usize, src: anchor.max(0) as usize, len: (end - start) as usize };
    let border = match outside {
        Outside::Border(border) if inside.len < extent => border,
        _ if inside.len == 0 => return Ok(Vec::new()),
        _ => return Ok(vec![inside]),
    };
    if len == 0 {
        return Err(Error::invalid(
            "a window leaves a tensor without elements, which has no border to repeat",
        ));
    }
    let mut runs: Vec<Run> = Vec::new();
    for dst in 0..extent {
        let src = border.source(anchor.saturating_add(dst as i64), source) as usize;
        match runs.last_mut() {
            Some(last) if last.src + last.len == src => last.len += 1,
            _ => runs.push(Run { dst, src, len: 1 }),
        }
    }
    Ok(runs)
}

/// An element made from a fill value as DALI makes it: by a cast of C++ on x86, where a value that an integer cannot hold
/// loses its upper bits.
pub trait FillValue: Copy {
    /// The element for `value`.
    fn fill_value(value: f32) -> Self;
}

/// The conversion instructions of x86 answer the lowest integer to NaN and to what is out of range.
fn to_i32(value: f32) -> i32 {
    if (-2_147_483_648.0..2_147_483_648.0).contains(&value) { value as i32 } else { i32::MIN }
}

fn to_i64(value: f32) -> i64 {
    const LIMIT: f32 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

fn to_u64(value: f32) -> u64 {
    const HALF: f32 = 9_223_372_036_854_775_808.0;
    if value >= HALF { to_i64(value - HALF) as u64 ^ (1 << 63) } else { to_i64(value) as u64 }
}

macro_rules! fill_values {
    ($($element:ty: |$value:ident| $cast:expr),* $(,)?) => { $(
        impl FillValue for $element {
            fn fill_value($value: f32) -> Self { $cast }
        }
    )* };
}
fill_values! {
    u8: |x| to_i32(x) as u8,
    i8: |x| to_i32(x) as i8,
    u16: |x| to_i32(x) as u16,
    i16: |x| to_i32(x) as i16,
    u32: |x| to_i64(x) as u32,
    i32: |x| to_i32(x),
    u64: |x| to_u64(x),
    i64: |x| to_i64(x),
    f16: |x| x.convert_sat(),
    f32: |x| x,
    f64: |x| f64::from(x),
    Bool: |x| Bool::new(x != 0.0),
}

#[cfg(test)]
mod tests {
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
        assert_eq!(copy.axes.len(), 1);
        assert_eq!(copy.axes[0].runs, [Run { dst: 0, src: 15, len: 30 }]);
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

    #[test]
    fn fill_values_are_cast_as_dali_does() {
        // DALI 2.4's `fn.crop` and `fn.pad` filled with these values.
        let values = [0.5, 1.7, -1.5, 300.7, f32::NAN, 70_000.0, 3e9, -3e9, 5e9, 1e19, 1e20, -1e20];
        assert_eq!(values.map(u8::fill_value), [0, 1, 255, 44, 0, 112, 0, 0, 0, 0, 0, 0]);
        assert_eq!(values.map(i8::fill_value), [0, 1, -1, 44, 0, 112, 0, 0, 0, 0, 0, 0]);
        assert_eq!(values.map(u16::fill_value), [0, 1, 65_535, 300, 0, 4_464, 0, 0, 0, 0, 0, 0]);
        assert_eq!(values.map(i32::fill_value)[3..8], [300, i32::MIN, 70_000, i32::MIN, i32::MIN]);
        assert_eq!(
            values.map(u32::fill_value),
            [0, 1, u32::MAX, 300, 0, 70_000, 3_000_000_000, 1_294_967_296, 705_032_704, 0, 0, 0]
        );
        assert_eq!(
            values.map(i64::fill_value)[7..],
            [-3_000_000_000, 5_000_000_000, i64::MIN, i64::MIN, i64::MIN]
        );
        assert_eq!(
            values.map(u64::fill_value)[4..],
            [
                1 << 63,
                70_000,
                3_000_000_000,
                18_446_744_070_709_551_616,
                5_000_000_000,
                9_999_999_980_506_447_872,
                0,
                1 << 63
            ]
        );
        assert_eq!(f16::fill_value(70_000.0), f16::INFINITY);
        assert_eq!([Bool::fill_value(0.4), Bool::fill_value(0.0)], [Bool::new(true), Bool::new(false)]);
    }
}
