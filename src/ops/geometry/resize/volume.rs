//! Volumes in `Resize`: where their dimensions are in a sample, and one sample's work.

use super::attributes::{ResizeAttributes, Target};
use crate::cpu::convert::ConvertSat;
use crate::cpu::resample::{self, Output, VolumePlan};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::operator::SampleInputs;
use crate::tensor::{DType, Element, Layout, Shape, ValueType, View, ViewMut};

/// Whether samples of this layout have a depth.
pub(in crate::ops) fn is_volume(layout: Layout) -> bool {
    layout.find(b'D').is_some()
}

/// The dimension of the depth in a layout where height and width follow it: DHWC, CDHW, frames of them.
fn depth_axis(layout: Layout, ndim: usize) -> Result<usize> {
    match [b'D', b'H', b'W'].map(|letter| layout.find(letter)) {
        [Some(d), Some(h), Some(w)] if h == d + 1 && w == h + 1 && w < ndim => Ok(d),
        _ => Err(Error::invalid(format!(
            "layout `{layout}` with {ndim} dimensions, expected depth, height and width one behind the other"
        ))),
    }
}

/// The type of a resized volume.
pub(super) fn infer(input: &ValueType, layout: Layout, attributes: &ResizeAttributes) -> Result<ValueType> {
    let mut ty = input.clone();
    ty.dtype = input.dtype.map(|dtype| attributes.output_dtype(dtype)).transpose()?;
    if let Some(dims) = &mut ty.dims {
        let axis = depth_axis(layout, dims.len())?;
        dims[axis..axis + 3].copy_from_slice(&attributes.known_size::<3>());
    }
    Ok(ty)
}

/// One sample's resize: volumes of the same size, one behind the other.
pub(in crate::ops) struct VolumeJob {
    axis: usize,
    /// Volumes in the sample.
    pub(super) count: usize,
    /// Depth, height and width of the input.
    pub(super) size: [usize; 3],
    /// Elements of a voxel.
    pub(super) channels: usize,
    pub(super) target: Target<3>,
}

impl VolumeJob {
    /// The work on one sample.
    ///
    /// # Errors
    /// When it is no volume or cannot be resized as the arguments want.
    pub(super) fn new(
        sample: &SampleInputs<'_>,
        layout: Layout,
        attributes: &ResizeAttributes,
    ) -> Result<Self> {
        let shape = sample.input(0)?.shape;
        let axis = depth_axis(layout, shape.len())?;
        let size = [shape[axis], shape[axis + 1], shape[axis + 2]];
        Self::at(shape, axis, attributes.target(sample, size)?)
    }

    /// The work on a sample of shape `shape` whose volumes begin at dimension `axis`.
    ///
    /// # Errors
    /// When they cannot be resized to `target`.
    pub(in crate::ops) fn at(shape: &Shape, axis: usize, target: Target<3>) -> Result<Self> {
        let size = [shape[axis], shape[axis + 1], shape[axis + 2]];
        let channels = shape[axis + 3..].iter().product();
        VolumePlan::check(size, channels, target.size, target.roi, target.filter)?;
        Ok(Self { axis, count: shape[..axis].iter().product(), size, channels, target })
    }

    /// The output for an input of shape `shape`.
    pub(super) fn output_shape(&self, shape: &Shape) -> Shape {
        let mut dims = shape.to_vec();
        dims[self.axis..self.axis + 3].copy_from_slice(&self.target.size);
        Shape::from(dims)
    }

    /// What it is expected to take.
    pub(in crate::ops) fn effort(&self) -> Effort {
        let target = &self.target;
        let Effort { time, scratch } =
            resample::volume_effort(self.size, self.channels, target.size, target.roi, target.filter);
        Effort { time: time.saturating_mul(u32::try_from(self.count).unwrap_or(u32::MAX)), scratch }
    }

    /// Resizes one sample.
    ///
    /// # Errors
    /// When nobody waits any more; internal, when a buffer has an unplanned type or size.
    pub(in crate::ops) fn run(
        &self,
        input: &View<'_>,
        output: &mut ViewMut<'_>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        match (input.dtype, output.dtype) {
            (DType::U8, DType::U8) => self.run_as::<u8, u8>(input, output, watch),
            (DType::I16, DType::I16) => self.run_as::<i16, i16>(input, output, watch),
            (DType::U16, DType::U16) => self.run_as::<u16, u16>(input, output, watch),
            (DType::U8, DType::F32) => self.run_as::<u8, f32>(input, output, watch),
            (DType::I16, DType::F32) => self.run_as::<i16, f32>(input, output, watch),
            (DType::U16, DType::F32) => self.run_as::<u16, f32>(input, output, watch),
            (DType::F32, DType::F32) => self.run_as::<f32, f32>(input, output, watch),
            (from, to) => Err(Error::internal(format!("resize from {from} to {to} was not planned"))),
        }
    }

    fn run_as<S, T>(&self, input: &View<'_>, output: &mut ViewMut<'_>, watch: &Watch<'_>) -> Result<()>
    where
        S: Element + ConvertSat<f32> + ConvertSat<T>,
        T: Output,
    {
        let target = &self.target;
        let plan = VolumePlan::new(self.size, self.channels, target.size, target.roi, target.filter)?;
        let [from, to] = [self.size, target.size].map(|size| size.iter().product::<usize>() * self.channels);
        let sources = input.as_slice::<S>()?.chunks_exact(from);
        for (src, dst) in sources.zip(output.as_slice_mut::<T>()?.chunks_exact_mut(to)) {
            plan.run(src, dst, watch)?;
        }
        Ok(())
    }
}
