//! The data of a sequential scan that has all components: decoded in the order of its MCUs, and drawn. It must not know
//! who draws which part of an image.

use super::bits::{Bits, Data};
use super::canvas::Canvas;
use super::entropy::{BlockPosition, Tables, blocks};
use super::layout::Layout;
use super::planes::transform;
use super::segments::Segments;
use super::transform::{BLOCKS, Group};
use crate::cpu::decode::RowSink;
use crate::deadline::Watch;
use crate::memory::grow;

/// Blocks that are decoded before they are transformed: together they stay in the first cache.
const BATCH_BLOCKS: usize = 192;

/// The blocks of some MCUs, and where they go.
pub(super) struct Batch {
    pub(super) mcus: usize,
    /// In the order of the data.
    places: Vec<BlockPosition>,
    /// For each component the first group of its first row; the other rows follow.
    firsts: Vec<usize>,
    pub(super) groups: usize,
}

impl Batch {
    pub(super) fn new(layout: &Layout) -> Self {
        // No more than a row has: all of them are transformed.
        let most = layout.mcus.0.next_multiple_of(BLOCKS);
        let mcus = ((BATCH_BLOCKS / layout.mcu_blocks()).max(BLOCKS) / BLOCKS * BLOCKS).min(most);
        let mut firsts = Vec::new();
        let mut groups = 0;
        for component in &layout.components {
            firsts.push(groups);
            groups += component.v * component.h * mcus / BLOCKS;
        }
        let mut places = Vec::with_capacity(mcus * layout.mcu_blocks());
        for mcu in 0..mcus {
            for (i, component) in layout.components.iter().enumerate() {
                for v in 0..component.v {
                    for h in 0..component.h {
                        let column = mcu * component.h + h;
                        let group = firsts[i] + (v * component.h * mcus + column) / BLOCKS;
                        places.push(BlockPosition::new(group, column % BLOCKS, i));
                    }
                }
            }
        }
        Self { mcus, places, firsts, groups }
    }
}

/// A scan's data and what decodes them.
pub(super) struct Coded<'a> {
    pub(super) data: &'a Data,
    /// MCUs between restarts; 0: there are none.
    pub(super) restart: usize,
    pub(super) tables: Vec<Tables>,
    /// One for each component.
    pub(super) quants: Vec<[i16; 64]>,
    pub(super) batch: Batch,
    pub(super) watch: &'a Watch<'a>,
}

impl Coded<'_> {
    /// Counts a row of MCUs. `None`: nobody waits any more.
    pub(super) fn count_row(&self, layout: &Layout) -> Option<()> {
        self.watch.charge(64 * layout.mcu_blocks() * layout.mcus.0).ok()
    }

    /// Coefficients of a batch at (`column`, `row`) to samples, as far as the canvas wants them.
    pub(super) fn samples(
        &self,
        groups: &[Group],
        (column, row): (usize, usize),
        canvas: &mut Canvas<'_>,
    ) -> Option<()> {
        let (batch, layout, vectors) = (&self.batch, canvas.rows.layout, canvas.rows.vectors);
        let columns = layout.columns.start.max(column)..layout.columns.end.min(column + batch.mcus);
        if columns.is_empty() || !layout.rows.contains(&row) {
            return Some(());
        }
        let within = columns.start - column..columns.end - column;
        for (i, component) in layout.components.iter().enumerate().filter(|(_, c)| c.needed) {
            for v in 0..component.v {
                let first = batch.firsts[i] + v * component.h * batch.mcus / BLOCKS;
                let part =
                    first + within.start * component.h / BLOCKS..first + within.end * component.h / BLOCKS;
                let y = (row * component.v + v) * component.side;
                let x = (columns.start - layout.columns.start) * component.h * component.side;
                let to = (&mut canvas.planes[i], x, y);
                transform(component, &groups[part], &self.quants[i], to, vectors)?;
            }
        }
        Some(())
    }
}

/// Where decoding has come to.
pub(super) struct Cursor<'a> {
    coded: &'a Coded<'a>,
    segments: Segments<'a>,
    bits: Bits,
    predictions: [i32; 4],
    /// MCUs of a row of the image.
    across: usize,
    /// The next MCU to decode.
    next: usize,
}

impl<'a> Cursor<'a> {
    /// At the last segment that begins at `mcu` or before. `None`: there is no such segment.
    pub(super) fn at(coded: &'a Coded<'a>, layout: &Layout, mcu: usize) -> Option<Self> {
        let (across, down) = layout.mcus;
        let mut segments = Segments::new(&coded.data.ends, coded.restart, across * down);
        let before = mcu.checked_div(coded.restart).unwrap_or(0);
        segments.pass(before)?;
        let (bits, next) = (Bits::from(segments.start), before * coded.restart);
        Some(Self { coded, segments, bits, predictions: [0; 4], across, next })
    }

    /// The row of the next MCU.
    pub(super) fn row(&self) -> usize {
        self.next / self.across
    }

    /// Decodes a batch from (`column`, `row`) on to `groups`; of the first row only what is not before the first
    /// segment.
    pub(super) fn batch(&mut self, (column, row): (usize, usize), groups: &mut [Group]) -> Option<()> {
        let batch = &self.coded.batch;
        let per_mcu = batch.places.len() / batch.mcus;
        let first = row * self.across + column;
        let count = batch.mcus.min(self.across - column);
        let mut done = self.next - first.min(self.next);
        while done < count {
            let next = done + self.segments.left.min(count - done);
            let places = &batch.places[done * per_mcu..next * per_mcu];
            let Coded { data, tables, .. } = self.coded;
            self.bits = blocks(data.bytes(), self.bits, tables, places, groups, &mut self.predictions)?;
            if self.segments.advance(next - done, self.bits)? {
                (self.bits, self.predictions) = (Bits::from(self.segments.start), [0; 4]);
            }
            self.next += next - done;
            done = next;
        }
        Some(())
    }

    /// Whether all MCUs were in all segments.
    pub(super) fn is_over(&self) -> bool {
        self.segments.is_over()
    }
}

/// Decodes from `cursor` on and draws, batch by batch; `groups` is memory for one.
pub(super) fn draw(
    coded: &Coded<'_>,
    mut cursor: Cursor<'_>,
    canvas: &mut Canvas<'_>,
    groups: &mut Vec<Group>,
    out: &mut dyn RowSink,
) -> Option<()> {
    let layout = canvas.rows.layout;
    let (across, down) = layout.mcus;
    groups.clear();
    // One more: a block is seen with what lies behind it.
    grow(groups, coded.batch.groups + 1, Group::ZERO).ok()?;
    for row in cursor.row()..down {
        coded.count_row(layout)?;
        for column in (0..across).step_by(coded.batch.mcus) {
            cursor.batch((column, row), groups)?;
            coded.samples(groups, (column, row), canvas)?;
        }
        if layout.rows.contains(&row) {
            canvas.up_to(row + 1, out);
        }
        if row + 1 == layout.rows.end && row + 1 < down {
            // Damage of what follows is nothing that libjpeg would refuse the file for, nor does it change what was
            // before.
            return Some(());
        }
    }
    cursor.is_over().then_some(())
}
