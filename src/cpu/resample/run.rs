//! Running a plan: the passes over rows, and the memory between them. It must not know how a plan is made.

use bytemuck::Pod;

use super::store::Output;
use super::{Order, Plan, X, Y, four, horizontal, vertical};
use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// Multiply-adds of a vertical pass between two looks at who waits: some milliseconds.
const WORK_OF_A_PIECE: usize = 1 << 24;

/// Memory that a [`Plan`] needs while it runs. Kept between runs it is allocated once; it holds no state.
#[derive(Default)]
pub struct Scratch {
    /// The source row (horizontal first) or the vertical sum (vertical first), as float.
    pub(super) line: Vec<f32>,
    /// Pixels of four source rows side by side.
    pub(super) pixels: Vec<u64>,
    /// Rows after the horizontal pass; row `r` lives in slot `r % slots`.
    pub(super) ring: Vec<f32>,
    /// Which rows the slots hold, group by group of those that are made at once.
    held: Vec<Option<usize>>,
    /// The output row.
    pub(super) row: Vec<f32>,
    /// Where each tap's row starts.
    pub(super) starts: Vec<usize>,
    /// Rows of a source that comes row by row, in slots as well.
    pub(super) source: Vec<u8>,
}

impl Scratch {
    /// Bytes that are kept for the next run: one huge image makes this large for good.
    pub fn bytes(&self) -> usize {
        let floats = self.line.capacity() + self.ring.capacity() + self.row.capacity();
        let indices = self.starts.capacity() + 2 * self.held.capacity();
        let pixels = self.pixels.capacity() * size_of::<u64>();
        floats * size_of::<f32>() + pixels + indices * size_of::<usize>() + self.source.capacity()
    }

    /// Makes room for a source of bytes that comes row by row, of which the horizontal pass sees `line` elements.
    pub(super) fn make_room(&mut self, plan: &Plan, line: usize, slots: usize) {
        let row = plan.row_len() + horizontal::SLACK;
        if plan.rows_at_once() == 1 {
            grow(&mut self.line, line + horizontal::SLACK);
        } else {
            grow(&mut self.pixels, four::room::<u8>(line / plan.channels));
        }
        grow(&mut self.row, row);
        if plan.order == Order::HorizontalFirst {
            grow(&mut self.ring, slots * row);
        }
        let bytes = slots * plan.image[X] * plan.channels;
        if self.source.len() < bytes {
            self.source.resize(bytes, 0);
        }
    }
}

impl Plan {
    /// Elements of an output row.
    pub fn row_len(&self) -> usize {
        self.output[X] * self.channels
    }

    /// [`Plan::run_watched`] as long as it takes.
    ///
    /// # Errors
    /// When a slice does not have the plan's size.
    pub fn run<S, T>(&self, src: &[S], dst: &mut [T], scratch: &mut Scratch) -> Result<()>
    where
        S: ConvertSat<f32> + ConvertSat<T> + Pod,
        T: Output,
    {
        self.run_watched(src, dst, scratch, &Watch::forever())
    }

