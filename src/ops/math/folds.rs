//! Folds of samples on a device along some of their dimensions: sums, means, extremes. It makes the rows of
//! `kernels/reduce.cu` and launches it, for a batch once or, where many elements have one result, twice. What the
//! results are for, operators say.

use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::gpu_io::{GpuCx, THREADS};
use crate::tensor::{DType, Shape};

/// Alternations of folded and kept dimensions: there cannot be more.
const MAX_AXES: usize = limits::MAX_NDIM;

/// Elements that a thread folds, where there are enough threads.
const RUN: usize = 64;

/// Threads that read neighbouring elements at once.
const WARP: usize = 32;

/// Most chunks into which the elements of one result are cut: a warp folds the chunks.
const MAX_CHUNKS: usize = 1024;

/// What is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum Term {
    /// The sum of the elements.
    Sum,
    /// The sum of their squares.
    Squares,
    /// The sum of the squares of their distances from given means.
    Distances,
    /// The smallest element.
    Least,
    /// The largest element.
    Most,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum Finish {
    /// It is the result.
    Plain,
    /// It is divided by the number of elements, less [`Params::ddof`].
    Mean,
    /// The root of that.
    Root,
    /// What elements are multiplied by so that their deviation becomes [`Params::scale`].
    Scale,
}

/// A kind of fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct Fold {
    pub(in crate::ops) term: Term,
    pub(in crate::ops) finish: Finish,
    /// Type of the elements.
    pub(in crate::ops) from: DType,
    /// Type of the results.
    pub(in crate::ops) to: DType,
}

device_struct! {
    /// What [`Finish`] needs to know.
    #[derive(Debug, Default)]
    pub(in crate::ops) struct Params as Params {
        /// for SCALE: the deviation
        pub(in crate::ops) scale: f32,
        /// and what is added to the variance
        pub(in crate::ops) epsilon: f32,
        /// subtracted from the number of elements
        pub(in crate::ops) ddof: i64,
    }
}

device_struct! {
    /// A dimension of a sample.
    #[derive(Debug, PartialEq, Eq)]
    pub(in crate::ops) struct Axis as Axis {
        pub(in crate::ops) extent: u64,
        /// distance of neighbours, in elements
        stride: u64,
        /// Distance of the results of neighbours; 0 when they have the same.
        pub(in crate::ops) result: u64,
    }
}

device_struct! {
    /// A sample, as the kernel sees it. Whoever makes one sets the addresses.
    #[derive(Debug)]
    pub(in crate::ops) struct Row as Row {
        pub(in crate::ops) from: u64 = "const FROM *",
        pub(in crate::ops) to: u64 = "TO *",
        /// folds of chunks, those of the first chunk of all results first; null: each result has one chunk
        parts: u64 = "ACC *",
        pub(in crate::ops) means: u64 = "const float *",
        /// Distance of the means of neighbouring results: 1, or 0 when there is one for all.
        pub(in crate::ops) mean_step: u64,
        pub(in crate::ops) results: u64,
        /// elements of a result
        each: u64,
        /// into which these are cut
        chunks: u64,
        /// threads that fold a chunk; a power of two, at most THREADS
        lanes: u64,
        /// distance of neighbouring elements of a result; 0: there is no one distance
        step: u64,
        axes: u64,
        /// innermost first
        axis: [Axis; MAX_AXES],
    }
}

impl Row {
    /// A sample of shape `shape` whose results have shape `kept`: the same with 1 in the place of every folded extent.
    ///
    /// # Errors
    /// When one of them is too large.
    pub(in crate::ops) fn new(shape: &Shape, kept: &Shape) -> Result<Self> {
        let (elements, results) = (shape.volume()?, kept.volume()?);
        let mut row: Row = bytemuck::Zeroable::zeroed();
        let each = elements.checked_div(results).unwrap_or_default();
        let mut period = 1;
        // Without elements there is nothing to find, however large some extents are.
        if elements > 0 {
            let axes = axes(shape, kept);
            let slots =
                row.axis.get_mut(..axes.len()).ok_or_else(|| Error::internal("too many dimensions"))?;
            slots.copy_from_slice(&axes);
            row.axes = axes.len() as u64;
            let mut folded = axes.iter().filter(|axis| axis.result == 0);
            row.step = folded.next().filter(|_| folded.next().is_none()).map_or(0, |axis| axis.stride);
            period = axes.first().filter(|axis| axis.result > 0).map_or(1, |axis| axis.extent as usize);
        }
        let (lanes, chunks) = split(each, period);
        (row.results, row.each) = (results as u64, each as u64);
        (row.lanes, row.chunks) = (lanes as u64, chunks as u64);
        Ok(row)
    }

