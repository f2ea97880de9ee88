//! What decoding a JPEG 2000 takes: memory and time of the crate that decodes it, part by part, before it sees the
//! file. It must not know how a file says it.

use super::codestream::{Codestream, Rect};
use super::tile::{Coding, Tile};
use crate::error::{Error, Result};
use crate::limits;

/// Bytes of what the crate keeps of a tile, of one component of it, and of a level of that.
const TILE: u64 = 192;
const COMPONENT: u64 = 160;
const LEVEL: u64 = 2;
const STEP: u64 = 4;
/// Bytes of a band of one level, with what holds three of them together.
const BAND: u64 = 56 + 14;
/// Bytes of a precinct of a band, of a code block, of a node of the trees over its blocks, of a layer of a block, and
/// of a segment.
const PRECINCT: u64 = 48;
const BLOCK: u64 = 48;
const NODE: u64 = 48;
const LAYER: u64 = 24;
const SEGMENT: u64 = 24;
/// Bytes of a precinct that is sorted by its place, and of a packet that is remembered.
const SORTED: u64 = 24;
const PACKET: u64 = 40;

/// Fewest bits that a code block takes in a packet, and each further segment of it.
const BLOCK_BITS: u64 = 6;
const SEGMENT_BITS: u64 = 3;

/// Nanoseconds of a tile, however small.
const TILE_TIME: f64 = 1500.0;
/// Nanoseconds of a band, a precinct, a block, a call that builds a node of a tree, a precinct that is sorted.
const BAND_TIME: f64 = 90.0;
const PRECINCT_TIME: f64 = 60.0;
const BLOCK_TIME: f64 = 40.0;
const CALL_TIME: f64 = 4.0;
const SORTED_TIME: f64 = 60.0;
/// Nanoseconds of a sample: transforms, and each pass over it.
const SAMPLE_TIME: f64 = 6.0;
const PASS_TIME: f64 = 0.5;
/// Nanoseconds of a byte of memory that is used for the first time.
const BYTE_TIME: f64 = 0.3;

/// What it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Price {
    /// Bytes, beside the samples that are made of what the crate gives.
    pub(super) bytes: u64,
    pub(super) nanoseconds: f64,
}

/// What decoding a codestream takes, of which all headers are read.
///
/// # Errors
/// When they are damaged, or tell of more parts than the limit.
pub(super) fn price(bytes: &[u8]) -> Result<Price> {
    let mut stream = Codestream::open(bytes)?;
    stream.read_tiles()?;
    let length = bytes.len() as u64;
    let (mut parts, mut largest) = (Parts::default(), Parts::default());
    let mut kept = 0;
    for number in 0..stream.tiles {
        let (tile, rect) = stream.tile(number);
        kept += tile.kept();
        let of_tile = Parts::of_tile(tile, rect, stream.changes(tile) as u64);
        parts.add(&of_tile);
        largest.grow(&of_tile);
        if parts.count() > limits::MAX_JPEG_2000_PARTS {
            return Err(Error::invalid(format!(
                "more than {} precincts, code blocks and layers of them, the limit of an image",
                limits::MAX_JPEG_2000_PARTS
            )));
        }
    }
    let pixels: u64 = stream.size().iter().product();
    let planes = stream.bits.len() as u64;
    // What does not say how it ends is decoded from a copy that does.
    let copy = if stream.ending.is_told() { 0 } else { length };
    let bytes = kept + copy + largest.bytes(length) + planes.saturating_mul(pixels).saturating_mul(4);
    let tiles = stream.tiles as f64 * TILE_TIME;
    Ok(Price { bytes, nanoseconds: tiles + parts.nanoseconds(length) + bytes as f64 * BYTE_TIME })
}

impl Tile {
    /// Bytes that are kept of it from the beginning to the end.
    fn kept(&self) -> u64 {
        let of = |coding: &Coding| COMPONENT + u64::from(coding.levels) * LEVEL + coding.steps as u64 * STEP;
        TILE + self.codings.iter().map(of).sum::<u64>()
    }
}

