//! The data of a scan as the SMs read it: bits only. Stuffed zeros and restart markers are taken out. It must not
//! know what the bits mean.
//!
//! ```text
//! file:  data .. FF 00 .. data FF D0 data .. FF 00 .. data FF D9
//! here:  data .. FF .. data   FF FF FF ..   data .. FF .. data   FF FF FF ..
//!        segment 0            padding       segment 1            padding
//! ```

use crate::gpu::jpeg::header::EOI;
use crate::gpu::layout::device_struct;
use crate::memory::{copy_once, unstuff, unstuff_blocks};

/// Alignment of a segment's first byte.
const ALIGNMENT: usize = 4;

/// Bytes of ones behind a segment, at least, so that a reader may look beyond its end.
const PADDING: usize = 16;

/// The fewest bits of a block of a sequential scan: one for its first coefficient, one for its end.
pub(super) const MIN_BLOCK_BITS: usize = 2;

/// The fewest bytes of a segment, with the marker behind it.
const MIN_SEGMENT_BYTES: usize = 3;

const RST0: u8 = 0xD0;

/// Bytes that are copied before they are read, where others can write to them: they stay in the first cache.
const CHUNK_BYTES: usize = 16 << 10;

device_struct! {
    /// A part of the data that begins anew: coefficients before it do not matter.
    #[derive(Debug, Default, PartialEq, Eq)]
    pub struct Segment as Segment {
        /// Its first bit, a multiple of 32.
        pub first_bit: u32,
        /// How many bits it has; the last byte's may be filled up with ones.
        pub bits: u32,
        /// Its first piece within the image; decided when the batch is cut.
        pub first_piece: u32,
        /// Its first block within the image.
        pub first_block: u32,
    }
}

impl Segment {
    /// Segment `number` in the bytes from `start` to `end`. `None`: that is too little for its blocks.
    fn new(layout: &Layout, number: usize, start: usize, end: usize) -> Option<Self> {
        let interval = layout.interval.unwrap_or(layout.mcus);
        let (first_mcu, bits) = (number * interval, (end - start) * 8);
        let mcus = layout.mcus.checked_sub(first_mcu)?.min(interval);
        (bits >= mcus * layout.blocks * layout.block_bits).then_some(Self {
            first_bit: u32::try_from(start * 8).ok()?,
            bits: u32::try_from(bits).ok()?,
            first_piece: 0,
            first_block: u32::try_from(first_mcu * layout.blocks).ok()?,
        })
    }
}

/// What a scan consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// MCUs of the image.
    pub mcus: usize,
    /// Blocks of an MCU.
    pub blocks: usize,
    /// Bits that a block has at least.
    pub block_bits: usize,
    /// MCUs of every segment but the last; `None`: there is one segment.
    pub interval: Option<usize>,
}

impl Layout {
    /// Segments between restarts.
    pub fn segments(&self) -> usize {
        self.interval.map_or(1, |interval| self.mcus.div_ceil(interval.max(1)))
    }

    /// Whether so much data can be a scan of it: nothing is allocated for a file that says to be larger than it is.
    pub fn fits(&self, bytes: usize) -> bool {
        bytes * 8 >= self.mcus * self.blocks * self.block_bits && bytes >= self.segments() * MIN_SEGMENT_BYTES
    }
}

/// Bytes that [`Scan::read`] may need for `bytes` of data in `segments`.
pub fn room(bytes: usize, segments: usize) -> usize {
    segments.saturating_mul(PADDING + ALIGNMENT - 1).saturating_add(bytes)
}

/// Where the bits of a scan are that were written to some place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    segments: Vec<Segment>,
    bytes: usize,
}

impl Scan {
    /// Writes the bits of `data` to `to`. `None`: something is missing, or is there that does not belong there, or
    /// there is not enough room.
    pub fn read(data: &[u8], layout: &Layout, to: &mut [u8]) -> Option<Self> {
        let mut reading = Reading::new(data.len(), layout, to)?;
        reading.next(data)?.then_some(reading.scan)
    }

