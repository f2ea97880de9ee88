//! Rows of samples to rows of pixels, as far as they are complete. It must not know codes or coefficients.

use super::Kind;
use super::color::{Chroma, STEP, Sums, Ycc, luma};
use super::frame::Stored;
use super::layout::{Layout, Sized, Upsample};
use super::planes::Plane;
use super::vector::Vectors;
use crate::cpu::decode::RowSink;

/// Rows between upsampling and colours, kept for the next image.
#[derive(Default)]
pub(super) struct Lines {
    sums: [Vec<i16>; 2],
    /// Components as wide as the image.
    full: [Vec<u8>; 4],
    pixels: Vec<u8>,
}

impl Lines {
    /// See [`super::scratch::Scratch::fill`].
    pub(super) fn fill(&mut self, pattern: u8) {
        for line in self.full.iter_mut().chain([&mut self.pixels]) {
            line.fill(pattern);
        }
        for sums in &mut self.sums {
            sums.fill(i16::from_ne_bytes([pattern; 2]));
        }
    }
}

/// Makes the pixels of an image.
pub(super) struct Rows<'a> {
    pub(super) layout: &'a Layout,
    pub(super) kind: Kind,
    pub(super) vectors: Vectors,
    pub(super) lines: Lines,
    /// The next row of the image.
    next: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(layout: &'a Layout, kind: Kind, vectors: Vectors, mut lines: Lines) -> Self {
        let width = layout.columns.len() * layout.mcu_width + 2 * STEP;
        for (component, full) in layout.components.iter().zip(&mut lines.full) {
            if component.upsample != Upsample::Repeat(1, 1) {
                full.resize(full.len().max(width), 0);
            }
        }
        for sums in &mut lines.sums {
            sums.resize(sums.len().max(Sums::room(width)), 0);
        }
        Self { layout, kind, vectors, lines, next: layout.window.y }
    }

    /// Makes the rows that are complete when rows of MCUs up to `done` are. `out` has the window's size.
    pub(super) fn up_to(&mut self, done: usize, planes: &[Plane], out: &mut dyn RowSink) {
        let layout = self.layout;
        let ready = if done >= layout.mcus.1 {
            layout.height
        } else {
            // The last row may be waiting for chroma of the next one.
            (done * layout.mcu_height).saturating_sub(self.deadline())
        };
        let window = layout.window;
        while self.next < ready.min(window.y + window.height) {
            let y = self.next - window.y;
            self.row(self.next, planes, out.row(y));
            out.done(y);
            self.next += 1;
        }
    }

    fn deadline(&self) -> usize {
        let smooth = |c: &Sized| matches!(c.upsample, Upsample::Smooth | Upsample::SmoothColumns);
        usize::from(self.layout.components.iter().any(smooth))
    }

    fn row(&mut self, y: usize, planes: &[Plane], out: &mut [u8]) {
        let layout = self.layout;
        let left = layout.window.x - layout.columns.start * layout.mcu_width;
        let components = &layout.components;
        let full_luma = components[0].upsample == Upsample::Repeat(1, 1);
        match (layout.stored, self.kind) {
            (Stored::Ycc, Kind::Rgb | Kind::Bgr)
                if full_luma
                    && left.is_multiple_of(2)
                    && components[1].upsample == components[2].upsample =>
            {
                let bgr = self.kind == Kind::Bgr;
                self.colors(y, left, planes, bgr, out);
            }
            (Stored::Ycc, Kind::Rgb | Kind::Bgr) => {
                // Pixels in pairs from an even one on; the first is dropped.
                self.spread(y, planes);
                let [luma, cb, cr] =
                    [0, 1, 2].map(|i| &full(planes, &self.lines.full, components, i, y)[left..]);
                let (cb, cr) = (Chroma::Each(cb), Chroma::Each(cr));
                Ycc { y: luma, cb, cr, out, bgr: self.kind == Kind::Bgr }.done_by(self.vectors);
            }
            (Stored::Ycck, _) => {
                self.spread(y, planes);
                let [luma, cb, cr, black] =
                    [0, 1, 2, 3].map(|i| &full(planes, &self.lines.full, components, i, y)[left..]);
                let (cb, cr) = (Chroma::Each(cb), Chroma::Each(cr));
                let pixels = &mut self.lines.pixels;
                pixels.resize(3 * layout.window.width, 0);
                Ycc { y: luma, cb, cr, out: pixels, bgr: false }.done_by(self.vectors);
                let rgb = pixels.as_chunks::<3>().0;
                for ((to, &[r, g, b]), &k) in out.as_chunks_mut::<4>().0.iter_mut().zip(rgb).zip(black) {
                    *to = [!r, !g, !b, k];
                }
            }
            _ => {
                self.spread(y, planes);
                let of = |i: usize| &full(planes, &self.lines.full, components, i, y)[left..];
                plain(layout.stored, self.kind, of, out);
            }
        }
    }

    /// Luma of full size and chroma that is upsampled on the way.
    fn colors(&mut self, y: usize, left: usize, planes: &[Plane], bgr: bool, out: &mut [u8]) {
        let layout = self.layout;
        let component = &layout.components[1];
        let luma = &planes[0].row(y)[left..];
        let [sums_cb, sums_cr] = &mut self.lines.sums;
        let (cb, cr) = match component.upsample {
            Upsample::Repeat(1, 1) => {
                (Chroma::Each(&planes[1].row(y)[left..]), Chroma::Each(&planes[2].row(y)[left..]))
            }
            Upsample::Repeat(2, down) => {
                let (y, left) = (y / down, left / 2);
                (Chroma::Two(&planes[1].row(y)[left..]), Chroma::Two(&planes[2].row(y)[left..]))
            }
            Upsample::SmoothRows | Upsample::Smooth => {
                let (near, far, round) = match component.upsample {
                    Upsample::SmoothRows => (y, y, [4, 8]),
                    _ => (y / 2, far(y, component.height), [8, 7]),
                };
                for (plane, sums) in planes[1..].iter().zip([&mut *sums_cb, &mut *sums_cr]) {
                    let width = layout.samples(component);
                    let (near, far) = (plane.row(near), plane.row(far));
                    Sums { near, far, width, out: sums }.done_by(self.vectors);
                }
                (Chroma::Smooth(&sums_cb[left / 2..], round), Chroma::Smooth(&sums_cr[left / 2..], round))
            }
            _ => {
                self.spread(y, planes);
                let [cb, cr] = [1, 2].map(|i| &self.lines.full[i][left..]);
                (Chroma::Each(cb), Chroma::Each(cr))
            }
        };
        Ycc { y: luma, cb, cr, out, bgr }.done_by(self.vectors);
    }

    /// Makes rows as wide as the image of all components that are not.
    fn spread(&mut self, y: usize, planes: &[Plane]) {
        let layout = self.layout;
        for (i, component) in layout.components.iter().enumerate().filter(|(_, c)| c.needed) {
            let width = layout.samples(component);
            let full = &mut self.lines.full[i];
            match component.upsample {
                Upsample::Repeat(1, 1) => {}
                Upsample::Repeat(across, down) => {
                    let row = &planes[i].row(y / down)[..width];
                    for (to, &sample) in full.chunks_exact_mut(across).zip(row) {
                        to.fill(sample);
                    }
                }
                Upsample::SmoothColumns => {
                    let (near, far) = (planes[i].row(y / 2), planes[i].row(far(y, component.height)));
                    let round = 1 + (y % 2) as u16;
                    for ((to, &near), &far) in full.iter_mut().zip(&near[..width]).zip(far) {
                        *to = ((3 * u16::from(near) + u16::from(far) + round) >> 2) as u8;
                    }
                }
                Upsample::SmoothRows => {
                    let row = planes[i].row(y);
                    smooth(&row[..width], full, |x| 4 * u16::from(row[x]), [4, 8]);
                }
                Upsample::Smooth => {
                    let (near, far) = (planes[i].row(y / 2), planes[i].row(far(y, component.height)));
                    let sum = |x: usize| 3 * u16::from(near[x]) + u16::from(far[x]);
                    smooth(&near[..width], full, sum, [8, 7]);
                }
            }
        }
    }
}

