//! Files of several scans: each goes over coefficients of the whole image, then everything is transformed. Those are
//! progressive files, and sequential ones whose components come one after the other. It must not know pixels, or how a
//! scan is coded.

use super::bands::Bands;
use super::bits::Bits;
use super::canvas::Canvas;
use super::entropy::{self, BlockPosition, Tables};
use super::frame::{Frame, Part, Reader, Scan};
use super::planes::transform;
use super::scans::{self, Band, Coefficients, Refine};
use super::scratch::Scratch;
use super::segments::Segments;
use super::transform::{BLOCKS, Group};
use super::vector::Vectors;
use crate::cpu::decode::RowSink;
use crate::deadline::Watch;
use crate::limits;
use crate::memory::grow;

/// What a block of a scan counts as, in pixels: many bring nothing.
const WORK_OF_A_BLOCK: usize = 8;

/// Bytes of coefficients beyond which libjpeg-turbo decodes: memory that is kept would not pay.
const MAX_BYTES: usize = 1 << 30;

/// Where a component's coefficients are.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Its first group.
    first: usize,
    /// Groups of a row of blocks.
    groups: usize,
    /// Blocks across and down that scans of this component alone have.
    width: usize,
    height: usize,
    h: usize,
    v: usize,
}

impl Extent {
    /// Its blocks of an MCU of a scan.
    #[inline(always)]
    fn blocks(&self, scan: &Scan, column: usize, row: usize) -> impl Iterator<Item = (usize, usize)> {
        let (h, v) = if scan.parts.len() == 1 { (1, 1) } else { (self.h, self.v) };
        (0..h * v).map(move |place| (column * h + place % h, row * v + place / h))
    }
}

/// Which bits of each coefficient scans have brought, as libjpeg counts: those up from a number; none yet.
type Known = [Option<u32>; 64];

/// Decodes all scans, of which the first header was read, and makes the pixels.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    first: Scan,
    frame: &Frame,
    canvas: &mut Canvas<'_>,
    bands: Option<&Bands<'_>>,
    scratch: &mut Scratch,
    out: &mut dyn RowSink,
) -> Option<()> {
    let (layout, vectors, watch) = (canvas.rows.layout, canvas.rows.vectors, reader.watch);
    let (most_h, most_v) = frame.most();
    let mut groups = 0;
    let mut extents = Vec::with_capacity(frame.components.len());
    for component in &frame.components {
        let (h, v) = (component.h, component.v);
        let across = layout.mcus.0.next_multiple_of(BLOCKS) * h / BLOCKS;
        extents.push(Extent {
            first: groups,
            groups: across,
            width: (frame.width * h).div_ceil(8 * most_h),
            height: (frame.height * v).div_ceil(8 * most_v),
            h,
            v,
        });
        groups += across * layout.mcus.1 * v;
    }
    if groups > MAX_BYTES / size_of::<Group>() {
        return None;
    }
    scratch.groups.clear();
    // One more: a block is seen with what lies behind it.
    grow(&mut scratch.groups, groups + 1, Group::ZERO).ok()?;
    scratch.masks.clear();
    grow(&mut scratch.masks, groups * BLOCKS, 0).ok()?;
    let mut known: Vec<Known> = vec![[None; 64]; extents.len()];
    let mut quants = vec![None; extents.len()];
    let mut next = Some(first);
    let mut scans = 0;
    while let Some(scan) = next {
        scans += 1;
        if scans > limits::MAX_JPEG_SCANS {
            return None;
        }
        for part in &scan.parts {
            let quant: &mut Option<[i16; 64]> = &mut quants[part.component];
            if quant.is_none() {
                *quant = Some(reader.quant(&frame.components[part.component])?);
            }
            goes_on(&mut known[part.component], &scan, frame.progressive)?;
        }
        if frame.progressive {
            progressive(reader, &scan, &extents, layout.mcus, scratch, vectors)?;
        } else {
            sequential(reader, &scan, &extents, layout.mcus, scratch)?;
        }
        next = reader.next_scan()?;
    }
    // Where bits are missing libjpeg smooths between blocks.
    if known.iter().flatten().any(|&bits| bits != Some(0)) {
        return None;
    }
    let draw = |canvas: &mut Canvas<'_>, out: &mut dyn RowSink| {
        pixels(watch, &extents, &quants, &scratch.groups, canvas, out)
    };
    match (bands, out.whole()) {
        (Some(bands), Some(out)) => bands.draw(layout, 1, vectors, out, |canvas, _, out| draw(canvas, out)),
        _ => draw(canvas, out),
    }
}

/// Whether a scan is the next one for a component, by libjpeg's rules.
fn goes_on(known: &mut Known, scan: &Scan, progressive: bool) -> Option<()> {
    if !progressive {
        let new = scan.is_whole() && *known == [None; 64];
        *known = [Some(0); 64];
        return new.then_some(());
    }
    let Scan { first, last, high, low, ref parts } = *scan;
    let bands = if first == 0 { last == 0 } else { first <= last && last < 64 && parts.len() == 1 };
    let bits = if high == 0 { low <= 13 } else { low + 1 == high };
    if !bands || !bits || (first > 0 && known[0].is_none()) {
        return None;
    }
    for bits in &mut known[first..=last] {
        if *bits != (high > 0).then_some(high) {
            return None;
        }
        *bits = Some(low);
    }
    Some(())
}

