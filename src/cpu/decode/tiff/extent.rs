//! How much a TIFF's first image tells of, before it is read: values of its tags, and bytes of its strips or tiles,
//! which may all be the same ones. It must not know what the values mean otherwise.

use super::directory::{Directory, Entry};
use crate::error::{Error, Result};

/// Most values of a tag. A reader takes a hundred bytes for some of them.
const MAX_VALUES: u64 = 1 << 20;

/// Bytes by which strips may be longer in all than the file and its pixels. Compressed noise is hardly longer than what
/// it becomes.
const SPARE_BYTES: u64 = 1 << 16;

/// Tags that are read: those of pixels and colours. Others may be damaged.
const READ: std::ops::RangeInclusive<u16> = 254..=532;

/// Bytes of every strip, and of every tile.
const COUNTS: [u16; 2] = [279, 325];

/// Bytes, of which there may be more than of other values.
const JPEG_TABLES: u16 = 347;

/// Whether tags tell of values that can be there.
///
/// # Errors
/// When one has more than its limit, or more than the file is long.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    let directory = Directory::read(bytes)?;
    for Entry { tag, size, count } in directory.entries().filter(|entry| READ.contains(&entry.tag)) {
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
    let Ok(directory) = Directory::read(bytes) else { return 0 };
    let sum = |tag: u16| {
        let values = directory.values(tag).ok().flatten()?;
        let most = values.len().min(MAX_VALUES as usize);
        Some((0..most).map_while(|i| values.number(i)).fold(0, u64::saturating_add))
    };
    COUNTS.into_iter().filter_map(sum).max().unwrap_or(0)
}

/// Whether the strips of an image with so many bytes of pixels are no longer together than can be: where many are the
/// same bytes, the same work is done for each.
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
