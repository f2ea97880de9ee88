//! What flow is computed, in which way. It must not know how.

/// How an engine searches: `NV_OF_PERF_LEVEL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Speed {
    /// The best flow.
    Slow = 5,
    /// Between the two.
    Medium = 10,
    /// The most frames a second.
    Fast = 20,
}

/// What flow is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How it is searched for.
    pub speed: Speed,
    /// Pixels of a block of the field along each side: 1, 2 or 4.
    pub output_grid: u32,
    /// Pixels of a block of hints along each side: 1, 2, 4 or 8, not less than those of the field; `None`: there are no
    /// hints.
    pub hint_grid: Option<u32>,
    /// Whether frames have one channel.
    pub is_gray: bool,
}
