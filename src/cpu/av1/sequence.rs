//! The units that an AV1 stream is made of, and what its sequence header says of colours (specification of AV1, 5.3 to
//! 5.5). The crate tells that only of decoded pictures, and decodes as many frames as there are. It must not know the
//! crate.

use super::UNSPECIFIED;
use crate::cpu::bytes::{Bits, Bytes};
use crate::error::{Error, Result};

/// Types of units. Those of a frame's header come once for each frame.
const SEQUENCE_HEADER: u8 = 1;
const FRAME_HEADER: u8 = 3;
const FRAME: u8 = 6;
/// Others, which say nothing of later frames.
const DELIMITER: u8 = 2;
const TILES: u8 = 4;
const METADATA: u8 = 5;
const REPEATED_HEADER: u8 = 7;
const PADDING: u8 = 15;

/// The kind of frames that are made of others.
const MADE_OF_OTHERS: u32 = 1;

/// Bytes of a unit's length, at most: seven bits in each.
const LENGTH_BYTES: u32 = 8;

/// Colours of sRGB by their numbers in ISO/IEC 23091-2: with the identity as matrix they say that samples take all of
/// their range.
const SRGB: [u32; 3] = [1, 13, super::IDENTITY as u32];

/// What a sequence header says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cpu) struct Sequence {
    /// Columns and rows of frames that do not say their own.
    pub(in crate::cpu) size: [usize; 2],
    /// The number of the matrix in ISO/IEC 23091-2.
    pub(in crate::cpu) matrix: u8,
    /// Whether samples take the whole range of their bits.
    pub(in crate::cpu) full_range: bool,
    /// Bytes of two pixels, in all planes; no fewer than there are.
    pub(in crate::cpu) two_pixels: usize,
    /// How headers of frames are read; `None` where that is not known.
    frames: Option<FrameHeaders>,
}

/// What the headers of frames hold that the sequence header says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FrameHeaders {
    /// Bits of a frame's number.
    number_bits: usize,
    /// Whether frames say themselves if they may show screens, else if they do; the same of whole vectors of motion.
    screens: Choice,
    whole: Choice,
    order_bits: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Choice {
    /// Each frame makes it.
    OfFrames,
    Made(bool),
}

/// A part of a stream that a decoder may be given.
pub(in crate::cpu) struct Part<'a> {
    pub(in crate::cpu) bytes: &'a [u8],
    /// The sequence header that it begins with, or has before its frame.
    pub(in crate::cpu) sequence: Option<Sequence>,
    /// Whether it holds a frame, or the header of one that is shown again.
    pub(in crate::cpu) has_frame: bool,
}

/// Takes a stream apart so that no part holds more than one frame.
///
/// # Errors
/// Units that are cut off, a sequence header that is damaged; then there are no more parts.
pub(in crate::cpu) fn parts(stream: &[u8]) -> impl Iterator<Item = Result<Part<'_>>> {
    let mut rest = stream;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let part = part(rest);
        rest = part.as_ref().map_or(&[], |part| rest.get(part.bytes.len()..).unwrap_or_default());
        Some(part)
    })
}

/// The first part of a stream.
fn part(stream: &[u8]) -> Result<Part<'_>> {
    let (mut left, mut sequence, mut has_frame) = (Bytes(stream), None, false);
    let mut end = 0;
    while !left.is_empty() {
        let (kind, body) = unit(&mut left)?;
        match kind {
            FRAME_HEADER | FRAME if has_frame => break,
            SEQUENCE_HEADER if has_frame => break,
            FRAME_HEADER | FRAME => has_frame = true,
            SEQUENCE_HEADER => sequence = Some(header(body)?),
            _ => {}
        }
        end = stream.len() - left.0.len();
    }
    Ok(Part { bytes: stream.get(..end).unwrap_or_default(), sequence, has_frame })
}

