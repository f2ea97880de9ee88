//! From a library's pixels to the asked output: orientation and window as a strided view, then colour and type. It
//! must not know file formats.

use std::any::TypeId;

use super::color::{Level, Luma, Stored, rescale, studio, studio_range};
use super::pillow;
use super::{ColorSpace, ImageInfo, Job, Window};
use crate::error::{Error, Result};
use crate::tensor::{DType, elements_mut};

/// Where output pixels are among stored ones: pixel (x, y) is stored at `start + x * step_x + y * step_y`.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Where the first pixel of the output is stored, in pixels.
    pub start: isize,
    /// How far the next pixel of a row is.
    pub step_x: isize,
    /// How far the next row is.
    pub step_y: isize,
    /// Pixels of a row of the output.
    pub width: usize,
}

impl View {
    /// The view of `window` (or of everything) in an image.
    ///
    /// # Errors
    /// When the window is not inside the image.
    pub fn new(info: &ImageInfo, window: Option<Window>) -> Result<Self> {
        let window = window.unwrap_or(Window { x: 0, y: 0, width: info.width, height: info.height });
        let fits =
            |start: usize, size: usize, limit: usize| start.checked_add(size).is_some_and(|end| end <= limit);
        if !fits(window.x, window.width, info.width) || !fits(window.y, window.height, info.height) {
            return Err(Error::invalid(format!(
                "window of {} x {} pixels at ({}, {}) is not inside the image of {} x {} pixels",
                window.width, window.height, window.x, window.y, info.width, info.height
            )));
        }
        // Sizes passed the pixel limit, so none of this overflows.
        let (stored_width, stored_height) = info.stored_size();
        let turn = info.orientation;
        let (column_start, column_step) = match turn.flips_x() {
            true => (stored_width as isize - 1, -1),
            false => (0, 1),
        };
        let (row_start, row_step) = match turn.flips_y() {
            true => ((stored_height as isize - 1) * stored_width as isize, -(stored_width as isize)),
            false => (0, stored_width as isize),
        };
        let (step_x, step_y) =
            if turn.transposes() { (row_step, column_step) } else { (column_step, row_step) };
        let start = column_start + row_start + window.x as isize * step_x + window.y as isize * step_y;
        Ok(Self { start, step_x, step_y, width: window.width })
    }
}

/// The part of a stored picture that `window` shows of it (or everything), before its orientation is applied. The
/// window must be inside the image.
pub fn stored_window(info: &ImageInfo, window: Option<Window>) -> Window {
    let (width, height) = info.stored_size();
    let Some(seen) = window else { return Window { x: 0, y: 0, width, height } };
    let turn = info.orientation;
    let (columns, rows) = ((seen.x, seen.width), (seen.y, seen.height));
    let (columns, rows) = if turn.transposes() { (rows, columns) } else { (columns, rows) };
    let mirrored = |flips: bool, (first, length): (usize, usize), side: usize| {
        if flips { side.saturating_sub(first.saturating_add(length)) } else { first }
    };
    Window {
        x: mirrored(turn.flips_x(), columns, width),
        y: mirrored(turn.flips_y(), rows, height),
        width: columns.1,
        height: rows.1,
    }
}

