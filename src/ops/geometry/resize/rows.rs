//! Rows of the table for `kernels/resample.cu` and the kernel that makes its weights, and what these kernels share with
//! the host. It must not know operators.

use bytemuck::Pod;

use super::attributes::Target;
use super::geometry::Geometry;
use crate::cpu::resample::{AxisParameters, WindowShape, axis_parameters};
use crate::gpu::jpeg::sm::Planes;
use crate::gpu::layout::{DeviceType, Header, device_constants, device_struct, text_with};

/// Channels that one thread computes at once, at most.
pub(in crate::ops) const MAX_CHANNELS: usize = 4;

device_constants! {
    fn constants;

    /// Rows and columns of the output that a block makes, and its threads.
    pub(super) const TILE_H: usize as "int" = 16;
    pub(super) const TILE_W: usize as "int" = 32;
    pub(super) const THREADS: u32 as "int" = 128;
    /// Rows of bytes that are multiplied at once, in two steps.
    const ROWS_AT_ONCE: usize as "int" = 32;
    /// Zeros on each side of the weights of a pixel, where they are split.
    const SPLIT_PADDING: usize as "int" = 4;
    /// The most tiles that a block makes: it has room for so many.
    pub(super) const MAX_TILES: usize as "int" = 4;
    /// How source pixels are weighed: Axis::filter.
    const NEAREST: i32 as "int" = 0;
    const TRIANGULAR: i32 as "int" = 1;
    const GAUSSIAN: i32 as "int" = 2;
    const CUBIC: i32 as "int" = 3;
    const LANCZOS3: i32 as "int" = 4;
}

fn number_of(shape: WindowShape) -> i32 {
    match shape {
        WindowShape::Nearest => NEAREST,
        WindowShape::Triangular => TRIANGULAR,
        WindowShape::Gaussian => GAUSSIAN,
        WindowShape::Cubic => CUBIC,
        WindowShape::Lanczos3 => LANCZOS3,
    }
}

device_struct! {
    /// One axis: output pixel i has its centre at source coordinate start + i * scale + (the taps' middle).
    #[derive(PartialEq)]
    pub(in crate::ops) struct AxisRow as Axis {
        /// Coordinate of the first tap before rounding up.
        start: f32,
        /// Source pixels an output pixel.
        scale: f32,
        /// Table entries a source pixel.
        table_scale: f32,
        filter: i32,
        pub(super) taps: i32,
        /// Source pixels, output pixels.
        length: i32,
        pub(super) size: i32,
        /// The source pixel that coordinates count from.
        origin: i32,
        /// Whether its taps are in the image: pixels at its edges have the weights of what is beyond, too.
        pub(super) is_merged: i32,
        /// Whether weights are halves, for bytes; then taps are in the image.
        pub(super) is_split: i32,
        /// For each output pixel its first tap, then its weights: made before.
        pub(super) made: u64 = "float *",
    }
}

impl AxisRow {
    /// `size` pixels of an axis of `length` pixels.
    pub(super) fn new(parameters: AxisParameters, length: usize, size: usize) -> Self {
        let AxisParameters { shape, taps, start, scale, table_scale, origin } = parameters;
        let [taps, length, size, origin] = [taps, length, size, origin].map(|n| n as i32);
        Self {
            start,
            scale,
            table_scale,
            filter: number_of(shape),
            taps,
            length,
            size,
            origin,
            is_merged: 0,
            is_split: 0,
            made: 0,
        }
    }

    /// `length` pixels, each itself.
    pub(super) fn whole(length: usize) -> Self {
        let length = length as i32;
        Self {
            start: 0.0,
            scale: 1.0,
            table_scale: 0.0,
            filter: NEAREST,
            taps: 1,
            length,
            size: length,
            origin: 0,
            is_merged: 0,
            is_split: 0,
            made: 0,
        }
    }

    /// The same before its weights are made.
    pub(super) fn as_unmade(self) -> Self {
        Self { made: 0, ..self }
    }

