//! `Full`, `Zeros`, `Ones` and their `Like` forms: tensors of a given shape that repeat a value or a smaller tensor.

use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::operator::shared::shape_arg::ShapeArg;
use crate::operator::{ArgSpec, Args, Build, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

const LAYOUT: ArgSpec = ArgSpec::layout("layout", "layout, as long as the shape");
const SHAPE: ArgSpec = ArgSpec::ints("shape", "shape of the output").tensor().or_computed("a scalar");

/// A line of [`crate::ops::OPS`] for an operator without a value of its own.
const fn constant(
    name: &'static str,
    doc: &'static str,
    inputs: usize,
    args: &'static [ArgSpec],
    build: &'static Build,
) -> OpDef {
    OpDef {
        name,
        doc,
        devices: &[Device::Cpu],
        inputs: (inputs, inputs),
        args,
        build,
        outputs: &one_output,
        reads_in_place: InputSet::All,
        ..OpDef::BASE
    }
}

const OF_SHAPE: &[ArgSpec] = &[SHAPE, LAYOUT, ArgSpec::dtype("dtype", "element type").or_dtype(DType::I32)];
const LIKE: &[ArgSpec] = &[ArgSpec::dtype("dtype", "element type").or_computed("the input's")];

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const ZEROS: OpDef =
    constant("Zeros", "A tensor of zeros", 0, OF_SHAPE, &|args, _| Fill::operator(args, Some(0.0), false));
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const ONES: OpDef =
    constant("Ones", "A tensor of ones", 0, OF_SHAPE, &|args, _| Fill::operator(args, Some(1.0), false));
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const ZEROS_LIKE: OpDef =
    constant("ZerosLike", "Zeros in the shape of the input", 1, LIKE, &|args, _| {
        Fill::operator(args, Some(0.0), true)
    });
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const ONES_LIKE: OpDef =
    constant("OnesLike", "Ones in the shape of the input", 1, LIKE, &|args, _| {
        Fill::operator(args, Some(1.0), true)
    });
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const FULL: OpDef =
    constant("Full", "The input, repeated to fill a shape", 1, &[SHAPE, LAYOUT], &|args, _| {
        Fill::operator(args, None, false)
    });
/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const FULL_LIKE: OpDef =
    constant("FullLike", "The second input, repeated to fill the shape of the first", 2, &[], &|args, _| {
        Fill::operator(args, None, true)
    });

struct Fill {
    /// What every element is; `None`: the last input says it.
    value: Option<f32>,
    /// Whether shape and type are those of the first input.
    like: bool,
    shape: ShapeArg,
    dtype: Option<DType>,
    layout: Layout,
}

impl Fill {
    fn operator(args: &Args, value: Option<f32>, like: bool) -> Result<Box<dyn Operator>> {
        let layout = args.given_string("layout")?.map(Layout::new).transpose()?.unwrap_or(Layout::NONE);
        Ok(Box::new(Fill {
            value,
            like,
            shape: ShapeArg::new(args, like)?,
            dtype: args.given_dtype("dtype")?,
            layout,
        }))
    }

    /// The input that holds the values.
    fn values(&self) -> usize {
        usize::from(self.like)
    }

    /// The output's type, where that of the first input is `input`.
    fn dtype(&self, input: Option<DType>) -> Option<DType> {
        let own = if self.value.is_some() && !self.like { Some(DType::I32) } else { input };
        self.dtype.or(own)
    }
}

impl Operator for Fill {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let first = inputs.first();
        let layout = if self.like { first.and_then(|first| first.layout) } else { Some(self.layout) };
        Ok(vec![ValueType {
            dtype: self.dtype(first.and_then(|first| first.dtype)),
            dims: self.shape.infer(first.and_then(|first| first.dims.as_ref())),
            layout,
        }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let first = if inputs.is_empty() { None } else { Some(inputs.desc(0)?) };
        let dtype = self.dtype(first.map(|first| first.dtype)).unwrap_or(DType::I32);
        let shapes = self.shape.shapes(inputs);
        let layout = match first {
            Some(first) if self.like => first.layout,
            _ => self.layout,
        };
        let ndim = shapes.first().map_or(0, |shape| shape.len());
        if !layout.is_none() && layout.letters().len() != ndim {
            return Err(Error::invalid(format!("layout `{layout}` does not fit {ndim} dimensions")));
        }
        Ok(vec![BatchDesc::new(dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let values = self.values();
        match self.value {
            Some(value) => io.for_each_sample(cx, |sample| {
                let output = sample.output(0)?;
                dispatch!(output.dtype, T => output.as_slice_mut::<T>()?.fill(value.convert_sat()));
                Ok(())
            }),
            None => io.for_each_sample(cx, |sample| {
                let input = sample.input(values)?;
                let output = sample.output(0)?;
                let strides = broadcast(input.shape, output.shape)?;
                dispatch!(input.dtype, S => dispatch!(output.dtype, T => {
                    let input = input.as_slice::<S>()?;
                    let mut converted = vec![T::default(); input.len()];
                    convert_slice::<S, T>(input, &mut converted);
                    let shape = output.shape;
                    repeat(&converted, &strides, shape, output.as_slice_mut::<T>()?);
                }));
                Ok(())
            }),
        }
    }
}

/// For each dimension of `shape`, how far apart in a tensor of shape `value` its neighbours are; 0 where it is
/// repeated. Of dimensions that `value` has more, the first position counts.
fn broadcast(value: &Shape, shape: &Shape) -> Result<Vec<usize>> {
    let mut strides = vec![0; shape.len()];
    let dims = value.iter().zip(value.strides()).rev();
    for ((&extent, stride), (to, &wanted)) in dims.zip(strides.iter_mut().zip(shape.iter()).rev()) {
        match extent {
            1 => {}
            extent if extent == wanted => *to = stride,
            _ => {
                return Err(Error::invalid(format!(
                    "a value of shape {value} does not fill the shape {shape}"
                )));
            }
        }
    }
    if value.contains(&0) && !shape.contains(&0) {
        return Err(Error::invalid(format!("a value of shape {value} does not fill the shape {shape}")));
    }
    Ok(strides)
}

fn repeat<T: Copy>(value: &[T], strides: &[usize], shape: &[usize], out: &mut [T]) {
    let ([stride, strides @ ..], [extent, shape @ ..]) = (strides, shape) else {
        if let (Some(to), Some(&from)) = (out.first_mut(), value.first()) {
            *to = from;
        }
        return;
    };
    let part = out.len() / (*extent).max(1);
    if part == 0 {
        return;
    }
    for (i, out) in out.chunks_exact_mut(part).enumerate() {
        repeat(&value[i * stride..], strides, shape, out);
    }
}
