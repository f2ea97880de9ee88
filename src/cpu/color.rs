//! Arithmetic on interleaved pixels: one factor for all channels, a matrix over three, conversion between colour spaces
//! of 8 bits, histogram equalization. It must not know which operator wants it. Products and sums are rounded one by
//! one, in the order written here, which is DALI's on a CPU.

use multiversion::multiversion;

use super::convert::ConvertSat;

/// Three channels as a linear function of three.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Mix {
    /// Weights of the channels read, a row for each channel written.
    pub matrix: [[f32; 3]; 3],
    /// Added to every channel.
    pub offset: f32,
}

/// Writes `src * factor + addend`, rounded and saturated.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub fn scale_add<S: ConvertSat<f32>, T>(src: &[S], dst: &mut [T], factor: f32, addend: f32)
where
    f32: ConvertSat<T>,
{
    for (to, from) in dst.iter_mut().zip(src) {
        *to = (from.convert_sat() * factor + addend).convert_sat();
    }
}

/// Writes every pixel of three channels mixed by `mix`, rounded and saturated.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub fn mix_channels<S: ConvertSat<f32>, T>(src: &[S], dst: &mut [T], mix: &Mix)
where
    f32: ConvertSat<T>,
{
    for (to, from) in dst.as_chunks_mut::<3>().0.iter_mut().zip(src.as_chunks::<3>().0) {
        let [a, b, c] = [from[0].convert_sat(), from[1].convert_sat(), from[2].convert_sat()];
        for (to, row) in to.iter_mut().zip(&mix.matrix) {
            *to = (row[0] * a + row[1] * b + row[2] * c + mix.offset).convert_sat();
        }
    }
}

/// A colour space of images with 8 bits a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Luma alone.
    Gray,
    /// BT.601 in studio range.
    YCbCr,
}

impl Space {
    /// Channels of a pixel.
    pub fn channels(self) -> usize {
        if self == Space::Gray { 1 } else { 3 }
    }
}

/// Luma of full range over that of studio range.
const STRETCH: f32 = 255.0 / 219.0;
/// The other way round.
const SQUEEZE: f32 = 219.0 / 255.0;

/// BT.601 luma with weights of 15 bits.
#[inline(always)]
fn luma(r: u8, g: u8, b: u8) -> u8 {
    ((9798 * u32::from(r) + 19_235 * u32::from(g) + 3735 * u32::from(b) + (1 << 14)) >> 15) as u8
}

// Pixels are passed by reference: a value of three bytes is taken apart and put together again on its way.

#[inline(always)]
fn to_ycbcr([y, cb, cr]: &mut [u8; 3], r: u8, g: u8, b: u8) {
    let [r, g, b] = [f32::from(r), f32::from(g), f32::from(b)];
    *y = (0.256_788_23 * r + 0.504_129_4 * g + 0.097_905_88 * b + 16.0).convert_sat();
    *cb = (-0.148_222_9 * r - 0.290_992_8 * g + 0.439_215_7 * b + 128.0).convert_sat();
    *cr = (0.439_215_7 * r - 0.367_788_3 * g - 0.071_427_37 * b + 128.0).convert_sat();
}

#[inline(always)]
fn from_ycbcr(r: &mut u8, g: &mut u8, b: &mut u8, [y, cb, cr]: &[u8; 3]) {
    let y = (f32::from(*y) - 16.0) * STRETCH;
    let (cb, cr) = (f32::from(*cb) - 128.0, f32::from(*cr) - 128.0);
    *r = (y + 1.596_026_8 * cr).convert_sat();
    *g = (y - 0.391_762_3 * cb - 0.812_967_6 * cr).convert_sat();
    *b = (y + 2.017_232_2 * cb).convert_sat();
}

/// The gray of studio-range luma.
#[inline(always)]
fn stretched(y: u8) -> u8 {
    ((f32::from(y) - 16.0) * STRETCH).convert_sat()
}

/// Studio-range luma of a gray.
#[inline(always)]
fn squeezed(y: u8) -> u8 {
    (f32::from(y) * SQUEEZE + 16.0).convert_sat()
}

