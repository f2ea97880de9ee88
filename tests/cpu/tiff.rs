//! TIFFs of the kinds that libtiff reads (tests/data/decode/make_tiff.py says how they were made, and what is right),
//! and files that are changed by hand.

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder, probe};
use gesso::error::ErrorKind;
use proptest::prelude::*;

use crate::decode::{PICTURES, data, decode};
use crate::npz::Npz;

/// Files whose pixels may be off, by how much: roots.
const NEARLY: [(&str, f64); 3] = [("tiff_lab", 1.0), ("tiff_lab_16", 1.0), ("tiff_icc_lab", 1.0)];

fn files() -> Vec<String> {
    Npz::open(data("tiff.npz")).names().into_iter().filter(|name| !name.ends_with("_pixels")).collect()
}

#[test]
fn pixels_are_those_of_libtiff() {
    let (mut archive, decoder) = (Npz::open(data("tiff.npz")), Decoder::new());
    let mut wrong = Vec::new();
    for file in files() {
        let (shape, expected) = archive.array::<u8>(&format!("{file}_pixels"));
        match decode(&decoder, &PICTURES[&file], &DecodeOptions::default()) {
            Err(error) => wrong.push(format!("{file}: {error}")),
            Ok((found, _)) if found != shape => wrong.push(format!("{file}: {found:?}, expected {shape:?}")),
            Ok((_, found)) => {
                let off = found.iter().zip(&expected).map(|(a, &b)| (a - f64::from(b)).abs());
                let worst = off.clone().fold(0.0, f64::max);
                let allowed = NEARLY.iter().find(|(name, _)| *name == file).map_or(0.0, |(_, most)| *most);
                if worst > allowed {
                    let count = off.filter(|off| *off > allowed).count();
                    wrong.push(format!("{file}: {count} of {} off by up to {worst}", expected.len()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A file with the number of one of its tags replaced. Its type is 16 bits.
fn with(file: &str, tag: u16, number: u16) -> Vec<u8> {
    let mut bytes = PICTURES[file].clone();
    let entry = [&tag.to_le_bytes()[..], &[3, 0, 1, 0, 0, 0]].concat();
    let at = bytes.windows(8).position(|window| window == entry).expect("a tag");
    bytes[at + 8..at + 10].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[test]
fn what_is_not_read_is_said() {
    let decoder = Decoder::new();
    let refused = |bytes: &[u8], kind: ErrorKind, part: &str| {
        let error = decode(&decoder, bytes, &DecodeOptions::default()).unwrap_err();
        assert!(error.to_string().contains(part) && error.kind() == kind, "{error}");
    };
    let (invalid, unsupported) = (ErrorKind::InvalidArg, ErrorKind::Unsupported);
    refused(&with("tiff_fill_rgb", 266, 3), invalid, "fill order 3, expected 1 or 2");
    for (number, name) in [
        (34_925, "LZMA"),
        (34_887, "LERC"),
        (32_909, "PixarLog"),
        (33_003, "JPEG 2000 of YCbCr"),
        (7_777, "compression 7777,"),
    ] {
        refused(&with("tiff_fill_rgb", 259, number), unsupported, name);
    }
    for photometric in [4, 10, 32_803, 32_844, 34_892] {
        refused(
            &with("tiff_fill_rgb", 262, photometric),
            unsupported,
            &format!("photometric interpretation {photometric}, expected one of 0, 1, 2, 3, 5, 6, 8, 9"),
        );
    }
    refused(&with("tiff_planar_16", 284, 3), invalid, "planar configuration 3");
    refused(&with("tiff_fill_rgb", 277, 2), invalid, "2 samples for colours of 3");
    refused(&with("tiff_fill_rgb", 277, 999), unsupported, "999 samples a pixel");
    refused(&with("tiff_fill_8", 258, 17), unsupported, "samples of 17 bits in this format");
    refused(&with("tiff_fill_8", 258, 0), unsupported, "samples of 0 bits in this format");
    refused(&with("tiff_fax_4", 277, 3), invalid, "3 samples of 1 bits coded as fax");
    refused(&with("tiff_old_jpeg_strips", 278, 12), unsupported, "in strips of other than whole blocks");
    refused(&with("tiff_old_jpeg_whole", 277, 1), invalid, "1 samples for colours of 3");
    let whole = &PICTURES["tiff_fill_rgb"];
    refused(&whole[..whole.len() - 1], invalid, "truncated");
    let five = &PICTURES["tiff_five_samples"];
    assert_eq!(probe(five, true).unwrap().channels, 5);
    let any = DecodeOptions { color: ColorSpace::Any, ..DecodeOptions::default() };
    let error = decode(&decoder, five, &any).unwrap_err().to_string();
    assert!(error.contains("the 5 channels of an image are not returned as they are"), "{error}");
}

#[test]
fn a_small_image_in_huge_tiles_takes_no_memory() {
    let decoder = Decoder::new();
    // Of a tile only rows that are shown are decoded.
    let high = with("tiff_planar_tile", 323, u16::MAX);
    assert!(decode(&decoder, &high, &DecodeOptions::default()).is_ok());
    let mut wide = with("tiff_planar_tile", 322, u16::MAX);
    let error = decode(&decoder, &wide, &DecodeOptions::default()).unwrap_err().to_string();
    assert!(error.contains("truncated"), "{error}");
    // 2^32 - 1 columns, in a type of 32 bits.
    let entry = [&322_u16.to_le_bytes()[..], &[3, 0]].concat();
    let at = wide.windows(4).position(|window| window == entry).expect("a tag");
    wide[at + 2] = 4;
    wide[at + 8..at + 12].fill(0xFF);
    let error = decode(&decoder, &wide, &DecodeOptions::default()).unwrap_err().to_string();
    assert!(error.contains("take more memory than the limit"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_survived(
        file in prop::sample::select(files()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        kept in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = PICTURES[&file].clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(kept.index(bytes.len()));
        }
        let is_small = probe(&bytes, true).is_ok_and(|info| info.width * info.height <= 1 << 18);
        if is_small && let Err(error) = decode(&Decoder::new(), &bytes, &DecodeOptions::default()) {
            prop_assert!(error.kind() != ErrorKind::Internal, "{error}");
        }
    }
}
