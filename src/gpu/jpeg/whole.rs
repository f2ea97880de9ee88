//! Whether the scan of a file has all that its header promises, told by following every code of it. It must not know
//! who decodes.
//!
//! A header promises blocks, and only the codes say how many there are: a file may be cut between two of them, have
//! fewer rows than it says, or codes that a flipped bit made others. Blocks that are not there the engines leave as
//! they find them, and what they find is another picture of theirs. So what they make of a file counts only when each
//! block of it has been found here. That takes a sixth of what it takes to decode the file, as no coefficient is kept.

use super::header::EOI;
use super::huffman::{Class, Huffman};
use super::sm::{Coded, Lookup};

/// The first of the markers between segments.
const RST0: u8 = 0xD0;

/// Coefficients of a block.
const BLOCK: u32 = 64;

/// Bits that one look takes in.
const BITS: u32 = 10;

/// A dequantised coefficient of 8-bit samples is at most 1,024 and half a step; some encoders go beyond to be sharper.
/// What is larger still no two decoders show alike.
const MAX_COEFFICIENT: u32 = 2_047;

/// Values of so many bits are within it whatever the quantisation, when that is of bytes.
const SMALL_BITS: u32 = 3;

/// Whether the engines, who take `bytes`, will write all of the picture. `false` is no proof of damage: what is unusual
/// is left to others, too.
pub fn is_whole(bytes: &[u8]) -> bool {
    Coded::read(bytes).and_then(|coded| follow(&coded)).is_some()
}

/// Follows all codes. `None`: some are missing, or mean nothing.
fn follow(coded: &Coded<'_>) -> Option<()> {
    let pairs: Vec<Pair> = coded.pairs.iter().map(Pair::new).collect::<Option<_>>()?;
    let steps: Vec<[u16; 64]> = coded.quantisation.iter().map(super::header::Quantisation::values).collect();
    let mut components = Vec::with_capacity(coded.components.len());
    for component in &coded.components {
        let (pair, steps) = (pairs.get(component.pair)?, steps.get(component.table)?);
        components.push(Component { blocks: component.across * component.down, pair, steps, dc: 0 });
    }
    let layout = coded.layout();
    let interval = layout.interval.unwrap_or(layout.mcus);
    let mut bits = Bits { data: coded.data, ..Bits::default() };
    let mut left = layout.mcus;
    for number in 0..layout.segments() {
        components.iter_mut().for_each(|component| component.dc = 0);
        let mcus = left.min(interval);
        for _ in 0..mcus {
            for component in &mut components {
                for _ in 0..component.blocks {
                    component.block(&mut bits)?;
                }
            }
        }
        left -= mcus;
        let marker = bits.end_segment()?;
        if marker != if left == 0 { EOI } else { RST0 + (number % 8) as u8 } {
            return None;
        }
    }
    (left == 0).then_some(())
}

/// A component on the way.
struct Component<'t> {
    /// Of an MCU.
    blocks: usize,
    pair: &'t Pair,
    /// What coefficients are multiplied by.
    steps: &'t [u16; 64],
    /// The first coefficient of the last block.
    dc: i32,
}

impl Component<'_> {
    /// Follows one block.
    #[inline]
    fn block(&mut self, bits: &mut Bits<'_>) -> Option<()> {
        let Pair { dc, ac, many } = self.pair;
        self.dc += bits.value(dc)?.1;
        check(self.dc, self.steps[0])?;
        let mut at = 1;
        loop {
            bits.fill();
            let several = many[bits.next(BITS) as usize];
            let (length, behind) = (several & 0xFF, at + (several >> 8 & 0xFF));
            // The last coefficient ends a block by itself: what follows is of the next.
            if several != 0 && behind < BLOCK {
                bits.skip(length)?;
                if several & END != 0 {
                    return Some(());
                }
                at = behind;
                continue;
            }
            let (entry, value) = bits.value(ac)?;
            let (size, advance) = (u32::from(entry >> 5 & 15), u32::from(entry >> 9));
            match (size, advance) {
                (0, BLOCK) => return Some(()),
                // Zeros to the end have a code of their own.
                (0, _) => {
                    at += advance;
                    (at < BLOCK).then_some(())?;
                }
                _ => {
                    at += advance;
                    check(value, *self.steps.get(at as usize - 1)?)?;
                    if at == BLOCK {
                        return Some(());
                    }
                }
            }
        }
    }
}

/// `None`: no encoder makes such a coefficient of 8-bit samples.
#[inline]
fn check(value: i32, step: u16) -> Option<()> {
    (value.unsigned_abs().saturating_mul(u32::from(step)) <= MAX_COEFFICIENT).then_some(())
}

/// Set in an entry whose last code ends the block.
const END: u32 = 1 << 16;

