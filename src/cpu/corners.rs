//! Bytes between the pixels of an image, for many places at once. It must not know where places come from.

use super::places::{MAX_SIDE, column_or_row};
use super::warp::Pixels;

/// Places that are looked at together: so many that steps stay loops, which become vector code.
pub(super) const AT_ONCE: usize = 64;

/// Bytes that are read at once: two pixels.
const READ: usize = 8;

/// 2^23: a number to which it is added has no bits left for a fraction, so the sum is rounded, halves to even.
const ROUND: f32 = 8_388_608.0;

/// An image of pixels of `C` bytes, at most half of [`READ`].
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a, const C: usize> {
    values: &'a [u8],
    width: u32,
    height: u32,
    /// Bytes from one row to the next.
    pitch: u32,
    /// Pixels that begin before it have enough bytes behind them to read two, and two below.
    end: u32,
}

impl<'a, const C: usize> Bytes<'a, C> {
    /// `None` for an image that is too large or too small, or whose values are others than its size says.
    pub(super) fn new(image: Pixels<'a, u8>) -> Option<Self> {
        let [width, height, _] = image.size;
        let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
        let pitch = width.checked_mul(C as u32)?;
        let len = pitch.checked_mul(height)?;
        let end = (len + 1).checked_sub(pitch + READ as u32)?;
        let fits = image.channels == C && 2 * C <= READ && image.values.len() == len as usize;
        let is_small = width.max(height) <= MAX_SIDE as u32 && i32::try_from(len).is_ok();
        (fits && is_small).then_some(Self { values: image.values, width, height, pitch, end })
    }

    /// Writes the pixels at places: a mean of the four around each, along x first, halves to even. False if some places
    /// are not inside: their pixels have no meaning then.
    #[inline(always)]
    pub(super) fn between(&self, x: &[f32], y: &[f32], pixels: &mut [[u8; C]]) -> bool {
        let (mut starts, mut px, mut py) = ([0u32; AT_ONCE], [0.0; AT_ONCE], [0.0; AT_ONCE]);
        let (mut inside, mut outside) = (0, 0);
        for i in 0..x.len().min(y.len()).min(AT_ONCE) {
            let (left, top) = (x[i].floor(), y[i].floor());
            (px[i], py[i]) = (x[i] - left, y[i] - top);
            let start = self.start(left, top);
            let is_inside = start < self.end;
            starts[i] = if is_inside { start } else { 0 };
            inside |= u32::from(is_inside);
            outside |= u32::from(!is_inside);
        }
        if inside == 0 {
            return false;
        }
        let (mut above, mut below) = ([0u64; AT_ONCE], [0u64; AT_ONCE]);
        let pitch = self.pitch as usize;
        for i in 0..AT_ONCE {
            let start = starts[i] as usize;
            let Some(both) = self.values.get(start..start + pitch + READ) else { return false };
            let (Some(pair), Some(other)) = (both.first_chunk(), both.last_chunk()) else { return false };
            (above[i], below[i]) = (u64::from_le_bytes(*pair), u64::from_le_bytes(*other));
        }
        let mut corners = [[0u32; AT_ONCE]; 4];
        for i in 0..AT_ONCE {
            (corners[0][i], corners[1][i]) = (above[i] as u32, (above[i] >> (8 * C)) as u32);
            (corners[2][i], corners[3][i]) = (below[i] as u32, (below[i] >> (8 * C)) as u32);
        }
        let mut mixed = [0u32; AT_ONCE];
        for i in 0..AT_ONCE {
            for c in 0..C {
                let [s00, s01, s10, s11] =
                    corners.each_ref().map(|corner| (corner[i] >> (8 * c) & 0xFF) as i32 as f32);
                let (above, below) = (s00 + px[i] * (s01 - s00), s10 + px[i] * (s11 - s10));
                mixed[i] |= whole(above + py[i] * (below - above)) << (8 * c);
            }
        }
        for (to, pixel) in pixels.iter_mut().zip(mixed) {
            to.copy_from_slice(&pixel.to_le_bytes()[..C]);
        }
        outside == 0
    }

    /// Where the pixel with this column and row begins; far behind the image if there is no pixel to its right or
    /// below.
    #[inline(always)]
    fn start(&self, left: f32, top: f32) -> u32 {
        // A negative number is a large one without its sign.
        let (column, row) = (column_or_row(left) as u32, column_or_row(top) as u32);
        let start = row.wrapping_mul(self.pitch).wrapping_add(column.wrapping_mul(C as u32));
        if (column < self.width - 1) & (row < self.height - 1) { start } else { u32::MAX }
    }

    /// Whether [`Self::between`] knows what is at a place.
    #[inline(always)]
    pub(super) fn is_inside(&self, x: f32, y: f32) -> bool {
        self.start(x.floor(), y.floor()) < self.end
    }
}

/// A number from 0 to 255, rounded.
#[inline(always)]
fn whole(value: f32) -> u32 {
    (value + ROUND).to_bits().wrapping_sub(ROUND.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_between_four_pixels_are_their_mean() {
        let values: Vec<u8> = (0..7 * 5 * 3).map(|i| (i * i % 251) as u8).collect();
        let image = Bytes::<3>::new(Pixels { values: &values, size: [7, 5, 1], channels: 3 }).unwrap();
        // One more than whole vectors.
        let (x, y): (Vec<f32>, Vec<f32>) = (0..33).map(|i| (i as f32 * 0.18, 3.0 - i as f32 * 0.09)).unzip();
        let mut pixels = [[0; 3]; 33];
        assert!(image.between(&x, &y, &mut pixels));
        for (i, pixel) in pixels.iter().enumerate() {
            let at = |dx: f32, dy: f32, c: usize| {
                f32::from(values[((y[i].floor() + dy) * 7.0 + x[i].floor() + dx) as usize * 3 + c])
            };
            for (c, &value) in pixel.iter().enumerate() {
                let (px, py) = (x[i].fract(), y[i].fract());
                let [above, below] =
                    [0.0, 1.0].map(|dy| at(0.0, dy, c) + px * (at(1.0, dy, c) - at(0.0, dy, c)));
                assert_eq!(value, (above + py * (below - above)).round_ties_even() as u8);
            }
        }
        for outside in [[-0.1, 0.0], [6.0, 0.0], [0.0, -1.0], [0.0, 4.0], [5.5, 3.0], [f32::NAN, 1e9]] {
            let (mut x, mut y) = (x.clone(), y.clone());
            (x[3], y[3]) = (outside[0], outside[1]);
            assert!(!image.between(&x, &y, &mut pixels), "{outside:?}");
            assert!(!image.is_inside(x[3], y[3]) && image.is_inside(x[4], y[4]));
        }
        assert!(Bytes::<4>::new(Pixels { values: &values, size: [7, 5, 1], channels: 3 }).is_none());
    }
}
