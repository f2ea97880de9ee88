//! Sharpness: a mixture with the image smoothed by 3 x 3 pixels, of which the middle one counts five times. Pixels at
//! the edge stay.

use multiversion::multiversion;

use super::color::blend;
use super::{CHANNELS, Library, Rgb};

const MIDDLE: usize = 4;
const SIDE: usize = 3;

/// Writes `src`, sharpened, to `dst`.
pub(super) fn sharpen(src: &[Rgb], dst: &mut [Rgb], width: usize, factor: f32, library: Library) {
    let height = src.len() / width;
    dst.copy_from_slice(src);
    if width >= SIDE && height >= SIDE {
        inner(src.as_flattened(), dst.as_flattened_mut(), width * CHANNELS, factor, library);
    }
    let edge = |level: u8| match library {
        Library::TorchvisionV2 => level,
        _ => blend(level, f32::from(level), factor, library),
    };
    // torchvision leaves images alone that have no inner pixels.
    if library == Library::Torchvision && (width < SIDE || height < SIDE) {
        return;
    }
    for (y, row) in dst.chunks_exact_mut(width).enumerate() {
        let is_inner = y > 0 && y + 1 < height && width >= SIDE;
        let step = if is_inner { width - 1 } else { 1 };
        row.iter_mut().step_by(step).for_each(|pixel| *pixel = pixel.map(edge));
    }
}

#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn inner(src: &[u8], dst: &mut [u8], stride: usize, factor: f32, library: Library) {
    let weights: [f32; SIDE * SIDE] =
        std::array::from_fn(|i| if i == MIDDLE { 5.0 / 13.0 } else { 1.0 / 13.0 });
    let rest = (1.0 - f64::from(factor)) as f32;
    let places = |i: usize| {
        let (top, left) = (i - stride - CHANNELS, CHANNELS);
        std::array::from_fn::<_, { SIDE * SIDE }, _>(|n| {
            f32::from(src[top + n / SIDE * stride + n % SIDE * left])
        })
    };
    for row in 1..src.len() / stride - 1 {
        for i in row * stride + CHANNELS..(row + 1) * stride - CHANNELS {
            let around = places(i);
            let smooth = match library {
                Library::Pillow => of_pillow(&around, &weights),
                _ => of_torch(&around, &weights),
            };
            let level = around[MIDDLE];
            dst[i] = match library {
                Library::TorchvisionV2 => (smooth - level).mul_add(rest, level) as u8,
                _ => blend(src[i], smooth, factor, library),
            };
        }
    }
}

/// Pillow adds the lower row first, and half a level before.
#[inline(always)]
fn of_pillow(around: &[f32; 9], weights: &[f32; 9]) -> f32 {
    let row = |at: usize, w: usize| {
        around[at] * weights[w] + around[at + 1] * weights[w + 1] + around[at + 2] * weights[w + 2]
    };
    (0.5 + row(6, 0) + row(3, 3) + row(0, 6)).floor().clamp(0.0, 255.0)
}

/// torch adds weight by weight, with one rounding for product and sum.
#[inline(always)]
fn of_torch(around: &[f32; 9], weights: &[f32; 9]) -> f32 {
    around
        .iter()
        .zip(weights)
        .fold(0.0f32, |sum, (&level, &weight)| level.mul_add(weight, sum))
        .round_ties_even()
}
