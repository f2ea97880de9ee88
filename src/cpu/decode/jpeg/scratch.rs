//! Memory of our own decoder that goes from image to image. It must not know what is done with it.

use super::bits::Data;
use super::huffman::Cache;
use super::planes::Line;
use super::rows::Lines;
use super::transform::Group;

/// Memory that goes from image to image.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) data: Data,
    pub(super) cache: Cache,
    pub(super) groups: Vec<Group>,
    /// Of progressive files: which coefficients of each block are not zero.
    pub(super) masks: Vec<u64>,
    pub(super) planes: Vec<Vec<Line>>,
    pub(super) lines: Lines,
}

impl Scratch {
    /// Fills what holds samples, so that a test sees what nobody wrote. Coefficients are zero between images.
    pub(super) fn fill(&mut self, pattern: u8) {
        for line in self.planes.iter_mut().flatten() {
            bytemuck::bytes_of_mut(line).fill(pattern);
        }
        self.lines.fill(pattern);
    }

    /// Bytes that it holds, about.
    pub(super) fn size(&self) -> usize {
        let groups = self.groups.capacity() * size_of::<Group>();
        self.data.capacity()
            + groups
            + 8 * self.masks.capacity()
            + size_of::<Line>() * self.planes.iter().map(Vec::capacity).sum::<usize>()
    }
}
