//! One image on the threads of a pool: bands of its rows, drawn side by side. It must not know how codes are read.
//!
//! ```text
//! segments in between        a band's thread decodes it, from the segment on that its first row needs
//! none                       this thread decodes all codes, in their order; others draw bands that are decoded
//! several scans              this thread decodes all scans; then all draw
//! ```
//!
//! Each band draws its neighbouring rows of MCUs, too, as far as smooth chroma needs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::canvas::Canvas;
use super::coded::{Coded, Cursor, draw};
use super::frame::{Frame, Stored};
use super::layout::Layout;
use super::scratch::Scratch;
use super::sink::Whole;
use super::transform::Group;
use super::vector::Vectors;
use super::{Ask, Window};
use crate::cpu::decode::RowSink;

/// Rows of MCUs of the smallest band: two more are decoded for it.
const MIN_ROWS: usize = 4;
/// Rows of MCUs of a band that is drawn by another thread than the one that decodes: more are drawn late, of fewer the
/// two more count.
const DRAWN_ROWS: usize = 12;
/// Bands for each thread that may wait to be drawn; the thread that decodes draws what would be more.
const MAX_WAITING: usize = 2;

/// How an image is cut into bands.
pub(super) struct Bands<'a> {
    pool: &'a ThreadPool,
    frame: &'a Frame,
    stored: Stored,
    ask: &'a Ask,
    /// Rows of MCUs that are shown.
    rows: usize,
}

impl<'a> Bands<'a> {
    /// `None`: there is nothing to share.
    pub(super) fn new(
        pool: &'a ThreadPool,
        frame: &'a Frame,
        stored: Stored,
        ask: &'a Ask,
        layout: &Layout,
    ) -> Option<Self> {
        let rows = layout.window.height.div_ceil(layout.mcu_height);
        let bands = Self { pool, frame, stored, ask, rows };
        (rows >= 2 * MIN_ROWS && pool.current_num_threads() > 1).then_some(bands)
    }

