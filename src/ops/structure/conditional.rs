//! `conditional__Split`, `Merge`, `Not_`, `ValidateLogical`: what `if`, `and`, `or` and `not` in a pipeline become.
//! Samples are not copied: a branch has those of the batch that its predicate sends there, in their order.

use crate::cpu::convert::ConvertSat;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, Routing, one_output,
};
use crate::tensor::{BatchDesc, Bool, DType, Device, Layout, Shape, ValueType, View};

const PREDICATE: &[ArgSpec] =
    &[ArgSpec::bool("predicate", "a scalar a sample; nonzero is true").tensor().required()];

/// A batch in two parts.
pub(in crate::ops) const SPLIT: OpDef = OpDef {
    name: "conditional__Split",
    aliases: &["_conditional__Split"],
    doc: "Sends each sample into one of two branches, without a copy",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: PREDICATE,
    build: &|args, _| {
        let predicate = predicate(args)?;
        Ok(Box::new(Split { predicate, sources: [Vec::new(), Vec::new()] }))
    },
    outputs: &|_, _| Ok(2),
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// The two parts as one batch again.
pub(in crate::ops) const MERGE: OpDef = OpDef {
    name: "conditional__Merge",
    aliases: &["_conditional__Merge"],
    doc: "Brings the samples of two branches together, without a copy",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (2, 2),
    args: PREDICATE,
    build: &|args, _| Ok(Box::new(Merge { predicate: predicate(args)?, sources: Vec::new() })),
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// Python's `not`.
pub(in crate::ops) const NOT: OpDef = OpDef {
    name: "conditional__Not_",
    aliases: &["_conditional__Not_"],
    doc: "Whether a scalar is zero",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[],
    build: &|_, _| Ok(Box::new(Not)),
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// The check of what `and` and `or` work on.
pub(in crate::ops) const VALIDATE_LOGICAL: OpDef = OpDef {
    name: "conditional__ValidateLogical",
    aliases: &["_conditional__ValidateLogical"],
    doc: "Checks that an operand of `and` or `or` is a scalar of type bool",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::string("expression_name", "for DALI's message").no_effect(),
        ArgSpec::string("expression_side", "for DALI's message").no_effect(),
    ],
    build: &|_, _| Ok(Box::new(ValidateLogical)),
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn predicate(args: &Args) -> Result<Arg> {
    match args.given_arg("predicate")? {
        Some(predicate) if args.is_tensor("predicate") => Ok(predicate),
        _ => Err(Error::invalid("argument `predicate` is missing or no tensor")),
    }
}

/// Whether a scalar is true.
fn truth(view: &View<'_>) -> Result<bool> {
    if !view.shape.is_empty() {
        return Err(Error::invalid(format!("a condition of shape {}, expected a scalar", view.shape)));
    }
    dispatch!(view.dtype, T => {
        let value: f64 = view.as_slice::<T>()?.first().copied().unwrap_or_default().convert_sat();
        Ok(value != 0.0)
    })
}

/// Where the predicate sends each sample. Of a sample that has none it is false, each time that it is asked.
fn sides(predicate: &Arg, inputs: &Inputs<'_>) -> Vec<bool> {
    let side = |index: usize| {
        let view = predicate.tensor(&inputs.sample(index))?;
        view.map_or(Ok(false), |view| truth(&view))
    };
    let side = |index| {
        side(index).unwrap_or_else(|error| {
            inputs.fail(index, error);
            false
        })
    };
    (0..inputs.batch_size()).map(side).collect()
}

struct Split {
    predicate: Arg,
    /// For each side, true first: which samples go there.
    sources: [Vec<usize>; 2],
}

impl Operator for Split {
    fn routing(&self) -> Option<Routing> {
        Some(Routing::Split)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![inputs[0].clone(); 2])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let sides = sides(&self.predicate, inputs);
        self.sources = [true, false].map(|side| (0..sides.len()).filter(|&i| sides[i] == side).collect());
        let part = |sources: &Vec<usize>| {
            let shapes = sources.iter().map(|&i| desc.shapes[i].clone()).collect();
            BatchDesc::new(desc.dtype, desc.layout, shapes)
        };
        Ok(self.sources.iter().map(part).collect())
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn source(&self, output: usize, sample: usize) -> (usize, usize) {
        (0, self.sources[output][sample])
    }
}

struct Merge {
    predicate: Arg,
    /// For each sample: the input that has it, and which sample it is there.
    sources: Vec<(usize, usize)>,
}

impl Operator for Merge {
    fn routing(&self) -> Option<Routing> {
        Some(Routing::Merge)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        // Where the branches differ, the batch decides: one of them may stay empty.
        fn common<T: PartialEq + Clone>(a: &Option<T>, b: &Option<T>) -> Option<T> {
            if a == b { a.clone() } else { None }
        }
        let (a, b) = (&inputs[0], &inputs[1]);
        let dims = match (&a.dims, &b.dims) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                Some(a.iter().zip(b).map(|(a, b)| common(a, b)).collect())
            }
            _ => None,
        };
        Ok(vec![ValueType { dtype: common(&a.dtype, &b.dtype), dims, layout: common(&a.layout, &b.layout) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let mut taken = [0usize; 2];
        let next = |side: bool| {
            let input = usize::from(!side);
            taken[input] += 1;
            (input, taken[input] - 1)
        };
        self.sources = sides(&self.predicate, inputs).into_iter().map(next).collect();
        let parts = [inputs.desc(0)?, inputs.desc(1)?];
        for (part, taken) in parts.iter().zip(taken) {
            if part.shapes.len() != taken {
                return Err(Error::internal(format!(
                    "a branch has {} samples, expected {taken}",
                    part.shapes.len()
                )));
            }
        }
        let failures = inputs.failures();
        let live = |&(i, _): &(usize, &(usize, usize))| failures.get(i).is_none();
        let mut found: Option<(usize, DType, Layout, usize)> = None;
        for (_, &(input, sample)) in self.sources.iter().enumerate().filter(live) {
            let part = parts[input];
            let (dtype, layout, ndim) = (part.dtype, part.layout, part.shapes[sample].len());
            match found {
                None => found = Some((input, dtype, layout, ndim)),
                Some((other, a, b, c)) if other != input && (a, b, c) != (dtype, layout, ndim) => {
                    return Err(Error::invalid(format!(
                        "the branches differ: one makes {a} of {c} dimensions with layout `{b}`, the other {dtype} of \
                         {ndim} dimensions with layout `{layout}`"
                    )));
                }
                Some(_) => {}
            }
        }
        let (_, dtype, layout, ndim) = found.unwrap_or((0, parts[0].dtype, parts[0].layout, 0));
        let shape = |(i, &(input, sample)): (usize, &(usize, usize))| match failures.get(i) {
            None => parts[input].shapes[sample].clone(),
            Some(_) => Shape::new(vec![0; ndim]),
        };
        let shapes = self.sources.iter().enumerate().map(shape).collect();
        Ok(vec![BatchDesc::new(dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn source(&self, _output: usize, sample: usize) -> (usize, usize) {
        self.sources[sample]
    }
}

struct Not;

impl Operator for Not {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType::ranked(DType::Bool, 0, Layout::NONE)])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        Ok(vec![BatchDesc::new(DType::Bool, Layout::NONE, vec![Shape::default(); inputs.batch_size()])])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            output.as_slice_mut::<Bool>()?.fill(Bool::new(!truth(&input)?));
            Ok(())
        })
    }
}

struct ValidateLogical;

fn check(dtype: DType, ndim: usize) -> Result<()> {
    if (dtype, ndim) == (DType::Bool, 0) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "an operand of `and` or `or` is {dtype} of {ndim} dimensions, expected a scalar of type bool"
    )))
}

impl Operator for ValidateLogical {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        check(inputs[0].dtype.unwrap_or(DType::Bool), inputs[0].ndim().unwrap_or(0))?;
        Ok(vec![ValueType::ranked(DType::Bool, 0, Layout::NONE)])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        inputs.map(|sample| check(desc.dtype, sample.input(0)?.shape.len()));
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }
}
