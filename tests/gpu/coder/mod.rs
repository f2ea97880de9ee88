//! A JPEG encoder for what libjpeg-turbo's does not write: any sampling factors, restarts, tables and colours. It says
//! what pixels an exact decoder makes of a file, so that decoders can be held to that. It must not know decoders.

mod entropy;
mod planes;

use entropy::{Bits, Codes, Table, Token, tokens, zigzag};
use planes::{Block, Plane};
pub(crate) use planes::{Content, Dice};

/// What components are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Gray,
    YCbCr,
    Rgb,
}

/// Which Huffman tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Those of the standard.
    Standard,
    /// The best for the image.
    Optimised,
    /// Codes up to 16 bits, whatever the image needs.
    Odd,
}

/// What a file says of its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Only identifiers of components.
    Nothing,
    Jfif,
    Adobe,
}

/// What to encode.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) content: Content,
    pub(crate) colour: Colour,
    pub(crate) mark: Mark,
    /// Of each component: blocks of an MCU across and down.
    pub(crate) factors: Vec<[usize; 2]>,
    pub(crate) coding: Coding,
    /// Whether all components share one pair of Huffman tables and one of quantisation.
    pub(crate) shared: bool,
    /// 1 to 100, as libjpeg counts.
    pub(crate) quality: usize,
    /// Whether values of quantisation tables have 16 bits.
    pub(crate) wide: bool,
    /// MCUs between restarts.
    pub(crate) restart: Option<usize>,
    /// Bytes of ones before each marker in the scan.
    pub(crate) fill: usize,
    /// Whether each component has a scan of its own.
    pub(crate) separate: bool,
    pub(crate) seed: u64,
}

/// Sampling factors of three components that decoders meet, the common ones first.
pub(crate) const FACTORS: [[[usize; 2]; 3]; 17] = [
    [[1, 1], [1, 1], [1, 1]],
    [[2, 1], [1, 1], [1, 1]],
    [[1, 2], [1, 1], [1, 1]],
    [[2, 2], [1, 1], [1, 1]],
    [[4, 1], [1, 1], [1, 1]],
    [[4, 2], [1, 1], [1, 1]],
    [[1, 4], [1, 1], [1, 1]],
    [[2, 4], [1, 1], [1, 1]],
    [[1, 1], [1, 4], [1, 1]],
    [[2, 2], [2, 1], [2, 1]],
    [[2, 2], [1, 2], [1, 2]],
    [[2, 1], [2, 1], [1, 1]],
    [[2, 1], [2, 1], [2, 1]],
    [[1, 1], [2, 2], [1, 1]],
    [[1, 1], [2, 1], [1, 2]],
    [[1, 1], [1, 1], [2, 2]],
    [[4, 1], [1, 2], [2, 1]],
];

/// Of each MCU the blocks, with the tables that they take.
type Scan = Vec<Vec<(usize, Vec<Token>)>>;

/// A file, and what it holds.
pub(crate) struct Encoded {
    pub(crate) file: Vec<u8>,
    /// Of an exact decoder that replicates chroma: RGB, or luma of a gray file.
    pub(crate) pixels: Vec<u8>,
}

impl Recipe {
    /// One of all that there are, with sides up to `side`.
    pub(crate) fn random(seed: u64, side: usize) -> Self {
        let mut dice = Dice::new(seed);
        let dice = &mut dice;
        let colour = dice.pick(&[Colour::Gray, Colour::YCbCr, Colour::YCbCr, Colour::YCbCr, Colour::Rgb]);
        let factors = match colour {
            Colour::Gray => vec![dice.pick(&[[1, 1], [1, 1], [2, 2], [4, 3]])],
            _ => dice.pick(&FACTORS).to_vec(),
        };
        Self {
            width: 1 + dice.below(side),
            height: 1 + dice.below(side),
            content: dice.pick(&Content::ALL),
            colour,
            mark: match colour {
                Colour::Gray | Colour::YCbCr => dice.pick(&[Mark::Nothing, Mark::Jfif, Mark::Adobe]),
                Colour::Rgb => dice.pick(&[Mark::Nothing, Mark::Adobe]),
            },
            factors,
            coding: dice.pick(&[Coding::Standard, Coding::Optimised, Coding::Odd]),
            shared: dice.below(3) == 0,
            quality: 1 + dice.below(100),
            wide: dice.below(6) == 0,
            restart: (dice.below(3) == 0).then(|| 1 + dice.below(dice.clone().pick(&[1, 4, 40]))),
            fill: dice.pick(&[0, 0, 0, 1, 3]),
            separate: false,
            seed,
        }
    }

