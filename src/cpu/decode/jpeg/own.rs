//! Our own decoder: from a file's bytes to pixels, or to `None`, and then libjpeg-turbo decodes the file. It must not
//! know what a caller makes of pixels.

use super::bands::Bands;
use super::canvas::Canvas;
use super::coded::{Batch, Coded, Cursor, draw};
use super::entropy::Tables;
use super::frame::{Frame, Reader, Scan};
use super::layout::Layout;
use super::scratch::Scratch;
use super::vector::Vectors;
use super::{Ask, multiscan};
use crate::cpu::decode::{Conditions, RowSink};

/// Decodes what `ask` says to `out`; with the threads of a pool, if there is one and the image is high enough. `None`
/// also when nobody waits any more.
pub(super) fn decode(
    bytes: &[u8],
    ask: &Ask,
    vectors: Vectors,
    Conditions { watch, pool }: Conditions<'_>,
    scratch: &mut Scratch,
    out: &mut dyn RowSink,
) -> Option<()> {
    let mut reader = Reader::new(bytes, watch)?;
    let scan = reader.next_scan()??;
    let frame = reader.frame()?.clone();
    let stored = reader.stored()?;
    let layout = Layout::new(&frame, stored, ask)?;
    if out.size() != (layout.window.height, layout.window.width * ask.kind.channels()) {
        return None;
    }
    let bands = pool.and_then(|pool| Bands::new(pool, &frame, stored, ask, &layout));
    let mut canvas = Canvas::new(&layout, ask.kind, vectors, scratch);
    let decoded = if !frame.progressive && scan.parts.len() == frame.components.len() {
        sequential(&mut reader, &scan, &frame, &mut canvas, bands.as_ref(), scratch, out)
    } else {
        multiscan::decode(&mut reader, scan, &frame, &mut canvas, bands.as_ref(), scratch, out)
    };
    canvas.keep(scratch);
    decoded
}

fn sequential(
    reader: &mut Reader<'_>,
    scan: &Scan,
    frame: &Frame,
    canvas: &mut Canvas<'_>,
    bands: Option<&Bands<'_>>,
    scratch: &mut Scratch,
    out: &mut dyn RowSink,
) -> Option<()> {
    let layout = canvas.rows.layout;
    if !scan.is_whole() {
        return None;
    }
    let Scratch { data, cache, groups, .. } = scratch;
    let tables = Tables::all(reader, scan, cache)?;
    let quants = frame.components.iter().map(|c| reader.quant(c)).collect::<Option<_>>()?;
    reader.skip(data.read(reader.rest()?)?);
    // Nothing but tables and comments may follow.
    if reader.next_scan()?.is_some() {
        return None;
    }
    let (batch, watch) = (Batch::new(layout), reader.watch);
    let coded = Coded { data, restart: reader.restart, tables, quants, batch, watch };
    match (bands, out.whole()) {
        (Some(bands), Some(out)) => bands.decode(&coded, layout, canvas.rows.vectors, out),
        _ => draw(&coded, Cursor::at(&coded, layout, 0)?, canvas, groups, out),
    }
}
