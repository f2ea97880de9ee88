//! Our own decoder: from a file's bytes to pixels, or to `None`, and then libjpeg-turbo decodes the file. It must not know what
//! a caller makes of pixels.

use super::bits::Bits;
use super::entropy::{Place, Tables, blocks};
use super::frame::{Frame, Reader, Scan};
use super::layout::Layout;
use super::planes::{self, Plane, transform};
use super::rows::Rows;
use super::scratch::Scratch;
use super::segments::Segments;
use super::transform::{BLOCKS, Group};
use super::vector::Vectors;
use super::{Ask, multiscan};
use crate::waiting::Watch;

/// Blocks that are decoded before they are transformed: together they stay in the first cache.
const BATCH_BLOCKS: usize = 192;

/// Decodes what `ask` says to `out`, dense. `None` also when nobody waits any more.
pub(super) fn decode(
    (bytes, watch): (&[u8], &Watch<'_>),
    ask: &Ask,
    vectors: Vectors,
    scratch: &mut Scratch,
    out: &mut [u8],
) -> Option<()> {
    let mut reader = Reader::new(bytes, watch)?;
    let scan = reader.next_scan()??;
    let frame = reader.frame()?.clone();
    let layout = Layout::new(&frame, reader.stored()?, ask)?;
    if out.len() != layout.window.width * layout.window.height * ask.kind.channels() {
        return None;
    }
    let mut planes = planes::planes(&layout, &mut scratch.planes);
    let mut lines = std::mem::take(&mut scratch.lines);
    let mut rows = Rows::new(&layout, ask.kind, vectors, &mut lines);
    let one = !frame.progressive && scan.parts.len() == frame.components.len();
    let decoded = if one {
        sequential(&mut reader, &scan, &frame, &mut rows, &mut planes, scratch, out)
    } else {
        multiscan::decode(&mut reader, scan, &frame, &mut rows, &mut planes, scratch, out)
    };
    scratch.lines = lines;
    planes::keep(planes, &mut scratch.planes);
    decoded
}

/// The blocks of some MCUs, and where they go.
struct Batch {
    mcus: usize,
    /// In the order of the data.
    places: Vec<Place>,
    /// For each component the first group of its first row; the other rows follow.
    firsts: Vec<usize>,
    groups: usize,
}

impl Batch {
    fn new(layout: &Layout) -> Self {
        let mcus = (BATCH_BLOCKS / layout.mcu_blocks()).max(BLOCKS) / BLOCKS * BLOCKS;
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
                        places.push(Place::new(group, column % BLOCKS, i));
                    }
                }
            }
        }
        Self { mcus, places, firsts, groups }
    }
}

fn sequential(
    reader: &mut Reader<'_>,
    scan: &Scan,
    frame: &Frame,
    rows: &mut Rows<'_>,
    planes: &mut [Plane],
    scratch: &mut Scratch,
    out: &mut [u8],
) -> Option<()> {
    let layout = rows.layout;
    if !scan.is_whole() {
        return None;
    }
    let Scratch { data, cache, groups, .. } = scratch;
    let tables = Tables::all(reader, scan, cache)?;
    let quants: Vec<_> = frame.components.iter().map(|c| reader.quant(c)).collect::<Option<_>>()?;
    reader.skip(data.read(reader.rest()?)?);
    // Nothing but tables and comments may follow.
    if reader.next_scan()?.is_some() {
        return None;
    }
    let batch = Batch::new(layout);
    groups.clear();
    groups.resize(batch.groups + 1, Group::ZERO);
    let mut segments = Segments::new(&data.ends, reader.restart, layout.mcus.0 * layout.mcus.1);
    let mut bits = Bits::from(0);
    let mut predictions = [0; 4];
    let per_mcu = layout.mcu_blocks();
    for row in 0..layout.mcus.1 {
        reader.watch.spend(64 * per_mcu * layout.mcus.0).ok()?;
        for column in (0..layout.mcus.0).step_by(batch.mcus) {
            let count = batch.mcus.min(layout.mcus.0 - column);
            let mut done = 0;
            while done < count {
                let next = done + segments.left.min(count - done);
                let places = &batch.places[done * per_mcu..next * per_mcu];
                bits = blocks(&data.bytes, bits, &tables, places, groups, &mut predictions)?;
                if segments.advance(next - done, bits)? {
                    (bits, predictions) = (Bits::from(segments.start), [0; 4]);
                }
                done = next;
            }
            let columns = layout.columns.start.max(column)..layout.columns.end.min(column + batch.mcus);
            if layout.rows.contains(&row) && !columns.is_empty() {
                let within = columns.start - column..columns.end - column;
                for (i, component) in layout.components.iter().enumerate().filter(|(_, c)| c.needed) {
                    for v in 0..component.v {
                        let first = batch.firsts[i] + v * component.h * batch.mcus / BLOCKS;
                        let part = first + within.start * component.h / BLOCKS
                            ..first + within.end * component.h / BLOCKS;
                        let y = (row * component.v + v) * component.side;
                        let x = (columns.start - layout.columns.start) * component.h * component.side;
                        let to = (&mut planes[i], x, y);
                        transform(component, &groups[part], &quants[i], to, rows.vectors)?;
                    }
                }
            }
            groups.fill(Group::ZERO);
        }
        if layout.rows.contains(&row) {
            rows.up_to(row + 1, planes, out);
        }
        if row + 1 == layout.rows.end && row + 1 < layout.mcus.1 {
            // Damage of what follows is nothing that libjpeg would refuse the file for, nor does it change what was before.
            return Some(());
        }
    }
    segments.is_over().then_some(())
}
