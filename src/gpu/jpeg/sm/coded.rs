//! Which JPEGs the device's SMs take, and what they have to know of one: 8 bits, sequential with one scan or
//! progressive, one or three components, each as fine as the finest, or a half or a quarter of it. It must not know how
//! they decode.

use arrayvec::ArrayVec;

use super::constants::MAX_MCU_BLOCKS;
use super::scan::{Layout, MIN_BLOCK_BITS, room};
use crate::gpu::jpeg::header::{self, Header, Quantisation, Scan};
use crate::gpu::jpeg::huffman::Huffman;
use crate::limits;

/// Rows and columns of a block.
pub(super) const BLOCK: usize = 8;

/// The most pairs of Huffman tables that a scan uses.
const MAX_PAIRS: usize = 2;

/// What a file's components are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Luma alone.
    Gray,
    /// As JFIF has them.
    YCbCr,
    /// Red, green and blue as they are.
    Rgb,
}

impl Colour {
    /// As kernels have it.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Gray => 0,
            Self::YCbCr => 1,
            Self::Rgb => 2,
        }
    }

    /// As libjpeg-turbo decides.
    fn of(header: &Header<'_>) -> Self {
        let named_rgb = || header.components.iter().map(|component| component.id).eq(*b"RGB");
        match (header.components.len(), header.jfif, header.adobe) {
            (1, ..) => Self::Gray,
            (_, false, Some(0)) => Self::Rgb,
            (_, false, None) if named_rgb() => Self::Rgb,
            _ => Self::YCbCr,
        }
    }
}

/// A component: how it is sampled, and which of the file's tables it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// Blocks of an MCU across.
    pub across: usize,
    /// Blocks of an MCU down.
    pub down: usize,
    /// Place in [`Coded::quantisation`].
    pub table: usize,
    /// Place in [`Coded::pairs`], unless there are scans.
    pub pair: usize,
}

/// A file that the SMs take.
#[derive(Debug, Clone)]
pub struct Coded<'a> {
    /// Columns as stored.
    pub width: usize,
    /// Rows as stored.
    pub height: usize,
    /// What the components are.
    pub colour: Colour,
    /// One or three, in the order of their blocks.
    pub components: ArrayVec<Component, 3>,
    /// Tables in use, each once. No value is 0.
    pub quantisation: ArrayVec<Quantisation<'a>, 3>,
    /// Tables in use for the first coefficient of a block and for the others, each pair once; none if there are scans.
    pub pairs: ArrayVec<[Huffman<'a>; 2], 3>,
    /// MCUs between restarts; `None` without.
    pub restart_interval: Option<usize>,
    /// What follows the header of the scan: entropy-coded segments, then a marker, then anything.
    pub data: &'a [u8],
    /// Of a progressive file; none of a sequential one.
    pub scans: Vec<Scan<'a>>,
}