/// The tables of a component.
struct Pair {
    dc: Lookup,
    ac: Lookup,
    /// By the next bits, as many whole codes of the AC table as are in them, each with its value: bits 0 to 7 say how
    /// many bits these are, 8 to 15 how many coefficients. 0: one that is longer, or whose value may be too large.
    many: Box<[u32; 1 << BITS]>,
}

impl Pair {
    /// `None`: there are symbols that mean nothing in a scan of all coefficients.
    fn new([dc, ac]: &[Huffman<'_>; 2]) -> Option<Self> {
        let sensible = |&symbol: &u8| symbol & 15 > 0 || matches!(symbol, 0 | 0xF0);
        debug_assert!(dc.class() == Class::Dc && ac.class() == Class::Ac);
        ac.symbols().iter().all(sensible).then_some(())?;
        let (dc, ac) = (Lookup::new(dc), Lookup::new(ac));
        let mut many = Box::new([0; 1 << BITS]);
        for (next, several) in many.iter_mut().enumerate() {
            *several = codes_in(&ac, next as u16);
        }
        Some(Self { dc, ac, many })
    }
}

/// As many codes as are whole in `next`, which has [`BITS`] bits.
fn codes_in(ac: &Lookup, next: u16) -> u32 {
    let (mut length, mut coefficients, mut end) = (0, 0, 0);
    while length < BITS && end == 0 {
        let Some(entry) = ac.find(next << (16 - BITS) << length).map(u32::from) else { break };
        let (code, size, advance) = (entry & 31, entry >> 5 & 15, entry >> 9);
        if length + code + size > BITS || size > SMALL_BITS {
            break;
        }
        length += code + size;
        if advance == BLOCK { end = END } else { coefficients += advance }
    }
    length | coefficients << 8 | end
}

/// The bits of a scan, without stuffed zeros, up to the next marker.
#[derive(Default)]
struct Bits<'a> {
    data: &'a [u8],
    /// The next byte that is not taken.
    at: usize,
    /// Bits that were, the next at the top.
    word: u64,
    have: u32,
}

impl Bits<'_> {
    /// Takes bytes until there are more than enough bits for a code and its value, or a marker is next.
    #[inline]
    fn fill(&mut self) {
        if self.have > 32 {
            return;
        }
        if let Some(&eight) = self.data.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let more = u64::from_be_bytes(eight);
            // No byte of them is all ones.
            if (!more).wrapping_sub(0x0101_0101_0101_0101) & more & 0x8080_8080_8080_8080 == 0 {
                let bytes = (63 - self.have) / 8;
                // Bits of a byte that is not taken as a whole come again, at the same place.
                self.word |= more >> self.have;
                self.at += bytes as usize;
                self.have += 8 * bytes;
                return;
            }
        }
        self.fill_slowly();
    }

    fn fill_slowly(&mut self) {
        while self.have <= 56 {
            let taken = match (self.data.get(self.at), self.data.get(self.at + 1)) {
                (Some(0xFF), Some(0)) => 2,
                (Some(0xFF) | None, _) => return,
                (Some(_), _) => 1,
            };
            let byte = self.data.get(self.at).copied().unwrap_or_default();
            self.word |= u64::from(byte) << (56 - self.have);
            self.at += taken;
            self.have += 8;
        }
    }

    /// The next `count` bits, 1 to 32; zeros beyond the end.
    #[inline]
    fn next(&self, count: u32) -> u32 {
        (self.word >> (64 - count)) as u32
    }

    #[inline]
    fn skip(&mut self, count: u32) -> Option<()> {
        self.have = self.have.checked_sub(count)?;
        self.word <<= count;
        Some(())
    }

    /// The entry of the next code, and the value behind it.
    #[inline]
    fn value(&mut self, table: &Lookup) -> Option<(u16, i32)> {
        self.fill();
        let entry = table.find(self.next(16) as u16)?;
        self.skip(u32::from(entry & 31))?;
        let size = u32::from(entry >> 5 & 15);
        if size == 0 {
            return Some((entry, 0));
        }
        let value = self.next(size) as i32;
        self.skip(size)?;
        // Those that begin with a zero are negative.
        let negative = value >> (size - 1) == 0;
        Some((entry, if negative { value - (1 << size) + 1 } else { value }))
    }

    /// The marker behind the bits that are left, which are those of a byte.
    fn end_segment(&mut self) -> Option<u8> {
        self.fill();
        (self.have < 8).then_some(())?;
        (self.word, self.have) = (0, 0);
        let rest = self.data.get(self.at..)?;
        let fill = rest.iter().position(|&byte| byte != 0xFF).filter(|&fill| fill > 0)?;
        self.at += fill + 1;
        rest.get(fill).copied()
    }
}
