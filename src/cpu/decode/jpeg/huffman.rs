//! Huffman tables as the decoders of entropy-coded data look them up, and the tables of files seen before. It must not
//! know blocks.
//!
//! A look-up takes the next [`AC_BITS`] bits and gets up to two codes with their numbers. The first one's number is in
//! the table; the last one's is taken from the stream by a few instructions without a branch, so it may be longer than
//! the look-up.

use std::hint::select_unpredictable;
use std::ops::Range;
use std::sync::Arc;

/// A table as a file gives it, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    counts: [u8; 16],
    symbols: Vec<u8>,
}

impl Spec {
    /// `None`: libjpeg would refuse it, or a code of it.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut code = 0_u32;
        for (length, &count) in (1..).zip(counts) {
            code += u32::from(count);
            // The code of ones only is reserved.
            if count > 0 && code >= 1 << length {
                return None;
            }
            code <<= 1;
        }
        (symbols.len() <= 256).then_some(Self { counts: *counts, symbols: symbols.to_vec() })
    }

    /// Length, bits and symbol of each code, in order.
    fn codes(&self) -> impl Iterator<Item = (u32, u32, u8)> {
        let lengths = (1..).zip(self.counts).flat_map(|(length, count)| (0..count).map(move |_| length));
        let (mut code, mut before) = (0_u32, 0_u32);
        lengths.zip(&self.symbols).map(move |(length, &symbol)| {
            code <<= length - before;
            before = length;
            code += 1;
            (length, code - 1, symbol)
        })
    }
}

/// Finds codes of any length: slower than a look-up.
#[derive(Debug, Clone)]
pub(super) struct Search {
    /// For each length the first 16 bits that are not of such a code or a shorter one.
    limits: [u32; 17],
    /// What is added to a code of each length to get the index of its symbol.
    offsets: [i32; 17],
    symbols: [u8; 256],
}

impl Default for Search {
    fn default() -> Self {
        Self { limits: [0; 17], offsets: [0; 17], symbols: [0; 256] }
    }
}

impl Search {
    pub(super) fn new(spec: &Spec) -> Self {
        let mut search = Self::default();
        search.symbols[..spec.symbols.len()].copy_from_slice(&spec.symbols);
        let (mut code, mut index) = (0_u32, 0_i32);
        for (length, &count) in (1..).zip(&spec.counts) {
            search.offsets[length] = index - code as i32;
            code += u32::from(count);
            index += i32::from(count);
            search.limits[length] = code << (16 - length);
            code <<= 1;
        }
        search
    }

    /// Length and symbol of the code at the top of `bits`.
    pub(super) fn find(&self, bits: u64) -> Option<(u32, u8)> {
        let top = (bits >> 48) as u32;
        // As many as are not longer. All are counted, which vectors do at once; where to stop would be guessed wrong.
        let length = self.limits[1..].iter().fold(1, |length, &limit| length + u32::from(limit <= top));
        let offset = self.offsets.get(length as usize)?;
        let index = (top >> (16 - length)) as i32 + offset;
        Some((length, self.symbols[index as usize & 255]))
    }
}

/// The number whose `size` bits are at the top of `bits`.
pub(super) fn extend(bits: u64, size: u32) -> i32 {
    if size == 0 {
        return 0;
    }
    let value = (bits >> (64 - size)) as i32;
    // Half of all numbers are negative: a branch would be guessed wrong.
    select_unpredictable(bits >> 63 == 0, value - (1 << size) + 1, value)
}

/// What some bits of the stream say: up to two numbers. Small, because tables that do not fit into the first cache cost
/// more than anything that is done with them.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(4))]
pub(super) struct Entry {
    /// The first number.
    pub(super) value: i8,
    /// Where both go, in zigzag positions from here; [`NOWHERE`] if there is none.
    pub(super) first: u8,
    pub(super) second: u8,
    /// Which of [`NUMBERS`] the second one is. Its bits end where the entry's end.
    pub(super) number: u8,
}

/// What is done with the bits of a number to get it: by its size, plus 16 if its first bit is set. A bit mask, and what
/// is added.
pub(super) static NUMBERS: [[i16; 2]; 256] = {
    let mut numbers = [[0; 2]; 256];
    let mut size = 1;
    while size < 16 {
        let ones = (1_i32 << size) - 1;
        numbers[size] = [ones as i16, -ones as i16];
        numbers[16 + size] = [ones as i16, 0];
        size += 1;
    }
    numbers
};

/// The number whose bits are the last ones of the first `length` of `buffer`.
#[inline(always)]
pub(super) fn number(buffer: u64, length: u32, which: u8) -> i16 {
    let ending_here = buffer >> (length.wrapping_neg() & 63);
    let [mask, bias] = NUMBERS[usize::from(which)];
    (ending_here as i16 & mask).wrapping_add(bias)
}

/// Which of [`NUMBERS`] has so many bits, of which the first one is `bit`.
fn which(size: u32, bit: u32) -> u8 {
    (size + 16 * bit) as u8
}

