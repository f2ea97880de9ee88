//! Codebooks of Vorbis: codes of Huffman's kind for entries, and vectors that entries stand for. It must not know what
//! they are for.

use super::{Budget, damaged};
use crate::cpu::audio::bits::LowFirst;
use crate::error::Result;

/// What a codebook begins with.
const MARK: u32 = 0x56_4342;
/// Bits of codes that one look into a table decodes.
const SHORT_BITS: u32 = 9;
/// Bits of a code's length.
const LONGEST: u32 = 32;

/// A codebook.
#[derive(Debug)]
pub(crate) struct Codebook {
    /// Numbers of a vector.
    pub(crate) dimensions: usize,
    /// With a code or without.
    pub(crate) entries: usize,
    /// For the next bits, lowest first: the entry of the code that they begin with, and in the lowest byte its length,
    /// 0 if it is a longer one.
    short: Vec<u32>,
    /// The longer ones, as numbers whose highest bit is a code's first, in their order.
    long: Vec<Code>,
    /// The vectors of all entries; empty if entries stand for themselves.
    vectors: Vec<f32>,
}

#[derive(Debug, Clone, Copy)]
struct Code {
    bits: u32,
    length: u8,
    entry: u32,
}

/// The lengths of the codes of all entries, 0 for an entry without one.
fn lengths(bits: &mut LowFirst<'_>, budget: &mut Budget) -> Result<(usize, Vec<u8>)> {
    let mut read = |count| bits.read(count).ok_or_else(|| damaged("a codebook is cut off"));
    if read(24)? != MARK {
        return Err(damaged("a codebook does not begin as one"));
    }
    let (dimensions, entries, is_ordered) = (read(16)? as usize, read(24)? as usize, read(1)? == 1);
    if dimensions == 0 || entries == 0 {
        return Err(damaged("a codebook is empty"));
    }
    budget.take_entries(entries)?;
    let mut lengths = super::zeros(entries)?;
    if is_ordered {
        let (mut length, mut done) = (read(5)? + 1, 0);
        while done < entries {
            let left = entries - done;
            let count = read(left.ilog2() + 1)? as usize;
            let run = lengths.get_mut(done..).and_then(|lengths| lengths.get_mut(..count));
            let run =
                run.filter(|_| length <= LONGEST).ok_or_else(|| damaged("a codebook has too many codes"))?;
            run.fill(length as u8);
            done += count;
            length += 1;
        }
        return Ok((dimensions, lengths));
    }
    let is_sparse = read(1)? == 1;
    for length in &mut lengths {
        if !is_sparse || read(1)? == 1 {
            *length = read(5)? as u8 + 1;
        }
    }
    Ok((dimensions, lengths))
}

/// A number with a mantissa of 21 bits and an exponent, as Vorbis has it.
fn float(bits: u32) -> f32 {
    let mantissa = f64::from(bits & 0x1f_ffff);
    let exponent = (bits >> 21 & 0x3ff) as i32 - 788;
    let value = mantissa * 2f64.powi(exponent.clamp(-63, 63));
    (if bits >> 31 == 1 { -value } else { value }) as f32
}

/// The largest number whose power of `dimensions` is at most `entries`.
fn values_of_a_lattice(entries: usize, dimensions: usize) -> usize {
    let is_small = |&values: &usize| {
        let mut cells = 1usize;
        (0..dimensions).all(|_| {
            cells = cells.saturating_mul(values);
            // One to any power is one: no need to go on.
            cells <= entries
        })
    };
    if dimensions > 24 {
        return 1;
    }
    let guess = (entries as f64).powf(1.0 / dimensions as f64) as usize;
    (guess.saturating_sub(1)..=guess + 1).rev().find(is_small).unwrap_or(1)
}

/// The vectors of all entries, if they stand for some.
fn vectors(
    bits: &mut LowFirst<'_>,
    dimensions: usize,
    entries: usize,
    budget: &mut Budget,
) -> Result<Vec<f32>> {
    let mut read = |count| bits.read(count).ok_or_else(|| damaged("a codebook is cut off"));
    let kind = read(4)?;
    if kind == 0 {
        return Ok(Vec::new());
    }
    let (least, step) = (float(read(32)?), float(read(32)?));
    let (width, adds_up) = (read(4)? + 1, read(1)? == 1);
    let count = budget.take_values(entries, dimensions)?;
    let values = match kind {
        1 => values_of_a_lattice(entries, dimensions),
        2 => count,
        _ => return Err(damaged("a codebook has vectors of an unknown kind")),
    };
    let mut multiplicands: Vec<f32> = super::zeros(values)?;
    for to in &mut multiplicands {
        *to = read(width)? as f32;
    }
    let mut vectors = super::zeros(count)?;
    for (entry, vector) in vectors.chunks_exact_mut(dimensions).enumerate() {
        let (mut last, mut digits) = (0.0, entry);
        for (i, to) in vector.iter_mut().enumerate() {
            let place = if kind == 1 { digits % values } else { entry * dimensions + i };
            digits /= values;
            let value = multiplicands.get(place).copied().unwrap_or_default() * step + least + last;
            if adds_up {
                last = value;
            }
            *to = value;
        }
    }
    Ok(vectors)
}

