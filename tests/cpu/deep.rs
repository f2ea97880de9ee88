//! JPEGs of 12 bits and lossless ones (tests/data/decode/make_deep.py says how they were made, and what is right).

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder, JpegDecoder, Vectors, Window, effort, probe};
use gesso::error::ErrorKind;
use gesso::tensor::DType;

use crate::decode::{PICTURES, data, decode};
use crate::npz::Npz;

fn options(color: ColorSpace, dtype: DType) -> DecodeOptions {
    DecodeOptions { color, dtype, ..DecodeOptions::default() }
}

/// Files with their samples, as many as they have, and those of their luma.
fn recorded(kind: &str) -> Vec<(String, Vec<usize>, Vec<u16>)> {
    let mut archive = Npz::open(data("deep.npz"));
    let names = archive.names().into_iter().filter_map(|name| name.strip_suffix(kind).map(str::to_owned));
    names
        .map(|name| {
            let (shape, samples) = archive.array(&format!("{name}{kind}"));
            (name, shape, samples)
        })
        .collect()
}

/// How far numbers may be off: a level of 12 bits where cosine transforms were.
fn most_off(name: &str, dtype: DType) -> f64 {
    match dtype {
        _ if !name.starts_with("jpeg12_") => 0.0,
        DType::U8 => 1.0,
        _ => 65_535.0 / 4_095.0 + 1.0,
    }
}

/// Asserts that numbers are samples of so many bits, scaled to `full`.
fn assert_scaled(name: &str, found: &[f64], samples: &[u16], [bits, full]: [f64; 2], most: f64) {
    assert_eq!(found.len(), samples.len(), "{name}");
    let scale = full / (bits.exp2() - 1.0);
    for (i, (found, &sample)) in found.iter().zip(samples).enumerate() {
        let expected = (f64::from(sample) * scale).round();
        assert!((found - expected).abs() <= most, "{name}: {found} at {i}, expected {expected}");
    }
}

#[test]
fn samples_are_those_that_were_put_in() {
    for decoder in [Decoder::new(), Decoder::with_jpeg(JpegDecoder::LibjpegTurbo, Vectors::best())] {
        for (name, shape, samples) in recorded("_samples") {
            if shape[2] == 4 {
                continue;
            }
            let bits = probe(&PICTURES[&name], true).unwrap().bit_depth as f64;
            for (dtype, full) in [(DType::U16, 65_535.0), (DType::U8, 255.0)] {
                let (found_shape, found) =
                    decode(&decoder, &PICTURES[&name], &options(ColorSpace::Any, dtype)).unwrap();
                assert_eq!(found_shape, shape, "{name}");
                // Of more than 8 bits bytes are made of 16 bits.
                let slack = if dtype == DType::U8 && bits > 8.0 { 1.0 } else { most_off(&name, dtype) };
                // Of up to 8 bits words are made of bytes.
                let slack = if dtype == DType::U16 && bits < 8.0 { 129.0 } else { slack };
                assert_scaled(&name, &found, &samples, [bits, full], slack);
            }
        }
    }
}

#[test]
fn gray_becomes_colours_and_luma_is_the_files_own() {
    let decoder = Decoder::new();
    for (name, _, samples) in recorded("_luma") {
        let bits = probe(&PICTURES[&name], true).unwrap().bit_depth as f64;
        let (_, found) = decode(&decoder, &PICTURES[&name], &options(ColorSpace::Gray, DType::U16)).unwrap();
        assert_scaled(&name, &found, &samples, [bits, 65_535.0], most_off(&name, DType::U16));
    }
    for name in ["sof3_16_psv4", "sof3_12_gray", "sof3_2_gray", "jpeg12_gray", "jpeg12_prog_gray"] {
        let of = |color| decode(&decoder, &PICTURES[name], &options(color, DType::F32)).unwrap().1;
        let gray = of(ColorSpace::Gray);
        let thrice: Vec<f64> = gray.iter().flat_map(|&level| [level; 3]).collect();
        assert_eq!(of(ColorSpace::Rgb), thrice, "{name}");
        assert_eq!(of(ColorSpace::Any), gray, "{name}");
        assert!(gray.iter().any(|&level| level > 0.9) && gray.iter().all(|&level| level <= 1.0), "{name}");
    }
}

