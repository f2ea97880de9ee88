//! The bytes of a strip or tile to those of its rows, by each compression that keeps bytes as they are. It must not
//! know samples.

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};
use weezl::{BitOrder, LzwStatus};

use super::fax::{self, Scheme};
use super::layout::{Layout, compression as by, tag};
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// Bytes that are made at a time, before it is asked whether somebody waits.
const PORTION: usize = 1 << 20;

/// How the strips or tiles of a file are coded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Codec {
    Stored,
    PackBits,
    Lzw,
    Deflate,
    Zstd,
    /// With the pixels of a row.
    Fax(Scheme, usize),
}

impl Codec {
    /// That of a file whose strips or tiles are `width` pixels wide.
    ///
    /// # Errors
    /// One that is not known.
    pub(super) fn of(layout: &Layout<'_>, width: usize) -> Result<Self> {
        let bilevel = |scheme: Scheme| match (layout.bits, layout.samples) {
            (1, 1) => Ok(Codec::Fax(scheme, width)),
            (bits, samples) => Err(Error::invalid(format!(
                "damaged: {samples} samples of {bits} bits coded as fax, expected 1 of 1"
            ))),
        };
        let group_3 = layout.directory.number(tag::GROUP_3)?.unwrap_or(0);
        match layout.compression {
            by::NONE => Ok(Codec::Stored),
            by::PACK_BITS => Ok(Codec::PackBits),
            by::LZW => Ok(Codec::Lzw),
            by::DEFLATE | by::OLD_DEFLATE => Ok(Codec::Deflate),
            by::ZSTD => Ok(Codec::Zstd),
            by::RUNS => bilevel(Scheme::Runs { align: 1 }),
            by::RUNS_OF_WORDS => bilevel(Scheme::Runs { align: 2 }),
            by::GROUP_3 => bilevel(Scheme::Group3 { two: group_3 & 1 != 0 }),
            by::GROUP_4 => bilevel(Scheme::Group4),
            other => Err(Error::unsupported(format!(
                "compression {other}{}, expected none, PackBits, LZW, Deflate, Zstandard, JPEG, JPEG 2000, JPEG XL, WebP, PNG or fax",
                name(other)
            ))),
        }
    }

    /// Fills `out`, rows of `stride` bytes, from `data`.
    ///
    /// # Errors
    /// Damaged data, or such that end before; when nobody waits any more.
    pub(super) fn decode(self, data: &[u8], stride: usize, out: &mut [u8], watch: &Watch<'_>) -> Result<()> {
        match self {
            Codec::Stored => {
                watch.charge(out.len() / 8)?;
                out.copy_from_slice(data.get(..out.len()).ok_or_else(truncated)?);
                Ok(())
            }
            Codec::PackBits => pack_bits(data, out, watch),
            Codec::Lzw => lzw(data, out, watch),
            Codec::Deflate => inflate(data, out, watch),
            Codec::Zstd => zstd(data, out, watch),
            Codec::Fax(scheme, width) => fax::decode(data, scheme, width, stride, out, watch),
        }
    }

    /// How many bytes of data are needed for so many bytes of rows, where that is known.
    pub(super) fn length(self, rows: usize) -> Option<usize> {
        matches!(self, Codec::Stored).then_some(rows)
    }
}

/// The names of compressions that are known and not read.
fn name(compression: u16) -> &'static str {
    match compression {
        32_766 => " (NeXT)",
        32_809 => " (ThunderScan)",
        32_908 | 32_909 => " (PixarFilm, PixarLog)",
        33_003 => " (JPEG 2000 of YCbCr)",
        34_661 | 9 | 10 => " (JBIG)",
        34_676 | 34_677 => " (SGI LogLuv)",
        34_887 => " (LERC)",
        34_925 => " (LZMA)",
        _ => "",
    }
}

fn truncated() -> Error {
    Error::invalid("truncated: the data of a strip or tile end before its pixels do")
}

