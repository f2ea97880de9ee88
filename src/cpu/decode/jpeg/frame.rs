//! What stands before the entropy-coded data: tables, frame and scan headers, for our own decoder. It must not know
//! codes or pixels.
//!
//! `None` means here and in all of the decoder's files that libjpeg-turbo shall decode the file: because it is of a
//! rare kind, or because something about it is odd. So nothing needs to be judged here, and nothing is forgiven.

use super::huffman::Spec;
use super::transform;
use crate::deadline::Watch;

/// Zigzag order: at which place of a block, row by row, each coefficient of a scan lies.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// The most blocks that an MCU may have.
pub(super) const MAX_MCU_BLOCKS: usize = 10;
/// libjpeg's limit for the sides of an image.
const MAX_SIDE: usize = 65_500;

/// What the samples of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Gray,
    Ycc,
    Rgb,
    Cmyk,
    /// CMYK whose first three are stored as luma and chroma.
    Ycck,
}

/// One component of the frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Component {
    id: u8,
    /// Blocks of an MCU.
    pub(super) h: usize,
    pub(super) v: usize,
    quant: usize,
}

/// The frame header.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) progressive: bool,
    pub(super) components: Vec<Component>,
}

impl Frame {
    fn parse(marker: u8, payload: &[u8]) -> Option<Self> {
        let (&[precision, h1, h0, w1, w0, count], rest) = payload.split_first_chunk()?;
        let (height, width) =
            (usize::from(u16::from_be_bytes([h1, h0])), usize::from(u16::from_be_bytes([w1, w0])));
        let sides = (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height);
        let (described, []) = rest.as_chunks::<3>() else { return None };
        if precision != 8 || !sides || described.len() != usize::from(count) || !matches!(count, 1 | 3 | 4) {
            return None;
        }
        let component = |&[id, sampling, quant]: &[u8; 3]| {
            let (h, v) = (usize::from(sampling >> 4), usize::from(sampling & 15));
            let fits = (1..=4).contains(&h) && (1..=4).contains(&v) && quant < 4;
            fits.then_some(Component { id, h, v, quant: usize::from(quant) })
        };
        let mut components: Vec<_> = described.iter().map(component).collect::<Option<_>>()?;
        let unique = |i: usize| components[..i].iter().all(|other| other.id != components[i].id);
        if !(0..components.len()).all(unique) {
            return None;
        }
        if let [only] = &mut components[..] {
            // A scan of one component has MCUs of one block.
            (only.h, only.v) = (1, 1);
        }
        if components.iter().map(|c| c.h * c.v).sum::<usize>() > MAX_MCU_BLOCKS {
            return None;
        }
        Some(Self { width, height, progressive: marker == 0xC2, components })
    }

    /// The most blocks of any component in an MCU, across and down.
    pub(super) fn most(&self) -> (usize, usize) {
        let most = |of: fn(&Component) -> usize| self.components.iter().map(of).max().unwrap_or(1);
        (most(|c| c.h), most(|c| c.v))
    }

    /// MCUs across and down.
    pub(super) fn mcus(&self) -> (usize, usize) {
        let (h, v) = self.most();
        (self.width.div_ceil(8 * h), self.height.div_ceil(8 * v))
    }
}

/// A component's part in a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Which component of the frame.
    pub(super) component: usize,
    /// Its Huffman tables.
    pub(super) dc: usize,
    pub(super) ac: usize,
}

/// A scan header.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    pub(super) parts: Vec<Part>,
    /// First and last zigzag position.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Bits that earlier scans have left out, and that this one leaves out.
    pub(super) high: u32,
    pub(super) low: u32,
}

impl Scan {
    /// Whether it brings all of its components, as all scans of sequential files do.
    pub(super) fn is_whole(&self) -> bool {
        (self.first, self.last, self.high, self.low) == (0, 63, 0, 0)
    }
}