#[test]
fn colours_are_in_the_order_that_is_asked_for() {
    let decoder = Decoder::new();
    for name in ["sof3_8_rgb", "sof3_12_jfif", "jpeg12_420"] {
        let of = |color| decode(&decoder, &PICTURES[name], &options(color, DType::U16)).unwrap().1;
        let rgb = of(ColorSpace::Rgb);
        let turned: Vec<f64> = rgb.chunks(3).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect();
        assert_eq!(of(ColorSpace::Bgr), turned, "{name}");
        // Luma of what has red, green and blue alone.
        let gray = of(ColorSpace::Gray);
        for (pixel, gray) in rgb.chunks(3).zip(gray) {
            let expected = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
            assert!(name != "sof3_8_rgb" || (gray - expected).abs() <= 129.0, "{gray}, expected {expected}");
        }
    }
}

/// Inks are taken as 8 bits; with Adobe's marker as Adobe writes them, 255 for none.
#[test]
fn inks_become_colours() {
    let decoder = Decoder::new();
    for (name, shape, samples) in recorded("_samples").into_iter().filter(|(_, shape, _)| shape[2] == 4) {
        let info = probe(&PICTURES[&name], true).unwrap();
        assert_eq!((info.channels, [info.height, info.width]), (4, [shape[0], shape[1]]), "{name}");
        let scale = 255.0 / (2_f64.powi(info.bit_depth as i32) - 1.0);
        let adobe = PICTURES[&name].windows(5).any(|part| part == b"Adobe");
        let light = |ink: u16| {
            let ink = (f64::from(ink) * scale).round();
            if adobe { ink } else { 255.0 - ink }
        };
        let expected =
            samples.chunks(4).flat_map(|inks| [0, 1, 2].map(|i| light(inks[i]) * light(inks[3]) / 255.0));
        let (_, found) = decode(&decoder, &PICTURES[&name], &options(ColorSpace::Rgb, DType::U8)).unwrap();
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() <= 2.0, "{name}: {found}, expected {expected}");
        }
        let error = decode(&decoder, &PICTURES[&name], &options(ColorSpace::Any, DType::U8)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
    }
}

#[test]
fn a_window_shows_a_part() {
    let decoder = Decoder::new();
    for name in ["sof3_16_psv7", "sof3_10_jfif", "jpeg12_422", "jpeg12_prog"] {
        let whole = options(ColorSpace::Any, DType::U16);
        let window = Window { x: 5, y: 3, width: 9, height: 7 };
        let (shape, all) = decode(&decoder, &PICTURES[name], &whole).unwrap();
        let cut = DecodeOptions { window: Some(window), ..whole };
        let (_, part) = decode(&decoder, &PICTURES[name], &cut).unwrap();
        let row =
            |y: usize| &all[((y + window.y) * shape[1] + window.x) * shape[2]..][..window.width * shape[2]];
        let expected: Vec<f64> = (0..window.height).flat_map(|y| row(y).iter().copied()).collect();
        assert_eq!(part, expected, "{name}");
    }
}

#[test]
fn those_of_cosine_transforms_are_reduced() {
    let decoder = Decoder::new();
    let reduced = |name: &str, shrink| {
        let options = DecodeOptions { shrink, ..options(ColorSpace::Rgb, DType::U16) };
        decode(&decoder, &PICTURES[name], &options).unwrap()
    };
    let mean = |levels: &[f64]| levels.iter().sum::<f64>() / levels.len() as f64;
    let (shape, whole) = reduced("jpeg12_444", 0);
    for shrink in 1..=3 {
        let (small, found) = reduced("jpeg12_444", shrink);
        assert_eq!(small[..2], [0, 1].map(|axis| shape[axis].div_ceil(1 << shrink)));
        assert!((mean(&found) - mean(&whole)).abs() < 6_000.0, "{} of {}", mean(&found), mean(&whole));
        assert_eq!(reduced("sof3_8_jfif", shrink), reduced("sof3_8_jfif", 0));
    }
}

