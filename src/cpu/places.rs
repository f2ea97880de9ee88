//! Places in images as whole numbers, for several places at once. It must not know images.

/// Places that are looked at together: so many that steps stay loops, which become vector code.
pub(super) const PLACES: usize = 16;

/// Largest side of an image: places on it are whole numbers that [`column_or_row`] takes.
pub(super) const MAX_SIDE: i32 = 1 << 22;

/// 1.5 * 2^23: adding it to a number of less than 2^22 moves its ones to the lowest bit.
const TO_LOWEST_BIT: f32 = 12_582_912.0;

/// A whole number as an integer; one that is outside of every image, or no number, as -1. Unlike `as` it becomes vector
/// code.
#[inline(always)]
pub(super) fn column_or_row(place: f32) -> i32 {
    let place = if place >= 0.0 && place < MAX_SIDE as f32 { place } else { -1.0 };
    (place + TO_LOWEST_BIT).to_bits().wrapping_sub(TO_LOWEST_BIT.to_bits()) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_become_integers() {
        for (place, expected) in
            [(0.0, 0), (1.0, 1), (4_194_303.0, 4_194_303), (-1.0, -1), (-7.0, -1), (1e9, -1)]
        {
            assert_eq!(column_or_row(place), expected);
        }
        assert_eq!([f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(column_or_row), [-1; 3]);
    }
}
