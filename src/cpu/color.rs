//! Arithmetic on interleaved pixels: one factor for all channels, a matrix over three, conversion between colour spaces of
//! 8 bits, histogram equalization. It must not know which operator wants it. Products and sums are rounded one by one, in the
//! order written here, which is DALI's on a CPU.

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
#[multiversion(targets("x86_64+avx+avx2+f16c", "x86_64+sse4.1"))]
pub fn scale_add<S: ConvertSat<f32>, T>(src: &[S], dst: &mut [T], factor: f32, addend: f32)
where
    f32: ConvertSat<T>,
{
    for (to, from) in dst.iter_mut().zip(src) {
        *to = (from.convert_sat() * factor + addend).convert_sat();
    }
}

/// Writes every pixel of three channels mixed by `mix`, rounded and saturated.
#[multiversion(targets("x86_64+avx+avx2+f16c", "x86_64+sse4.1"))]
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
fn luma([r, g, b]: [u8; 3]) -> u8 {
    ((9798 * u32::from(r) + 19_235 * u32::from(g) + 3735 * u32::from(b) + (1 << 14)) >> 15) as u8
}

fn to_ycbcr([r, g, b]: [u8; 3]) -> [u8; 3] {
    let [r, g, b] = [r, g, b].map(f32::from);
    [
        0.256_788_23 * r + 0.504_129_4 * g + 0.097_905_88 * b + 16.0,
        -0.148_222_9 * r - 0.290_992_8 * g + 0.439_215_7 * b + 128.0,
        0.439_215_7 * r - 0.367_788_3 * g - 0.071_427_37 * b + 128.0,
    ]
    .map(ConvertSat::convert_sat)
}

fn from_ycbcr([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let y = (f32::from(y) - 16.0) * STRETCH;
    let [cb, cr] = [cb, cr].map(|chroma| f32::from(chroma) - 128.0);
    [y + 1.596_026_8 * cr, y - 0.391_762_3 * cb - 0.812_967_6 * cr, y + 2.017_232_2 * cb]
        .map(ConvertSat::convert_sat)
}

/// The gray of studio-range luma.
fn stretched([y, _, _]: [u8; 3]) -> [u8; 1] {
    [((f32::from(y) - 16.0) * STRETCH).convert_sat()]
}

/// Studio-range luma of a gray, without a colour.
fn squeezed([y]: [u8; 1]) -> [u8; 3] {
    [(f32::from(y) * SQUEEZE + 16.0).convert_sat(), 128, 128]
}

fn reversed([a, b, c]: [u8; 3]) -> [u8; 3] {
    [c, b, a]
}

/// Converts pixels of `from` in `src` to pixels of `to` in `dst`.
pub fn convert_space(src: &[u8], dst: &mut [u8], from: Space, to: Space) {
    use Space::{Bgr, Gray, Rgb, YCbCr};
    match (from, to) {
        (Rgb, Bgr) | (Bgr, Rgb) => pixels(src, dst, reversed),
        (Rgb, Gray) => pixels(src, dst, |p| [luma(p)]),
        (Bgr, Gray) => pixels(src, dst, |p| [luma(reversed(p))]),
        (Rgb, YCbCr) => pixels(src, dst, to_ycbcr),
        (Bgr, YCbCr) => pixels(src, dst, |p| to_ycbcr(reversed(p))),
        (YCbCr, Rgb) => pixels(src, dst, from_ycbcr),
        (YCbCr, Bgr) => pixels(src, dst, |p| reversed(from_ycbcr(p))),
        (YCbCr, Gray) => pixels(src, dst, stretched),
        (Gray, Rgb | Bgr) => pixels(src, dst, |[y]: [u8; 1]| [y; 3]),
        (Gray, YCbCr) => pixels(src, dst, squeezed),
        (Rgb, Rgb) | (Bgr, Bgr) | (Gray, Gray) | (YCbCr, YCbCr) => dst.copy_from_slice(src),
    }
}

fn pixels<const N: usize, const M: usize>(src: &[u8], dst: &mut [u8], f: impl Fn([u8; N]) -> [u8; M]) {
    for (to, from) in dst.as_chunks_mut::<M>().0.iter_mut().zip(src.as_chunks::<N>().0) {
        *to = f(*from);
    }
}

/// Spreads the values of every channel of `src`, interleaved pixels of `channels` channels, over the whole range, so that
/// they are about equally frequent.
pub fn equalize(src: &[u8], dst: &mut [u8], channels: usize) {
    for channel in 0..channels {
        let mut histogram = [0u64; 256];
        for &value in src.iter().skip(channel).step_by(channels) {
            histogram[usize::from(value)] += 1;
        }
        let table = equalizing(&histogram);
        let values = src.iter().skip(channel).step_by(channels);
        for (to, &from) in dst.iter_mut().skip(channel).step_by(channels).zip(values) {
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
        assert_eq!(to_ycbcr([255; 3]), [235, 128, 128]);
        assert_eq!(from_ycbcr([235, 128, 128]), [255; 3]);
        assert_eq!(from_ycbcr([16, 128, 128]), [0; 3]);
        assert_eq!(luma([255; 3]), 255);
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