    /// The file.
    pub(crate) fn encode(&self) -> Encoded {
        let mut dice = Dice::new(!self.seed);
        let quantisation = [self.quantisation(false), self.quantisation(true)];
        let planes = self.planes(&mut dice);
        let tables = |component: usize| usize::from(component > 0 && !self.shared);
        let largest = self.largest();
        let steps = |i: usize| [0, 1].map(|axis| largest[axis] / self.blocks(i)[axis]);
        let shrunk: Vec<Plane> = planes.iter().enumerate().map(|(i, plane)| plane.shrunk(steps(i))).collect();

        let mut decoded: Vec<Plane> =
            shrunk.iter().map(|plane| Plane::new(plane.width, plane.height)).collect();
        let across = self.width.div_ceil(8 * largest[0]);
        let mcus = across * self.height.div_ceil(8 * largest[1]);
        let mut scans: Vec<Scan> = Vec::new();
        for parts in self.parts() {
            // Alone a component is not interleaved, and has no blocks that are all outside.
            let alone = parts.len() == 1;
            let sides = |i: usize| [shrunk[i].width.div_ceil(8), shrunk[i].height.div_ceil(8)];
            let (across, mcus) =
                if alone { (sides(parts[0])[0], sides(parts[0]).iter().product()) } else { (across, mcus) };
            let mut scan = Vec::with_capacity(mcus);
            let mut before = vec![0; planes.len()];
            for mcu in 0..mcus {
                if self.restart.is_some_and(|interval| mcu % interval == 0) {
                    before.fill(0);
                }
                let mut blocks = Vec::new();
                for &i in &parts {
                    let [w, h] = if alone { [1, 1] } else { self.blocks(i) };
                    for place in 0..w * h {
                        let (x, y) = (mcu % across * w + place % w, mcu / across * h + place / w);
                        let block: Block = shrunk[i].block(x, y, &quantisation[tables(i)]);
                        blocks.push((tables(i), tokens(&block, before[i])));
                        before[i] = block[0];
                        decoded[i].put(x, y, &block, &quantisation[tables(i)]);
                    }
                }
                scan.push(blocks);
            }
            scans.push(scan);
        }

        let huffman = self.huffman(&scans, &mut dice);
        let mut file = vec![0xFF, 0xD8];
        self.header(&mut file, &quantisation, &huffman);
        let codes: Vec<[Codes; 2]> = huffman.iter().map(|pair| pair.each_ref().map(Codes::from)).collect();
        let mut bits = Bits::default();
        for (parts, scan) in self.parts().iter().zip(&scans) {
            bits.marker(0xDA, if bits.bytes.is_empty() { 0 } else { self.fill });
            bits.bytes.extend(self.scan_header(parts));
            for (mcu, blocks) in scan.iter().enumerate() {
                if let Some(interval) = self.restart.filter(|interval| mcu > 0 && mcu % interval == 0) {
                    bits.marker(0xD0 + ((mcu / interval + 7) % 8) as u8, self.fill);
                }
                blocks.iter().for_each(|(pair, tokens)| bits.tokens(tokens, &codes[*pair]));
            }
        }
        bits.marker(0xD9, self.fill);
        file.extend(bits.bytes);
        Encoded { file, pixels: self.pixels(&decoded) }
    }

    /// The components of each scan.
    fn parts(&self) -> Vec<Vec<usize>> {
        let all = 0..self.factors.len();
        if self.separate { all.map(|i| vec![i]).collect() } else { vec![all.collect()] }
    }

