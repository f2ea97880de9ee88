//! Brightness, contrast and saturation: mixtures of an image with black, with its mean gray, with its own gray.

use multiversion::multiversion;

use super::{Library, Rgb, tables};

/// Mixes `level` with `other`: `ratio` is the level's part, which may exceed 1.
#[inline(always)]
pub(super) fn blend(level: u8, other: f32, ratio: f32, library: Library) -> u8 {
    let level = f32::from(level);
    // torchvision's other part is a float64 first.
    let rest = (1.0 - f64::from(ratio)) as f32;
    // The libraries cut fractions, and so does `as`, which also keeps to 0..=255.
    match library {
        Library::Pillow if ratio == 0.0 => other as u8,
        Library::Pillow if ratio == 1.0 => level as u8,
        Library::Pillow => (other + ratio * (level - other)) as u8,
        Library::Torchvision => (ratio * level + rest * other) as u8,
        Library::TorchvisionV2 => other.mul_add(rest, level * ratio) as u8,
    }
}

/// The gray of a pixel.
#[inline(always)]
pub(super) fn gray([red, green, blue]: Rgb, library: Library) -> u8 {
    if library == Library::Pillow {
        let [red, green, blue] = [red, green, blue].map(u32::from);
        return ((red * 19_595 + green * 38_470 + blue * 7_471 + 0x8000) >> 16) as u8;
    }
    let [red, green, blue] = [red, green, blue].map(f32::from);
    let sum = match library {
        Library::TorchvisionV2 => blue.mul_add(0.114, green.mul_add(0.587, red * 0.2989)),
        _ => 0.2989 * red + 0.587 * green + 0.114 * blue,
    };
    sum as u8
}

/// Scales all levels by `factor`.
pub(super) fn brightness(image: &mut [Rgb], factor: f32, library: Library) {
    tables::map_all(image, |level| blend(level, 0.0, factor, library));
}

/// Scales the distances of all levels to the mean gray.
pub(super) fn contrast(image: &mut [Rgb], factor: f32, library: Library) {
    let (sum, count) = (sum_of_grays(image, library), image.len());
    let mean = match library {
        Library::Pillow => (sum as f64 / count as f64 + 0.5).floor() as f32,
        _ => sum as f32 / count as f32,
    };
    tables::map_all(image, |level| blend(level, mean, factor, library));
}

#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn sum_of_grays(image: &[Rgb], library: Library) -> u64 {
    image.iter().map(|&pixel| u64::from(gray(pixel, library))).sum()
}

/// Scales the distances of all levels to their pixel's gray.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
pub(super) fn saturation(image: &mut [Rgb], factor: f32, library: Library) {
    for pixel in image {
        let gray = f32::from(gray(*pixel, library));
        *pixel = pixel.map(|level| blend(level, gray, factor, library));
    }
}

/// Makes all channels gray.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
pub(super) fn grayscale(image: &mut [Rgb], library: Library) {
    for pixel in image {
        *pixel = [gray(*pixel, library); 3];
    }
}
