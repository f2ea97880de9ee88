//! `Normalize` on a device: sums of parts of the samples, parameters from the sums, the result. At most five launches, all in
//! one stream, so that nothing waits in between.
//!
//! ```text
//! sums -> statistics (means) -> sums (of squares) -> statistics (scales) -> normalize
//! ```

use super::statistics::{Arrangement, Scaling};
use super::{Given, Normalize};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, KernelSpec};
use crate::ops::gpu_io::THREADS;
use crate::ops::{GpuCx, GpuIo};
use crate::tensor::DType;

/// Alternations of reduced and kept dimensions.
const MAX_AXES: usize = 8;

/// Elements that a thread adds up, where there are enough threads.
const RUN: usize = 64;

/// Neighbouring elements that threads read at once.
const WARP: usize = 32;

/// Most parts into which the elements of one parameter are cut: one thread adds up the parts.
const MAX_CHUNKS: usize = 128;

#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Axis {
    extent: u64,
    stride: u64,
    parameter: u64,
}

/// A sample, as `kernels/normalize.cu` sees it.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Row {
    from: u64,
    to: u64,
    sums: u64,
    means: u64,
    scales: u64,
    mean_step: u64,
    scale_step: u64,
    elements: u64,
    parameters: u64,
    each: u64,
    chunks: u64,
    lanes: u64,
    axes: u64,
    axis: [Axis; MAX_AXES],
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Params {
    shift: f32,
    squares: u32,
}

/// Sums that become parameters, as `kernels/statistics.cu` sees them.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct SumsRow {
    sums: u64,
    to: u64,
    parameters: u64,
    parts: u64,
    each: u64,
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct SumsParams {
    scale: f32,
    epsilon: f32,
    ddof: i64,
}

fn sums_kernel(from: DType) -> KernelSpec {
    kernel("sums", from, DType::F32)
}

fn normalize_kernel(from: DType, to: DType) -> KernelSpec {
    kernel("normalize", from, to)
}

fn kernel(entry: &'static str, from: DType, to: DType) -> KernelSpec {
    KernelSpec::new::<Row, Params>("normalize", entry)
        .dtype("FROM", from)
        .dtype("TO", to)
        .define("THREADS", THREADS)
}

fn statistics_kernel(means: bool) -> KernelSpec {
    KernelSpec::new::<SumsRow, SumsParams>("statistics", "statistics").define("MEANS", u8::from(means))
}

pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let from =
        DType::ALL.into_iter().flat_map(|from| [sums_kernel(from), normalize_kernel(from, DType::F32)]);
    let to = DType::ALL.into_iter().filter(|&to| to != DType::F32).map(|to| normalize_kernel(DType::U8, to));
    from.chain(to).chain([true, false].map(statistics_kernel)).collect()
}

/// Where the means or the scales come from.
#[derive(Clone, Copy)]
enum Source {
    /// One value for all elements, at this address.
    One(u64),
    /// A tensor of the sample.
    Tensor,
    /// They are worked out.
    Sums,
}

impl Source {
    fn new(cx: &mut GpuCx<'_>, given: Option<&Given>, parameter: impl Fn(f32) -> f32) -> Result<Self> {
        match given {
            None => Ok(Source::Sums),
            Some(Given::Tensor(_)) => Ok(Source::Tensor),
            Some(Given::Fixed(value)) => stage(cx, &[parameter(*value)]).map(Source::One),
        }
    }

    /// Address of a sample's parameters, as far as it is known, and the distance of neighbours. `tensor` reads the sample's.
    fn place(self, cx: &mut GpuCx<'_>, tensor: impl FnOnce() -> Result<Vec<f32>>) -> Result<(u64, u64)> {
        match self {
            Source::One(address) => Ok((address, 0)),
            Source::Tensor => Ok((stage(cx, &tensor()?)?, 1)),
            Source::Sums => Ok((0, 1)),
        }
    }
}

fn stage(cx: &mut GpuCx<'_>, values: &[f32]) -> Result<u64> {
    Ok(cx.recorder.stage(bytemuck::cast_slice(values))?.address())
}

