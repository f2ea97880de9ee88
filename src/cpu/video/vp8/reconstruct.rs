//! A frame macroblock by macroblock: read, predicted, added to, and a row later filtered.

use super::References;
use super::frame::Frame;
use super::header::{Header, State, Tag};
use super::inter::{self, Filters};
use super::intra;
use super::loop_filter::{self, Strength};
use super::macroblock::{Luma, Macroblock, MacroblockPosition, Neighbours, Reference};
use super::modes;
use super::tokens::{self, Edge, Residue, SECOND, Steps};
use super::transform;
use crate::cpu::video::decoder::damaged;
use crate::error::Result;

/// Decodes a frame whose header was read; `segments` are those of the macroblocks.
///
/// # Errors
/// A frame whose bytes end too early.
pub(super) fn decode(
    frame: &mut Frame,
    segments: &mut [u8],
    references: Option<&References>,
    tag: &Tag,
    mut header: Header<'_>,
    state: &State,
) -> Result<()> {
    let of @ [columns, rows] = frame.macroblocks();
    let is_key = tag.size.is_some();
    let filters = Filters::of_version(tag.version);
    let steps = Steps::of_segments(&header.quantizer, &state.segments);
    // The macroblocks of the row above and of the one at hand, the first of them beside the frame; and which blocks of
    // those above had coefficients.
    let [mut above, mut here] = [(); 2].map(|()| vec![Macroblock::default(); columns + 1]);
    let mut above_edges: Vec<Edge> = vec![[0; 9]; columns];
    let mut residue = Residue::NONE;
    let mut strengths = [vec![Strength::default(); columns], vec![Strength::default(); columns]];
    let mut modes = header.modes.clone();
    let parts = header.tokens.len().max(1);
    for row in 0..rows {
        let mut left_edge = [0; 9];
        let mut bits =
            header.tokens.get(row % parts).cloned().ok_or_else(|| damaged("VP8: no coefficients"))?;
        for column in 0..columns {
            let place = MacroblockPosition { column, row, of };
            let segment = &mut segments[row * columns + column];
            let (before, rest) = here.split_at_mut(column + 1);
            let (Some(left), Some(made)) = (before.last(), rest.first_mut()) else { continue };
            let neighbours = Neighbours { above: &above[column + 1], left, above_left: &above[column] };
            made.segment = usize::from(*segment);
            modes::read(made, &mut modes, &header, state, is_key, place, &neighbours);
            *segment = made.segment as u8;
            let (has_second, above_edge) = (made.luma.has_second(), &mut above_edges[column]);
            let has_coefficients = if made.is_empty {
                tokens::clear(has_second, above_edge, &mut left_edge);
                false
            } else {
                let steps = &steps[made.segment & 3];
                let probabilities = &state.probabilities.coefficients;
                residue.read(&mut bits, probabilities, steps, has_second, above_edge, &mut left_edge)
            };
            let residue = has_coefficients.then_some(&mut residue);
            reconstruct(frame, references, made, place, filters, residue);
            strengths[row % 2][column] =
                Strength::new(made, has_coefficients, &state.filter, &state.segments);
        }
        std::mem::swap(&mut above, &mut here);
        if modes.is_exhausted() || bits.is_exhausted() {
            return Err(damaged(format!("VP8: a frame that ends in row {row} of {rows} of its macroblocks")));
        }
        if let Some(part) = header.tokens.get_mut(row % parts) {
            *part = bits;
        }
        if state.filter.level > 0 && row > 0 {
            loop_filter::row(frame, row - 1, &strengths[(row - 1) % 2], &state.filter, is_key);
        }
    }
    if state.filter.level > 0 && rows > 0 {
        loop_filter::row(frame, rows - 1, &strengths[(rows - 1) % 2], &state.filter, is_key);
    }
    Ok(())
}

/// Predicts a macroblock and adds what its coefficients say.
fn reconstruct(
    frame: &mut Frame,
    references: Option<&References>,
    made: &Macroblock,
    place: MacroblockPosition,
    filters: Filters,
    mut residue: Option<&mut Residue>,
) {
    let [luma, chroma @ ..] = &mut frame.planes;
    let reference = references.and_then(|references| match made.reference {
        Reference::Own => None,
        Reference::Last => Some(&references.last),
        Reference::Golden => Some(&references.golden),
        Reference::Alternative => Some(&references.alternative),
    });
    if let Some(reference) = reference {
        inter::macroblock(frame, reference, made, place, filters);
    } else {
        for plane in chroma {
            intra::whole::<8>(plane, place, made.chroma);
        }
        match made.luma {
            Luma::Whole(mode) => intra::whole::<16>(luma, place, mode),
            _ => intra::blocks(luma, place, made, residue.as_deref()),
        }
    }
    let Some(residue) = residue.as_mut() else { return };
    if made.luma.has_second() && residue.ends[SECOND] > 0 {
        let means = transform::means(&residue.blocks[SECOND]);
        for ((block, end), mean) in residue.blocks.iter_mut().zip(&mut residue.ends).zip(means) {
            block[0] = mean;
            *end = (*end).max(u8::from(mean != 0));
        }
    }
    let [luma, blue, red] = &mut frame.planes;
    // Two blocks beside one another at a time.
    for (pair, (blocks, ends)) in
        residue.blocks.as_chunks::<2>().0.iter().zip(residue.ends.as_chunks::<2>().0).enumerate()
    {
        let (plane, side, x, y) = match pair {
            // These were added where they were predicted.
            0..8 if made.luma == Luma::Blocks => continue,
            0..8 => (&mut *luma, 16, pair % 2 * 8, pair / 2 * 4),
            8..10 => (&mut *blue, 8, 0, (pair - 8) * 4),
            _ => (&mut *red, 8, 0, (pair - 10) * 4),
        };
        let stride = plane.width;
        let at = (place.row * side + y) * stride + place.column * side + x;
        transform::add_two(&mut plane.samples, at, stride, blocks.each_ref(), *ends);
    }
}
