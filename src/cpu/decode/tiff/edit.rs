//! Copies of files whose first image claims to be something else: what crate `tiff` does not read, it then reads as something that it
//! does.

use std::io::{Read, Seek};

use tiff::decoder::Decoder;
use tiff::tags::{ByteOrder, Tag};

use crate::error::{Error, Result};

/// The type of an entry whose value has 32 bits.
const LONG: u64 = 4;

/// A copy of a file whose first image has one number in each of these entries, which are there already.
///
/// # Errors
/// When its directory ends too early, lacks an entry, or holds it in an odd way.
pub(super) fn edited<R: Read + Seek>(
    bytes: &[u8],
    decoder: &mut Decoder<R>,
    numbers: &[(Tag, u32)],
) -> Result<Vec<u8>> {
    let mut copy = bytes.to_vec();
    for &(tag, number) in numbers {
        write(&mut copy, decoder, tag, number)
            .ok_or_else(|| Error::invalid(format!("damaged: no readable number {tag:?}")))?;
    }
    Ok(copy)
}

/// Writes `number` as the only value of the first image's entry for `tag`.
fn write<R: Read + Seek>(bytes: &mut [u8], decoder: &mut Decoder<R>, tag: Tag, number: u32) -> Option<()> {
    let is_big = matches!(decoder.byte_order(), ByteOrder::BigEndian);
    // A directory is the number of its entries and these: tag, type, count, value.
    let has_long_offsets = read(bytes, is_big, 2, 2)? == 43;
    let (head, entry, value) = if has_long_offsets { (8, 20, 12) } else { (2, 12, 8) };
    let first = usize::try_from(decoder.ifd_pointer()?.0).ok()?;
    let entries = read(bytes, is_big, first, head)?.min(u64::from(u16::MAX)) as usize;
    let at = (0..entries)
        .map_while(|i| first.checked_add(head + entry * i))
        .take_while(|&at| at < bytes.len())
        .find(|&at| read(bytes, is_big, at, 2) == Some(u64::from(tag.to_u16())))?;
    let size = match read(bytes, is_big, at + 2, 2)? {
        1 if number <= 0xFF => 1,
        1 | 3 if number <= 0xFFFF => 2,
        1 | 3 | LONG => 4,
        _ => return None,
    };
    let kind = match size {
        1 => 1,
        2 => 3,
        _ => LONG,
    };
    put(bytes, is_big, at + 2, 2, kind)?;
    put(bytes, is_big, at + 4, value - 4, 1)?;
    put(bytes, is_big, at + value, size, u64::from(number))
}

fn read(bytes: &[u8], is_big: bool, at: usize, size: usize) -> Option<u64> {
    let digits = bytes.get(at..at.checked_add(size)?)?;
    let add = |sum: u64, &digit: &u8| sum << 8 | u64::from(digit);
    Some(if is_big { digits.iter().fold(0, add) } else { digits.iter().rev().fold(0, add) })
}

fn put(bytes: &mut [u8], is_big: bool, at: usize, size: usize, number: u64) -> Option<()> {
    let digits = number.to_le_bytes();
    let to = bytes.get_mut(at..at.checked_add(size)?)?;
    to.copy_from_slice(&digits[..size]);
    if is_big {
        to.reverse();
    }
    Some(())
}