    /// The dimensions, innermost first. Those of extent 1 are left out; neighbours of one kind are joined.
    pub(in crate::ops) fn axes(&self) -> &[Axis] {
        self.axis.get(..self.axes as usize).unwrap_or_default()
    }
}

fn axes(shape: &[usize], kept: &[usize]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::with_capacity(shape.len());
    let (mut stride, mut result) = (1, 1);
    for (&extent, &kept) in shape.iter().zip(kept).rev().filter(|&(&extent, _)| extent != 1) {
        let is_kept = kept == extent;
        let extent = extent as u64;
        match axes.last_mut() {
            Some(inner) if (inner.result > 0) == is_kept => inner.extent *= extent,
            _ => axes.push(Axis { extent, stride, result: if is_kept { result } else { 0 } }),
        }
        stride *= extent;
        result *= if is_kept { extent } else { 1 };
    }
    axes
}

/// How many threads fold a chunk of the `each` elements of one result, and how many chunks there are. `period` is the
/// number of neighbouring elements with results of their own.
fn split(each: usize, period: usize) -> (usize, usize) {
    // Neighbouring threads read neighbouring elements: of many results, or else of one.
    let lanes = if period >= WARP { 1 } else { each.div_ceil(4).next_power_of_two().min(THREADS as usize) };
    (lanes, each.div_ceil(lanes * RUN).clamp(1, MAX_CHUNKS))
}

impl Fold {
    /// The type in which chunks are folded. Integers of up to 32 bits are added up exactly, and so are their squares
    /// where DALI does it.
    fn accumulator(self) -> DType {
        let squares = usize::from(self.term == Term::Squares);
        let is_exact = !self.from.is_float() && self.from.size() << squares <= 4;
        match self.term {
            Term::Least | Term::Most => self.from,
            Term::Distances => DType::F64,
            _ if self.to.is_float() && !is_exact => DType::F64,
            Term::Squares if self.from.size() < 4 => DType::I64,
            _ if self.from.is_signed() => DType::I64,
            _ => DType::U64,
        }
    }

    /// The kernels, that which folds first.
    pub(in crate::ops) fn kernels(self) -> [KernelSpec; 2] {
        let term = match self.term {
            Term::Sum => "SUM",
            Term::Squares => "SQUARES",
            Term::Distances => "DISTANCES",
            Term::Least => "LEAST",
            Term::Most => "MOST",
        };
        let finish = match self.finish {
            Finish::Plain => "PLAIN",
            Finish::Mean => "MEAN",
            Finish::Root => "ROOT",
            Finish::Scale => "SCALE",
        };
        ["fold", "finish"].map(|entry| {
            KernelSpec::of::<Row, Params>("reduce", entry)
                .dtype("FROM", self.from)
                .dtype("TO", self.to)
                .dtype("ACC", self.accumulator())
                .define("FOLD", term)
                .define("FINISH", finish)
                .define("THREADS", THREADS)
        })
    }

    /// Compiles the kernels.
    ///
    /// # Errors
    /// Those of [`Gpu::kernel`].
    pub(in crate::ops) fn prepare(self, gpu: &Gpu) -> Result<()> {
        self.kernels().iter().try_for_each(|spec| gpu.kernel(spec).map(drop))
    }

    /// Records the folds of `rows`. With `together` they all have the same results, which go to where the first row
    /// says.
    ///
    /// # Errors
    /// Those of the recorder.
    pub(in crate::ops) fn record(
        self,
        cx: &mut GpuCx<'_>,
        rows: &[Row],
        params: &Params,
        together: bool,
    ) -> Result<()> {
        let [fold, finish] = self.kernels();
        let mut rows: Vec<Row> = rows.iter().copied().filter(|row| row.results > 0).collect();
        let size = self.accumulator().size() as u64;
        let parts = |row: &Row| if together || row.chunks > 1 { row.results * row.chunks * size } else { 0 };
        let bytes: u64 = rows.iter().map(parts).sum();
        if bytes > 0 {
            let mut place = cx.recorder.scratch(bytes as usize)?;
            for row in rows.iter_mut().filter(|row| parts(row) > 0) {
                row.parts = place;
                place += parts(row);
            }
        }
        let most = |rows: &[Row], of: fn(&Row) -> u64| rows.iter().map(of).max().unwrap_or_default() as usize;
        cx.launch(&fold, most(&rows, |row| row.results * row.chunks * row.lanes), params, &rows)?;
        rows.retain(|row| row.parts > 0);
        if together {
            rows = joined(&rows).into_iter().collect();
        }
        cx.launch(&finish, most(&rows, |row| row.results) * WARP, params, &rows)
    }
}