/// How many parts there are of each kind.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    bands: u64,
    precincts: u64,
    /// Those of all its bands as one, each time that they are sorted.
    sorted: u64,
    blocks: u64,
    layers: u64,
    nodes: u64,
    /// Calls that build nodes.
    calls: u64,
    packets: u64,
    /// Samples of all components, and of the largest.
    samples: u64,
    plane: u64,
    /// Samples, each pass over them.
    passes: u64,
    /// Most segments of a block in one layer.
    segments: u64,
    /// Samples of the largest block.
    block: u64,
    most_passes: u64,
}

impl Parts {
    fn of_tile(tile: &Tile, rect: Rect, changes: u64) -> Self {
        let mut parts = Self::default();
        for coding in &tile.codings {
            parts.add_component(coding, rect, tile.layers);
        }
        if tile.sorts || changes > 0 {
            parts.sorted = parts.sorted.saturating_mul(changes.max(1));
        } else {
            parts.sorted = 0;
        }
        if changes == 0 {
            parts.packets = 0;
        }
        parts
    }

    fn add_component(&mut self, coding: &Coding, tile: Rect, layers: u64) {
        let plane = tile.divided(coding.step, [0, 0]);
        let passes = u64::from(coding.passes());
        self.samples = self.samples.saturating_add(plane.area());
        self.plane = self.plane.max(plane.area());
        self.passes = self.passes.saturating_add(plane.area().saturating_mul(passes));
        self.most_passes = self.most_passes.max(passes);
        self.block = self.block.max(1 << (coding.block[0] + coding.block[1]));
        self.segments = self.segments.max(if coding.many_segments { passes } else { 1 });
        for (resolution, &sides) in coding.precincts.iter().enumerate() {
            let halvings = u32::from(coding.levels) - resolution as u32;
            let whole = plane.divided([1 << halvings; 2], [0, 0]);
            let precincts = whole.cells(sides);
            let count = precincts[0] * precincts[1];
            self.sorted += count;
            self.packets = self.packets.saturating_add(count * layers);
            if resolution == 0 {
                self.add_band(whole, count, sides, coding.block, layers);
                continue;
            }
            for high in [[1, 0], [0, 1], [1, 1]] {
                let half = 1 << halvings;
                let band = plane.divided([2 * half; 2], high.map(|high| high * half));
                self.add_band(band, count, sides.map(|side| side.saturating_sub(1)), coding.block, layers);
            }
        }
    }

    fn add_band(&mut self, band: Rect, precincts: u64, sides: [u8; 2], block: [u8; 2], layers: u64) {
        let block = [0, 1].map(|axis| block[axis].min(sides[axis]));
        let cells = band.cells(block);
        let blocks = cells[0] * cells[1];
        // Those of a precinct in the middle; one at the border has fewer.
        let most = [0, 1].map(|axis| cells[axis].min(1 << (sides[axis] - block[axis])));
        let depth = most.map(|side| side.max(1).next_power_of_two().ilog2()).into_iter().max().unwrap_or(0);
        let levels = u64::from(depth) + 1;
        let in_each = precincts.saturating_mul(tree(most));
        let in_all =
            (blocks + blocks / 3).saturating_add(precincts.saturating_mul(2 * levels + most[0] + most[1]));
        self.bands += 1;
        self.precincts += precincts;
        self.blocks += blocks;
        self.layers = self.layers.saturating_add(blocks.saturating_mul(layers));
        self.nodes = self.nodes.saturating_add(2 * in_each.min(in_all));
        // A tree is built as if it were a square, with calls for what is not there.
        self.calls = self.calls.saturating_add(precincts.saturating_mul(2 * ((4 << (2 * depth)) / 3)));
    }

