//! Where images are in a sample: its rows, columns and channels, by its layout.

use crate::error::{Error, Result};
use crate::operator::shared::layouts;
use crate::tensor::{BatchDesc, Layout, Shape};

/// Layouts of samples that have none.
pub(in crate::ops) const LAYOUTS: [&str; 2] = ["HWC", "FHWC"];

/// The layout of what is made of a batch: as declared, or the one that its samples are taken to have.
pub(in crate::ops) fn layout_of(desc: &BatchDesc) -> Layout {
    layouts::or_first(desc.layout, desc.shapes.first().map_or(0, |shape| shape.len()), &LAYOUTS)
}

/// Where an image's rows and columns are in a sample: `planes` images of `size` pixels with `channels` elements each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::ops) struct Geometry {
    /// Dimension of the rows; the columns follow it.
    pub(in crate::ops) axis: usize,
    /// Images in the sample.
    pub(in crate::ops) planes: usize,
    /// Rows and columns.
    pub(in crate::ops) size: [usize; 2],
    /// Elements of a pixel.
    pub(in crate::ops) channels: usize,
}

impl Geometry {
    /// Finds rows and columns of a sample.
    ///
    /// # Errors
    /// See [`rows_axis`].
    pub(in crate::ops) fn new(shape: &Shape, layout: Layout) -> Result<Self> {
        let axis = rows_axis(layout, shape.len())?;
        Ok(Self {
            axis,
            planes: shape[..axis].iter().product(),
            size: [shape[axis], shape[axis + 1]],
            channels: shape[axis + 2..].iter().product(),
        })
    }
}

/// The dimension of the rows in a layout where the columns follow them: HWC, CHW, FHWC, FCHW, CFHW.
///
/// # Errors
/// Invalid for a layout without rows and columns, unsupported for volumes.
pub(in crate::ops) fn rows_axis(layout: Layout, ndim: usize) -> Result<usize> {
    let layout = layouts::or_first(layout, ndim, &LAYOUTS);
    if layout.find(b'D').is_some() {
        return Err(Error::unsupported(format!("volumes (layout `{layout}`), expected images")));
    }
    match (layout.find(b'H'), layout.find(b'W')) {
        (Some(h), Some(w)) if w == h + 1 && w < ndim => Ok(h),
        _ => Err(Error::invalid(format!(
            "layout `{layout}` with {ndim} dimensions is not an image: expected HWC, CHW or frames of them"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_and_other_tensors_are_refused() {
        assert_eq!(rows_axis(Layout::NONE, 3).unwrap(), 0);
        assert_eq!(rows_axis(Layout::from_letters(b"FCHW"), 4).unwrap(), 2);
        assert!(rows_axis(Layout::from_letters(b"DHWC"), 4).is_err());
        assert_eq!(rows_axis(Layout::NONE, 4).unwrap(), 1);
        assert!(rows_axis(Layout::NONE, 5).is_err());
        assert!(rows_axis(Layout::from_letters(b"HWC"), 1).is_err());
    }
}