    /// Blocks of a component in an MCU: alone it is not interleaved.
    fn blocks(&self, component: usize) -> [usize; 2] {
        if self.factors.len() == 1 { [1, 1] } else { self.factors[component] }
    }

    fn largest(&self) -> [usize; 2] {
        let blocks = |axis: usize| (0..self.factors.len()).map(move |i| self.blocks(i)[axis]);
        [0, 1].map(|axis| blocks(axis).max().unwrap_or(1))
    }

    /// Full planes of the components.
    fn planes(&self, dice: &mut Dice) -> Vec<Plane> {
        self.factors.iter().map(|_| self.content.plane(self.width, self.height, dice)).collect()
    }

    /// A table, row by row: coarser for high frequencies, more so for chroma.
    fn quantisation(&self, chroma: bool) -> [u16; 64] {
        let scale =
            if self.quality < 50 { 50.0 / self.quality as f64 } else { 2.0 - self.quality as f64 / 50.0 };
        let largest = if self.wide { 65_535.0 } else { 255.0 };
        let steep = if chroma { 9.0 } else { 6.0 };
        std::array::from_fn(|i| {
            let value = (12.0 + steep * (i % 8 + i / 8) as f64) * scale;
            // The highest values stand where only 16 bits can say them.
            let value = if self.wide && i % 8 + i / 8 > 10 { 900.0 * value } else { value };
            value.round().clamp(1.0, largest) as u16
        })
    }

    /// A pair of tables for luma and, unless they are shared, one for chroma.
    fn huffman(&self, scans: &[Scan], dice: &mut Dice) -> Vec<[Table; 2]> {
        let pairs = if self.shared || self.factors.len() == 1 { 1 } else { 2 };
        if self.coding == Coding::Standard {
            return standard().into_iter().take(pairs).collect();
        }
        let mut weights = vec![[[0; 256]; 2]; pairs];
        for (pair, tokens) in scans.iter().flatten().flatten() {
            for token in tokens {
                weights[*pair][usize::from(!token.first)][usize::from(token.symbol)] += 1;
            }
        }
        let mut table = |weights: &[u64; 256], first: bool| match self.coding {
            Coding::Odd => Table::odd(weights, first, dice),
            _ => Table::of(weights),
        };
        weights.iter().map(|[first, others]| [table(first, true), table(others, false)]).collect()
    }

    fn header(&self, file: &mut Vec<u8>, quantisation: &[[u16; 64]; 2], huffman: &[[Table; 2]]) {
        let mut segment = |marker: u8, payload: &[u8]| {
            file.extend([0xFF, marker]);
            file.extend((payload.len() as u16 + 2).to_be_bytes());
            file.extend(payload);
        };
        match self.mark {
            Mark::Nothing => {}
            Mark::Jfif => segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
            Mark::Adobe => {
                let transform = u8::from(self.colour == Colour::YCbCr);
                segment(0xEE, &[b"Adobe\0\x64\0\0\0\0".as_slice(), &[transform]].concat());
            }
        }
        for (number, values) in quantisation.iter().enumerate() {
            let mut payload = vec![number as u8 | u8::from(self.wide) << 4];
            for at in zigzag() {
                let [high, low] = values[at].to_be_bytes();
                payload.extend(self.wide.then_some(high));
                payload.push(low);
            }
            segment(0xDB, &payload);
        }
        let sides = [self.height, self.width].map(|side| (side as u16).to_be_bytes());
        let count = self.factors.len() as u8;
        let mut frame = [&[8], sides.as_flattened(), &[count]].concat();
        for (i, [across, down]) in self.factors.iter().enumerate() {
            frame.extend([self.ids()[i], (across << 4 | down) as u8, self.table(i)]);
        }
        segment(if self.wide { 0xC1 } else { 0xC0 }, &frame);
        for (number, pair) in huffman.iter().enumerate() {
            for (class, table) in pair.iter().enumerate() {
                segment(0xC4, &[&[(class << 4 | number) as u8], &table.counts[..], &table.symbols].concat());
            }
        }
        if let Some(interval) = self.restart {
            segment(0xDD, &(interval as u16).to_be_bytes());
        }
    }

