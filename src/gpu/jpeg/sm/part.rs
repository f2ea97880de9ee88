//! Which pixels of a picture are made, and which blocks of its components they need. It must not know devices.

use arrayvec::ArrayVec;

use super::coded::{BLOCK, Coded};

/// The largest reduction: to one pixel of a block.
pub const MAX_SHRINK: u32 = 3;

/// Pixels that a thread makes at once; they begin at a multiple of it.
pub(super) const RUN: usize = 8;

/// A window of a picture, or all of it reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The first column.
    pub left: usize,
    /// The first row.
    pub top: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// How often both sides are halved, rounded up, before. Only a whole picture is reduced.
    pub shrink: u32,
}

impl Part {
    /// All of a picture of `width` x `height` pixels, its sides halved `shrink` times.
    pub fn whole([width, height]: [usize; 2], shrink: u32) -> Self {
        let [width, height] = [width, height].map(|side| side.div_ceil(1 << shrink.min(MAX_SHRINK)));
        Self { left: 0, top: 0, width, height, shrink }
    }

    /// Whether `coded` has it.
    pub(super) fn is_of(&self, coded: &Coded<'_>) -> bool {
        let fits = |first: usize, length: usize, side: usize| {
            length > 0 && first.checked_add(length).is_some_and(|end| end <= side)
        };
        let window = fits(self.left, self.width, coded.width) && fits(self.top, self.height, coded.height);
        let whole = *self == Self::whole([coded.width, coded.height], self.shrink);
        whole && self.shrink <= MAX_SHRINK || window && self.shrink == 0
    }

    /// Samples of the components that an output with `channels` is made of.
    pub(super) fn samples(&self, coded: &Coded<'_>, channels: usize, smooth: bool) -> ArrayVec<Samples, 3> {
        let shown = coded.components.iter().take(channels);
        shown.map(|component| self.of_component(coded, [component.across, component.down], smooth)).collect()
    }

    /// As libjpeg-turbo has it: a component that is sampled more coarsely is reduced less, and chroma is smooth where
    /// the picture has half of its columns, rows or both.
    fn of_component(&self, coded: &Coded<'_>, own: [usize; 2], smooth: bool) -> Samples {
        let (most, least) = (coded.factors(), BLOCK >> self.shrink.min(MAX_SHRINK));
        let mut side = least;
        while side < BLOCK && (0..2).all(|axis| (most[axis] * least).is_multiple_of(own[axis] * side * 2)) {
            side *= 2;
        }
        let axes = [0, 1];
        let factors = axes.map(|axis| most[axis] * least / (own[axis] * side));
        let stored = [coded.width, coded.height];
        let size = axes.map(|axis| (stored[axis] * own[axis] * side).div_ceil(most[axis] * BLOCK));
        // There are no neighbours of rows of two samples, nor where a block is a pixel.
        let smooth = smooth
            && least > 1
            && match factors {
                [1, 2] => true,
                [2, 1 | 2] => size[0] > 2,
                _ => false,
            };
        let runs = [self.left / RUN * RUN, (self.left + self.width).next_multiple_of(RUN)];
        let wanted = [runs, [self.top, self.top + self.height]];
        let [columns, rows] = axes.map(|axis| {
            let ([first, end], neighbour) = (wanted[axis], usize::from(smooth));
            let first = (first / factors[axis]).saturating_sub(neighbour) / side;
            let end = (end.div_ceil(factors[axis]) + neighbour).min(size[axis]);
            [first, end.div_ceil(side)]
        });
        Samples {
            side,
            factors,
            smooth,
            size,
            first: [columns[0], rows[0]],
            blocks: [columns[1].saturating_sub(columns[0]), rows[1].saturating_sub(rows[0])],
        }
    }
}

/// What is needed of a component, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Samples {
    /// Samples that a block becomes, across and down.
    pub(super) side: usize,
    /// By how much it is coarser than pixels, across and down.
    pub(super) factors: [usize; 2],
    /// Whether neighbours count.
    pub(super) smooth: bool,
    /// Samples of the whole component, across and down.
    pub(super) size: [usize; 2],
    /// The first block, across and down.
    pub(super) first: [usize; 2],
    /// How many there are.
    pub(super) blocks: [usize; 2],
}

