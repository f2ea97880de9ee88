//! Decoding against answers recorded from DALI (tests/data/decode/make.py says how), and against hostile input. What
//! DALI does not decode at all is in `avif` and `jpeg_xl`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder, Window, output_shape, probe};
use gesso::error::{ErrorKind, Result};
use gesso::limits;
use gesso::tensor::DType;
use proptest::prelude::*;
use serde_json::Value;

use crate::npz::Npz;

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/decode").join(name)
}

pub(crate) static PICTURES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(pictures);

fn pictures() -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for file in ["pictures.npz", "avif.npz", "jxl.npz", "tiff.npz", "kinds.npz", "heif.npz", "deep.npz"] {
        let mut archive = Npz::open(data(file));
        // Beside files there are pixels that they are compared with.
        let ends: &[&str] = match file {
            "kinds.npz" => &["_pixels", "_gray"],
            "deep.npz" => &["_samples", "_luma"],
            _ => &["_pixels"],
        };
        let answers = |name: &String| ends.iter().any(|end| name.ends_with(end));
        let files = archive.names().into_iter().filter(|name| !answers(name));
        all.extend(files.map(|name| (name.clone(), archive.array(&name).1)));
    }
    all
}

fn cases(kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(data("cases.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[kind].as_array().unwrap().clone()
}

fn color(name: &str) -> ColorSpace {
    match name {
        "rgb" => ColorSpace::Rgb,
        "bgr" => ColorSpace::Bgr,
        "gray" => ColorSpace::Gray,
        "ycbcr" => ColorSpace::YCbCr,
        "any" => ColorSpace::Any,
        other => panic!("no such colour `{other}`"),
    }
}

fn options(case: &Value) -> DecodeOptions {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let window = case["window"].as_array().map(|numbers| {
        let [x, y, width, height] = [0, 1, 2, 3].map(|i| numbers[i].as_u64().unwrap() as usize);
        Window { x, y, width, height }
    });
    DecodeOptions {
        color: color(text("color")),
        dtype: DType::ALL.into_iter().find(|dtype| dtype.name() == text("dtype")).unwrap_or(DType::U8),
        adjust_orientation: case["orient"].as_bool().unwrap(),
        fast_idct: false,
        smooth_chroma: true,
        as_pillow: false,
        to_srgb: false,
        window,
        shrink: 0,
    }
}

/// Decodes to numbers, which hold every output type exactly.
pub(crate) fn decode(
    decoder: &Decoder,
    bytes: &[u8],
    options: &DecodeOptions,
) -> Result<(Vec<usize>, Vec<f64>)> {
    let info = probe(bytes, options.adjust_orientation)?;
    let shape = output_shape(&info, options).to_vec();
    let count: usize = shape.iter().product();
    // Memory for f32 is aligned for every type that images are decoded to.
    let mut memory = vec![f32::NAN; count.max(1) * 2];
    let out = &mut bytemuck::cast_slice_mut::<f32, u8>(&mut memory)[..count * options.dtype.size()];
    decoder.decode_into(bytes, options, out)?;
    let numbers = match options.dtype {
        DType::U8 => out.iter().map(|&v| f64::from(v)).collect(),
        DType::I8 => bytemuck::cast_slice::<u8, i8>(out).iter().map(|&v| f64::from(v)).collect(),
        DType::U16 => bytemuck::cast_slice::<u8, u16>(out).iter().map(|&v| f64::from(v)).collect(),
        DType::I16 => bytemuck::cast_slice::<u8, i16>(out).iter().map(|&v| f64::from(v)).collect(),
        DType::U32 => bytemuck::cast_slice::<u8, u32>(out).iter().map(|&v| f64::from(v)).collect(),
        DType::I32 => bytemuck::cast_slice::<u8, i32>(out).iter().map(|&v| f64::from(v)).collect(),
        _ => bytemuck::cast_slice::<u8, f32>(out).iter().map(|&v| f64::from(v)).collect(),
    };
    Ok((shape, numbers))
}

fn answer(archive: &mut Npz, name: &str, dtype: DType) -> (Vec<usize>, Vec<f64>) {
    fn numbers<T: bytemuck::Pod + Into<f64>>(
        (shape, elements): (Vec<usize>, Vec<T>),
    ) -> (Vec<usize>, Vec<f64>) {
        (shape, elements.into_iter().map(Into::into).collect())
    }
    match dtype {
        DType::U8 => numbers::<u8>(archive.array(name)),
        DType::I8 => numbers::<i8>(archive.array(name)),
        DType::U16 => numbers::<u16>(archive.array(name)),
        DType::I16 => numbers::<i16>(archive.array(name)),
        DType::U32 => numbers::<u32>(archive.array(name)),
        DType::I32 => numbers::<i32>(archive.array(name)),
        _ => numbers::<f32>(archive.array(name)),
    }
}

/// Files (and colours) that are decoded otherwise than by DALI: how far off, in the output's units, and why.
const DIFFERENT: &[(&str, &str, f64, &str)] = &[
    ("tiff_la", "rgb bgr ycbcr", 255.0, "DALI takes RGB from a pixel and a half"),
    ("png_rgba16_exif8", "any", 255.0, "DALI changes the shape but leaves the pixels where they are"),
];

/// Files that DALI decodes and we refuse, with a part of our reason.
const REFUSED: &[(&str, &str)] = &[("jpeg_corrupt_ff05", "Unsupported marker type 0x05")];

/// Files (and colours) that DALI refuses, or crashes on, and we decode.
const ACCEPTED: &[(&str, &str, &str)] = &[
    ("jpeg_gray", "any", "DALI crashes"),
    (
        "jpeg_garbage_in_header",
        "rgb bgr gray ycbcr any",
        "libjpeg passes over it, which DALI's reader of headers does not",
    ),
    ("jpeg_exif63", "rgb bgr gray ycbcr any", "DALI crashes"),
    ("png_la", "any", "DALI has no output of two channels"),
    ("png_la16", "any", "DALI has no output of two channels"),
    ("bmp_555", "rgb bgr gray ycbcr any", "DALI counts no channels"),
    ("bmp_32", "any", "DALI has no way to give four channels of a BMP"),
    ("bmp_rgba", "any", "DALI has no way to give four channels of a BMP"),
    ("gif", "rgb bgr gray ycbcr any", "DALI does not know the format"),
    ("tiff_1", "rgb bgr gray ycbcr any", "no bits per sample: the default is 1"),
    ("tiff_l4", "rgb bgr gray ycbcr any", "DALI reads 8 bits and more"),
];

/// Files of which DALI does not tell the shape and we do, and the other way round.
const PEEKED_OTHERWISE: &[(&str, &str)] = &[
    ("png_truncated", "DALI looks for the last chunk"),
    ("png_no_iend", "DALI looks for the last chunk"),
    ("jpeg_garbage_in_header", "DALI stops at what is no marker"),
    ("bmp_555", "DALI counts no channels"),
    ("gif", "DALI does not know the format"),
    ("tiff_1", "no bits per sample: the default is 1"),
];

#[test]
fn decodes_what_dali_decodes() {
    let (pictures, decoder) = (pictures(), Decoder::new());
    let mut answers = Npz::open(data("answers.npz"));
    let mut wrong = Vec::new();
    let mut compared = 0;
    for case in cases("decode") {
        let (file, options) = (case["file"].as_str().unwrap(), options(&case));
        let ours = decode(&decoder, &pictures[file], &options);
        let label = format!("{file} {:?} {} window {:?}", options.color, options.dtype, options.window);
        let refused = REFUSED.iter().find(|(name, _)| *name == file);
        let lists = |colors: &str| colors.split(' ').any(|color| color == case["color"]);
        let accepted = ACCEPTED.iter().any(|(name, colors, _)| *name == file && lists(colors));
        let Some(name) = case["answer"].as_str() else {
            if ours.is_ok() != accepted {
                wrong.push(format!("{label}: DALI says {}, we say {:?}", case["error"], ours.map(|o| o.0)));
            }
            continue;
        };
        let (shape, expected) = answer(&mut answers, name, options.dtype);
        match (ours, refused) {
            (Err(error), Some((_, reason))) if error.to_string().contains(reason) => {}
            (Err(error), _) => wrong.push(format!("{label}: {error}")),
            (Ok(_), Some(_)) => wrong.push(format!("{label}: decoded, but listed as refused")),
            (Ok((ours_shape, _)), None) if ours_shape != shape => {
                wrong.push(format!("{label}: shape {ours_shape:?}, expected {shape:?}"));
            }
            (Ok((_, found)), None) => {
                compared += 1;
                let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                let count = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
                let allowed = DIFFERENT
                    .iter()
                    .find(|(name, colors, ..)| *name == file && lists(colors))
                    .map_or(0.0, |(_, _, worst, _)| *worst);
                if worst > allowed {
                    wrong.push(format!("{label}: {count} of {} differ by up to {worst}", expected.len()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 900, "only {compared} cases were compared");
}

#[test]
fn probes_what_dali_peeks() {
    let pictures = pictures();
    let mut wrong = Vec::new();
    for case in cases("peek") {
        let (file, options) = (case["file"].as_str().unwrap(), options(&case));
        let ours =
            probe(&pictures[file], options.adjust_orientation).map(|info| output_shape(&info, &options));
        let dali = case["shape"].as_array().map(|s| [0, 1, 2].map(|i| s[i].as_u64().unwrap() as usize));
        let listed = PEEKED_OTHERWISE.iter().any(|(name, _)| *name == file);
        if ours.as_ref().ok() != dali.as_ref() && !listed {
            wrong.push(format!("{file} {:?} {}: {ours:?}, expected {dali:?}", options.color, case["orient"]));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

pub(crate) fn message(result: Result<impl Sized>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn a_gif_has_the_pixels_that_were_written() {
    let (pictures, decoder) = (pictures(), Decoder::new());
    let gray = |file: &str| decode(&decoder, &pictures[file], &DecodeOptions::default()).unwrap();
    assert_eq!(gray("gif"), gray("png_gray"));
}

#[test]
fn errors_say_what_is_wrong() {
    let (pictures, decoder) = (pictures(), Decoder::new());
    let probed = |bytes: &[u8]| message(probe(bytes, true));
    assert_eq!(probed(b""), "empty input, expected an encoded image");
    assert_eq!(
        probed(b"hello, this is not a picture"),
        "unknown image format: the input of 28 bytes starts with `68 65 6c 6c 6f 2c 20 74 68 69 73 20`"
    );
    let error = probe(&pictures["pnm_p7"], true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("format PAM "), "{error}");
    assert!(
        probed(&pictures["jpeg_header_cut"])
            .starts_with("`JPEG` image: truncated header: the input ends after")
    );
    for file in [
        "jpeg_truncated",
        "jpeg_no_eoi",
        "jpeg_prog_truncated",
        "png_truncated",
        "bmp_truncated",
        "pnm_truncated",
        "tiff_truncated",
        "webp_truncated",
    ] {
        let text = message(decode(&decoder, &pictures[file], &DecodeOptions::default()));
        assert!(
            text.contains("truncated") || text.contains("ends before") || text.contains("end of"),
            "{file}: {text}"
        );
    }
    for dtype in [DType::F16, DType::F64, DType::U64, DType::I64, DType::Bool] {
        let error = decode(&decoder, &pictures["jpeg_420"], &DecodeOptions { dtype, ..Default::default() })
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(dtype.name()), "{error}");
    }
}

#[test]
fn windows_and_outputs_are_checked() {
    let (pictures, decoder) = (pictures(), Decoder::new());
    let bytes = &pictures["jpeg_exif6"];
    let mut out = vec![0_u8; 23 * 17 * 3];
    let mut with = |window: Option<Window>, bytes_of_output: usize| {
        let options = DecodeOptions { window, ..Default::default() };
        decoder.decode_into(bytes, &options, &mut out[..bytes_of_output])
    };
    // The file stores 23 columns and 17 rows; turned it has 17 and 23.
    assert!(with(Some(Window { x: 7, y: 13, width: 10, height: 10 }), 300).is_ok());
    let text = message(with(Some(Window { x: 8, y: 13, width: 10, height: 10 }), 300));
    assert!(
        text.contains("window of 10 x 10 pixels at (8, 13) is not inside the image of 17 x 23 pixels"),
        "{text}"
    );
    assert!(with(Some(Window { x: usize::MAX, y: 0, width: 2, height: 1 }), 6).is_err());
    assert!(with(Some(Window { x: 17, y: 0, width: 0, height: 1 }), 0).is_ok());
    assert!(message(with(None, 100)).contains("decoded to 100 bytes, expected 1173"));
}

#[test]
fn huge_headers_are_refused() {
    let pictures = pictures();
    let refused = |bytes: &[u8]| {
        let text = message(probe(bytes, true));
        assert!(text.contains("60000 x 60000 pixels is larger than the limit of 134217728 pixels"), "{text}");
    };
    let patched = |file: &str, at: usize, bytes: &[u8]| {
        let mut picture = pictures[file].clone();
        picture[at..at + bytes.len()].copy_from_slice(bytes);
        picture
    };
    let frame = pictures["jpeg_420"].windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    refused(&patched("jpeg_420", frame + 5, &[0xEA, 0x60, 0xEA, 0x60]));
    refused(&patched("png_rgb", 16, &[0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60]));
    refused(&patched("bmp_rgb", 18, &[0x60, 0xEA, 0, 0, 0x60, 0xEA, 0, 0]));
    refused(b"P6 60000 60000 255\n");
    assert!(message(probe(&patched("jpeg_420", frame + 5, &[0, 0, 0, 9]), true)).contains("9 x 0 pixels"));
    assert_eq!(limits::MAX_IMAGE_PIXELS, 134_217_728);
}

#[test]
fn endless_scans_are_refused() {
    let bytes = &PICTURES["jpeg_prog"];
    let last = bytes.windows(2).rposition(|pair| pair == [0xFF, 0xDA]).unwrap();
    let (head, scan) = bytes[..bytes.len() - 2].split_at(last);
    let with = |scans: usize| [head, &scan.repeat(scans), &[0xFF, 0xD9]].concat();
    let decoder = Decoder::new();
    assert!(decode(&decoder, &with(20), &DecodeOptions::default()).is_ok());
    let text = message(decode(&decoder, &with(200), &DecodeOptions::default()));
    assert!(text.contains("more than 128 scans"), "{text}");
}

/// A smaller file of each format and of each way to store it.
const HOSTILE: [&str; 37] = [
    "jpeg_exif6",
    "jpeg_prog",
    "jpeg_rst",
    "jpeg_ycck",
    "png_rgb",
    "png_p8_trns",
    "png_rgba16_exif8",
    "bmp_p4",
    "bmp_rle8",
    "bmp_565",
    "bmp_runs_24_bits",
    "bmp_alpha_56",
    "jp2_palette_direct",
    "jp2_sycc_420_alpha",
    "jp2_palette_12",
    "jp2_alpha_first",
    "avif_clap",
    "avif_layers",
    "avif_grid_alpha",
    "heic_420",
    "heic_444",
    "heic_rgba",
    "heic_10_420",
    "heic_clap_turned",
    "heic_grid_alpha",
    "gif",
    "pnm_p6",
    "pnm_p2_max100",
    "tiff_lzw",
    "tiff_jpeg",
    "webp_lossy_alpha",
    "webp_lossless",
    "webp_animated",
    "avif_420",
    "avif_rgba",
    "avif_10_444",
    "avif_sequence",
];

/// Decodes whatever it is, if its output has no more than a megapixel: damage may make a header ask for a large one.
fn survive(decoder: &Decoder, bytes: &[u8]) {
    for color in [ColorSpace::Rgb, ColorSpace::Any] {
        let options = DecodeOptions { color, ..Default::default() };
        if probe(bytes, true).is_ok_and(|info| info.width * info.height <= 1 << 20) {
            let _ = decode(decoder, bytes, &options);
        }
    }
}

#[test]
fn every_truncation_is_survived() {
    let (pictures, decoder) = (pictures(), Decoder::new());
    for file in HOSTILE {
        let bytes = &pictures[file];
        for length in 0..bytes.len() {
            survive(&decoder, &bytes[..length]);
        }
        assert!(decode(&decoder, bytes, &DecodeOptions::default()).is_ok(), "{file} after its truncations");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_survived(
        file in prop::sample::select(&HOSTILE[..]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = PICTURES[file].clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let decoder = Decoder::new();
        survive(&decoder, &bytes);
        prop_assert!(decode(&decoder, &PICTURES[file], &DecodeOptions::default()).is_ok());
    }

    #[test]
    fn any_bytes_are_survived(
        head in prop::sample::select(&HOSTILE[..]),
        kept in 2_usize..40,
        tail in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = PICTURES[head][..kept.min(PICTURES[head].len())].to_vec();
        bytes.extend(tail);
        survive(&Decoder::new(), &bytes);
    }
}

#[test]
fn one_decoder_serves_many_threads() {
    let decoder = Decoder::new();
    let expected = decode(&decoder, &PICTURES["jpeg_420"], &DecodeOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    // An error in between must not spoil a handle for the next image.
                    assert!(
                        decode(&decoder, &PICTURES["jpeg_truncated"], &DecodeOptions::default()).is_err()
                    );
                    let found = decode(&decoder, &PICTURES["jpeg_420"], &DecodeOptions::default()).unwrap();
                    assert_eq!(found, expected);
                }
            });
        }
    });
}
