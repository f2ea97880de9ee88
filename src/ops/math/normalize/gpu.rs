//! `Normalize` on a device: parameters from folds of the samples, then the result. At most five launches, all in one
//! stream, so that nothing waits in between.
//!
//! ```text
//! fold -> finish (means) -> fold (of squares) -> finish (scales) -> normalize
//! ```

use super::statistics::Scaling;
use super::{Given, Normalize};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::{GpuCx, GpuIo};
use crate::ops::math::folds;
use crate::ops::math::folds::{Finish, Fold, Term};
use crate::tensor::DType;

/// Alternations of reduced and kept dimensions: there cannot be more.
const MAX_AXES: usize = limits::MAX_NDIM;

device_struct! {
    #[derive(Debug)]
    struct Axis as Axis {
        extent: u64,
        /// distance of the parameters of neighbours; 0: they have the same
        parameter: u64,
    }
}

device_struct! {
    /// A sample, as `kernels/normalize.cu` sees it.
    #[derive(Debug)]
    struct Row as Row {
        from: u64 = "const FROM *",
        to: u64 = "TO *",
        means: u64 = "const float *",
        scales: u64 = "const float *",
        /// distance of the means of neighbouring parameters: 1, or 0 when there is one for all
        mean_step: u64,
        /// the same of scales
        scale_step: u64,
        elements: u64,
        axes: u64,
        /// innermost first
        axis: [Axis; MAX_AXES],
    }
}

device_struct! {
    struct Params as Params {
        shift: f32,
    }
}

/// The fold that makes means.
fn means(from: DType) -> Fold {
    Fold { term: Term::Sum, finish: Finish::Mean, from, to: DType::F32 }
}

/// The fold that makes scales.
fn scales(from: DType) -> Fold {
    Fold { term: Term::Distances, finish: Finish::Scale, from, to: DType::F32 }
}

fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, Params>("normalize", "normalize").dtype("FROM", from).dtype("TO", to)
}

pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let types = [DType::U8, DType::I64, DType::F16, DType::F32, DType::F64, DType::Bool];
    let folds = types.into_iter().flat_map(|from| [means(from), scales(from)]).flat_map(Fold::kernels);
    let from = DType::ALL.into_iter().map(|from| kernel(from, DType::F32));
    let to = DType::ALL.into_iter().filter(|&to| to != DType::F32).map(|to| kernel(DType::U8, to));
    folds.chain(from).chain(to).collect()
}

/// Where the means or the scales come from.
#[derive(Clone, Copy)]
enum Statistic {
    /// One value for all elements, at this address.
    One(u64),
    /// A tensor of the sample.
    Tensor,
    /// They are worked out.
    Sums,
}

impl Statistic {
    fn new(cx: &mut GpuCx<'_>, given: Option<&Given>, parameter: impl Fn(f32) -> f32) -> Result<Self> {
        match given {
            None => Ok(Statistic::Sums),
            Some(Given::Tensor(_)) => Ok(Statistic::Tensor),
            Some(Given::Fixed(value)) => stage(cx, &[parameter(*value)]).map(Statistic::One),
        }
    }

    /// Address of a sample's parameters, as far as it is known, and the distance of neighbours. `tensor` reads the
    /// sample's.
    fn place(self, cx: &mut GpuCx<'_>, tensor: impl FnOnce() -> Result<Vec<f32>>) -> Result<(u64, u64)> {
        match self {
            Statistic::One(address) => Ok((address, 0)),
            Statistic::Tensor => Ok((stage(cx, &tensor()?)?, 1)),
            Statistic::Sums => Ok((0, 1)),
        }
    }
}

fn stage(cx: &mut GpuCx<'_>, values: &[f32]) -> Result<u64> {
    Ok(cx.recorder.stage(bytemuck::cast_slice(values))?.address())
}

