//! Arithmetic on one pixel: scaling a sample to another type's range, luma by each format's rule, studio-range YCbCr.
//! It must not know where pixels are stored. Formulas are those that reproduce DALI's CPU results bit for bit.

use std::any::TypeId;

use crate::tensor::DType;

/// The type of a sample of the output.
pub(super) trait Level: bytemuck::Pod {
    /// The value of full intensity.
    const MAX: f64;
    /// Values in one unit of studio range's offsets: 1 for floating point, else the number of values from 0 up.
    const SPAN: f32;
    /// Rounded half away from zero and saturated; floating point as it is.
    fn from_f32(value: f32) -> Self;
}

macro_rules! integer_levels {
    ($($t:ty),*) => { $(impl Level for $t {
        const MAX: f64 = <$t>::MAX as f64;
        const SPAN: f32 = (<$t>::MAX as f64 + 1.0) as f32;
        #[inline]
        fn from_f32(value: f32) -> Self { value.round() as $t }
    })* };
}
integer_levels!(u8, i8, u16, i16, u32, i32);

impl Level for f32 {
    const MAX: f64 = 1.0;
    const SPAN: f32 = 1.0;
    #[inline]
    fn from_f32(value: f32) -> Self {
        value
    }
}

/// `value` scaled from the range of `S` to that of `D`.
#[inline]
pub(super) fn rescale<S: Stored, D: Level>(value: S) -> D {
    if TypeId::of::<S>() == TypeId::of::<D>() {
        // Known when compiled, so copying pixels stays a copy.
        return bytemuck::cast(value);
    }
    D::from_f32(value.to_f32() * (D::MAX as f32 / S::MAX as f32))
}

/// How a format turns RGB to gray.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luma {
    /// libpng: 15-bit weights; 8-bit samples are not rounded, 16-bit ones are.
    Png,
    /// 14-bit weights, rounded (BMP, PNM).
    Bits14,
    /// The same of samples with so many bits of 0 at their end, which the result has too (TIFF of 9 to 15 bits).
    Bits14Above(u32),
    /// 15-bit weights, rounded (WebP, AVIF, JPEG 2000).
    Bits15,
    /// Single-precision weights, rounded (TIFF).
    Float,
    /// Single-precision weights, not rounded (JPEG with inks).
    FloatFloor,
}

/// A sample type that files have.
pub(super) trait Stored: Level {
    /// As a number.
    fn to_f32(self) -> f32;
    /// Luma of one pixel by `rule`.
    fn luma(rule: Luma, rgb: [Self; 3]) -> Self;
}

#[inline]
fn weighted(rgb: [u32; 3], weights: [u32; 3], half: u32, bits: u32) -> u32 {
    // At most 65535 * 2^15 + 2^14: fits.
    (rgb[0] * weights[0] + rgb[1] * weights[1] + rgb[2] * weights[2] + half) >> bits
}

#[inline]
fn weighted_f32(rgb: [f32; 3]) -> f32 {
    rgb[0] * 0.299 + rgb[1] * 0.587 + rgb[2] * 0.114
}

const PNG_WEIGHTS: [u32; 3] = [9797, 19234, 3737];
const WEIGHTS_14: [u32; 3] = [4899, 9617, 1868];
const WEIGHTS_15: [u32; 3] = [9798, 19235, 3735];

macro_rules! stored_integers {
    ($($t:ty: $png_half:literal),*) => { $(impl Stored for $t {
        #[inline]
        fn to_f32(self) -> f32 { f32::from(self) }
        #[inline]
        fn luma(rule: Luma, rgb: [Self; 3]) -> Self {
            let wide = rgb.map(u32::from);
            match rule {
                Luma::Png => weighted(wide, PNG_WEIGHTS, $png_half, 15) as $t,
                Luma::Bits14 => weighted(wide, WEIGHTS_14, 1 << 13, 14) as $t,
                Luma::Bits14Above(zeros) => {
                    (weighted(wide, WEIGHTS_14, 1 << (13 + zeros), 14 + zeros) << zeros) as $t
                }
                Luma::Bits15 => weighted(wide, WEIGHTS_15, 1 << 14, 15) as $t,
                Luma::Float => weighted_f32(rgb.map(Stored::to_f32)).round() as $t,
                Luma::FloatFloor => weighted_f32(rgb.map(Stored::to_f32)) as $t,
            }
        }
    })* };
}
stored_integers!(u8: 0, u16: 16384);

impl Stored for f32 {
    #[inline]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline]
    fn luma(_: Luma, rgb: [Self; 3]) -> Self {
        weighted_f32(rgb)
    }
}

/// BT.601 studio range: weights of red, green and blue in Y, Cb and Cr, each with its offset in spans of the type.
const STUDIO: [([f32; 3], f32); 3] = [
    ([0.256_788_22, 0.504_129_4, 0.097_905_88], 0.0625),
    ([-0.148_222_9, -0.290_992_8, 0.439_215_7], 0.5),
    ([0.439_215_7, -0.367_788_3, -0.071_427_375], 0.5),
];

