//! Samples between the transform and the colours: of each component the last two rows of MCUs. It must not know pixels.

use bytemuck::{Pod, Zeroable};

use super::color::STEP;
use super::layout::{Layout, Sized};
use super::reduced::Reduce;
use super::transform::{Group, Transform};
use super::vector::Vectors;

/// Samples that lie as vectors like it.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u8; STEP]);

/// The last rows of one component, from the first transformed column on.
pub(super) struct Plane {
    samples: Vec<Line>,
    pub(super) stride: usize,
    ring: usize,
}

impl Plane {
    /// A row of samples, readable beyond its end.
    pub(super) fn row(&self, y: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.samples)[y % self.ring * self.stride..][..self.stride]
    }

    /// From a row on, which begins a row of blocks.
    pub(super) fn rows_from(&mut self, y: usize) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.samples)[y % self.ring * self.stride..]
    }
}

/// Planes for an image, in memory that is kept in `spare`.
pub(super) fn planes(layout: &Layout, spare: &mut Vec<Vec<Line>>) -> Vec<Plane> {
    let plane = |component: &Sized| {
        // Rows at distances of a power of two would fall upon the same lines of a cache.
        let stride =
            (layout.columns.len() * component.h * component.side + STEP).next_multiple_of(STEP) + STEP;
        let stride = if stride.is_multiple_of(1024) { stride + STEP } else { stride };
        let ring = 2 * component.v * component.side;
        let mut samples = spare.pop().unwrap_or_default();
        if component.needed && samples.len() < ring * stride / STEP {
            samples.resize(ring * stride / STEP, Line([0; STEP]));
        }
        Plane { samples, stride, ring }
    };
    layout.components.iter().map(plane).collect()
}

/// Gives the memory back.
pub(super) fn keep(planes: Vec<Plane>, spare: &mut Vec<Vec<Line>>) {
    spare.extend(planes.into_iter().rev().map(|plane| plane.samples));
}

/// Groups of one component side by side to a plane, from (x, y) on.
pub(super) fn transform(
    component: &Sized,
    groups: &[Group],
    quant: &[i16; 64],
    (plane, x, y): (&mut Plane, usize, usize),
    vectors: Vectors,
) -> Option<()> {
    let stride = plane.stride;
    let out = &mut plane.rows_from(y)[x..];
    let narrow = if component.side == 8 {
        Transform { groups, quant, out, stride }.done_by(vectors)
    } else {
        Reduce { side: component.side, groups, quant, out, stride }.done_by(vectors)
    };
    narrow.then_some(())
}
