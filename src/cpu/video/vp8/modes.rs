//! How each macroblock is predicted (RFC 6386, sections 10, 11 and 16).

use super::bool_decoder::BoolDecoder;
use super::header::{Header, State};
use super::motion::{self, Neighbours, Vector};
use super::tables;

/// How a block of luma or chroma, or one of 4x4 samples, follows from those around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    Dc,
    Vertical,
    Horizontal,
    TrueMotion,
}

/// How a block of 4x4 samples follows from those around it: as the larger ones, or along a line down to the left, down to the right, and
/// between these.
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

/// In the order of the tables.
const MODES: [Mode; 4] = [Mode::Dc, Mode::Vertical, Mode::Horizontal, Mode::TrueMotion];
const BLOCK_MODES: [BlockMode; 10] = [
    BlockMode::Dc,
    BlockMode::TrueMotion,
    BlockMode::Vertical,
    BlockMode::Horizontal,
    BlockMode::LeftDown,
    BlockMode::RightDown,
    BlockMode::VerticalRight,
    BlockMode::VerticalLeft,
    BlockMode::HorizontalDown,
    BlockMode::HorizontalUp,
];

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
pub(super) struct Place {
    pub(super) column: usize,
    pub(super) row: usize,
    /// Columns and rows of macroblocks in the frame.
    pub(super) of: [usize; 2],
}

/// Reads what is said of a macroblock; `segment` is the one that it was in before.
pub(super) fn read(
    bits: &mut BoolDecoder<'_>,
    header: &Header<'_>,
    state: &State,
    is_key: bool,
    segment: usize,
    place: Place,
    neighbours: &Neighbours<'_>,
) -> Macroblock {
    let mut made = Macroblock { segment, ..Macroblock::default() };
    if state.segments.has_map {
        made.segment = bits.tree(&tables::SEGMENT_TREE, &state.segments.map);
    }
    made.is_empty = header.skip.is_some_and(|skip| bits.read(skip));
    let probabilities = &state.probabilities;
    let [own, last, golden] = header.references;
    if is_key {
        own_luma(&mut made, bits, &tables::KEY_LUMA_TREE, &tables::KEY_LUMA);
        key_blocks(&mut made, bits, neighbours);
        made.chroma = mode(bits.tree(&tables::CHROMA_TREE, &tables::KEY_CHROMA));
    } else if !bits.read(own) {
        own_luma(&mut made, bits, &tables::LUMA_TREE, &probabilities.luma);
        if made.luma == Luma::Blocks {
            made.blocks = [(); 16].map(|()| block_mode(bits.tree(&tables::BLOCK_TREE, &tables::BLOCK)));
        }
        made.chroma = mode(bits.tree(&tables::CHROMA_TREE, &probabilities.chroma));
    } else {
        made.reference = match (bits.read(last), golden) {
            (false, _) => Reference::Last,
            (true, golden) if !bits.read(golden) => Reference::Golden,
            _ => Reference::Alternative,
        };
        motion::read(&mut made, bits, &probabilities.vectors, state.is_turned, place, neighbours);
    }
    made
}

fn mode(number: usize) -> Mode {
    MODES.get(number).copied().unwrap_or_default()
}

fn block_mode(number: usize) -> BlockMode {
    BLOCK_MODES.get(number).copied().unwrap_or_default()
}

/// Luma that follows from its own frame.
fn own_luma(made: &mut Macroblock, bits: &mut BoolDecoder<'_>, tree: &[i8], probabilities: &[u8]) {
    let number = bits.tree(tree, probabilities);
    made.luma = MODES.get(number).map_or(Luma::Blocks, |&mode| Luma::Whole(mode));
}

/// The modes of blocks in a key frame, where those above and to the left say what is likely. Without modes of their own blocks count as
/// what the macroblock has.
fn key_blocks(made: &mut Macroblock, bits: &mut BoolDecoder<'_>, neighbours: &Neighbours<'_>) {
    made.blocks = match made.luma {
        Luma::Whole(Mode::Vertical) => [BlockMode::Vertical; 16],
        Luma::Whole(Mode::Horizontal) => [BlockMode::Horizontal; 16],
        Luma::Whole(Mode::TrueMotion) => [BlockMode::TrueMotion; 16],
        _ => [BlockMode::Dc; 16],
    };
    if made.luma != Luma::Blocks {
        return;
    }
    for i in 0..16 {
        let above = if i < 4 { neighbours.above.blocks[i + 12] } else { made.blocks[i - 4] };
        let left = if i % 4 == 0 { neighbours.left.blocks[i + 3] } else { made.blocks[i - 1] };
        let likely = &tables::KEY_BLOCK_MODES[above as usize][left as usize];
        made.blocks[i] = block_mode(bits.tree(&tables::BLOCK_TREE, likely));
    }
}