    /// Writes the bits of `scans` of a progressive file, one behind the other.
    pub(super) fn read_all(scans: &[(&[u8], Layout)], to: &mut [u8]) -> Option<Self> {
        let mut all = Self { segments: Vec::new(), bytes: 0 };
        for (data, layout) in scans {
            let mut reading = Reading::new(data.len(), layout, to)?;
            (reading.start, reading.out.at, reading.is_last) = (all.bytes, all.bytes, false);
            reading.next(data)?.then_some(())?;
            all.segments.append(&mut reading.scan.segments);
            all.bytes = reading.scan.bytes;
        }
        Some(all)
    }

    /// The same of data in memory that somebody else may write to: each byte is read once.
    pub fn read_once(data: &[u8], layout: &Layout, to: &mut [u8]) -> Option<Self> {
        let mut reading = Reading::new(data.len(), layout, to)?;
        let (mut own, mut rest) = ([0; CHUNK_BYTES], data);
        while !rest.is_empty() {
            let blocks = reading.blocks(rest)?;
            let (chunk, behind) = rest.get(blocks..)?.split_at(CHUNK_BYTES.min(rest.len() - blocks));
            let own = &mut own[..chunk.len()];
            copy_once(chunk, own);
            if reading.next(own)? {
                return Some(reading.scan);
            }
            rest = behind;
        }
        None
    }

    /// The scan of one segment whose bits are the first `bytes` of `to`. `None`: that is too little, or there is not
    /// enough room.
    pub(super) fn of_one(bytes: usize, layout: &Layout, to: &mut [u8]) -> Option<Self> {
        let segment = Segment::new(layout, 0, 0, bytes)?;
        let mut out = Out { bytes: to, at: bytes };
        out.pad()?;
        Some(Self { segments: vec![segment], bytes: out.at })
    }

    /// In their order; at least one.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Bytes that were written: whole words.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Data that come in pieces.
struct Reading<'a> {
    layout: &'a Layout,
    scan: Scan,
    out: Out<'a>,
    /// Where the segment at hand starts.
    start: usize,
    /// Whether the last byte was an FF, behind which there is a marker or a zero.
    behind_ff: bool,
    /// And whether there were several of them.
    filled: bool,
    /// Whether the file ends behind it, and not another scan follows.
    is_last: bool,
}

impl<'a> Reading<'a> {
    /// `None`: so few bytes are no such scan.
    fn new(bytes: usize, layout: &'a Layout, to: &'a mut [u8]) -> Option<Self> {
        let scan =
            Scan { segments: Vec::with_capacity(layout.fits(bytes).then(|| layout.segments())?), bytes: 0 };
        Some(Self {
            layout,
            scan,
            out: Out { bytes: to, at: 0 },
            start: 0,
            behind_ff: false,
            filled: false,
            is_last: true,
        })
    }

    /// Writes what the first blocks of a piece hold, if no marker may begin it. How many bytes these are.
    fn blocks(&mut self, piece: &[u8]) -> Option<usize> {
        if self.behind_ff {
            return Some(0);
        }
        let done = unstuff_blocks(piece, self.out.bytes.get_mut(self.out.at..)?);
        self.out.at += done.written;
        Some(done.read)
    }

    /// Writes what a piece holds, without what was stuffed into it. Whether the scan is complete.
    fn next(&mut self, mut piece: &[u8]) -> Option<bool> {
        loop {
            if self.behind_ff {
                // Any number of fill bytes may stand before a marker.
                let found = piece.iter().position(|&byte| byte != 0xFF);
                self.filled |= found.unwrap_or(piece.len()) > 0;
                let Some(fill) = found else { return Some(false) };
                let marker = *piece.get(fill)?;
                piece = piece.get(fill + 1..)?;
                self.behind_ff = false;
                if marker == 0 {
                    // No encoder writes fill bytes before a zero, and what libjpeg-turbo makes of them depends on how
                    // it reads: it keeps coefficients of a first try.
                    if std::mem::take(&mut self.filled) {
                        return None;
                    }
                    // Behind an FF that was the last of a piece.
                    self.out.write(&[0xFF])?;
                } else if self.end_segment(marker)? {
                    return Some(true);
                }
            }
            let done = unstuff(piece, self.out.bytes.get_mut(self.out.at..)?)?;
            self.out.at += done.written;
            // An FF that has no zero behind it, if there is any.
            let Some(rest) = piece.get(done.read + 1..) else { return Some(false) };
            (piece, self.behind_ff, self.filled) = (rest, true, false);
        }
    }