    /// Bands of so many rows of MCUs, from the top, each with its part of `out`.
    fn cut<'o>(
        &self,
        layout: &Layout,
        rows: usize,
        mut out: &'o mut [u8],
    ) -> Option<Vec<(Layout, &'o mut [u8])>> {
        let window = layout.window;
        let (mut y, bottom) = (window.y, window.y + window.height);
        let mut bands = Vec::with_capacity(window.height.div_ceil(rows * layout.mcu_height) + 1);
        while y < bottom {
            let next = ((y / layout.mcu_height + rows) * layout.mcu_height).min(bottom);
            let part = Window { y, height: next - y, ..window };
            let pixels = out.split_off_mut(..part.width * part.height * self.ask.kind.channels())?;
            let ask = Ask { window: Some(part), ..*self.ask };
            bands.push((Layout::new(self.frame, self.stored, &ask)?, pixels));
            y = next;
        }
        Some(bands)
    }

    /// Draws as many bands as there are threads, or fewer of `least` rows of MCUs; `draw` is told whether it is the
    /// first one.
    pub(super) fn draw(
        &self,
        layout: &Layout,
        least: usize,
        vectors: Vectors,
        out: &mut [u8],
        draw: impl Fn(&mut Canvas<'_>, bool, &mut dyn RowSink) -> Option<()> + Sync,
    ) -> Option<()> {
        let rows = self.rows.div_ceil(self.pool.current_num_threads()).max(least).max(MIN_ROWS);
        let bands = self.cut(layout, rows, out)?;
        let one = |(i, (layout, out)): (usize, (Layout, &mut [u8]))| {
            let mut canvas = Canvas::new(&layout, self.ask.kind, vectors, &mut Scratch::default());
            draw(&mut canvas, i == 0, &mut self.part(&layout, out))
        };
        self.pool.install(|| bands.into_par_iter().enumerate().try_for_each(one))
    }

    /// Decodes and draws a scan that has all components.
    pub(super) fn decode(
        &self,
        coded: &Coded<'_>,
        layout: &Layout,
        vectors: Vectors,
        out: &mut [u8],
    ) -> Option<()> {
        let segment = coded.restart.div_ceil(layout.mcus.0);
        if coded.restart == 0 || 2 * segment > self.rows {
            return self.decode_here(coded, layout, vectors, out);
        }
        self.draw(layout, segment, vectors, out, |canvas, first, out| {
            let layout = canvas.rows.layout;
            // What is above the window is decoded once, too: the file is refused if it is damaged there.
            let from = if first { 0 } else { layout.rows.start * layout.mcus.0 };
            draw(coded, Cursor::at(coded, layout, from)?, canvas, &mut Vec::new(), out)
        })
    }

    /// Decodes; draws on other threads.
    fn decode_here(
        &self,
        coded: &Coded<'_>,
        layout: &Layout,
        vectors: Vectors,
        out: &mut [u8],
    ) -> Option<()> {
        let (across, down) = layout.mcus;
        let (failed, waiting) = (AtomicBool::new(false), AtomicUsize::new(0));
        let spares: Mutex<Vec<Vec<Group>>> = Mutex::default();
        let (failed, waiting, spares) = (&failed, &waiting, &spares);
        let most = MAX_WAITING * self.pool.current_num_threads();
        let mut bands = self.cut(layout, DRAWN_ROWS, out)?.into_iter().peekable();
        let mut cursor = Cursor::at(coded, layout, 0)?;
        let per_batch = coded.batch.groups;
        let decoded = self.pool.scope(|scope| {
            // From the first row on that the next band draws.
            let mut kept: Vec<(usize, Arc<Row<'_>>)> = Vec::new();
            for row in 0..layout.rows.end {
                coded.count_row(layout)?;
                let mut groups = spares.lock().pop().unwrap_or_default();
                // One more: a block is seen with what lies behind it.
                groups.resize(across.div_ceil(coded.batch.mcus) * per_batch + 1, Group::ZERO);
                for (i, column) in (0..across).step_by(coded.batch.mcus).enumerate() {
                    let batch = &mut groups[i * per_batch..=(i + 1) * per_batch];
                    cursor.batch((column, row), batch)?;
                }
                kept.push((row, Arc::new(Row { groups, spares })));
                while let Some((layout, out)) = bands.next_if(|(band, _)| band.rows.end == row + 1) {
                    let rows: Vec<_> =
                        kept.iter().filter(|(row, _)| layout.rows.contains(row)).cloned().collect();
                    // Only this thread adds to them.
                    if waiting.load(Ordering::Relaxed) < most {
                        waiting.fetch_add(1, Ordering::Relaxed);
                        scope.spawn(move |_| {
                            if self.draw_decoded(coded, &layout, &rows, vectors, out).is_none() {
                                failed.store(true, Ordering::Relaxed);
                            }
                            waiting.fetch_sub(1, Ordering::Relaxed);
                        });
                    } else {
                        self.draw_decoded(coded, &layout, &rows, vectors, out)?;
                    }
                }
                let needed = bands.peek().map_or(down, |(band, _)| band.rows.start);
                kept.retain(|(row, _)| *row >= needed);
                if failed.load(Ordering::Relaxed) {
                    return None;
                }
            }
            // As where one thread does it all.
            (layout.rows.end < down || cursor.is_over()).then_some(())
        });
        decoded.filter(|()| !failed.load(Ordering::Relaxed))
    }

    /// Draws the band of `layout`, of whose rows of MCUs these are the coefficients.
    fn draw_decoded(
        &self,
        coded: &Coded<'_>,
        layout: &Layout,
        rows: &[(usize, Arc<Row<'_>>)],
        vectors: Vectors,
        out: &mut [u8],
    ) -> Option<()> {
        let mut canvas = Canvas::new(layout, self.ask.kind, vectors, &mut Scratch::default());
        let out = &mut self.part(layout, out);
        for (row, decoded) in rows {
            for (i, column) in (0..layout.mcus.0).step_by(coded.batch.mcus).enumerate() {
                coded.samples(&decoded.groups[i * coded.batch.groups..], (column, *row), &mut canvas)?;
            }
            canvas.up_to(row + 1, out);
        }
        Some(())
    }

    /// The part of a picture that a layout's window shows.
    fn part<'o>(&self, layout: &Layout, pixels: &'o mut [u8]) -> Whole<'o> {
        Whole::new(pixels, layout.window.width * self.ask.kind.channels())
    }
}

/// The coefficients of a row of MCUs. Its memory is for another row when nobody needs it any more.
struct Row<'s> {
    groups: Vec<Group>,
    spares: &'s Mutex<Vec<Vec<Group>>>,
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        self.spares.lock().push(std::mem::take(&mut self.groups));
    }
}
