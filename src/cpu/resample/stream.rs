//! Resizing an image whose rows come one after the other, as a decoder makes them: the image is never whole. It must
//! not know who makes rows.
//!
//! ```text
//! horizontal first   a row -> columns -> ring of rows -> weighted sum of rows -> output row
//! vertical first     ring of rows -> weighted sum of rows -> columns -> output row
//! ```

use super::filter::Axis;
use super::run::Scratch;
use super::{Order, Output, Plan, X, Y, horizontal, vertical};
use crate::error::{Error, Result};

/// Weights of an output pixel for each pixel of its axis.
const MOST_TIMES_OUTSIDE: usize = 4;

/// A resize of bytes in progress: results are those of [`Plan::run`].
pub struct Stream<'a, T> {
    plan: &'a Plan,
    scratch: &'a mut Scratch,
    dst: &'a mut [T],
    /// The next output row.
    next: usize,
}

impl Plan {
    /// Whether rows can come from the top, one by one. Not where a row takes long, of a region far beyond the image:
    /// nobody is asked between rows whether anybody waits.
    pub fn takes_rows(&self) -> bool {
        let is_far = self.axes.iter().any(|axis| axis.taps / MOST_TIMES_OUTSIDE > axis.length);
        self.order != Order::Nearest && self.axes[Y].first.is_sorted() && !is_far
    }

    /// Begins to resize an image of bytes to `dst`, dense (H, W, C), row by row, which [`Plan::takes_rows`] allows.
    ///
    /// # Errors
    /// When `dst` does not have the plan's size.
    pub fn stream<'a, T: Output>(
        &'a self,
        dst: &'a mut [T],
        scratch: &'a mut Scratch,
    ) -> Result<Stream<'a, T>> {
        let (expected, found) = (self.output[Y] * self.row_len(), dst.len());
        if expected != found || !self.takes_rows() {
            return Err(Error::internal(format!(
                "a resize by rows to {expected} elements, its buffer has {found}"
            )));
        }
        let horizontal = &self.axes[X];
        let line = match self.order {
            Order::HorizontalFirst => horizontal.needed.len(),
            _ => horizontal.length,
        };
        scratch.make_room(self, line * self.channels, self.ring_slots());
        Ok(Stream { plan: self, scratch, dst, next: 0 })
    }
}

impl<T: Output> Stream<'_, T> {
    /// Rows of the image and elements of each.
    pub fn size(&self) -> (usize, usize) {
        (self.plan.image[Y], self.plan.image[X] * self.plan.channels)
    }

    /// Where row `y` of the image goes.
    pub fn row(&mut self, y: usize) -> &mut [u8] {
        let (_, width) = self.size();
        let slot = y % self.plan.ring_slots();
        &mut self.scratch.source[slot * width..][..width]
    }

    /// Takes row `y`, before which all others came, and makes what output rows can be made with it.
    pub fn done(&mut self, y: usize) {
        let vertical = &self.plan.axes[Y];
        // The axis of the second pass counts from there.
        let Some(source) = y.checked_sub(self.plan.origin[Y]) else { return };
        if self.next == self.plan.output[Y] || source < vertical.source(self.next, 0) {
            return;
        }
        if self.plan.order == Order::HorizontalFirst {
            let group = self.plan.rows_at_once();
            // Rows wait until all of their group are there.
            if source % group != group - 1 && source + 1 < vertical.length {
                return;
            }
            self.columns_of(source / group * group, source);
        }
        while self.next < self.plan.output[Y] && vertical.source(self.next, vertical.taps - 1) <= source {
            self.make_row(vertical);
            self.next += 1;
        }
    }

    /// Whether all output rows are made.
    pub fn is_complete(&self) -> bool {
        self.next == self.plan.output[Y]
    }

    /// The horizontal pass of rows, as the vertical one counts them.
    fn columns_of(&mut self, first: usize, last: usize) {
        let plan = self.plan;
        let (_, width) = self.size();
        let needed = &plan.axes[X].needed;
        let bytes = std::mem::take(&mut self.scratch.source);
        let row = |source: usize| {
            let row = &bytes[(source + plan.origin[Y]) % plan.ring_slots() * width..][..width];
            &row[needed.start * plan.channels..needed.end * plan.channels]
        };
        if plan.rows_at_once() == 1 {
            plan.columns(row(first), first, self.scratch);
        } else {
            let rows = std::array::from_fn(|i| row((first + i).min(last)));
            plan.columns_of_four(rows, first, self.scratch);
        }
        self.scratch.source = bytes;
    }

    fn make_row(&mut self, vertical: &Axis) {
        let (plan, y) = (self.plan, self.next);
        let (_, width) = self.size();
        let (row_len, slots) = (plan.row_len(), plan.ring_slots());
        let Scratch { line, ring, row, starts, source: bytes, .. } = &mut *self.scratch;
        let slot = |k: usize| vertical.source(y, k) % slots;
        starts.clear();
        if plan.order == Order::HorizontalFirst {
            let stride = row_len + horizontal::SLACK;
            starts.extend((0..vertical.taps).map(|k| slot(k) * stride));
            vertical::weigh_rows(ring, starts, vertical.weights_of(y), &mut row[..row_len]);
        } else {
            let horizontal = &plan.axes[X];
            let columns = horizontal.length * plan.channels;
            starts.extend((0..vertical.taps).map(|k| slot(k) * width + plan.origin[X] * plan.channels));
            vertical::weigh_rows(bytes, starts, vertical.weights_of(y), &mut line[..columns]);
            horizontal::weigh_columns(horizontal, line, 0, plan.channels, row);
        }
        if let Some(dst) = self.dst.chunks_exact_mut(row_len).nth(y) {
            plan.store_row(&row[..row_len], dst);
        }
    }
}
