//! What an image, or a band of it, is drawn with: its samples, and the rows that are made of them. It must not know
//! coefficients.

use super::Kind;
use super::layout::Layout;
use super::planes::{self, Plane};
use super::rows::Rows;
use super::scratch::Scratch;
use super::vector::Vectors;
use crate::cpu::decode::RowSink;

/// Samples and rows of what a layout's window shows.
pub(super) struct Canvas<'a> {
    pub(super) planes: Vec<Plane>,
    pub(super) rows: Rows<'a>,
}

impl<'a> Canvas<'a> {
    /// In memory that is taken out of `scratch`.
    pub(super) fn new(layout: &'a Layout, kind: Kind, vectors: Vectors, scratch: &mut Scratch) -> Self {
        let planes = planes::planes(layout, &mut scratch.planes);
        Self { planes, rows: Rows::new(layout, kind, vectors, std::mem::take(&mut scratch.lines)) }
    }

    /// Makes the rows that are complete when rows of MCUs up to `done` are. `out` has the window's size.
    pub(super) fn up_to(&mut self, done: usize, out: &mut dyn RowSink) {
        self.rows.up_to(done, &self.planes, out);
    }

    /// Gives the memory back.
    pub(super) fn keep(self, scratch: &mut Scratch) {
        planes::keep(self.planes, &mut scratch.planes);
        scratch.lines = self.rows.lines;
    }
}
