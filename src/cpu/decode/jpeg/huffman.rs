//! Huffman tables as the decoders of entropy-coded data look them up, and the tables of files seen before. It must not know
//! blocks.
//!
//! A look-up takes the next [`AC_BITS`] bits and gets up to two codes with their numbers. The first one's number is in the
//! table; the last one's is taken from the stream by a few instructions without a branch, so it may be longer than the look-up.

use std::hint::select_unpredictable;
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

impl Search {
    pub(super) fn new(spec: &Spec) -> Self {
        let mut search = Self { limits: [0; 17], offsets: [0; 17], symbols: [0; 256] };
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
        let length = (1..17).find(|&length| top < self.limits[length])?;
        let index = (top >> (16 - length)) as i32 + self.offsets[length];
        Some((length as u32, self.symbols[index as usize & 255]))
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

/// What some bits of the stream say.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(8))]
pub(super) struct Entry {
    /// Bits of all of it.
    pub(super) length: u8,
    /// Bits of the last number. They end where the entry ends.
    pub(super) size: u8,
    /// Where the first and the last number go, in zigzag positions from here.
    pub(super) first: u8,
    pub(super) second: u8,
    /// Positions to move on; [`END`] more if the block ends, [`LONG`] if a look-up does not tell.
    pub(super) advance: u8,
    /// The first number.
    pub(super) value: i8,
    /// What is added to the bits of the last number.
    pub(super) bias: i16,
}

/// Added to [`Entry::advance`] at the end of a block.
pub(super) const END: u8 = 128;
/// [`Entry::advance`] where the code or its sign is not within the bits of a look-up.
pub(super) const LONG: u8 = 192;

/// Bits of a look-up.
pub(super) const AC_BITS: u32 = 11;
pub(super) const DC_BITS: u32 = 10;
/// Look-ups from one refill of at least 56 bits.
const LOOKUPS: usize = 3;
const LONGEST: u32 = 56 / LOOKUPS as u32;

const NOT_HERE: Entry = Entry { length: 0, size: 0, first: 0, second: 0, advance: LONG, value: 0, bias: 0 };

/// What is added to the bits of a number whose sign bit is `bit`.
fn bias(size: u32, bit: u32) -> i16 {
    if size == 0 || bit == 1 { 0 } else { (1 - (1_i32 << size)) as i16 }
}

/// A DC table.
#[derive(Debug)]
pub(super) struct Dc {
    pub(super) entries: [Entry; 1 << DC_BITS],
    pub(super) search: Search,
}

/// An AC table.
#[derive(Debug)]
pub(super) struct Ac {
    pub(super) entries: [Entry; 1 << AC_BITS],
    pub(super) search: Search,
    pairs: bool,
}

/// Fills the entries of a code and a number of `size` bits behind it, one for each sign.
fn fill(entries: &mut [Entry], bits: u32, (length, code): (u32, u32), size: u32, entry: Entry) {
    let signs = if size == 0 { 0..1 } else { 0..2 };
    let known = length + u32::from(size > 0);
    if known > bits {
        return;
    }
    for sign in signs {
        let prefix = if size == 0 { code } else { code << 1 | sign };
        let at = (prefix as usize) << (bits - known);
        entries[at..at + (1 << (bits - known))].fill(Entry { bias: bias(size, sign), ..entry });
    }
}

impl Dc {
    /// `None`: a symbol that is no size, for which libjpeg refuses the table.
    pub(super) fn new(spec: &Spec) -> Option<Self> {
        let mut entries = [NOT_HERE; 1 << DC_BITS];
        for (length, code, symbol) in spec.codes() {
            let size = u32::from(symbol);
            match size {
                0..12 => {
                    let entry = Entry { length: (length + size) as u8, size: symbol, advance: 1, ..NOT_HERE };
                    fill(&mut entries, DC_BITS, (length, code), size, entry);
                }
                12..16 => {}
                _ => return None,
            }
        }
        Some(Self { entries, search: Search::new(spec) })
    }
}

impl Ac {
    /// With `pairs` a look-up gives two codes where they fit; that takes longer to make and pays for more than some kilobytes.
    pub(super) fn new(spec: &Spec, pairs: bool) -> Self {
        let mut entries = [NOT_HERE; 1 << AC_BITS];
        for (length, code, symbol) in spec.codes() {
            let (run, size) = (symbol >> 4, u32::from(symbol & 15));
            let all = length + size;
            let entry = if size == 0 && run != 15 {
                Entry { length: length as u8, advance: END, ..NOT_HERE }
            } else if all <= LONGEST {
                let (length, size) = (all as u8, size as u8);
                Entry { length, size, first: run, second: run, advance: run + 1, ..NOT_HERE }
            } else {
                continue;
            };
            fill(&mut entries, AC_BITS, (length, code), size, entry);
        }
        if pairs {
            let singles = entries;
            for (bits, entry) in (0..).zip(&mut entries) {
                couple(entry, bits, &singles);
            }
        }
        Self { entries, search: Search::new(spec), pairs }
    }
}

/// Takes the number of `entry` into the table and adds the code behind it, if both are whole within the look-up.
fn couple(entry: &mut Entry, bits: u32, singles: &[Entry; 1 << AC_BITS]) {
    let (length, size) = (u32::from(entry.length), u32::from(entry.size));
    if entry.advance >= END || length > AC_BITS || size > 7 {
        return;
    }
    let number = (bits >> (AC_BITS - length) & ((1 << size) - 1)) as i16 + entry.bias;
    (entry.value, entry.bias, entry.size) = (number as i8, number, 0);
    let next = &singles[(bits << length) as usize & ((1 << AC_BITS) - 1)];
    if next.advance == LONG {
        return;
    }
    // Of the next code and its sign all bits must be known.
    let known = u32::from(next.length) - u32::from(next.size) + u32::from(next.size > 0);
    if length + known > AC_BITS || length + u32::from(next.length) > LONGEST {
        return;
    }
    entry.length += next.length;
    if next.advance == END {
        entry.advance += END;
        return;
    }
    (entry.size, entry.bias) = (next.size, next.bias);
    entry.second = entry.advance + next.second;
    entry.advance += next.advance;
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

/// Puts an element at the front, and lets go of the one that was not used for longest.
fn keep<T>(all: &mut Vec<T>, new: T) {
    all.truncate(KEPT - 1);
    all.insert(0, new);
}

impl Cache {
    pub(super) fn dc(&mut self, spec: &Spec) -> Option<Arc<Dc>> {
        if let Some(i) = self.dc.iter().position(|(known, _)| known == spec) {
            self.dc[..=i].rotate_right(1);
        } else {
            keep(&mut self.dc, (spec.clone(), Arc::new(Dc::new(spec)?)));
        }
        self.dc.first().map(|(_, table)| Arc::clone(table))
    }

    /// For a band of a progressive scan. Such files have tables of their own.
    pub(super) fn band(&self, spec: &Spec) -> Codes {
        Codes::new(spec)
    }

    /// `pairs` as for [`Ac::new`]; a table that has them serves both.
    pub(super) fn ac(&mut self, spec: &Spec, pairs: bool) -> Option<Arc<Ac>> {
        match self.ac.iter().position(|(known, _)| known == spec) {
            Some(i) if self.ac[i].1.pairs || !pairs => self.ac[..=i].rotate_right(1),
            found => {
                if let Some(i) = found {
                    self.ac.remove(i);
                }
                keep(&mut self.ac, (spec.clone(), Arc::new(Ac::new(spec, pairs))));
            }
        }
        self.ac.first().map(|(_, table)| Arc::clone(table))
    }
}