/// Device memory for the parameters of every row, one behind the other in one buffer, or all at one place; and where it
/// is.
fn allocate(cx: &mut GpuCx<'_>, folds: &mut [folds::Row], shared: bool) -> Result<()> {
    let mut end = 0;
    for fold in folds.iter_mut() {
        let bytes = fold.results * size_of::<f32>() as u64;
        fold.to = if shared { 0 } else { end };
        end = if shared { bytes } else { end + bytes };
    }
    let base = cx.recorder.scratch(end as usize)?;
    folds.iter_mut().for_each(|fold| fold.to += base);
    Ok(())
}

impl Normalize {
    /// Compiles the kernels for inputs of type `from`.
    pub(super) fn prepare(&self, gpu: &Gpu, from: DType) -> Result<()> {
        if self.mean.is_none() {
            means(from).prepare(gpu)?;
        }
        if self.stddev.is_none() {
            scales(from).prepare(gpu)?;
        }
        gpu.kernel(&kernel(from, self.dtype)).map(drop)
    }

    /// Records the work of all live samples.
    pub(super) fn record(&self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let mean = Statistic::new(cx, self.mean.as_ref(), |mean| mean)?;
        let stddev = Statistic::new(cx, self.stddev.as_ref(), |deviation| self.scale(deviation))?;
        let rows = io.rows(|sample| {
            let shape = sample.input(0)?.shape;
            let elements = shape.volume()?;
            if elements == 0 {
                return Ok(None);
            }
            let tensor = |given: &Option<Given>| match given {
                Some(Given::Tensor(arg)) => arg.floats(&sample.inputs),
                _ => Ok(Vec::new()),
            };
            let scales =
                || Ok(tensor(&self.stddev)?.into_iter().map(|deviation| self.scale(deviation)).collect());
            let (means, mean_step) = mean.place(cx, || tensor(&self.mean))?;
            let (scales, scale_step) = stddev.place(cx, scales)?;
            let mut fold = folds::Row::new(shape, &self.samples[sample.index()].shape)?;
            (fold.from, fold.means, fold.mean_step) = (sample.source(0)?, means, mean_step);
            let row = row(&fold, elements)?;
            Ok(Some((fold, Row { to: sample.target(0)?, scales, scale_step, ..row })))
        });
        let (mut folds, mut rows): (Vec<folds::Row>, Vec<Row>) = rows.into_iter().flatten().unzip();
        let Scaling { scale, epsilon, ddof } = self.scaling;
        if matches!(mean, Statistic::Sums) {
            allocate(cx, &mut folds, self.batch)?;
            means(from).record(cx, &folds, &folds::Params::default(), self.batch)?;
            for (fold, row) in folds.iter_mut().zip(&mut rows) {
                (fold.means, row.means) = (fold.to, fold.to);
            }
        }
        if matches!(stddev, Statistic::Sums) {
            allocate(cx, &mut folds, self.batch)?;
            scales(from).record(cx, &folds, &folds::Params { scale, epsilon, ddof }, self.batch)?;
            for (fold, row) in folds.iter().zip(&mut rows) {
                row.scales = fold.to;
            }
        }
        let most = rows.iter().map(|row| row.elements).max().unwrap_or_default() as usize;
        cx.launch(&kernel(from, self.dtype), most, &Params { shift: self.shift }, &rows)
    }
}

/// The row of a sample with `elements` elements, without its target and scales.
fn row(fold: &folds::Row, elements: usize) -> Result<Row> {
    let mut row: Row = bytemuck::Zeroable::zeroed();
    (row.from, row.means, row.mean_step) = (fold.from, fold.means, fold.mean_step);
    (row.elements, row.axes) = (elements as u64, fold.axes().len() as u64);
    let slots = row.axis.get_mut(..fold.axes().len());
    let slots = slots.ok_or_else(|| Error::internal("too many dimensions"))?;
    for (slot, axis) in slots.iter_mut().zip(fold.axes()) {
        *slot = Axis { extent: axis.extent, parameter: axis.result };
    }
    Ok(row)
}
