//! Pictures with colour profiles in sRGB, against LittleCMS (tests/data/decode/make_profiles.py says how).

use std::path::Path;

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder, Window, has_profile, output_shape, probe};
use gesso::error::Result;
use gesso::tensor::DType;

use crate::npz::Npz;

/// Levels that colours may be off; by tables of colours, where two ways of LittleCMS itself differ by up to 9.
const MOST: u8 = 2;
const MOST_OF_TABLES: u8 = 5;

const TO_SRGB: DecodeOptions = DecodeOptions {
    color: ColorSpace::Rgb,
    dtype: DType::U8,
    adjust_orientation: true,
    fast_idct: false,
    smooth_chroma: true,
    as_pillow: false,
    to_srgb: true,
    window: None,
    shrink: 0,
};

/// Name, file, and its pixels in sRGB.
fn files() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut archive = Npz::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/decode/profiles.npz"));
    let names = archive.names().into_iter().filter(|name| !name.ends_with("_srgb"));
    names
        .map(|name| (name.clone(), archive.array(&name).1, archive.array(&format!("{name}_srgb")).1))
        .collect()
}

fn file(name: &str) -> Vec<u8> {
    files().into_iter().find(|(found, ..)| found == name).unwrap().1
}

fn decode(file: &[u8], options: &DecodeOptions) -> Result<Vec<u8>> {
    let shape = output_shape(&probe(file, options.adjust_orientation)?, options);
    let mut pixels = vec![0; shape.iter().product::<usize>() * options.dtype.size()];
    Decoder::new().decode_into(file, options, &mut pixels)?;
    Ok(pixels)
}

fn most_off(found: &[u8], expected: &[u8]) -> u8 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn colours_are_those_of_littlecms() {
    for (name, file, expected) in files() {
        let color = if name == "png_alpha" { ColorSpace::Any } else { ColorSpace::Rgb };
        let found =
            decode(&file, &DecodeOptions { color, ..TO_SRGB }).unwrap_or_else(|e| panic!("{name}: {e}"));
        let off = most_off(&found, &expected);
        println!("{name}: {off}");
        let most = match &*name {
            "png_table" => MOST_OF_TABLES,
            // Before colours are converted, both decoders are a level apart.
            "avif_p3" => 2 * MOST,
            _ => MOST,
        };
        assert!(off <= most, "{name} is off by {off} levels");
        assert_eq!(has_profile(&file).unwrap(), !matches!(&*name, "png_srgb" | "jpeg_none"), "{name}");
    }
}

#[test]
fn files_without_a_profile_and_decoders_not_asked_stay_as_they_were() {
    for (name, file, expected) in files() {
        let own = DecodeOptions { to_srgb: false, ..TO_SRGB };
        let pixels = decode(&file, &own).unwrap();
        if has_profile(&file).unwrap() {
            assert!(pixels != expected, "{name}");
        } else {
            assert_eq!(pixels, decode(&file, &TO_SRGB).unwrap(), "{name}");
        }
    }
}

/// Other types and colours are made of the pixels in sRGB.
#[test]
fn what_is_asked_for_is_made_of_the_colours_in_srgb() {
    let png = file("png_p3");
    let rgb = decode(&png, &TO_SRGB).unwrap();
    let bgr = decode(&png, &DecodeOptions { color: ColorSpace::Bgr, ..TO_SRGB }).unwrap();
    assert!(rgb.chunks(3).zip(bgr.chunks(3)).all(|(rgb, bgr)| rgb == [bgr[2], bgr[1], bgr[0]]));
    let floats = decode(&png, &DecodeOptions { dtype: DType::F32, ..TO_SRGB }).unwrap();
    let floats: &[f32] = bytemuck::cast_slice(&floats);
    assert!(rgb.iter().zip(floats).all(|(level, float)| (f32::from(*level) / 255.0 - float).abs() < 1e-6));
    let gray = decode(&png, &DecodeOptions { color: ColorSpace::Gray, ..TO_SRGB }).unwrap();
    for (rgb, gray) in rgb.chunks(3).zip(gray) {
        let luma = 0.299 * f32::from(rgb[0]) + 0.587 * f32::from(rgb[1]) + 0.114 * f32::from(rgb[2]);
        assert!((luma - f32::from(gray)).abs() <= 1.0);
    }
    let window = Window { x: 3, y: 2, width: 5, height: 4 };
    let part = decode(&png, &DecodeOptions { window: Some(window), ..TO_SRGB }).unwrap();
    assert_eq!(part[..15], rgb[(2 * 16 + 3) * 3..][..15]);
    let smaller = decode(&file("jpeg_p3"), &DecodeOptions { shrink: 1, ..TO_SRGB }).unwrap();
    assert_eq!(smaller.len(), 12 * 8 * 3);
    // Gray stays gray.
    let gray = file("png_gray");
    let one = decode(&gray, &DecodeOptions { color: ColorSpace::Any, ..TO_SRGB }).unwrap();
    let three = decode(&gray, &TO_SRGB).unwrap();
    assert!(one.iter().zip(three.chunks(3)).all(|(gray, rgb)| rgb == [*gray; 3]));
}

#[test]
fn damaged_profiles_are_errors() {
    for (name, file, _) in files().into_iter().filter(|(name, ..)| !name.starts_with("avif")) {
        for place in (0..file.len().min(1_500)).step_by(7) {
            let mut damaged = file.clone();
            damaged[place] ^= 0x55;
            // Whatever becomes of it, it is no panic; and who is not asked for sRGB does not look at it.
            let own = decode(&damaged, &DecodeOptions { to_srgb: false, ..TO_SRGB });
            let made = std::panic::catch_unwind(|| decode(&damaged, &TO_SRGB).map(drop));
            assert!(made.is_ok(), "{name} panics at {place}");
            drop(own);
        }
    }
    let mut cut = file("jpeg_parts");
    let part = cut.windows(12).rposition(|bytes| bytes == b"ICC_PROFILE\0").unwrap();
    cut[part + 12] = 7;
    let error = decode(&cut, &TO_SRGB).unwrap_err().to_string();
    assert!(error.contains("parts that are not numbered from 1 to 2"), "{error}");
}