    /// Resizes `src` to `dst`, both dense (H, W, C). An output of the input's type or `f32` is what DALI has.
    ///
    /// # Errors
    /// When a slice does not have the plan's size, or nobody waits any more.
    pub fn run_watched<S, T>(
        &self,
        src: &[S],
        dst: &mut [T],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()>
    where
        S: ConvertSat<f32> + ConvertSat<T> + Pod,
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
                watch.charge(row_len)?;
            }
            return Ok(());
        }
        self.run_rows_watched(src, scratch, watch, |_, row| {
            if let Some(dst) = rows.next() {
                self.segments.store(row, dst);
            }
        })
    }

    /// Stores an output row of [`Plan::run_rows`] with the rounding of [`Plan::run`]. Both have [`Plan::row_len`]
    /// elements; what is missing from the shorter one stays as it is.
    pub fn store_row<T: Output>(&self, row: &[f32], dst: &mut [T]) {
        self.segments.store(row, dst);
    }

    /// Resizes `src` and hands each output row, [`Plan::row_len`] floats, to `sink` with its index, in order.
    ///
    /// # Errors
    /// When `src` does not have the plan's size.
    pub fn run_rows<S: ConvertSat<f32> + Pod>(
        &self,
        src: &[S],
        scratch: &mut Scratch,
        sink: impl FnMut(usize, &[f32]),
    ) -> Result<()> {
        self.run_rows_watched(src, scratch, &Watch::forever(), sink)
    }

    fn run_rows_watched<S: ConvertSat<f32> + Pod>(
        &self,
        src: &[S],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
        sink: impl FnMut(usize, &[f32]),
    ) -> Result<()> {
        self.check_source(src.len())?;
        match self.order {
            Order::HorizontalFirst => self.horizontal_first(src, scratch, watch, sink),
            Order::VerticalFirst => self.vertical_first(src, scratch, watch, sink),
            Order::Nearest => {
                self.nearest(src, scratch, sink);
                Ok(())
            }
        }
    }

    fn horizontal_first<S: ConvertSat<f32> + Pod>(
        &self,
        src: &[S],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
        mut sink: impl FnMut(usize, &[f32]),
    ) -> Result<()> {
        let vertical = &self.axes[Y];
        let (row_len, slots, group) = (self.row_len(), self.ring_slots(), self.rows_at_once());
        let stride = row_len + horizontal::SLACK;
        grow(&mut scratch.ring, slots * stride);
        grow(&mut scratch.row, row_len);
        scratch.held.clear();
        scratch.held.resize(slots / group, None);

        for y in 0..self.output[Y] {
            scratch.starts.clear();
            for k in 0..vertical.taps {
                let source = vertical.source(y, k);
                let slot = source % slots;
                if scratch.held[slot / group] != Some(source / group) {
                    scratch.held[slot / group] = Some(source / group);
                    self.columns_of(src, source / group * group, scratch, watch)?;
                }
                scratch.starts.push(slot * stride);
            }
            let Scratch { ring, starts, row, .. } = scratch;
            weigh_rows(ring, starts, vertical.weights_of(y), &mut row[..row_len], watch)?;
            sink(y, &row[..row_len]);
        }
        Ok(())
    }

    /// The horizontal pass of the group of rows that begins with `first`.
    fn columns_of<S: ConvertSat<f32> + Pod>(
        &self,
        src: &[S],
        first: usize,
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let [vertical, horizontal] = &self.axes;
        let needed = horizontal.needed.clone();
        let len = needed.len() * self.channels;
        let row = |y: usize| {
            let start = ((y + self.origin[Y]) * self.image[X] + needed.start) * self.channels;
            &src[start..start + len]
        };
        let group = self.rows_at_once();
        if group == 1 {
            self.columns(row(first), first, scratch);
        } else {
            let last = vertical.length - 1;
            self.columns_of_four(std::array::from_fn(|i| row((first + i).min(last))), first, scratch);
        }
        watch.charge((group * self.row_len()).saturating_mul(horizontal.taps))
    }

    /// The horizontal pass of a row, of what is needed of it, into the slot of row `y`.
    pub(super) fn columns<S: ConvertSat<f32>>(&self, row: &[S], y: usize, scratch: &mut Scratch) {
        let axis = &self.axes[X];
        let stride = self.row_len() + horizontal::SLACK;
        let Scratch { line, ring, .. } = scratch;
        grow(line, row.len() + horizontal::SLACK);
        convert_slice(row, &mut line[..row.len()]);
        let dst = &mut ring[y % self.ring_slots() * stride..][..stride];
        horizontal::weigh_columns(axis, line, axis.needed.start, self.channels, dst);
    }

    /// The same for four rows, the first of which is row `y`.
    pub(super) fn columns_of_four<S: ConvertSat<f32> + Pod>(
        &self,
        rows: [&[S]; four::ROWS],
        y: usize,
        scratch: &mut Scratch,
    ) {
        let axis = &self.axes[X];
        let stride = self.row_len() + horizontal::SLACK;
        let Scratch { pixels, ring, .. } = scratch;
        let room = four::room::<S>(axis.needed.len());
        grow(pixels, room);
        let dst = &mut ring[y % self.ring_slots() * stride..][..four::ROWS * stride];
        let (pixels, begin) = (&mut pixels[..room], axis.needed.start);
        four::weigh_columns(axis, rows, begin, self.channels, pixels, (dst, stride));
    }

    fn vertical_first<S: ConvertSat<f32>>(
        &self,
        src: &[S],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
        mut sink: impl FnMut(usize, &[f32]),
    ) -> Result<()> {
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
            weigh_rows(src, starts, vertical.weights_of(y), &mut line[..line_len], watch)?;
            horizontal::weigh_columns(horizontal, line, 0, self.channels, row);
            watch.charge(row_len.saturating_mul(horizontal.taps))?;
            sink(y, &row[..row_len]);
        }
        Ok(())
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
        let row = &src[(vertical.source(y, 0) + self.origin[Y]) * width..][..width];
        let row = &row[self.origin[X] * self.channels..];
        // A constant number of channels makes a pixel one or two moves.
        match self.channels {
            1 => pick(row, &horizontal.first, 1, dst),
            3 => pick(row, &horizontal.first, 3, dst),
            channels => pick(row, &horizontal.first, channels, dst),
        }
    }

    fn check_source(&self, found: usize) -> Result<()> {
        let expected = self.image[Y] * self.image[X] * self.channels;
        if expected == found {
            return Ok(());
        }
        Err(Error::internal(format!("an image to resize has {expected} elements, its buffer has {found}")))
    }
}

/// Copies the pixels of `row` at `columns`, which lie inside of it.
#[inline(always)]
fn pick<S: ConvertSat<T>, T>(row: &[S], columns: &[i64], channels: usize, dst: &mut [T]) {
    for (to, &column) in dst.chunks_exact_mut(channels).zip(columns) {
        for (to, from) in to.iter_mut().zip(&row[column as usize * channels..][..channels]) {
            *to = from.convert_sat();
        }
    }
}

/// [`vertical::weigh_rows`] in pieces of a row, between which somebody is asked whether anybody waits.
pub(super) fn weigh_rows<S: ConvertSat<f32>>(
    src: &[S],
    starts: &mut [usize],
    weights: &[f32],
    dst: &mut [f32],
    watch: &Watch<'_>,
) -> Result<()> {
    let piece = (WORK_OF_A_PIECE / starts.len().max(1)).max(64);
    for (number, dst) in dst.chunks_mut(piece).enumerate() {
        if number > 0 {
            starts.iter_mut().for_each(|start| *start += piece);
        }
        vertical::weigh_rows(src, starts, weights, dst);
        watch.charge(dst.len().saturating_mul(starts.len()))?;
    }
    Ok(())
}

fn grow<T: Pod>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, T::zeroed());
    }
}
