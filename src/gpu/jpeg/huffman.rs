//! A Huffman table as a file has it. It must not know what is made of it.

/// The largest symbol of a DC table: bits of a difference of coefficients of 8-bit samples.
const MAX_DC_SYMBOL: u8 = 11;

/// The most bits of an AC coefficient of 8-bit samples; the lower half of its symbol.
const MAX_AC_SIZE: u8 = 10;

/// What a table's symbols stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The first coefficient of a block: bits of its difference to that of the last block.
    Dc,
    /// The other 63: a run of zeros, and bits of the coefficient behind it.
    Ac,
    /// The same in a scan of a progressive file: a code without a coefficient ends as many blocks as its run says.
    Band,
}

/// How many codes there are of each length, and the symbols in the order of their codes. No length has more codes than
/// there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Huffman<'a> {
    class: Class,
    counts: &'a [u8; 16],
    symbols: &'a [u8],
}

impl<'a> Huffman<'a> {
    /// The table at the start of `bytes`, and what follows it. `None`: there is none that makes sense.
    pub fn read(class: Class, bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (counts, rest) = bytes.split_first_chunk::<16>()?;
        let length = counts.iter().map(|&count| usize::from(count)).sum();
        let (symbols, rest) = rest.split_at_checked(length)?;
        let table = Self { class, counts, symbols };
        let sensible = class != Class::Dc || symbols.iter().all(|&symbol| symbol <= MAX_DC_SYMBOL);
        (sensible && (1..=256).contains(&length) && table.free().is_some()).then_some((table, rest))
    }

    /// An AC table as scans of progressive files have it.
    pub fn of_band(self) -> Self {
        Self { class: Class::Band, ..self }
    }

    /// What its symbols stand for.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Codes of 1, 2, ... 16 bits.
    pub fn counts(&self) -> &'a [u8; 16] {
        self.counts
    }

    /// The symbols, those with the shortest codes first.
    pub fn symbols(&self) -> &'a [u8] {
        self.symbols
    }

    /// Whether libjpeg decodes with it: the code of ones alone is free, as the standard wants it, and no coefficient
    /// has more bits than one of 8-bit samples can have.
    pub fn is_usual(&self) -> bool {
        let small = |&symbol: &u8| symbol & 15 <= MAX_AC_SIZE;
        self.free().is_some_and(|free| free > 0)
            && (self.class == Class::Dc || self.symbols.iter().all(small))
    }

    /// Codes of 16 bits that are left. `None`: there are more codes of a length than can be.
    fn free(&self) -> Option<u32> {
        // At most 2^16 at the end.
        self.counts.iter().try_fold(1_u32, |free, &count| (free * 2).checked_sub(u32::from(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_a_meaning_are_refused() {
        let read = |class, counts: &[u8], symbols: &[u8]| {
            let mut bytes = counts.to_vec();
            bytes.resize(16, 0);
            bytes.extend(symbols);
            Huffman::read(class, &bytes).map(|(table, rest)| (table.is_usual(), rest.len()))
        };
        assert_eq!(read(Class::Dc, &[1, 1], &[3, 11, 77]), Some((true, 1)));
        // Every code is used, also that of ones.
        assert_eq!(read(Class::Dc, &[1, 2], &[1, 2, 3]), Some((false, 0)));
        assert_eq!(read(Class::Dc, &[2], &[1, 2]), Some((false, 0)));
        assert_eq!(read(Class::Dc, &[3], &[1, 2, 3]), None);
        assert_eq!(read(Class::Dc, &[2, 1], &[1, 2, 3]), None);
        assert_eq!(read(Class::Dc, &[1], &[12]), None);
        assert_eq!(read(Class::Dc, &[1, 1], &[1]), None);
        assert_eq!(read(Class::Dc, &[], &[]), None);
        assert_eq!(read(Class::Ac, &[1], &[0x0A]), Some((true, 0)));
        assert_eq!(read(Class::Ac, &[1], &[0xF0]), Some((true, 0)));
        assert_eq!(read(Class::Ac, &[1], &[0x0B]), Some((false, 0)));
        let many = [[0; 8].as_slice(), &[200, 57]].concat();
        assert_eq!(read(Class::Ac, &many, &[0; 257]), None);
    }
}