/// Samples of a decoded file, interleaved, as stored.
pub(super) enum Samples<'a> {
    /// 8-bit, full intensity 255.
    U8(&'a [u8]),
    /// 16-bit, full intensity 65535.
    U16(&'a [u16]),
    /// Floating point, full intensity 1.
    F32(&'a [f32]),
}

/// A decoded file.
pub(super) struct Picture<'a> {
    /// All samples.
    pub(super) samples: Samples<'a>,
    /// Samples of one pixel: 1 gray, 2 gray and another, 3 RGB, 4 RGB and another.
    pub(super) channels: usize,
    /// How the file's format turns RGB to gray.
    pub(super) luma: Luma,
}

impl Picture<'_> {
    /// Writes what `job` asks for to `out`, whose size was checked.
    pub(super) fn write(&self, job: &Job<'_>, out: &mut [u8]) -> Result<()> {
        match self.samples {
            Samples::U8(samples) => self.write_as(samples, job, out),
            Samples::U16(samples) => self.write_as(samples, job, out),
            Samples::F32(samples) => self.write_as(samples, job, out),
        }
    }

    fn write_as<S: Stored>(&self, samples: &[S], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
        let (width, height) = job.info.stored_size();
        if samples.len() != width * height * self.channels {
            return Err(Error::internal(format!(
                "{} samples were decoded, expected {width} x {height} x {}",
                samples.len(),
                self.channels
            )));
        }
        match job.options.dtype {
            DType::U8 => self.convert::<S, u8>(samples, job, elements_mut(out)?),
            DType::I8 => self.convert::<S, i8>(samples, job, elements_mut(out)?),
            DType::U16 => self.convert::<S, u16>(samples, job, elements_mut(out)?),
            DType::I16 => self.convert::<S, i16>(samples, job, elements_mut(out)?),
            DType::U32 => self.convert::<S, u32>(samples, job, elements_mut(out)?),
            DType::I32 => self.convert::<S, i32>(samples, job, elements_mut(out)?),
            DType::F32 => self.convert::<S, f32>(samples, job, elements_mut(out)?),
            other => Err(Error::internal(format!("an image is written as `{other}`"))),
        }
    }

    /// Colours are picked in the stored type and converted row by row: a loop for every pair of types and every colour
    /// would be hundreds.
    fn convert<S: Stored, D: Level>(&self, samples: &[S], job: &Job<'_>, out: &mut [D]) -> Result<()> {
        let (options, view) = (job.options, job.view);
        let channels = options.color.channels(job.info.channels);
        if options.color == ColorSpace::YCbCr {
            let range = studio_range::<S, D>();
            let pick = |view, row: &mut [f32]| self.studio(samples, view, range, row);
            return by_rows(view, channels, out, pick, D::from_f32);
        }
        let pick = |view, row: &mut [S]| self.pick(samples, view, job, row);
        match as_stored(out) {
            Ok(out) => pick(view, out),
            Err(out) if options.as_pillow => by_rows(view, channels, out, pick, pillow::narrowed(&job.info)),
            Err(out) => by_rows(view, channels, out, pick, rescale),
        }
    }

    /// Picks the asked colours of a view in the type that is stored.
    #[inline(never)]
    fn pick<S: Stored>(&self, samples: &[S], view: View, job: &Job<'_>, out: &mut [S]) -> Result<()> {
        let (color, luma, kept) = (job.options.color, self.luma, job.info.channels);
        match self.channels {
            1 => gather(samples, view, color, luma, out, |[v]: [S; 1]| [v; 3], kept),
            2 => gather(samples, view, color, luma, out, |[v, _]: [S; 2]| [v; 3], kept),
            3 => gather(samples, view, color, luma, out, |rgb: [S; 3]| rgb, kept),
            4 => gather(samples, view, color, luma, out, |[r, g, b, _]: [S; 4]| [r, g, b], kept),
            other => Err(pixels_of(other)),
        }
    }

    /// Converts the pixels of a view to studio range.
    #[inline(never)]
    fn studio<S: Stored>(&self, samples: &[S], view: View, range: [f32; 2], out: &mut [f32]) -> Result<()> {
        match self.channels {
            1 => each(samples, view, out, |[v]: [S; 1]| studio([v; 3], range)),
            2 => each(samples, view, out, |[v, _]: [S; 2]| studio([v; 3], range)),
            3 => each(samples, view, out, |rgb: [S; 3]| studio(rgb, range)),
            4 => each(samples, view, out, |[r, g, b, _]: [S; 4]| studio([r, g, b], range)),
            other => return Err(pixels_of(other)),
        }
        Ok(())
    }
}

fn pixels_of(samples: usize) -> Error {
    Error::unsupported(format!("pixels of {samples} samples, expected 1 to 4"))
}

/// The output as elements of the stored type, if that is its type.
fn as_stored<S: Stored, D: Level>(out: &mut [D]) -> std::result::Result<&mut [S], &mut [D]> {
    if TypeId::of::<S>() == TypeId::of::<D>() { Ok(bytemuck::cast_slice_mut(out)) } else { Err(out) }
}

