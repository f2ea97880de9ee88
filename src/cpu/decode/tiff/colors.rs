//! What samples of a TIFF mean, as libtiff converts them: palettes, inks, chroma, CIE L*a*b*. It must not know how they
//! were stored.

use super::super::pillow;
use super::lab::Lab;
use super::layout::{Colors, Layout, tag};
use super::ycbcr::YCbCr;
use crate::error::{Error, Result};

/// All samples of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pixels {
    U8(Vec<u8>),
    U16(Vec<u16>),
    F32(Vec<f32>),
}

/// Makes gray or RGB of samples, `kept` of each pixel, `as_pillow` where that is asked for; what follows them stays.
/// Returns the samples of a pixel then.
///
/// # Errors
/// Colours that there are not for such samples.
pub(super) fn convert(layout: &Layout<'_>, as_pillow: bool, pixels: &mut Pixels) -> Result<usize> {
    let kept = layout.kept();
    if let (Pixels::U8(samples), 1..8) = (&mut *pixels, layout.bits)
        && layout.colors != Colors::Palette
    {
        let full = (1_u16 << layout.bits) - 1;
        samples.iter_mut().for_each(|sample| *sample = (u16::from(*sample) * 255 / full) as u8);
    }
    match layout.colors {
        Colors::Gray | Colors::Rgb => {}
        Colors::WhiteIsZero => match pixels {
            Pixels::U8(samples) => invert(samples, kept, |sample| 255 - sample),
            Pixels::U16(samples) => {
                let white = u16::MAX << (16 - layout.bits.min(16));
                invert(samples, kept, |sample| white - sample);
            }
            Pixels::F32(samples) => invert(samples, kept, |sample| 1.0 - sample),
        },
        Colors::Palette => *pixels = Pixels::U16(of_palette(layout, pixels)?),
        Colors::Inks => match pixels {
            Pixels::U8(samples) if as_pillow => each(samples, kept, pillow::rgb_of_inks),
            Pixels::U8(samples) => each(samples, kept, rgb_of_inks),
            Pixels::U16(samples) => each(samples, kept, rgb_of_wide_inks),
            Pixels::F32(_) => return Err(unknown(layout)),
        },
        Colors::YCbCr => {
            let by = YCbCr::of(layout)?;
            match pixels {
                Pixels::U8(samples) if layout.bits == 8 => each(samples, kept, |pixel| by.rgb(pixel)),
                _ => return Err(unknown(layout)),
            }
        }
        Colors::CieLab | Colors::IccLab => *pixels = Pixels::U8(of_lab(layout, pixels)?),
    }
    Ok(match layout.colors {
        Colors::Palette | Colors::CieLab | Colors::IccLab => 3,
        _ => kept,
    })
}

fn unknown(layout: &Layout<'_>) -> Error {
    Error::unsupported(format!("samples of {} bits for colours of {:?}", layout.bits, layout.colors))
}

fn invert<T: Copy>(samples: &mut [T], kept: usize, inverted: impl Fn(T) -> T) {
    samples.chunks_exact_mut(kept).for_each(|pixel| pixel[0] = inverted(pixel[0]));
}

/// Converts the first `N` samples of each pixel.
fn each<T: Copy, const N: usize>(samples: &mut [T], kept: usize, convert: impl Fn([T; N]) -> [T; N]) {
    for pixel in samples.chunks_exact_mut(kept) {
        if let Some(pixel) = pixel.first_chunk_mut() {
            *pixel = convert(*pixel);
        }
    }
}

/// RGB and full alpha of inks where 255 is all of it.
fn rgb_of_inks([c, m, y, k]: [u8; 4]) -> [u8; 4] {
    let light = |ink: u8| (u16::from(255 - ink) * u16::from(255 - k) / 255) as u8;
    [light(c), light(m), light(y), 255]
}

