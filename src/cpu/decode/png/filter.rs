//! The filters of a PNG's rows: <https://www.w3.org/TR/png-3/#9Filter-types>. It must not know what they do.

/// The filters, by their numbers in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    None,
    Sub,
    Up,
    Average,
    Paeth,
}

impl Filter {
    /// The filter that the first byte of a row says; `None` where there is no such filter.
    pub(super) fn numbered(number: u8) -> Option<Self> {
        [Self::None, Self::Sub, Self::Up, Self::Average, Self::Paeth].get(usize::from(number)).copied()
    }

    /// Whether a pixel waits for the one to its left.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn waits(self) -> bool {
        !matches!(self, Self::None | Self::Up)
    }
}
