//! What stands in front of the pixels of a BMP. It must not know how pixels are stored.
//!
//! | bytes of the header | who writes it |
//! | --- | --- |
//! | 12 | OS/2 1, and Windows 2: sizes of 16 bits, colours of the palette in 3 bytes |
//! | 16 to 64, but for those below | OS/2 2: what is missing at its end is 0 |
//! | 40 | Windows 3: colour masks follow it |
//! | 52, 56, 108, 124 | Windows: colour masks stand in it, from 56 on with that of alpha |

use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// Bytes in front of the header.
const FILE_HEADER: usize = 14;
/// Where the file header says where pixels begin.
const PIXELS_AT: usize = 10;

const CORE: usize = 12;
const INFO: usize = 40;
const WITH_MASKS: usize = 52;
const WITH_ALPHA: usize = 56;
const OS2: usize = 64;
const LARGEST: usize = 124;

/// Most colours of a palette that pixels can name.
const MAX_COLORS: usize = 256;

/// How pixels are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Row after row.
    Stored,
    /// As runs of one colour.
    Runs,
}

/// Which bits of a pixel a sample has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mask {
    pub(super) shift: u32,
    pub(super) bits: u32,
}

impl Mask {
    /// The largest sample.
    pub(super) fn most(self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    fn new(mask: u32) -> Result<Option<Self>> {
        if mask == 0 {
            return Ok(None);
        }
        let shift = mask.trailing_zeros();
        let bits = (mask >> shift).trailing_ones();
        if bits != mask.count_ones() {
            return Err(Error::invalid(format!(
                "damaged: colour mask {mask:#010x}, whose bits are not adjacent"
            )));
        }
        Ok(Some(Self { shift, bits }))
    }
}

/// Where samples are in a pixel of 16 or 32 bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Masks {
    /// Red, green, blue.
    pub(super) colors: [Option<Mask>; 3],
    pub(super) alpha: Option<Mask>,
}

/// A file whose header was read.
pub(super) struct File<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) is_top_down: bool,
    /// Of a pixel.
    pub(super) bits: usize,
    pub(super) coding: Coding,
    /// Red, green and blue of each colour.
    pub(super) palette: Vec<[u8; 3]>,
    pub(super) masks: Masks,
    /// From the first pixel to the end of the file.
    pub(super) pixels: &'a [u8],
    length: usize,
    has_masks: bool,
}

