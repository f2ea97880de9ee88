//! What a JPEG's header says about its image, and its segments. It must not know pixels.

use std::borrow::Cow;

use super::super::profile::Profile;
use super::super::{Header, orientation};
use crate::error::{Error, Result};
use crate::limits;

const SOI: u8 = 0xD8;
pub(super) const EOI: u8 = 0xD9;
pub(super) const SOS: u8 = 0xDA;
/// The frame of JPEG-LS.
const SOF55: u8 = 0xF7;
pub(super) const APP0: u8 = 0xE0;
const APP1: u8 = 0xE1;
pub(super) const APP2: u8 = 0xE2;
pub(super) const APP14: u8 = 0xEE;
pub(super) const APP15: u8 = 0xEF;

/// Whether `marker` starts a frame header. C4, C8 and CC lie between but are tables.
pub(super) fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC)
}

/// Whether the frame that `marker` starts is made of differences of pixels instead of cosine transforms.
fn is_lossless(marker: u8) -> bool {
    matches!(marker, 0xC3 | 0xC7 | 0xCB | 0xCF)
}

/// Whether the frame that `marker` starts comes in scans that each bring a part of every block.
fn is_progressive(marker: u8) -> bool {
    matches!(marker, 0xC2 | 0xC6 | 0xCA | 0xCE)
}

/// Fails for a frame that libjpeg-turbo has no process for.
fn check_process(marker: u8) -> Result<()> {
    let process = match marker {
        0xC0..=0xC3 | 0xC9 | 0xCA => return Ok(()),
        0xCB => "lossless with arithmetic codes",
        _ => "hierarchical",
    };
    Err(Error::unsupported(format!(
        "a {process} JPEG (frame header {marker:02x}), expected a baseline, extended, progressive or lossless one"
    )))
}

/// Whether `marker` stands alone, without a length and a payload.
fn is_bare(marker: u8) -> bool {
    matches!(marker, 0x01 | 0xD0..=0xD7)
}

/// One marker segment: its marker and what it holds.
pub(super) struct Segment<'a> {
    pub(super) marker: u8,
    pub(super) payload: &'a [u8],
}

/// The segments up to and with the first scan header.
pub(super) struct Segments<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Segments<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 2 }
    }

    pub(super) fn next(&mut self) -> Result<Segment<'a>> {
        loop {
            // Other bytes before a marker are passed over, as by libjpeg.
            while self.byte(self.at)? != 0xFF {
                self.at += 1;
            }
            // A marker may be preceded by any number of fill bytes.
            while self.byte(self.at)? == 0xFF {
                self.at += 1;
            }
            let (at, marker) = (self.at, self.byte(self.at)?);
            self.at += 1;
            // That a 0 follows makes it no marker.
            if marker == 0 || is_bare(marker) {
                continue;
            }
            if matches!(marker, SOI | EOI) {
                return Err(Error::invalid(format!(
                    "damaged header: found marker `{marker:02x}` at byte {at} before the first scan"
                )));
            }
            let length = usize::from(u16::from_be_bytes([self.byte(at + 1)?, self.byte(at + 2)?]));
            let payload = self.bytes.get(at + 3..(at + 1).saturating_add(length)).ok_or_else(|| {
                if length < 2 {
                    Error::invalid(format!(
                        "damaged header: segment of {length} bytes at byte {at}, expected 2 or more"
                    ))
                } else {
                    self.ended()
                }
            })?;
            self.at = at + 1 + length;
            return Ok(Segment { marker, payload });
        }
    }

    fn byte(&self, at: usize) -> Result<u8> {
        self.bytes.get(at).copied().ok_or_else(|| self.ended())
    }

    fn ended(&self) -> Error {
        Error::invalid(format!(
            "truncated header: the input ends after {} bytes, before the first scan",
            self.bytes.len()
        ))
    }
}

/// Reads a header up to its first scan.
pub(in crate::cpu::decode) fn header(bytes: &[u8]) -> Result<Header> {
    Ok(read_header(bytes)?.0)
}

/// What a header's segments say of its colours.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marked {
    jfif: bool,
    adobe: Option<u8>,
}

impl Marked {
    /// Whether it has Adobe's segment.
    pub(super) fn is_adobes(self) -> bool {
        self.adobe.is_some()
    }

    /// Whether colours of a lossless file are luma and chroma, as libjpeg decides. Without a word of it they are not.
    pub(super) fn has_chroma(self, channels: usize) -> bool {
        let transformed = self.adobe.is_some_and(|transform| transform != 0);
        transformed && channels == 4 || (transformed || self.jfif) && channels == 3
    }
}

