//! How much a TIFF's first image tells of, before it is read: values of its tags, and bytes of its strips or tiles, which may all be
//! the same ones. It must not know what the values mean otherwise.

use crate::error::{Error, Result};

/// Most values of a tag. A reader takes a hundred bytes for some of them.
const MAX_VALUES: u64 = 1 << 20;

/// Bytes by which strips may be longer in all than the file and its pixels. Compressed noise is hardly longer than what it becomes.
const SPARE_BYTES: u64 = 1 << 16;

/// Tags that are read: those of pixels and colours. Others may be damaged.
const READ: std::ops::RangeInclusive<u64> = 254..=532;

/// Bytes of every strip, and of every tile.
const COUNTS: [u64; 2] = [279, 325];

/// Bytes, of which there may be more than of other values.
const JPEG_TABLES: u64 = 347;

/// Bytes of a value of each type.
const SIZES: [u64; 19] = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8];

/// Reads numbers of a file.
#[derive(Clone, Copy)]
struct File<'a> {
    bytes: &'a [u8],
    is_big_endian: bool,
}

/// A tag of the first image.
struct Entry {
    tag: u64,
    /// Bytes of a value; 0 for a type that is none.
    size: u64,
    count: u64,
    /// Where the first value is.
    at: u64,
}

impl<'a> File<'a> {
    fn number(self, at: u64, size: u64) -> Option<u64> {
        let start = usize::try_from(at).ok()?;
        let digits = self.bytes.get(start..start.checked_add(size as usize)?)?;
        let append = |number: u64, &digit: &u8| number << 8 | u64::from(digit);
        Some(match self.is_big_endian {
            true => digits.iter().fold(0, append),
            false => digits.iter().rev().fold(0, append),
        })
    }

    /// The tags of the first image, as far as they are there.
    fn entries(bytes: &'a [u8]) -> Option<(Self, impl Iterator<Item = Entry>)> {
        let file = File { bytes, is_big_endian: bytes.starts_with(b"MM") };
        let is_long = file.number(2, 2)? == 43;
        let (head, first, entry) =
            if is_long { (8, file.number(8, 8)?, 20) } else { (2, file.number(4, 4)?, 12) };
        let word = if is_long { 8 } else { 4 };
        let entries = file.number(first, head)?.min(u64::from(u16::MAX));
        let read = move |i: u64| {
            let at = first.checked_add(head)?.checked_add(i * entry)?;
            let size = SIZES.get(file.number(at + 2, 2)? as usize).copied().unwrap_or(0);
            let count = file.number(at + 4, word)?;
            let value = at + 4 + word;
            let is_here = size.saturating_mul(count) <= word;
            let at_value = if is_here { value } else { file.number(value, word)? };
            Some(Entry { tag: file.number(at, 2)?, size, count, at: at_value })
        };
        Some((file, (0..entries).map_while(read)))
    }
}

/// Whether tags tell of values that can be there.
///
/// # Errors
/// When one has more than its limit, or more than the file is long.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    let Some((_, entries)) = File::entries(bytes) else { return Ok(()) };
    for Entry { tag, size, count, .. } in entries.filter(|entry| READ.contains(&entry.tag)) {
        if size.saturating_mul(count) > bytes.len() as u64 {
            return Err(Error::invalid(format!(
                "truncated: tag {tag} has {count} values of {size} bytes in a file of {}",
                bytes.len()
            )));
        }
        if tag != JPEG_TABLES && count > MAX_VALUES {
            return Err(Error::invalid(format!(
                "tag {tag} has {count} values, more than the limit of {MAX_VALUES}"
            )));
        }
    }
    Ok(())
}

/// Bytes of all strips or tiles, each counted as often as it is told of.
pub(super) fn coded_bytes(bytes: &[u8]) -> u64 {
    let Some((file, entries)) = File::entries(bytes) else { return 0 };
    let sum = |entry: Entry| {
        let value = |i: u64| file.number(entry.at.checked_add(i * entry.size)?, entry.size);
        (0..entry.count.min(MAX_VALUES)).map_while(value).fold(0, u64::saturating_add)
    };
    entries
        .filter(|entry| COUNTS.contains(&entry.tag) && (1..=8).contains(&entry.size))
        .map(sum)
        .max()
        .unwrap_or(0)
}

/// Whether the strips of an image with so many bytes of pixels are no longer together than can be: where many are the same bytes, the same
/// work is done for each.
///
/// # Errors
/// When they are.
pub(super) fn check_coded_bytes(bytes: &[u8], pixels: usize) -> Result<()> {
    let coded = coded_bytes(bytes);
    let most = (bytes.len() as u64).saturating_add(2 * pixels as u64).saturating_add(SPARE_BYTES);
    if coded > most {
        return Err(Error::invalid(format!(
            "damaged: strips or tiles of {coded} bytes in all lie over one another, expected at most {most}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TIFF of one tag.
    fn file(tag: u16, kind: u16, values: &[u32], count: u32) -> Vec<u8> {
        let mut made = b"II*\0\x08\0\0\0\x01\0".to_vec();
        made.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        made.extend([count, 26].map(u32::to_le_bytes).concat());
        made.extend([0; 4]);
        made.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        made
    }

    #[test]
    fn strips_at_one_place_are_counted_each_time() {
        let strips = file(279, 4, &[200_000; 60], 60);
        assert_eq!(coded_bytes(&strips), 12_000_000);
        let error = check_coded_bytes(&strips, 60).unwrap_err().to_string();
        assert!(error.contains("12000000 bytes in all lie over one another"), "{error}");
        // As long as they are no more than what they become.
        assert!(check_coded_bytes(&strips, 6_000_000).is_ok());
        assert!(check_coded_bytes(&file(279, 4, &[100, 60], 2), 200).is_ok());
    }

    #[test]
    fn values_that_cannot_be_there_are_an_error() {
        let error = check(&file(273, 4, &[1, 2], 1 << 26)).unwrap_err().to_string();
        assert!(error.contains("tag 273 has 67108864 values of 4 bytes in a file of 34"), "{error}");
        assert!(check(&file(273, 4, &[1, 2], 2)).is_ok());
        // A tag of somebody else's.
        assert!(check(&file(50_000, 4, &[1, 2], 1 << 26)).is_ok());
        for length in 0..34 {
            let cut = &file(273, 4, &[1, 2], 2)[..length];
            let _ = (check(cut), coded_bytes(cut));
        }
    }
}