/// Converts pixels of `from` in `src` to pixels of `to` in `dst`.
#[multiversion(targets("x86_64+avx+avx2"))]
pub fn convert_space(src: &[u8], dst: &mut [u8], from: Space, to: Space) {
    use Space::{Bgr, Gray, Rgb, YCbCr};
    match (from, to) {
        (Rgb, Bgr) | (Bgr, Rgb) => pixels(src, dst, |[a, b, c], to| *to = [*c, *b, *a]),
        (Rgb, Gray) => pixels(src, dst, |[r, g, b], [to]| *to = luma(*r, *g, *b)),
        (Bgr, Gray) => pixels(src, dst, |[b, g, r], [to]| *to = luma(*r, *g, *b)),
        (Rgb, YCbCr) => pixels(src, dst, |[r, g, b], to| to_ycbcr(to, *r, *g, *b)),
        (Bgr, YCbCr) => pixels(src, dst, |[b, g, r], to| to_ycbcr(to, *r, *g, *b)),
        (YCbCr, Rgb) => pixels(src, dst, |from, [r, g, b]| from_ycbcr(r, g, b, from)),
        (YCbCr, Bgr) => pixels(src, dst, |from, [b, g, r]| from_ycbcr(r, g, b, from)),
        (YCbCr, Gray) => pixels(src, dst, |[y, _, _], [to]| *to = stretched(*y)),
        (Gray, Rgb | Bgr) => pixels(src, dst, |[y], to: &mut [u8; 3]| *to = [*y; 3]),
        (Gray, YCbCr) => pixels(src, dst, |[y], to| *to = [squeezed(*y), 128, 128]),
        (Rgb, Rgb) | (Bgr, Bgr) | (Gray, Gray) | (YCbCr, YCbCr) => dst.copy_from_slice(src),
    }
}

#[inline(always)]
fn pixels<const N: usize, const M: usize>(src: &[u8], dst: &mut [u8], f: impl Fn(&[u8; N], &mut [u8; M])) {
    for (to, from) in dst.as_chunks_mut::<M>().0.iter_mut().zip(src.as_chunks::<N>().0) {
        f(from, to);
    }
}

/// Spreads the values of every channel of `src`, interleaved pixels of `channels` channels, over the whole range, so
/// that they are about equally frequent.
pub fn equalize(src: &[u8], dst: &mut [u8], channels: usize) {
    match channels {
        0 => {}
        1 => equalize_channels::<1>(src, dst),
        3 => equalize_channels::<3>(src, dst),
        // However many there are, one after the other.
        n => (0..n).for_each(|channel| {
            let values = || src.iter().skip(channel).step_by(n);
            let mut histogram = [0; 256];
            values().for_each(|&value| histogram[usize::from(value)] += 1);
            let table = equalizing(&histogram);
            let targets = dst.iter_mut().skip(channel).step_by(n);
            targets.zip(values()).for_each(|(to, &from)| *to = table[usize::from(from)]);
        }),
    }
}

fn equalize_channels<const N: usize>(src: &[u8], dst: &mut [u8]) {
    // Two histograms each: neighbours are often equal, and to count one has to wait for the other.
    let mut counts = [[[0u64; 256]; N]; 2];
    let pixels = src.as_chunks::<N>().0;
    for (i, pixel) in pixels.iter().enumerate() {
        for (histogram, &value) in counts[i % 2].iter_mut().zip(pixel) {
            histogram[usize::from(value)] += 1;
        }
    }
    let [even, odd] = &counts;
    let tables: [_; N] =
        std::array::from_fn(|c| equalizing(&std::array::from_fn(|value| even[c][value] + odd[c][value])));
    for (to, from) in dst.as_chunks_mut::<N>().0.iter_mut().zip(pixels) {
        for ((to, &from), table) in to.iter_mut().zip(from).zip(&tables) {
            *to = table[usize::from(from)];
        }
    }
}

/// The value that each value becomes: its rank above the lowest one, scaled to 255.
fn equalizing(histogram: &[u64; 256]) -> [u8; 256] {
    let mut table = [0; 256];
    let total: u64 = histogram.iter().sum();
    let Some(lowest) = histogram.iter().position(|&count| count > 0) else { return table };
    if histogram[lowest] == total {
        // One value only: it stays.
        table[lowest] = lowest as u8;
        return table;
    }
    let scale = 255.0 / (total - histogram[lowest]) as f32;
    let mut above = 0;
    for (to, &count) in table.iter_mut().zip(histogram).skip(lowest + 1) {
        above += count;
        *to = (above as f32 * scale).round_ties_even() as u8;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studio_range_ends_where_it_should() {
        let convert = |pixel: [u8; 3], from, to| {
            let mut converted = [0; 3];
            convert_space(&pixel, &mut converted, from, to);
            converted
        };
        assert_eq!(convert([255; 3], Space::Rgb, Space::YCbCr), [235, 128, 128]);
        assert_eq!(convert([235, 128, 128], Space::YCbCr, Space::Rgb), [255; 3]);
        assert_eq!(convert([16, 128, 128], Space::YCbCr, Space::Bgr), [0; 3]);
        assert_eq!(luma(255, 255, 255), 255);
    }

    #[test]
    fn a_plain_image_stays_plain() {
        let mut out = [0; 6];
        equalize(&[7, 9, 7, 9, 7, 9], &mut out, 2);
        assert_eq!(out, [7, 9, 7, 9, 7, 9]);
        equalize(&[3, 3, 3, 3, 200, 5], &mut out, 1);
        assert_eq!(out, [0, 0, 0, 0, 255, 128]);
    }
}
