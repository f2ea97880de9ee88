//! Which dimensions of a sample a filter works along: those between frames and channels in front and channels at the
//! end.

use parking_lot::Mutex;

use crate::cpu::convolve::Scratch;
use crate::error::{Error, Result};
use crate::limits;
use crate::tensor::{DType, Layout};

/// Most dimensions that are filtered.
pub(in crate::ops) const MAX_AXES: usize = 3;

/// The dimensions of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct Spatial {
    /// The first that is filtered; those before are filtered one by one.
    pub(in crate::ops) start: usize,
    /// How many are filtered.
    pub(in crate::ops) axes: usize,
}

impl Spatial {
    /// Of samples with `ndim` dimensions; without a layout all of them are filtered.
    ///
    /// # Errors
    /// When none or more than [`MAX_AXES`] are left, or frames or channels lie between them.
    pub(in crate::ops) fn new(layout: Layout, ndim: usize) -> Result<Self> {
        let letters = layout.letters();
        let is_outer = |letter: &u8| matches!(letter, b'F' | b'C');
        let start = letters.iter().take_while(|letter| is_outer(letter)).count();
        let rest = letters.get(start..).unwrap_or_default();
        let has_channels = rest.last() == Some(&b'C');
        let axes = if letters.is_empty() { ndim } else { rest.len() - usize::from(has_channels) };
        let inside = rest.get(..axes).unwrap_or_default();
        if !(1..=MAX_AXES).contains(&axes)
            || inside.iter().any(is_outer)
            || (!letters.is_empty() && letters.len() != ndim)
        {
            return Err(Error::invalid(format!(
                "a sample of {ndim} dimensions with the layout `{layout}`, expected 1 to {MAX_AXES} dimensions between \
                 frames or channels in front and channels at the end"
            )));
        }
        Ok(Self { start, axes })
    }

    /// The dimensions that are filtered.
    pub(in crate::ops) fn range(self) -> std::ops::Range<usize> {
        self.start..self.start + self.axes
    }
}

/// Layouts of what operators on images in two dimensions take, the one of samples without a layout first.
pub(in crate::ops) const IMAGE_LAYOUTS: [&str; 5] = ["HW", "HWC", "FHWC", "CHW", "FCHW"];

/// A sample as images one behind the other, each of pixels with interleaved channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct Images {
    /// How many: frames, and channels that are not interleaved.
    pub(in crate::ops) planes: usize,
    pub(in crate::ops) rows: usize,
    pub(in crate::ops) columns: usize,
    pub(in crate::ops) channels: usize,
}

impl Images {
    /// Those of a sample of shape `shape`, whose layout is one of [`IMAGE_LAYOUTS`].
    pub(in crate::ops) fn new(layout: Layout, shape: &[usize]) -> Result<Self> {
        let start = layout.find(b'H').unwrap_or_default();
        let (outer, image) = shape.split_at(start.min(shape.len()));
        let [rows, columns, rest @ ..] = image else {
            return Err(Error::invalid(format!("a sample of {} dimensions, expected images", shape.len())));
        };
        let planes = outer.iter().product();
        Ok(Self { planes, rows: *rows, columns: *columns, channels: rest.iter().product() })
    }

    /// Elements of one image.
    pub(in crate::ops) fn elements(&self) -> usize {
        self.rows * self.columns * self.channels
    }

    /// Where each image is written to and read from, when those of a sample lie one behind the other from `to` and
    /// `from` on.
    pub(in crate::ops) fn places(
        &self,
        to: u64,
        from: u64,
        dtype: DType,
    ) -> impl Iterator<Item = (u64, u64)> {
        let bytes = (self.elements() * dtype.size()) as u64;
        (0..self.planes as u64).map(move |plane| (to + plane * bytes, from + plane * bytes))
    }

    /// Checks that one image, around which lie `more` columns and rows, is not too large.
    ///
    /// # Errors
    /// When it has more than [`limits::MAX_FILTERED_ELEMENTS`].
    pub(in crate::ops) fn check_with(&self, more: [usize; 2]) -> Result<()> {
        let pixels = (self.columns + more[0]).checked_mul(self.rows + more[1]);
        match pixels.and_then(|pixels| pixels.checked_mul(self.channels)) {
            Some(elements) if elements <= limits::MAX_FILTERED_ELEMENTS => Ok(()),
            _ => Err(Error::invalid(format!(
                "an image of {} x {} pixels with {more:?} around it, expected at most {} elements",
                self.columns,
                self.rows,
                limits::MAX_FILTERED_ELEMENTS
            ))),
        }
    }
}

/// Scratch memory for as many threads as filter at once; kept for the next batch.
#[derive(Default)]
pub(in crate::ops) struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    /// Runs `f` with a scratch of its own, and keeps it unless it became large.
    pub(in crate::ops) fn with<T>(&self, f: impl FnOnce(&mut Scratch) -> T) -> T {
        let mut scratch = self.0.lock().pop().unwrap_or_default();
        let result = f(&mut scratch);
        if scratch.bytes() <= limits::MAX_RETAINED_SCRATCH_BYTES {
            self.0.lock().push(scratch);
        }
        result
    }
}

/// The type of a filter's output for an input of type `from`: that type or float32.
///
/// # Errors
/// Unsupported when `wanted` is another one.
pub(in crate::ops) fn output_dtype(from: DType, wanted: Option<DType>) -> Result<DType> {
    match wanted {
        None => Ok(from),
        Some(to) if to == from || to == DType::F32 => Ok(to),
        Some(to) => Err(Error::unsupported(format!(
            "argument `dtype` is {to}, expected float32 or {from} as the input"
        ))),
    }
}

/// One value for each of `axes` dimensions: `values`, or its only one for all.
///
/// # Errors
/// When it has another number of values.
pub(in crate::ops) fn per_axis<T: Copy>(name: &str, values: &[T], axes: usize) -> Result<Vec<T>> {
    match values {
        [value] => Ok(vec![*value; axes]),
        _ if values.len() == axes => Ok(values.to_vec()),
        _ => Err(Error::invalid(format!(
            "argument `{name}` has {} values, expected 1 or {axes}",
            values.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_channels_are_set_aside() {
        let of = |layout: &str| Spatial::new(Layout::from_letters(layout.as_bytes()), layout.len());
        for (layout, start, axes) in
            [("HWC", 0, 2), ("CHW", 1, 2), ("FDHWC", 1, 3), ("CFHW", 2, 2), ("H", 0, 1)]
        {
            assert_eq!(of(layout).unwrap(), Spatial { start, axes });
        }
        assert_eq!(Spatial::new(Layout::NONE, 3).unwrap(), Spatial { start: 0, axes: 3 });
        for layout in ["HCW", "HFW", "C", "FC", "ABCD"] {
            assert!(of(layout).is_err(), "{layout}");
        }
        assert!(Spatial::new(Layout::NONE, 4).is_err() && Spatial::new(Layout::NONE, 0).is_err());
    }
}