fn pack_bits(data: &[u8], out: &mut [u8], watch: &Watch<'_>) -> Result<()> {
    let (mut data, mut at) = (data, 0);
    while at < out.len() {
        let (&count, rest) = data.split_first().ok_or_else(truncated)?;
        let room = out.len() - at;
        let length = match count {
            0..=127 => {
                // A run that is longer than the rows is cut off, as in libtiff.
                let length = (usize::from(count) + 1).min(room);
                out[at..at + length].copy_from_slice(rest.get(..length).ok_or_else(truncated)?);
                data = rest.get(usize::from(count) + 1..).unwrap_or_default();
                length
            }
            128 => {
                data = rest;
                0
            }
            129.. => {
                let (&value, rest) = rest.split_first().ok_or_else(truncated)?;
                let length = (257 - usize::from(count)).min(room);
                out[at..at + length].fill(value);
                data = rest;
                length
            }
        };
        watch.charge(length.max(1))?;
        at += length;
    }
    Ok(())
}

fn lzw(data: &[u8], out: &mut [u8], watch: &Watch<'_>) -> Result<()> {
    // Files of the first writers have the bits of codes from the lowest on, and begin so.
    let is_old = matches!(data, [0, second, ..] if second & 1 != 0);
    let mut decoder = match is_old {
        true => weezl::decode::Decoder::new(BitOrder::Lsb, 8),
        false => weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8),
    };
    let (mut data, mut at) = (data, 0);
    while at < out.len() {
        let end = out.len().min(at + PORTION);
        let done = decoder.decode_bytes(data, &mut out[at..end]);
        data = data.get(done.consumed_in..).unwrap_or_default();
        at += done.consumed_out;
        watch.charge(done.consumed_out.max(1))?;
        match done.status {
            Ok(LzwStatus::Ok) => {}
            _ if at >= out.len() => {}
            Ok(LzwStatus::NoProgress | LzwStatus::Done) => return Err(truncated()),
            Err(error) => return Err(Error::invalid(format!("damaged: LZW: {error}"))),
        }
    }
    Ok(())
}

fn inflate(data: &[u8], out: &mut [u8], watch: &Watch<'_>) -> Result<()> {
    let mut decoder = Decompress::new(true);
    let (mut data, mut at) = (data, 0);
    while at < out.len() {
        let end = out.len().min(at + PORTION);
        let (read, written) = (decoder.total_in(), decoder.total_out());
        let status = decoder.decompress(data, &mut out[at..end], FlushDecompress::None);
        let (read, written) = (decoder.total_in() - read, (decoder.total_out() - written) as usize);
        data = data.get(read as usize..).unwrap_or_default();
        at += written;
        watch.charge(written.max(1))?;
        match status {
            _ if at >= out.len() => {}
            Ok(Status::Ok | Status::BufError) if written > 0 || read > 0 => {}
            Ok(_) => return Err(truncated()),
            Err(error) => return Err(Error::invalid(format!("damaged: Deflate: {error}"))),
        }
    }
    Ok(())
}

fn zstd(data: &[u8], out: &mut [u8], watch: &Watch<'_>) -> Result<()> {
    let damaged = |error: &dyn std::fmt::Display| Error::invalid(format!("damaged: Zstandard: {error}"));
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(data).map_err(|error| damaged(&error))?;
    for part in out.chunks_mut(PORTION) {
        decoder.read_exact(part).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => truncated(),
            _ => damaged(&error),
        })?;
        watch.charge(part.len())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(codec: Codec, data: &[u8], count: usize) -> Result<Vec<u8>> {
        let mut out = vec![0; count];
        codec.decode(data, count, &mut out, &Watch::forever())?;
        Ok(out)
    }

    #[test]
    fn runs_and_copies_are_unpacked() {
        let data = [254, 7, 128, 1, 3, 4, 255, 9];
        assert_eq!(decoded(Codec::PackBits, &data, 7).expect("bytes"), [7, 7, 7, 3, 4, 9, 9]);
        assert_eq!(decoded(Codec::PackBits, &data, 2).expect("bytes"), [7, 7]);
        assert!(
            decoded(Codec::PackBits, &data, 8).is_err_and(|error| error.to_string().contains("truncated"))
        );
        assert!(decoded(Codec::Stored, &data, 9).is_err());
    }

    #[test]
    fn garbage_is_an_error() {
        for codec in [Codec::Lzw, Codec::Deflate, Codec::Zstd] {
            assert!(decoded(codec, &[0x55; 40], 1_000).is_err(), "{codec:?}");
            assert!(decoded(codec, &[], 1).is_err(), "{codec:?}");
        }
    }
}
