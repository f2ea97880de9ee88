//! Resizing of images on the CPU with the float32 arithmetic of DALI's CPU `Resize`: float results agree bit for bit
//! for every filter that needs no transcendental function. It must not know operators, layouts other than rows of
//! pixels, or how an output size is computed.
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

mod effort;
mod filter;
mod four;
mod horizontal;
mod run;
mod store;
mod stream;
mod vertical;
mod volume;

pub use effort::{effort, volume_effort};
pub use filter::{AxisParameters, Filter, FilterSpec, WindowShape};
pub use run::Scratch;
pub use store::Output;
pub use stream::Stream;
pub use volume::{VolumePlan, volume_parameters};

use filter::{Axis, Window, check_taps};
use store::Segments;

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
    /// First source coordinate that each axis counts from; the first pass's counts from 0.
    origin: [usize; 2],
    segments: Segments,
}

impl Plan {
    /// Plans a resize of `image` [H, W] pixels with `channels` elements each to `output` [H, W] pixels. `roi` is the
    /// source region in pixels, (start, end) for H and W: it may lie outside of the image, whose edge is then repeated,
    /// and `end < start` flips. Pixels outside of the region but inside of the image take part.
    ///
    /// # Errors
    /// When an extent is zero or larger than [`limits::MAX_SAMPLE_BYTES`], the region is not finite, or the filters
    /// need more than [`limits::MAX_FILTER_TAPS`] weights an axis or more than `MAX_SAMPLE_BYTES` of scratch memory.
    pub fn new(
        image: [usize; 2],
        channels: usize,
        output: [usize; 2],
        roi: [(f32, f32); 2],
        filters: [FilterSpec; 2],
    ) -> Result<Self> {
        check(image, channels, output, roi, filters)?;
        let Passes { windows, order, spans } = Passes::new(image, output, roi, filters);
        let axis = |d: usize| {
            let (origin, end) = spans[d];
            let scale = (roi[d].1 - roi[d].0) / output[d] as f32;
            Axis::new(windows[d].as_ref(), end - origin, output[d], roi[d].0 - origin as f32, scale, d == Y)
        };
        // Without a filter nothing is done in passes, but coordinates are counted as if it were: sums round as DALI's
        // do.
        let order = if windows.iter().all(Option::is_none) { Order::Nearest } else { order };
        let origin = spans.map(|(origin, _)| origin);
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

    /// Rows that the horizontal pass takes at once, where it is the first one.
    fn rows_at_once(&self) -> usize {
        rows_at_once(self.order, self.channels, self.axes[Y].length)
    }

    /// Rows that the vertical pass looks at together, no more than it has, and those that are made with them.
    fn ring_slots(&self) -> usize {
        ring_slots(self.axes[Y].taps, self.axes[Y].length, self.rows_at_once())
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

/// What a resize is made of before any weight is.
struct Passes {
    windows: [Option<Window>; 2],
    order: Order,
    /// Of each axis the source pixels that it is counted in: of the second pass only those that it can reach.
    spans: [(usize, usize); 2],
}

impl Passes {
    fn new(image: [usize; 2], output: [usize; 2], roi: [(f32, f32); 2], filters: [FilterSpec; 2]) -> Self {
        let windows = [Y, X].map(|d| Window::new(filters[d], (roi[d].1 - roi[d].0).abs(), output[d]));
        let reach = [Y, X].map(|d| footprint(windows[d].as_ref(), roi[d], image[d]));
        let order = cheaper_order(&windows, reach.map(|(low, high)| high - low), output);
        let second = if order == Order::HorizontalFirst { Y } else { X };
        Self { windows, order, spans: [Y, X].map(|d| if d == second { reach[d] } else { (0, image[d]) }) }
    }
}

/// Rows that a horizontal pass takes at once of images with so many rows that are needed.
fn rows_at_once(order: Order, channels: usize, length: usize) -> usize {
    if order == Order::HorizontalFirst && length > 1 && four::is_faster(channels) { four::ROWS } else { 1 }
}

/// Slots for rows that come in groups of so many, of which `taps` that follow one another are needed together.
fn ring_slots(taps: usize, length: usize, group: usize) -> usize {
    let groups = (taps.min(length) + group - 2) / group + 1;
    groups.min(length.div_ceil(group)) * group
}

/// What a device needs to know of rows and columns to resize as [`Plan::new`] with the same arguments.
pub fn axis_parameters(
    image: [usize; 2],
    output: [usize; 2],
    roi: [(f32, f32); 2],
    filters: [FilterSpec; 2],
) -> [AxisParameters; 2] {
    let Passes { windows, spans, .. } = Passes::new(image, output, roi, filters);
    [Y, X].map(|d| AxisParameters::new(windows[d].as_ref(), roi[d], output[d], spans[d].0))
}

/// Whether a resize can be planned: cheap, and before any weight is made.
///
/// # Errors
/// Those of [`Plan::new`], but for the scratch memory.
pub fn check(
    image: [usize; 2],
    channels: usize,
    output: [usize; 2],
    roi: [(f32, f32); 2],
    filters: [FilterSpec; 2],
) -> Result<()> {
    for (what, [height, width]) in [("image", image), ("output", output)] {
        let elements = height.checked_mul(width).and_then(|n| n.checked_mul(channels));
        if !elements.is_some_and(|n| (1..=limits::MAX_SAMPLE_BYTES).contains(&n)) {
            return Err(Error::invalid(format!(
                "cannot resize: the {what} has {height} x {width} pixels of {channels} channels"
            )));
        }
    }
    if roi.iter().any(|(start, end)| !(end - start).is_finite()) {
        return Err(Error::invalid(format!("expected a finite region of interest to resize, found {roi:?}")));
    }
    for d in [Y, X] {
        let window = Window::new(filters[d], (roi[d].1 - roi[d].0).abs(), output[d]);
        check_taps(window.as_ref(), output[d])?;
    }
    Ok(())
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
