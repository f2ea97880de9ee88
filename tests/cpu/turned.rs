//! Pictures that a file says are to be turned, against what is stored.

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder};
use gesso::tensor::DType;

use crate::decode::decode;

pub(crate) const AS_STORED: DecodeOptions = DecodeOptions {
    color: ColorSpace::Any,
    dtype: DType::U8,
    adjust_orientation: false,
    fast_idct: false,
    smooth_chroma: true,
    as_pillow: false,
    to_srgb: false,
    window: None,
    shrink: 0,
};

/// Holds the picture in `bytes`, of three channels, as it is shown against how it is stored: turned as EXIF's `number`
/// from 2 on says.
pub(crate) fn assert_turned(bytes: &[u8], number: u32) {
    let decoder = Decoder::new();
    let (shape, stored) = decode(&decoder, bytes, &AS_STORED).unwrap();
    let [rows, columns] = [shape[0], shape[1]];
    let shown = DecodeOptions { adjust_orientation: true, ..AS_STORED };
    let (seen, found) = decode(&decoder, bytes, &shown).unwrap();
    assert_eq!(seen, if number < 5 { [rows, columns, 3] } else { [columns, rows, 3] }, "{number}");
    let [width, height] = [seen[1], seen[0]];
    for (at, pixel) in found.chunks_exact(3).enumerate() {
        // EXIF's numbers by where a seen pixel is stored.
        let (x, y) = (at % width, at / width);
        let (row, column) = match number {
            2 => (y, width - 1 - x),
            3 => (height - 1 - y, width - 1 - x),
            4 => (height - 1 - y, x),
            5 => (x, y),
            6 => (width - 1 - x, y),
            7 => (width - 1 - x, height - 1 - y),
            _ => (x, height - 1 - y),
        };
        assert_eq!(pixel, &stored[3 * (row * columns + column)..][..3], "{number} ({x}, {y})");
    }
}