#[test]
fn what_is_not_decoded_is_said() {
    let decoder = Decoder::new();
    let refused = |bytes: &[u8], part: &str| {
        let error = decode(&decoder, bytes, &DecodeOptions::default()).unwrap_err();
        assert!(error.to_string().contains(part) && error.kind() == ErrorKind::Unsupported, "{error}");
    };
    refused(&PICTURES["jpegls_gray"], "JPEG-LS");
    refused(&PICTURES["sof3_two"], "2 components, expected 1, 3 or 4");
    let frame = |name: &str, from: u8, at: usize, to: u8| {
        let mut file = PICTURES[name].clone();
        let start = file.windows(2).position(|pair| pair == [0xFF, from]).unwrap();
        file[start + at] = to;
        file
    };
    refused(&frame("sof3_8_gray", 0xC3, 1, 0xC7), "hierarchical JPEG (frame header c7)");
    refused(&frame("sof3_8_gray", 0xC3, 1, 0xCB), "lossless with arithmetic codes");
    refused(&frame("sof3_8_gray", 0xC3, 4, 17), "17 bits a sample, expected 2 to 16");
    refused(&frame("jpeg12_gray", 0xC1, 4, 10), "10 bits a sample, expected 8 or 12");
}

/// A file that is cut off anywhere is an error, and so is one that says it is larger than it may be.
#[test]
fn what_is_cut_off_is_never_an_image() {
    let decoder = Decoder::new();
    let names =
        ["jpeg12_420", "jpeg12_prog_gray", "sof3_12_rst", "sof3_8_jfif", "sof3_apart", "sof3_16_cmyk"];
    for name in names {
        let file = &PICTURES[name];
        for length in (0..file.len()).step_by(7).chain(file.len() - 3..file.len()) {
            let result = decode(&decoder, &file[..length], &options(ColorSpace::Rgb, DType::U16));
            assert!(result.is_err(), "{name}: {length} of {} bytes", file.len());
        }
        let mut large = file.clone();
        let start = large.windows(2).position(|pair| matches!(pair, [0xFF, 0xC1..=0xC3])).unwrap();
        large[start + 5..start + 9].fill(0xFF);
        let error = probe(&large, true).unwrap_err();
        assert!(error.to_string().contains("larger than the limit"), "{error}");
    }
}

/// What is decoded to two bytes a sample is counted as that.
#[test]
fn memory_is_told_before_it_is_taken() {
    let needed = |name: &str| {
        let bytes = &PICTURES[name];
        effort(bytes, &probe(bytes, true).unwrap(), &DecodeOptions::default()).scratch
    };
    let pixels = 29 * 21;
    assert!(needed("sof3_16_rgb") >= 2 * 3 * pixels + PICTURES["sof3_16_rgb"].len());
    assert!(needed("jpeg12_444") >= 2 * 3 * pixels);
    assert!(needed("sof3_8_rgb") >= 3 * pixels + PICTURES["sof3_8_rgb"].len());
    assert!(needed("jpeg12_prog") >= needed("jpeg12_420") + 2 * 3 * pixels);
}

/// libjpeg would show memory as it found it where a component has no scan.
#[test]
fn a_lossless_file_has_scans_of_all_its_components() {
    let refused = |bytes: &[u8], part: &str| {
        let error = decode(&Decoder::new(), bytes, &DecodeOptions::default()).unwrap_err();
        assert!(error.to_string().contains(part) && error.kind() == ErrorKind::InvalidArg, "{error}");
    };
    let whole = &PICTURES["sof3_apart"];
    let scans: Vec<usize> =
        (0..whole.len() - 1).filter(|&at| whole[at..].starts_with(&[0xFF, 0xDA])).collect();
    assert_eq!(scans.len(), 3);
    refused(&[&whole[..scans[2]], &[0xFF, 0xD9]].concat(), "no scan of the component with the name 3");
    refused(&[&whole[..scans[1]], &whole[scans[2]..]].concat(), "no scan of the component with the name 2");
    // An end in front of the last scan ends the file.
    refused(
        &[&whole[..scans[2]], &[0xFF, 0xD9], &whole[scans[2]..]].concat(),
        "no scan of the component with the name 3",
    );
    let mut named_alike = whole.clone();
    let frame = named_alike.windows(2).position(|pair| pair == [0xFF, 0xC3]).unwrap();
    for component in 0..3 {
        named_alike[frame + 10 + 3 * component] = 1;
        named_alike[scans[component] + 5] = 1;
    }
    refused(&named_alike, "two components with the name 1");
}
