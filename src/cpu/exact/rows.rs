//! Rows of elements in memory, of which some pixels may be left out. It must not know what the elements are.

/// Rows of the same length.
pub(super) struct Rows<'a, T = u8> {
    data: &'a [T],
    /// Where the first row starts.
    start: usize,
    /// From the start of a row to that of the next.
    stride: usize,
    /// Elements of a row.
    pub(super) len: usize,
    /// Rows.
    pub(super) count: usize,
}

impl<T> Copy for Rows<'_, T> {}

impl<T> Clone for Rows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, T> Rows<'a, T> {
    /// Rows of `len` elements, at least one, without anything between them.
    pub(super) fn dense(data: &'a [T], len: usize) -> Self {
        Self { data, start: 0, stride: len, len, count: data.len() / len }
    }

    /// Row `y`.
    #[inline(always)]
    pub(super) fn row(&self, y: usize) -> &'a [T] {
        &self.data[self.start + y * self.stride..][..self.len]
    }

    /// The rows from `y` on.
    #[inline(always)]
    pub(super) fn from(&self, y: usize) -> Self {
        Self { start: self.start + y * self.stride, count: self.count - y, ..*self }
    }

    /// The rows from the first to the end, of each the elements from the first to the end.
    pub(super) fn part(&self, (y, end): (usize, usize), (x, stop): (usize, usize)) -> Self {
        Self { start: self.start + x, len: stop - x, count: end, ..*self }.from(y)
    }
}
