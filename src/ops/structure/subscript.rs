//! `TensorSubscript`: Python's `x[1, 2:-1, ::-1]`. An index takes its dimension away, a range keeps part of it.

use std::sync::Arc;

use crate::cpu::window::Span;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::gather::{self, Fill, Gather};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct TensorSubscript {
    /// One for each dimension that the file says something about.
    subscripts: Vec<Subscript>,
    /// Per sample, for the batch at hand.
    parts: Vec<Part>,
}

/// What is taken of one dimension.
enum Subscript {
    /// One position.
    At(Arg),
    /// Positions from `lo` up to `hi`, every `step`th.
    Range { lo: Option<Arg>, hi: Option<Arg>, step: Arg },
}

/// What is taken of one sample.
#[derive(Debug, Clone, Default)]
struct Part {
    /// All dimensions of the input, outermost first.
    spans: Vec<Span>,
    /// The element at position 0 of all of them.
    first: usize,
}

/// The arguments of each dimension.
struct Names {
    at: &'static str,
    lo: &'static str,
    hi: &'static str,
    step: &'static str,
}

macro_rules! subscript_arguments {
    ($($dim:literal)*) => {
        const NAMES: &[Names] = &[$(Names {
            at: concat!("at_", $dim),
            lo: concat!("lo_", $dim),
            hi: concat!("hi_", $dim),
            step: concat!("step_", $dim),
        }),*];
        const ARGS: &[ArgSpec] = &[
            ArgSpec::int("num_subscripts", "dimensions that the sample has at least").or_computed("those that are named"),
            $(
                ArgSpec::int(concat!("at_", $dim), "the one position of this dimension, which goes away").tensor(),
                ArgSpec::int(concat!("lo_", $dim), "first position of this dimension").tensor().or_computed("the first"),
                ArgSpec::int(concat!("hi_", $dim), "position behind the last of this dimension").tensor().or_computed("the last"),
                ArgSpec::int(concat!("step_", $dim), "distance of positions of this dimension").tensor().or_int(1),
            )*
        ];
    };
}
subscript_arguments!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "TensorSubscript",
    aliases: &["_TensorSubscript"],
    doc: "Part of a tensor by indices and ranges, as Python's `x[...]`",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: ARGS,
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    underscored: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let given = |names: &Names| [names.at, names.lo, names.hi, names.step].iter().any(|name| args.has(name));
    let named = NAMES.iter().rposition(given).map_or(0, |last| last + 1);
    let declared = match args.given_int("num_subscripts")? {
        None => named,
        Some(n) => {
            usize::try_from(n).ok().filter(|n| (named..=NAMES.len()).contains(n)).ok_or_else(|| {
                Error::invalid(format!(
                    "argument `num_subscripts` is {n}, expected {named} to {}",
                    NAMES.len()
                ))
            })?
        }
    };
    let subscripts = NAMES[..declared].iter().map(|names| Subscript::new(args, names));
    Ok(Box::new(TensorSubscript { subscripts: subscripts.collect::<Result<_>>()?, parts: Vec::new() }))
}

impl Subscript {
    fn new(args: &Args, names: &Names) -> Result<Self> {
        let (lo, hi, step) = (args.given_arg(names.lo)?, args.given_arg(names.hi)?, args.arg(names.step)?);
        if step.known().is_some_and(|step| step == [0.0]) {
            return Err(Error::invalid(format!("argument `{}` is 0", names.step)));
        }
        match args.given_arg(names.at)? {
            Some(_) if lo.is_some() || hi.is_some() || args.has(names.step) => {
                Err(Error::invalid(format!("argument `{}` excludes a range of that dimension", names.at)))
            }
            Some(at) => Ok(Self::At(at)),
            None => Ok(Self::Range { lo, hi, step }),
        }
    }

    /// Whether the dimension stays.
    fn is_range(&self) -> bool {
        matches!(self, Subscript::Range { .. })
    }

    /// First position, distance and number of the positions of a dimension of `extent`. `value` reads an argument.
    fn place(&self, extent: usize, value: impl Fn(&Arg) -> Result<i64>) -> Result<(usize, i64, usize)> {
        // No sample has more positions than a signed number holds.
        let extent = i64::try_from(extent).unwrap_or(i64::MAX);
        let from_front =
            |position: i64| if position < 0 { position.saturating_add(extent) } else { position };
        match self {
            Subscript::At(at) => {
                let position = value(at)?;
                let found = from_front(position);
                if !(0..extent).contains(&found) {
                    return Err(Error::invalid(format!(
                        "index {position} of a dimension of {extent} positions"
                    )));
                }
                Ok((found as usize, 1, 1))
            }
            Subscript::Range { lo, hi, step } => {
                // A negative step walks from `lo` down to the position above `hi`.
                let step = value(step)?;
                if step == 0 {
                    return Err(Error::invalid("a step of 0 between positions"));
                }
                let (least, most) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
                let end = |arg: &Option<Arg>, default: i64| match arg {
                    Some(arg) => value(arg).map(|end| from_front(end).clamp(least, most)),
                    None => Ok(default),
                };
                let (from, to) = if step > 0 { (least, most) } else { (most, least) };
                let (lo, hi) = (end(lo, from)?, end(hi, to)?);
                let distance = if step > 0 { hi - lo } else { lo - hi };
                let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
                Ok(if count == 0 { (0, 1, 0) } else { (lo as usize, step, count as usize) })
            }
        }
    }
}

