//! The inner loops of `CropMirrorNormalize`: a window of an image, optionally mirrored, normalised per channel, stored
//! with interleaved channels or as planes. It must not know operators or how the window and the arguments came about.

pub mod any_order;
mod loops;
pub mod tables;

use std::ops::Range;

use half::f16;

use crate::cpu::convert::ConvertSat;
use crate::error::{Error, Result};
use loops::{Stage, contiguous, keep3, split3, strided};

/// `(value - mean) * factor`, in float32: what DALI's CPU operator computes for one channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    mean: f32,
    factor: f32,
}

impl Affine {
    /// Factor and bias of `value * factor + bias`: what DALI's GPU operator computes, with one rounding.
    pub fn factor_and_bias(self) -> (f32, f32) {
        (self.factor, -self.mean * self.factor)
    }
}

/// What is done with the pixels of one channel, of type `S`.
pub trait Channel<S>: Copy {
    /// A normalised pixel.
    fn apply(self, value: S) -> f32;
}

impl<S: ConvertSat<f32>> Channel<S> for Affine {
    #[inline(always)]
    fn apply(self, value: S) -> f32 {
        (value.convert_sat() - self.mean) * self.factor
    }
}

/// `scale * (value - mean) / std + shift` in the form that is computed; its two constants are made in double precision
/// and rounded once, as DALI does.
pub fn affine(mean: f32, std: f32, scale: f32, shift: f32) -> Affine {
    let [mean, std, scale, shift] = [mean, std, scale, shift].map(f64::from);
    Affine { mean: (-shift).mul_add(std / scale, mean) as f32, factor: (scale / std) as f32 }
}

/// A type that normalised pixels can be stored as.
pub trait Normalized: bytemuck::Pod {
    /// Rounds halves away from zero and saturates.
    fn from_pixel(value: f32) -> Self;
    /// DALI casts fill values as C++ does on x86: a fraction is dropped and integers wrap around.
    fn from_fill(value: f32) -> Self;
}

macro_rules! normalized {
    ($($type:ty, |$value:ident| $fill:expr);*) => { $(
        impl Normalized for $type {
            #[inline(always)]
            fn from_pixel(value: f32) -> Self {
                value.convert_sat()
            }
            fn from_fill($value: f32) -> Self {
                $fill
            }
        }
    )* };
}
normalized!(f32, |v| v; f16, |v| v.convert_sat(); u8, |v| wrapped(v) as u8; i8, |v| wrapped(v) as i8);

/// The integer part of `value` up to a multiple of 256; 0 when there is none.
fn wrapped(value: f32) -> i16 {
    (value.trunc() % 256.0) as i16
}

/// Where the channels of an image are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// HWC: next to each other.
    Interleaved,
    /// CHW: one plane after the other.
    Planar,
}

/// Crops, mirrors and normalises images of one size.
#[derive(Debug, Clone, Copy)]
pub struct Normalize<'a, A> {
    /// Height and width of the source, in pixels.
    pub image: [usize; 2],
    /// Channel order of the source.
    pub input: Channels,
    /// Row and column of the window's first pixel in the source; the window may leave it on any side.
    pub anchor: [i64; 2],
    /// Height and width of the window, and of the output, in pixels.
    pub window: [usize; 2],
    /// Channel order of the output.
    pub output: Channels,
    /// Whether columns are reversed, those outside of the source too.
    pub mirror: bool,
    /// One per channel of the source.
    pub channels: &'a [A],
    /// One per channel of the output, which has at least as many as the source: the value of pixels outside of the
    /// source and of surplus channels. Not normalised, and converted by [`Normalized::from_fill`].
    pub fill: &'a [f32],
}

