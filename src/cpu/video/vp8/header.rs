//! What stands before the macroblocks of a frame (RFC 6386, sections 9 and 19): the first bytes, which are plain, the
//! header behind them, and what of it stays for the frames that follow.

use super::bool_decoder::BoolDecoder;
use super::coefficients::{self, Coefficients};
use super::tables;
use crate::cpu::video::decoder::{check_size, damaged};
use crate::error::Result;

/// Bytes ahead of every frame, and those ahead of a key frame.
const TAG_BYTES: usize = 3;
const KEY_TAG_BYTES: usize = 10;

/// What the first bytes of a frame say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    /// Columns and rows of a key frame.
    pub(super) size: Option<[usize; 2]>,
    /// Which filters predict (0: of six taps, else of two) and whether chroma moves by whole samples (3).
    pub(super) version: u8,
    pub(super) is_shown: bool,
    /// Bytes of the part behind the tag that has the header and the modes.
    first_part: usize,
}

/// Takes the tag off a frame.
///
/// # Errors
/// Bytes that are missing, another mark than that of key frames, a version that nobody defined, too large a picture.
pub(super) fn tag(frame: &[u8]) -> Result<(Tag, &[u8])> {
    let Some((&[a, b, c], rest)) = frame.split_first_chunk::<TAG_BYTES>() else {
        return Err(damaged(format!("VP8: {} bytes, expected at least {TAG_BYTES}", frame.len())));
    };
    let bits = u32::from_le_bytes([a, b, c, 0]);
    let version = (bits >> 1 & 7) as u8;
    if version > 3 {
        return Err(damaged(format!("VP8: version {version}, expected 0 to 3")));
    }
    let mut tag = Tag { size: None, version, is_shown: bits & 16 != 0, first_part: (bits >> 5) as usize };
    if bits & 1 != 0 {
        return Ok((tag, rest));
    }
    let Some((&[0x9D, 0x01, 0x2A, w0, w1, h0, h1], rest)) =
        rest.split_first_chunk::<{ KEY_TAG_BYTES - TAG_BYTES }>()
    else {
        return Err(damaged("VP8: a key frame without its mark"));
    };
    // The two bits above say how a player should stretch the picture, which as in FFmpeg is not done.
    let side = |low, high| usize::from(u16::from_le_bytes([low, high]) & 0x3FFF);
    tag.size = Some(check_size([side(w0, w1), side(h0, h1)])?);
    Ok((tag, rest))
}

/// Probabilities that stay until a frame changes them.
#[derive(Clone)]
pub(super) struct Probabilities {
    pub(super) coefficients: Coefficients,
    pub(super) vectors: tables::VectorProbabilities,
    pub(super) luma: [u8; 4],
    pub(super) chroma: [u8; 3],
}

impl Default for Probabilities {
    fn default() -> Self {
        Self {
            coefficients: coefficients::COEFFICIENTS,
            vectors: tables::VECTORS,
            luma: tables::LUMA,
            chroma: tables::CHROMA,
        }
    }
}

/// How macroblocks of a segment differ; stays until a frame changes it.
#[derive(Clone, Copy, Default)]
pub(super) struct Segments {
    pub(super) is_enabled: bool,
    /// Whether this frame says which macroblock is in which segment, and how likely.
    pub(super) has_map: bool,
    pub(super) map: [u8; 3],
    /// Whether values stand for those of the frame; else they are added.
    pub(super) is_absolute: bool,
    pub(super) quantizer: [i32; 4],
    pub(super) filter_level: [i32; 4],
}

/// What the loop filter is told; the differences stay until a frame changes them.
#[derive(Clone, Copy, Default)]
pub(super) struct Filter {
    pub(super) is_simple: bool,
    pub(super) level: i32,
    pub(super) sharpness: i32,
    pub(super) has_deltas: bool,
    /// Differences of macroblocks by the frame that they refer to, and by how they are predicted.
    pub(super) reference_deltas: [i32; 4],
    pub(super) mode_deltas: [i32; 4],
}

/// What stays from one frame to the next.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) probabilities: Probabilities,
    pub(super) segments: Segments,
    pub(super) filter: Filter,
    /// Whether vectors into the golden and the alternative frame are turned around.
    pub(super) is_turned: [bool; 2],
    /// Whether samples take their whole range.
    pub(super) full_range: bool,
}

/// Indices of steps, the first for AC of luma, and what is added for the others.
#[derive(Clone, Copy)]
pub(super) struct Quantizer {
    pub(super) index: i32,
    pub(super) luma_dc: i32,
    pub(super) second_dc: i32,
    pub(super) second_ac: i32,
    pub(super) chroma_dc: i32,
    pub(super) chroma_ac: i32,
}

/// Where a reference comes from, of those that there were before the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    Keep,
    Frame,
    Last,
    /// The golden frame for the alternative one, and the other way around.
    Other,
}

/// What a header says of its own frame.
pub(super) struct Header<'a> {
    /// Reads the modes of the macroblocks, which follow.
    pub(super) modes: BoolDecoder<'a>,
    /// Read the coefficients: row `n` of macroblocks by that of `n` modulo their number.
    pub(super) tokens: Vec<BoolDecoder<'a>>,
    pub(super) quantizer: Quantizer,
    pub(super) golden: Update,
    pub(super) alternative: Update,
    pub(super) refreshes_last: bool,
    /// The probabilities that come back behind this frame.
    pub(super) saved: Option<Probabilities>,
    /// How likely a macroblock has coefficients, where that is said for each.
    pub(super) skip: Option<u8>,
    /// How likely a macroblock is predicted from its own frame; if not, from the last one; if not, from the golden one.
    pub(super) references: [u8; 3],
}