impl TensorSubscript {
    fn check_ndim(&self, ndim: usize) -> Result<()> {
        if ndim >= self.subscripts.len() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{} subscripts of a tensor with {ndim} dimensions",
            self.subscripts.len()
        )))
    }

    fn keeps(&self, dim: usize) -> bool {
        self.subscripts.get(dim).is_none_or(Subscript::is_range)
    }

    fn layout(&self, layout: Layout) -> Layout {
        let kept = layout.letters().iter().enumerate().filter(|&(dim, _)| self.keeps(dim));
        Layout::from_letters(&kept.map(|(_, &letter)| letter).collect::<Vec<_>>())
    }

    fn part(&self, sample: &SampleInputs<'_>) -> Result<Part> {
        let shape = sample.input(0)?.shape;
        self.check_ndim(shape.len())?;
        let mut part = Part::default();
        for (dim, (&extent, stride)) in shape.iter().zip(shape.strides()).enumerate() {
            let Some(subscript) = self.subscripts.get(dim) else {
                part.spans.push(Span::whole(extent, stride as i64));
                continue;
            };
            let (first, step, count) = subscript.place(extent, |arg| scalar(arg, sample))?;
            part.first += first * stride;
            part.spans.push(Span::whole(count, (stride as i64).saturating_mul(step)));
        }
        Ok(part)
    }

    fn shape(&self, part: &Part) -> Shape {
        let kept = part.spans.iter().enumerate().filter(|&(dim, _)| self.keeps(dim));
        Shape::from(kept.map(|(_, span)| span.extent).collect::<Vec<_>>())
    }
}

/// The value of an index or a step, which DALI takes as a scalar only.
fn scalar(arg: &Arg, sample: &SampleInputs<'_>) -> Result<i64> {
    if let Some(view) = arg.tensor(sample)?
        && !view.shape.is_empty()
    {
        return Err(Error::invalid(format!("an index of shape {}, expected a scalar", view.shape)));
    }
    arg.int(sample)
}

impl Operator for TensorSubscript {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        let dims = match &input.dims {
            None => None,
            Some(dims) => {
                self.check_ndim(dims.len())?;
                let known = |(dim, extent): (usize, &Option<usize>)| {
                    let Some(subscript) = self.subscripts.get(dim) else { return *extent };
                    let unknown = || Error::invalid("not known at load");
                    let value = |arg: &Arg| match arg.known() {
                        Some(&[value]) => Ok(value as i64),
                        _ => Err(unknown()),
                    };
                    subscript.place((*extent)?, value).ok().map(|(_, _, count)| count)
                };
                let kept = dims.iter().enumerate().filter(|&(dim, _)| self.keeps(dim));
                Some(kept.map(known).collect())
            }
        };
        Ok(vec![ValueType {
            dtype: input.dtype,
            dims,
            layout: input.layout.map(|layout| self.layout(layout)),
        }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let parts = inputs.map(|sample| self.part(&sample).map(Some));
        let ndim =
            desc.shapes.first().map_or(0, |shape| (0..shape.len()).filter(|&dim| self.keeps(dim)).count());
        let shape = |part: &Option<Part>| {
            part.as_ref().map_or_else(|| Shape::new(vec![0; ndim]), |part| self.shape(part))
        };
        let shapes = parts.iter().map(shape).collect();
        self.parts = parts.into_iter().map(Option::unwrap_or_default).collect();
        Ok(vec![BatchDesc::new(desc.dtype, self.layout(desc.layout), shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let size = io.inputs().desc(0)?.dtype.size();
        io.for_each_sample(cx, |sample| {
            let part = &self.parts[sample.index()];
            let (input, output) = sample.unary()?;
            copy(input.bytes, output.bytes, part, size);
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| Gather::copy(dtype.size()).prepare(gpu))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let size = io.inputs().desc(0)?.dtype.size();
        let gather = Gather::copy(size);
        let rows = io.rows(|sample| {
            let part = &self.parts[sample.index()];
            let from = sample.source(0)? + (part.first * size) as u64;
            gather.row(sample.target(0)?, from, &part.spans, Fill::default())
        });
        gather.launch(cx, &rows)
    }
}

/// Copies `part` of `src` to `dst`, elements of `size` bytes.
fn copy(src: &[u8], dst: &mut [u8], part: &Part, size: usize) {
    if dst.is_empty() {
        return;
    }
    // Dimensions that lie together at the end move as one run.
    let (mut run, mut outer) = (1, part.spans.as_slice());
    while let Some((last, rest)) = outer.split_last()
        && (last.stride == run as i64 || last.extent == 1)
    {
        run *= last.extent;
        outer = rest;
    }
    let mut index = vec![0usize; outer.len()];
    for to in dst.chunks_exact_mut(run * size) {
        let offset: i64 = index.iter().zip(outer).map(|(&i, span)| i as i64 * span.stride).sum();
        let from = part.first.wrapping_add_signed(offset as isize) * size;
        to.copy_from_slice(&src[from..][..run * size]);
        for (i, span) in index.iter_mut().zip(outer).rev() {
            *i += 1;
            if *i < span.extent {
                break;
            }
            *i = 0;
        }
    }
}
