//! 8-bit RGB as Pillow's `convert("RGB")` makes it, where DALI makes other colours: of inks, and of 16 bits. Alpha is
//! dropped by both. It must not know how files store samples.

use super::color::{Level, Stored, rescale};
use super::{Format, ImageInfo};

/// What is left of the light that an ink leaves, both as 255 less the ink, under black.
pub(super) fn light(ink: u16, black: u16) -> u8 {
    // 255 * 255 + 128 fits, and as many as black are taken away at most.
    let covered = (255 - ink) * black + 128;
    (black - ((covered + (covered >> 8)) >> 8)) as u8
}

/// RGB and full alpha of inks where 255 is all of it.
pub(super) fn rgb_of_inks([c, m, y, k]: [u8; 4]) -> [u8; 4] {
    let of = |ink: u8| light(u16::from(255 - ink), u16::from(255 - k));
    [of(c), of(m), of(y), 255]
}

/// What makes 8 bits of samples of 16: of gray the value, at most 255, of colours the upper byte, of PNM a rounded one.
/// What is not of 16 bits stays as DALI has it, and so do JPEGs of more than 8 bits, which Pillow does not read.
pub(super) fn narrowed<S: Stored, D: Level>(info: &ImageInfo) -> impl Fn(S) -> D {
    let (channels, format, is_wide) = (info.channels, info.format, S::MAX == f64::from(u16::MAX));
    move |value| match (channels, format) {
        _ if !is_wide => rescale(value),
        (_, Format::Jpeg) => rescale(value),
        (1, _) => D::from_f32(value.to_f32().min(255.0)),
        (_, Format::Pnm) => rescale(value),
        _ => D::from_f32((value.to_f32() / 256.0).floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_are_rounded() {
        for (ink, black) in (0..=255).flat_map(|ink| (0..=255).map(move |black| (ink, black))) {
            let covered = (f64::from(255 - ink) * f64::from(black) / 255.0).round();
            assert_eq!(f64::from(light(ink, black)), f64::from(black) - covered, "{ink} {black}");
        }
    }

    #[test]
    fn sixteen_bits_are_cut() {
        let info = |channels, format| ImageInfo {
            format,
            width: 1,
            height: 1,
            channels,
            bit_depth: 16,
            orientation: crate::cpu::decode::Orientation::default(),
            halves: false,
        };
        let of = |channels, format, value: u16| narrowed::<u16, u8>(&info(channels, format))(value);
        assert_eq!([0x12, 0x1FF, 0xFFFF].map(|value| of(1, Format::Png, value)), [0x12, 255, 255]);
        assert_eq!([0x12, 0x1FF, 0xFFFF].map(|value| of(3, Format::Png, value)), [0, 1, 255]);
        assert_eq!([0x12, 0x1FF, 0xFFFF].map(|value| of(3, Format::Pnm, value)), [0, 2, 255]);
    }
}