/// Lets `pick` write a row of the view after the other, and writes `to` of each of its elements to `out`, which has so
/// many `channels`.
fn by_rows<T: bytemuck::Pod, D: Level>(
    view: View,
    channels: usize,
    out: &mut [D],
    mut pick: impl FnMut(View, &mut [T]) -> Result<()>,
    to: impl Fn(T) -> D,
) -> Result<()> {
    let length = view.width * channels;
    let mut picked = vec![T::zeroed(); length];
    for (y, row) in out.chunks_exact_mut(length).enumerate() {
        pick(View { start: view.start + y as isize * view.step_y, ..view }, &mut picked)?;
        row.iter_mut().zip(&picked).for_each(|(place, &value)| *place = to(value));
    }
    Ok(())
}

/// Picks the loop for the asked colour: `rgb` makes RGB of a pixel, `kept` samples of it are the file's channels.
fn gather<S: Stored, const N: usize>(
    samples: &[S],
    view: View,
    color: ColorSpace,
    luma: Luma,
    out: &mut [S],
    rgb: impl Fn([S; N]) -> [S; 3],
    kept: usize,
) -> Result<()> {
    match color {
        ColorSpace::Rgb => each(samples, view, out, rgb),
        ColorSpace::Bgr => each(samples, view, out, |p| {
            let [r, g, b] = rgb(p);
            [b, g, r]
        }),
        ColorSpace::Gray if N <= 2 => each(samples, view, out, |p| [rgb(p)[0]]),
        ColorSpace::Gray => each(samples, view, out, |p| [S::luma(luma, rgb(p))]),
        ColorSpace::Any if kept == N => each(samples, view, out, |p: [S; N]| p),
        // Files whose library gives more channels than they have: gray palettes, transparent colours.
        ColorSpace::Any if kept == 1 => each(samples, view, out, |p: [S; N]| [p[0]]),
        ColorSpace::Any if kept == 3 && N == 4 => each(samples, view, out, rgb),
        ColorSpace::Any => {
            return Err(Error::internal(format!("an image of {kept} channels was decoded to {N} channels")));
        }
        ColorSpace::YCbCr => return Err(Error::internal("studio range is no choice of samples")),
    }
    Ok(())
}

/// Writes `f` of every pixel of the view, in the output's order.
#[inline]
fn each<S: Copy, D: Copy, const N: usize, const M: usize>(
    samples: &[S],
    view: View,
    out: &mut [D],
    f: impl Fn([S; N]) -> [D; M],
) {
    let ((pixels, _), (written, _)) = (samples.as_chunks::<N>(), out.as_chunks_mut::<M>());
    for (y, row) in written.chunks_exact_mut(view.width).enumerate() {
        let start = view.start + y as isize * view.step_y;
        if view.step_x == 1 {
            let start = start as usize;
            for (to, from) in row.iter_mut().zip(&pixels[start..start + view.width]) {
                *to = f(*from);
            }
        } else {
            for (x, to) in row.iter_mut().enumerate() {
                *to = f(pixels[(start + x as isize * view.step_x) as usize]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Orientation};
    use super::*;

    #[test]
    fn a_window_of_a_turned_picture_is_a_part_of_the_stored_one() {
        for orientation in (1..=8).map(Orientation::from_exif) {
            let whole = ImageInfo {
                format: Format::Jpeg,
                width: 11,
                height: 7,
                channels: 3,
                bit_depth: 8,
                orientation,
                halves: true,
            };
            let (width, _) = whole.stored_size();
            for window in [None, Some(Window { x: 2, y: 1, width: 5, height: 4 })] {
                let part = stored_window(&whole, window);
                let cut = window.map_or(whole, |w| ImageInfo { width: w.width, height: w.height, ..whole });
                assert_eq!(cut.stored_size(), (part.width, part.height));
                let (seen, stored) = (View::new(&whole, window).unwrap(), View::new(&cut, None).unwrap());
                for (x, y) in
                    (0..cut.height as isize).flat_map(|y| (0..seen.width as isize).map(move |x| (x, y)))
                {
                    let at = |view: &View| (view.start + x * view.step_x + y * view.step_y) as usize;
                    let (row, column) = (at(&stored) / part.width, at(&stored) % part.width);
                    assert_eq!(
                        at(&seen),
                        (part.y + row) * width + part.x + column,
                        "{orientation:?} ({x}, {y})"
                    );
                }
            }
        }
    }
}
