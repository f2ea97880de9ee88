//! Colours with alpha, as Pillow resizes them: multiplied by their alpha before, divided by it afterwards. It must not
//! know sizes.

/// Whether Pillow takes pixels of so many elements for colours (or gray) with alpha.
pub(super) fn has_alpha(channels: usize) -> bool {
    matches!(channels, 2 | 4)
}

/// Multiplies the colours of `src` by their alpha, the last element of each pixel.
pub(super) fn multiply(src: &[u8], channels: usize, dst: &mut [u8]) {
    match channels {
        2 => multiply_pixels::<2>(src, dst),
        _ => multiply_pixels::<4>(src, dst),
    }
}

fn multiply_pixels<const C: usize>(src: &[u8], dst: &mut [u8]) {
    for (from, to) in src.as_chunks::<C>().0.iter().zip(dst.as_chunks_mut::<C>().0) {
        let alpha = u32::from(from[C - 1]);
        *to = from.map(|value| {
            // The product divided by 255, rounded.
            let product = u32::from(value) * alpha + 128;
            ((product + (product >> 8)) >> 8) as u8
        });
        to[C - 1] = from[C - 1];
    }
}

/// Divides the colours of `pixels` by their alpha.
pub(super) fn divide(pixels: &mut [u8], channels: usize) {
    match channels {
        2 => divide_pixels::<2>(pixels),
        _ => divide_pixels::<4>(pixels),
    }
}

fn divide_pixels<const C: usize>(pixels: &mut [u8]) {
    for pixel in pixels.as_chunks_mut::<C>().0 {
        let alpha = pixel[C - 1];
        if alpha == 0 || alpha == 255 {
            continue;
        }
        for value in &mut pixel[..C - 1] {
            *value = (255 * u32::from(*value) / u32::from(alpha)).min(255) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaque_colours_stay_and_others_come_back_nearly() {
        let mut made = [0; 8];
        multiply(&[10, 20, 30, 255, 200, 100, 0, 128], 4, &mut made);
        assert_eq!(made, [10, 20, 30, 255, 100, 50, 0, 128]);
        divide(&mut made, 4);
        assert_eq!(made, [10, 20, 30, 255, 199, 99, 0, 128]);
        let mut gray = [0; 2];
        multiply(&[255, 0], 2, &mut gray);
        divide(&mut gray, 2);
        assert_eq!(gray, [0, 0]);
    }
}