/// Reads the header in `rest`, which is behind the tag.
///
/// # Errors
/// Parts that are longer than the frame.
pub(super) fn header<'a>(tag: &Tag, rest: &'a [u8], state: &mut State) -> Result<Header<'a>> {
    let is_key = tag.size.is_some();
    let (first, rest) = rest.split_at_checked(tag.first_part).ok_or_else(|| {
        damaged(format!("VP8: a part of {} bytes in a frame that has {} left", tag.first_part, rest.len()))
    })?;
    let mut bits = BoolDecoder::new(first);
    if is_key {
        *state = State::default();
        // The space of colours, which is not looked at. The other flag says that nothing needs to be clipped; FFmpeg,
        // and with it DALI, takes it for the whole range.
        bits.flag();
        state.full_range = bits.flag();
    }
    segments(&mut bits, &mut state.segments);
    filter(&mut bits, &mut state.filter);
    let tokens = parts(rest, 1 << bits.number(2))?;
    let quantizer = Quantizer {
        index: i32::from(bits.number(7)),
        luma_dc: bits.optional(4),
        second_dc: bits.optional(4),
        second_ac: bits.optional(4),
        chroma_dc: bits.optional(4),
        chroma_ac: bits.optional(4),
    };
    let (mut golden, mut alternative, mut refreshes_last) = (Update::Frame, Update::Frame, true);
    let keeps;
    if is_key {
        keeps = bits.flag();
    } else {
        let refreshed = [bits.flag(), bits.flag()];
        [golden, alternative] =
            refreshed.map(|refreshed| if refreshed { Update::Frame } else { update(&mut bits) });
        state.is_turned = [bits.flag(), bits.flag()];
        keeps = bits.flag();
        refreshes_last = bits.flag();
    }
    let probabilities = &mut state.probabilities;
    let saved = (!keeps).then(|| probabilities.clone());
    let places = probabilities.coefficients.as_flattened_mut().as_flattened_mut().as_flattened_mut();
    let updates = coefficients::COEFFICIENT_UPDATES.as_flattened().as_flattened().as_flattened();
    for (place, &update) in places.iter_mut().zip(updates) {
        if bits.read(update) {
            *place = bits.number(8);
        }
    }
    let skip = bits.flag().then(|| bits.number(8));
    let mut references = [0; 3];
    if !is_key {
        references = [bits.number(8), bits.number(8), bits.number(8)];
        if bits.flag() {
            probabilities.luma = [(); 4].map(|()| bits.number(8));
        }
        if bits.flag() {
            probabilities.chroma = [(); 3].map(|()| bits.number(8));
        }
        let updates = tables::VECTOR_UPDATES.as_flattened();
        for (place, &update) in probabilities.vectors.as_flattened_mut().iter_mut().zip(updates) {
            if bits.read(update) {
                *place = (bits.number(7) << 1).max(1);
            }
        }
    }
    if bits.is_exhausted() {
        return Err(damaged("VP8: a frame that ends in its header"));
    }
    Ok(Header {
        modes: bits,
        tokens,
        quantizer,
        golden,
        alternative,
        refreshes_last,
        saved,
        skip,
        references,
    })
}

fn segments(bits: &mut BoolDecoder<'_>, segments: &mut Segments) {
    segments.is_enabled = bits.flag();
    segments.has_map = false;
    if !segments.is_enabled {
        return;
    }
    segments.has_map = bits.flag();
    if bits.flag() {
        segments.is_absolute = bits.flag();
        segments.quantizer = [(); 4].map(|()| bits.optional(7));
        segments.filter_level = [(); 4].map(|()| bits.optional(6));
    }
    if segments.has_map {
        segments.map = [(); 3].map(|()| if bits.flag() { bits.number(8) } else { 255 });
    }
}

fn filter(bits: &mut BoolDecoder<'_>, filter: &mut Filter) {
    filter.is_simple = bits.flag();
    filter.level = i32::from(bits.number(6));
    filter.sharpness = i32::from(bits.number(3));
    filter.has_deltas = bits.flag();
    if filter.has_deltas && bits.flag() {
        for delta in filter.reference_deltas.iter_mut().chain(&mut filter.mode_deltas) {
            if bits.flag() {
                *delta = bits.signed(6);
            }
        }
    }
}

fn update(bits: &mut BoolDecoder<'_>) -> Update {
    match bits.number(2) {
        1 => Update::Last,
        2 => Update::Other,
        _ => Update::Keep,
    }
}

/// The parts with coefficients: the lengths of all but the last, three bytes each, then the parts.
fn parts(rest: &[u8], count: usize) -> Result<Vec<BoolDecoder<'_>>> {
    let (lengths, mut rest) = rest
        .split_at_checked(3 * (count - 1))
        .ok_or_else(|| damaged(format!("VP8: no room for the lengths of {count} parts")))?;
    let mut parts = Vec::with_capacity(count);
    for &[a, b, c] in lengths.as_chunks::<3>().0 {
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let (part, behind) = rest.split_at_checked(length).ok_or_else(|| {
            damaged(format!("VP8: a part of {length} bytes in a frame that has {} left", rest.len()))
        })?;
        parts.push(BoolDecoder::new(part));
        rest = behind;
    }
    parts.push(BoolDecoder::new(rest));
    Ok(parts)
}
