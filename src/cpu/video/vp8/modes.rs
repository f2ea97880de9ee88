//! How each macroblock is predicted (RFC 6386, sections 10, 11 and 16).

use super::bool_decoder::BoolDecoder;
use super::header::{Header, State};
use super::macroblock::{BlockMode, Luma, Macroblock, MacroblockPosition, Mode, Neighbours, Reference};
use super::{motion, tables};

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

/// Reads what is said of a macroblock into `made`, whose segment is the one that it was in before.
#[inline(never)]
pub(super) fn read(
    made: &mut Macroblock,
    bits: &mut BoolDecoder<'_>,
    header: &Header<'_>,
    state: &State,
    is_key: bool,
    place: MacroblockPosition,
    neighbours: &Neighbours<'_>,
) {
    *made = Macroblock { segment: made.segment, ..Macroblock::default() };
    if state.segments.has_map {
        made.segment = bits.tree(&tables::SEGMENT_TREE, &state.segments.map);
    }
    made.is_empty = header.skip.is_some_and(|skip| bits.read(skip));
    let probabilities = &state.probabilities;
    let [own, last, golden] = header.references;
    if is_key {
        own_luma(made, bits, &tables::KEY_LUMA_TREE, &tables::KEY_LUMA);
        key_blocks(made, bits, neighbours);
        made.chroma = mode(bits.tree(&tables::CHROMA_TREE, &tables::KEY_CHROMA));
    } else if !bits.read(own) {
        own_luma(made, bits, &tables::LUMA_TREE, &probabilities.luma);
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
        motion::read(made, bits, &probabilities.vectors, state.is_turned, place, neighbours);
    }
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

/// The modes of blocks in a key frame, where those above and to the left say what is likely. Without modes of their own
/// blocks count as what the macroblock has.
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
