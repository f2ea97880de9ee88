//! Which JPEGs the engines take, told from the file alone: baseline, 8 bits, one scan, a common chroma sampling, whole.
//! It must not know nvJPEG.
//!
//! It is stricter than a decoder has to be. A library that reads files from the network without bounds of ours gets
//! only files whose every segment was checked; whatever is unusual or damaged is for others.

use super::header::{EOI, Header};
use super::share::Size;
use crate::limits;

/// Adobe's colour transform of a file whose three components are YCbCr.
const ADOBE_YCBCR: u8 = 1;

/// How chroma is sampled. In this order batches are sorted, so that like follows like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sampling {
    /// One component, no chroma.
    Gray,
    /// 4:4:4: as luma.
    Full,
    /// 4:2:2: half the columns.
    HalfColumns,
    /// 4:4:0: half the rows.
    HalfRows,
    /// 4:2:0: half of both.
    Quarter,
}

impl Sampling {
    /// Every sampling that the engines take.
    pub const ALL: [Self; 5] = [Self::Gray, Self::Full, Self::HalfColumns, Self::HalfRows, Self::Quarter];

    /// Of components with such factors, across and down.
    fn of(factors: &[[u8; 2]]) -> Option<Self> {
        match factors {
            [[1, 1]] => Some(Self::Gray),
            [luma, [1, 1], [1, 1]] => match luma {
                [1, 1] => Some(Self::Full),
                [2, 1] => Some(Self::HalfColumns),
                [1, 2] => Some(Self::HalfRows),
                [2, 2] => Some(Self::Quarter),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What a header says of the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Columns as stored.
    pub width: usize,
    /// Rows as stored.
    pub height: usize,
    /// Sampling of chroma.
    pub sampling: Sampling,
}

/// A file that the engines take, with what its header says.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    bytes: &'a [u8],
    frame: Frame,
}

impl<'a> Picture<'a> {
    /// Looks at a file. `None`: it is not for the engines.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        Self::of(&Header::read(bytes)?)
    }

    /// Looks at a file whose header was read.
    pub fn of(header: &Header<'a>) -> Option<Self> {
        let factors: Vec<[u8; 2]> = header.components.iter().map(|component| component.factors).collect();
        let sampling = Sampling::of(&factors)?;
        let (width, height) = (usize::from(header.width), usize::from(header.height));
        let sides = limits::MIN_ENGINE_SIDE..=limits::MAX_ENGINE_SIDE;
        let fits =
            sides.contains(&width) && sides.contains(&height) && width * height <= limits::MAX_ENGINE_PIXELS;
        // Three components are YCbCr, unless they say that they are not.
        let ids: Vec<u8> = header.components.iter().map(|component| component.id).collect();
        let usual = ids.len() == 1
            || !matches!(ids.as_slice(), b"RGB" | b"rgb")
                && header.adobe.is_none_or(|transform| transform == ADOBE_YCBCR);
        (header.baseline && fits && usual && ends(header.data))
            .then_some(Self { bytes: header.bytes, frame: Frame { width, height, sampling } })
    }

    /// The file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How large it is.
    pub fn size(&self) -> Size {
        Size { bytes: self.bytes.len(), pixels: self.frame.width * self.frame.height }
    }

    /// What its header says.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }
}

/// Whether an end marker is among the last bytes. Zeros and other garbage may follow it.
fn ends(data: &[u8]) -> bool {
    let tail = data.len().saturating_sub(limits::MAX_JPEG_TRAILER_BYTES);
    data.get(tail..).unwrap_or_default().windows(2).rev().any(|pair| pair == [0xFF, EOI])
}
