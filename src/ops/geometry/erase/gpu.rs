//! `Erase` on a device: whole samples are copied, then every region of every sample is filled. Two launches.

use super::{Erase, Job};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::{DType, Layout, Shape};

/// Dimensions of a region after those are joined that lie together.
const MAX_AXES: usize = 6;

device_struct! {
    #[derive(Debug, PartialEq, Eq)]
    struct Axis as Axis {
        extent: u64,
        /// distance of neighbours, in elements of the sample
        stride: u64,
    }
}

device_struct! {
    /// A region of a sample, as `kernels/erase.cu` sees it.
    #[derive(Debug)]
    struct Row as Row {
        /// the sample
        to: u64 = "TO *",
        fill: u64 = "const TO *",
        /// how many, one for each position of a dimension
        fill_values: u64,
        /// elements of the sample that have the same one
        fill_repeat: u64,
        /// of the region, in elements of the sample
        first: u64,
        /// of the region
        elements: u64,
        axes: u64,
        /// innermost first
        axis: [Axis; MAX_AXES],
    }
}

fn kernel(dtype: DType) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("erase", "erase").dtype("TO", dtype.bits())
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    [DType::U8, DType::U16, DType::U32, DType::U64].map(kernel).into()
}

pub(super) fn prepare(gpu: &Gpu, dtype: DType) -> Result<()> {
    gpu.kernel(&kernel(dtype)).map(drop)
}

impl Erase {
    /// Records the work of all live samples.
    pub(super) fn record(&self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let desc = io.inputs().desc(0)?;
        let size = desc.dtype.size();
        let rows = io.rows(|sample| {
            let shape = sample.input(0)?.shape;
            let job = self.jobs.get(sample.index()).ok_or_else(|| Error::internal("a sample has no job"))?;
            let mut rows = rows(job, shape)?;
            if !rows.is_empty() {
                let bytes = job.fill.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(size));
                let fill: Vec<u8> = bytes.collect();
                let fill = cx.recorder.stage(&fill)?.address();
                let (to, repeat) = (sample.target(0)?, repeat(shape, desc.layout));
                for row in &mut rows {
                    (row.to, row.fill) = (to, fill);
                    (row.fill_values, row.fill_repeat) = (job.fill.len() as u64, repeat);
                }
            }
            Ok(((sample.output(0)?.clone(), sample.inputs.device(0)?.clone()), rows))
        });
        let (copies, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        cx.copy(&copies)?;
        let rows = rows.concat();
        let most = rows.iter().map(|row| row.elements).max().unwrap_or_default();
        cx.launch(&kernel(desc.dtype), most as usize, &NoParams::default(), &rows)
    }
}

/// Elements of a sample of shape `shape` that have the same channel.
fn repeat(shape: &Shape, layout: Layout) -> u64 {
    let behind = layout.find(b'C').and_then(|channel| shape.get(channel + 1..)).unwrap_or_default();
    behind.iter().map(|&extent| extent as u64).product()
}

/// The regions of a sample that have elements, without addresses and fill values.
fn rows(job: &Job, shape: &Shape) -> Result<Vec<Row>> {
    if shape.volume()? == 0 {
        return Ok(Vec::new());
    }
    let with_elements = job.regions.iter().filter(|region| region.iter().all(|&(from, to)| from < to));
    with_elements.map(|region| row(region, shape)).collect()
}

fn row(region: &[(usize, usize)], shape: &Shape) -> Result<Row> {
    let mut row: Row = bytemuck::Zeroable::zeroed();
    let mut axes: Vec<Axis> = Vec::with_capacity(region.len());
    row.elements = 1;
    for (&(from, to), stride) in region.iter().zip(shape.strides()).rev() {
        let (extent, stride) = ((to - from) as u64, stride as u64);
        row.first += from as u64 * stride;
        row.elements *= extent;
        match axes.last_mut() {
            _ if extent == 1 => {}
            // Neighbours begin where the inner dimension, taken whole, ends.
            Some(inner) if inner.extent * inner.stride == stride => inner.extent *= extent,
            _ => axes.push(Axis { extent, stride }),
        }
    }
    let slots = row.axis.get_mut(..axes.len()).ok_or_else(|| {
        Error::unsupported(format!(
            "a region of {} dimensions that cannot be joined, expected at most {MAX_AXES} on a GPU",
            axes.len()
        ))
    })?;
    slots.copy_from_slice(&axes);
    row.axes = axes.len() as u64;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(region: &[(usize, usize)], shape: &[usize]) -> (u64, u64, Vec<(u64, u64)>) {
        let row = row(region, &Shape::new(shape)).unwrap();
        let axes = row.axis[..row.axes as usize].iter().map(|a| (a.extent, a.stride)).collect();
        (row.first, row.elements, axes)
    }

    #[test]
    fn a_region_of_an_image_has_two_dimensions() {
        assert_eq!(of(&[(2, 5), (1, 3), (0, 3)], &[8, 6, 3]), (39, 18, vec![(6, 1), (3, 18)]));
        assert_eq!(of(&[(2, 5), (0, 6), (0, 3)], &[8, 6, 3]), (36, 54, vec![(54, 1)]));
        assert_eq!(of(&[(0, 8), (0, 6), (1, 2)], &[8, 6, 3]), (1, 48, vec![(48, 3)]));
        assert_eq!(of(&[(7, 8), (5, 6), (2, 3)], &[8, 6, 3]), (143, 1, vec![]));
        assert_eq!(of(&[], &[]), (0, 1, vec![]));
    }

    #[test]
    fn regions_without_elements_are_left_out() {
        let job = Job { regions: vec![vec![(1, 1)], vec![(3, 2)], vec![(0, 4)]], fill: vec![0] };
        assert_eq!(rows(&job, &Shape::new([4])).unwrap().len(), 1);
        let huge = Job { regions: vec![vec![(0, 0), (0, 1 << 40), (0, 1 << 40)]], fill: vec![0] };
        assert!(rows(&huge, &Shape::new([0, 1 << 40, 1 << 40])).unwrap().is_empty());
    }

    #[test]
    fn too_many_dimensions_are_an_error_that_names_the_limit() {
        let error = row(&[(0, 2); 7], &Shape::new([3; 7])).unwrap_err().to_string();
        assert!(error.contains("7 dimensions") && error.contains("at most 6"), "{error}");
    }
}
