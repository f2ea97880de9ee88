//! Pixels of bytes around places in an image, for several places at once. It must not know where places come from or how the
//! pixels around them are weighted.

use super::places::{MAX_SIDE, PLACES};
use super::warp::Pixels;

/// Bytes that are read at once.
const READ: usize = 8;

/// For a channel: the pixels above left, above right, below left and below right of each place.
pub(super) type Four = [[f32; PLACES]; 4];

/// An image of pixels of `C` bytes, at most half of [`READ`].
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a, const C: usize> {
    values: &'a [u8],
    width: i32,
    height: i32,
}

impl<'a, const C: usize> Bytes<'a, C> {
    /// `None` for an image that is too large, or whose values are others than its size says.
    pub(super) fn new(image: Pixels<'a, u8>) -> Option<Self> {
        let [width, height, _] = image.size;
        let len = width.checked_mul(height)?.checked_mul(C)?;
        let fits = image.channels == C && 2 * C <= READ && image.values.len() == len;
        let (width, height) = (i32::try_from(width).ok()?, i32::try_from(height).ok()?);
        let is_small = width.max(height) <= MAX_SIDE && i32::try_from(len).is_ok();
        (fits && is_small).then_some(Self { values: image.values, width, height })
    }

    /// The pixels from columns `x` and rows `y` on. `None` when one of them lies outside, or in the last bytes of the image.
    #[inline(always)]
    pub(super) fn around(&self, x: &[i32; PLACES], y: &[i32; PLACES]) -> Option<[Four; C]> {
        let mut is_inside = true;
        let mut starts = [0i32; PLACES];
        for i in 0..PLACES {
            // A negative number is a large one without its sign.
            is_inside &= (x[i] as u32) < (self.width - 1) as u32 && (y[i] as u32) < (self.height - 1) as u32;
            starts[i] = y[i].wrapping_mul(self.width).wrapping_add(x[i]).wrapping_mul(C as i32);
        }
        if !is_inside {
            return None;
        }
        let pitch = self.width as usize * C;
        let (mut above, mut below) = ([0u64; PLACES], [0u64; PLACES]);
        for i in 0..PLACES {
            let start = starts[i] as usize;
            let both = self.values.get(start..start + pitch + READ)?;
            above[i] = u64::from_le_bytes(*both.first_chunk()?);
            below[i] = u64::from_le_bytes(*both.last_chunk()?);
        }
        let mut channels = [[[0.0; PLACES]; 4]; C];
        for (c, [above_left, above_right, below_left, below_right]) in channels.iter_mut().enumerate() {
            let byte = |pixels: u64, at: usize| ((pixels >> (8 * at)) as u32 & 0xFF) as i32 as f32;
            for i in 0..PLACES {
                above_left[i] = byte(above[i], c);
                above_right[i] = byte(above[i], C + c);
                below_left[i] = byte(below[i], c);
                below_right[i] = byte(below[i], C + c);
            }
        }
        Some(channels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_are_the_pixels_around() {
        let values: Vec<u8> = (0..7 * 5 * 3).collect();
        let image = Pixels { values: &values, size: [7, 5, 1], channels: 3 };
        let bytes = Bytes::<3>::new(image).unwrap();
        let (x, y) = (std::array::from_fn(|i| i as i32 % 6), std::array::from_fn(|i| i as i32 % 3));
        let found = bytes.around(&x, &y).unwrap();
        for i in 0..PLACES {
            for (c, channel) in found.iter().enumerate() {
                let at = |dx: i32, dy: i32| f32::from(values[((y[i] + dy) * 7 + x[i] + dx) as usize * 3 + c]);
                assert_eq!(channel.map(|corner| corner[i]), [at(0, 0), at(1, 0), at(0, 1), at(1, 1)]);
            }
        }
        for outside in [[-1, 0], [6, 0], [0, -1], [0, 4], [i32::MIN, i32::MAX]] {
            let (mut x, mut y) = (x, y);
            (x[3], y[3]) = (outside[0], outside[1]);
            assert!(bytes.around(&x, &y).is_none(), "{outside:?}");
        }
        assert!(Bytes::<4>::new(image).is_none());
    }
}
