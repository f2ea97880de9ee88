//! HEICs, and grids of HEIC and AVIF, against pixels recorded from libheif and libavif (tests/data/decode/make_heif.py
//! says how), and files that are changed by hand.

use gesso::cpu::decode::{DecodeOptions, Decoder, Format, Tiles, probe};
use gesso::cpu::formats::Formats;
use gesso::error::ErrorKind;

use crate::decode::{PICTURES, data, decode, message};
use crate::npz::Npz;
use crate::turned::AS_STORED;

/// How far from recorded pixels others may be, at most and on average, by the beginning of files' names; the first that
/// fits. Where chroma is halved and nothing is cut at odd places, libheif takes its nearest sample, and here it is
/// interpolated: at edges and in noise that shows.
const FAR: [(&str, f64, f64); 11] = [
    ("heic_444", 1.0, 0.1),
    ("heic_gray", 0.0, 0.0),
    ("heic_420", 40.0, 4.5),
    ("heic_422", 40.0, 4.5),
    ("heic_rgba", 40.0, 4.0),
    ("heic_odd", 8.0, 2.5),
    ("heic_16x16", 8.0, 2.5),
    ("heic_10_420", 12.0, 3.0),
    ("heic_grid_alpha", 12.0, 3.0),
    ("heic_tiles", 14.0, 3.0),
    ("", 2.0, 0.7),
];

fn options(file: &str) -> DecodeOptions {
    // Pillow's AVIFs are as stored, pillow-heif's HEICs as shown.
    DecodeOptions { adjust_orientation: file.starts_with("heic"), ..AS_STORED }
}

#[test]
fn pixels_are_those_of_libheif_and_libavif() {
    let (mut archive, decoder) = (Npz::open(data("heif.npz")), Decoder::new());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for recorded in archive.names() {
        let Some(file) = recorded.strip_suffix("_pixels") else { continue };
        count += 1;
        let (shape, expected) = archive.array::<u8>(&recorded);
        let (found_shape, found) = match decode(&decoder, &PICTURES[file], &options(file)) {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("{file}: {error}"));
                continue;
            }
        };
        if found_shape != shape {
            wrong.push(format!("{file}: {found_shape:?}, expected {shape:?}"));
            continue;
        }
        let off: Vec<f64> = found.iter().zip(&expected).map(|(a, &b)| (a - f64::from(b)).abs()).collect();
        let (worst, mean) =
            (off.iter().copied().fold(0.0, f64::max), off.iter().sum::<f64>() / off.len() as f64);
        let (_, most, usual) =
            FAR.iter().find(|(name, ..)| file.starts_with(name)).copied().unwrap_or_default();
        if worst > most || mean > usual {
            wrong.push(format!("{file}: {worst} at most, {mean:.3} on average"));
        }
    }
    assert!(wrong.is_empty() && count > 25, "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_header_is_enough_for_the_shape() {
    let of = |file: &str| {
        let info = probe(&PICTURES[file], true).unwrap();
        (info.format, [info.width, info.height, info.channels, info.bit_depth])
    };
    assert_eq!(of("heic_grid_turned"), (Format::Heic, [119, 169, 3, 8]));
    assert_eq!(of("avif_grid_turned"), (Format::Avif, [122, 172, 3, 8]));
    assert_eq!(of("heic_grid_alpha"), (Format::Heic, [192, 128, 4, 8]));
    assert_eq!(of("heic_10_420"), (Format::Heic, [64, 64, 3, 10]));
    assert_eq!(of("heic_gray"), (Format::Heic, [46, 34, 1, 8]));
    assert_eq!(of("heic_clap_turned"), (Format::Heic, [30, 40, 3, 8]));
}

