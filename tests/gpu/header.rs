//! Which of the recorded files the engines take, and which the device's SMs. Needs no device.

use std::collections::BTreeMap;

use gesso::gpu::jpeg::sm::{Coded, Colour, read_file};
use gesso::gpu::jpeg::{Frame, Header, Picture, Sampling};
use turbojpeg::Subsamp;

use crate::npz::Npz;
use crate::pictures::{Recipe, turned};

/// Recorded files are smaller than what the engines take: say that they are larger. Only the header is looked at.
fn enlarged(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let frame =
        file.windows(2).position(|pair| matches!(pair, [0xFF, 0xC0 | 0xC2])).unwrap_or(usize::MAX - 9);
    if let Some(size) = file.get_mut(frame + 5..frame + 9) {
        size.copy_from_slice(&[0, 100, 0, 120]);
    }
    file
}

fn recorded() -> BTreeMap<String, Vec<u8>> {
    let mut archive = Npz::open(crate::file("tests/data/decode/pictures.npz"));
    archive.names().into_iter().map(|name| (name.clone(), archive.array(&name).1)).collect()
}

#[test]
fn recorded_files_are_told_apart() {
    let taken = [
        ("jpeg_444", Sampling::Full),
        ("jpeg_422", Sampling::HalfColumns),
        ("jpeg_420", Sampling::Quarter),
        ("jpeg_440", Sampling::HalfRows),
        ("jpeg_gray", Sampling::Gray),
        ("jpeg_rst", Sampling::Quarter),
        ("jpeg_adobe1", Sampling::Quarter),
        ("jpeg_bare", Sampling::Quarter),
        ("jpeg_exif6", Sampling::Quarter),
        ("jpeg_exif6_late", Sampling::Quarter),
        ("jpeg_exif6_gray", Sampling::Gray),
        ("jpeg_exif_broken", Sampling::Quarter),
        ("jpeg_jfif3", Sampling::Quarter),
        ("jpeg_bad_icc", Sampling::Quarter),
        ("jpeg_trailing_zeros", Sampling::Quarter),
        ("jpeg_trailing_garbage", Sampling::Quarter),
        ("jpeg_fill", Sampling::Quarter),
        // Damage behind a good header: the decoders find it.
        ("jpeg_corrupt_bit", Sampling::Quarter),
    ];
    let refused = [
        "jpeg_rgb",
        "jpeg_411",
        "jpeg_441",
        "jpeg_cmyk",
        "jpeg_cmyk_plain",
        "jpeg_ycck",
        "jpeg_adobe0",
        "jpeg_adobe5",
        "jpeg_adobe0_jfif",
        "jpeg_ids_rgb",
        "jpeg_garbage_in_header",
        "jpeg_no_eoi",
        "jpeg_truncated",
        "jpeg_prog_truncated",
        "jpeg_prog_cut_with_eoi",
        "jpeg_header_only",
        "jpeg_header_cut",
    ];
    let files = recorded();
    for (name, sampling) in taken {
        let file = enlarged(&files[name]);
        let frame = Picture::read(&file).map(|picture| *picture.frame());
        assert_eq!(frame, Some(Frame { width: 120, height: 100, sampling }), "{name}");
    }
    for name in refused {
        assert!(Picture::read(&enlarged(&files[name])).is_none(), "{name}");
    }
    for (name, file) in &files {
        assert!(Picture::read(file).is_none(), "{name} is smaller than the engines take");
        if !name.starts_with("jpeg") {
            assert!(Picture::read(&enlarged(file)).is_none(), "{name}");
        }
    }
}

/// Of 12 bits, or lossless: the host decodes them, whatever decoders a device has.
#[test]
fn other_bits_and_lossless_files_are_for_the_host() {
    let mut archive = Npz::open(crate::file("tests/data/decode/deep.npz"));
    let answers = |name: &String| name.ends_with("_samples") || name.ends_with("_luma");
    let names: Vec<String> = archive.names().into_iter().filter(|name| !answers(name)).collect();
    assert!(names.len() > 40);
    for name in names {
        let (_, file) = archive.array::<u8>(&name);
        for file in [&enlarged(&file), &file] {
            assert!(Header::read(file).is_none() && Header::of_head(file, file).is_none(), "{name}");
            assert!(Picture::read(file).is_none() && Coded::read(file).is_none(), "{name}");
        }
    }
}

#[test]
fn sizes_and_samplings_are_those_of_the_encoder() {
    for (sampling, expected) in [
        (Subsamp::Gray, Sampling::Gray),
        (Subsamp::None, Sampling::Full),
        (Subsamp::Sub2x1, Sampling::HalfColumns),
        (Subsamp::Sub1x2, Sampling::HalfRows),
        (Subsamp::Sub2x2, Sampling::Quarter),
    ] {
        let file = Recipe::new(129, 77, sampling, 1).jpeg();
        let frame = Picture::read(&file).map(|picture| *picture.frame());
        assert_eq!(frame, Some(Frame { width: 129, height: 77, sampling: expected }));
        assert_eq!(Picture::read(&turned(&file, 6)).map(|picture| *picture.frame()), frame);
    }
    for (width, height) in [(63, 400), (400, 63)] {
        assert!(Picture::read(&Recipe::new(width, height, Subsamp::Sub2x2, 1).jpeg()).is_none());
    }
    assert!(Picture::read(&Recipe::new(90, 90, Subsamp::Sub4x1, 1).jpeg()).is_none());
    assert!(Picture::read(&Recipe::new(90, 90, Subsamp::Sub2x2, 1).progressive()).is_none());
    assert!(Picture::read(&Recipe::new(90, 90, Subsamp::Sub2x2, 1).inks()).is_none());
}