/// What [`studio`] multiplies samples of `S` by for `D`, and the span of its offsets.
pub(super) fn studio_range<S: Stored, D: Level>() -> [f32; 2] {
    [(D::MAX / S::MAX) as f32, D::SPAN]
}

/// BT.601 studio range from RGB, scaled to a type's [`studio_range`] and not rounded yet.
#[inline]
pub(super) fn studio<S: Stored>(rgb: [S; 3], [scale, span]: [f32; 2]) -> [f32; 3] {
    let [r, g, b] = rgb.map(Stored::to_f32);
    STUDIO.map(|([wr, wg, wb], offset)| wr * scale * r + wg * scale * g + wb * scale * b + offset * span)
}

/// What 8-bit samples are multiplied by to get another type, for those who do it on a device as it is done here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// To the range of the type.
    pub level: f32,
    /// To studio range: weights of red, green and blue, and what is added, for Y, Cb and Cr.
    pub studio: [([f32; 3], f32); 3],
}

impl Scaling {
    /// From 8 bits to `dtype`; `None` for types that images are not decoded to.
    pub fn to(dtype: DType) -> Option<Self> {
        Some(match dtype {
            DType::U8 => Self::to_level::<u8>(),
            DType::I8 => Self::to_level::<i8>(),
            DType::U16 => Self::to_level::<u16>(),
            DType::I16 => Self::to_level::<i16>(),
            DType::U32 => Self::to_level::<u32>(),
            DType::I32 => Self::to_level::<i32>(),
            DType::F32 => Self::to_level::<f32>(),
            _ => return None,
        })
    }

    fn to_level<D: Level>() -> Self {
        let scale = (D::MAX / f64::from(u8::MAX)) as f32;
        let studio = STUDIO.map(|(weights, offset)| (weights.map(|w| w * scale), offset * D::SPAN));
        Self { level: D::MAX as f32 / f32::from(u8::MAX), studio }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ycbcr<S: Stored, D: Level>(rgb: [S; 3]) -> [D; 3] {
        studio(rgb, studio_range::<S, D>()).map(D::from_f32)
    }

    #[test]
    fn gray_stays_gray_by_every_rule() {
        for rule in [Luma::Png, Luma::Bits14, Luma::Bits15] {
            for value in 0..=255_u8 {
                assert_eq!(u8::luma(rule, [value; 3]), value);
            }
            assert_eq!(u16::luma(rule, [u16::MAX; 3]), u16::MAX);
            assert_eq!(u16::luma(Luma::Bits14Above(4), [0xABC0, 0xABC0, 0xABC0]), 0xABC0);
        }
    }

    #[test]
    fn halves_go_away_from_zero() {
        for (value, expected) in
            [(0.5, 1), (0.499_999_97, 0), (-0.5, -1), (-1.4, -1), (1e9, 127), (f32::NAN, 0)]
        {
            assert_eq!(i8::from_f32(value), expected);
        }
    }

    /// What a device computes with, beside what is computed here.
    #[test]
    fn scales_for_devices_are_those_of_the_host() {
        fn check<D: Level + PartialEq + std::fmt::Debug>(dtype: DType) {
            let scaling = Scaling::to(dtype).unwrap();
            for rgb in [[0, 0, 0], [255, 255, 255], [1, 128, 254], [255, 0, 7]] {
                let [r, g, b] = rgb.map(f32::from);
                let studio = scaling
                    .studio
                    .map(|([wr, wg, wb], offset)| D::from_f32(wr * r + wg * g + wb * b + offset));
                assert_eq!(studio, ycbcr::<u8, D>(rgb), "{dtype} of {rgb:?}");
            }
            assert_eq!(D::from_f32(scaling.level * 255.0), rescale::<u8, D>(255), "{dtype}");
        }
        check::<u8>(DType::U8);
        check::<i8>(DType::I8);
        check::<u16>(DType::U16);
        check::<i16>(DType::I16);
        check::<u32>(DType::U32);
        check::<i32>(DType::I32);
        check::<f32>(DType::F32);
        assert_eq!(Scaling::to(DType::F64), None);
        assert_eq!(f32::luma(Luma::Float, [0.25; 3]), weighted_f32([0.25; 3]));
    }

    #[test]
    fn the_ends_of_a_range_meet() {
        assert_eq!(rescale::<u8, u16>(255), 65535);
        assert_eq!(rescale::<u8, i8>(255), 127);
        assert_eq!(rescale::<u8, i32>(255), i32::MAX);
        assert_eq!(rescale::<u8, u32>(255), u32::MAX);
        assert_eq!(rescale::<f32, u8>(2.0), 255);
        assert_eq!(ycbcr::<u8, u8>([255; 3]), [235, 128, 128]);
        assert_eq!(ycbcr::<u8, u8>([0; 3]), [16, 128, 128]);
    }
}
