//! `random__Beta`: numbers from 0 to 1 of a beta distribution.

use super::{SEED, STRETCH, counts, drawing, seed};
use crate::cpu::random::standard::{Beta32, Beta64};
use crate::cpu::random::{BatchRandom, Seed};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::operator::shared::shape_arg::ShapeArg;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, ValueType};

struct Beta {
    alpha: Arg,
    beta: Arg,
    dtype: DType,
    shape: ShapeArg,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample, for the batch at hand.
    parameters: Vec<[f32; 2]>,
    counts: Vec<usize>,
}

/// Nanoseconds that a number takes.
const NUMBER_TIME: f64 = 60.0;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "random__Beta",
    doc: "Random numbers of a beta distribution",
    devices: &[Device::Cpu],
    inputs: (0, 1),
    args: &[
        SEED,
        ArgSpec::float("alpha", "first parameter, positive").tensor().or_float(1.0),
        ArgSpec::float("beta", "second parameter, positive").tensor().or_float(1.0),
        ArgSpec::ints("shape", "shape of the output").tensor().or_computed("that of the input, or a scalar"),
        ArgSpec::dtype("dtype", "element type of the output: float32 or float64").or_dtype(DType::F32),
    ],
    build: &build,
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let dtype = args.dtype("dtype")?;
    if !matches!(dtype, DType::F32 | DType::F64) {
        return Err(Error::unsupported(format!("argument `dtype` is {dtype}, expected float32 or float64")));
    }
    Ok(Box::new(Beta {
        alpha: args.arg("alpha")?,
        beta: args.arg("beta")?,
        dtype,
        shape: ShapeArg::new(args, inputs > 0)?,
        seed: seed(args)?,
        batch: BatchRandom::default(),
        parameters: Vec::new(),
        counts: Vec::new(),
    }))
}

impl Beta {
    fn parameters(&self, sample: &SampleInputs<'_>) -> Result<[f32; 2]> {
        let parameters = [self.alpha.float(sample)?, self.beta.float(sample)?];
        if parameters.iter().any(|p| !p.is_finite() || *p <= 0.0) {
            return Err(Error::invalid(format!("parameters {parameters:?}, expected positive ones")));
        }
        Ok(parameters)
    }
}

impl Operator for Beta {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let dims = self.shape.infer(inputs.first().and_then(|input| input.dims.as_ref()));
        Ok(vec![ValueType { dtype: Some(self.dtype), dims, layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.batch = self.seed.batch(inputs.first_sample());
        self.parameters = inputs.map(|sample| self.parameters(&sample));
        let shapes = self.shape.shapes(inputs);
        self.counts = counts(&shapes);
        Ok(vec![BatchDesc::new(self.dtype, Layout::NONE, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        drawing(&self.counts, sample, NUMBER_TIME)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let failures = io.inputs().failures();
        // Normal numbers come in pairs, and the second one of a pair goes into the next element.
        macro_rules! run {
            ($real:ty, $beta:ident) => {
                io.for_each_sample(cx, |sample| {
                    let random = self.batch.sample(sample.index());
                    let [alpha, beta] = self.parameters[sample.index()].map(<$real>::from);
                    let mut drawn = $beta::new(alpha, beta);
                    let (watch, mut elements) = (cx.watch(failures, sample.index()), random.elements());
                    let numbers = sample.output(0)?.as_slice_mut::<$real>()?;
                    for stretch in numbers.chunks_mut(STRETCH) {
                        for (number, mut random) in stretch.iter_mut().zip(elements.by_ref()) {
                            *number = drawn.draw(&mut random);
                        }
                        watch.charge(stretch.len())?;
                    }
                    Ok(())
                })
            };
        }
        match self.dtype {
            DType::F64 => run!(f64, Beta64),
            _ => run!(f32, Beta32),
        }
    }
}
