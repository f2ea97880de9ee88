//! What a JPEG says before the data of its first scan, and of a progressive one what it says of all scans: every
//! segment checked, nothing decoded. It must not know who decodes.
//!
//! Only what decoders on a device could want: one scan of all coefficients of all components, or those of a progressive
//! file; Huffman codes, 8 bits. A file that is unusual or damaged has no [`Header`]: it is for the CPU decoder, which
//! says what is wrong.

mod scans;

use arrayvec::ArrayVec;

use super::huffman::{Class, Huffman};
pub use scans::Scan;

const SOF0: u8 = 0xC0;
const SOF1: u8 = 0xC1;
const SOF2: u8 = 0xC2;
const DHT: u8 = 0xC4;
pub(super) const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const DQT: u8 = 0xDB;
const DRI: u8 = 0xDD;
const APP0: u8 = 0xE0;
const APP14: u8 = 0xEE;
const COM: u8 = 0xFE;

/// Bytes of a JFIF segment, without its thumbnail; libjpeg does not take a shorter one for it.
const JFIF_BYTES: usize = 14;

/// A quantisation table, in the order of a zigzag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantisation<'a> {
    /// Of bytes.
    Narrow(&'a [u8; 64]),
    /// Of 16 bits, the high byte first.
    Wide(&'a [[u8; 2]; 64]),
}

impl Quantisation<'_> {
    /// Its values.
    pub fn values(&self) -> [u16; 64] {
        match self {
            Self::Narrow(values) => values.map(u16::from),
            Self::Wide(values) => values.map(u16::from_be_bytes),
        }
    }

    /// Whether a coefficient would be multiplied by nothing.
    pub fn has_zero(&self) -> bool {
        match self {
            Self::Narrow(values) => values.contains(&0),
            Self::Wide(values) => values.contains(&[0, 0]),
        }
    }
}

/// A component of the frame, with the tables that the scan gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Component<'a> {
    pub(super) id: u8,
    /// Sampling factors, across and down, 1 to 4.
    pub(super) factors: [u8; 2],
    /// Which quantisation table.
    pub(super) table: u8,
    pub(super) quantisation: Quantisation<'a>,
    /// For the first coefficient of a block and for the others; `None`: each scan has its own.
    pub(super) pair: Option<[Huffman<'a>; 2]>,
}

/// A file up to its data.
pub struct Header<'a> {
    pub(super) bytes: &'a [u8],
    /// What follows the header of the scan.
    pub(super) data: &'a [u8],
    pub(super) width: u16,
    pub(super) height: u16,
    /// One or three, in the frame's order, which is the scan's.
    pub(super) components: ArrayVec<Component<'a>, 3>,
    /// Of a progressive file; none of a sequential one.
    pub(super) scans: Vec<Scan<'a>>,
    /// MCUs between restarts; 0 without.
    pub(super) restart_interval: u16,
    pub(super) jfif: bool,
    /// The colour transform of Adobe's segment.
    pub(super) adobe: Option<u8>,
    /// Whether every segment is one that the baseline process has.
    pub(super) baseline: bool,
}

impl<'a> Header<'a> {
    /// Reads a file up to its data. `None`: it is for the CPU decoder.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        Self::of_head(bytes, bytes)
    }

    /// The same when only the beginning of a file was copied, its `head`, which must reach to the data. What `file` has
    /// in its place is not looked at. Of a progressive file the head must be all.
    pub fn of_head(head: &'a [u8], file: &'a [u8]) -> Option<Self> {
        let header = Self::read_head(head)?;
        if !header.scans.is_empty() && head.len() < file.len() {
            return None;
        }
        let data = file.get(head.len() - header.data.len()..)?;
        Some(Self { bytes: file, data, ..header })
    }

    /// Whether the header of a file's only scan ends within these bytes, so that [`Self::of_head`] needs no more.
    pub fn ends_within(bytes: &[u8]) -> bool {
        let mut reader = Reader { bytes, at: 2, ..Reader::default() };
        let mut markers = std::iter::from_fn(|| reader.segment()).map(|(marker, _)| marker);
        bytes.starts_with(&[0xFF, 0xD8])
            && markers.find(|&marker| matches!(marker, SOF2 | SOS)).is_some_and(|marker| marker == SOS)
    }

    fn read_head(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader { bytes, at: 2, ..Reader::default() };
        if !bytes.starts_with(&[0xFF, 0xD8]) {
            return None;
        }
        loop {
            let (marker, payload) = reader.segment()?;
            match marker {
                DQT => reader.quantisation_tables(payload)?,
                DHT => reader.huffman_tables(payload)?,
                SOF0 | SOF1 | SOF2 if reader.frame.is_none() => reader.frame_header(marker, payload)?,
                SOS if reader.frame.as_ref()?.progressive => break reader.scans(payload),
                SOS => break reader.scan_header(payload),
                DRI => reader.restart_interval(payload)?,
                APP0 => reader.jfif |= payload.starts_with(b"JFIF\0") && payload.len() >= JFIF_BYTES,
                APP14 if payload.starts_with(b"Adobe") => reader.adobe = Some(*payload.get(11)?),
                0xE0..=0xEF | COM => {}
                // Other processes, arithmetic coding, heights that come later.
                _ => return None,
            }
        }
    }
}