/// Gives each entry with a length the first code of that length that is left.
fn codes(lengths: &[u8]) -> Result<Vec<Code>> {
    // For each length the code of it that comes next, if one is left over where a longer one branches off.
    let mut left = [None::<u32>; LONGEST as usize + 1];
    left[0] = Some(0);
    let mut codes = Vec::new();
    codes.try_reserve_exact(lengths.len()).map_err(|_| super::no_memory())?;
    for (entry, &length) in lengths.iter().enumerate().filter(|&(_, &length)| length > 0) {
        let fits = (0..=usize::from(length)).rev().find_map(|from| Some((from, left.get_mut(from)?.take()?)));
        let (from, bits) = fits.ok_or_else(|| damaged("a codebook has too many codes"))?;
        for deeper in from + 1..=usize::from(length) {
            if let Some(to) = left.get_mut(deeper) {
                *to = Some(bits | 1 << (LONGEST as usize - deeper));
            }
        }
        codes.push(Code { bits, length, entry: entry as u32 });
    }
    match codes.as_slice() {
        // A single entry has a code of one bit, whatever it is.
        &[Code { length: 1, entry, .. }] => codes.push(Code { bits: 1 << (LONGEST - 1), length: 1, entry }),
        [] => {}
        _ if left.iter().any(Option::is_some) => return Err(damaged("a codebook has too few codes")),
        _ => {}
    }
    Ok(codes)
}

impl Codebook {
    /// Reads one of a setup header.
    pub(crate) fn read(bits: &mut LowFirst<'_>, budget: &mut Budget) -> Result<Self> {
        let (dimensions, lengths) = lengths(bits, budget)?;
        let vectors = vectors(bits, dimensions, lengths.len(), budget)?;
        let mut long = codes(&lengths)?;
        let mut short = super::zeros(1 << SHORT_BITS)?;
        for code in long.iter().filter(|code| u32::from(code.length) <= SHORT_BITS) {
            let places = short.iter_mut().skip(code.bits.reverse_bits() as usize).step_by(1 << code.length);
            places.for_each(|place| *place = code.entry << 8 | u32::from(code.length));
        }
        long.retain(|code| u32::from(code.length) > SHORT_BITS);
        long.sort_unstable_by_key(|code| code.bits);
        long.shrink_to_fit();
        Ok(Self { dimensions, entries: lengths.len(), short, long, vectors })
    }

    /// Whether entries stand for vectors.
    pub(crate) fn has_vectors(&self) -> bool {
        !self.vectors.is_empty()
    }

    /// The entry whose code comes next. `None` where the packet ends, and in a book without codes.
    #[inline(always)]
    pub(crate) fn entry(&self, bits: &mut LowFirst<'_>) -> Option<usize> {
        let next = bits.peek();
        let &short = self.short.get((next & ((1 << SHORT_BITS) - 1)) as usize)?;
        let code = if short & 0xff > 0 { short } else { self.long_entry(next)? };
        bits.skip(code & 0xff)?;
        Some((code >> 8) as usize)
    }

    #[cold]
    fn long_entry(&self, next: u32) -> Option<u32> {
        let next = next.reverse_bits();
        let place = self.long.partition_point(|code| code.bits <= next).checked_sub(1)?;
        self.long.get(place).map(|code| code.entry << 8 | u32::from(code.length))
    }

    /// The vector whose code comes next.
    #[inline(always)]
    pub(crate) fn vector(&self, bits: &mut LowFirst<'_>) -> Option<&[f32]> {
        let start = self.entry(bits)? * self.dimensions;
        self.vectors.get(start..)?.get(..self.dimensions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_given_in_the_order_of_entries() {
        // The example of the standard.
        let found: Vec<u32> = codes(&[2, 4, 4, 4, 4, 2, 3, 3])
            .unwrap()
            .iter()
            .map(|code| code.bits >> (LONGEST - u32::from(code.length)))
            .collect();
        assert_eq!(found, [0b00, 0b0100, 0b0101, 0b0110, 0b0111, 0b10, 0b110, 0b111]);
        assert_eq!(codes(&[0, 1, 0]).unwrap().len(), 2);
        assert!(codes(&[0, 0]).unwrap().is_empty());
        for (lengths, message) in [(&[1, 2][..], "too few"), (&[2], "too few"), (&[1, 1, 1], "too many")] {
            let error = codes(lengths).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(codes(&[32; 2]).unwrap_err().to_string(), codes(&[2]).unwrap_err().to_string());
    }

    #[test]
    fn a_lattice_has_as_many_values_as_fit() {
        for (entries, dimensions, values) in [
            (1, 1, 1),
            (81, 4, 3),
            (80, 4, 2),
            (6_561, 8, 3),
            (1 << 23, 65_024, 1),
            (255, 2, 15),
            (256, 2, 16),
        ] {
            assert_eq!(values_of_a_lattice(entries, dimensions), values, "{entries} {dimensions}");
        }
        assert_eq!([float(0x6170_0000 | 1 << 31), float(788 << 21 | 3)], [-2_048.0, 3.0]);
    }
}
