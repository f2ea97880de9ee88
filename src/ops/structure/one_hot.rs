//! `OneHot`: a class number becomes a list with one element on and the others off.

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleIo, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType, bits};

struct OneHot {
    classes: usize,
    /// The dimension of the classes in the output; `None`: the last, or the only one where there is one class number.
    axis: Option<usize>,
    letter: Option<u8>,
    on: f32,
    off: f32,
    dtype: DType,
    /// Whether every sample of the batch at hand is one class number and nothing else is left.
    flat: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "OneHot",
    doc: "A list with one element on for each class number",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("num_classes", "elements of the list").or_int(0),
        ArgSpec::int("axis", "place of the lists' dimension in the output, -1: behind the others").or_int(-1),
        ArgSpec::string("axis_name", "letter of that dimension"),
        ArgSpec::float("on_value", "value of the class's element").or_float(1.0),
        ArgSpec::float("off_value", "value of the other elements").or_float(0.0),
        ArgSpec::dtype("dtype", "element type of the output").or_dtype(DType::F32),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let classes = args.int("num_classes")?;
    let classes =
        usize::try_from(classes).ok().filter(|&n| n <= limits::MAX_SAMPLE_BYTES).ok_or_else(|| {
            Error::invalid(format!(
                "argument `num_classes` is {classes}, expected 0 to {}",
                limits::MAX_SAMPLE_BYTES
            ))
        })?;
    // -1 that is given is not the default: it never drops the other dimensions.
    let axis = match args.given_int("axis")? {
        None => None,
        Some(-1) => Some(limits::MAX_NDIM),
        Some(axis) => {
            Some(usize::try_from(axis).ok().filter(|&axis| axis < limits::MAX_NDIM).ok_or_else(|| {
                Error::invalid(format!("argument `axis` is {axis}, expected -1 or a dimension"))
            })?)
        }
    };
    let name = args.given_string("axis_name")?.filter(|name| !name.is_empty());
    let letter = match name.map(str::as_bytes) {
        None => None,
        Some(&[letter]) => Some(letter),
        Some(_) => return Err(Error::invalid("argument `axis_name` is not one letter")),
    };
    Ok(Box::new(OneHot {
        classes,
        axis,
        letter,
        on: args.float("on_value")?,
        off: args.float("off_value")?,
        dtype: args.dtype("dtype")?,
        flat: false,
    }))
}

impl OneHot {
    /// Place of the classes for inputs of `ndim` dimensions.
    fn axis(&self, ndim: usize) -> Result<usize> {
        match self.axis {
            None | Some(limits::MAX_NDIM) => Ok(ndim),
            Some(axis) if axis <= ndim => Ok(axis),
            Some(axis) => Err(Error::invalid(format!("axis {axis} for an input of {ndim} dimensions"))),
        }
    }

    fn layout(&self, layout: Layout, ndim: usize) -> Result<Layout> {
        let Some(letter) = self.letter else { return Ok(Layout::NONE) };
        if self.flat {
            return Ok(Layout::from_letters(&[letter]));
        }
        let mut letters = layout.letters().to_vec();
        if letters.len() != ndim {
            return Ok(Layout::NONE);
        }
        letters.insert(self.axis(ndim)?, letter);
        Ok(Layout::from_letters(&letters))
    }

    /// Elements behind the dimension of the classes, for class numbers of shape `shape`.
    fn inner(&self, shape: &Shape) -> Result<usize> {
        if self.flat {
            return Ok(1);
        }
        Ok(shape.get(self.axis(shape.len())?..).unwrap_or_default().iter().product())
    }

    /// An element that is on and one that is off.
    fn states<T>(&self) -> (T, T)
    where
        f32: ConvertSat<T>,
    {
        (self.on.convert_trunc(), self.off.convert_trunc())
    }

    fn run<T: Element>(&self, sample: &mut SampleIo<'_>) -> Result<()>
    where
        f32: ConvertSat<T>,
    {
        let (input, output) = sample.unary()?;
        let classes = dispatch!(input.dtype, S => without_fractions::<S>(input.as_slice()?));
        let (on, off) = self.states::<T>();
        let inner = self.inner(input.shape)?;
        let elements = output.as_slice_mut::<T>()?;
        elements.fill(off);
        for (i, class) in classes.into_iter().enumerate() {
            let Some(class) = usize::try_from(class).ok().filter(|&class| class < self.classes) else {
                continue;
            };
            let at = (i / inner * self.classes + class) * inner + i % inner;
            if let Some(element) = elements.get_mut(at) {
                *element = on;
            }
        }
        Ok(())
    }
}

fn without_fractions<S: ConvertSat<i64>>(numbers: &[S]) -> Vec<i64> {
    numbers.iter().map(|&number| number.convert_trunc()).collect()
}

impl Operator for OneHot {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let dims = match &inputs[0].dims {
            Some(dims) if dims.is_empty() => Some(vec![Some(self.classes)]),
            Some(dims) => {
                let mut all = dims.clone();
                all.insert(self.axis(dims.len())?, Some(self.classes));
                // Whether the samples are single numbers shows only then.
                let may_be_flat = self.axis.is_none() && dims.iter().all(|d| d.is_none_or(|d| d == 1));
                if may_be_flat { None } else { Some(all) }
            }
            None => None,
        };
        Ok(vec![ValueType { dtype: Some(self.dtype), dims, layout: None }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let axis = self.axis(ndim)?;
        let live = (0..inputs.batch_size()).filter(|&i| inputs.failures().get(i).is_none());
        self.flat =
            self.axis.is_none() && live.map(|i| &desc.shapes[i]).all(|shape| shape.iter().all(|&d| d == 1));
        let (flat, classes) = (self.flat, self.classes);
        let shapes = inputs.map_shapes(if flat { 1 } else { ndim + 1 }, |sample| {
            if flat {
                return Ok(Shape::from([classes]));
            }
            let mut dims = sample.input(0)?.shape.to_vec();
            dims.insert(axis, classes);
            Ok(Shape::from(dims))
        });
        Ok(vec![BatchDesc::new(self.dtype, self.layout(desc.layout, ndim)?, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        dispatch!(self.dtype, T => io.for_each_sample(cx, |sample| self.run::<T>(sample)))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |from| gpu.kernel(&kernel(from, self.dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let rows = io.rows(|sample| {
            let (to, from) = (sample.target(0)?, sample.source(0)?);
            let elements = sample.output_shape(0)?.volume()? as u64;
            let inner = self.inner(sample.input(0)?.shape)? as u64;
            Ok(Row { to, from, elements, classes: self.classes as u64, inner })
        });
        let most = rows.iter().map(|row| row.elements).max().unwrap_or_default();
        let params = dispatch!(self.dtype, T => {
            let (on, off) = self.states::<T>();
            Params { on: bits(on), off: bits(off) }
        });
        cx.launch(&kernel(io.inputs().desc(0)?.dtype, self.dtype), most as usize, &params, &rows)
    }
}

device_struct! {
    /// A sample, as `kernels/one_hot.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        /// of the output
        elements: u64,
        classes: u64,
        /// elements of the output from one class to the next
        inner: u64,
    }
}

device_struct! {
    struct Params as Params {
        /// the bits of an element
        on: u64,
        off: u64,
    }
}

fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, Params>("one_hot", "one_hot").dtype("FROM", from).dtype("TO", to.bits())
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let from = DType::ALL.into_iter().map(|from| kernel(from, DType::F32));
    from.chain([DType::U8, DType::F16, DType::I64].map(|to| kernel(DType::I32, to))).collect()
}
