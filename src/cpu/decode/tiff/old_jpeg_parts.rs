//! The parts of a JPEG that is put together: tables, and the headers of its frame and scan. It must not know tags.

use std::borrow::Cow;

use crate::error::{Error, Result};

const START: u8 = 0xD8;
const TABLES_OF_CODES: u8 = 0xC4;
const QUANTISERS: u8 = 0xDB;
const INTERVAL: u8 = 0xDD;
const SCAN: u8 = 0xDA;
/// The frame of the baseline process.
const BASELINE: u8 = 0xC0;
/// Tables of each kind.
const TABLES: u8 = 4;

/// The header of a frame: its marker and what it holds.
#[derive(Debug, Clone)]
pub(super) struct Frame<'a> {
    marker: u8,
    held: Cow<'a, [u8]>,
}

impl Frame<'_> {
    /// Name, sampling and table of quantisers of each component.
    fn components(&self) -> impl Iterator<Item = [u8; 3]> {
        let all = self.held.get(6..).unwrap_or_default();
        all.chunks_exact(3).map(|component| [component[0], component[1], component[2]])
    }

    /// Blocks of 8 x 8 pixels that are coded together, across and down.
    pub(super) fn unit(&self) -> [usize; 2] {
        // A component that is alone is coded block by block.
        if self.components().count() == 1 {
            return [1, 1];
        }
        self.components().fold([1, 1], |[across, down], [_, factors, _]| {
            [across.max(usize::from(factors >> 4)), down.max(usize::from(factors & 15))]
        })
    }
}

/// What is known of a JPEG.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    /// Segments with tables.
    tables: Vec<u8>,
    /// The tables of codes that there are, by class and number, one bit each, and whether there are quantisers.
    codes: [u8; 2],
    has_quantisers: bool,
    pub(super) frame: Option<Frame<'a>>,
    /// Units between restarts.
    pub(super) interval: Option<u16>,
    /// What the first header of a scan holds.
    pub(super) scan: Option<Cow<'a, [u8]>>,
}

/// A segment's marker, what it holds, and the bytes of it, with those that fill up in front.
fn segment(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let filled = bytes.iter().take_while(|&&byte| byte == 0xFF).count();
    let &marker = bytes.get(filled).filter(|_| filled > 0)?;
    if marker == START {
        return Some((marker, &[], filled + 1));
    }
    if !matches!(marker, 0xC0..=0xCF | 0xDA..=0xFE) {
        return None;
    }
    let length =
        bytes.get(filled + 1..filled + 3)?.first_chunk().map(|length| u16::from_be_bytes(*length))?;
    let end = (filled + 1).checked_add(length.into())?;
    Some((marker, bytes.get(filled + 3..end)?, end))
}

impl<'a> Parts<'a> {
    /// Takes what segments hold, up to the header of a scan or what is no segment. Returns the bytes of them.
    pub(super) fn read(&mut self, bytes: &'a [u8]) -> usize {
        let mut at = 0;
        while let Some((marker, held, length)) = segment(&bytes[at..]) {
            at += length;
            match marker {
                TABLES_OF_CODES => self.take_codes(held),
                QUANTISERS => {
                    self.has_quantisers = true;
                    self.add(marker, held);
                }
                // Conditions of arithmetic codes.
                0xCC => self.add(marker, held),
                0xC0..=0xCF => self.frame = Some(Frame { marker, held: Cow::Borrowed(held) }),
                INTERVAL => {
                    let interval = held.first_chunk().map(|interval| u16::from_be_bytes(*interval));
                    self.interval = interval.filter(|&interval| interval > 0);
                }
                SCAN => {
                    self.scan = Some(Cow::Borrowed(held));
                    break;
                }
                _ => {}
            }
        }
        at
    }

