//! What a container says of a picture of H.265 that needs no others, and the picture's bytes as a stream that engines
//! of a device take. It must not know boxes or decoders.

use rusty_h265::nal::{NalHeader, NalType};
use rusty_h265::ps::Sps;

use super::coded::push_unit;
use super::decoder::damaged;
use super::h265::{MOST_SLICES, is_first};
use super::h265_kept;
use super::nal::{self, Framing};
use super::track::Codec;
use crate::cpu::av1::{UNSPECIFIED, matrix_of};
use crate::error::{Error, Result};

/// Columns and rows that are decoded beside those that are shown: blocks have up to 64.
const MOST_PADDING: usize = 128;

/// Bits of a sample, at most.
const MOST_BITS: u32 = 12;

/// What a container says of its pictures.
pub(in crate::cpu) struct Parameters<'c> {
    /// Of the first sequence.
    pub(in crate::cpu) sps: Sps,
    /// All units of parameters.
    pub(super) units: Vec<&'c [u8]>,
    pub(super) framing: Framing,
    /// Bytes of the length before a unit.
    pub(super) length_size: usize,
}

impl<'c> Parameters<'c> {
    /// Reads a configuration. `size` is what the container says of its pictures: larger ones are refused.
    ///
    /// # Errors
    /// Damaged bytes, a kind that is not decoded.
    pub(in crate::cpu) fn read(config: &'c [u8], size: [usize; 2]) -> Result<Self> {
        let (units, framing) = nal::configuration(Codec::H265, config)?;
        let Framing::Lengths(length_size) = framing else {
            return Err(Error::invalid("H.265 without parameters of its picture"));
        };
        let mut parameters = Vec::new();
        let mut first = None;
        for unit in units {
            let Some(head) = NalHeader::parse(unit).filter(|head| head.layer_id == 0) else { continue };
            match head.nal_type {
                NalType::Sps => {
                    let (sps, shape) = h265_kept::sequence(unit)?;
                    let most = size.map(|side| side.saturating_add(MOST_PADDING));
                    if shape.coded.iter().zip(most).any(|(coded, most)| *coded > most) {
                        let ([width, height], [said_width, said_height]) = (shape.coded, size);
                        return Err(Error::invalid(format!(
                            "damaged: a picture of {width} x {height} pixels, the header says {said_width} x {said_height}"
                        )));
                    }
                    first.get_or_insert(sps);
                }
                NalType::Vps | NalType::Pps => {}
                _ => continue,
            }
            parameters.push(unit);
        }
        let sps = first.ok_or_else(|| Error::invalid("H.265 without parameters of its picture"))?;
        if sps.bit_depth_luma != sps.bit_depth_chroma && sps.chroma_format_idc != 0 {
            return Err(different_bits());
        }
        if u32::from(sps.bit_depth_luma) > MOST_BITS {
            let bits = sps.bit_depth_luma;
            return Err(Error::unsupported(format!("H.265 of {bits} bits, expected at most {MOST_BITS}")));
        }
        Ok(Self { sps, units: parameters, framing, length_size })
    }

    /// Replaces what `into` holds by a picture's bytes as an engine takes them, with start codes and behind the
    /// parameters if these are asked for.
    ///
    /// # Errors
    /// A picture without its beginning, or one that is made from others.
    pub(in crate::cpu) fn frame(
        &self,
        stream: &[u8],
        with_parameters: bool,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        into.clear();
        let parameters = if with_parameters { self.units.as_slice() } else { &[] };
        let slices = nal::units(stream, self.framing).filter(|unit| {
            NalHeader::parse(unit).is_some_and(|head| head.layer_id == 0 && head.nal_type.is_vcl())
        });
        let mut count = 0;
        // Pictures behind the first are of no account.
        for slice in slices.enumerate().map_while(|(i, unit)| (i == 0 || !is_first(unit)).then_some(unit)) {
            if count == 0 {
                if !NalHeader::parse(slice).is_some_and(|head| head.nal_type.is_irap()) || !is_first(slice) {
                    return Err(damaged(
                        "H.265: a picture without its beginning, or that is made from others",
                    ));
                }
                parameters.iter().for_each(|unit| push_unit(unit, into));
            }
            count += 1;
            if count > MOST_SLICES {
                return Err(damaged(format!("H.265: a picture of more than {MOST_SLICES} slices")));
            }
            push_unit(slice, into);
        }
        if count == 0 { Err(damaged("H.265: no picture")) } else { Ok(()) }
    }
}

/// The number of the matrix of colours in ISO/IEC 23091-2, and whether samples take the whole range of their bits.
pub(in crate::cpu) fn colors(sps: &Sps) -> (u8, bool) {
    // Where nothing says it the crate says 0, which would be red, green and blue.
    let vui = sps.vui.as_ref();
    let matrix = vui.map_or(0, |vui| matrix_of(vui.matrix_coeffs.into(), vui.colour_primaries.into()));
    let matrix = if matrix == 0 { UNSPECIFIED } else { matrix };
    (matrix, vui.is_some_and(|vui| vui.video_full_range_flag))
}

/// Whether `rusty_h265` decodes such a picture.
pub(in crate::cpu) fn is_usual(sps: &Sps) -> bool {
    sps.chroma_format_idc == 1 && sps.bit_depth_luma <= 10 && sps.ptl.profile() <= 3 && !sps.range_extension
}

pub(super) fn different_bits() -> Error {
    Error::unsupported("H.265 whose luma and chroma have different numbers of bits")
}
