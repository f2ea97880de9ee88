//! Weighted sums of bands of one dimension on the device, with rows of the table for `kernels/bands.cu`: what mel
//! filters and cosine transforms are there.

use crate::error::Result;
use crate::gpu::layout::device_struct;
use crate::gpu::{KernelSpec, NoParams};
use crate::operator::GpuCx;

device_struct! {
    /// One band.
    #[derive(Debug, PartialEq)]
    pub(super) struct Band as Band {
        /// Of the elements that are summed.
        pub(super) first: u32,
        pub(super) count: u32,
        /// Of their weights.
        pub(super) start: u32,
        /// Multiplies the sum.
        pub(super) scale: f32,
    }
}

/// The bands that a dimension becomes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Bands {
    pub(super) bands: Vec<Band>,
    pub(super) weights: Vec<f32>,
}

/// Bands on their way to the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagedBands {
    bands: u64,
    weights: u64,
    count: u32,
}

impl Bands {
    /// Puts them on the way to the device.
    ///
    /// # Errors
    /// Unavailable, when there is no memory.
    pub(super) fn stage(&self, cx: &mut GpuCx<'_>) -> Result<StagedBands> {
        Ok(StagedBands {
            bands: cx.recorder.stage(bytemuck::cast_slice(&self.bands))?.address(),
            weights: cx.recorder.stage(bytemuck::cast_slice(&self.weights))?.address(),
            count: self.bands.len() as u32,
        })
    }
}

/// One sample: where it is and goes, elements of the output, extents of the dimension and of those behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) elements: usize,
    pub(super) extent: usize,
    pub(super) inner: usize,
}

device_struct! {
    /// A sample, as the kernel sees it.
    struct Row as Row {
        to: u64 = "float *",
        from: u64 = "const float *",
        bands: u64 = "const Band *" of Band,
        weights: u64 = "const float *",
        /// of the output
        elements: u64,
        /// of the dimension, and how many bands it becomes
        extent: u32,
        count: u32,
        /// elements of the dimensions behind it
        inner: u32,
        unused: u32,
    }
}

pub(super) fn kernel() -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("bands", "bands")
}

/// Records the sums.
///
/// # Errors
/// Those of [`GpuCx::launch`].
pub(super) fn run(cx: &mut GpuCx<'_>, samples: &[(Sums, StagedBands)]) -> Result<()> {
    let row = |(sums, bands): &(Sums, StagedBands)| Row {
        to: sums.to,
        from: sums.from,
        bands: bands.bands,
        weights: bands.weights,
        elements: sums.elements as u64,
        extent: sums.extent as u32,
        count: bands.count,
        inner: sums.inner as u32,
        unused: 0,
    };
    let rows: Vec<Row> = samples.iter().filter(|(sums, _)| sums.elements > 0).map(row).collect();
    let most = samples.iter().map(|(sums, _)| sums.elements).max().unwrap_or_default();
    cx.launch(&kernel(), most, &NoParams::default(), &rows)
}