impl<A: Copy> Normalize<'_, A> {
    /// Writes the window of `src` to `dst`, both dense. The source is uint8, int16, uint16, int32, float or float16,
    /// the output float, float16, uint8 or int8.
    ///
    /// # Errors
    /// When a slice does not have the size that the fields say.
    pub fn run<S, T>(&self, src: &[S], dst: &mut [T]) -> Result<()>
    where
        S: Copy,
        A: Channel<S>,
        T: Normalized,
    {
        self.check(volume(self.image, self.channels.len()), src.len(), dst.len())?;
        let (width, mut stage) = (self.image[1], Stage::new());
        for y in 0..self.window[0] {
            match (self.source_row(y), self.input) {
                (Some(row), Channels::Interleaved) => {
                    let row_len = width * self.channels.len();
                    self.pixels(y, &src[row * row_len..][..row_len], dst, &mut stage);
                }
                (Some(row), Channels::Planar) => {
                    let plane = self.image[0] * width;
                    for (c, &channel) in self.channels.iter().enumerate() {
                        let row = (&src[c * plane + row * width..][..width], 1);
                        self.channel([y, c], row, channel, dst, &mut stage);
                    }
                    self.fill_rest(y, dst);
                }
                (None, _) => self.fill_row(y, dst),
            }
        }
        Ok(())
    }

    /// Writes the output row that source row `row` becomes, if it does: for rows that are made one by one. `src` holds
    /// the row's pixels with interleaved channels whatever `input` says, `dst` the whole output. Output rows that lie
    /// outside of the source are not written.
    ///
    /// # Errors
    /// When a slice does not have the size that the fields say.
    pub fn run_row<S, T>(&self, row: usize, src: &[S], dst: &mut [T]) -> Result<()>
    where
        S: Copy,
        A: Channel<S>,
        T: Normalized,
    {
        self.check(self.image[1].checked_mul(self.channels.len()), src.len(), dst.len())?;
        let y = i64::try_from(row).ok().and_then(|row| row.checked_sub(self.anchor[0]));
        let y = y.and_then(|y| usize::try_from(y).ok()).filter(|&y| y < self.window[0]);
        if let Some(y) = y {
            self.pixels(y, src, dst, &mut Stage::new());
        }
        Ok(())
    }

    fn check(&self, expected_src: Option<usize>, src: usize, dst: usize) -> Result<()> {
        let expected_dst = volume(self.window, self.fill.len());
        if expected_src == Some(src) && expected_dst == Some(dst) && self.fill.len() >= self.channels.len() {
            return Ok(());
        }
        Err(Error::internal(format!(
            "cannot normalize a window of {:?} pixels and {} channels of an image of {:?} pixels and {} channels: the \
             buffers have {src} and {dst} elements",
            self.window,
            self.fill.len(),
            self.image,
            self.channels.len()
        )))
    }

    fn source_row(&self, y: usize) -> Option<usize> {
        let row = self.anchor[0].checked_add(i64::try_from(y).ok()?)?;
        usize::try_from(row).ok().filter(|&row| row < self.image[0])
    }

    /// Window columns that lie inside of the source, and the source column of the first one.
    fn columns(&self) -> (Range<usize>, usize) {
        let (anchor, image) = (self.anchor[1], self.image[1] as i64);
        let clamp = |x: i64| x.clamp(0, self.window[1] as i64) as usize;
        let range = clamp(anchor.saturating_neg())..clamp(image.saturating_sub(anchor));
        if range.is_empty() { (0..0, 0) } else { (range, anchor.max(0) as usize) }
    }

    /// [`Normalize::columns`] of the output: after mirroring.
    fn output_columns(&self) -> Range<usize> {
        let (range, width) = (self.columns().0, self.window[1]);
        if self.mirror { width - range.end..width - range.start } else { range }
    }

    /// Output row `y` from a source row of interleaved channels.
    fn pixels<S, T>(&self, y: usize, row: &[S], dst: &mut [T], stage: &mut Stage)
    where
        S: Copy,
        A: Channel<S>,
        T: Normalized,
    {
        let channels = self.channels.len();
        let (columns, first) = self.columns();
        let src = &row[first * channels..][..columns.len() * channels];
        let out = self.output_columns();
        let (height, width) = (self.window[0], self.window[1]);
        match (self.output, self.channels) {
            (Channels::Planar, &[a, b, c]) if self.fill.len() >= 3 && height * width > 0 => {
                let mut planes = dst.chunks_exact_mut(height * width);
                if let (Some(p), Some(q), Some(r)) = (planes.next(), planes.next(), planes.next()) {
                    let planes = [p, q, r].map(|plane| &mut plane[y * width..][out.clone()]);
                    split3(src, planes, [a, b, c], self.mirror, stage);
                }
            }
            (Channels::Interleaved, &[a, b, c]) if self.fill.len() == 3 => {
                let dst = &mut dst[y * width * 3..][out.start * 3..out.end * 3];
                keep3(src, dst, [a, b, c], self.mirror, stage);
            }
            _ => {
                for (c, &channel) in self.channels.iter().enumerate() {
                    let row = (&row[c.min(row.len())..], channels);
                    self.channel([y, c], row, channel, dst, stage);
                }
            }
        }
        self.fill_rest(y, dst);
    }

    /// Channel `c` of output row `y`, from the elements of `row` that are `step` apart.
    fn channel<S, T>(
        &self,
        [y, c]: [usize; 2],
        (row, step): (&[S], usize),
        channel: A,
        dst: &mut [T],
        stage: &mut Stage,
    ) where
        S: Copy,
        A: Channel<S>,
        T: Normalized,
    {
        let (columns, first) = self.columns();
        if columns.is_empty() {
            return;
        }
        let src = &row[first * step..];
        let (start, out_step) = self.place(y, c);
        let out = self.output_columns();
        let dst = &mut dst[start + out.start * out_step..];
        let dst = &mut dst[..(out.len() - 1) * out_step + 1];
        if step == 1 && out_step == 1 {
            contiguous(&src[..out.len()], dst, channel, self.mirror, stage);
        } else {
            strided((src, step), (dst, out_step), channel, self.mirror, stage);
        }
    }

    /// Where channel `c` of output row `y` starts, and how far apart its elements are.
    fn place(&self, y: usize, c: usize) -> (usize, usize) {
        let [height, width] = self.window;
        match self.output {
            Channels::Planar => ((c * height + y) * width, 1),
            Channels::Interleaved => (y * width * self.fill.len() + c, self.fill.len()),
        }
    }

    /// Fills what the source does not give of output row `y`.
    fn fill_rest<T: Normalized>(&self, y: usize, dst: &mut [T]) {
        let inside = self.output_columns();
        for c in 0..self.fill.len() {
            if c < self.channels.len() {
                self.fill_columns(y, c, 0..inside.start, dst);
                self.fill_columns(y, c, inside.end..self.window[1], dst);
            } else {
                self.fill_columns(y, c, 0..self.window[1], dst);
            }
        }
    }

    fn fill_row<T: Normalized>(&self, y: usize, dst: &mut [T]) {
        for c in 0..self.fill.len() {
            self.fill_columns(y, c, 0..self.window[1], dst);
        }
    }

    fn fill_columns<T: Normalized>(&self, y: usize, c: usize, columns: Range<usize>, dst: &mut [T]) {
        if columns.is_empty() {
            return;
        }
        let (start, step) = self.place(y, c);
        let value = T::from_fill(self.fill[c]);
        for to in dst.iter_mut().skip(start + columns.start * step).step_by(step).take(columns.len()) {
            *to = value;
        }
    }
}

fn volume(extent: [usize; 2], channels: usize) -> Option<usize> {
    extent[0].checked_mul(extent[1])?.checked_mul(channels)
}
