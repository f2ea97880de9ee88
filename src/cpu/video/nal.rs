//! Network abstraction layer units, the pieces of H.264 and H.265 streams: where they begin and end. It must not know
//! what is in them beyond their type.

use std::borrow::Cow;
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

/// The units of a packet, of which there may be one for every byte: they are found one after the other. What follows a
/// length that cannot be true is left out.
pub(super) fn units(packet: &[u8], framing: Framing) -> impl Iterator<Item = &[u8]> {
    let (codes, lengths) = match framing {
        Framing::StartCodes => (Some(ranges(packet)), None),
        Framing::Lengths(size) => (None, Some(behind_lengths(packet, size))),
    };
    let codes = codes.into_iter().flatten().filter_map(|range| packet.get(range));
    codes.chain(lengths.into_iter().flatten())
}

/// What a unit holds behind `head` bytes, without the bytes that keep start codes out of it.
pub(super) fn unescape(unit: &[u8], head: usize) -> Cow<'_, [u8]> {
    let escaped = unit.get(head..).unwrap_or_default();
    let mut held: Option<Vec<u8>> = None;
    let mut from = 0;
    for at in memchr::memmem::find_iter(escaped, &[0, 0, 3]) {
        let held = held.get_or_insert_with(|| Vec::with_capacity(escaped.len()));
        held.extend_from_slice(escaped.get(from..at + 2).unwrap_or_default());
        from = at + 3;
    }
    match held {
        None => Cow::Borrowed(escaped),
        Some(mut held) => {
            held.extend_from_slice(escaped.get(from..).unwrap_or_default());
            Cow::Owned(held)
        }
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
    units(packet, framing).find_map(key).unwrap_or(false)
}

/// Where units are in a stream with start codes, without those and without the zeros behind them.
pub(super) fn ranges(stream: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut codes = memchr::memmem::find_iter(stream, &[0, 0, 1]).peekable();
    let trimmed = std::iter::from_fn(move || {
        let code = codes.next()?;
        let end = codes.peek().copied().unwrap_or(stream.len());
        let unit = stream.get(code + 3..end).unwrap_or_default();
        let length = unit.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        Some(code + 3..code + 3 + length)
    });
    trimmed.filter(|range| !range.is_empty())
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

/// The units of parameters in the configuration that a container holds, and how the units of its packets are told
/// apart.
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
        let found = |bytes, framing| units(bytes, framing).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(found(&stream, Framing::StartCodes), expected);
        let packet = [0, 3, 0x67, 1, 2, 0, 2, 0x65, 0x80, 0, 9, 1];
        assert_eq!(found(&packet, Framing::Lengths(2)), expected[..2]);
        assert_eq!(kind(Codec::H264, &[0x65, 0x80]), Kind::Slice { first: true, key: Key::Closed });
        assert_eq!(kind(Codec::H265, &[0x2A, 1, 0x00]), Kind::Slice { first: false, key: Key::Open });
        assert_eq!(kind(Codec::H264, &[]), Kind::Other);
    }

    #[test]
    fn bytes_that_keep_start_codes_out_are_left_out() {
        let held = |unit: &[u8]| unescape(unit, 1).into_owned();
        assert_eq!(held(&[0x67, 1, 0, 0, 3, 1, 0, 0, 3]), [1, 0, 0, 1, 0, 0]);
        assert_eq!(held(&[0x67, 0, 0, 3, 0, 0, 3, 0]), [0, 0, 0, 0, 0]);
        assert_eq!(held(&[0x67, 0, 3]), [0, 3]);
        assert!(held(&[]).is_empty());
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
