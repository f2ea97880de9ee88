//! The segments of a scan, against which MCUs are counted. It must not know what is in them.

use super::bits::{Bits, is_used_up};

/// Counts MCUs of a scan against its segments.
pub(super) struct Segments<'a> {
    ends: &'a [usize],
    /// MCUs of a whole segment.
    each: usize,
    /// MCUs of the scan that are left.
    all: usize,
    /// MCUs of this segment that are left.
    pub(super) left: usize,
    /// The byte that it starts at.
    pub(super) start: usize,
}

impl<'a> Segments<'a> {
    pub(super) fn new(ends: &'a [usize], restart: usize, all: usize) -> Self {
        let each = if restart == 0 { all } else { restart };
        Self { ends, each, all, left: each.min(all), start: 0 }
    }

    /// Leaves out whole segments, the last one excepted. `None`: there are not so many.
    pub(super) fn pass(&mut self, count: usize) -> Option<()> {
        if count > 0 {
            self.start = *self.ends.get(count - 1)?;
            self.ends = self.ends.get(count..)?;
            self.all = self.all.checked_sub(count.checked_mul(self.each)?)?;
            self.left = self.each.min(self.all);
        }
        Some(())
    }

    /// Some MCUs were decoded up to `bits`. Whether a new segment starts.
    pub(super) fn advance(&mut self, mcus: usize, bits: Bits) -> Option<bool> {
        self.left -= mcus;
        self.all -= mcus;
        let (&end, later) = self.ends.split_first()?;
        if self.left > 0 {
            // Beyond the end there are the next segment's bits.
            return (bits.position() <= end * 8).then_some(false);
        }
        if !is_used_up(bits, end) {
            return None;
        }
        (self.ends, self.start) = (later, end);
        self.left = self.each.min(self.all);
        Some(true)
    }

    /// Whether all MCUs were in all segments.
    pub(super) fn is_over(&self) -> bool {
        self.all == 0 && self.ends.is_empty()
    }
}