/// A component's row as wide as the image.
fn full<'a>(
    planes: &'a [Plane],
    lines: &'a [Vec<u8>; 4],
    components: &[Sized],
    i: usize,
    y: usize,
) -> &'a [u8] {
    if components[i].upsample == Upsample::Repeat(1, 1) { planes[i].row(y) } else { &lines[i] }
}

/// The row of chroma that is next nearest to a row of the image.
fn far(y: usize, height: usize) -> usize {
    if y.is_multiple_of(2) { (y / 2).saturating_sub(1) } else { (y / 2 + 1).min(height - 1) }
}

/// Two samples of each, in sixteenths.
fn smooth(row: &[u8], out: &mut [u8], sum: impl Fn(usize) -> u16, round: [u16; 2]) {
    let last = row.len() - 1;
    for (x, to) in out.as_chunks_mut::<2>().0.iter_mut().take(row.len()).enumerate() {
        let own = 3 * sum(x);
        let sides = [sum(x.saturating_sub(1)), sum((x + 1).min(last))];
        *to = [0, 1].map(|i| ((own + sides[i] + round[i]) >> 4) as u8);
    }
}

/// Conversions that are hardly more than copies.
fn plain<'a>(stored: Stored, kind: Kind, of: impl Fn(usize) -> &'a [u8], out: &mut [u8]) {
    match (stored, kind) {
        (Stored::Gray | Stored::Ycc, Kind::Gray) => out.copy_from_slice(&of(0)[..out.len()]),
        (Stored::Gray, _) => {
            for (to, &sample) in out.as_chunks_mut::<3>().0.iter_mut().zip(of(0)) {
                *to = [sample; 3];
            }
        }
        (Stored::Cmyk | Stored::Ycck, _) => {
            let inks = of(0).iter().zip(of(1)).zip(of(2)).zip(of(3));
            for (to, (((&c, &m), &y), &k)) in out.as_chunks_mut::<4>().0.iter_mut().zip(inks) {
                *to = [c, m, y, k];
            }
        }
        _ => {
            let rgb = of(0).iter().zip(of(1)).zip(of(2)).map(|((&r, &g), &b)| [r, g, b]);
            match kind {
                Kind::Gray => out.iter_mut().zip(rgb).for_each(|(to, rgb)| *to = luma(rgb)),
                Kind::Bgr => {
                    let pixels = out.as_chunks_mut::<3>().0.iter_mut();
                    pixels.zip(rgb).for_each(|(to, [r, g, b])| *to = [b, g, r]);
                }
                _ => out.as_chunks_mut::<3>().0.iter_mut().zip(rgb).for_each(|(to, rgb)| *to = rgb),
            }
        }
    }
}