    /// What is bounded.
    fn count(&self) -> u64 {
        // Calls leave nothing behind.
        [self.bands, self.precincts, self.sorted, self.blocks, self.layers, self.nodes, self.calls / 8]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Segments of so many bytes of packets.
    fn segments(&self, length: u64) -> u64 {
        let bits = length.saturating_mul(8);
        let fit = if self.segments > 1 { bits / SEGMENT_BITS } else { bits / BLOCK_BITS };
        self.layers.saturating_mul(self.segments).min(fit)
    }

    /// Bytes that it takes to decode a tile of these parts, the crate's lists being twice as long as they need at most.
    fn bytes(&self, length: u64) -> u64 {
        let list = |count: u64, bytes: u64| if count == 0 { 0 } else { count.next_power_of_two() * bytes };
        let lists = list(self.bands, BAND)
            + list(self.precincts, PRECINCT)
            + list(self.blocks, BLOCK)
            + list(self.layers, LAYER)
            + list(self.nodes, NODE)
            + list(self.segments(length), SEGMENT)
            + list(self.sorted, SORTED)
            + self.sorted * SORTED / 2
            + self.packets.min(length) * PACKET;
        // Coefficients and transformed samples of one component, and those of its half.
        lists + self.plane * 4 + self.plane * 4 + self.plane
    }

    fn nanoseconds(&self, length: u64) -> f64 {
        let coded =
            self.segments(length).min(length.saturating_mul(8) / BLOCK_BITS).saturating_mul(self.block);
        let passes = self.passes.min(coded.saturating_mul(self.most_passes));
        self.bands as f64 * BAND_TIME
            + self.precincts as f64 * PRECINCT_TIME
            + self.blocks as f64 * BLOCK_TIME
            + self.calls as f64 * CALL_TIME
            + self.sorted as f64 * SORTED_TIME
            + self.samples as f64 * SAMPLE_TIME
            + passes as f64 * PASS_TIME
    }

    fn add(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
    }

    /// The larger of both, of each kind.
    fn grow(&mut self, other: &Self) {
        self.combine(other, u64::max);
    }

    fn combine(&mut self, other: &Self, by: impl Fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.bands, other.bands),
            (&mut self.precincts, other.precincts),
            (&mut self.sorted, other.sorted),
            (&mut self.blocks, other.blocks),
            (&mut self.layers, other.layers),
            (&mut self.nodes, other.nodes),
            (&mut self.calls, other.calls),
            (&mut self.packets, other.packets),
            (&mut self.samples, other.samples),
            (&mut self.passes, other.passes),
        ];
        for (mine, theirs) in pairs {
            *mine = by(*mine, theirs);
        }
        self.plane = self.plane.max(other.plane);
        self.segments = self.segments.max(other.segments);
        self.block = self.block.max(other.block);
        self.most_passes = self.most_passes.max(other.most_passes);
    }
}

impl Rect {
    /// The samples in it of which there is one every `by`, from `less` on.
    fn divided(self, by: [u64; 2], less: [u64; 2]) -> Self {
        let side = |at: [u64; 2]| [0, 1].map(|axis| at[axis].saturating_sub(less[axis]).div_ceil(by[axis]));
        Self { from: side(self.from), to: side(self.to) }
    }

    /// How many cells of a grid of such sides, told by their logarithms, it touches across and down: none if it is
    /// empty.
    fn cells(self, sides: [u8; 2]) -> [u64; 2] {
        if self.area() == 0 {
            // An image without rows still has columns of precincts, but none of its parts.
            return [0, 0];
        }
        [0, 1].map(|axis| self.to[axis].div_ceil(1 << sides[axis]) - (self.from[axis] >> sides[axis]))
    }
}

