//! `reductions__*`: sums, means, extremes and deviations along dimensions. Floats are summed as doubles; DALI adds
//! pairs of float32, so results agree to about 1e-6 of the largest term.

mod fold;
mod gpu;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::axes::Axes;
use crate::operator::{
    ArgSpec, Args, Build, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, SampleIo,
    one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType, ViewMut};
use fold::{Number, Rule, fold, is_number, with_number};

/// What is made of the elements.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Sum,
    Mean,
    MeanSquare,
    Rms,
    Min,
    Max,
    Variance,
    StdDev,
}

const AXES: &[ArgSpec] = &[
    ArgSpec::ints("axes", "dimensions to reduce, negative ones from the back").or_computed("all"),
    ArgSpec::layout("axis_names", "the same by the letters of the layout"),
    ArgSpec::bool("keep_dims", "whether reduced dimensions stay, with extent 1").or_bool(false),
];
const DTYPE: &[ArgSpec] =
    &[ArgSpec::dtype("dtype", "element type of the output: that default, float32 or the input's")
        .or_computed("follows from the input's")];
const DDOF: &[ArgSpec] = &[ArgSpec::int("ddof", "subtracted from the number of elements").or_int(0)];

const fn def(
    name: &'static str,
    doc: &'static str,
    args: &'static [ArgSpec],
    build: &'static Build,
) -> OpDef {
    OpDef {
        name,
        doc,
        devices: &[Device::Cpu, Device::Gpu],
        inputs: (1, 1),
        args,
        shared_args: &[AXES],
        build,
        outputs: &one_output,
        kernels: &[gpu::kernels],
        reads_in_place: InputSet::All,
        ..OpDef::BASE
    }
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const SUM: OpDef = def(
    "reductions__Sum",
    "Sums along dimensions; of integers by default as int64 or uint64",
    DTYPE,
    &|args, _| Reduction::operator(args, Kind::Sum),
);
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const MEAN: OpDef =
    def("reductions__Mean", "Means along dimensions", DTYPE, &|args, _| {
        Reduction::operator(args, Kind::Mean)
    });
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const MEAN_SQUARE: OpDef =
    def("reductions__MeanSquare", "Means of squares along dimensions", DTYPE, &|args, _| {
        Reduction::operator(args, Kind::MeanSquare)
    });
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const RMS: OpDef =
    def("reductions__RMS", "Roots of the means of squares along dimensions", DTYPE, &|args, _| {
        Reduction::operator(args, Kind::Rms)
    });
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const MIN: OpDef =
    def("reductions__Min", "Smallest elements along dimensions", &[], &|args, _| {
        Reduction::operator(args, Kind::Min)
    });
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const MAX: OpDef =
    def("reductions__Max", "Largest elements along dimensions", &[], &|args, _| {
        Reduction::operator(args, Kind::Max)
    });
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const VARIANCE: OpDef = OpDef {
    inputs: (2, 2),
    ..def("reductions__Variance", "Variances along dimensions around given means", DDOF, &|args, _| {
        Reduction::operator(args, Kind::Variance)
    })
};
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const STD_DEV: OpDef = OpDef {
    inputs: (2, 2),
    ..def(
        "reductions__StdDev",
        "Standard deviations along dimensions around given means",
        DDOF,
        &|args, _| Reduction::operator(args, Kind::StdDev),
    )
};

struct Reduction {
    kind: Kind,
    /// `None`: no dimension at all. Then DALI takes variances for 0.
    axes: Option<Axes>,
    keep_dims: bool,
    dtype: Option<DType>,
    ddof: i64,
    /// For the batch at hand: which dimensions are reduced.
    reduced: Vec<bool>,
}

impl Reduction {
    fn operator(args: &Args, kind: Kind) -> Result<Box<dyn Operator>> {
        let none = args.given_ints("axes")?.is_some_and(|axes| axes.is_empty())
            || args.given_string("axis_names")? == Some("");
        Ok(Box::new(Self {
            kind,
            axes: if none { None } else { Some(Axes::new(args, Axes::All)?) },
            keep_dims: args.bool("keep_dims")?,
            dtype: args.given_dtype("dtype")?,
            ddof: if matches!(kind, Kind::Variance | Kind::StdDev) { args.int("ddof")? } else { 0 },
            reduced: Vec::new(),
        }))
    }

    fn output_dtype(&self, from: DType) -> Result<DType> {
        if !is_number(from) {
            return Err(Error::unsupported(format!("elements of type {from} cannot be reduced")));
        }
        let default = match self.kind {
            Kind::Min | Kind::Max => from,
            Kind::Sum if from.is_signed() => DType::I64,
            Kind::Sum if from != DType::F32 => DType::U64,
            _ => DType::F32,
        };
        match self.dtype {
            None => Ok(default),
            Some(dtype) if [default, from, DType::F32].contains(&dtype) => Ok(dtype),
            Some(dtype) => Err(Error::unsupported(format!(
                "argument `dtype` is {dtype} for elements of type {from}, expected {default}, {from} or float32"
            ))),
        }
    }

    /// Which of `ndim` dimensions are reduced.
    fn reduced(&self, ndim: usize, layout: Layout) -> Result<Vec<bool>> {
        let axes = match &self.axes {
            Some(axes) => axes.known(layout, ndim).transpose()?.unwrap_or_default(),
            None => Vec::new(),
        };
        Ok((0..ndim).map(|dim| axes.contains(&dim)).collect())
    }

    /// What stays of `all`, one for each dimension; `one` in the place of a reduced one that stays.
    fn kept<T: Clone>(&self, all: &[T], reduced: &[bool], one: &T) -> Vec<T> {
        let kept = all.iter().zip(reduced).filter_map(|(each, &reduced)| match (reduced, self.keep_dims) {
            (false, _) => Some(each.clone()),
            (true, true) => Some(one.clone()),
            (true, false) => None,
        });
        kept.collect()
    }

    fn layout(&self, layout: Layout, reduced: &[bool]) -> Layout {
        let letters = layout.letters();
        if self.keep_dims || letters.len() != reduced.len() {
            return layout;
        }
        Layout::from_letters(&self.kept(letters, reduced, &0))
    }

    /// Checks that there is a mean for every result.
    fn check_means(&self, sample: &SampleInputs<'_>, shape: &Shape) -> Result<()> {
        if !matches!(self.kind, Kind::Variance | Kind::StdDev) {
            return Ok(());
        }
        let means = sample.input(1)?;
        let squeezed =
            |shape: &Shape| shape.iter().copied().filter(|&extent| extent != 1).collect::<Vec<_>>();
        if means.dtype != DType::F32 || squeezed(means.shape) != squeezed(shape) {
            return Err(Error::invalid(format!(
                "the means are {} of shape {}, expected float32 of shape {shape}",
                means.dtype, means.shape
            )));
        }
        Ok(())
    }

    fn run<T: Number>(&self, sample: &mut SampleIo<'_>) -> Result<()> {
        let input = sample.input(0)?;
        let (values, shape) = (input.as_slice::<T>()?, input.shape);
        let means =
            if sample.inputs.input(1).is_ok() { Some(sample.input(1)?.as_slice::<f32>()?) } else { None };
        let output = sample.output(0)?;
        let results = output.shape.volume()?;
        let each = values.len().checked_div(results).unwrap_or(0) as f64;
        let shape = (shape, self.reduced.as_slice());
        // Sums that wrap as DALI's do, which are kept in the type of the result.
        let wrapping = |squares: bool| {
            let squared = |value: T| value.bits().wrapping_mul(value.bits());
            if squares {
                sums(values, shape, results, squared)
            } else {
                sums(values, shape, results, T::bits)
            }
        };
        let is_float = output.dtype == DType::F32;
        match self.kind {
            Kind::Min => write(output, extremes(values, shape, results, T::MOST, |a, b| a < b)),
            Kind::Max => write(output, extremes(values, shape, results, T::LEAST, |a, b| a > b)),
            Kind::Sum if is_float => {
                write(output, reals(values, shape, results).into_iter().map(|sum| sum as f32))
            }
            Kind::Mean if is_float => {
                write(output, reals(values, shape, results).into_iter().map(|sum| (sum / each) as f32))
            }
            Kind::MeanSquare if is_float => write(
                output,
                sums(values, shape, results, T::square).into_iter().map(|sum| (sum / each) as f32),
            ),
            Kind::Rms if is_float => write(
                output,
                sums(values, shape, results, T::square).into_iter().map(|sum| (sum / each).sqrt() as f32),
            ),
            Kind::Variance | Kind::StdDev if self.axes.is_none() => write(output, vec![0f32; results]),
            Kind::Variance | Kind::StdDev => {
                let degrees = each - self.ddof as f64;
                let means = means.unwrap_or_default();
                let variances = squares(values, shape, means).into_iter().map(|sum| sum / degrees);
                let root = self.kind == Kind::StdDev;
                write(
                    output,
                    variances.map(|variance| if root { variance.sqrt() as f32 } else { variance as f32 }),
                )
            }
            kind => with_number!(output.dtype, R => {
                let sums = wrapping(matches!(kind, Kind::MeanSquare | Kind::Rms));
                let mean = |sum: i64| R::of_bits(sum).real() / each;
                write(output, sums.into_iter().map(|sum| match kind {
                    Kind::Sum => R::of_bits(sum),
                    Kind::Rms => R::from_real(mean(sum).sqrt()),
                    _ => R::from_real(mean(sum)),
                }))
            }, _ => Err(Error::internal("a reduction to a type that is no number"))),
        }
    }
}

/// A sample's shape, and which of its dimensions are reduced.
type Along<'a> = (&'a Shape, &'a [bool]);

/// A number that sums are kept in.
trait Sum: Copy {
    const ZERO: Self;
    /// Adds `other`; integers wrap.
    fn add(&mut self, other: Self);
}

impl Sum for f64 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn add(&mut self, other: Self) {
        *self += other;
    }
}