/// The sequence header of a stream that is one picture, of so many layers at most.
///
/// # Errors
/// Units that are cut off; no sequence header; no frame, or more than layers: each of many could be as large as the
/// picture and take no bytes.
pub(in crate::cpu) fn still_sequence(stream: &[u8], layers: usize) -> Result<Sequence> {
    let (mut rest, mut sequence, mut frames) = (Bytes(stream), None, 0);
    while !rest.is_empty() {
        let (kind, body) = unit(&mut rest)?;
        match kind {
            SEQUENCE_HEADER if sequence.is_none() => sequence = Some(header(body)?),
            FRAME_HEADER | FRAME => frames += 1,
            _ => {}
        }
    }
    if !(1..=layers).contains(&frames) {
        let most = if layers == 1 { "one".to_owned() } else { format!("1 to {layers} layers") };
        return Err(Error::unsupported(format!("{frames} frames in one picture of AV1, expected {most}")));
    }
    sequence.ok_or_else(|| Error::invalid("a picture of AV1 without a sequence header"))
}

/// Whether nothing is made of the frames of a packet but themselves. `sequence` was said before it.
pub(in crate::cpu) fn is_spare(packet: &[u8], sequence: &Sequence) -> bool {
    let Some(headers) = sequence.frames else { return false };
    let (mut rest, mut frames) = (Bytes(packet), 0);
    while let Some(head) = rest.0.first() {
        let in_layers = head & 4 != 0;
        let Ok((kind, body)) = unit(&mut rest) else { return false };
        match kind {
            DELIMITER | REPEATED_HEADER | TILES | METADATA | PADDING if !in_layers => {}
            FRAME_HEADER | FRAME if !in_layers && headers.keeps_nothing(body).unwrap_or(false) => frames += 1,
            _ => return false,
        }
    }
    frames > 0
}

impl FrameHeaders {
    /// Whether a frame is one that is shown and made of others, and no slot of references gets it (5.9.2).
    fn keeps_nothing(&self, header: &[u8]) -> Result<bool> {
        let mut bits = Bits::behind(header, 0);
        let (is_repeated, kind, is_shown) = (bits.flag()?, bits.read(2)?, bits.flag()?);
        if is_repeated || kind != MADE_OF_OTHERS || !is_shown {
            return Ok(false);
        }
        let resilient = bits.flag()?;
        bits.skip(1);
        let shows_screens = match self.screens {
            Choice::OfFrames => bits.flag()?,
            Choice::Made(shows) => shows,
        };
        if shows_screens && self.whole == Choice::OfFrames {
            bits.skip(1);
        }
        bits.skip(self.number_bits + 1 + self.order_bits);
        if !resilient {
            bits.skip(3);
        }
        Ok(bits.read(8)? == 0)
    }
}