    /// Whether a tile of rows is made of more pixels than are multiplied at once; in doubt it is.
    pub(super) fn has_many(&self) -> bool {
        // How far apart the first taps of the first and the last row are, rounded as the device may do it; the taps,
        // from an even pixel on.
        let apart = (TILE_H - 1) as f64 * f64::from(self.scale).abs() + 0.01 + 1e-6 * f64::from(self.length);
        apart.ceil() + f64::from(self.taps) + 1.0 > ROWS_AT_ONCE as f64
    }

    /// Bytes that are made of it: for each pixel its first tap and its weights, with some room around these where they
    /// are split.
    pub(super) fn made_bytes(&self) -> usize {
        let words = 1 + self.taps as usize + if self.is_split != 0 { 2 * SPLIT_PADDING } else { 0 };
        self.size as usize * size_of::<f32>() * words
    }
}

device_struct! {
    /// One image, or one channel of an image.
    pub(in crate::ops) struct ResampleRow as Resample {
        /// Of elements SRC.
        pub(super) src: u64 = "const void *",
        /// Of elements DST.
        pub(super) dst: u64 = "void *",
        /// In place of the source, or 0.
        pub(in crate::ops) planes: u64 = "const Planes *" of Planes,
        pub(super) y: AxisRow,
        pub(super) x: AxisRow,
        /// Elements between source rows.
        pub(super) pitch: u32,
        /// Elements between pixels of a row, in source and (resized only) output.
        pub(super) step: u32,
    }
}

impl ResampleRow {
    /// To make `target` of the image at `src` with interleaved channels.
    pub(in crate::ops) fn new(src: u64, dst: u64, geometry: &Geometry, target: &Target) -> Self {
        let axes = axis_parameters(geometry.size, target.size, target.roi, [target.filter; 2]);
        Self::of_axes(src, dst, geometry, target.size, axes)
    }

    /// The same, where the parameters of rows and columns are known.
    pub(super) fn of_axes(
        src: u64,
        dst: u64,
        geometry: &Geometry,
        size: [usize; 2],
        axes: [AxisParameters; 2],
    ) -> Self {
        let [y, x] = [0, 1].map(|d| AxisRow::new(axes[d], geometry.size[d], size[d]));
        let pitch = (geometry.size[1] * geometry.channels) as u32;
        Self { src, dst, planes: 0, y, x, pitch, step: geometry.channels as u32 }
    }
}

device_struct! {
    /// An image of which a window is normalized, too: rows of kernels with NORMALIZE.
    pub(in crate::ops) struct NormalizedRow as Normalized extends pub(in crate::ops) resample: ResampleRow {
        /// Height and width of the output.
        pub(in crate::ops) window: [i32; 2],
        /// Where it begins in the resized image.
        pub(in crate::ops) anchor: [i32; 2],
        pub(in crate::ops) mirror: i32,
        pub(in crate::ops) planar: i32,
        /// Of the output: at least as many as the source has.
        pub(in crate::ops) channels: i32,
        pub(in crate::ops) unused: i32,
        pub(in crate::ops) factor: [f32; MAX_CHANNELS],
        pub(in crate::ops) bias: [f32; MAX_CHANNELS],
        pub(in crate::ops) fill: [f32; MAX_CHANNELS],
    }
}

/// A row of a table for the kernel.
pub(in crate::ops) trait Resampled: Pod + DeviceType {
    /// What it makes pixels by.
    fn resample(&mut self) -> &mut ResampleRow;
    /// Rows and columns of the output.
    fn size(&self) -> [usize; 2];
}

impl Resampled for ResampleRow {
    fn resample(&mut self) -> &mut ResampleRow {
        self
    }
    fn size(&self) -> [usize; 2] {
        [&self.y, &self.x].map(|axis| axis.size as usize)
    }
}

impl Resampled for NormalizedRow {
    fn resample(&mut self) -> &mut ResampleRow {
        &mut self.resample
    }
    fn size(&self) -> [usize; 2] {
        self.window.map(|extent| extent as usize)
    }
}

device_struct! {
    /// What the kernel gets.
    pub(super) struct Params as Params {
        /// Tiles that a block makes, one below the other.
        pub(super) tiles: u32,
    }
}

/// What both kernels include.
pub(super) const HEADER: Header =
    Header { name: "resample", text: || text_with::<NormalizedRow, Params>(&constants()) };
