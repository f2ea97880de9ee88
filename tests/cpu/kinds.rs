//! BMP, JPEG 2000 and AVIF of rarer kinds (tests/data/decode/make_kinds.py says how they were made, and what is right).

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder, probe};
use gesso::error::ErrorKind;

use crate::decode::{PICTURES, data, decode};
use crate::npz::Npz;

/// Files whose pixels may be off, by how much: AV1 is rounded otherwise.
const NEARLY: [(&str, f64); 2] = [("avif_derived_709", 1.0), ("avif_derived_2020", 1.0)];

fn options(color: ColorSpace) -> DecodeOptions {
    DecodeOptions { color, ..DecodeOptions::default() }
}

#[test]
fn pixels_are_those_that_were_put_in() {
    let (mut archive, decoder) = (Npz::open(data("kinds.npz")), Decoder::new());
    let mut wrong = Vec::new();
    for recorded in archive.names() {
        let (file, color) = match recorded.strip_suffix("_pixels") {
            Some(file) => (file, ColorSpace::Any),
            None => match recorded.strip_suffix("_gray") {
                Some(file) => (file, ColorSpace::Gray),
                None => continue,
            },
        };
        let (shape, expected) = archive.array::<u8>(&recorded);
        let most = NEARLY.iter().find(|(name, _)| *name == file).map_or(0.0, |(_, most)| *most);
        match decode(&decoder, &PICTURES[file], &options(color)) {
            Err(error) => wrong.push(format!("{file}: {error}")),
            Ok((found, _)) if found != shape => wrong.push(format!("{file}: {found:?}, expected {shape:?}")),
            Ok((_, found)) => {
                let off = found.iter().zip(&expected).map(|(a, &b)| (a - f64::from(b)).abs());
                let worst = off.clone().fold(0.0, f64::max);
                if worst > most {
                    let count = off.filter(|off| *off > most).count();
                    wrong.push(format!("{recorded}: {count} of {} off by up to {worst}", expected.len()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A file with each `from` replaced by `to`.
fn replaced(file: &str, from: &[u8], to: &[u8]) -> Vec<u8> {
    let bytes = &PICTURES[file];
    let at = bytes.windows(from.len()).position(|part| part == from).expect("bytes that are there");
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn what_is_not_read_is_said() {
    let decoder = Decoder::new();
    let refused = |bytes: &[u8], kind: ErrorKind, part: &str| {
        let error = decode(&decoder, bytes, &DecodeOptions::default()).unwrap_err();
        assert!(error.to_string().contains(part) && error.kind() == kind, "{error}");
    };
    let (invalid, unsupported) = (ErrorKind::InvalidArg, ErrorKind::Unsupported);
    // Where a BMP has its compression, and the bits of a pixel.
    let bmp = |file: &str, bits: u8, compression: u8| {
        let mut bytes = PICTURES[file].clone();
        (bytes[28], bytes[30]) = (bits, compression);
        bytes
    };
    refused(&bmp("bmp_os2_64", 1, 3), unsupported, "pixels in the codes of a fax machine");
    refused(&bmp("bmp_32_topdown", 0, 4), unsupported, "a JPEG in a BMP");
    refused(&bmp("bmp_32_topdown", 0, 5), unsupported, "a PNG in a BMP");
    refused(&bmp("bmp_32_topdown", 32, 11), unsupported, "pixels of inks");
    refused(&bmp("bmp_32_topdown", 32, 7), invalid, "compression 7 of pixels of 32 bits");
    refused(&bmp("bmp_32_topdown", 5, 0), invalid, "pixels of 5 bits, expected one of 1, 2, 4, 8");
    refused(
        &replaced("bmp_masks_56", &[0xFF, 0, 0, 0, 0, 0xFF], &[0xFF, 0, 0, 1, 0, 0xFF]),
        invalid,
        "colour mask 0x010000ff, whose bits are not adjacent",
    );
    let colors = |number: u8| {
        replaced("jp2_four", b"colr\x01\0\0\0\0\0\x10", &[b"colr\x01\0\0\0\0\0", &[number][..]].concat())
    };
    refused(&colors(12), unsupported, "an image of CMYK, expected gray, red, green and blue, or sYCC");
    refused(&colors(24), unsupported, "an image of e-sYCC");
    refused(&colors(14), unsupported, "an image of CIE L*a*b*");
    // An extended capability, behind the size.
    let ht = replaced("jp2_bare_four", &[0xFF, 0x52], &[0xFF, 0x50, 0, 8, 0, 2, 0, 0, 0, 0, 0xFF, 0x52]);
    refused(&ht, unsupported, "high-throughput JPEG 2000 (HTJ2K");
    refused(&replaced("jp2_palette_4", b"pclr\0\x14", b"pclr\0\0"), invalid, "a palette of 0 rows");
    refused(
        &replaced("avif_clap", b"clap\0\0\0\x05", b"clap\0\0\0\x63"),
        invalid,
        "what `clap` shows is not a part of 13 x 9",
    );
    refused(
        &replaced("avif_layers", b"a1lx", b"free"),
        unsupported,
        "2 frames in one picture of AV1, expected one",
    );
}

#[test]
fn a_header_is_enough_for_the_shape() {
    let of = |file: &str| probe(&PICTURES[file], true).unwrap();
    let [palette, clap, masks] = ["jp2_palette_4", "avif_clap", "bmp_1555"].map(of);
    assert_eq!((palette.width, palette.height, palette.channels, palette.bit_depth), (13, 9, 4, 8));
    assert_eq!((clap.width, clap.height, clap.channels), (5, 4, 1));
    assert_eq!((masks.channels, masks.bit_depth), (4, 8));
    assert_eq!(of("jp2_12").bit_depth, 12);
}
