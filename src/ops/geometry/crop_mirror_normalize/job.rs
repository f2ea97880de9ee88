//! What `CropMirrorNormalize` does with a sample, worked out before anything runs. It must not know arguments.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::Order;
use crate::cpu::normalize::any_order::{Dimension, NormalizeAnyOrder};
use crate::cpu::normalize::tables::Table;
use crate::cpu::normalize::{Affine, Channel, Channels, Normalize, Normalized};
use crate::error::{Error, Result};
use crate::operator::shared::window::Window;
use crate::tensor::Shape;

/// What is done with samples: one, or all of a shape that differ at most in whether they are mirrored.
pub(in crate::ops) struct Job {
    /// In the input's order of dimensions.
    pub(super) window: Window,
    pub(super) mirror: bool,
    /// One per channel of the input, with DALI's arithmetic.
    pub(super) affine: Vec<Affine>,
    /// The same with a library's.
    pub(super) tables: Vec<Table>,
    /// One per channel of the output.
    pub(super) fill: Vec<f32>,
    /// What a device is given of these, when it was asked for.
    pub(super) per_channel: OnceLock<[Vec<f32>; 3]>,
}

/// The last job of a batch for samples that are not mirrored and for those that are, and the shapes it is for.
pub(in crate::ops) type Recent = [Option<(Shape, Arc<Job>)>; 2];

/// The window of one image with interleaved channels.
pub(in crate::ops) struct ImageWindow {
    /// Rows and columns.
    pub(in crate::ops) extent: [usize; 2],
    /// Row and column of its first pixel.
    pub(in crate::ops) anchor: [i32; 2],
    pub(in crate::ops) mirror: bool,
}

impl Job {
    /// Extents of the output.
    pub(in crate::ops) fn output_shape(&self, order: &Order) -> Shape {
        let mut extent = self.window.extent.clone();
        extent[order.channel] = self.fill.len();
        Shape::new(order.of(&extent))
    }

    /// The window in an image whose dimensions are rows, columns and channels.
    pub(in crate::ops) fn image_window(&self) -> Result<ImageWindow> {
        let anchor = |d: usize| {
            let anchor = self.window.anchor.get(d).copied().and_then(|anchor| i32::try_from(anchor).ok());
            anchor.ok_or_else(|| Error::invalid("a window is too far from its image"))
        };
        match self.window.extent.as_slice() {
            &[height, width, _] => Ok(ImageWindow {
                extent: [height, width],
                anchor: [anchor(0)?, anchor(1)?],
                mirror: self.mirror,
            }),
            other => Err(Error::internal(format!("a window of {} dimensions, expected 3", other.len()))),
        }
    }

    /// Images whose dimensions but the last three stay where they are: one image after the other.
    pub(super) fn images<S: Copy, A, T>(
        &self,
        channels: &[A],
        shape: &[usize],
        from: Channels,
        to: Channels,
        src: &[S],
        dst: &mut [T],
    ) -> Result<()>
    where
        A: Channel<S>,
        T: Normalized,
    {
        let frames = shape.len().saturating_sub(3);
        let rows = frames + usize::from(from == Channels::Planar);
        let normalize = self.normalize(channels, shape, rows, [from, to]);
        let image: usize = shape[frames..].iter().product();
        let size = normalize.window.iter().product::<usize>() * self.fill.len();
        for (i, part) in dst.chunks_exact_mut(size).enumerate() {
            match self.frame(i, &shape[..frames]) {
                Some(frame) => normalize.run(&src[frame * image..][..image], part)?,
                None => Normalize { image: [0, 0], ..normalize }.run(&[], part)?,
            }
        }
        Ok(())
    }

    /// Some rows of the window of one image with interleaved channels, as planes.
    pub(in crate::ops) fn rows<S: Copy, A, T>(
        &self,
        channels: &[A],
        shape: &[usize],
        rows: Range<usize>,
        src: &[S],
        dst: &mut [T],
    ) -> Result<()>
    where
        A: Channel<S>,
        T: Normalized,
    {
        let whole = self.normalize(channels, shape, 0, [Channels::Interleaved, Channels::Planar]);
        let ([top, left], [_, columns]) = (whole.anchor, whole.window);
        let anchor = [top.saturating_add(rows.start as i64), left];
        Normalize { anchor, window: [rows.len(), columns], ..whole }.run(src, dst)
    }

    /// The window of images whose rows are dimension `rows` of `shape`, and columns the next.
    fn normalize<'a, A>(
        &'a self,
        channels: &'a [A],
        shape: &[usize],
        rows: usize,
        [input, output]: [Channels; 2],
    ) -> Normalize<'a, A> {
        let (anchor, window) = (&self.window.anchor, &self.window.extent);
        Normalize {
            image: [shape[rows], shape[rows + 1]],
            input,
            anchor: [anchor[rows], anchor[rows + 1]],
            window: [window[rows], window[rows + 1]],
            output,
            mirror: self.mirror,
            channels,
            fill: &self.fill,
        }
    }

    /// What is done with each channel of the input, with DALI's arithmetic or with a library's.
    pub(in crate::ops) fn channels(&self) -> (&[Affine], &[Table]) {
        (&self.affine, &self.tables)
    }

    /// Which image of the source becomes image `i` of the output; `None` when it lies outside.
    fn frame(&self, mut i: usize, frames: &[usize]) -> Option<usize> {
        let (mut frame, mut stride) = (0, 1);
        for (axis, &len) in frames.iter().enumerate().rev() {
            let window = self.window.extent[axis];
            let place = self.window.anchor[axis].checked_add(i64::try_from(i % window).ok()?)?;
            frame += usize::try_from(place).ok().filter(|&place| place < len)? * stride;
            (i, stride) = (i / window, stride * len);
        }
        Some(frame)
    }

    pub(super) fn any_order<S: Copy, A, T>(
        &self,
        channels: &[A],
        shape: &Shape,
        order: &Order,
        src: &[S],
        dst: &mut [T],
    ) -> Result<()>
    where
        A: Channel<S>,
        T: Normalized,
    {
        let strides = shape.strides();
        let dimension = |&axis: &usize| Dimension {
            source: shape[axis],
            stride: strides[axis],
            anchor: self.window.anchor[axis],
            window: if axis == order.channel { self.fill.len() } else { self.window.extent[axis] },
            mirror: self.mirror && order.input_layout.find(b'W') == Some(axis),
        };
        NormalizeAnyOrder {
            dimensions: &order.axes.iter().map(dimension).collect::<Vec<_>>(),
            channel: order.axes.iter().position(|&axis| axis == order.channel).unwrap_or_default(),
            channels,
            fill: &self.fill,
        }
        .run(src, dst)
    }
}