/// Device memory for `bytes` bytes of every row, one behind the other in one buffer; or all at one place.
fn allocate(
    cx: &mut GpuCx<'_>,
    rows: &mut [Row],
    bytes: impl Fn(&Row) -> u64,
    shared: bool,
    field: impl Fn(&mut Row) -> &mut u64,
) -> Result<()> {
    let mut end = 0;
    for row in rows.iter_mut() {
        let own = bytes(row);
        *field(row) = if shared { 0 } else { end };
        end = if shared { own } else { end + own };
    }
    let base = cx.recorder.allocate(end as usize)?.address();
    rows.iter_mut().for_each(|row| *field(row) += base);
    Ok(())
}

impl Normalize {
    /// Compiles the kernels for inputs of type `from`.
    pub(super) fn prepare(&self, gpu: &Gpu, from: DType) -> Result<()> {
        let mut specs = vec![normalize_kernel(from, self.dtype)];
        specs.extend(self.mean.is_none().then(|| statistics_kernel(true)));
        specs.extend(self.stddev.is_none().then(|| statistics_kernel(false)));
        if specs.len() > 1 {
            specs.push(sums_kernel(from));
        }
        specs.iter().try_for_each(|spec| gpu.kernel(spec).map(drop))
    }

    /// Records the work of all live samples.
    pub(super) fn record(&self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let mean = Source::new(cx, self.mean.as_ref(), |mean| mean)?;
        let stddev = Source::new(cx, self.stddev.as_ref(), |deviation| self.scale(deviation))?;
        let mut rows = io.rows(|sample| {
            let tensor = |given: &Option<Given>| match given {
                Some(Given::Tensor(arg)) => arg.floats(&sample.inputs),
                _ => Ok(Vec::new()),
            };
            let scales =
                || Ok(tensor(&self.stddev)?.into_iter().map(|deviation| self.scale(deviation)).collect());
            let (means, mean_step) = mean.place(cx, || tensor(&self.mean))?;
            let (scales, scale_step) = stddev.place(cx, scales)?;
            let row = row(&self.samples[sample.index()].arrangement, sample.input(0)?.shape.volume()?)?;
            let (from, to) = (sample.source(0)?, sample.target(0)?);
            Ok(Row { from, to, means, mean_step, scales, scale_step, ..row })
        });
        rows.retain(|row| row.parameters > 0);
        let most = |of: fn(&Row) -> u64| rows.iter().map(of).max().unwrap_or_default() as usize;
        let (elements, parameters) = (most(|row| row.elements), most(|row| row.parameters));
        let lanes = most(|row| row.parameters * row.chunks * row.lanes);

        let float = size_of::<f32>() as u64;
        let (sums_mean, sums_scale) = (matches!(mean, Source::Sums), matches!(stddev, Source::Sums));
        if sums_mean {
            allocate(cx, &mut rows, |row| row.parameters * float, self.batch, |row| &mut row.means)?;
        }
        if sums_scale {
            allocate(cx, &mut rows, |row| row.parameters * float, self.batch, |row| &mut row.scales)?;
        }
        if sums_mean || sums_scale {
            let double = size_of::<f64>() as u64;
            allocate(cx, &mut rows, |row| row.parameters * row.chunks * double, false, |row| &mut row.sums)?;
        }
        let Scaling { scale, epsilon, ddof } = self.scaling;
        for (is_wanted, squares) in [(sums_mean, 0), (sums_scale, 1)] {
            if is_wanted {
                cx.launch(&sums_kernel(from), lanes, &Params { shift: 0.0, squares }, &rows)?;
                let sums = self.sums_rows(&rows, |row| if squares == 0 { row.means } else { row.scales });
                let params = SumsParams { scale, epsilon, ddof };
                cx.launch(&statistics_kernel(squares == 0), parameters, &params, &sums)?;
            }
        }
        let params = Params { shift: self.shift, squares: 0 };
        cx.launch(&normalize_kernel(from, self.dtype), elements, &params, &rows)
    }

    /// The sums of each sample or, of a batch, of all together: they lie one behind the other.
    fn sums_rows(&self, rows: &[Row], to: impl Fn(&Row) -> u64) -> Vec<SumsRow> {
        let of = |row: &Row| SumsRow {
            sums: row.sums,
            to: to(row),
            parameters: row.parameters,
            parts: row.chunks,
            each: row.each,
        };
        let mut each = rows.iter().map(of);
        if !self.batch {
            return each.collect();
        }
        let Some(first) = each.next() else { return Vec::new() };
        vec![each.fold(first, |all, row| SumsRow {
            parts: all.parts + row.parts,
            each: all.each + row.each,
            ..all
        })]
    }
}

