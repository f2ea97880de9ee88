//! The orientation that a camera writes: what it means, and where EXIF data has it. It must not know pixels.

/// How stored pixels are turned for viewing: first exchange rows and columns, then mirror. As a map from a viewed pixel
/// to the stored one:
///
/// ```text
/// (u, v) = transpose ? (y, x) : (x, y)
/// stored column = flip_x ? stored width - 1 - u : u        stored row = flip_y ? stored height - 1 - v : v
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Orientation {
    transpose: bool,
    flip_x: bool,
    flip_y: bool,
}

impl Orientation {
    /// From EXIF's number; any but 2 to 8 is the identity.
    pub fn from_exif(number: u32) -> Self {
        let (transpose, flip_x, flip_y) = match number {
            2 => (false, true, false),
            3 => (false, true, true),
            4 => (false, false, true),
            5 => (true, false, false),
            6 => (true, false, true),
            7 => (true, true, true),
            8 => (true, true, false),
            _ => (false, false, false),
        };
        Self { transpose, flip_x, flip_y }
    }

    /// Whether width and height change places.
    pub fn transposes(self) -> bool {
        self.transpose
    }

    /// Whether stored columns run from right to left.
    pub fn flips_x(self) -> bool {
        self.flip_x
    }

    /// Whether stored rows run from bottom to top.
    pub fn flips_y(self) -> bool {
        self.flip_y
    }
}

const EXIF_PREFIX: &[u8] = b"Exif\0\0";
const TAG_ORIENTATION: u16 = 0x112;
const TYPE_SHORT: u16 = 3;
const TYPE_LONG: u16 = 4;

/// The EXIF block of a JPEG APP1 segment, if that is what the segment holds.
pub(super) fn exif_block(segment: &[u8]) -> Option<&[u8]> {
    segment.strip_prefix(EXIF_PREFIX)
}

/// The orientation in an EXIF block (with or without its prefix): that of the first directory. The identity when there
/// is none or the block is damaged. Unlike `image`'s reader this one takes numbers stored as LONG, as DALI does.
pub(super) fn from_exif_block(block: &[u8]) -> Orientation {
    let block = exif_block(block).unwrap_or(block);
    Orientation::from_exif(find(block).unwrap_or(1))
}

fn find(block: &[u8]) -> Option<u32> {
    let big = match block.get(..4)? {
        b"II*\0" => false,
        b"MM\0*" => true,
        _ => return None,
    };
    let u16_at = |at: usize| -> Option<u16> {
        let bytes = block.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let u32_at = |at: usize| -> Option<u32> {
        let bytes = block.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let directory = u32_at(4)? as usize;
    let entries = usize::from(u16_at(directory)?);
    // As in DALI, a directory that is cut off says nothing.
    block.get(directory..directory.checked_add(2 + 12 * entries)?)?;
    for entry in 0..entries {
        let at = directory + 2 + 12 * entry;
        if u16_at(at)? == TAG_ORIENTATION {
            return match u16_at(at + 2)? {
                TYPE_SHORT => u16_at(at + 8).map(u32::from),
                TYPE_LONG => u32_at(at + 8),
                _ => None,
            };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_far_outside_is_no_orientation() {
        assert_eq!(from_exif_block(b"II*\0\xff\xff\xff\xff"), Orientation::default());
        assert_eq!(from_exif_block(b"MM\0*"), Orientation::default());
        assert_eq!(from_exif_block(b""), Orientation::default());
    }
}