/// A component as the frame's header has it.
#[derive(Debug, Clone, Copy)]
struct Named {
    id: u8,
    factors: [u8; 2],
    table: u8,
}

impl Named {
    fn with<'a>(&self, quantisation: Quantisation<'a>, pair: Option<[Huffman<'a>; 2]>) -> Component<'a> {
        let Self { id, factors, table } = *self;
        Component { id, factors, table, quantisation, pair }
    }
}

/// The header of the frame.
struct Frame {
    baseline: bool,
    progressive: bool,
    width: u16,
    height: u16,
    components: ArrayVec<Named, 3>,
}

/// What was defined so far.
#[derive(Default)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    quantisation: [Option<Quantisation<'a>>; 4],
    dc: [Option<Huffman<'a>>; 4],
    ac: [Option<Huffman<'a>>; 4],
    /// Whether there is a table that the baseline process does not have.
    extended: bool,
    frame: Option<Frame>,
    restart_interval: u16,
    jfif: bool,
    adobe: Option<u8>,
}

impl<'a> Reader<'a> {
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

    fn quantisation_tables(&mut self, mut payload: &'a [u8]) -> Option<()> {
        while let Some((&kind, rest)) = payload.split_first() {
            let (table, rest) = match kind >> 4 {
                0 => {
                    let (values, rest) = rest.split_first_chunk()?;
                    (Quantisation::Narrow(values), rest)
                }
                1 => {
                    self.extended = true;
                    let (values, rest) = rest.split_at_checked(128)?;
                    (Quantisation::Wide(values.as_chunks().0.first_chunk()?), rest)
                }
                _ => return None,
            };
            *self.quantisation.get_mut(usize::from(kind & 15))? = Some(table);
            payload = rest;
        }
        Some(())
    }

    fn huffman_tables(&mut self, mut payload: &'a [u8]) -> Option<()> {
        while let Some((&kind, rest)) = payload.split_first() {
            let (class, tables) = match kind >> 4 {
                0 => (Class::Dc, &mut self.dc),
                1 => (Class::Ac, &mut self.ac),
                _ => return None,
            };
            let (table, rest) = Huffman::read(class, rest)?;
            *tables.get_mut(usize::from(kind & 15))? = Some(table);
            self.extended |= kind & 15 > 1;
            payload = rest;
        }
        Some(())
    }

    fn restart_interval(&mut self, payload: &[u8]) -> Option<()> {
        let &[high, low] = payload else { return None };
        self.restart_interval = u16::from_be_bytes([high, low]);
        Some(())
    }

    fn frame_header(&mut self, marker: u8, payload: &[u8]) -> Option<()> {
        let (&[8, h1, h0, w1, w0, count], rest) = payload.split_first_chunk()? else { return None };
        let (components, rest) = rest.as_chunks::<3>();
        if !rest.is_empty() || components.len() != usize::from(count) || !matches!(count, 1 | 3) {
            return None;
        }
        let named = |&[id, factors, table]: &[u8; 3]| {
            let factors = [factors >> 4, factors & 15];
            factors.iter().all(|factor| (1..=4).contains(factor)).then_some(Named { id, factors, table })
        };
        let components = components.iter().map(named).collect::<Option<ArrayVec<Named, 3>>>()?;
        let different = |i: usize| components.iter().skip(i + 1).all(|other| other.id != components[i].id);
        if !(0..components.len()).all(different) {
            return None;
        }
        let [height, width] = [[h1, h0], [w1, w0]].map(u16::from_be_bytes);
        // A height of 0 comes behind the scan.
        if width == 0 || height == 0 {
            return None;
        }
        let (baseline, progressive) = (marker == SOF0, marker == SOF2);
        self.frame = Some(Frame { baseline, progressive, width, height, components });
        Some(())
    }

    /// All components in the frame's order, with tables that exist, and all coefficients at once.
    fn scan_header(mut self, payload: &[u8]) -> Option<Header<'a>> {
        let frame = self.frame.take()?;
        let (&count, rest) = payload.split_first()?;
        let (selectors, rest) = rest.as_chunks::<2>();
        let (selectors, spectrum) = match (selectors, rest) {
            // Two bytes a component, then three: the last of them stands alone.
            ([selectors @ .., [start, end]], [approximation]) => (selectors, [*start, *end, *approximation]),
            _ => return None,
        };
        if spectrum != [0, 63, 0] || [usize::from(count), selectors.len()] != [frame.components.len(); 2] {
            return None;
        }
        let component = |(named, &[id, tables]): (&Named, &[u8; 2])| {
            let defined = |tables: &[Option<Huffman<'a>>; 4], index: u8| *tables.get(usize::from(index))?;
            let quantisation = (*self.quantisation.get(usize::from(named.table))?)?;
            let (dc, ac) = (defined(&self.dc, tables >> 4)?, defined(&self.ac, tables & 15)?);
            (named.id == id).then(|| named.with(quantisation, Some([dc, ac])))
        };
        let components =
            frame.components.iter().zip(selectors).map(component).collect::<Option<ArrayVec<_, 3>>>()?;
        Some(Header {
            bytes: self.bytes,
            data: self.bytes.get(self.at..)?,
            width: frame.width,
            height: frame.height,
            components,
            scans: Vec::new(),
            restart_interval: self.restart_interval,
            jfif: self.jfif,
            adobe: self.adobe,
            baseline: frame.baseline && !self.extended,
        })
    }
}