    /// Ends a segment at a marker. Whether it was the last.
    fn end_segment(&mut self, marker: u8) -> Option<bool> {
        let number = self.scan.segments.len();
        let is_last = number + 1 == self.layout.segments();
        let is_right = match (is_last, self.is_last) {
            (true, true) => marker == EOI,
            (true, false) => !(RST0..RST0 + 8).contains(&marker),
            (false, _) => marker == RST0 + (number % 8) as u8,
        };
        is_right.then_some(())?;
        self.scan.segments.push(Segment::new(self.layout, number, self.start, self.out.at)?);
        self.out.pad()?;
        (self.start, self.scan.bytes) = (self.out.at, self.out.at);
        Some(is_last)
    }
}

/// What was written so far.
struct Out<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    fn pad(&mut self) -> Option<()> {
        let end = (self.at + PADDING).next_multiple_of(ALIGNMENT);
        self.bytes.get_mut(self.at..end)?.fill(0xFF);
        self.at = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As [`Scan::read`], byte by byte, without a look at markers: segments, each with the marker behind it.
    fn naive(data: &[u8]) -> Vec<(Vec<u8>, u8)> {
        let mut segments = Vec::new();
        let mut segment = Vec::new();
        let mut bytes = data.iter().copied();
        while let Some(byte) = bytes.next() {
            if byte != 0xFF {
                segment.push(byte);
                continue;
            }
            let mut filled = false;
            let next = bytes.by_ref().find(|&byte| {
                filled |= byte == 0xFF;
                byte != 0xFF
            });
            match next {
                None => break,
                // Left to the host.
                Some(0) if filled => break,
                Some(0) => segment.push(0xFF),
                Some(marker) => segments.push((std::mem::take(&mut segment), marker)),
            }
            if segments.last().is_some_and(|&(_, marker)| marker == EOI) {
                break;
            }
        }
        segments
    }

    /// A scan of `segments`: what they hold with stuffed zeros, and `fill` bytes before each marker.
    fn scan(segments: &[Vec<u8>], fill: usize) -> Vec<u8> {
        let mut data = Vec::new();
        for (number, segment) in segments.iter().enumerate() {
            for &byte in segment {
                data.push(byte);
                data.extend((byte == 0xFF).then_some(0));
            }
            data.resize(data.len() + 1 + fill, 0xFF);
            data.push(if number + 1 == segments.len() { EOI } else { RST0 + (number % 8) as u8 });
        }
        data
    }

    fn layout(mcus: usize, interval: Option<usize>) -> Layout {
        Layout { mcus, blocks: 1, block_bits: MIN_BLOCK_BITS, interval }
    }

    /// The bytes of each segment.
    fn copied(data: &[u8], layout: &Layout) -> Option<Vec<Vec<u8>>> {
        let mut to = vec![0x5A; room(data.len(), layout.segments())];
        let scan = Scan::read(data, layout, &mut to);
        let mut again = vec![0x5A; to.len()];
        assert_eq!(Scan::read_once(data, layout, &mut again), scan);
        let scan = scan?;
        assert_eq!(again[..scan.bytes()], to[..scan.bytes()]);
        let (mut end, mut block) = (0, 0);
        let part = |segment: &Segment| {
            assert_eq!(segment.first_block, block);
            block += layout.interval.unwrap_or_default() as u32;
            let (start, bytes) = (segment.first_bit as usize / 8, segment.bits as usize / 8);
            assert_eq!((start, segment.first_bit % 32), (end, 0));
            end = (start + bytes + PADDING).next_multiple_of(ALIGNMENT);
            assert!(to[start + bytes..end].iter().all(|&byte| byte == 0xFF));
            to[start..start + bytes].to_vec()
        };
        let parts = scan.segments().iter().map(part).collect();
        assert_eq!(end, scan.bytes());
        Some(parts)
    }

