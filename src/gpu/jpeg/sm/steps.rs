//! Pictures that are made in two steps, coefficients to samples and samples to pixels: rows of tables, and
//! which block of threads does what. It must not know files.

use arrayvec::ArrayVec;
use bytemuck::Zeroable;

use super::coded::Colour;
use super::constants::{MAX_COMPONENTS, PIXELS_BLOCKS, PIXELS_THREADS, STRIP};
use super::part::{Part, RUN, Samples};
use super::rows::runs;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;

/// Strips of pixels that a block of threads makes of samples: a warp has one.
const STRIPS: u32 = PIXELS_THREADS / 32;

/// A picture that is made in two steps.
pub(super) struct Steps {
    pub(super) part: Part,
    /// Of each component that is shown.
    pub(super) samples: ArrayVec<Samples, 3>,
    /// Set when the second step is left to who reads the samples: what the components are.
    pub(super) left_as: Option<Colour>,
}

impl Steps {
    /// `None`: one step does, because every pixel is made of the samples that it falls into.
    pub(super) fn of(part: &Part, samples: ArrayVec<Samples, 3>) -> Option<Self> {
        let two = part.shrink > 0 || samples.iter().any(|needed| needed.smooth);
        two.then_some(Self { part: *part, samples, left_as: None })
    }

    /// Only the first step.
    pub(super) fn of_planes(part: &Part, samples: ArrayVec<Samples, 3>, colour: Colour) -> Self {
        Self { part: *part, samples, left_as: Some(colour) }
    }

    /// Bytes of all samples, each component's beginning at a multiple of `alignment`.
    pub(super) fn bytes(&self, alignment: usize) -> usize {
        self.samples.iter().map(|needed| needed.bytes().next_multiple_of(alignment)).sum()
    }

    /// Groups of blocks that become samples, and of strips of pixels that are made of them.
    pub(super) fn groups(&self) -> usize {
        let blocks: usize =
            self.samples.iter().map(|needed| blocks(needed).div_ceil(PIXELS_BLOCKS as usize)).sum();
        blocks + self.strips().div_ceil(STRIPS as usize)
    }

    /// Strips of pixels.
    fn strips(&self) -> usize {
        if self.left_as.is_some() {
            return 0;
        }
        (self.part.left % RUN + self.part.width).div_ceil(STRIP) * self.part.height
    }

    /// Strips that a block of threads makes, `each` groups one after the other: the first, and how many.
    pub(super) fn strip_runs(&self, each: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        runs(self.strips() as u32, STRIPS * each.max(1))
    }

    /// The same for the blocks that become samples, of each component.
    pub(super) fn block_runs(
        &self,
        each: u32,
    ) -> impl Iterator<Item = impl Iterator<Item = (u32, u32)> + use<>> + '_ {
        self.samples.iter().map(move |needed| runs(blocks(needed) as u32, PIXELS_BLOCKS * each.max(1)))
    }
}

/// Blocks of a component that are needed.
fn blocks(needed: &Samples) -> usize {
    needed.blocks[0] * needed.blocks[1]
}

device_struct! {
    /// Samples of a component: of the blocks that are needed.
    pub(super) struct Plane as Plane {
        samples: u64 = "uint8_t *",
        /// From a row to the next, a multiple of 8 bytes.
        stride: u32,
        /// Which sample of the component is the first here.
        left: u32,
        top: u32,
        /// How many the component has.
        width: u32,
        height: u32,
        /// Blocks in a row of them.
        across: u32,
        /// log2 of the samples that a block has across.
        side: u8,
        /// log2 of by how much they are coarser than pixels.
        factor_x: u8,
        factor_y: u8,
        /// Whether they are upsampled smoothly.
        smooth: u8,
        unused: u32,
    }
}

impl Plane {
    /// Its samples are at `address`.
    pub(super) fn new(needed: &Samples, address: u64) -> Result<Self> {
        let small = |value: usize| {
            u32::try_from(value).map_err(|_| Error::internal(format!("{value} samples in a JPEG")))
        };
        let log = |value: usize| value.trailing_zeros() as u8;
        Ok(Self {
            samples: address,
            stride: small(needed.stride())?,
            left: small(needed.first[0] * needed.side)?,
            top: small(needed.first[1] * needed.side)?,
            width: small(needed.size[0])?,
            height: small(needed.size[1])?,
            across: small(needed.blocks[0])?,
            side: log(needed.side),
            factor_x: log(needed.factors[0]),
            factor_y: log(needed.factors[1]),
            smooth: u8::from(needed.smooth),
            unused: 0,
        })
    }
}

device_struct! {
    /// A picture of which the samples of its components are there in place of its pixels. Who reads them makes the
    /// pixels that the decoder would have made.
    pub struct Planes as Planes {
        /// 0 gray, 1 YCbCr, 2 RGB.
        color: u32,
        blue_first: u32,
        /// Of gray, three times the same.
        samples: [u64; MAX_COMPONENTS] = "const uint8_t *",
        /// From a row to the next: a multiple of 8 bytes. No component has 2^32 samples.
        stride: [u32; MAX_COMPONENTS],
        /// log2 of by how much a component is coarser than the picture.
        factor_x: [u8; 4],
        factor_y: [u8; 4],
        unused_too: u32,
    }
}

impl Planes {
    /// Of all components.
    pub(super) fn new(colour: Colour, blue_first: bool, planes: &[Plane]) -> Self {
        let (color, blue_first) = (colour.number(), blue_first.into());
        let mut all = Self { color, blue_first, ..Self::zeroed() };
        // Of gray, three times the same.
        for (i, plane) in planes.iter().cycle().enumerate().take(MAX_COMPONENTS) {
            (all.samples[i], all.stride[i]) = (plane.samples, plane.stride);
            (all.factor_x[i], all.factor_y[i]) = (plane.factor_x, plane.factor_y);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_and_strip_is_of_one_run() {
        let needed = |columns, rows, smooth| Samples {
            side: 8,
            factors: [1, 1],
            smooth,
            size: [100, 100],
            first: [3, 4],
            blocks: [columns, rows],
        };
        let part = Part { left: 13, top: 7, width: 252, height: 9, shrink: 0 };
        assert!(Steps::of(&part, [needed(9, 9, false)].into_iter().collect()).is_none());
        assert!(
            Steps::of(&Part { shrink: 1, ..part }, [needed(9, 9, false)].into_iter().collect()).is_some()
        );
        let steps =
            Steps::of(&part, [needed(9, 9, false), needed(40, 1, true)].into_iter().collect()).unwrap();
        assert_eq!(steps.groups(), 3 + 2 + 3);
        assert_eq!(steps.strip_runs(1).collect::<Vec<_>>(), [(0, 8), (8, 8), (16, 2)]);
        let blocks: Vec<Vec<_>> = steps.block_runs(2).map(Iterator::collect).collect();
        assert_eq!(blocks, [vec![(0, 64), (64, 17)], vec![(0, 40)]]);
        assert_eq!(steps.bytes(256), 5_376 + 40 * 8 * 8);
        let plane = Plane::new(&steps.samples[1], 512).unwrap();
        assert_eq!((plane.samples, plane.stride, plane.left, plane.top), (512, 320, 24, 32));
        assert_eq!((plane.side, plane.smooth, plane.across), (3, 1, 40));
    }
}
