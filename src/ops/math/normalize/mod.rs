//! `Normalize`: subtracts the mean and divides by the standard deviation, each given or worked out along some
//! dimensions of the sample or of the whole batch. [`statistics`] holds the arithmetic.

mod gpu;
mod statistics;

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::axes::Axes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType, View};

use statistics::{Arrangement, Parameters, Scaling, mean};

struct Normalize {
    /// The dimensions that are reduced; `None`: those in which a given tensor has extent 1.
    axes: Option<Axes>,
    mean: Option<Given>,
    stddev: Option<Given>,
    /// Whether the statistics are those of all samples together.
    batch: bool,
    scaling: Scaling,
    shift: f32,
    dtype: DType,
    /// Per sample, for the batch at hand.
    samples: Vec<Reduction>,
}

/// A mean or deviation that is not worked out.
enum Given {
    Fixed(f32),
    Tensor(Arg),
}

/// How one sample is reduced.
#[derive(Debug, Clone, Default, PartialEq)]
struct Reduction {
    arrangement: Arrangement,
    /// The sample's shape with 1 for every reduced extent.
    shape: Shape,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Normalize",
    doc: "Subtracts the mean and divides by the standard deviation along some dimensions",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("axes", "dimensions to reduce")
            .or_computed("all, or those where a given tensor has extent 1"),
        ArgSpec::layout("axis_names", "the same by the letters of the layout"),
        ArgSpec::float("mean", "what is subtracted").tensor().or_computed("worked out"),
        ArgSpec::float("stddev", "what is divided by").tensor().or_computed("worked out"),
        ArgSpec::bool("batch", "whether mean and deviation are those of the whole batch").or_bool(false),
        ArgSpec::float("scale", "factor of the result").or_float(1.0),
        ArgSpec::float("shift", "what the mean becomes").or_float(0.0),
        ArgSpec::float("epsilon", "added to the variance").or_float(0.0),
        ArgSpec::int("ddof", "subtracted from the number of elements in the variance").or_int(0),
        ArgSpec::dtype("dtype", "element type of the result").or_dtype(DType::F32),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gpu::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    mixes_samples: |args| matches!(args.given_bool("batch"), Ok(Some(true))),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let given = |name| -> Result<Option<Given>> {
        if args.is_tensor(name) {
            return Ok(args.given_arg(name)?.map(Given::Tensor));
        }
        Ok(args.given_float(name)?.map(Given::Fixed))
    };
    let (mean, stddev) = (given("mean")?, given("stddev")?);
    if args.given_ints("axes")?.is_some_and(|axes| axes.is_empty()) {
        return Err(Error::invalid("argument `axes` is empty"));
    }
    let fixed = |given: &Option<Given>| matches!(given, Some(Given::Fixed(_)));
    let names_axes = args.has("axes") || args.has("axis_names");
    if fixed(&mean) && fixed(&stddev) && names_axes {
        return Err(Error::invalid("dimensions are named, but `mean` and `stddev` are numbers"));
    }
    let batch = args.bool("batch")?;
    let tensor = |given: &Option<Given>| matches!(given, Some(Given::Tensor(_)));
    if batch && (tensor(&mean) || tensor(&stddev)) {
        return Err(Error::invalid("`mean` or `stddev` is a tensor, expected a number with `batch`"));
    }
    let from_tensor = !names_axes && (tensor(&mean) || tensor(&stddev));
    let axes = if from_tensor { None } else { Some(Axes::new(args, Axes::All)?) };
    let scaling =
        Scaling { scale: args.float("scale")?, epsilon: args.float("epsilon")?, ddof: args.int("ddof")? };
    let shift = args.float("shift")?;
    let dtype = args.dtype("dtype")?;
    Ok(Box::new(Normalize { axes, mean, stddev, batch, scaling, shift, dtype, samples: Vec::new() }))
}

impl Normalize {
    /// Which of `ndim` dimensions are reduced; `None`: a given tensor says it.
    fn reduced(&self, ndim: usize, layout: Layout) -> Result<Option<Vec<bool>>> {
        let Some(axes) = self.axes.as_ref().and_then(|axes| axes.known(layout, ndim)).transpose()? else {
            return Ok(None);
        };
        Ok(Some((0..ndim).map(|d| axes.contains(&d)).collect()))
    }

    /// The given tensors with their names, the mean first.
    fn tensors(&self) -> impl Iterator<Item = (&'static str, &Arg)> {
        [("mean", &self.mean), ("stddev", &self.stddev)].into_iter().filter_map(|(name, given)| match given {
            Some(Given::Tensor(arg)) => Some((name, arg)),
            _ => None,
        })
    }