impl Sum for i64 {
    const ZERO: Self = 0;
    #[inline(always)]
    fn add(&mut self, other: Self) {
        *self = self.wrapping_add(other);
    }
}

/// The sums of `term` of each element.
fn sums<T: Number, A: Sum>(
    values: &[T],
    (shape, reduced): Along<'_>,
    results: usize,
    term: impl Fn(T) -> A,
) -> Vec<A> {
    let mut sums = vec![A::ZERO; results];
    let rule = Rule { empty: |_| A::ZERO, step: |sum: &mut A, value| sum.add(term(value)), join: A::add };
    fold(values, shape, reduced, &mut sums, &rule);
    sums
}

/// The sums of the elements; exactly, where these are integers of up to 32 bits.
fn reals<T: Number>(values: &[T], along: Along<'_>, results: usize) -> Vec<f64> {
    if T::DTYPE.is_float() || T::DTYPE.size() > 4 {
        return sums(values, along, results, T::real);
    }
    sums(values, along, results, T::bits).into_iter().map(|sum| sum as f64).collect()
}

/// The sums of the squares of the elements' distances from `means`.
fn squares<T: Number>(values: &[T], (shape, reduced): Along<'_>, means: &[f32]) -> Vec<f64> {
    let mut sums: Vec<(f64, f64)> = means.iter().map(|&mean| (f64::from(mean), 0.0)).collect();
    let rule = Rule {
        empty: |(mean, _)| (mean, 0.0),
        step: |(mean, sum): &mut (f64, f64), value: T| {
            let distance = value.real() - *mean;
            *sum += distance * distance;
        },
        join: |(_, sum): &mut (f64, f64), (_, other)| *sum += other,
    };
    fold(values, shape, reduced, &mut sums, &rule);
    sums.into_iter().map(|(_, sum)| sum).collect()
}