impl<'a> Coded<'a> {
    /// Looks at a file. `None`: it is for another decoder.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        Self::of(&Header::read(bytes)?)
    }

    /// Looks at a file whose header was read.
    pub fn of(header: &Header<'a>) -> Option<Self> {
        let mut coded = Self {
            width: usize::from(header.width),
            height: usize::from(header.height),
            colour: Colour::of(header),
            components: ArrayVec::new(),
            quantisation: ArrayVec::new(),
            pairs: ArrayVec::new(),
            restart_interval: Some(usize::from(header.restart_interval)).filter(|&interval| interval > 0),
            data: header.data,
            scans: header.scans.clone(),
        };
        for component in &header.components {
            let component = coded.component(component)?;
            coded.components.push(component);
        }
        if let [alone] = coded.components.as_mut_slice() {
            // Nothing is interleaved: an MCU is a block, whatever the factors say.
            (alone.across, alone.down) = (1, 1);
        }
        coded.is_decodable().then_some(coded)
    }

    /// Takes the tables of a component.
    fn component(&mut self, found: &header::Component<'a>) -> Option<Component> {
        let [across, down] = found.factors.map(usize::from);
        let quantisation = found.quantisation;
        let table = place(&mut self.quantisation, quantisation, |table| !table.has_zero())?;
        let pair = match found.pair {
            Some(pair) => place(&mut self.pairs, pair, |pair| pair.iter().all(Huffman::is_usual))?,
            None => 0,
        };
        (self.pairs.len() <= MAX_PAIRS).then_some(Component { across, down, table, pair })
    }

    fn is_decodable(&self) -> bool {
        let [across, down] = self.factors();
        let halved =
            |largest: usize, own: usize| largest.is_multiple_of(own) && (largest / own).is_power_of_two();
        let even = |component: &Component| halved(across, component.across) && halved(down, component.down);
        let sides = [self.width, self.height].iter().all(|side| (1..=limits::MAX_SM_SIDE).contains(side));
        let pixels = (self.width * self.height) as u64;
        sides
            && pixels <= limits::MAX_IMAGE_PIXELS
            && self.components.iter().all(even)
            && self.blocks() <= MAX_MCU_BLOCKS
            && self.has_data()
            && self.room() <= limits::MAX_SM_SCAN_BYTES
    }

    /// Whether its data can be all of its scans.
    fn has_data(&self) -> bool {
        if !self.is_progressive() {
            return self.layout().fits(self.data.len());
        }
        let is_one = |scan: &Scan<'_>| {
            let usual = scan.tables.iter().all(Huffman::is_usual);
            usual && self.scan_layout(scan).fits(scan.data.len())
        };
        self.width * self.height <= limits::MAX_SM_PROGRESSIVE_PIXELS && self.scans.iter().all(is_one)
    }

    /// Whether it has scans of its own kind.
    pub fn is_progressive(&self) -> bool {
        !self.scans.is_empty()
    }

    /// The largest factors, across and down.
    pub fn factors(&self) -> [usize; 2] {
        let largest = |of: fn(&Component) -> usize| self.components.iter().map(of).max().unwrap_or(1);
        [largest(|component| component.across), largest(|component| component.down)]
    }

    /// MCUs of a row and of a column.
    pub fn grid(&self) -> [usize; 2] {
        let [across, down] = self.factors();
        [self.width.div_ceil(BLOCK * across), self.height.div_ceil(BLOCK * down)]
    }

    /// MCUs of the image.
    pub fn mcus(&self) -> usize {
        let [across, down] = self.grid();
        across * down
    }

    /// Bits of an MCU, on average; 0 of a progressive file, whose data is not cut.
    pub fn mcu_bits(&self) -> usize {
        if self.is_progressive() {
            return 0;
        }
        self.data.len() * 8 / self.mcus().max(1)
    }

    /// Blocks of an MCU.
    pub fn blocks(&self) -> usize {
        self.components.iter().map(|component| component.across * component.down).sum()
    }

    /// What its only scan consists of.
    pub fn layout(&self) -> Layout {
        let interval = self.restart_interval;
        Layout { mcus: self.mcus(), blocks: self.blocks(), block_bits: MIN_BLOCK_BITS, interval }
    }

    /// MCUs of a progressive scan, across and down: of one component alone they are its blocks.
    pub(super) fn scan_grid(&self, scan: &Scan<'_>) -> [usize; 2] {
        let alone = match scan.components.as_slice() {
            &[alone] => self.components.get(alone),
            _ => None,
        };
        let Some(alone) = alone else { return self.grid() };
        let [across, down] = self.factors();
        let blocks = |side: usize, own: usize, most: usize| (side * own).div_ceil(BLOCK * most);
        [blocks(self.width, alone.across, across), blocks(self.height, alone.down, down)]
    }

    /// What a progressive scan consists of.
    pub(super) fn scan_layout(&self, scan: &Scan<'_>) -> Layout {
        let [across, down] = self.scan_grid(scan);
        let parts = scan.components.iter().filter_map(|&place| self.components.get(place));
        let blocks = parts.map(|part| part.across * part.down).sum();
        let interval = Some(usize::from(scan.restart_interval)).filter(|&interval| interval > 0);
        Layout {
            mcus: across * down,
            blocks: if scan.components.len() > 1 { blocks } else { 1 },
            // A run of blocks without a coefficient has one code.
            block_bits: usize::from(scan.band[0] == 0),
            interval,
        }
    }

    /// Segments between restarts.
    pub fn segments(&self) -> usize {
        if self.is_progressive() {
            return self.scans.iter().map(|scan| self.scan_layout(scan).segments()).sum();
        }
        self.layout().segments()
    }

    /// Bytes that [`super::Scan::read`] may need for the data.
    pub fn room(&self) -> usize {
        room(self.data.len(), self.segments())
    }
}

/// Where `item` is in `items`; it is added when it is new and `usual`.
fn place<T: PartialEq, const N: usize>(
    items: &mut ArrayVec<T, N>,
    item: T,
    usual: impl Fn(&T) -> bool,
) -> Option<usize> {
    if let Some(place) = items.iter().position(|known| *known == item) {
        return Some(place);
    }
    usual(&item).then(|| {
        items.push(item);
        items.len() - 1
    })
}