impl<'a> File<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let truncated = || Error::invalid(format!("truncated header: the input has {} bytes", bytes.len()));
        let (Some(head), Some(mut rest)) = (bytes.get(..FILE_HEADER), bytes.get(FILE_HEADER..).map(Bytes))
        else {
            return Err(truncated());
        };
        let pixels_at = Bytes(&head[PIXELS_AT..]).u32_le()? as usize;
        let length = rest.u32_le().map_err(|_| truncated())? as usize;
        if length != CORE && !(CORE + 4..=OS2).contains(&length) && ![108, LARGEST].contains(&length) {
            return Err(Error::unsupported(format!(
                "a header of {length} bytes, expected 12, 16 to 64, 108 or 124"
            )));
        }
        let mut fields = [0; LARGEST];
        fields[4..length].copy_from_slice(rest.take(length - 4).map_err(|_| truncated())?);
        let mut file = Self::sized(&fields, length)?;
        let word = |at: usize| Bytes(&fields[at..]).u32_le();
        let (compression, colors) = if length == CORE { (0, 0) } else { (word(16)?, word(32)? as usize) };
        file.coding = file.coding_of(compression)?;
        file.has_masks = matches!(compression, 3 | 6);
        if matches!(file.bits, 16 | 32) {
            let mut masks = file.usual_masks();
            if file.has_masks {
                let count = if compression == 6 || length >= WITH_ALPHA { 4 } else { 3 };
                let mut from = if length >= WITH_MASKS {
                    Bytes(&fields[INFO..])
                } else {
                    Bytes(rest.take(4 * count).map_err(|_| truncated())?)
                };
                for mask in masks.iter_mut().take(count) {
                    *mask = from.u32_le()?;
                }
                if masks[..3].iter().all(|mask| *mask == 0) {
                    return Err(Error::invalid("damaged: no colour has a mask"));
                }
            }
            let [red, green, blue, alpha] = masks;
            file.masks = Masks {
                colors: [Mask::new(red)?, Mask::new(green)?, Mask::new(blue)?],
                alpha: Mask::new(alpha)?,
            };
        }
        if file.bits <= 8 {
            let count = if colors == 0 { 1 << file.bits } else { colors.min(MAX_COLORS) };
            let entry = if length == CORE { 3 } else { 4 };
            let palette = rest.take(count * entry).map_err(|_| truncated())?;
            file.palette = palette.chunks_exact(entry).map(|color| [color[2], color[1], color[0]]).collect();
        }
        file.pixels = bytes.get(pixels_at..).unwrap_or_default();
        Ok(file)
    }

    fn sized(fields: &[u8; LARGEST], length: usize) -> Result<Self> {
        let mut rest = Bytes(&fields[4..]);
        let (width, height, bits);
        if length == CORE {
            (width, height) = (i32::from(rest.u16_le()?), i32::from(rest.u16_le()?));
            rest.skip(2)?;
            bits = rest.u16_le()?;
        } else {
            (width, height) = (rest.u32_le()?.cast_signed(), rest.u32_le()?.cast_signed());
            rest.skip(2)?;
            bits = rest.u16_le()?;
        }
        if !matches!(bits, 0 | 1 | 2 | 4 | 8 | 16 | 24 | 32) || (bits == 0 && length == CORE) {
            return Err(Error::invalid(format!(
                "damaged: pixels of {bits} bits, expected one of 1, 2, 4, 8, 16, 24, 32"
            )));
        }
        let Ok(width) = usize::try_from(width) else {
            return Err(Error::invalid(format!("damaged: a width of {width} pixels")));
        };
        Ok(Self {
            width,
            height: height.unsigned_abs() as usize,
            is_top_down: height < 0,
            bits: usize::from(bits),
            coding: Coding::Stored,
            palette: Vec::new(),
            masks: Masks::default(),
            pixels: &[],
            length,
            has_masks: false,
        })
    }

    /// How pixels are stored, by its number.
    fn coding_of(&self, compression: u32) -> Result<Coding> {
        let is_os2 = self.length < INFO || self.length == OS2;
        let refused = |what: &str| {
            Err(Error::unsupported(format!("{what}, expected pixels that are stored, or runs of them")))
        };
        match (compression, self.bits) {
            (0, 1..) => Ok(Coding::Stored),
            (1, 8) | (2, 4) => Ok(Coding::Runs),
            (4, 24) if is_os2 => Ok(Coding::Runs),
            (3, 1) if is_os2 => refused("pixels in the codes of a fax machine"),
            (3 | 6, 16 | 32) if !is_os2 => Ok(Coding::Stored),
            (4, _) if !is_os2 => refused("a JPEG in a BMP"),
            (5, _) => refused("a PNG in a BMP"),
            (11..=13, _) => refused("pixels of inks"),
            (other, bits) => {
                Err(Error::invalid(format!("damaged: compression {other} of pixels of {bits} bits")))
            }
        }
    }

    /// Masks where the file has none.
    fn usual_masks(&self) -> [u32; 4] {
        if self.bits == 16 { [0x7C00, 0x03E0, 0x001F, 0] } else { [0xFF_0000, 0xFF00, 0xFF, 0] }
    }

    /// Whether the header has a mask for alpha, be it 0, that tells of the pixels. DALI has another decoder for those.
    pub(super) fn has_alpha_mask_in_header(&self) -> bool {
        self.has_masks && self.bits == 32 && self.length >= WITH_ALPHA
    }
}
