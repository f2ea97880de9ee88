//! Several packets in one block of Matroska, one behind the other (RFC 9559, 10.3): how long each is. It must not know
//! what they hold.

use crate::cpu::bytes::Bytes;
use crate::cpu::matroska::number;
use crate::error::{Error, Result};

/// Bits of a block's flags that say how lengths are told: not at all (one packet), by bytes of 255 and a last one, all
/// alike, by differences.
const LACING: u8 = 0x06;
const BY_BYTES: u8 = 0x02;
const ALIKE: u8 = 0x04;

fn damaged() -> Error {
    Error::invalid("the audio is damaged: packets of a block of Matroska are longer than it is")
}

/// The packets of a block with such flags, of which `bytes` are what follows these.
///
/// # Errors
/// Invalid, for lengths that the block does not have.
pub(crate) fn packets(flags: u8, bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let lacing = flags & LACING;
    if lacing == 0 {
        return Ok(vec![bytes]);
    }
    let mut rest = Bytes(bytes);
    let count = usize::from(rest.u8()?) + 1;
    let lengths = match lacing {
        BY_BYTES => by_bytes(&mut rest, count - 1)?,
        ALIKE if rest.0.len().is_multiple_of(count) => vec![rest.0.len() / count; count - 1],
        ALIKE => return Err(damaged()),
        _ => by_differences(&mut rest, count - 1)?,
    };
    split(rest, &lengths)
}

/// The headers of Vorbis: told as packets that are told by bytes.
///
/// # Errors
/// As [`packets`].
pub(crate) fn headers(private: &[u8]) -> Result<Vec<&[u8]>> {
    packets(BY_BYTES, private)
}

/// Packets of these lengths, and one of all that follows.
fn split<'a>(mut rest: Bytes<'a>, lengths: &[usize]) -> Result<Vec<&'a [u8]>> {
    let mut packets = Vec::with_capacity(lengths.len() + 1);
    for length in lengths {
        packets.push(rest.take(*length).map_err(|_| damaged())?);
    }
    packets.push(rest.0);
    Ok(packets)
}

fn by_bytes(rest: &mut Bytes<'_>, count: usize) -> Result<Vec<usize>> {
    let one = |_| {
        let mut length = 0;
        loop {
            let byte = rest.u8()?;
            length += usize::from(byte);
            if byte < u8::MAX {
                return Ok(length);
            }
        }
    };
    (0..count).map(one).collect()
}

fn by_differences(rest: &mut Bytes<'_>, count: usize) -> Result<Vec<usize>> {
    let mut lengths = Vec::with_capacity(count);
    let mut length = 0_i64;
    for place in 0..count {
        let before = rest.0.len();
        let told = number(rest)?.and_then(|told| i64::try_from(told).ok()).ok_or_else(damaged)?;
        // A difference is told from the middle of the numbers that have as many bytes.
        let bytes = before - rest.0.len();
        let middle = (1_i64 << (7 * bytes - 1)) - 1;
        length = if place == 0 { told } else { length.checked_add(told - middle).ok_or_else(damaged)? };
        lengths.push(usize::try_from(length).map_err(|_| damaged())?);
    }
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_told_in_four_ways() {
        let of = |flags, bytes: &[u8]| -> Vec<Vec<u8>> {
            packets(flags, bytes).unwrap().into_iter().map(<[u8]>::to_vec).collect()
        };
        assert_eq!(of(0x80, &[2, 1, 5]), [[2, 1, 5]]);
        assert_eq!(of(0x02, &[2, 1, 2, 7, 8, 9, 6]), [vec![7], vec![8, 9], vec![6]]);
        assert_eq!(of(0x04, &[1, 7, 8, 9, 6]), [[7, 8], [9, 6]]);
        // A length of 2, then one less, then what is left.
        assert_eq!(of(0x06, &[2, 0x82, 0xBE, 7, 8, 9, 6]), [vec![7, 8], vec![9], vec![6]]);
        let long = [&[1, 255, 1][..], &[3; 256], &[4]].concat();
        assert_eq!(of(0x02, &long).iter().map(Vec::len).collect::<Vec<_>>(), [256, 1]);
    }

    #[test]
    fn lengths_beyond_the_block_are_errors() {
        for (flags, bytes) in [
            (0x02, &[1, 9, 7][..]),
            (0x02, &[1, 255]),
            (0x04, &[1, 7, 8, 9]),
            (0x06, &[1, 0x89, 7]),
            (0x06, &[2, 0x81, 0x80, 7, 8]),
            (0x06, &[1, 0xFF, 7]),
            (0x06, &[]),
        ] {
            assert!(packets(flags, bytes).is_err(), "{flags} {bytes:?}");
        }
    }
}