    /// Bytes with many that could start a marker.
    fn bytes(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => any::<u8>(), 2 => Just(0xFF), 2 => Just(0), 1 => 0xD0..=0xDB_u8];
        prop::collection::vec(byte, length)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_are_the_whole(data in bytes(20..200), length in 1..9_usize, segments in 1..4_usize) {
            let layout = layout(segments, Some(1));
            let mut to = [(); 2].map(|()| vec![0x5A; room(data.len(), segments)]);
            let [whole, pieces] = to.each_mut();
            let expected = Scan::read(&data, &layout, whole);
            let mut reading = Reading::new(data.len(), &layout, pieces).unwrap();
            let mut found = None;
            for piece in data.chunks(length) {
                match reading.next(piece) {
                    Some(false) => {}
                    Some(true) => {
                        found = Some(reading.scan.clone());
                        break;
                    }
                    None => break,
                }
            }
            let written = found.as_ref().map_or(0, Scan::bytes);
            prop_assert_eq!(found, expected);
            prop_assert_eq!(&to[0][..written], &to[1][..written]);
        }

        #[test]
        fn what_was_stuffed_comes_back(
            parts in prop::collection::vec(bytes(1..60), 1..30),
            fill in 0..4_usize,
            rest in bytes(0..40),
        ) {
            // Fill bytes behind data that ends with FF 00 are no part of it.
            let data = [scan(&parts, fill), rest].concat();
            let layout = layout(4 * parts.len() - 1, Some(4));
            prop_assert_eq!(copied(&data, &layout), Some(parts));
        }

        #[test]
        fn anything_is_read_as_byte_by_byte_or_refused(data in bytes(0..80), segments in 1..4_usize) {
            let naive = naive(&data);
            let expected = (0..segments)
                .map(|number| {
                    let (part, marker) = naive.get(number)?;
                    let right = if number + 1 == segments { EOI } else { RST0 + (number % 8) as u8 };
                    (*marker == right && !part.is_empty()).then(|| part.clone())
                })
                .collect::<Option<Vec<_>>>();
            prop_assert_eq!(copied(&data, &layout(segments, Some(1))), expected);
        }
    }

    #[test]
    fn what_is_not_a_whole_scan_is_refused() {
        let parts = vec![vec![1, 2, 0xFF], vec![3], vec![4, 5]];
        let data = scan(&parts, 0);
        assert_eq!(copied(&data, &layout(6, Some(2))), Some(parts));
        for length in 0..data.len() {
            assert_eq!(copied(&data[..length], &layout(6, Some(2))), None);
        }
        // Another number of segments; restarts where there are none.
        assert_eq!(copied(&data, &layout(8, Some(2))), None);
        assert_eq!(copied(&data, &layout(4, Some(2))), None);
        assert_eq!(copied(&data, &layout(6, None)), None);
        // Restarts in another order, and another marker at the end.
        let changed = |from: u8, to: u8| {
            let mut data = data.clone();
            let at = data.windows(2).position(|pair| pair == [0xFF, from]).unwrap();
            data[at + 1] = to;
            copied(&data, &layout(6, Some(2)))
        };
        for (from, to) in [(RST0, RST0 + 1), (RST0 + 1, RST0), (EOI, RST0 + 2), (EOI, 0xDA), (EOI, 0xDC)] {
            assert_eq!(changed(from, to), None);
        }
        // Fewer bits than there can be.
        assert_eq!(copied(&scan(&[vec![1]], 0), &layout(4, None)), Some(vec![vec![1]]));
        assert_eq!(copied(&scan(&[vec![1]], 0), &layout(5, None)), None);
    }

    #[test]
    fn long_segments_are_read_in_chunks() {
        for (count, length) in [(1, 5 * CHUNK_BYTES), (3, 2 * CHUNK_BYTES + 7), (500, 200)] {
            let byte = |at: usize| (at * at / 7 + at / 300) as u8;
            let parts: Vec<Vec<u8>> =
                (0..count).map(|part| (0..length).map(|at| byte(at + part)).collect()).collect();
            assert_eq!(copied(&scan(&parts, 1), &layout(4 * count, Some(4))), Some(parts));
        }
    }

    #[test]
    fn too_little_room_is_no_scan() {
        let data = scan(&[vec![7; 100], vec![0xFF; 50]], 0);
        let layout = layout(10, Some(5));
        let mut to = vec![0; room(data.len(), 2)];
        let written = Scan::read(&data, &layout, &mut to).unwrap().bytes();
        assert_eq!(written, 116 + 68);
        for less in 0..written {
            assert_eq!(Scan::read(&data, &layout, &mut to[..less]), None);
        }
    }
}