    /// What components are called.
    fn ids(&self) -> &'static [u8; 3] {
        match (self.colour, self.mark) {
            (Colour::Rgb, Mark::Nothing) => b"RGB",
            // What says nothing of colours is YCbCr when it counts from 1, or is none of the known.
            (Colour::YCbCr, _) if self.seed.is_multiple_of(5) => &[7, 200, 0],
            _ => &[1, 2, 3],
        }
    }

    /// Which tables a component has.
    fn table(&self, component: usize) -> u8 {
        u8::from(component > 0 && !self.shared)
    }

    /// What follows the marker of a scan, up to the data.
    fn scan_header(&self, parts: &[usize]) -> Vec<u8> {
        let mut header = vec![0, 6 + 2 * parts.len() as u8, parts.len() as u8];
        parts.iter().for_each(|&i| header.extend([self.ids()[i], self.table(i) * 0x11]));
        header.extend([0, 63, 0]);
        header
    }

    /// Pixels of decoded planes.
    fn pixels(&self, planes: &[Plane]) -> Vec<u8> {
        let largest = self.largest();
        let mut pixels = Vec::with_capacity(self.width * self.height * planes.len());
        let mut sample = vec![0.0; planes.len()];
        for y in 0..self.height {
            for x in 0..self.width {
                for (i, plane) in planes.iter().enumerate() {
                    let [w, h] = self.blocks(i);
                    sample[i] = plane.get(x / (largest[0] / w), y / (largest[1] / h));
                }
                let rgb = match (self.colour, sample.as_slice()) {
                    (Colour::YCbCr, &[y, cb, cr]) => {
                        let (cb, cr) = (cb - 128.0, cr - 128.0);
                        vec![y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb]
                    }
                    (_, sample) => sample.to_vec(),
                };
                pixels.extend(rgb.into_iter().map(|value| value.round().clamp(0.0, 255.0) as u8));
            }
        }
        pixels
    }
}

/// The tables of the standard for luma and for chroma, from a file that has them.
fn standard() -> [[Table; 2]; 2] {
    let file = crate::pictures::Recipe::new(16, 16, turbojpeg::Subsamp::None, 1).jpeg();
    let mut tables: [[Table; 2]; 2] = Default::default();
    let mut at = 2;
    while file[at + 1] != 0xDA {
        let length = usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        let mut payload = &file[at + 4..at + 2 + length];
        while let Some((kind, rest)) = payload.split_first().filter(|_| file[at + 1] == 0xC4) {
            let counts: [u8; 16] = rest[..16].try_into().unwrap();
            let symbols = counts.iter().map(|&count| usize::from(count)).sum::<usize>();
            tables[usize::from(kind & 15)][usize::from(kind >> 4)] =
                Table { counts, symbols: rest[16..16 + symbols].to_vec() };
            payload = &rest[16 + symbols..];
        }
        at += 2 + length;
    }
    tables
}

/// `file` with a few bytes changed, taken out or put in, mostly in its scan.
pub(crate) fn damaged(file: &[u8], seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut file = file.to_vec();
    let scan = file.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap_or_default();
    for _ in 0..1 + dice.below(4) {
        let start = if dice.below(8) == 0 { 2 } else { scan + 2 };
        let at = start + dice.below(file.len().saturating_sub(start + 2));
        let byte = match dice.below(10) {
            0 => 0xFF,
            1 => 0,
            2..7 => file.get(at).copied().unwrap_or_default() ^ 1 << dice.below(8),
            _ => dice.next() as u8,
        };
        let end = (at + dice.below(dice.clone().pick(&[2, 9, 200]))).min(file.len());
        match dice.below(6) {
            0 if at < end => drop(file.drain(at..end)),
            1 => file.insert(at.min(file.len()), byte),
            2 if at < end => file[at..end].fill(byte),
            _ => file.get_mut(at).into_iter().for_each(|old| *old = byte),
        }
    }
    file
}
