//! Sums that find damage in Ogg pages and FLAC frames: remainders of polynomials, the highest bit first. It must not
//! know what is summed.

/// Bytes that are taken at once.
const SLICES: usize = 8;

/// For each byte, what it adds to a sum when 0 to 7 bytes are behind it.
type Tables = [[u32; 256]; SLICES];

/// Of a polynomial whose highest bits are those of `polynomial`.
const fn tables(polynomial: u32) -> Tables {
    let mut tables = [[0; 256]; SLICES];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum << 1) ^ if sum >> 31 == 1 { polynomial } else { 0 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut slice = 1;
    while slice < SLICES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[slice - 1][byte];
            tables[slice][byte] = (before << 8) ^ tables[0][(before >> 24) as usize];
            byte += 1;
        }
        slice += 1;
    }
    tables
}

static OGG: Tables = tables(0x04c1_1db7);
static FLAC_FRAME: Tables = tables(0x8005 << 16);
static FLAC_HEADER: Tables = tables(0x07 << 24);

fn sum(tables: &Tables, mut sum: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<SLICES>();
    for word in words {
        let [a, b, c, d, e, f, g, h] = *word;
        let [a, b, c, d] = (sum ^ u32::from_be_bytes([a, b, c, d])).to_be_bytes();
        sum = [h, g, f, e, d, c, b, a]
            .iter()
            .zip(tables)
            .fold(0, |sum, (&byte, table)| sum ^ table[usize::from(byte)]);
    }
    let [table, ..] = tables;
    rest.iter().fold(sum, |sum, &byte| (sum << 8) ^ table[usize::from((sum >> 24) as u8 ^ byte)])
}

/// Of an Ogg page in `parts`; the sum's own bytes are taken as 0.
pub(crate) fn ogg(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |so_far, part| sum(&OGG, so_far, part))
}

/// Of a FLAC frame.
pub(crate) fn flac_frame(bytes: &[u8]) -> u16 {
    (sum(&FLAC_FRAME, 0, bytes) >> 16) as u16
}

/// Of a FLAC frame's header.
pub(crate) fn flac_header(bytes: &[u8]) -> u8 {
    (sum(&FLAC_HEADER, 0, bytes) >> 24) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_catalogue() {
        // CRC-8/SMBUS, CRC-16/UMTS and CRC-32/MPEG-2 without its start, of the digits that catalogues take.
        let digits = b"123456789";
        assert_eq!((flac_header(digits), flac_frame(digits)), (0xf4, 0xfee8));
        assert_eq!(ogg(&[&digits[..5], &digits[5..]]), 0x89a1_897f);
    }
}
