//! Network abstraction layer units, the pieces of H.264 and H.265 streams: where they begin and end. It must not know what is
//! in them beyond their type.

use std::ops::Range;

use super::track::Codec;
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// How units are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Each begins behind 0, 0, 1 (Annex B).
    StartCodes,
    /// Before each stands its length in so many bytes.
    Lengths(usize),
}

/// The units of a packet. What follows a length that cannot be true is left out.
pub(super) fn units(packet: &[u8], framing: Framing) -> Vec<&[u8]> {
    match framing {
        Framing::StartCodes => ranges(packet).into_iter().filter_map(|range| packet.get(range)).collect(),
        Framing::Lengths(size) => behind_lengths(packet, size).collect(),
    }
}

fn behind_lengths(packet: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let mut bytes = Bytes(packet);
    std::iter::from_fn(move || {
        let length = bytes.take(size).ok()?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        bytes.take(length).ok()
    })
}

/// Whether decoding may begin with the frame of a packet, by its first slice: no more of the packet is read.
pub(super) fn is_key(codec: Codec, packet: &[u8], framing: Framing) -> bool {
    let key = |unit: &[u8]| match kind(codec, unit) {
        Kind::Slice { key, .. } => Some(key != Key::No),
        _ => None,
    };
    let found = match framing {
        Framing::StartCodes => units(packet, framing).into_iter().find_map(key),
        Framing::Lengths(size) => behind_lengths(packet, size).find_map(key),
    };
    found.unwrap_or(false)
}

/// Where units are in a stream with start codes, without those and without the zeros behind them.
pub(super) fn ranges(stream: &[u8]) -> Vec<Range<usize>> {
    let codes: Vec<usize> = memchr::memmem::find_iter(stream, &[0, 0, 1]).collect();
    let ends = codes.iter().skip(1).copied().chain([stream.len()]);
    let trimmed = codes.iter().zip(ends).map(|(&code, end)| {
        let unit = stream.get(code + 3..end).unwrap_or_default();
        let length = unit.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        code + 3..code + 3 + length
    });
    trimmed.filter(|range| !range.is_empty()).collect()
}

/// What matters of a unit to find frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A part of a frame; the first one of it?
    Slice { first: bool, key: Key },
    /// What stands before a frame and belongs to it: parameters, messages, delimiters.
    Ahead,
    /// Anything else.
    Other,
}

/// Whether decoding may begin with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    No,
    /// Frames that are shown before it may not be decodable.
    Open,
    /// Nothing behind it needs anything before it.
    Closed,
}

/// What a unit is.
pub(super) fn kind(codec: Codec, unit: &[u8]) -> Kind {
    let (Some(&head), hevc) = (unit.first(), codec == Codec::H265) else { return Kind::Other };
    // Both begin a slice with what is a single bit when it is the first of its frame.
    let first = unit.get(if hevc { 2 } else { 1 }).is_some_and(|byte| byte & 0x80 != 0);
    if hevc {
        return match head >> 1 & 0x3F {
            16..=20 => Kind::Slice { first, key: Key::Closed },
            21 => Kind::Slice { first, key: Key::Open },
            0..=31 => Kind::Slice { first, key: Key::No },
            32..=35 | 39 | 41..=44 | 48..=55 => Kind::Ahead,
            _ => Kind::Other,
        };
    }
    match head & 0x1F {
        1 | 2 => Kind::Slice { first, key: Key::No },
        5 => Kind::Slice { first, key: Key::Closed },
        6..=9 | 14..=18 => Kind::Ahead,
        _ => Kind::Other,
    }
}

/// The units of parameters in the configuration that a container holds, and how the units of its packets are told apart.
///
/// # Errors
/// A configuration that is too short.
pub(super) fn configuration(codec: Codec, config: &[u8]) -> Result<(Vec<&[u8]>, Framing)> {
    if config.is_empty() {
        return Ok((Vec::new(), Framing::StartCodes));
    }
    let mut bytes = Bytes(config);
    let mut found = Vec::new();
    if codec == Codec::H265 {
        bytes.skip(21)?;
        let size = usize::from(bytes.u8()? & 3) + 1;
        for _ in 0..bytes.u8()? {
            bytes.skip(1)?;
            for _ in 0..bytes.u16()? {
                let length = usize::from(bytes.u16()?);
                found.push(bytes.take(length)?);
            }
        }
        return Ok((found, Framing::Lengths(size)));
    }
    if bytes.u8()? != 1 {
        return Err(Error::invalid("H.264 parameters of an unknown version"));
    }
    bytes.skip(3)?;
    let size = usize::from(bytes.u8()? & 3) + 1;
    for mask in [0x1F, 0xFF] {
        for _ in 0..bytes.u8()? & mask {
            let length = usize::from(bytes.u16()?);
            found.push(bytes.take(length)?);
        }
    }
    Ok((found, Framing::Lengths(size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_found_between_start_codes_and_by_lengths() {
        let stream = [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 1, 0x65, 0x80, 0, 0, 0, 1, 0x41];
        let expected: [&[u8]; 3] = [&[0x67, 1, 2], &[0x65, 0x80], &[0x41]];
        assert_eq!(units(&stream, Framing::StartCodes), expected);
        let packet = [0, 3, 0x67, 1, 2, 0, 2, 0x65, 0x80, 0, 9, 1];
        assert_eq!(units(&packet, Framing::Lengths(2)), expected[..2]);
        assert_eq!(kind(Codec::H264, &[0x65, 0x80]), Kind::Slice { first: true, key: Key::Closed });
        assert_eq!(kind(Codec::H265, &[0x2A, 1, 0x00]), Kind::Slice { first: false, key: Key::Open });
        assert_eq!(kind(Codec::H264, &[]), Kind::Other);
    }

    #[test]
    fn a_configuration_that_is_cut_off_is_an_error() {
        let config = [1, 100, 0, 31, 0xFF, 0xE1, 0, 2, 0x67, 1, 1, 0, 1, 0x68];
        let (found, framing) = configuration(Codec::H264, &config).unwrap();
        assert_eq!((found, framing), (vec![[0x67, 1].as_slice(), &[0x68]], Framing::Lengths(4)));
        for end in 1..config.len() {
            assert!(configuration(Codec::H264, &config[..end]).is_err(), "{end}");
        }
    }
}