/// One row for `rows`, whose parts lie one behind the other.
fn joined(rows: &[Row]) -> Option<Row> {
    rows.iter().copied().reduce(|all, row| Row {
        chunks: all.chunks + row.chunks,
        each: all.each + row.each,
        ..all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(shape: &[usize], kept: &[usize]) -> (Vec<(u64, u64, u64)>, Row) {
        let row = Row::new(&Shape::new(shape), &Shape::new(kept)).unwrap();
        (row.axes().iter().map(|a| (a.extent, a.stride, a.result)).collect(), row)
    }

    #[test]
    fn axes_say_where_elements_and_their_results_are() {
        let (axes, row) = found(&[8, 6, 3], &[1, 1, 3]);
        assert_eq!(axes, [(3, 1, 1), (48, 3, 0)]);
        assert_eq!((row.results, row.each, row.step), (3, 48, 3));
        let (axes, row) = found(&[5, 4, 1, 3, 2], &[5, 1, 1, 3, 1]);
        assert_eq!(axes, [(2, 1, 0), (3, 2, 1), (4, 6, 0), (5, 24, 3)]);
        assert_eq!((row.results, row.each, row.step), (15, 8, 0));
        assert_eq!(found(&[4, 4], &[1, 1]).0, [(16, 1, 0)]);
        assert_eq!(found(&[4, 4], &[4, 4]).0, [(16, 1, 1)]);
        assert!(found(&[], &[]).0.is_empty());
    }

    #[test]
    fn any_alternation_of_dimensions_has_room() {
        let kept: Vec<usize> = (0..limits::MAX_NDIM).map(|d| 1 + d % 2).collect();
        assert_eq!(found(&[2; limits::MAX_NDIM], &kept).0.len(), limits::MAX_NDIM);
    }

    #[test]
    fn huge_extents_of_nothing_are_harmless() {
        let (axes, row) = found(&[0, 1 << 40, 1 << 40], &[0, 1, 1]);
        assert_eq!((axes.len(), row.results, row.each), (0, 0, 0));
        let (_, row) = found(&[0, 3], &[1, 3]);
        assert_eq!((row.results, row.each, row.chunks, row.lanes), (3, 0, 1, 1));
        assert!(Row::new(&Shape::new([0, 1 << 40]), &Shape::new([1, 1 << 40])).is_err());
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
    fn integers_are_added_up_exactly_where_dali_does_it() {
        let of = |term, from, to| Fold { term, finish: Finish::Mean, from, to }.accumulator();
        assert_eq!(of(Term::Sum, DType::U8, DType::F32), DType::U64);
        assert_eq!(of(Term::Sum, DType::I32, DType::I32), DType::I64);
        assert_eq!(of(Term::Sum, DType::U64, DType::F32), DType::F64);
        assert_eq!(of(Term::Squares, DType::U16, DType::F32), DType::I64);
        assert_eq!(of(Term::Squares, DType::U32, DType::F32), DType::F64);
        assert_eq!(of(Term::Squares, DType::U32, DType::U32), DType::U64);
        assert_eq!(of(Term::Most, DType::I8, DType::I8), DType::I8);
        assert_eq!(of(Term::Distances, DType::I8, DType::F32), DType::F64);
        assert_eq!(of(Term::Sum, DType::F16, DType::F32), DType::F64);
    }

    #[test]
    fn folds_of_several_samples_are_one_with_all_their_parts() {
        let shape = Shape::new([1 << 16, 3]);
        let row = Row::new(&shape, &Shape::new([1, 3])).unwrap();
        let (first, second) = (Row { parts: 100, to: 7, ..row }, Row { parts: 200, to: 7, ..row });
        let all = joined(&[first, second]).unwrap();
        assert_eq!((all.parts, all.to, all.results), (100, 7, 3));
        assert_eq!((all.chunks, all.each), (2 * row.chunks, 2 << 16));
        assert!(joined(&[]).is_none());
    }
}