/// The next unit: its type, and what is in it.
fn unit<'a>(rest: &mut Bytes<'a>) -> Result<(u8, &'a [u8])> {
    let head = rest.u8()?;
    if head & 4 != 0 {
        // Layers.
        rest.skip(1)?;
    }
    let mut length = rest.0.len() as u64;
    if head & 2 != 0 {
        length = 0;
        for place in 0..LENGTH_BYTES {
            let byte = rest.u8()?;
            length |= u64::from(byte & 0x7F) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    Ok((head >> 3 & 15, rest.take(usize::try_from(length).unwrap_or(usize::MAX))?))
}

/// Reads a sequence header as far as its colours.
fn header(bytes: &[u8]) -> Result<Sequence> {
    let mut bits = Bits::behind(bytes, 0);
    let profile = bits.read(3)?;
    bits.skip(1);
    let reduced = bits.flag()?;
    let has_model = if reduced {
        bits.skip(5);
        false
    } else {
        skip_times_and_levels(&mut bits)?
    };
    let (width_bits, height_bits) = (bits.read(4)? as usize + 1, bits.read(4)? as usize + 1);
    let size = [bits.read(width_bits)? as usize + 1, bits.read(height_bits)? as usize + 1];
    // Lengths of differences of frames' numbers, and by how much more those are.
    let number_bits =
        if !reduced && bits.flag()? { bits.read(4)? as usize + bits.read(3)? as usize + 3 } else { 0 };
    bits.skip(3);
    // Where there is a model of a decoder, frames say more of it.
    let frames = if reduced { None } else { Some(tools(number_bits, &mut bits)?).filter(|_| !has_model) };
    bits.skip(3);
    let Colors { matrix, full_range, two_pixels } = colors(profile, &mut bits)?;
    Ok(Sequence { size, matrix, full_range, two_pixels, frames })
}

/// Skips when frames are shown, and how fast a decoder must be: whether there is a model of one.
fn skip_times_and_levels(bits: &mut Bits<'_>) -> Result<bool> {
    let mut delay_bits = None;
    if bits.flag()? {
        bits.skip(64);
        if bits.flag()? {
            // As many zeros, then a one and as many bits.
            let mut zeros = 0;
            while !bits.flag()? {
                zeros += 1;
            }
            bits.skip(zeros);
        }
        if bits.flag()? {
            delay_bits = Some(bits.read(5)? as usize + 1);
            bits.skip(42);
        }
    }
    let initial_delays = bits.flag()?;
    for _ in 0..=bits.read(5)? {
        bits.skip(12);
        if bits.read(5)? > 7 {
            bits.skip(1);
        }
        if let Some(delay_bits) = delay_bits
            && bits.flag()?
        {
            bits.skip(2 * delay_bits + 1);
        }
        if initial_delays && bits.flag()? {
            bits.skip(4);
        }
    }
    Ok(delay_bits.is_some())
}

/// Reads which ways of prediction are used, as far as headers of frames depend on it.
fn tools(number_bits: usize, bits: &mut Bits<'_>) -> Result<FrameHeaders> {
    bits.skip(4);
    let ordered = bits.flag()?;
    if ordered {
        bits.skip(2);
    }
    let mut choice = || Ok(if bits.flag()? { Choice::OfFrames } else { Choice::Made(bits.flag()?) });
    let screens: Choice = choice()?;
    let whole = if screens == Choice::Made(false) { Choice::OfFrames } else { choice()? };
    let order_bits = if ordered { bits.read(3)? as usize + 1 } else { 0 };
    Ok(FrameHeaders { number_bits, screens, whole, order_bits })
}

/// What samples mean, and how many there are.
struct Colors {
    matrix: u8,
    full_range: bool,
    two_pixels: usize,
}

fn colors(profile: u32, bits: &mut Bits<'_>) -> Result<Colors> {
    let many_bits = bits.flag()?;
    let most_bits = profile == 2 && many_bits && bits.flag()?;
    let gray = profile != 1 && bits.flag()?;
    let described = match bits.flag()? {
        true => [bits.read(8)?, bits.read(8)?, bits.read(8)?],
        false => [u32::from(UNSPECIFIED); 3],
    };
    let full_range = (described == SRGB && !gray) || bits.flag()?;
    // Those with the most bits may have chroma of any kind.
    let samples = match profile {
        0 => 3,
        2 if !most_bits => 4,
        _ => 6,
    };
    let two_pixels = if many_bits { 2 * samples } else { samples };
    Ok(Colors { matrix: super::matrix_of(described[2], described[0]), full_range, two_pixels })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A delimiter and a sequence header: reduced, 64 x 64 pixels of profile 1, with these colours and range.
    fn stream(colors: [u8; 3], range: u8) -> Vec<u8> {
        // Profile, still, reduced; level; bits of width and height; the sides; tools; 8 bits; colours follow.
        let mut bits = String::from("001") + "1" + "1" + "00000" + "0101" + "0101" + "111111" + "111111";
        bits += "000";
        bits += "000";
        bits += "0";
        bits += "1";
        colors.iter().for_each(|color| bits += &format!("{color:08b}"));
        bits += &format!("{range:b}");
        bits += &"0".repeat(bits.len().next_multiple_of(8) - bits.len());
        let bytes = (0..bits.len() / 8).map(|at| u8::from_str_radix(&bits[8 * at..][..8], 2).unwrap());
        let header: Vec<u8> = bytes.collect();
        [&[0x12, 0, 0x0A, header.len() as u8][..], &header].concat()
    }

    #[test]
    fn colours_are_read_of_the_header() {
        let read =
            |colors, range| still_sequence(&[&stream(colors, range)[..], &[0x32, 0]].concat(), 1).unwrap();
        assert_eq!(
            read([1, 13, 6], 1),
            Sequence { size: [64; 2], matrix: 6, full_range: true, two_pixels: 6, frames: None }
        );
        assert_eq!(
            read([1, 13, 6], 0),
            Sequence { size: [64; 2], matrix: 6, full_range: false, two_pixels: 6, frames: None }
        );
        assert_eq!(
            read([1, 13, 3], 0),
            Sequence { size: [64; 2], matrix: 3, full_range: false, two_pixels: 6, frames: None }
        );
        // No bit says the range.
        assert_eq!(
            read([1, 13, 0], 0),
            Sequence { size: [64; 2], matrix: 0, full_range: true, two_pixels: 6, frames: None }
        );
    }

    #[test]
    fn frames_that_no_slot_gets_are_spare() {
        let screens = Choice::Made(false);
        let frames = Some(FrameHeaders { number_bits: 0, screens, whole: Choice::OfFrames, order_bits: 7 });
        let sequence = Sequence { size: [64; 2], matrix: 2, full_range: false, two_pixels: 3, frames };
        // Shown before; kind; shown; resilient, probabilities, size; order; the reference for probabilities; slots.
        let frame = |kind: &str, shown: &str, slots: u8| {
            let bits = format!("0{kind}{shown}0000101010111{slots:08b}000000000");
            let bytes = (0..bits.len() / 8).map(|at| u8::from_str_radix(&bits[8 * at..][..8], 2).unwrap());
            [vec![0x32, 4], bytes.collect()].concat()
        };
        let of = |units: &[Vec<u8>]| is_spare(&units.concat(), &sequence);
        let (spare, kept) = (frame("01", "1", 0), frame("01", "1", 2));
        assert!(of(&[vec![0x12, 0], spare.clone()]));
        assert!(of(&[spare.clone(), spare.clone()]));
        assert!(!of(&[spare.clone(), kept.clone()]) && !of(&[kept]) && !of(&[]));
        assert!(!of(&[frame("00", "1", 0)]) && !of(&[frame("01", "0", 0)]));
        // A sequence that begins, a unit of a layer, one that is cut off.
        assert!(!of(&[stream([2; 3], 0), spare.clone()]));
        assert!(!of(&[vec![0x36, 0, 4], spare[2..].to_vec()]) && !of(&[spare[..4].to_vec()]));
        assert!(!is_spare(&spare, &Sequence { frames: None, ..sequence }));
    }

    #[test]
    fn a_picture_is_one_frame() {
        let with = |frames: &[u8]| {
            let told = still_sequence(&[&stream([2; 3], 0)[..], frames].concat(), 1);
            told.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(with(&[0x32, 1, 0]), "");
        assert_eq!(with(&[0x1A, 0, 0x22, 1, 0]), "");
        // Without a length a unit goes on to the end.
        assert_eq!(with(&[0x30, 1, 2, 3]), "");
        assert!(with(&[]).starts_with("0 frames in one picture"));
        assert!(with(&[0x32, 0, 0x32, 0]).starts_with("2 frames in one picture"));
        assert!(with(&[0x32, 5, 0]).contains("5 bytes expected, 1 left"));
        assert!(
            still_sequence(&[0x32, 0], 1)
                .is_err_and(|error| error.to_string().contains("without a sequence header"))
        );
    }

    #[test]
    fn a_part_is_one_frame() {
        let begin = stream([2; 3], 0);
        let frames = [&[0x32, 1, 7][..], &[0x1A, 0, 0x22, 1, 8], &[0x1A, 1, 9]];
        let all = [&begin[..], frames[0], frames[1], &begin, frames[2]].concat();
        let found: Vec<_> = parts(&all).map(Result::unwrap).collect();
        let bytes: Vec<_> = found.iter().map(|part| part.bytes.to_vec()).collect();
        // Of a sequence that begins the delimiter stays with the frame before.
        let next = [&begin[2..], frames[2]].concat();
        assert_eq!(bytes, [[&begin, frames[0]].concat(), [frames[1], &begin[..2]].concat(), next]);
        assert_eq!(found.iter().map(|part| part.sequence.is_some()).collect::<Vec<_>>(), [true, false, true]);
        assert!(found.iter().all(|part| part.has_frame));
        let mut cut = parts(&all[..all.len() - 1]);
        assert!(cut.by_ref().any(|part| part.is_err()) && cut.next().is_none());
    }
}