/// The header, and what it says of colours.
pub(super) fn read_header(bytes: &[u8]) -> Result<(Header, Marked)> {
    let mut segments = Segments::new(bytes);
    let mut turn = orientation::Orientation::default();
    let mut frame = None;
    let mut marked = Marked::default();
    loop {
        let segment = segments.next()?;
        match segment.marker {
            APP1 => {
                // A later EXIF block replaces an earlier one, as in DALI.
                if let Some(block) = orientation::exif_block(segment.payload) {
                    turn = orientation::from_exif_block(block);
                }
            }
            APP0 => marked.jfif |= is_jfif(segment.payload),
            APP14 if is_adobe(segment.payload) => marked.adobe = segment.payload.get(11).copied(),
            SOS => break,
            SOF55 => return Err(Error::unsupported("JPEG-LS (frame header f7), expected JPEG")),
            marker if is_frame(marker) => {
                check_process(marker)?;
                let &[precision, h1, h0, w1, w0, components, ..] = segment.payload else {
                    return Err(Error::invalid(format!(
                        "damaged header: frame header of {} bytes, expected at least 6",
                        segment.payload.len()
                    )));
                };
                let size = [[w1, w0], [h1, h0]].map(|bytes| usize::from(u16::from_be_bytes(bytes)));
                if frame.replace((marker, precision, size, components)).is_some() {
                    return Err(Error::invalid("damaged header: more than one frame header"));
                }
            }
            _ => {}
        }
    }
    let Some((marker, precision, [width, height], components)) = frame else {
        return Err(Error::invalid("damaged header: a scan without a frame header"));
    };
    if !matches!(components, 1 | 3 | 4) {
        return Err(Error::unsupported(format!("{components} components, expected 1, 3 or 4")));
    }
    let (is_known, known) = match is_lossless(marker) {
        true => (matches!(precision, 2..=16), "2 to 16 in a lossless file"),
        false => (matches!(precision, 8 | 12), "8 or 12"),
    };
    if !is_known {
        return Err(Error::unsupported(format!("{precision} bits a sample, expected {known}")));
    }
    let (channels, bit_depth) = (usize::from(components), usize::from(precision));
    let halves = !is_lossless(marker);
    Ok((Header { width, height, channels, bit_depth, orientation: turn, halves }, marked))
}

/// How often a decoder goes over the image, as far as headers tell: a scan more than [`limits::MAX_JPEG_SCANS`] at
/// most. 1 for a header that cannot be read.
pub(in crate::cpu::decode) fn scans(bytes: &[u8]) -> u32 {
    let mut segments = Segments::new(bytes);
    let (mut components, mut several) = (0, false);
    loop {
        match segments.next() {
            Ok(Segment { marker, payload, .. }) if is_frame(marker) => {
                components = payload.get(5).copied().unwrap_or(0);
                several = is_progressive(marker);
            }
            // A first scan that has all components is the only one that is looked at, unless the file is progressive.
            Ok(Segment { marker: SOS, payload, .. }) if several || payload.first() != Some(&components) => {
                break;
            }
            Ok(Segment { marker, .. }) if marker != SOS => {}
            _ => return 1,
        }
    }
    let rest = bytes.get(segments.at..).unwrap_or_default();
    let after = |at: usize| rest.get(at + 1) == Some(&SOS);
    let more = memchr::memchr_iter(0xFF, rest).filter(|&at| after(at)).take(limits::MAX_JPEG_SCANS as usize);
    1 + more.count() as u32
}

/// Whether a header says that each bit of the file's data is a part of the pixels that no scan before it brought: how
/// long the file is bounds what its scans take.
pub(in crate::cpu::decode) fn is_sequential(bytes: &[u8]) -> bool {
    let mut segments = Segments::new(bytes);
    while let Ok(Segment { marker, .. }) = segments.next() {
        if is_frame(marker) {
            return matches!(marker, 0xC0 | 0xC1);
        }
    }
    false
}

/// Bytes of a JFIF segment, without its thumbnail: a shorter one is none.
const JFIF_BYTES: usize = 14;

/// Whether an APP0 segment is one that libjpeg reads.
fn is_jfif(payload: &[u8]) -> bool {
    payload.starts_with(b"JFIF\0") && payload.len() >= JFIF_BYTES
}

/// Whether an APP14 segment is one that libjpeg reads.
pub(super) fn is_adobe(payload: &[u8]) -> bool {
    payload.starts_with(b"Adobe") && payload.len() >= 12
}

/// What a segment with a part of a profile begins with; behind it are the part's number, from 1 on, and how many there
/// are.
const PROFILE: &[u8] = b"ICC_PROFILE\0";

/// The profile of a file, in parts of segments.
///
/// # Errors
/// When a part is missing.
pub(super) fn profile(bytes: &[u8]) -> Result<Option<Profile<'_>>> {
    let mut segments = Segments::new(bytes);
    let mut parts = Vec::new();
    loop {
        let segment = segments.next()?;
        match segment.marker {
            SOS => break,
            APP2 => {
                let part = segment.payload.strip_prefix(PROFILE).and_then(<[u8]>::split_first_chunk::<2>);
                parts.extend(part.map(|(&[number, count], part)| (number, count, part)));
            }
            _ => {}
        }
    }
    let Some(&(_, count, _)) = parts.first() else { return Ok(None) };
    parts.sort_by_key(|&(number, ..)| number);
    let is_whole = parts.len() == usize::from(count)
        && parts.iter().zip(1_u8..).all(|(&(number, all, _), expected)| number == expected && all == count);
    if !is_whole {
        return Err(Error::invalid(format!(
            "damaged colour profile: {} parts that are not numbered from 1 to {count}",
            parts.len()
        )));
    }
    let profile = match parts.as_slice() {
        &[(.., only)] => Cow::Borrowed(only),
        parts => Cow::Owned(parts.iter().flat_map(|&(.., part)| part).copied().collect()),
    };
    Ok(Some(Profile::Icc(profile)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_with_a_reason() {
        let text = |bytes: &[u8]| header(bytes).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(text(&[0xFF, 0xD8]).contains("truncated header"));
        assert!(text(&[0xFF, 0xD8, 0xFF, 0xDB, 0, 1, 0]).contains("segment of 1 bytes"));
        assert!(text(&[0xFF, 0xD8, 7]).contains("ends after 3 bytes, before the first scan"));
        assert!(text(&[0xFF, 0xD8, 7, 0xFF, 0, 0xFF, 0xDB, 0, 1]).contains("segment of 1 bytes at byte 6"));
        assert!(text(&[0xFF, 0xD8, 0xFF, 0xDA, 0, 2]).contains("without a frame header"));
    }
}
