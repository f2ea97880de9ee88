//! Heights and widths that operators of this family take as numbers, and give.

use crate::error::{Error, Result};
use crate::limits;
use crate::operator::args::numbers;
use crate::tensor::{DType, Layout, Shape, ValueType, View, ViewMut};

/// The height and the width that a list begins with, such as that of an image's extents.
///
/// # Errors
/// When they are no whole numbers from 1 to [`limits::MAX_IMAGE_SIDE`].
pub(super) fn height_and_width(list: &View<'_>) -> Result<[u64; 2]> {
    if list.shape.len() != 1 || !(2..=limits::MAX_NDIM).contains(&list.shape[0]) {
        return Err(Error::invalid(format!(
            "sizes of shape {}, expected a list that begins with a height and a width",
            list.shape
        )));
    }
    let side = |value: f64| {
        if value.fract() == 0.0 && (1.0..=limits::MAX_IMAGE_SIDE as f64).contains(&value) {
            return Ok(value as u64);
        }
        Err(Error::invalid(format!(
            "a side of {value} pixels, expected a whole number from 1 to {}",
            limits::MAX_IMAGE_SIDE
        )))
    };
    match numbers(list)?[..] {
        [height, width, ..] => Ok([side(height)?, side(width)?]),
        _ => Err(Error::internal("a list has fewer elements than its shape says")),
    }
}

/// An argument that is a number of pixels, patches or frames.
///
/// # Errors
/// When it is not from 1 to `most`.
pub(super) fn count(name: &str, value: i64, most: usize) -> Result<u64> {
    u64::try_from(value)
        .ok()
        .filter(|value| (1..=most as u64).contains(value))
        .ok_or_else(|| Error::invalid(format!("argument `{name}` is {value}, expected 1 to {most}")))
}

/// What is known of a list of `length` sizes before there is a batch.
pub(super) fn list_type(length: usize) -> ValueType {
    ValueType { dtype: Some(DType::I64), dims: Some(vec![Some(length)]), layout: Some(Layout::NONE) }
}

/// Its shape.
pub(super) fn list_shape(length: usize) -> Shape {
    Shape::from([length])
}

/// Writes a list of sizes.
///
/// # Errors
/// Internal, when the output is no such list.
pub(super) fn write(output: &mut ViewMut<'_>, sizes: &[u64]) -> Result<()> {
    for (to, from) in output.as_slice_mut::<i64>()?.iter_mut().zip(sizes) {
        *to = *from as i64;
    }
    Ok(())
}