/// A file with the first `from` replaced by `to`, which is as long.
fn replaced(file: &str, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = PICTURES[file].clone();
    let at = bytes.windows(from.len()).position(|part| part == from);
    let at = at.unwrap_or_else(|| panic!("{file} has no {from:?}"));
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

#[test]
fn brands_are_looked_through() {
    let of = |bytes: &[u8]| probe(bytes, true).unwrap().format;
    assert_eq!(of(&replaced("heic_420", b"ftypheic", b"ftypmif1")), Format::Heic);
    assert_eq!(of(&PICTURES["avif_grid"]), Format::Avif);
    let off = Formats::parse("-heic").unwrap();
    let error = off.check_file(gesso::cpu::encoded::Encoded::Picture, &PICTURES["heic_420"]).unwrap_err();
    assert!(error.to_string().contains("format `heic` is switched off"), "{error}");
    let text = message(probe(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", true));
    assert!(text.contains("`HEIC` image: damaged or truncated header: no box `meta`"), "{text}");
}

#[test]
fn errors_say_what_is_wrong() {
    let decoder = Decoder::new();
    let refused = |bytes: &[u8], kind: ErrorKind, part: &str| {
        let error = decode(&decoder, bytes, &AS_STORED).unwrap_err();
        assert!(error.to_string().contains(part) && error.kind() == kind, "{error}");
    };
    let (invalid, unsupported) = (ErrorKind::InvalidArg, ErrorKind::Unsupported);
    refused(
        &replaced("heic_420", b"hvc1", b"av01"),
        unsupported,
        "a picture of type `av01`, expected `hvc1`",
    );
    refused(&replaced("heic_grid", b"dimg", b"free"), invalid, "a picture of type `grid` of 0 pictures");
    refused(
        &replaced("heic_grid", b"grid", b"iovl"),
        unsupported,
        "a picture of type `iovl`, expected `hvc1`",
    );
    refused(
        &replaced("heic_iden", b"iden", b"tmap"),
        unsupported,
        "a picture of type `tmap`, expected `hvc1`",
    );
    // The last bytes are those that tell of the grid: rows, columns, sides.
    let grid = |at: usize, to: &[u8]| {
        let mut bytes = PICTURES["heic_grid"].clone();
        let start = bytes.len() - 8;
        bytes[start + at..start + at + to.len()].copy_from_slice(to);
        bytes
    };
    refused(&grid(0, &[1]), unsupported, "a grid of version 1, expected 0");
    refused(&grid(2, &[2]), invalid, "a grid of 3 x 3 pictures, of which 6 are there");
    refused(&grid(2, &[2, 1]), invalid, "a grid of 2 x 3 pictures of 64 x 64 pixels each for 172 x 122");
    refused(&grid(4, &[0, 90]), invalid, "a frame of 90 x 122 pixels, the header says 172 x 122");
    let smaller = |name: &str| replaced(name, b"ispe\0\0\0\0\0\0\0\x40", b"ispe\0\0\0\0\0\0\0\x48");
    refused(&smaller("heic_full"), invalid, "a frame of 64 x 64 pixels, the header says 72 x 64");
    let (from, to) = (b"ispe\0\0\0\0\0\0\0\x40\0\0\0\x40", b"ispe\0\0\0\0\0\0\0\x08\0\0\0\x08");
    let tiny = replaced("heic_10_420", from, to);
    refused(&tiny, invalid, "a frame of 64 x 64 pixels, the header says 8 x 8");
    refused(&replaced("heic_full", b"hvcC", b"free"), unsupported, "needs property `free`");
    // The first byte of the slice says its type: 20 is a picture by itself, 1 one that is made from others.
    let others = |name: &str| {
        let mut bytes = PICTURES[name].clone();
        let start = bytes.windows(4).position(|part| part == b"mdat").unwrap() + 8;
        bytes[start] = 2;
        bytes
    };
    refused(&others("heic_full"), unsupported, "a picture of H.265 that is made from others");
    refused(&others("heic_444"), unsupported, "H.265: ");
    let whole = &PICTURES["heic_full"];
    refused(&whole[..whole.len() - 1], invalid, "truncated: the picture's bytes end at");
}

/// What video engines of a device are given of a file: tiles as frames with start codes, the first behind parameters.
#[test]
fn tiles_for_engines_are_frames() {
    /// Types of units: parameters, and a picture that needs no others.
    const VPS: u8 = 32;
    const IDR: std::ops::RangeInclusive<u8> = 16..=21;
    let tiles = |name: &str| Tiles::read(&PICTURES[name]);
    for (name, count) in
        [("heic_tiles", 4), ("heic_tiles_turned", 4), ("heic_tiles_10", 1), ("heic_tiles_one", 1)]
    {
        let tiles = tiles(name).expect(name);
        assert_eq!((tiles.count, tiles.columns), (count, if count == 4 { 2 } else { 1 }), "{name}");
        let mut frame = Vec::new();
        for place in 0..count {
            tiles.frame(place, &mut frame).unwrap();
            let kind = frame[4] >> 1;
            assert_eq!(frame[..4], [0, 0, 0, 1], "{name}");
            assert!(if place == 0 { kind == VPS } else { IDR.contains(&kind) }, "{name} {place}: {kind}");
        }
        assert!(tiles.frame(count, &mut frame).is_err());
    }
    assert_eq!(
        tiles("heic_tiles").map(|tiles| (tiles.size, tiles.tile, tiles.depth)),
        Some(([276, 278], [144, 144], 8))
    );
    // Cut, with alpha, without chroma, with more of it, of odd sides, by AV1: these are for the host.
    for name in ["heic_grid", "heic_rgba", "heic_gray", "heic_444", "heic_odd", "heic_10_420", "avif_grid"] {
        assert!(tiles(name).is_none(), "{name}");
    }
}
