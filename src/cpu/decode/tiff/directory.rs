//! The first directory of a TIFF: its tags and their numbers, of both orders of bytes and both sizes of offsets. It
//! must not know what they mean.

use crate::error::{Error, Result};

/// In which order a number's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The lowest first.
    Little,
    /// The highest first.
    Big,
}

impl Order {
    /// The number that at most 8 `digits` are.
    pub(super) fn number(self, digits: &[u8]) -> u64 {
        let add = |sum: u64, &digit: &u8| sum << 8 | u64::from(digit);
        match self {
            Order::Little => digits.iter().rev().fold(0, add),
            Order::Big => digits.iter().fold(0, add),
        }
    }
}

/// The number of a BigTIFF, in place of 42.
const BIG: u64 = 43;

/// Types of values that are fractions or floating-point numbers.
const FRACTION: u16 = 5;
const SIGNED_FRACTION: u16 = 10;
const FLOAT: u16 = 11;
const DOUBLE: u16 = 12;

/// Bytes of a value of each type.
fn size_of(kind: u16) -> Option<usize> {
    match kind {
        1 | 2 | 6 | 7 => Some(1),
        3 | 8 => Some(2),
        4 | 9 | FLOAT | 13 => Some(4),
        FRACTION | SIGNED_FRACTION | DOUBLE | 16..=18 => Some(8),
        _ => None,
    }
}

/// A directory's entries.
pub(super) struct Directory<'a> {
    /// The whole file.
    pub(super) bytes: &'a [u8],
    pub(super) order: Order,
    /// Bytes of an entry, and of the value or offset that it ends with.
    sizes: [usize; 2],
    entries: &'a [u8],
}

/// How much an entry tells of.
pub(super) struct Entry {
    pub(super) tag: u16,
    /// Bytes of a value; 0 for a type that is none.
    pub(super) size: u64,
    pub(super) count: u64,
}

impl<'a> Directory<'a> {
    /// # Errors
    /// When the directory is not all there.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let order = if bytes.starts_with(b"MM") { Order::Big } else { Order::Little };
        let field = |at: usize, size: usize| {
            let digits = bytes.get(at..at.checked_add(size)?)?;
            usize::try_from(order.number(digits)).ok()
        };
        let is_big = field(2, 2) == Some(BIG as usize);
        // A BigTIFF says how long its offsets are.
        let (first, head, sizes) = match is_big {
            true if field(4, 2) == Some(8) => (field(8, 8), 8, [20, 8]),
            true => return Err(Error::invalid("damaged header: a BigTIFF whose offsets have not 8 bytes")),
            false => (field(4, 4), 2, [12, 4]),
        };
        let entries = first.and_then(|first| {
            let (start, count) = (first.checked_add(head)?, field(first, head)?);
            bytes.get(start..start.checked_add(count.checked_mul(sizes[0])?)?)
        });
        let entries = entries.ok_or_else(|| {
            Error::invalid(format!(
                "truncated header: the directory is not within the input of {} bytes",
                bytes.len()
            ))
        })?;
        Ok(Self { bytes, order, sizes, entries })
    }

    /// How much each entry tells of; their values may be missing.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let ([size, room], order) = (self.sizes, self.order);
        self.entries.chunks_exact(size).map(move |entry| Entry {
            tag: order.number(&entry[..2]) as u16,
            size: size_of(order.number(&entry[2..4]) as u16).unwrap_or(0) as u64,
            count: order.number(&entry[4..4 + room]),
        })
    }

    /// The values of a tag; of several entries the first counts.
    ///
    /// # Errors
    /// When they are of an unknown type or not within the file.
    pub(super) fn values(&self, tag: u16) -> Result<Option<Values<'a>>> {
        let [size, room] = self.sizes;
        let order = self.order;
        let found = self.entries.chunks_exact(size).find(|entry| order.number(&entry[..2]) == u64::from(tag));
        let Some(entry) = found else { return Ok(None) };
        let kind = order.number(&entry[2..4]) as u16;
        let unit = size_of(kind)
            .ok_or_else(|| Error::invalid(format!("damaged: values of type {kind} for tag {tag}")))?;
        let (count, value) = entry[4..].split_at(room);
        let length = usize::try_from(order.number(count)).ok().and_then(|count| count.checked_mul(unit));
        let raw = length.and_then(|length| match value.get(..length) {
            Some(raw) => Some(raw),
            None => {
                let start = usize::try_from(order.number(value)).ok()?;
                self.bytes.get(start..start.checked_add(length)?)
            }
        });
        let raw = raw.ok_or_else(|| {
            Error::invalid(format!("truncated: the values of tag {tag} are not within the input"))
        })?;
        Ok(Some(Values { raw, kind, unit, order }))
    }

    /// The first number of a tag.
    ///
    /// # Errors
    /// Those of [`Self::values`].
    pub(super) fn number(&self, tag: u16) -> Result<Option<u64>> {
        Ok(self.values(tag)?.and_then(|values| values.number(0)))
    }

    /// The bytes of a tag, of whichever type; none without it.
    ///
    /// # Errors
    /// Those of [`Self::values`].
    pub(super) fn raw(&self, tag: u16) -> Result<&'a [u8]> {
        Ok(self.values(tag)?.map_or(&[][..], |values| values.raw))
    }
}