    /// The data of a strip that may begin with the header of the scan again.
    ///
    /// # Errors
    /// When it begins with that of another one.
    pub(super) fn without_scan_header<'b>(&self, data: &'b [u8]) -> Result<&'b [u8]> {
        match segment(data) {
            Some((SCAN, held, length)) if self.scan.as_deref() == Some(held) => Ok(&data[length..]),
            Some((marker, ..)) => Err(Error::unsupported(format!(
                "old-style JPEG with the segment {marker:02x} at the beginning of a strip behind the first"
            ))),
            None => Ok(data),
        }
    }

    fn add(&mut self, marker: u8, held: &[u8]) {
        self.tables.extend([0xFF, marker]);
        // What was held by a segment, or is as long as a table at most.
        self.tables.extend(((held.len() + 2) as u16).to_be_bytes());
        self.tables.extend(held);
    }

    fn take_codes(&mut self, held: &[u8]) {
        self.add(TABLES_OF_CODES, held);
        let mut rest = held;
        while let Some((&[kind, ref counts @ ..], _)) = rest.split_first_chunk::<17>() {
            if let Some(codes) = self.codes.get_mut(usize::from(kind >> 4)) {
                *codes |= 1 << (kind & 7);
            }
            let symbols: usize = counts.iter().map(|&count| usize::from(count)).sum();
            rest = rest.get(17 + symbols..).unwrap_or_default();
        }
    }

    pub(super) fn has_quantisers(&self) -> bool {
        self.has_quantisers
    }

    pub(super) fn has_codes(&self) -> bool {
        self.codes != [0, 0]
    }

    /// Adds the table of quantisers of this number.
    pub(super) fn add_quantisers(&mut self, number: u8, values: &[u8]) {
        self.has_quantisers = true;
        self.add(QUANTISERS, &[&[number], values].concat());
    }

    /// Adds a table of codes: `kind` is its class and number.
    ///
    /// # Errors
    /// When it is longer than a segment.
    pub(super) fn add_codes(&mut self, kind: u8, table: &[u8]) -> Result<()> {
        if table.len() > usize::from(u16::MAX) - 3 {
            return Err(Error::invalid("damaged: a table of codes that is too long"));
        }
        self.take_codes(&[&[kind], table].concat());
        Ok(())
    }

    /// Adds the header of a frame whose first component is sampled by `factors`.
    ///
    /// # Errors
    /// When a side is longer than that of a JPEG.
    pub(super) fn add_frame(&mut self, size: [usize; 2], samples: usize, factors: u8) -> Result<()> {
        let [width, height] = size.map(|side| {
            u16::try_from(side)
                .map_err(|_| Error::invalid(format!("damaged: a JPEG with a side of {side} pixels")))
        });
        let mut held = vec![8];
        held.extend(height?.to_be_bytes());
        held.extend(width?.to_be_bytes());
        held.push(samples as u8);
        (0..samples as u8).for_each(|i| held.extend([i + 1, if i == 0 { factors } else { 0x11 }, i]));
        self.frame = Some(Frame { marker: BASELINE, held: Cow::Owned(held) });
        Ok(())
    }

    /// Adds the header of a scan of all components, if there is none: each has the tables of its number, or the last
    /// ones that there are.
    ///
    /// # Errors
    /// Without a frame.
    pub(super) fn add_scan(&mut self) -> Result<()> {
        if self.scan.is_some() {
            return Ok(());
        }
        let frame = self.frame.as_ref().ok_or_else(no_frame)?;
        let table = |class: usize, i: u8| (0..=i).rev().find(|&number| self.codes[class] >> number & 1 != 0);
        let mut held = vec![0];
        for (i, [name, ..]) in (0..TABLES).zip(frame.components()) {
            held[0] += 1;
            held.extend([name, table(0, i).unwrap_or(i) << 4 | table(1, i).unwrap_or(i)]);
        }
        held.extend([0, 63, 0]);
        self.scan = Some(Cow::Owned(held));
        Ok(())
    }

    /// A JPEG up to its data.
    ///
    /// # Errors
    /// Without a frame or a scan.
    pub(super) fn header(&mut self) -> Result<Vec<u8>> {
        let frame = self.frame.take().ok_or_else(no_frame)?;
        let scan =
            self.scan.take().ok_or_else(|| Error::invalid("damaged: old-style JPEG without a scan"))?;
        self.add(frame.marker, &frame.held);
        if let Some(interval) = self.interval {
            self.add(INTERVAL, &interval.to_be_bytes());
        }
        self.add(SCAN, &scan);
        let mut file = vec![0xFF, START];
        file.append(&mut self.tables);
        Ok(file)
    }
}

fn no_frame() -> Error {
    Error::invalid("damaged: old-style JPEG without the header of a frame")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_two_places_are_one_header() {
        let codes = [&[0xFF, 0xC4, 0, 19, 0][..], &[0; 16]].concat();
        let first =
            [&b"\xFF\xD8\xFF\xE0\0\x04JF\xFF\xDB\0\x03\x07\xFF\xFF\xDD\0\x04\0\x09"[..], &codes].concat();
        let mut parts = Parts::default();
        assert_eq!(parts.read(&first), first.len());
        assert!(parts.has_quantisers() && parts.has_codes() && parts.interval == Some(9));
        let strip = b"\xFF\xC0\0\x0B\x08\0\x05\0\x04\x01\x07\x22\0\xFF\xDA\0\x03\x01\x12\x34";
        assert_eq!(parts.read(strip), strip.len() - 2);
        assert_eq!(parts.without_scan_header(&strip[13..]).expect("data"), [0x12, 0x34]);
        assert_eq!(parts.without_scan_header(&[0xFF, 0, 1]).expect("data"), [0xFF, 0, 1]);
        assert!(parts.without_scan_header(strip).is_err());
        assert_eq!(parts.frame.as_ref().map(Frame::unit), Some([1, 1]));
        let expected = [
            b"\xFF\xD8\xFF\xDB\0\x03\x07",
            &codes[..],
            b"\xFF\xC0\0\x0B\x08\0\x05\0\x04\x01\x07\x22\0",
            b"\xFF\xDD\0\x04\0\x09\xFF\xDA\0\x03\x01",
        ];
        assert_eq!(parts.header().expect("a header"), expected.concat());
    }

    #[test]
    fn a_scan_takes_the_tables_that_there_are() {
        let mut parts = Parts::default();
        for kind in [0, 1, 0x10, 0x11] {
            parts.add_codes(kind, &[0; 16]).expect("a table");
        }
        assert!(parts.add_scan().is_err());
        parts.add_frame([5, 4], 3, 0x21).expect("a frame");
        parts.add_scan().expect("a scan");
        assert_eq!(parts.scan.as_deref(), Some(&[3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0][..]));
        assert_eq!(parts.frame.as_ref().map(Frame::unit), Some([2, 1]));
        assert!(parts.add_frame([1 << 16, 4], 3, 0x21).is_err());
    }
}