/// Nodes of a tree over so many blocks.
fn tree(mut sides: [u64; 2]) -> u64 {
    let mut nodes = 0_u64;
    loop {
        nodes = nodes.saturating_add((sides[0] * sides[1]).max(1));
        if sides[0] <= 1 && sides[1] <= 1 {
            return nodes;
        }
        sides = sides.map(|side| side.div_ceil(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a codestream of one component says, and the data of its tiles.
    #[derive(Clone, Copy)]
    struct Made {
        image: [u32; 2],
        tile: [u32; 2],
        levels: u8,
        /// Logarithm of the sides of all precincts, packed as the file has it.
        precincts: Option<u8>,
        layers: u16,
        steps: usize,
        /// Changes of the order of packets.
        changes: usize,
        tiles: u16,
        data: usize,
    }

    const SOUND: Made = Made {
        image: [64, 64],
        tile: [64, 64],
        levels: 1,
        precincts: None,
        layers: 1,
        steps: 4,
        changes: 0,
        tiles: 1,
        data: 4,
    };

    impl Made {
        fn bytes(self) -> Vec<u8> {
            let mut made = vec![0xFF, 0x4F];
            let sides = [self.image, [0, 0], self.tile, [0, 0]].concat();
            let sides = sides.into_iter().flat_map(u32::to_be_bytes);
            let size: Vec<u8> = [0, 0].into_iter().chain(sides).chain([0, 1, 7, 1, 1]).collect();
            segment(&mut made, 0x51, &size);
            let mut style = vec![u8::from(self.precincts.is_some()), 0];
            style.extend(self.layers.to_be_bytes());
            style.extend([0, self.levels, 0, 0, 0, 1]);
            style
                .extend(self.precincts.map_or(Vec::new(), |sides| vec![sides; usize::from(self.levels) + 1]));
            segment(&mut made, 0x52, &style);
            segment(&mut made, 0x5C, &[&[0x40][..], &vec![8 << 3; self.steps]].concat());
            if self.changes > 0 {
                segment(&mut made, 0x5F, &[0, 0, 0, 1, 1, 1, 2].repeat(self.changes));
            }
            for number in 0..self.tiles {
                let mut head = number.to_be_bytes().to_vec();
                head.extend((14 + self.data as u32).to_be_bytes());
                head.extend([0, 1]);
                segment(&mut made, 0x90, &head);
                made.extend([0xFF, 0x93]);
                made.extend(vec![0; self.data]);
            }
            made.extend([0xFF, 0xD9]);
            made
        }

        /// Why it is refused.
        fn refused(self) -> String {
            price(&self.bytes()).unwrap_err().to_string()
        }
    }

    fn segment(made: &mut Vec<u8>, marker: u8, body: &[u8]) {
        made.extend([0xFF, marker]);
        made.extend((body.len() as u16 + 2).to_be_bytes());
        made.extend(body);
    }

    #[test]
    fn parts_of_one_sample_are_refused() {
        // A tile for each pixel; a precinct for each; 16 blocks of layers for each 64 samples.
        let tiles = Made { image: [1_000, 950], tile: [1, 1], ..SOUND }.refused();
        assert!(tiles.contains("950000 tiles, more than the limit of 65535"), "{tiles}");
        let image = [8_191, 8_191];
        let precincts = Made { image, tile: image, levels: 0, precincts: Some(0), ..SOUND };
        assert!(precincts.refused().contains("code blocks"), "{}", precincts.refused());
        let layers = Made { image, tile: image, layers: 32, ..SOUND };
        assert!(layers.refused().contains("code blocks"), "{}", layers.refused());
    }

    /// The trees over the blocks of a precinct are built as if it were a square: one of 8,192 blocks below one another
    /// as 67 million.
    #[test]
    fn blocks_in_one_column_are_refused() {
        let image = [4, 1 << 24];
        let column = Made { image, tile: image, levels: 0, ..SOUND };
        assert!(column.refused().contains("code blocks"), "{}", column.refused());
    }

    #[test]
    fn what_is_kept_of_each_tile_is_bounded() {
        assert!(Made { steps: 98, ..SOUND }.refused().contains("98 step sizes, expected 1 to 97"));
        let changes = Made { changes: 33, ..SOUND }.refused();
        assert!(changes.contains("changes 33 times, more than the limit of 32"), "{changes}");
    }

    #[test]
    fn a_tile_that_is_missing_is_damage() {
        let made = Made { tile: [32, 64], ..SOUND };
        assert!(made.refused().contains("of 2 tiles number 1 is missing"), "{}", made.refused());
        assert!(price(&Made { tiles: 2, ..made }.bytes()).is_ok());
    }

    #[test]
    fn what_is_usual_is_priced_by_its_samples() {
        let price = price(&SOUND.bytes()).unwrap();
        // Samples as floats three times, and a hundred blocks with their trees.
        assert!((40_000..200_000).contains(&price.bytes), "{price:?}");
        let image = [2_048, 2_048];
        let large = Made { image, tile: image, levels: 5, steps: 16, ..SOUND };
        let [large, tiny] = [large, SOUND].map(|made| super::price(&made.bytes()).unwrap());
        assert!(large.nanoseconds > 500.0 * tiny.nanoseconds, "{large:?} {tiny:?}");
    }

    #[test]
    fn passes_are_bounded_by_what_is_coded() {
        let image = [2_048, 2_048];
        let of = |data| price(&Made { image, tile: image, data, ..SOUND }.bytes()).unwrap().nanoseconds;
        assert!(of(1 << 20) > 1.5 * of(1), "{} {}", of(1 << 20), of(1));
    }
}
