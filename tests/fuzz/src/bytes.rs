//! Choices out of bytes: the first decide the most, and when there are no more, everything is zero.

/// Bytes that are used up.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether there are no more.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    /// A number below `end`, or 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// Whether something shall be that is once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).copied()
    }

    /// Small, round, at an edge of its type, or any.
    pub(crate) fn int(&mut self) -> i64 {
        const EDGES: [i64; 12] = [
            i64::MIN,
            i32::MIN as i64 - 1,
            i32::MIN as i64,
            -1_000_000,
            255,
            65_536,
            1_000_000,
            i32::MAX as i64,
            i32::MAX as i64 + 1,
            u32::MAX as i64,
            i64::MAX - 1,
            i64::MAX,
        ];
        match self.byte() {
            kind @ 0..=127 => i64::from(kind % 32) - 8,
            128..=191 => i64::from(i16::from_le_bytes([self.byte(), self.byte()])),
            kind => EDGES[usize::from(kind) % EDGES.len()],
        }
    }

    /// Likewise.
    pub(crate) fn float(&mut self) -> f32 {
        const EDGES: [f32; 10] = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            -0.0,
            1e9,
            -1e9,
            1e-9,
        ];
        match self.byte() {
            kind @ 0..=127 => (f32::from(kind) - 32.0) / 16.0,
            128..=191 => f32::from(i16::from_le_bytes([self.byte(), self.byte()])),
            kind => EDGES[usize::from(kind) % EDGES.len()],
        }
    }

    /// The next bytes, fewer if there are not so many.
    pub(crate) fn some(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}
