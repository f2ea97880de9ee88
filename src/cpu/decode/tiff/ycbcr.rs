//! YCbCr to RGB as libtiff computes it: by the file's weights of luma and its black and white, in integers. It must not
//! know how chroma is stored.

use super::layout::{Layout, tag};
use crate::error::{Error, Result};

/// Bits behind the point.
const BITS: u32 = 16;
const HALF: i32 = 1 << (BITS - 1);

/// What each value of luma and chroma adds to a colour.
pub(super) struct YCbCr {
    luma: [i32; 256],
    red: [i32; 256],
    blue: [i32; 256],
    /// With bits behind the point, of Cb and Cr.
    green: [[i32; 256]; 2],
}

impl YCbCr {
    /// As the file says.
    ///
    /// # Errors
    /// Weights that nothing can be divided by.
    pub(super) fn of(layout: &Layout<'_>) -> Result<Self> {
        let real = |tag: u16, i: usize, usual: f32| {
            let found = layout.directory.values(tag)?.and_then(|values| values.real(i));
            Ok::<_, Error>(found.filter(|real| real.is_finite()).unwrap_or(usual))
        };
        let mut luma = [0.299, 0.587, 0.114];
        for (i, place) in luma.iter_mut().enumerate() {
            *place = real(tag::LUMA, i, *place)?;
        }
        let mut range = [0.0, 255.0, 128.0, 255.0, 128.0, 255.0];
        for (i, place) in range.iter_mut().enumerate() {
            *place = real(tag::BLACK_AND_WHITE, i, *place)?;
        }
        if luma[1] == 0.0 {
            return Err(Error::invalid("damaged: luma without green"));
        }
        Ok(Self::new(luma, range))
    }

    /// For weights of luma, and black and white of each of Y, Cb and Cr.
    fn new([red, green, blue]: [f32; 3], range: [f32; 6]) -> Self {
        let fixed = |factor: f32| (factor.clamp(0.0, 2.0) * (1 << BITS) as f32 + 0.5) as i32;
        let of_red = fixed(2.0 - 2.0 * red);
        let of_blue = fixed(2.0 - 2.0 * blue);
        let red_in_green = -fixed(red * (2.0 - 2.0 * red) / green);
        let blue_in_green = -fixed(blue * (2.0 - 2.0 * blue) / green);
        // A value as if black and white were at the ends.
        let level = |value: i32, black: f32, white: f32, full: f32, least: f32, most: f32| {
            let length = if white == black { 1.0 } else { white - black };
            // Black is a whole number here, as libtiff has it.
            ((value - black as i32) as f32 * full / length).clamp(least, most) as i32
        };
        let chroma = |i: usize, black: f32, white: f32| {
            level(i as i32 - 128, black - 128.0, white - 128.0, 127.0, -4_096.0, 4_096.0)
        };
        let [cb, cr] = [[range[2], range[3]], [range[4], range[5]]]
            .map(|[black, white]| std::array::from_fn::<i32, 256, _>(|i| chroma(i, black, white)));
        Self {
            luma: std::array::from_fn(|i| level(i as i32, range[0], range[1], 255.0, -4_096.0, 8_160.0)),
            red: cr.map(|cr| (of_red * cr + HALF) >> BITS),
            blue: cb.map(|cb| (of_blue * cb + HALF) >> BITS),
            green: [cb.map(|cb| blue_in_green * cb + HALF), cr.map(|cr| red_in_green * cr)],
        }
    }

    /// Red, green and blue of a pixel.
    #[inline]
    pub(super) fn rgb(&self, [y, cb, cr]: [u8; 3]) -> [u8; 3] {
        let [y, cb, cr] = [y, cb, cr].map(usize::from);
        let luma = self.luma[y];
        let green = (self.green[0][cb] + self.green[1][cr]) >> BITS;
        [luma + self.red[cr], luma + green, luma + self.blue[cb]].map(|level| level.clamp(0, 255) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: [f32; 3] = [0.299, 0.587, 0.114];

    #[test]
    fn gray_stays_gray_and_ends_are_kept() {
        let by = YCbCr::new(USUAL, [0.0, 255.0, 128.0, 255.0, 128.0, 255.0]);
        assert!((0..=255).all(|y| by.rgb([y, 128, 128]) == [y; 3]));
        assert_eq!(by.rgb([76, 85, 255]), [254, 0, 0]);
        // Of studio range.
        let by = YCbCr::new(USUAL, [16.0, 235.0, 128.0, 240.0, 128.0, 240.0]);
        assert_eq!([by.rgb([16, 128, 128]), by.rgb([235, 128, 128])], [[0; 3], [255; 3]]);
        // Nothing is divided by 0.
        assert_eq!(YCbCr::new(USUAL, [0.0; 6]).rgb([255; 3]), [255; 3]);
    }
}
