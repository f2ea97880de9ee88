//! What `Crop` and `Slice` share once they know the window of a sample: element types, fill values, and the copy
//! itself.

use crate::cpu::convert::ConvertSat;
use crate::cpu::window::{FillValue, Outside, WindowCopy, fill_elements};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::gather::{Fill, Gather};
use crate::operator::shared::window::{OUT_OF_BOUNDS_ARGS, OutOfBounds, Window, fill_values, image_layout};
use crate::operator::{ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, SampleInputs, SampleIo};
use crate::tensor::{BatchDesc, DType, Element, Layout, Shape, ValueType, View};

/// Arguments of operators that cut windows out of samples.
pub(in crate::ops) const ARGS: [&[ArgSpec]; 2] = [
    OUT_OF_BOUNDS_ARGS,
    &[
        ArgSpec::dtype("dtype", "element type of the output: uint8, float16, float32 or the input's")
            .or_computed("the input's"),
        ArgSpec::dtype("output_dtype", "the older name of `dtype`").deprecated(),
        ArgSpec::image_type("image_type", "no longer used by DALI either").no_effect().deprecated(),
    ],
];

/// Cuts a window out of every sample.
pub(in crate::ops) struct Extract {
    dtype: Option<DType>,
    policy: OutOfBounds,
    fill: Vec<f32>,
    /// Per sample, `None` for one that failed; and the dimension that fill values belong to.
    copies: Vec<Option<WindowCopy>>,
    channel: Option<usize>,
}

impl Extract {
    /// Reads [`ARGS`].
    pub(in crate::ops) fn new(args: &Args) -> Result<Self> {
        let dtype = match args.given_dtype("dtype")? {
            Some(dtype) => Some(dtype),
            None => args.given_dtype("output_dtype")?,
        };
        let (policy, fill) = (OutOfBounds::new(args)?, fill_values(args)?);
        Ok(Self { dtype, policy, fill, copies: Vec::new(), channel: None })
    }

    /// For windows that hold `fill` where they leave their sample: one value, or one for each channel.
    pub(in crate::ops) fn onto(fill: Vec<f32>) -> Self {
        let policy = OutOfBounds::Outside(Outside::Fill);
        Self { dtype: None, policy, fill, copies: Vec::new(), channel: None }
    }

    /// What happens to windows that leave their sample.
    pub(in crate::ops) fn policy(&self) -> OutOfBounds {
        self.policy
    }

    /// The output's type for an input of type `from`.
    ///
    /// # Errors
    /// Unsupported when that is neither `from` nor one that DALI converts to.
    pub(in crate::ops) fn output(&self, from: DType) -> Result<DType> {
        let to = self.dtype.unwrap_or(from);
        if to == from || matches!(to, DType::U8 | DType::F16 | DType::F32) {
            return Ok(to);
        }
        Err(Error::unsupported(format!(
            "argument `dtype` is {to}, expected uint8, float16, float32 or {from} as the input"
        )))
    }

    /// [`Extract::output`] when the input's type may not be known yet.
    pub(in crate::ops) fn infer(&self, from: Option<DType>) -> Result<Option<DType>> {
        from.map_or(Ok(self.dtype), |from| self.output(from).map(Some))
    }

    /// Works out the copies and describes the output, which has layout `layout`. `place` gives the window of a sample.
    pub(in crate::ops) fn setup(
        &mut self,
        inputs: &Inputs<'_>,
        layout: Layout,
        mut place: impl FnMut(&SampleInputs<'_>, &[usize]) -> Result<Window>,
    ) -> Result<BatchDesc> {
        let input = inputs.desc(0)?;
        let dtype = self.output(input.dtype)?;
        let ndim = input.shapes.first().map_or(0, |shape| shape.len());
        self.channel = image_layout(layout, ndim).find(b'C').filter(|&axis| axis < ndim);
        self.copies = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            let window = self.policy.settle(place(&sample, shape)?, shape)?;
            self.check_fill(&window)?;
            WindowCopy::new(shape, &window.anchor, &window.extent, self.policy.outside()).map(Some)
        });
        let shapes = self.copies.iter().map(|copy| match copy {
            Some(copy) => copy.extent().clone(),
            None => Shape::new(vec![0; ndim]),
        });
        Ok(BatchDesc::new(dtype, layout, shapes.collect()))
    }

    fn check_fill(&self, window: &Window) -> Result<()> {
        let channels = self.channel.map(|axis| window.extent[axis]);
        if self.fill.len() == 1
            || self.policy != OutOfBounds::Outside(Outside::Fill)
            || channels == Some(self.fill.len())
        {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "argument `fill_values` has {} values, expected one or as many as channels (dimension `C`: {channels:?})",
            self.fill.len()
        )))
    }

    /// Cuts the windows that the last setup worked out.
    pub(in crate::ops) fn run(&self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let to = self.output(from)?;
        if from == to {
            return dispatch!(from, T => io.for_each_sample(cx, |sample| self.copy::<T>(sample)));
        }
        dispatch!(from, S => match to {
            DType::U8 => io.for_each_sample(cx, |sample| self.convert::<S, u8>(sample)),
            DType::F16 => io.for_each_sample(cx, |sample| self.convert::<S, half::f16>(sample)),
            _ => io.for_each_sample(cx, |sample| self.convert::<S, f32>(sample)),
        })
    }

    /// Compiles the kernel for inputs of a known type.
    pub(in crate::ops) fn prepare_gpu(&self, gpu: &Gpu, input: &ValueType) -> Result<()> {
        input.dtype.map_or(Ok(()), |from| Gather::new(from, self.output(from)?).prepare(gpu))
    }

    /// [`Extract::run`] on a device.
    pub(in crate::ops) fn run_gpu(&self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let to = self.output(from)?;
        let gather = Gather::new(from, to).with_outside(self.policy.outside());
        let fill = cx.recorder.stage(&fill_elements(to, &self.fill))?;
        let rows = io.rows(|sample| {
            let copy = self.window(sample.index())?;
            let behind =
                self.channel.and_then(|channel| copy.extent().get(channel + 1..)).unwrap_or_default();
            let fill = Fill {
                address: fill.address(),
                values: self.fill.len(),
                repeat: behind.iter().product::<usize>().max(1),
            };
            gather.window(sample.target(0)?, sample.source(0)?, copy, fill)
        });
        gather.launch(cx, &rows)
    }

    fn window(&self, sample: usize) -> Result<&WindowCopy> {
        let copy = self.copies.get(sample).and_then(Option::as_ref);
        copy.ok_or_else(|| Error::internal("a sample has no window"))
    }

    fn copy<T: Element + FillValue>(&self, sample: &mut SampleIo<'_>) -> Result<()> {
        let (copy, input, output) = self.open::<T>(sample)?;
        copy.copy(input.as_slice()?, output)
    }

    fn convert<S: Element + ConvertSat<T>, T: Element + FillValue>(
        &self,
        sample: &mut SampleIo<'_>,
    ) -> Result<()> {
        let (copy, input, output) = self.open::<T>(sample)?;
        copy.convert(input.as_slice::<S>()?, output)
    }

    /// What to copy, from where, and to where; fill values are written.
    fn open<'s, T: Element + FillValue>(
        &'s self,
        sample: &'s mut SampleIo<'_>,
    ) -> Result<(&'s WindowCopy, View<'s>, &'s mut [T])> {
        let copy = self.window(sample.index())?;
        let (input, output) = sample.unary()?;
        let output = output.as_slice_mut()?;
        copy.fill(output, &self.fill, self.channel.unwrap_or_default())?;
        Ok((copy, input, output))
    }
}
