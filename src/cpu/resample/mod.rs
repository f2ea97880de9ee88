//! Resizing of images on the CPU with the float32 arithmetic of DALI's CPU `Resize`: float results agree bit for bit for
//! every filter that needs no transcendental function. It must not know operators, layouts other than rows of pixels, or
//! how an output size is computed.
//!
//! A [`Plan`] holds the weights of one image size; it makes the output one row at a time, so the intermediate stays in
//! the processor's cache:
//!
//! ```text
//! horizontal first   source row -> float -> columns -> ring of rows -> weighted sum of rows -> sink
//! vertical first     weighted sum of source rows -> columns -> sink
//! nearest            copy
//! ```
//!
//! The order is the cheaper one by DALI's own estimate, because it decides the last bits.

mod filter;
mod horizontal;
mod store;
mod vertical;

pub use filter::{Filter, FilterSpec};
pub use store::Output;

use filter::{Axis, Window};
use store::Segments;

use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::error::{Error, Result};
use crate::limits;

const Y: usize = 0;
const X: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    HorizontalFirst,
    VerticalFirst,
    Nearest,
}

/// How images of one size, as dense rows of pixels (H, W, C), become images of another size.
pub struct Plan {
    image: [usize; 2],
    channels: usize,
    output: [usize; 2],
    order: Order,
    axes: [Axis; 2],
    /// First source coordinate that the second pass's axis counts from.
    origin: [usize; 2],
    segments: Segments,
}

/// Memory that a [`Plan`] needs while it runs. Kept between runs it is allocated once; it holds no state.
#[derive(Default)]
pub struct Scratch {
    /// The source row (horizontal first) or the vertical sum (vertical first), as float.
    line: Vec<f32>,
    /// Rows after the horizontal pass; row `r` lives in slot `r % slots`.
    ring: Vec<f32>,
    /// Which row each slot holds.
    held: Vec<Option<usize>>,
    /// The output row.
    row: Vec<f32>,
    /// Where each tap's row starts.
    starts: Vec<usize>,
}

impl Plan {
    /// Plans a resize of `image` [H, W] pixels with `channels` elements each to `output` [H, W] pixels. `roi` is the
    /// source region in pixels, (start, end) for H and W: it may lie outside of the image, whose edge is then repeated,
    /// and `end < start` flips. Pixels outside of the region but inside of the image take part.
    ///
    /// # Errors
    /// When an extent is zero or larger than [`limits::MAX_SAMPLE_BYTES`], the region is not finite, or the filters need
    /// more than [`limits::MAX_FILTER_TAPS`] weights an axis or more than `MAX_SAMPLE_BYTES` of scratch memory.
    pub fn new(
        image: [usize; 2],
        channels: usize,
        output: [usize; 2],
        roi: [(f32, f32); 2],
        filters: [FilterSpec; 2],
    ) -> Result<Self> {
        for (what, [height, width]) in [("image", image), ("output", output)] {
            let elements = height.checked_mul(width).and_then(|n| n.checked_mul(channels));
            if !elements.is_some_and(|n| (1..=limits::MAX_SAMPLE_BYTES).contains(&n)) {
                return Err(Error::invalid(format!(
                    "cannot resize: the {what} has {height} x {width} pixels of {channels} channels"
                )));
            }
        }
        if roi.iter().any(|(start, end)| !(end - start).is_finite()) {
            return Err(Error::invalid(format!(
                "expected a finite region of interest to resize, found {roi:?}"
            )));
        }

        let scale = |d: usize| (roi[d].1 - roi[d].0) / output[d] as f32;
        let window = |d: usize| Window::new(filters[d], (roi[d].1 - roi[d].0).abs(), output[d]);
        let windows = [window(Y), window(X)];
        if windows.iter().all(Option::is_none) {
            let axis = |d: usize| Axis::new(None, image[d], output[d], roi[d].0, scale(d), d == Y);
            return Ok(Self::assemble(image, channels, output, Order::Nearest, [axis(Y)?, axis(X)?], [0, 0]));
        }

        let footprint = [Y, X].map(|d| footprint(windows[d].as_ref(), roi[d], image[d]));
        let order = cheaper_order(&windows, [Y, X].map(|d| footprint[d].1 - footprint[d].0), output);
        let second = if order == Order::HorizontalFirst { Y } else { X };
        let mut origin = [0, 0];
        origin[second] = footprint[second].0;
        let axis = |d: usize| {
            let (start, length) = match d == second {
                true => (roi[d].0 - footprint[d].0 as f32, footprint[d].1 - footprint[d].0),
                false => (roi[d].0, image[d]),
            };
            Axis::new(windows[d].as_ref(), length, output[d], start, scale(d), d == Y)
        };
        let plan = Self::assemble(image, channels, output, order, [axis(Y)?, axis(X)?], origin);
        plan.check_scratch()?;
        Ok(plan)
    }

