//! Huffman tables as the SMs read them: ten bits are looked up at once, longer codes by where they are behind the
//! short ones. It must not know files or devices.

use std::collections::HashMap;

use super::constants::{LUT_BITS, TAIL};
use crate::gpu::jpeg::huffman::{Class, Huffman};
use crate::gpu::layout::device_struct;
use crate::limits;

/// The longest code.
const MAX_LENGTH: u32 = 16;

/// The first of the values of 16 bits that the tail has entries for.
const TAIL_BEGIN: usize = (1 << MAX_LENGTH) - TAIL;

/// How far the end of a block advances: beyond it from anywhere.
const END_OF_BLOCK: u16 = 64;

/// The symbol of sixteen zeros; others without a coefficient end a block.
const SIXTEEN_ZEROS: u8 = 0xF0;

device_struct! {
    /// A table on the device.
    ///
    /// An entry is what a code means: its bits (bits 0 to 4), those of the value behind it (5 to 8), how many
    /// coefficients both advance (9 to 15), or of a progressive scan's table the run (9 to 12). None is 0.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Lookup as Table {
        /// Entries by the next LUT_BITS bits; 0: the code is longer, or there is none.
        lut: [u16; 1 << LUT_BITS],
        /// Entries by the next 16 bits, of their last values: there, long codes are; 0: there is none.
        tail: [u16; TAIL],
        /// Entries of all symbols, in the order of their codes, for long codes before the tail.
        sorted: [u16; 256],
        /// For codes of 11 to 16 bits: the next 16 bits are below it when the code is not longer.
        limit: [u32; 6],
        /// For codes of 11 to 16 bits: what is added to a code to get its place in `sorted`.
        base: [i32; 6],
    }
}

impl Lookup {
    /// Makes a table.
    pub fn new(table: &Huffman<'_>) -> Self {
        let mut lookup: Self = bytemuck::Zeroable::zeroed();
        let mut symbols = table.symbols().iter().zip(0..);
        // The next code of the length at hand. Whoever read the table saw that codes fit.
        let mut code = 0_u32;
        for (length, &count) in (1..=MAX_LENGTH).zip(table.counts()) {
            code <<= 1;
            let long = length.checked_sub(LUT_BITS + 1).map(|i| i as usize);
            for (&symbol, place) in symbols.by_ref().take(usize::from(count)) {
                lookup.put(place, code, length, entry(table.class(), length, symbol));
                if let Some(base) = long.and_then(|i| lookup.base.get_mut(i)) {
                    *base = place as i32 - code as i32;
                }
                code += 1;
            }
            let end = code << (MAX_LENGTH - length);
            if let Some(limit) = long.and_then(|i| lookup.limit.get_mut(i)) {
                *limit = end;
            }
        }
        lookup
    }

    /// Puts an entry to all places that its code begins.
    fn put(&mut self, place: usize, code: u32, length: u32, entry: u16) {
        if let Some(sorted) = self.sorted.get_mut(place) {
            *sorted = entry;
        }
        let places = |bits: u32| [code, code + 1].map(|code| (code << (bits - length)) as usize);
        if length <= LUT_BITS {
            let [start, end] = places(LUT_BITS);
            self.lut.get_mut(start..end).unwrap_or_default().fill(entry);
        }
        let [start, end] = places(MAX_LENGTH).map(|next| next.saturating_sub(TAIL_BEGIN));
        self.tail.get_mut(start..end).unwrap_or_default().fill(entry);
    }

    /// The entry for the next 16 bits, as the device finds it. `None`: no code begins so.
    #[inline]
    pub fn find(&self, next: u16) -> Option<u16> {
        let entry = match usize::from(next).checked_sub(TAIL_BEGIN) {
            Some(place) => *self.tail.get(place)?,
            None => *self.lut.get(usize::from(next >> (MAX_LENGTH - LUT_BITS)))?,
        };
        if entry != 0 {
            return Some(entry);
        }
        let next = u32::from(next);
        let long = self.limit.iter().position(|&limit| next < limit)?;
        let code = next >> (MAX_LENGTH - LUT_BITS - 1 - long as u32);
        let place = usize::try_from(code as i32 + self.base.get(long)?).ok()?;
        self.sorted.get(place).copied()
    }
}

fn entry(class: Class, length: u32, symbol: u8) -> u16 {
    let bits = u16::from(symbol & 15);
    let advance = match class {
        Class::Band => u16::from(symbol >> 4),
        Class::Dc => 1,
        Class::Ac if bits > 0 || symbol == SIXTEEN_ZEROS => u16::from(symbol >> 4) + 1,
        Class::Ac => END_OF_BLOCK,
    };
    length as u16 | bits << 5 | advance << 9
}

/// Tables that were made before: most files have those of the standard.
#[derive(Default)]
pub(super) struct Tables {
    made: HashMap<Key, Lookup>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    class: Class,
    counts: [u8; 16],
    symbols: Box<[u8]>,
}

impl Key {
    fn of(table: &Huffman<'_>) -> Self {
        Self { class: table.class(), counts: *table.counts(), symbols: table.symbols().into() }
    }
}

impl Tables {
    /// The table on the device for `table`, if it is known.
    pub(super) fn known(&self, table: &Huffman<'_>) -> Option<&Lookup> {
        self.made.get(&Key::of(table))
    }

