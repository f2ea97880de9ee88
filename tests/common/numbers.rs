//! Numbers that look random and are the same every time.

/// A linear congruential generator, with Knuth's factors.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// From 0 to below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}
