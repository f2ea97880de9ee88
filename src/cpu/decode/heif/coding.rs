//! How pictures of HEIF are coded, and what a box says of that. It must not know where boxes lie.

use crate::cpu::bytes::Bytes;
use crate::error::Result;

/// How pictures of a file are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu::decode) enum Coding {
    /// By AV1.
    Av1,
    /// By H.265.
    H265,
}

/// What the configuration of a decoder says of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Samples {
    /// Bits of each.
    pub(super) depth: usize,
    /// Whether there is luma only.
    pub(super) gray: bool,
    /// Whether chroma is halved along both sides.
    pub(super) halved_twice: bool,
}

impl Coding {
    /// The type of its items.
    pub(super) fn item(self) -> &'static [u8; 4] {
        match self {
            Self::Av1 => b"av01",
            Self::H265 => b"hvc1",
        }
    }

    /// The property that has the configuration of its decoder.
    pub(super) fn property(self) -> &'static [u8; 4] {
        match self {
            Self::Av1 => b"av1C",
            Self::H265 => b"hvcC",
        }
    }

    /// Reads that property.
    pub(super) fn samples(self, property: &[u8]) -> Result<Samples> {
        let mut body = Bytes(property);
        match self {
            Self::Av1 => {
                body.skip(2)?;
                let coding = body.u8()?;
                let depth = match coding >> 5 & 3 {
                    0 | 1 => 8,
                    2 => 10,
                    _ => 12,
                };
                let gray = coding & 16 != 0;
                Ok(Samples { depth, gray, halved_twice: !gray && coding >> 2 & 3 == 3 })
            }
            Self::H265 => {
                body.skip(16)?;
                let chroma = body.u8()? & 3;
                let depth = 8 + usize::from(body.u8()? & 7);
                Ok(Samples { depth, gray: chroma == 0, halved_twice: chroma == 1 })
            }
        }
    }
}