/// Reads segments and keeps what they define.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// Asked while its data are decoded.
    pub(super) watch: &'a Watch<'a>,
    at: usize,
    quants: [Option<[i16; 64]>; 4],
    /// DC tables, AC tables.
    specs: [[Option<Spec>; 4]; 2],
    /// MCUs between restart markers; 0: there are none.
    pub(super) restart: usize,
    frame: Option<Frame>,
    jfif: bool,
    adobe: Option<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], watch: &'a Watch<'a>) -> Option<Self> {
        bytes.starts_with(&[0xFF, 0xD8]).then_some(Self {
            bytes,
            watch,
            at: 2,
            quants: [None; 4],
            specs: Default::default(),
            restart: 0,
            frame: None,
            jfif: false,
            adobe: None,
        })
    }

    /// Reads up to and with the next scan header. The inner `None`: the image's end comes first.
    pub(super) fn next_scan(&mut self) -> Option<Option<Scan>> {
        loop {
            let &[0xFF, marker] = self.bytes.get(self.at..)?.first_chunk()? else { return None };
            if marker == 0xD9 {
                return Some(None);
            }
            if marker == 0xFF {
                // A marker may be preceded by any number of these.
                self.at += 1;
                continue;
            }
            let &[high, low] = self.bytes.get(self.at + 2..)?.first_chunk()?;
            let end = self.at + 2 + usize::from(u16::from_be_bytes([high, low]));
            let payload = self.bytes.get(self.at + 4..end)?;
            self.at = end;
            match marker {
                0xC0..=0xC2 if self.frame.is_none() => self.frame = Some(Frame::parse(marker, payload)?),
                0xC4 => self.huffman(payload)?,
                0xDA => return Some(Some(self.scan(payload)?)),
                0xDB => self.quantisation(payload)?,
                0xDD => self.restart = usize::from(u16::from_be_bytes(payload.try_into().ok()?)),
                0xE0 if payload.starts_with(b"JFIF\0") && payload.len() >= 14 => {
                    if payload[5] != 1 {
                        return None;
                    }
                    self.jfif = true;
                }
                0xEE if payload.starts_with(b"Adobe") && payload.len() >= 12 => {
                    self.adobe = Some(payload[11]);
                }
                0xE0..=0xEF | 0xFE => {}
                _ => return None,
            }
        }
    }

    fn quantisation(&mut self, mut payload: &[u8]) -> Option<()> {
        while let Some((&kind, rest)) = payload.split_first() {
            let table = self.quants.get_mut(usize::from(kind & 15))?;
            let wide = kind >> 4 != 0;
            let (values, rest) = rest.split_at_checked(if wide { 128 } else { 64 })?;
            let mut quant = [0; 64];
            for (i, &place) in ZIGZAG.iter().enumerate() {
                let value = if wide {
                    u16::from_be_bytes([values[2 * i], values[2 * i + 1]])
                } else {
                    u16::from(values[i])
                };
                // Products are kept in 16 bits: their sign does not matter.
                quant[transform::place(usize::from(place) / 8, usize::from(place) % 8)] = value as i16;
            }
            *table = Some(quant);
            payload = rest;
        }
        Some(())
    }

    fn huffman(&mut self, mut payload: &[u8]) -> Option<()> {
        while let Some((&kind, rest)) = payload.split_first() {
            let table = self.specs.get_mut(usize::from(kind >> 4))?.get_mut(usize::from(kind & 15))?;
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let (symbols, rest) = rest.split_at_checked(counts.iter().map(|&n| usize::from(n)).sum())?;
            *table = Some(Spec::new(counts, symbols)?);
            payload = rest;
        }
        Some(())
    }

    fn scan(&self, payload: &[u8]) -> Option<Scan> {
        let frame = self.frame.as_ref()?;
        let (&count, rest) = payload.split_first()?;
        let (described, &[first, last, bits]) = rest.split_last_chunk::<3>()?;
        let (described, []) = described.as_chunks::<2>() else { return None };
        if described.len() != usize::from(count) || described.is_empty() {
            return None;
        }
        let part = |&[id, tables]: &[u8; 2]| {
            let component = frame.components.iter().position(|c| c.id == id)?;
            let (dc, ac) = (usize::from(tables >> 4), usize::from(tables & 15));
            (dc < 4 && ac < 4).then_some(Part { component, dc, ac })
        };
        let parts: Vec<_> = described.iter().map(part).collect::<Option<_>>()?;
        // The blocks of an MCU are in the frame's order.
        if !parts.is_sorted_by(|a, b| a.component < b.component) {
            return None;
        }
        let (high, low) = (u32::from(bits >> 4), u32::from(bits & 15));
        Some(Scan { parts, first: usize::from(first), last: usize::from(last), high, low })
    }

    /// What follows the last segment.
    pub(super) fn rest(&self) -> Option<&'a [u8]> {
        self.bytes.get(self.at..)
    }

    /// Goes on behind the data of a scan.
    pub(super) fn skip(&mut self, length: usize) {
        self.at += length;
    }

    /// The frame header, after a scan was found.
    pub(super) fn frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    /// The quantisation table of a component, in the transform's order.
    pub(super) fn quant(&self, component: &Component) -> Option<[i16; 64]> {
        self.quants[component.quant]
    }

    /// A DC (0) or AC (1) table.
    pub(super) fn spec(&self, kind: usize, index: usize) -> Option<&Spec> {
        self.specs[kind][index].as_ref()
    }

    /// What the samples are, by libjpeg's rules. Asked when the first scan was found.
    pub(super) fn stored(&self) -> Option<Stored> {
        let ids: Vec<u8> = self.frame.as_ref()?.components.iter().map(|c| c.id).collect();
        Some(match (ids.len(), self.adobe) {
            (1, _) => Stored::Gray,
            (3, _) if self.jfif => Stored::Ycc,
            (3, Some(0)) => Stored::Rgb,
            (3, Some(1)) => Stored::Ycc,
            (3, None) if ids == *b"RGB" => Stored::Rgb,
            (3, None) => Stored::Ycc,
            (4, None | Some(0)) => Stored::Cmyk,
            (4, Some(2)) => Stored::Ycck,
            // A transform that libjpeg does not know and warns about.
            _ => return None,
        })
    }
}
