//! Images of one channel of words or of floats as Pillow resizes them (modes `I;16` and `F`): sums of float64, in the
//! order of the pixels. It must not know where weights come from.

use super::axis::Axis;
use super::libraries::Arithmetic;
use super::rows::Rows;
use crate::deadline::Watch;
use crate::error::Result;

/// An element of such an image.
pub(super) trait Wide: Copy + Default + Into<f64> {
    /// Of a sum.
    fn of(sum: f64, arithmetic: Arithmetic) -> Self;
}

impl Wide for f32 {
    fn of(sum: f64, _: Arithmetic) -> Self {
        sum as f32
    }
}

impl Wide for u16 {
    /// Halves are rounded away from zero. Before version 13 Pillow bounds the two bytes of a sum one by one: 65,540
    /// becomes 65,284.
    fn of(sum: f64, arithmetic: Arithmetic) -> Self {
        let sum = (if sum >= 0.0 { sum + 0.5 } else { sum - 0.5 }) as i32;
        if arithmetic == Arithmetic::Pillow13 {
            return sum.clamp(0, i32::from(Self::MAX)) as Self;
        }
        let byte = |value: i32| value.clamp(0, 255) as u8;
        Self::from_le_bytes([byte(sum % 256), byte(sum >> 8)])
    }
}

/// The weights of both passes, and which is the first.
pub(super) struct Passes {
    pub(super) rows: Axis<f64>,
    pub(super) columns: Axis<f64>,
    pub(super) rows_first: bool,
}

/// Makes `dst` of the pixels of the crop.
///
/// # Errors
/// When nobody waits any more.
pub(super) fn sums<T: Wide>(
    src: &Rows<'_, T>,
    passes: Passes,
    arithmetic: Arithmetic,
    dst: &mut [T],
    between: &mut Vec<T>,
    watch: &Watch<'_>,
) -> Result<()> {
    let Passes { rows, columns, rows_first } = passes;
    if rows_first {
        let (first, end) = columns.span();
        let src = src.part((0, src.count), (first, end));
        between.resize(rows.len() * src.len, T::default());
        down(&src, &rows, between, arithmetic, watch)?;
        across(&Rows::dense(between, src.len), &columns.from(first), dst, arithmetic, watch)
    } else {
        let (first, end) = rows.span();
        between.resize((end - first) * columns.len(), T::default());
        let src = src.part((first, end), (0, src.len));
        across(&src, &columns, between, arithmetic, watch)?;
        down(&Rows::dense(between, columns.len()), &rows.from(first), dst, arithmetic, watch)
    }
}

/// Makes of each row of `src` a row of `dst`.
fn across<T: Wide>(
    src: &Rows<'_, T>,
    axis: &Axis<f64>,
    dst: &mut [T],
    arithmetic: Arithmetic,
    watch: &Watch<'_>,
) -> Result<()> {
    for (y, dst) in dst.chunks_exact_mut(axis.len()).enumerate() {
        let row = src.row(y);
        let mut products = 0;
        for (x, to) in dst.iter_mut().enumerate() {
            let (first, weights) = axis.at(x);
            let sum = row[first..]
                .iter()
                .zip(weights)
                .fold(0.0, |sum, (&pixel, weight)| sum + pixel.into() * weight);
            *to = T::of(sum, arithmetic);
            products += weights.len();
        }
        watch.charge(products)?;
    }
    Ok(())
}

/// Makes each row of `dst`, as long as those of `src`, of the rows that `axis` names.
fn down<T: Wide>(
    src: &Rows<'_, T>,
    axis: &Axis<f64>,
    dst: &mut [T],
    arithmetic: Arithmetic,
    watch: &Watch<'_>,
) -> Result<()> {
    let mut sums = vec![0.0; src.len];
    for (y, dst) in dst.chunks_exact_mut(src.len).enumerate() {
        let (first, weights) = axis.at(y);
        sums.fill(0.0);
        for (k, weight) in weights.iter().enumerate() {
            for (sum, &pixel) in sums.iter_mut().zip(src.row(first + k)) {
                *sum += pixel.into() * weight;
            }
        }
        for (to, &sum) in dst.iter_mut().zip(&sums) {
            *to = T::of(sum, arithmetic);
        }
        watch.charge(dst.len() * weights.len())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_beyond_a_word_are_bounded_as_the_version_does() {
        for (sum, before, since) in [(65_540.0, 65_284, 65_535), (-3.0, 0, 0), (2.5, 3, 3), (300.0, 300, 300)]
        {
            assert_eq!(u16::of(sum, Arithmetic::Pillow), before, "{sum}");
            assert_eq!(u16::of(sum, Arithmetic::Pillow13), since, "{sum}");
        }
    }
}