/// A position that is behind the end of any block.
const NOWHERE: u8 = 64;

/// Positions that a look-up moves on at the end of a block, and more.
pub(super) const END: u16 = 128;
/// Positions to move on where the code or its sign is not within the bits of a look-up.
pub(super) const LONG: u16 = 192;

/// Bits, and positions to move on, of an entry: what the next look-up waits for.
fn step(length: u32, advance: u16) -> u16 {
    length as u16 | advance << 8
}

/// Bits of a look-up.
pub(super) const AC_BITS: u32 = 11;
pub(super) const DC_BITS: u32 = 10;
/// Look-ups from one refill, which leaves 64 bits. Behind them enough must be left for the index of the next one.
const LOOKUPS: usize = 3;
const LONGEST: u32 = (64 - AC_BITS) / LOOKUPS as u32;

/// A DC table.
#[derive(Debug, Clone)]
pub(super) struct Dc {
    /// Bits of a code and its number (0: not within the bits of a look-up), and which number it is.
    pub(super) entries: [(u8, u8); 1 << DC_BITS],
    pub(super) search: Search,
}

/// An AC table.
#[derive(Debug, Clone)]
pub(super) struct Ac {
    /// Of each entry its length, and 256 times the positions to move on. Apart from the rest, because each look-up
    /// waits for the last one's step, and so they stay in the first cache.
    pub(super) steps: [u16; 1 << AC_BITS],
    pub(super) entries: [Entry; 1 << AC_BITS],
    pub(super) search: Search,
    pairs: bool,
}

/// Entries whose bits begin with a code and, if a number of `size` bits is behind it, with that number's first bit:
/// those of a 0, then those of a 1, else none. `None` if a look-up of so many bits is shorter than that.
fn beginnings(bits: u32, (length, code): (u32, u32), size: u32) -> Option<[Range<usize>; 2]> {
    let known = length + u32::from(size > 0);
    let (start, count) = (code << (bits - length.min(bits)), 1 << (bits - known.min(bits)));
    let middle = start as usize + count;
    let end = if size > 0 { middle + count } else { middle };
    (known <= bits).then_some([start as usize..middle, middle..end])
}

impl Default for Dc {
    /// Of no codes.
    fn default() -> Self {
        Self { entries: [(0, 0); 1 << DC_BITS], search: Search::default() }
    }
}

impl Dc {
    /// Makes another table of this one. `None`: a symbol that is no size, for which libjpeg refuses the table.
    fn become_that_of(&mut self, spec: &Spec) -> Option<()> {
        // Codes are in order: so are their entries, and what lies in between has none.
        let mut done = 0;
        for (length, code, symbol) in spec.codes() {
            let size = u32::from(symbol);
            if size >= 16 {
                return None;
            }
            let Some(ranges) = beginnings(DC_BITS, (length, code), size).filter(|_| size < 12) else {
                continue;
            };
            self.entries[done..ranges[0].start].fill((0, 0));
            done = ranges[1].end;
            for (at, sign) in ranges.into_iter().zip(0..) {
                self.entries[at].fill(((length + size) as u8, which(size, sign)));
            }
        }
        self.entries[done..].fill((0, 0));
        self.search = Search::new(spec);
        Some(())
    }
}

/// No number.
const NOTHING: Entry = Entry { value: 0, first: NOWHERE, second: NOWHERE, number: 0 };

impl Default for Ac {
    /// Of no codes.
    fn default() -> Self {
        let (steps, entries) = ([step(0, LONG); 1 << AC_BITS], [NOTHING; 1 << AC_BITS]);
        Self { steps, entries, search: Search::default(), pairs: false }
    }
}

impl Ac {
    /// Makes another table of this one: for a small file fresh memory would cost as much as decoding a tenth of it.
    /// With `pairs` a look-up gives two codes where they fit; that takes longer to make and pays for more than some
    /// kilobytes.
    fn become_that_of(&mut self, spec: &Spec, pairs: bool) {
        let Self { steps, entries, .. } = self;
        let mut done = 0;
        let none = |steps: &mut [u16], entries: &mut [Entry]| {
            steps.fill(step(0, LONG));
            entries.fill(NOTHING);
        };
        for (length, code, symbol) in spec.codes() {
            let (run, size) = (symbol >> 4, u32::from(symbol & 15));
            let ends = size == 0 && run != 15;
            let (all, advance) = if ends { (length, END) } else { (length + size, u16::from(run) + 1) };
            let Some(ranges) = beginnings(AC_BITS, (length, code), size).filter(|_| all <= LONGEST) else {
                continue;
            };
            let (start, end) = (ranges[0].start, ranges[1].end);
            none(&mut steps[done..start], &mut entries[done..start]);
            done = end;
            steps[start..end].fill(step(all, advance));
            for (at, sign) in ranges.into_iter().zip(0..) {
                let number = Entry { second: run, number: which(size, sign), ..NOTHING };
                entries[at].fill(if size > 0 { number } else { NOTHING });
            }
        }
        none(&mut steps[done..], &mut entries[done..]);
        (self.search, self.pairs) = (Search::new(spec), pairs);
        if pairs {
            let singles = (self.steps, self.entries);
            for bits in 0..1 << AC_BITS {
                self.couple(bits, &singles);
            }
        }
    }

