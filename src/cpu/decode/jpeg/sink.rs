//! Where rows of pixels go. It must not know how they are made.

use crate::cpu::decode::RowSink;

/// All of a picture, dense.
pub(super) struct Whole<'a> {
    pixels: &'a mut [u8],
    /// Bytes of a row.
    row: usize,
}

impl<'a> Whole<'a> {
    /// A picture whose rows have `row` bytes.
    pub(super) fn new(pixels: &'a mut [u8], row: usize) -> Self {
        Self { pixels, row }
    }
}

impl RowSink for Whole<'_> {
    fn size(&self) -> (usize, usize) {
        (self.pixels.len().checked_div(self.row).unwrap_or(0), self.row)
    }

    fn row(&mut self, y: usize) -> &mut [u8] {
        &mut self.pixels[y * self.row..][..self.row]
    }

    fn done(&mut self, _y: usize) {}

    fn whole(&mut self) -> Option<&mut [u8]> {
        Some(self.pixels)
    }
}