/// As [`rgb_of_inks`] where 65,535 is all of it.
fn rgb_of_wide_inks([c, m, y, k]: [u16; 4]) -> [u16; 4] {
    let light = |ink: u16| (u32::from(u16::MAX - ink) * u32::from(u16::MAX - k) / u32::from(u16::MAX)) as u16;
    [light(c), light(m), light(y), u16::MAX]
}

/// The colours that samples are places of.
fn of_palette(layout: &Layout<'_>, pixels: &Pixels) -> Result<Vec<u16>> {
    let bits = layout.bits;
    if !matches!(bits, 1 | 2 | 4 | 8 | 16) {
        return Err(Error::unsupported(format!(
            "a palette for samples of {bits} bits, expected 1, 2, 4, 8 or 16"
        )));
    }
    let count = 1 << bits;
    let values = layout.directory.values(tag::PALETTE)?;
    let all: Vec<u16> = values.map_or_else(Vec::new, |values| {
        (0..values.len().min(3 * count)).map_while(|i| values.number(i)).map(|level| level as u16).collect()
    });
    if all.len() != 3 * count {
        let text = format!("damaged: a palette of {} numbers, expected {}", all.len(), 3 * count);
        return Err(Error::invalid(text));
    }
    let color = |place: usize| [all[place], all[count + place], all[2 * count + place]];
    match pixels {
        Pixels::U8(places) => Ok(places.iter().flat_map(|&place| color(place.into())).collect()),
        Pixels::U16(places) => Ok(places.iter().flat_map(|&place| color(place.into())).collect()),
        Pixels::F32(_) => Err(unknown(layout)),
    }
}

/// RGB of CIE L*a*b*.
fn of_lab(layout: &Layout<'_>, pixels: &Pixels) -> Result<Vec<u8>> {
    let white = layout.directory.values(tag::WHITE_POINT)?;
    let lab = Lab::new(white.and_then(|white| Some([white.real(0)?, white.real(1)?])));
    // ICC's has the zero of a* and b* in the middle, and of 16 bits white below the top.
    let is_icc = layout.colors == Colors::IccLab;
    let narrow = |pixel: &[u8; 3]| {
        let [_, a, b] = pixel.map(|value| match is_icc {
            true => f32::from(value) - 128.0,
            false => f32::from(value.cast_signed()),
        });
        lab.rgb([f32::from(pixel[0]) * 100.0 / 255.0, a, b])
    };
    let wide = |pixel: &[u16; 3]| {
        let [_, a, b] = pixel.map(|value| match is_icc {
            true => f32::from(value) - 32_768.0,
            false => f32::from(value.cast_signed()),
        });
        let white = if is_icc { 65_280.0 } else { 65_535.0 };
        lab.rgb([f32::from(pixel[0]) * 100.0 / white, a / 256.0, b / 256.0])
    };
    let kept = layout.kept();
    match pixels {
        Pixels::U8(samples) if layout.bits == 8 => {
            Ok(samples.chunks_exact(kept).filter_map(<[u8]>::first_chunk).flat_map(narrow).collect())
        }
        Pixels::U16(samples) if layout.bits == 16 => {
            Ok(samples.chunks_exact(kept).filter_map(<[u16]>::first_chunk).flat_map(wide).collect())
        }
        _ => Err(unknown(layout)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_take_light_away() {
        assert_eq!(rgb_of_inks([0, 255, 51, 0]), [255, 0, 204, 255]);
        assert_eq!(rgb_of_wide_inks([0, 65_535, 13_107, 0]), [65_535, 0, 52_428, 65_535]);
        assert_eq!(rgb_of_wide_inks([0, 0, 0, 65_535]), [0, 0, 0, 65_535]);
    }

    #[test]
    fn only_gray_is_inverted() {
        let mut samples = vec![10, 20, 30, 40];
        invert(&mut samples, 2, |sample: u8| 255 - sample);
        assert_eq!(samples, [245, 20, 225, 40]);
    }
}