    /// Adds the code behind the one of an entry, if both are whole within the look-up.
    fn couple(&mut self, bits: usize, (steps, entries): &([u16; 1 << AC_BITS], [Entry; 1 << AC_BITS])) {
        let (step, entry) = (steps[bits], entries[bits]);
        let (length, advance) = (u32::from(step & 255), step >> 8);
        let size = u32::from(entry.number & 15);
        if advance >= END || length > AC_BITS || size > 7 {
            return;
        }
        let behind = bits << length & ((1 << AC_BITS) - 1);
        let (next_step, next) = (steps[behind], entries[behind]);
        // Of the next code and its sign all bits must be known.
        let (next_length, next_size) = (u32::from(next_step & 255), u32::from(next.number & 15));
        let known = next_length - next_size + u32::from(next_size > 0);
        if next_step >> 8 == LONG || length + known > AC_BITS || length + next_length > LONGEST {
            return;
        }
        self.steps[bits] = step + next_step;
        let value = number((bits as u64) << (64 - AC_BITS), length, entry.number) as i8;
        let second = if next_size > 0 { advance as u8 + next.second } else { NOWHERE };
        self.entries[bits] = Entry { value, first: entry.second, second, number: next.number };
    }
}

/// A table of single codes, for progressive scans.
#[derive(Debug)]
pub(super) struct Codes {
    /// For each beginning the length of its code (0: longer) and the symbol.
    entries: [(u8, u8); 1 << CODE_BITS],
    search: Search,
}

const CODE_BITS: u32 = 10;

impl Codes {
    fn new(spec: &Spec) -> Self {
        let mut entries = [(0, 0); 1 << CODE_BITS];
        for (length, code, symbol) in spec.codes().filter(|&(length, ..)| length <= CODE_BITS) {
            let (at, count) = ((code as usize) << (CODE_BITS - length), 1 << (CODE_BITS - length));
            entries[at..at + count].fill((length as u8, symbol));
        }
        Self { entries, search: Search::new(spec) }
    }

    /// Length and symbol of the code at the top of `bits`.
    #[inline(always)]
    pub(super) fn find(&self, bits: u64) -> Option<(u32, u8)> {
        let (length, symbol) = self.entries[(bits >> (64 - CODE_BITS)) as usize];
        if length > 0 { Some((u32::from(length), symbol)) } else { self.search.find(bits) }
    }
}

/// Tables made for the last files. Most files have the standard's tables.
#[derive(Default)]
pub(super) struct Cache {
    dc: Vec<(Spec, Arc<Dc>)>,
    ac: Vec<(Spec, Arc<Ac>)>,
}

/// Tables of each kind that are kept.
const KEPT: usize = 8;

/// The table that was not used for longest, if there are enough, to make another one of; else a new one.
fn oldest<T: Default>(all: &mut Vec<(Spec, Arc<T>)>) -> Arc<T> {
    let oldest = if all.len() == KEPT { all.pop() } else { None };
    oldest.map(|(_, table)| table).unwrap_or_default()
}

impl Cache {
    pub(super) fn dc(&mut self, spec: &Spec) -> Option<Arc<Dc>> {
        if let Some(i) = self.dc.iter().position(|(known, _)| known == spec) {
            self.dc[..=i].rotate_right(1);
        } else {
            let mut table = oldest(&mut self.dc);
            Arc::make_mut(&mut table).become_that_of(spec)?;
            self.dc.insert(0, (spec.clone(), table));
        }
        self.dc.first().map(|(_, table)| Arc::clone(table))
    }

    /// For a band of a progressive scan. Such files have tables of their own.
    pub(super) fn band(&self, spec: &Spec) -> Codes {
        Codes::new(spec)
    }

    /// `pairs` as for [`Ac::become_that_of`]; a table that has them serves both.
    pub(super) fn ac(&mut self, spec: &Spec, pairs: bool) -> Option<Arc<Ac>> {
        match self.ac.iter().position(|(known, _)| known == spec) {
            Some(i) if self.ac[i].1.pairs || !pairs => self.ac[..=i].rotate_right(1),
            found => {
                // In the memory of the same one without pairs, or of the one that was not used for longest.
                let mut table = match found {
                    Some(i) => self.ac.remove(i).1,
                    None => oldest(&mut self.ac),
                };
                Arc::make_mut(&mut table).become_that_of(spec, pairs);
                self.ac.insert(0, (spec.clone(), table));
            }
        }
        self.ac.first().map(|(_, table)| Arc::clone(table))
    }
}
