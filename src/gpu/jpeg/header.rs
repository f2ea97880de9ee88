//! Which JPEGs the engines take, told from the file alone: baseline, 8 bits, one scan, a common chroma sampling, whole. It
//! must not know nvJPEG.
//!
//! It is stricter than a decoder has to be. A library that reads files from the network without bounds of ours gets only
//! files whose every segment was checked here; whatever is unusual or damaged goes to the CPU decoder, which says what is wrong.

use crate::limits;

const SOF0: u8 = 0xC0;
const DHT: u8 = 0xC4;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const DQT: u8 = 0xDB;
const DRI: u8 = 0xDD;
const APP14: u8 = 0xEE;
const COM: u8 = 0xFE;

/// Adobe's colour transform of a file whose three components are YCbCr.
const ADOBE_YCBCR: u8 = 1;

/// The largest symbol of a DC table in baseline: bits of a difference of 8-bit coefficients.
const MAX_DC_SYMBOL: u8 = 11;

/// How chroma is sampled. In this order batches are sorted, so that like follows like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sampling {
    /// One component, no chroma.
    Gray,
    /// 4:4:4: as luma.
    Full,
    /// 4:2:2: half the columns.
    HalfColumns,
    /// 4:4:0: half the rows.
    HalfRows,
    /// 4:2:0: half of both.
    Quarter,
}

impl Sampling {
    /// Every sampling that the engines take.
    pub const ALL: [Self; 5] = [Self::Gray, Self::Full, Self::HalfColumns, Self::HalfRows, Self::Quarter];
}

/// What a header says of the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Columns as stored.
    pub width: usize,
    /// Rows as stored.
    pub height: usize,
    /// Sampling of chroma.
    pub sampling: Sampling,
}

/// A file that the engines take, with what its header says.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    bytes: &'a [u8],
    frame: Frame,
}

impl<'a> Picture<'a> {
    /// Looks at a file. `None`: it is for the CPU decoder.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader { bytes, at: 2, ..Reader::default() };
        let frame = bytes.starts_with(&[0xFF, 0xD8]).then(|| reader.frame()).flatten()?;
        let data = bytes.get(reader.at..)?;
        ends(data).then_some(Self { bytes, frame })
    }

    /// The file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What its header says.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }
}

/// Whether an end marker is among the last bytes. Zeros and other garbage may follow it.
fn ends(data: &[u8]) -> bool {
    let tail = data.len().saturating_sub(limits::MAX_JPEG_TRAILER_BYTES);
    data.get(tail..).unwrap_or_default().windows(2).rev().any(|pair| pair == [0xFF, EOI])
}

/// A component of the frame: its identifier and which quantisation table it uses.
#[derive(Debug, Clone, Copy, Default)]
struct Component {
    id: u8,
    table: u8,
}

/// What was defined before the scan.
#[derive(Default)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    quantisation: [bool; 4],
    /// Of class DC and AC, two tables each.
    huffman: [[bool; 2]; 2],
    frame: Option<Frame>,
    components: Vec<Component>,
    adobe: Option<u8>,
}

impl<'a> Reader<'a> {
    /// Reads up to the entropy-coded data.
    fn frame(&mut self) -> Option<Frame> {
        loop {
            let (marker, payload) = self.segment()?;
            match marker {
                DQT => self.quantisation_tables(payload)?,
                DHT => self.huffman_tables(payload)?,
                SOF0 if self.frame.is_none() => self.frame_header(payload)?,
                SOS => {
                    self.scan_header(payload)?;
                    return self.frame;
                }
                DRI if payload.len() == 2 => {}
                APP14 if payload.starts_with(b"Adobe") => self.adobe = Some(*payload.get(11)?),
                0xE0..=0xEF | COM => {}
                // Other processes than baseline, arithmetic coding, heights that come later.
                _ => return None,
            }
        }
    }

    fn segment(&mut self) -> Option<(u8, &'a [u8])> {
        if *self.bytes.get(self.at)? != 0xFF {
            return None;
        }
        while *self.bytes.get(self.at)? == 0xFF {
            self.at += 1;
        }
        let marker = *self.bytes.get(self.at)?;
        let &[high, low] = self.bytes.get(self.at + 1..self.at + 3)? else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let payload = self.bytes.get(self.at + 3..(self.at + 1).checked_add(length)?)?;
        self.at += 1 + length;
        Some((marker, payload))
    }

