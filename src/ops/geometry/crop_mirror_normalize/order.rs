//! How `CropMirrorNormalize` reorders dimensions.

use crate::cpu::normalize::Channels;
use crate::error::{Error, Result};
use crate::operator::shared::window::image_layout;
use crate::tensor::Layout;

/// How the dimensions change places.
#[derive(Default)]
pub(in crate::ops) struct Order {
    pub(super) input_layout: Layout,
    pub(super) layout: Layout,
    /// For each dimension of the output, which of the input it is.
    pub(super) axes: Vec<usize>,
    /// The input's dimension C.
    pub(super) channel: usize,
    /// Where the channels of an image are before and after, when the other dimensions stay where they are.
    pub(super) images: Option<[Channels; 2]>,
}

impl Order {
    /// From `input` (or the default layout of `ndim` dimensions) to `output` (or none: the same).
    pub(super) fn new(input: Layout, output: Layout, ndim: usize) -> Result<Self> {
        let input = image_layout(input, ndim);
        let output = if output.is_none() { input } else { output };
        let axes: Vec<usize> = output.letters().iter().filter_map(|&letter| input.find(letter)).collect();
        let is_permutation = axes.len() == ndim && (0..ndim).all(|axis| axes.contains(&axis));
        if !is_permutation || output.letters().len() != ndim || input.letters().len() != ndim {
            return Err(Error::invalid(format!(
                "cannot reorder {ndim} dimensions of layout `{input}` to `{output}`"
            )));
        }
        let channel = input
            .find(b'C')
            .ok_or_else(|| Error::invalid(format!("layout `{input}` has no dimension `C` to normalize")))?;
        let images = match ndim.checked_sub(3) {
            Some(frames) if axes.iter().take(frames).enumerate().all(|(i, &axis)| i == axis) => {
                channels(&input.letters()[frames..]).zip(channels(&output.letters()[frames..]))
            }
            _ => None,
        };
        Ok(Self { input_layout: input, layout: output, axes, channel, images: images.map(<[_; 2]>::from) })
    }

    /// Layout of the output.
    pub(in crate::ops) fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the output holds one plane after the other.
    pub(in crate::ops) fn is_planar(&self) -> bool {
        matches!(self.images, Some([_, Channels::Planar]))
    }

    /// One entry per dimension of the input, in the output's order.
    pub(super) fn of<T: Clone>(&self, entries: &[T]) -> Vec<T> {
        self.axes.iter().filter_map(|&axis| entries.get(axis).cloned()).collect()
    }
}

fn channels(letters: &[u8]) -> Option<Channels> {
    match letters {
        b"HWC" => Some(Channels::Interleaved),
        b"CHW" => Some(Channels::Planar),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_permutations_are_orders() {
        let layout = |letters| Layout::from_letters(letters);
        assert_eq!(Order::new(layout(b"FHWC"), layout(b"CFHW"), 4).unwrap().axes, [3, 0, 1, 2]);
        assert!(Order::new(layout(b"FHWC"), layout(b"FCHW"), 4).unwrap().images.is_some());
        for (from, to, ndim) in
            [("FHWC", "CHW", 4), ("HWC", "CHH", 3), ("HWC", "CHW", 4), ("HW", "WH", 2), ("", "", 6)]
        {
            assert!(Order::new(layout(from.as_bytes()), layout(to.as_bytes()), ndim).is_err(), "{from} {to}");
        }
    }
}