#[test]
fn a_cut_file_is_never_taken() {
    let file = Recipe::new(80, 64, Subsamp::Sub2x2, 1).jpeg();
    for length in 0..file.len() {
        assert!(Picture::read(&file[..length]).is_none(), "{length} of {} bytes", file.len());
    }
}

/// Whatever a header is changed to, it is read without a panic; what is taken has tables of valid sizes.
#[test]
fn changed_headers_are_read_or_refused() {
    let file = Recipe::new(80, 64, Subsamp::Sub2x1, 1).jpeg();
    let scan = file.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap();
    let mut changed = file.clone();
    for at in 0..scan + 14 {
        for value in [0, 1, 0x11, 0x3F, 0x7F, 0x80, 0xC2, 0xD9, 0xFE, 0xFF] {
            changed[at] = value;
            if let Some(picture) = Picture::read(&changed) {
                assert!(picture.frame().width >= 64 && picture.frame().height >= 64);
            }
        }
        changed[at] = file[at];
    }
}

#[test]
fn the_sms_take_more_than_the_engines() {
    let taken = [
        ("jpeg_444", Colour::YCbCr, [1, 1]),
        ("jpeg_422", Colour::YCbCr, [2, 1]),
        ("jpeg_420", Colour::YCbCr, [2, 2]),
        ("jpeg_440", Colour::YCbCr, [1, 2]),
        ("jpeg_411", Colour::YCbCr, [4, 1]),
        ("jpeg_441", Colour::YCbCr, [1, 4]),
        ("jpeg_gray", Colour::Gray, [1, 1]),
        ("jpeg_rst", Colour::YCbCr, [2, 2]),
        ("jpeg_rgb", Colour::Rgb, [1, 1]),
        ("jpeg_ids_rgb", Colour::Rgb, [2, 2]),
        ("jpeg_bare", Colour::YCbCr, [2, 2]),
        // Adobe's transform counts where JFIF says nothing.
        ("jpeg_adobe0", Colour::Rgb, [2, 2]),
        ("jpeg_adobe0_jfif", Colour::YCbCr, [2, 2]),
        ("jpeg_adobe1", Colour::YCbCr, [2, 2]),
        ("jpeg_adobe5", Colour::YCbCr, [2, 2]),
        ("jpeg_exif6", Colour::YCbCr, [2, 2]),
        ("jpeg_fill", Colour::YCbCr, [2, 2]),
        ("jpeg_trailing_zeros", Colour::YCbCr, [2, 2]),
        ("jpeg_trailing_garbage", Colour::YCbCr, [2, 2]),
        ("jpeg_corrupt_bit", Colour::YCbCr, [2, 2]),
        ("jpeg_prog", Colour::YCbCr, [2, 2]),
    ];
    let refused = [
        "jpeg_cmyk",
        "jpeg_cmyk_plain",
        "jpeg_ycck",
        "jpeg_garbage_in_header",
        "jpeg_prog_truncated",
        "jpeg_header_only",
        "jpeg_header_cut",
    ];
    let files = recorded();
    for (name, colour, factors) in taken {
        let found = Coded::read(&files[name]).map(|coded| (coded.colour, coded.factors()));
        assert_eq!(found, Some((colour, factors)), "{name}");
    }
    for name in refused {
        assert!(Coded::read(&files[name]).is_none(), "{name}");
    }
    for (name, file) in files.iter().filter(|(name, _)| !name.starts_with("jpeg")) {
        assert!(Coded::read(file).is_none(), "{name}");
    }
}

/// What the device gets of progressive files: scans, one behind the other, without stuffed zeros and markers.
#[test]
fn all_scans_of_a_progressive_file_are_read() {
    for sampling in [Subsamp::None, Subsamp::Sub2x2, Subsamp::Sub2x1] {
        let file = Recipe::new(213, 150, sampling, 7).progressive();
        let coded = Coded::read(&file).unwrap();
        let mut bits = vec![0; coded.room()];
        let scan = read_file(&coded, false, &mut bits, None).unwrap();
        assert_eq!((coded.scans.len(), scan.segments().len()), (10, 10), "{sampling:?}");
        for (segment, scan) in scan.segments().iter().zip(&coded.scans) {
            let (start, bytes) = (segment.first_bit as usize / 8, segment.bits as usize / 8);
            let mut stuffed = Vec::new();
            for &byte in &bits[start..start + bytes] {
                stuffed.push(byte);
                stuffed.extend((byte == 0xFF).then_some(0));
            }
            assert_eq!(stuffed, scan.data[..scan.data.len() - 2]);
        }
        // What may change is for the host, and so is what lacks something.
        assert!(read_file(&coded, true, &mut bits, None).is_none());
        assert!(read_file(&coded, false, &mut bits[..file.len() / 2], None).is_none());
        assert!(Coded::read(&file[..file.len() - 2]).is_none());
        assert!(!Header::ends_within(&file[..file.len() - 2]));
        let last = file.windows(2).rposition(|pair| pair == [0xFF, 0xDA]).unwrap();
        assert!(Coded::read(&[&file[..last], &[0xFF, 0xD9]].concat()).is_none(), "bits are missing");
    }
}