/// The row of a sample with `elements` elements, without addresses.
fn row(arrangement: &Arrangement, elements: usize) -> Result<Row> {
    let mut row: Row = bytemuck::Zeroable::zeroed();
    let parameters = arrangement.parameters();
    if parameters == 0 {
        return Ok(row);
    }
    let each = elements / parameters;
    let (lanes, chunks) = split(each, arrangement.period());
    let axes = arrangement.axes();
    let slots = row.axis.get_mut(..axes.len()).ok_or_else(|| {
        Error::unsupported(format!(
            "reduced and kept dimensions alternate {} times, expected at most {MAX_AXES} on a GPU",
            axes.len()
        ))
    })?;
    let mut stride = 1;
    for (slot, (extent, parameter)) in slots.iter_mut().zip(&axes) {
        *slot = Axis { extent: *extent as u64, stride, parameter: *parameter as u64 };
        stride *= *extent as u64;
    }
    row.axes = axes.len() as u64;
    (row.elements, row.parameters, row.each) = (elements as u64, parameters as u64, each as u64);
    (row.lanes, row.chunks) = (lanes as u64, chunks as u64);
    Ok(row)
}

/// How many threads add up a part of the `each` elements of one parameter, and how many parts there are. `period` is the
/// number of neighbouring elements with parameters of their own.
fn split(each: usize, period: usize) -> (usize, usize) {
    // Neighbouring threads read neighbouring elements: of many parameters, or else of one.
    let lanes = if period >= WARP { 1 } else { each.div_ceil(4).next_power_of_two().min(THREADS as usize) };
    (lanes, each.div_ceil(lanes * RUN).clamp(1, MAX_CHUNKS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Shape;

    fn axes(shape: &[usize], reduced: &[bool]) -> (Vec<(u64, u64, u64)>, Row) {
        let shape = Shape::new(shape);
        let row = row(&Arrangement::new(&shape, reduced), shape.volume().unwrap()).unwrap();
        (row.axis[..row.axes as usize].iter().map(|a| (a.extent, a.stride, a.parameter)).collect(), row)
    }

    #[test]
    fn axes_say_where_elements_and_their_parameters_are() {
        let (found, row) = axes(&[8, 6, 3], &[true, true, false]);
        assert_eq!(found, [(3, 1, 1), (48, 3, 0)]);
        assert_eq!((row.parameters, row.each, row.elements), (3, 48, 144));
        let (found, row) = axes(&[5, 4, 1, 3, 2], &[false, true, true, false, true]);
        assert_eq!(found, [(2, 1, 0), (3, 2, 1), (4, 6, 0), (5, 24, 3)]);
        assert_eq!((row.parameters, row.each), (15, 8));
        assert_eq!(axes(&[4, 4], &[true, true]).0, [(16, 1, 0)]);
        assert_eq!(axes(&[4, 4], &[false, false]).0, [(16, 1, 1)]);
        assert!(axes(&[], &[]).0.is_empty());
    }

    #[test]
    fn every_element_has_a_thread() {
        for each in [1, 2, 3, 5, 1000, 50_176, 100_000_000] {
            for period in [1, 3, 32, 672] {
                let (lanes, chunks) = split(each, period);
                assert!(lanes.is_power_of_two() && lanes <= THREADS as usize, "{each} {period}");
                assert!((1..=MAX_CHUNKS).contains(&chunks), "{each} {period}");
            }
        }
        assert_eq!((split(3, 1), split(50_176, 3), split(224, 672)), ((1, 1), (256, 4), (1, 4)));
    }

    #[test]
    fn too_many_alternations_are_an_error_that_names_the_limit() {
        let shape = Shape::new(vec![2; 9]);
        let reduced: Vec<bool> = (0..9).map(|d| d % 2 == 0).collect();
        let error = row(&Arrangement::new(&shape, &reduced), 512).err().unwrap().to_string();
        assert!(error.contains("9 times") && error.contains("at most 8"), "{error}");
    }
}
