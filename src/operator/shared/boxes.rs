//! How arguments describe bounding boxes: which of a box's numbers is what, and in which order sizes stand. It must not
//! know what is done with boxes.

use crate::error::{Error, Result};
use crate::operator::{Arg, SampleInputs};
use crate::tensor::View;

/// The order of the numbers of a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoxLayout {
    /// For each number its dimension, and whether it belongs to the end.
    places: Vec<(usize, bool)>,
    /// Whether ends are given; else sizes.
    has_ends: bool,
}

/// Letters of starts, ends and sizes of the dimensions x, y and z.
const LETTERS: [[u8; 3]; 3] = [*b"xyz", *b"XYZ", *b"WHD"];

impl BoxLayout {
    /// The layout of boxes in `ndim` dimensions that `text` names, such as `xyXY` or `xyWH`.
    ///
    /// # Errors
    /// When it is not an order of starts and ends, or of starts and sizes.
    pub(crate) fn parse(text: &str, ndim: usize) -> Result<Self> {
        let has_ends = text.bytes().any(|letter| LETTERS[1].contains(&letter));
        let second = LETTERS[if has_ends { 1 } else { 2 }];
        let place = |letter: u8| {
            let find = |letters: &[u8; 3]| letters[..ndim].iter().position(|&known| known == letter);
            find(&LETTERS[0]).map(|d| (d, false)).or_else(|| find(&second).map(|d| (d, true)))
        };
        let places: Vec<(usize, bool)> = text.bytes().filter_map(place).collect();
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if text.len() == 2 * ndim && sorted.len() == 2 * ndim {
            return Ok(Self { places, has_ends });
        }
        let expected = if ndim == 2 { ["xyXY", "xyWH"] } else { ["xyzXYZ", "xyzWHD"] };
        Err(Error::invalid(format!(
            "argument `bbox_layout` is `{text}`, expected the letters of `{}` or `{}`",
            expected[0], expected[1]
        )))
    }

    /// Start and end of a box in `N` dimensions.
    pub(crate) fn read<const N: usize>(&self, numbers: &[f32]) -> [[f32; N]; 2] {
        let mut corners = [[0.0; N]; 2];
        for (&(d, is_second), &number) in self.places.iter().zip(numbers) {
            corners[usize::from(is_second)][d] = number;
        }
        if !self.has_ends {
            corners[1] = std::array::from_fn(|d| corners[0][d] + corners[1][d]);
        }
        corners
    }

    /// The numbers of the box from `low` to `high`.
    pub(crate) fn write<const N: usize>(&self, [low, high]: [[f32; N]; 2], numbers: &mut [f32]) {
        for (&(d, is_second), number) in self.places.iter().zip(numbers) {
            *number = match (is_second, self.has_ends) {
                (false, _) => low[d],
                (true, true) => high[d],
                (true, false) => high[d] - low[d],
            };
        }
    }
}

/// The sizes of `N` dimensions that `arg` gives in the order of `layout`, such as `HW`: over x, y and z.
///
/// # Errors
/// When there are too few, or one is not a positive integer of 31 bits.
pub(crate) fn sizes<const N: usize>(arg: &Arg, sample: &SampleInputs<'_>, layout: &str) -> Result<[i32; N]> {
    let given = arg.ints(sample)?;
    let mut sizes = [0; N];
    for (d, size) in sizes.iter_mut().enumerate() {
        let at = layout.bytes().position(|letter| letter == LETTERS[2][d]);
        let found = at.and_then(|at| given.get(at)).and_then(|&size| i32::try_from(size).ok());
        *size = found.filter(|&size| size > 0).ok_or_else(|| {
            Error::invalid(format!("sizes {given:?} in the order `{layout}`, expected {N} positive ones"))
        })?;
    }
    Ok(sizes)
}

/// Checks that `labels` are as many as there are boxes.
///
/// # Errors
/// When they are not.
pub(crate) fn check_labels(labels: &View<'_>, boxes: usize) -> Result<()> {
    match labels.shape[..] {
        [count] | [count, 1] if count == boxes => Ok(()),
        _ => Err(Error::invalid(format!("labels of shape {} for {boxes} boxes", labels.shape))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_where_the_layout_says() {
        let layout = BoxLayout::parse("HyWx", 2).unwrap();
        let corners = layout.read::<2>(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(corners, [[2.0, 1.0], [5.0, 5.0]]);
        let mut numbers = [0.0; 4];
        layout.write(corners, &mut numbers);
        assert_eq!(numbers, [4.0, 1.0, 3.0, 2.0]);
        for wrong in ["xyXW", "xyX", "xyXX", "xyzXYZ", ""] {
            assert!(BoxLayout::parse(wrong, 2).is_err(), "{wrong}");
        }
    }
}