    /// Keeps a table.
    pub(super) fn keep(&mut self, table: &Huffman<'_>, lookup: &Lookup) {
        if self.made.len() >= limits::MAX_RETAINED_HUFFMAN_TABLES {
            self.made.clear();
        }
        self.made.insert(Key::of(table), *lookup);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a bit by bit reader finds: the length of the code that `next` starts with, and its symbol.
    fn naive(counts: &[u8; 16], symbols: &[u8]) -> impl Fn(u16) -> Option<(u32, u8)> {
        let mut codes: Vec<Vec<Option<u8>>> = (0..=16).map(|length| vec![None; 1 << length]).collect();
        let (mut code, mut symbols) = (0, symbols.iter());
        for length in 1..=16 {
            code *= 2;
            for _ in 0..counts[length - 1] {
                codes[length][code] = symbols.next().copied();
                code += 1;
            }
        }
        move |next| {
            (1..=16_u32).find_map(|length| {
                let code = next >> (16 - length);
                codes[length as usize][usize::from(code)].map(|symbol| (length, symbol))
            })
        }
    }

    fn check(class: Class, counts: &[u8; 16], symbols: &[u8]) {
        let bytes = [counts, symbols].concat();
        let (table, _) = Huffman::read(class, &bytes).unwrap();
        let (lookup, naive) = (Lookup::new(&table), naive(counts, symbols));
        for next in 0..=u16::MAX {
            let found = lookup.find(next);
            let Some((length, symbol)) = naive(next) else {
                assert_eq!(found, None, "{next:016b} of {table:?}");
                continue;
            };
            let found = found.unwrap();
            let bits = u32::from(symbol & 15);
            let advance = match (class, symbol) {
                (Class::Dc, _) => 1,
                (Class::Band, symbol) => symbol >> 4,
                (Class::Ac, 0xF0) => 16,
                (Class::Ac, symbol) if symbol & 15 == 0 => 64,
                (Class::Ac, symbol) => 1 + (symbol >> 4),
            };
            let fields = (u32::from(found & 31), u32::from(found >> 5 & 15), found >> 9);
            assert_eq!(fields, (length, bits, u16::from(advance)), "{next:016b} of {table:?}");
        }
    }

    /// Lengths that leave the code of ones free; what does not fit is left out.
    fn fitting(lengths: &[u8]) -> [u8; 16] {
        let mut counts = [0; 16];
        let mut free = 1_u32 << 16;
        for &length in lengths {
            let room = 1 << (16 - length);
            if room < free {
                free -= room;
                counts[usize::from(length) - 1] += 1;
            }
        }
        counts
    }

    fn symbols(counts: &[u8; 16], shuffled: &[u8]) -> Vec<u8> {
        let length = counts.iter().map(|&count| usize::from(count)).sum();
        shuffled.iter().copied().take(length).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_code_is_found(
            lengths in prop::collection::vec(1..=16_u8, 1..200),
            long in prop::collection::vec(9..=16_u8, 0..56),
            shuffled in Just((0..=255).collect::<Vec<u8>>()).prop_shuffle(),
        ) {
            let lengths = [lengths, long].concat();
            let counts = fitting(&lengths);
            let mut symbols = symbols(&counts, &shuffled);
            // Longer values than 10 bits are refused, but what a table says of them fits.
            symbols.iter_mut().filter(|symbol| **symbol & 15 > 10).for_each(|symbol| *symbol &= 0xF7);
            check(Class::Ac, &counts, &symbols);
            check(Class::Band, &counts, &symbols);
        }

        #[test]
        fn every_code_of_a_first_coefficient_is_found(
            lengths in prop::collection::vec(1..=16_u8, 1..12),
            shuffled in Just((0..=11).collect::<Vec<u8>>()).prop_shuffle(),
        ) {
            let counts = fitting(&lengths);
            check(Class::Dc, &counts, &symbols(&counts, &shuffled));
        }
    }

    #[test]
    fn complete_and_tiny_codes_are_found() {
        let counts = |some: &[(usize, u8)]| {
            let mut counts = [0; 16];
            some.iter().for_each(|&(length, count)| counts[length - 1] = count);
            counts
        };
        check(Class::Ac, &counts(&[(1, 1)]), &[0]);
        check(Class::Ac, &counts(&[(16, 1)]), &[0xF0]);
        check(Class::Ac, &counts(&[(1, 2)]), &[0, 1]);
        let steps: Vec<(usize, u8)> = (1..=16).map(|length| (length, 1 + u8::from(length == 16))).collect();
        check(Class::Ac, &counts(&steps), &(0..17).map(|i| i << 4 | 10).collect::<Vec<u8>>());
        // The standard's tables for luma, first coefficients.
        check(
            Class::Dc,
            &counts(&[(2, 1), (3, 5), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1), (9, 1)]),
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        );
    }

    #[test]
    fn a_table_is_known_and_not_kept_for_ever() {
        let mut tables = Tables::default();
        let read = |bytes: &[u8]| Huffman::read(Class::Ac, bytes).map(|(table, _)| Lookup::new(&table));
        let bytes = |symbols: [u8; 2]| {
            let mut bytes = vec![0; 16];
            bytes[1] = 2;
            bytes.extend(symbols);
            bytes
        };
        let first = bytes([1, 2]);
        let (table, _) = Huffman::read(Class::Ac, &first).unwrap();
        assert_eq!(tables.known(&table), None);
        tables.keep(&table, &Lookup::new(&table));
        assert_eq!(tables.known(&table).copied(), read(&first));
        for symbols in (0..1_000_u16).map(u16::to_be_bytes) {
            let bytes = bytes(symbols.map(|symbol| symbol & 0x37));
            let (table, _) = Huffman::read(Class::Ac, &bytes).unwrap();
            tables.keep(&table, &Lookup::new(&table));
            assert!(tables.made.len() <= limits::MAX_RETAINED_HUFFMAN_TABLES);
        }
    }

    #[test]
    fn the_device_reads_as_many_bytes() {
        assert_eq!(size_of::<Lookup>(), 3_632);
    }
}
