//! AVIFs against pixels recorded from libavif (tests/data/decode/make_avif.py says how), and files that are changed by
//! hand.

use gesso::cpu::decode::{Decoder, probe};
use gesso::error::ErrorKind;

use crate::decode::{PICTURES, data, decode};
use crate::npz::Npz;
use crate::turned::{AS_STORED, assert_turned};

/// Files, their channels and bits, and how far from libavif's pixels theirs may be, at most and on average. libavif
/// converts whole chroma of 8 bits as exactly, and other chroma by libyuv, whose factors have 6 bits and which rounds
/// interpolated chroma to 8 bits, or drops bits behind the eighth first: the pictures have noise and sharp edges, which
/// shows it. Dividing by little alpha makes more of a level.
const FILES: [(&str, usize, usize, f64, f64); 20] = [
    ("avif_444", 3, 8, 1.0, 0.2),
    ("avif_limited", 3, 8, 1.0, 0.2),
    ("avif_bt709", 3, 8, 1.0, 0.2),
    ("avif_bt2020", 3, 8, 1.0, 0.3),
    ("avif_identity", 3, 8, 0.0, 0.0),
    ("avif_gray", 1, 8, 0.0, 0.0),
    ("avif_gray_limited", 1, 8, 0.0, 0.0),
    ("avif_la", 2, 8, 0.0, 0.0),
    ("avif_1x1", 3, 8, 0.0, 0.0),
    ("avif_420", 3, 8, 8.0, 0.5),
    ("avif_422", 3, 8, 12.0, 0.5),
    ("avif_rgba", 4, 8, 8.0, 0.5),
    ("avif_sequence", 3, 8, 8.0, 0.5),
    ("avif_premultiplied", 4, 8, 4.0, 0.4),
    ("avif_10_gray", 1, 10, 0.0, 0.0),
    ("avif_10_444", 3, 10, 3.0, 0.7),
    ("avif_12_444", 3, 12, 3.0, 0.8),
    ("avif_10_rgba", 4, 10, 2.0, 0.5),
    ("avif_10_420", 3, 10, 8.0, 0.8),
    ("avif_12_420", 3, 12, 8.0, 0.8),
];

#[test]
fn pixels_are_those_of_libavif() {
    let (mut archive, decoder) = (Npz::open(data("avif.npz")), Decoder::new());
    let mut wrong = Vec::new();
    for (file, channels, bits, most, usual) in FILES {
        let bytes = &PICTURES[file];
        let info = probe(bytes, false).unwrap();
        assert_eq!((info.channels, info.bit_depth), (channels, bits), "{file}");
        let (shape, expected) = archive.array::<u8>(&format!("{file}_pixels"));
        let (found_shape, found) = decode(&decoder, bytes, &AS_STORED).unwrap();
        assert_eq!(found_shape, [shape[0], shape[1], channels], "{file}");
        // The record has red, green, blue and alpha; gray stands in each colour.
        let places = [&[0][..], &[0, 3], &[0, 1, 2], &[0, 1, 2, 3]][channels - 1];
        let pixels = found.chunks_exact(channels).zip(expected.chunks_exact(4));
        let off: Vec<f64> = pixels
            .flat_map(|(a, b)| a.iter().zip(places).map(|(a, &place)| (a - f64::from(b[place])).abs()))
            .collect();
        let (worst, mean) =
            (off.iter().copied().fold(0.0, f64::max), off.iter().sum::<f64>() / off.len() as f64);
        if worst > most || mean > usual {
            wrong.push(format!("{file}: {worst} at most, {mean:.3} on average"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pictures_are_turned_as_the_file_says() {
    for number in 2..=8 {
        assert_turned(&PICTURES[&format!("avif_exif{number}")], number);
    }
}

/// A file with each `from` replaced by `to`, which is as long.
fn replaced(file: &str, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = PICTURES[file].clone();
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert!(!places.is_empty(), "{file} has no {from:?}");
    places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to));
    bytes
}

#[test]
fn colours_that_the_container_does_not_say_the_stream_says() {
    let decoder = Decoder::new();
    for file in
        ["avif_444", "avif_limited", "avif_bt709", "avif_identity", "avif_10_444", "avif_gray_limited"]
    {
        let bytes = replaced(file, b"colr", b"free");
        let of = |bytes: &[u8]| decode(&decoder, bytes, &AS_STORED).unwrap();
        assert_eq!(of(&bytes), of(&PICTURES[file]), "{file}");
    }
}

#[test]
fn brands_are_looked_through() {
    assert!(probe(&replaced("avif_420", b"ftypavif", b"ftypmif1"), true).is_ok());
}

#[test]
fn errors_say_what_is_wrong() {
    let decoder = Decoder::new();
    let refused = |bytes: &[u8], kind: ErrorKind, part: &str| {
        let error = decode(&decoder, bytes, &AS_STORED).unwrap_err();
        assert!(error.to_string().contains(part) && error.kind() == kind, "{error}");
    };
    let (invalid, unsupported) = (ErrorKind::InvalidArg, ErrorKind::Unsupported);
    refused(&replaced("avif_420", b"av01", b"grid"), invalid, "a picture of type `grid` of 0 pictures");
    refused(
        &replaced("avif_420", b"av01", b"hvc1"),
        unsupported,
        "a picture of type `hvc1`, expected `av01`",
    );
    refused(&PICTURES["avif_ycgco"], unsupported, "colours of matrix 8, expected one of 0, 1,");
    refused(&replaced("avif_exif6", b"irot", b"iscl"), unsupported, "needs property `iscl`");
    refused(&replaced("avif_420", b"meta", b"free"), invalid, "truncated header: no box `meta`");
    refused(
        &replaced("avif_sequence", b"meta", b"free"),
        unsupported,
        "a sequence of frames without a picture",
    );
    refused(&replaced("avif_420", b"iloc", b"free"), invalid, "no box `iloc`");
    refused(&replaced("avif_420", b"ipma", b"free"), invalid, "no properties of item 1");
    refused(
        &replaced("avif_420", b"ispe\0\0\0\0\0\0\0\x17", b"ispe\0\0\0\0\0\0\0\x18"),
        invalid,
        "a frame of 23 x 17 pixels, the header says 24 x 17",
    );
    let sides = |sides: [u32; 2]| {
        let sides = sides.map(u32::to_be_bytes).concat();
        replaced("avif_420", b"ispe\0\0\0\0\0\0\0\x17\0\0\0\x11", &[b"ispe\0\0\0\0", &sides[..]].concat())
    };
    refused(&sides([0, 17]), invalid, "image of 0 x 17 pixels, expected at least one");
    refused(&sides([60_000, 60_000]), invalid, "60000 x 60000 pixels is larger than the limit of 134217728");
    let whole = &PICTURES["avif_420"];
    refused(
        &whole[..whole.len() - 1],
        invalid,
        "truncated: the picture's bytes end at 663, the input's at 662",
    );
    refused(&whole[..100], invalid, "truncated");
}