/// The elements that no other is `better` than.
fn extremes<T: Number>(
    values: &[T],
    (shape, reduced): Along<'_>,
    results: usize,
    first: T,
    better: impl Fn(T, T) -> bool,
) -> Vec<T> {
    let mut found = vec![first; results];
    let keep = |best: &mut T, value: T| *best = if better(value, *best) { value } else { *best };
    fold(values, shape, reduced, &mut found, &Rule { empty: |_| first, step: keep, join: keep });
    found
}

fn write<T: Number>(output: &mut ViewMut<'_>, results: impl IntoIterator<Item = T>) -> Result<()> {
    output.as_slice_mut::<T>()?.iter_mut().zip(results).for_each(|(to, from)| *to = from);
    Ok(())
}

impl Operator for Reduction {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        let dtype = input.dtype.map(|dtype| self.output_dtype(dtype)).transpose()?;
        let (Some(dims), Some(layout)) = (&input.dims, input.layout) else {
            return Ok(vec![ValueType { dtype, dims: None, layout: None }]);
        };
        let reduced = self.reduced(dims.len(), layout)?;
        let dims = Some(self.kept(dims, &reduced, &Some(1)));
        Ok(vec![ValueType { dtype, dims, layout: Some(self.layout(layout, &reduced)) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = self.output_dtype(desc.dtype)?;
        self.reduced = self.reduced(desc.shapes.first().map_or(0, |shape| shape.len()), desc.layout)?;
        let ndim = self.kept(&self.reduced, &self.reduced, &true).len();
        let shapes = inputs.map_shapes(ndim, |sample| {
            let shape = Shape::from(self.kept(sample.input(0)?.shape, &self.reduced, &1));
            self.check_means(&sample, &shape)?;
            Ok(shape)
        });
        Ok(vec![BatchDesc::new(dtype, self.layout(desc.layout, &self.reduced), shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        with_number!(from, T => io.for_each_sample(cx, |sample| self.run::<T>(sample)),
            _ => self.output_dtype(from).map(drop))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |from| self.fold(from)?.prepare(gpu))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        self.record(cx, io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn means_of_another_shape_fail_their_sample_alone() {
        let x = [1.0f32, 2.0, 3.0, 4.0];
        let data = batch(&[(&[2, 2], &x), (&[2, 2], &x)]);
        let means = batch(&[(&[], &x[..1]), (&[2], &x[..2])]);
        let outcome = run(&VARIANCE, &args(&[], &[]), &[data, means], &[]).unwrap();
        assert_eq!(outcome.values::<f32>(0), [3.5]);
        assert!(outcome.error(1).contains("expected float32 of shape []"), "{}", outcome.error(1));
    }
}