    fn reduction(&self, sample: &SampleInputs<'_>, reduced: Option<&[bool]>) -> Result<Reduction> {
        let shape = sample.input(0)?.shape;
        let mut given = Vec::new();
        for (name, arg) in self.tensors() {
            given.extend(arg.tensor(sample)?.map(|view| (name, view.shape)));
        }
        let reduced: Vec<bool> = match (reduced, given.first()) {
            (Some(reduced), _) => reduced.to_vec(),
            (None, Some((_, parameter))) if parameter.len() == shape.len() => {
                parameter.iter().map(|&extent| extent == 1).collect()
            }
            _ => vec![true; shape.len()],
        };
        let kept: Vec<usize> =
            shape.iter().zip(&reduced).map(|(&extent, &reduced)| if reduced { 1 } else { extent }).collect();
        let kept = Shape::from(kept);
        for (name, found) in given {
            if *found != kept {
                return Err(Error::invalid(format!(
                    "argument `{name}` has shape {found}, expected {kept} for an input of shape {shape}"
                )));
            }
        }
        // A sample without elements needs no tables, however large its other extents are.
        let is_empty = shape.volume()? == 0;
        let arrangement = if is_empty { Arrangement::default() } else { Arrangement::new(shape, &reduced) };
        Ok(Reduction { arrangement, shape: kept })
    }

    /// Fails the samples whose parameters have not the shape of the first live sample's.
    fn check_batch(&self, inputs: &Inputs<'_>) {
        let live = || (0..inputs.batch_size()).filter(|&i| inputs.failures().get(i).is_none());
        let Some(expected) = live().next().map(|first| &self.samples[first].shape) else { return };
        for i in live() {
            let found = &self.samples[i].shape;
            if found != expected {
                let text =
                    format!("the dimensions that are kept are {found}, expected {expected} as in the batch");
                inputs.fail(i, Error::invalid(text));
            }
        }
    }

    /// Mean and scale of elements of which there are `each` per parameter. `add` adds up what a sample contributes, by
    /// [`Arrangement::add_elements`] or, with means, [`Arrangement::add_squares`].
    fn parameters(
        &self,
        count: usize,
        each: usize,
        sample: Option<&SampleInputs<'_>>,
        add: impl Fn(Option<&[f32]>) -> Result<Vec<f64>>,
    ) -> Result<Parameters> {
        let given = |given: &Option<Given>| match (given, sample) {
            (Some(Given::Fixed(value)), _) => Ok(Some(vec![*value; count])),
            (Some(Given::Tensor(arg)), Some(sample)) => arg.floats(sample).map(Some),
            _ => Ok(None),
        };
        let means = match given(&self.mean)? {
            Some(means) => means,
            None => add(None)?.into_iter().map(|sum| mean(sum, each)).collect(),
        };
        let scales = match given(&self.stddev)? {
            Some(deviations) => deviations.into_iter().map(|deviation| self.scale(deviation)).collect(),
            None => add(Some(&means))?.into_iter().map(|sum| self.scaling.of_squares(sum, each)).collect(),
        };
        Ok(Parameters { means, scales })
    }

    /// The scale for a given deviation. As in DALI, 0 in a tensor makes every result `shift`, as a number infinite.
    fn scale(&self, deviation: f32) -> f32 {
        let is_tensor = matches!(self.stddev, Some(Given::Tensor(_)));
        if is_tensor && deviation == 0.0 && self.scaling.epsilon == 0.0 {
            return 0.0;
        }
        self.scaling.of_deviation(deviation)
    }

    fn of_sample(&self, sample: &SampleInputs<'_>) -> Result<Parameters> {
        let view = sample.input(0)?;
        let count = self.samples[sample.index].arrangement.parameters();
        let each = view.shape.volume()?.checked_div(count).unwrap_or_default();
        self.parameters(count, each, Some(sample), |means| self.sums(sample.index, &view, means))
    }

    fn of_batch(&self, cx: &CpuCx<'_>, inputs: &Inputs<'_>) -> Result<Parameters> {
        let input = inputs.batch(0)?;
        let counts = |i: &usize| self.samples[*i].arrangement.parameters() > 0;
        let live = (0..inputs.batch_size()).filter(|&i| inputs.failures().get(i).is_none());
        let samples: Vec<usize> = live.filter(counts).collect();
        let Some(&first) = samples.first() else { return Ok(Parameters::default()) };
        let count = self.samples[first].arrangement.parameters();
        let mut elements = 0;
        for &i in &samples {
            elements += input.view(i).shape.volume()?;
        }
        self.parameters(count, elements / count, None, |means| {
            let mut total = vec![0.0; count];
            // A few samples at a time bound the memory, their order keeps the result the same on any number of threads.
            for samples in samples.chunks(cx.pool.current_num_threads().max(1)) {
                let sums = samples.par_iter().map(|&i| self.sums(i, &input.view(i), means));
                for part in cx.pool.install(|| sums.collect::<Result<Vec<_>>>())? {
                    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
                }
            }
            Ok(total)
        })
    }

    /// What sample `index` contributes to the mean or, with `means`, to the variance.
    fn sums(&self, index: usize, view: &View<'_>, means: Option<&[f32]>) -> Result<Vec<f64>> {
        let arrangement = &self.samples[index].arrangement;
        let mut sums = vec![0.0; arrangement.parameters()];
        match means {
            None => arrangement.add_elements(view, &mut sums)?,
            Some(means) => arrangement.add_squares(view, means, &mut sums)?,
        }
        Ok(sums)
    }
}