/// The values of a tag, where they lie in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values<'a> {
    raw: &'a [u8],
    kind: u16,
    unit: usize,
    order: Order,
}

impl Values<'_> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.raw.len() / self.unit
    }

    /// Value `i`, if it is there and is a whole number that is not below 0.
    pub(super) fn number(&self, i: usize) -> Option<u64> {
        let start = i.checked_mul(self.unit)?;
        let number = self.order.number(self.raw.get(start..start.checked_add(self.unit)?)?);
        let is_negative = matches!(self.kind, 6 | 8 | 9 | 17) && number >> (8 * self.unit - 1) != 0;
        let is_whole = !matches!(self.kind, FRACTION | SIGNED_FRACTION | FLOAT | DOUBLE);
        (is_whole && !is_negative).then_some(number)
    }

    /// Value `i` as it is used in formulas, if it is there.
    pub(super) fn real(&self, i: usize) -> Option<f32> {
        let start = i.checked_mul(self.unit)?;
        let digits = self.raw.get(start..start.checked_add(self.unit)?)?;
        let number = self.order.number(digits);
        Some(match self.kind {
            FRACTION | SIGNED_FRACTION => {
                let (above, below) = digits.split_at(4);
                let half = |digits: &[u8]| self.order.number(digits) as u32;
                let [above, below] = [above, below].map(half);
                let real = |half: u32| match self.kind {
                    FRACTION => f64::from(half),
                    _ => f64::from(half.cast_signed()),
                };
                if below == 0 { 0.0 } else { (real(above) / real(below)) as f32 }
            }
            FLOAT => f32::from_bits(number as u32),
            DOUBLE => f64::from_bits(number) as f32,
            _ => self.number(i)? as f32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(raw: &[u8], kind: u16, order: Order) -> Values<'_> {
        Values { raw, kind, unit: size_of(kind).unwrap_or(1), order }
    }

    #[test]
    fn numbers_are_of_both_orders() {
        assert_eq!(values(&[1, 2, 3, 4], 3, Order::Little).number(1), Some(0x403));
        assert_eq!(values(&[1, 2, 3, 4], 3, Order::Big).number(1), Some(0x304));
        assert_eq!(values(&[1, 2, 3, 4], 3, Order::Big).number(2), None);
        assert_eq!(values(&[0xFF, 0xFF], 8, Order::Big).number(0), None);
        assert_eq!(values(&[0, 0, 0, 3, 0, 0, 0, 4], 5, Order::Big).real(0), Some(0.75));
        assert_eq!(values(&[0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0], 10, Order::Little).real(0), Some(-0.5));
        assert_eq!(values(&[0, 0, 0, 3, 0, 0, 0, 0], 5, Order::Big).real(0), Some(0.0));
    }

    #[test]
    fn a_directory_far_outside_is_an_error() {
        for bytes in [&b"II*\0\xff\xff\xff\xff"[..], b"MM\0*\0\0\0\x08", b"II", b"II+\0\x08\0\0\0\xff"] {
            assert!(Directory::read(bytes).is_err());
        }
        // One entry of 2^32 - 1 values.
        let file = b"MM\0*\0\0\0\x08\0\x01\x01\x11\0\x04\xff\xff\xff\xff\0\0\0\0\0\0\0\0";
        let directory = Directory::read(file).expect("a directory");
        assert!(directory.values(0x111).is_err());
        assert!(directory.values(0x112).expect("no entry").is_none());
    }
}