    fn quantisation_tables(&mut self, mut payload: &[u8]) -> Option<()> {
        while let Some((&kind, rest)) = payload.split_first() {
            // The upper half is the precision: 0 for 8 bits.
            *self.quantisation.get_mut(usize::from(kind))? = true;
            payload = rest.get(64..)?;
        }
        Some(())
    }

    fn huffman_tables(&mut self, mut payload: &[u8]) -> Option<()> {
        while let Some((&kind, rest)) = payload.split_first() {
            let (class, index) = (usize::from(kind >> 4), usize::from(kind & 15));
            let counts = rest.get(..16)?;
            let mut free = 1_u32;
            for &count in counts {
                // Codes that are left at this length; no table has as many as would overflow.
                free = (free * 2).checked_sub(u32::from(count))?.min(1 << 16);
            }
            let symbols: usize = counts.iter().map(|&count| usize::from(count)).sum();
            let values = rest.get(16..16 + symbols)?;
            if symbols == 0 || symbols > 256 || (class == 0 && values.iter().any(|&v| v > MAX_DC_SYMBOL)) {
                return None;
            }
            *self.huffman.get_mut(class)?.get_mut(index)? = true;
            payload = rest.get(16 + symbols..)?;
        }
        Some(())
    }

    fn frame_header(&mut self, payload: &[u8]) -> Option<()> {
        let (&[8, h1, h0, w1, w0, count], rest) = payload.split_first_chunk()? else { return None };
        let (components, rest) = rest.as_chunks::<3>();
        if !rest.is_empty() || components.len() != usize::from(count) {
            return None;
        }
        let factors = |i: usize| components.get(i).map(|component| component[1]);
        let sampling = match (components.len(), factors(0)?) {
            (1, 0x11) => Sampling::Gray,
            (3, luma) if factors(1)? == 0x11 && factors(2)? == 0x11 => match luma {
                0x11 => Sampling::Full,
                0x21 => Sampling::HalfColumns,
                0x12 => Sampling::HalfRows,
                0x22 => Sampling::Quarter,
                _ => return None,
            },
            _ => return None,
        };
        let [height, width] = [[h1, h0], [w1, w0]].map(|bytes| usize::from(u16::from_be_bytes(bytes)));
        let sides = limits::MIN_ENGINE_SIDE..=limits::MAX_ENGINE_SIDE;
        let pixels = width * height;
        if !sides.contains(&width) || !sides.contains(&height) || pixels > limits::MAX_ENGINE_PIXELS {
            return None;
        }
        self.components = components.iter().map(|&[id, _, table]| Component { id, table }).collect();
        self.frame = Some(Frame { width, height, sampling });
        Some(())
    }

    /// All components in the frame's order, with tables that exist, and all coefficients at once.
    fn scan_header(&mut self, payload: &[u8]) -> Option<()> {
        let (&count, rest) = payload.split_first()?;
        let (selectors, rest) = rest.as_chunks::<2>();
        let (selectors, spectrum) = match (selectors, rest) {
            // Two bytes a component, then three: the last of them stands alone.
            ([selectors @ .., [start, end]], [approximation]) => (selectors, [*start, *end, *approximation]),
            _ => return None,
        };
        let counts = [usize::from(count), selectors.len()];
        if spectrum != [0, 63, 0] || counts != [self.components.len(); 2] || self.components.is_empty() {
            return None;
        }
        for (component, &[id, tables]) in self.components.iter().zip(selectors) {
            let defined = |class: usize, index: u8| {
                self.huffman.get(class)?.get(usize::from(index)).copied().filter(|&defined| defined)
            };
            let quantisation = self.quantisation.get(usize::from(component.table)).copied();
            if component.id != id || quantisation != Some(true) {
                return None;
            }
            defined(0, tables >> 4)?;
            defined(1, tables & 15)?;
        }
        let ids: Vec<u8> = self.components.iter().map(|component| component.id).collect();
        match ids.as_slice() {
            [_] => Some(()),
            // Three components are YCbCr, unless they say that they are not.
            b"RGB" | b"rgb" => None,
            [y, cb, cr] if y != cb && y != cr && cb != cr => {
                self.adobe.is_none_or(|transform| transform == ADOBE_YCBCR).then_some(())
            }
            _ => None,
        }
    }
}