    fn assemble(
        image: [usize; 2],
        channels: usize,
        output: [usize; 2],
        order: Order,
        axes: [Axis; 2],
        origin: [usize; 2],
    ) -> Self {
        let width = output[X];
        let segments = if order == Order::VerticalFirst {
            let regular = axes[X].regular.clone();
            let ranges = [0..regular.start, regular.start..regular.end, regular.end..width];
            Segments { ranges: ranges.map(|r| r.start * channels..r.end * channels), unit: channels }
        } else {
            Segments { ranges: [0..width * channels, 0..0, 0..0], unit: 1 }
        };
        Self { image, channels, output, order, axes, origin, segments }
    }

    /// Elements of an output row.
    pub fn row_len(&self) -> usize {
        self.output[X] * self.channels
    }

    /// Resizes `src` to `dst`, both dense (H, W, C). An output of the input's type or `f32` is what DALI has.
    ///
    /// # Errors
    /// When a slice does not have the plan's size.
    pub fn run<S, T>(&self, src: &[S], dst: &mut [T], scratch: &mut Scratch) -> Result<()>
    where
        S: ConvertSat<f32> + ConvertSat<T>,
        T: Output,
    {
        let row_len = self.row_len();
        let (expected, found) = (self.output[Y] * row_len, dst.len());
        if expected != found {
            return Err(Error::internal(format!(
                "a resized image has {expected} elements, its buffer has {found}"
            )));
        }
        let mut rows = dst.chunks_exact_mut(row_len);
        if self.order == Order::Nearest {
            self.check_source(src.len())?;
            for (y, row) in rows.enumerate() {
                self.nearest_row(src, y, row);
            }
            return Ok(());
        }
        self.run_rows(src, scratch, |_, row| {
            if let Some(dst) = rows.next() {
                self.segments.store(row, dst);
            }
        })
    }

    /// Stores an output row of [`Plan::run_rows`] with the rounding of [`Plan::run`]. Both have [`Plan::row_len`] elements;
    /// what is missing from the shorter one stays as it is.
    pub fn store_row<T: Output>(&self, row: &[f32], dst: &mut [T]) {
        self.segments.store(row, dst);
    }

    /// Resizes `src` and hands each output row, [`Plan::row_len`] floats, to `sink` with its index, in order.
    ///
    /// # Errors
    /// When `src` does not have the plan's size.
    pub fn run_rows<S: ConvertSat<f32>>(
        &self,
        src: &[S],
        scratch: &mut Scratch,
        sink: impl FnMut(usize, &[f32]),
    ) -> Result<()> {
        self.check_source(src.len())?;
        match self.order {
            Order::HorizontalFirst => self.horizontal_first(src, scratch, sink),
            Order::VerticalFirst => self.vertical_first(src, scratch, sink),
            Order::Nearest => self.nearest(src, scratch, sink),
        }
        Ok(())
    }

    fn horizontal_first<S: ConvertSat<f32>>(
        &self,
        src: &[S],
        scratch: &mut Scratch,
        mut sink: impl FnMut(usize, &[f32]),
    ) {
        let [vertical, horizontal] = &self.axes;
        let (row_len, slots) = (self.row_len(), self.ring_slots());
        let stride = row_len + horizontal::SLACK;
        let needed = horizontal.needed();
        let source_len = needed.len() * self.channels;
        let Scratch { line, ring, held, row, starts } = scratch;
        grow(line, source_len + horizontal::SLACK);
        grow(ring, slots * stride);
        grow(row, row_len);
        held.clear();
        held.resize(slots, None);

        for y in 0..self.output[Y] {
            starts.clear();
            for k in 0..vertical.taps {
                let source = vertical.source(y, k);
                let slot = source % slots;
                if held[slot] != Some(source) {
                    held[slot] = Some(source);
                    let start = ((source + self.origin[Y]) * self.image[X] + needed.start) * self.channels;
                    convert_slice(&src[start..start + source_len], &mut line[..source_len]);
                    let dst = &mut ring[slot * stride..][..stride];
                    horizontal::weigh_columns(horizontal, line, needed.start, self.channels, dst);
                }
                starts.push(slot * stride);
            }
            vertical::weigh_rows(ring, starts, vertical.weights_of(y), &mut row[..row_len]);
            sink(y, &row[..row_len]);
        }
    }