impl Operator for Normalize {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        if let (Some(ndim), Some(layout)) = (input.ndim(), input.layout) {
            self.reduced(ndim, layout)?;
        }
        Ok(vec![ValueType { dtype: Some(self.dtype), ..input.clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let reduced = self.reduced(ndim, desc.layout)?;
        self.samples = inputs.map(|sample| self.reduction(&sample, reduced.as_deref()));
        if self.batch {
            self.check_batch(inputs);
        }
        Ok(vec![BatchDesc { dtype: self.dtype, ..desc.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let shared = if self.batch { Some(self.of_batch(cx, &io.inputs())?) } else { None };
        io.for_each_sample(cx, |sample| {
            let own;
            let parameters = match &shared {
                Some(shared) => shared,
                None => {
                    own = self.of_sample(&sample.inputs)?;
                    &own
                }
            };
            let arrangement = &self.samples[sample.index()].arrangement;
            let (input, output) = sample.unary()?;
            arrangement.normalize(&input, parameters, self.shift, output)
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |from| self.prepare(gpu, from))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        self.record(cx, io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn a_tensor_of_another_shape_fails_its_sample_alone() {
        let x = [0.0f32, 2.0, 4.0, 6.0];
        let inputs = [batch(&[(&[2, 2], &x), (&[2, 2], &x), (&[2, 2], &x)])];
        let means = [batch(&[(&[1, 2], &x[1..3]), (&[1, 3], &x[..3]), (&[2, 1], &x[..2])])];
        let fixed = [("stddev", Value::Floats(vec![2.0]))];
        let outcome = run(&DEF, &args(&fixed, &["mean"]), &inputs, &means).unwrap();
        assert_eq!(outcome.values::<f32>(0), [-1.0, -1.0, 1.0, 1.0]);
        assert!(
            outcome.error(1).contains("`mean` has shape [1, 3], expected [1, 2]"),
            "{}",
            outcome.error(1)
        );
        assert_eq!(outcome.values::<f32>(2), [0.0, 1.0, 1.0, 2.0]);

        let scalars = [batch(&[(&[], &x[..1]), (&[], &x[..1]), (&[], &x[..1])])];
        let outcome = run(&DEF, &args(&fixed, &["mean"]), &inputs, &scalars).unwrap();
        assert!(outcome.error(0).contains("`mean` has shape [], expected [1, 1]"), "{}", outcome.error(0));
    }

    #[test]
    fn a_sample_that_does_not_fit_the_batch_is_left_out() {
        let (x, odd) = ([1.0f32, 3.0], [100.0f32; 3]);
        let inputs = [batch(&[(&[1, 2], &x), (&[1, 3], &odd), (&[1, 2], &[5.0, 7.0])])];
        let values = [("batch", Value::Bools(vec![true])), ("axes", Value::Ints(vec![0]))];
        let outcome = run(&DEF, &args(&values, &[]), &inputs, &[]).unwrap();
        assert_eq!((outcome.values::<f32>(0), outcome.values::<f32>(2)), (vec![-1.0, -1.0], vec![1.0, 1.0]));
        assert!(outcome.error(1).contains("are [1, 3], expected [1, 2]"), "{}", outcome.error(1));
    }

    /// A request that costs nothing may name extents that make tables of terabytes.
    #[test]
    fn huge_extents_of_nothing_are_harmless() {
        let (none, shape): ([f32; 0], [usize; 3]) = ([], [0, 1 << 40, 1 << 40]);
        for together in [false, true] {
            let values = [("batch", Value::Bools(vec![together])), ("axes", Value::Ints(vec![0]))];
            let outcome = run(&DEF, &args(&values, &[]), &[batch(&[(&shape, &none)])], &[]).unwrap();
            assert!(outcome.values::<f32>(0).is_empty());
        }
    }

    #[test]
    fn contradictions_are_errors_at_load() {
        let number = |value| Value::Floats(vec![value]);
        for (values, tensors, words) in [
            (vec![("axes", Value::Ints(vec![]))], vec![], "`axes` is empty"),
            (
                vec![("axes", Value::Ints(vec![0])), ("axis_names", Value::Strings(vec!["H".into()]))],
                vec![],
                "expected one",
            ),
            (
                vec![("mean", number(1.0)), ("stddev", number(1.0)), ("axes", Value::Ints(vec![0]))],
                vec![],
                "are numbers",
            ),
            (vec![("batch", Value::Bools(vec![true]))], vec!["mean"], "expected a number with `batch`"),
        ] {
            let error = DEF.instantiate(&args(&values, &tensors), 1).err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
        let operator = DEF.instantiate(&args(&[("axes", Value::Ints(vec![3]))], &[]), 1).unwrap();
        assert!(operator.infer(&[ValueType::ranked(DType::U8, 3, Layout::NONE)]).is_err());
        assert!(operator.infer(&[ValueType::default()]).is_ok());
    }
}