/// A scan of whole blocks.
fn sequential(
    reader: &mut Reader<'_>,
    scan: &Scan,
    extents: &[Extent],
    mcus: (usize, usize),
    scratch: &mut Scratch,
) -> Option<()> {
    let Scratch { data, cache, groups, .. } = scratch;
    let tables = Tables::all(reader, scan, cache)?;
    reader.skip(data.read(reader.rest()?)?);
    let (across, down) = scan_mcus(scan, extents, mcus);
    let mut segments = Segments::new(&data.ends, reader.restart, across * down);
    let (mut bits, mut predictions) = (Bits::from(0), [0; 4]);
    let mut places = Vec::new();
    for row in 0..down {
        reader.watch.charge(WORK_OF_A_BLOCK * across).ok()?;
        places.clear();
        for column in 0..across {
            for (i, part) in scan.parts.iter().enumerate() {
                let extent = &extents[part.component];
                for (x, y) in extent.blocks(scan, column, row) {
                    places.push(BlockPosition::new(
                        extent.first + y * extent.groups + x / BLOCKS,
                        x % BLOCKS,
                        i,
                    ));
                }
            }
        }
        let per_mcu = places.len() / across;
        let mut done = 0;
        while done < across {
            let next = done + segments.left.min(across - done);
            let places = &places[done * per_mcu..next * per_mcu];
            bits = entropy::blocks(data.bytes(), bits, &tables, places, groups, &mut predictions)?;
            if segments.advance(next - done, bits)? {
                (bits, predictions) = (Bits::from(segments.start), [0; 4]);
            }
            done = next;
        }
    }
    segments.is_over().then_some(())
}

/// MCUs of a scan, across and down: of one component alone they are its blocks.
fn scan_mcus(scan: &Scan, extents: &[Extent], mcus: (usize, usize)) -> (usize, usize) {
    match scan.parts[..] {
        [Part { component, .. }] => (extents[component].width, extents[component].height),
        _ => mcus,
    }
}

/// A scan of a band, or of a bit of it.
fn progressive(
    reader: &mut Reader<'_>,
    scan: &Scan,
    extents: &[Extent],
    mcus: (usize, usize),
    scratch: &mut Scratch,
    vectors: Vectors,
) -> Option<()> {
    let Scratch { data, cache, groups, masks, .. } = scratch;
    let length = data.read(reader.rest()?)?;
    reader.skip(length);
    let (across, down) = scan_mcus(scan, extents, mcus);
    let mut segments = Segments::new(&data.ends, reader.restart, across * down);
    let mut bits = Bits::from(0);
    if scan.first == 0 {
        let mut tables = Vec::new();
        for part in &scan.parts {
            tables.push(if scan.high == 0 { Some(cache.dc(reader.spec(0, part.dc)?)?) } else { None });
        }
        let mut predictions = [0; 4];
        for mcu in 0..across * down {
            let (column, row) = (mcu % across, mcu / across);
            reader.watch.charge(WORK_OF_A_BLOCK).ok()?;
            for (part, table) in scan.parts.iter().zip(&tables) {
                let extent = &extents[part.component];
                for (x, y) in extent.blocks(scan, column, row) {
                    let group = groups.get_mut(extent.first + y * extent.groups + x / BLOCKS)?;
                    let dc = &mut group.0[8 * (x % BLOCKS)];
                    bits.refill(data.bytes())?;
                    match table {
                        Some(table) => {
                            let prediction = &mut predictions[part.component];
                            *prediction = scans::dc(&mut bits, table)?.checked_add(*prediction)?;
                            *dc = (*prediction << scan.low) as i16;
                        }
                        None => *dc |= (bits.take(1) << scan.low) as i16,
                    }
                }
            }
            if segments.advance(1, bits)? {
                (bits, predictions) = (Bits::from(segments.start), [0; 4]);
            }
        }
    } else {
        let part = scan.parts.first()?;
        let table = cache.band(reader.spec(1, part.ac)?);
        let extent = &extents[part.component];
        let band = Band { first: scan.first as u32, last: scan.last as u32, low: scan.low };
        let mut run = 0;
        for row in 0..down {
            reader.watch.charge(WORK_OF_A_BLOCK * across).ok()?;
            let from = extent.first + row * extent.groups;
            let mut row = Coefficients {
                groups: groups.get_mut(from..from + extent.groups)?,
                masks: masks.get_mut(from * BLOCKS..(from + extent.groups) * BLOCKS)?,
            };
            let mut done = 0;
            while done < across {
                let next = done + segments.left.min(across - done);
                (bits, run) = if scan.high == 0 {
                    scans::first(data.bytes(), (bits, run), &table, band, &mut row, done..next)?
                } else {
                    let (data, start, blocks) = (data.bytes(), (bits, run), done..next);
                    vectors.run(Refine { data, start, table: &table, band, row: &mut row, blocks })?
                };
                if segments.advance(next - done, bits)? {
                    (bits, run) = (Bits::from(segments.start), 0);
                }
                done = next;
            }
        }
    }
    segments.is_over().then_some(())
}

fn pixels(
    watch: &Watch<'_>,
    extents: &[Extent],
    quants: &[Option<[i16; 64]>],
    groups: &[Group],
    canvas: &mut Canvas<'_>,
    out: &mut dyn RowSink,
) -> Option<()> {
    let layout = canvas.rows.layout;
    for row in layout.rows.clone() {
        watch.charge(64 * layout.mcu_blocks() * layout.mcus.0).ok()?;
        for (i, component) in layout.components.iter().enumerate().filter(|(_, c)| c.needed) {
            let extent = &extents[i];
            let (start, end) = (layout.columns.start, layout.columns.end);
            for v in 0..component.v {
                let y = row * component.v + v;
                let first = extent.first + y * extent.groups;
                let part = first + start * component.h / BLOCKS..first + end * component.h / BLOCKS;
                let to = (&mut canvas.planes[i], 0, y * component.side);
                transform(component, &groups[part], quants[i].as_ref()?, to, canvas.rows.vectors)?;
            }
        }
        canvas.up_to(row + 1, out);
    }
    Some(())
}