    fn vertical_first<S: ConvertSat<f32>>(
        &self,
        src: &[S],
        scratch: &mut Scratch,
        mut sink: impl FnMut(usize, &[f32]),
    ) {
        let [vertical, horizontal] = &self.axes;
        let row_len = self.row_len();
        let line_len = horizontal.length * self.channels;
        let Scratch { line, row, starts, .. } = scratch;
        grow(line, line_len + horizontal::SLACK);
        grow(row, row_len + horizontal::SLACK);
        for y in 0..self.output[Y] {
            starts.clear();
            starts.extend(
                (0..vertical.taps)
                    .map(|k| (vertical.source(y, k) * self.image[X] + self.origin[X]) * self.channels),
            );
            vertical::weigh_rows(src, starts, vertical.weights_of(y), &mut line[..line_len]);
            horizontal::weigh_columns(horizontal, line, 0, self.channels, row);
            sink(y, &row[..row_len]);
        }
    }

    fn nearest<S: ConvertSat<f32>>(
        &self,
        src: &[S],
        scratch: &mut Scratch,
        mut sink: impl FnMut(usize, &[f32]),
    ) {
        let row_len = self.row_len();
        grow(&mut scratch.row, row_len);
        for y in 0..self.output[Y] {
            self.nearest_row(src, y, &mut scratch.row[..row_len]);
            sink(y, &scratch.row[..row_len]);
        }
    }

    fn nearest_row<S: ConvertSat<T>, T>(&self, src: &[S], y: usize, dst: &mut [T]) {
        let [vertical, horizontal] = &self.axes;
        let width = self.image[X] * self.channels;
        let row = &src[vertical.source(y, 0) * width..][..width];
        for (x, to) in dst.chunks_exact_mut(self.channels).enumerate() {
            let from = &row[horizontal.source(x, 0) * self.channels..];
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.convert_sat();
            }
        }
    }

    /// Rows that the vertical pass looks at together; no more than it has.
    fn ring_slots(&self) -> usize {
        self.axes[Y].taps.min(self.axes[Y].length)
    }

    fn check_source(&self, found: usize) -> Result<()> {
        let expected = self.image[Y] * self.image[X] * self.channels;
        if expected == found {
            return Ok(());
        }
        Err(Error::internal(format!("an image to resize has {expected} elements, its buffer has {found}")))
    }

    fn check_scratch(&self) -> Result<()> {
        let rows = if self.order == Order::HorizontalFirst { self.ring_slots() } else { 1 };
        let bytes = (self.row_len() as u64 * rows as u64).saturating_mul(size_of::<f32>() as u64);
        if bytes <= limits::MAX_SAMPLE_BYTES as u64 {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "resizing needs {bytes} bytes of intermediate rows, more than the limit of {}",
            limits::MAX_SAMPLE_BYTES
        )))
    }
}

/// The part of a source axis of `length` pixels that its window can reach, at least one pixel.
fn footprint(window: Option<&Window>, (start, end): (f32, f32), length: usize) -> (usize, usize) {
    let anchor = Window::anchor(window);
    let clamp = |x: f32| (x as i64).clamp(0, length as i64) as usize;
    let low = clamp((start.min(end) - anchor).floor()).min(length - 1);
    let high = clamp((start.max(end) - anchor + Window::taps(window)).ceil());
    (low, high.max(low + 1))
}

/// DALI's choice: the order with the smaller estimated cost, horizontal first when equal.
fn cheaper_order(windows: &[Option<Window>; 2], footprint: [usize; 2], output: [usize; 2]) -> Order {
    const COST_PER_TAP: [f32; 2] = [1.0, 1.4];
    const COST_PER_OUTPUT: f32 = 3.0;
    let cost = |passes: [usize; 2]| {
        let mut extent = footprint;
        passes.iter().fold(0.0, |cost: f32, &d| {
            extent[d] = output[d];
            let volume = (extent[Y] as u64 * extent[X] as u64) as f32;
            let taps = Window::taps(windows[d].as_ref()).max(1.0);
            cost + (COST_PER_TAP[d] * taps * volume + COST_PER_OUTPUT * volume)
        })
    };
    if cost([Y, X]) < cost([X, Y]) { Order::VerticalFirst } else { Order::HorizontalFirst }
}

fn grow(buffer: &mut Vec<f32>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
}
