//! What only JPEGs have: halves of themselves, ends that are missing, shared chroma.

use gesso::cpu::decode::{DecodeOptions, Decoder};

use crate::decode::{PICTURES, decode};

#[test]
fn a_reduced_jpeg_is_the_whole_one_averaged() {
    let decoder = Decoder::new();
    let image = &PICTURES["jpeg_420"];
    let (shape, whole) = decode(&decoder, image, &DecodeOptions::default()).unwrap();
    for shrink in 1..=3 {
        let (reduced, found) =
            decode(&decoder, image, &DecodeOptions { shrink, ..DecodeOptions::default() }).unwrap();
        assert_eq!(reduced[..2], [0, 1].map(|axis| shape[axis].div_ceil(1 << shrink)));
        let side = 1 << shrink;
        let mean = |y: usize, x: usize, c: usize| {
            let at = |i: usize| ((y * side + i / side) * shape[1] + x * side + i % side) * 3 + c;
            (0..side * side).map(|i| whole[at(i)]).sum::<f64>() / (side * side) as f64
        };
        let (rows, columns) = (shape[0] / side, shape[1] / side);
        let pixels = (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x)));
        let off = pixels.map(|(y, x)| (found[(y * reduced[1] + x) * 3] - mean(y, x, 0)).abs()).sum::<f64>();
        assert!(off / ((rows * columns) as f64) < 4.0, "{off} of {rows} x {columns} pixels");
    }
}

#[test]
fn what_has_no_cosine_transforms_is_not_reduced() {
    let decoder = Decoder::new();
    let (shape, pixels) = decode(&decoder, &PICTURES["jpeg_420"], &DecodeOptions::default()).unwrap();
    let pixels: Vec<u8> = pixels.iter().map(|&value| value as u8).collect();
    let (height, width) = (shape[0], shape[1]);
    let format = turbojpeg::PixelFormat::RGB;
    let image = turbojpeg::Image { pixels: &pixels[..], width, pitch: 3 * width, height, format };
    let mut lossless = turbojpeg::Compressor::new().unwrap();
    lossless.set_lossless(true).unwrap();
    let lossless = lossless.compress_to_vec(image).unwrap();
    for file in [&PICTURES["png_rgb"], &lossless] {
        let decoded =
            |shrink| decode(&decoder, file, &DecodeOptions { shrink, ..DecodeOptions::default() }).unwrap();
        assert_eq!(decoded(2), decoded(0));
    }
}

#[test]
fn a_truncated_jpeg_is_never_an_image() {
    let decoder = Decoder::new();
    for file in ["jpeg_exif6", "jpeg_prog", "jpeg_rst", "jpeg_ycck", "jpeg_gray"] {
        let bytes = &PICTURES[file];
        for length in 0..bytes.len() {
            let result = decode(&decoder, &bytes[..length], &DecodeOptions::default());
            assert!(result.is_err(), "{file}: {length} of {} bytes", bytes.len());
        }
    }
}

/// What was decoded before leaves nothing behind: no file is decoded with tables of another.
#[test]
fn a_file_without_tables_is_the_same_after_any_other() {
    const DQT: u8 = 0xDB;
    let whole = &PICTURES["jpeg_420"];
    // Segments before the scan: a marker and a length that counts itself.
    let mut without = whole[..2].to_vec();
    let mut at = 2;
    while whole[at + 1] != 0xDA {
        let end = at + 2 + usize::from(u16::from_be_bytes([whole[at + 2], whole[at + 3]]));
        without.extend((whole[at + 1] != DQT).then_some(&whole[at..end]).into_iter().flatten());
        at = end;
    }
    without.extend(&whole[at..]);
    assert!(without.len() < whole.len());
    let decoder = Decoder::new();
    for _ in 0..3 {
        decode(&decoder, whole, &DecodeOptions::default()).unwrap();
        let error = decode(&decoder, &without, &DecodeOptions::default()).unwrap_err().to_string();
        assert!(error.contains("Quantization table 0x00 was not defined"), "{error}");
    }
}

/// In 4:2:0 four pixels share a chroma sample. Repeated, it moves red, green and blue of all four alike, so that they
/// differ by their luma alone.
#[test]
fn chroma_is_repeated_or_interpolated() {
    const SIDE: usize = 32;
    let pixel = |i: usize| {
        let (x, y) = (i % SIDE, i / SIDE);
        [90 + 3 * x as u8, 110 + (x ^ y) as u8, 180 - 3 * y as u8]
    };
    let pixels: Vec<u8> = (0..SIDE * SIDE).flat_map(pixel).collect();
    let format = turbojpeg::PixelFormat::RGB;
    let image = turbojpeg::Image { pixels: &pixels[..], width: SIDE, pitch: 3 * SIDE, height: SIDE, format };
    let file = turbojpeg::compress(image, 95, turbojpeg::Subsamp::Sub2x2).unwrap();
    let differs_by_luma_alone = |smooth_chroma| {
        let options = DecodeOptions { smooth_chroma, ..DecodeOptions::default() };
        let (_, decoded) = decode(&Decoder::new(), &file, &options).unwrap();
        let at = |x: usize, y: usize, channel: usize| decoded[(y * SIDE + x) * 3 + channel];
        (0..SIDE * SIDE).all(|i| {
            let (x, y) = (i % SIDE, i / SIDE);
            let differences: Vec<f64> =
                (0..3).map(|channel| at(x, y, channel) - at(x & !1, y & !1, channel)).collect();
            differences[0] == differences[1] && differences[1] == differences[2]
        })
    };
    assert!(differs_by_luma_alone(false));
    assert!(!differs_by_luma_alone(true));
}