impl Samples {
    /// Bytes from a row to the next.
    pub(super) fn stride(&self) -> usize {
        (self.blocks[0] * self.side).next_multiple_of(RUN)
    }

    /// Bytes of all rows.
    pub(super) fn bytes(&self) -> usize {
        self.stride() * self.blocks[1] * self.side
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::jpeg::sm::{Colour, Component};

    fn coded(size: [usize; 2], factors: [[usize; 2]; 3]) -> Coded<'static> {
        let component = |[across, down]: [usize; 2]| Component { across, down, table: 0, pair: 0 };
        Coded {
            width: size[0],
            height: size[1],
            colour: Colour::YCbCr,
            components: factors.map(component).into(),
            quantisation: ArrayVec::new(),
            pairs: ArrayVec::new(),
            restart_interval: None,
            data: &[],
            scans: Vec::new(),
        }
    }

    const QUARTER: [[usize; 2]; 3] = [[2, 2], [1, 1], [1, 1]];
    const HALF: [[usize; 2]; 3] = [[2, 1], [1, 1], [1, 1]];

    #[test]
    fn chroma_is_reduced_less_than_luma() {
        let sides = |factors, shrink| {
            let coded = coded([101, 75], factors);
            let part = Part::whole([101, 75], shrink);
            part.samples(&coded, 3, true).iter().map(|s| (s.side, s.factors, s.smooth)).collect::<Vec<_>>()
        };
        assert_eq!(sides(QUARTER, 0)[..2], [(8, [1, 1], false), (8, [2, 2], true)]);
        assert_eq!(sides(QUARTER, 1)[..2], [(4, [1, 1], false), (8, [1, 1], false)]);
        assert_eq!(sides(QUARTER, 3)[..2], [(1, [1, 1], false), (2, [1, 1], false)]);
        assert_eq!(sides(HALF, 2)[..2], [(2, [1, 1], false), (2, [2, 1], true)]);
        assert_eq!(sides(HALF, 3)[..2], [(1, [1, 1], false), (1, [2, 1], false)]);
        assert_eq!(sides([[4, 1], [1, 1], [1, 1]], 0)[1], (8, [4, 1], false));
        assert_eq!(Part::whole([101, 75], 2), Part { left: 0, top: 0, width: 26, height: 19, shrink: 2 });
    }

    #[test]
    fn a_window_needs_its_blocks_and_the_neighbours_of_smooth_chroma() {
        let coded = coded([640, 480], QUARTER);
        let part = Part { left: 32, top: 16, width: 16, height: 16, shrink: 0 };
        let blocks =
            |smooth| part.samples(&coded, 3, smooth).iter().map(|s| (s.first, s.blocks)).collect::<Vec<_>>();
        assert_eq!(blocks(false), [([4, 2], [2, 2]), ([2, 1], [1, 1]), ([2, 1], [1, 1])]);
        assert_eq!(blocks(true)[1], ([1, 0], [3, 3]));
        // Nothing is beyond the picture.
        let part = Part { left: 630, top: 470, width: 10, height: 10, shrink: 0 };
        let samples = part.samples(&coded, 1, true);
        assert_eq!((samples.len(), samples[0].first, samples[0].blocks), (1, [78, 58], [2, 2]));
        assert_eq!(part.samples(&coded, 3, true)[1].blocks, [2, 1]);
    }

    #[test]
    fn parts_are_inside_of_their_picture() {
        let coded = coded([100, 50], QUARTER);
        let part = |left, top, width, height, shrink| Part { left, top, width, height, shrink }.is_of(&coded);
        assert!(part(0, 0, 100, 50, 0) && part(99, 49, 1, 1, 0) && part(0, 0, 25, 13, 2));
        assert!(!part(0, 0, 101, 50, 0) && !part(1, 0, 100, 50, 0) && !part(0, 0, 0, 50, 0));
        assert!(!part(usize::MAX, 0, 2, 2, 0) && !part(0, 0, 25, 12, 2) && !part(0, 0, 6, 3, 4));
    }
}
