//! What there is to know of a macroblock before its coefficients. It must not know how that is written.

/// How a block of luma or chroma, or one of 4x4 samples, follows from those around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    Dc,
    Vertical,
    Horizontal,
    TrueMotion,
}

/// How a block of 4x4 samples follows from those around it: as the larger ones, or along a line down to the left, down
/// to the right, and between these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum BlockMode {
    #[default]
    Dc,
    TrueMotion,
    Vertical,
    Horizontal,
    LeftDown,
    RightDown,
    VerticalRight,
    VerticalLeft,
    HorizontalDown,
    HorizontalUp,
}

/// The frame that a macroblock is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Reference {
    /// The one that it is in.
    #[default]
    Own,
    Last,
    Golden,
    Alternative,
}

/// How the luma of a macroblock is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luma {
    Whole(Mode),
    /// Each block of 4x4 by itself.
    Blocks,
    /// By the vector zero, by another one, by one for each quarter, by one for each block.
    Still,
    Moved,
    Quarters,
    Sixteenths,
}

impl Luma {
    /// Whether the means of the blocks are a block of their own.
    pub(super) fn has_second(self) -> bool {
        matches!(self, Self::Whole(_) | Self::Still | Self::Moved)
    }

    pub(super) fn is_split(self) -> bool {
        matches!(self, Self::Quarters | Self::Sixteenths)
    }
}

/// What is said of a macroblock before its coefficients.
#[derive(Debug, Clone, Copy)]
pub(super) struct Macroblock {
    pub(super) segment: usize,
    /// Whether it has no coefficients.
    pub(super) is_empty: bool,
    pub(super) reference: Reference,
    pub(super) luma: Luma,
    pub(super) chroma: Mode,
    pub(super) blocks: [BlockMode; 16],
    /// Of its blocks; zero where it is not predicted by vectors.
    pub(super) vectors: [Vector; 16],
}

impl Default for Macroblock {
    /// What stands for those beside the picture.
    fn default() -> Self {
        Self {
            segment: 0,
            is_empty: false,
            reference: Reference::Own,
            luma: Luma::Whole(Mode::Dc),
            chroma: Mode::Dc,
            blocks: [BlockMode::Dc; 16],
            vectors: [Vector::default(); 16],
        }
    }
}

/// Where a macroblock stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct MacroblockPosition {
    pub(super) column: usize,
    pub(super) row: usize,
    /// Columns and rows of macroblocks in the frame.
    pub(super) of: [usize; 2],
}

/// How far a prediction is moved, in quarters of a sample of luma.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Vector {
    pub(super) x: i32,
    pub(super) y: i32,
}

/// The macroblocks around the one at hand.
pub(super) struct Neighbours<'a> {
    pub(super) above: &'a Macroblock,
    pub(super) left: &'a Macroblock,
    pub(super) above_left: &'a Macroblock,
}

impl Macroblock {
    /// The vector that stands for all of its blocks.
    pub(super) fn vector(&self) -> Vector {
        self.vectors[15]
    }
}
