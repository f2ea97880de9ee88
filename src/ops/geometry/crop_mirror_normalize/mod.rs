//! `CropMirrorNormalize`: cuts a window out of an image, mirrors it, normalises its channels and reorders its
//! dimensions.

pub(in crate::ops) mod gpu;
mod job;
mod library;
mod order;

use std::sync::{Arc, OnceLock};

use half::f16;

use crate::cpu::convert::ConvertSat;
use crate::cpu::normalize::tables::{Library, Table};
use crate::cpu::normalize::{Affine, Channel, Normalized, affine};
use crate::cpu::window::Outside;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::shared::dtypes;
use crate::operator::shared::window::{CROP_ARGS, CropWindow, OUT_OF_BOUNDS_ARGS, OutOfBounds, fill_values};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, SampleIo,
    one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType};
pub(in crate::ops) use job::{Job, Recent};
pub(in crate::ops) use order::Order;

pub(in crate::ops) struct CropMirrorNormalize {
    window: CropWindow,
    policy: OutOfBounds,
    fill: Vec<f32>,
    mirror: Arg,
    mean: Arg,
    std: Arg,
    scale: f32,
    shift: f32,
    /// Whose arithmetic; `None`: DALI's.
    library: Option<Library>,
    dtype: DType,
    /// [`Layout::NONE`]: the input's.
    output_layout: Layout,
    pad_output: bool,
    /// Of the batch at hand.
    order: Order,
    /// Per sample, `None` for one that failed.
    jobs: Vec<Option<Arc<Job>>>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "CropMirrorNormalize",
    doc: "Crops, mirrors, normalises per channel and reorders dimensions, such as HWC to CHW",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("mirror", "nonzero: left and right change places").tensor().or_int(0),
        ArgSpec::floats("mean", "subtracted from pixels, one value or one per channel")
            .tensor()
            .or_floats(&[0.0]),
        ArgSpec::floats("std", "pixels are divided by it, one value or one per channel")
            .tensor()
            .or_floats(&[1.0]),
        ArgSpec::float("scale", "factor of the result").or_float(1.0),
        ArgSpec::float("shift", "added to the result").or_float(0.0),
        ArgSpec::dtype("dtype", "element type of the output: float32, float16, uint8 or int8")
            .or_dtype(DType::F32),
        ArgSpec::dtype("output_dtype", "the older name of `dtype`").deprecated(),
        ArgSpec::layout("output_layout", "order of the output's dimensions, empty: the input's")
            .or_string("CHW"),
        ArgSpec::bool("pad_output", "more channels, up to a power of two").or_bool(false),
        ArgSpec::image_type("image_type", "no longer used by DALI either").no_effect().deprecated(),
    ],
    shared_args: &[library::ARGS, CROP_ARGS, OUT_OF_BOUNDS_ARGS],
    build: &build,
    outputs: &one_output,
    kernels: &[gpu::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(CropMirrorNormalize::new(args)?))
}

impl CropMirrorNormalize {
    /// Reads the arguments.
    pub(in crate::ops) fn new(args: &Args) -> Result<Self> {
        let dtype = args.dtype_or_older("dtype", "output_dtype")?;
        if !matches!(dtype, DType::F32 | DType::F16 | DType::U8 | DType::I8) {
            return Err(Error::unsupported(format!(
                "argument `dtype` is {dtype}, expected float32, float16, uint8 or int8"
            )));
        }
        let policy = OutOfBounds::new(args)?;
        if let OutOfBounds::Outside(Outside::Border(_)) = policy {
            return Err(Error::unsupported(
                "argument `out_of_bounds_policy` repeats pixels, expected `error`, `trim_to_shape` or `pad`",
            ));
        }
        Ok(Self {
            window: CropWindow::new(args)?,
            policy,
            fill: fill_values(args)?,
            mirror: args.arg("mirror")?,
            mean: args.arg("mean")?,
            std: args.arg("std")?,
            scale: args.float("scale")?,
            shift: args.float("shift")?,
            library: library::asked(args, dtype)?,
            dtype,
            output_layout: Layout::new(args.string("output_layout")?)?,
            pad_output: args.bool("pad_output")?,
            order: Order::default(),
            jobs: Vec::new(),
        })
    }
}

impl Operator for CropMirrorNormalize {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        if let Some(dtype) = input.dtype {
            self.check_input(dtype)?;
        }
        // Dimensions are reordered only, so the output's letters tell them as well as the input's.
        let known = input.dims.as_ref().zip(input.layout);
        let (dims, layout) = match known {
            Some((dims, layout)) => {
                let order = Order::new(layout, self.output_layout, dims.len())?;
                (order.of(dims), order.layout)
            }
            None if self.output_layout.is_none() => {
                return Ok(vec![ValueType { dtype: Some(self.dtype), ..ValueType::default() }]);
            }
            None => (vec![None; self.output_layout.letters().len()], self.output_layout),
        };
        let mut dims = self.window.infer(&dims, layout, self.policy.trims())?;
        for (dim, &letter) in dims.iter_mut().zip(layout.letters()) {
            if letter == b'C' {
                *dim = dim.map(|channels| self.output_channels(channels));
            }
        }
        Ok(vec![ValueType { dtype: Some(self.dtype), dims: Some(dims), layout: Some(layout) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let input = inputs.desc(0)?;
        self.check_input(input.dtype)?;
        let ndim = input.shapes.first().map_or(0, |shape| shape.len());
        let order = Order::new(input.layout, self.output_layout, ndim)?;
        let mut recent = Recent::default();
        self.jobs =
            inputs.map(|sample| self.job(&sample, sample.input(0)?.shape, &order, &mut recent).map(Some));
        let shapes = self.jobs.iter().map(|job| match job {
            Some(job) => job.output_shape(&order),
            None => Shape::new(vec![0; ndim]),
        });
        let desc = BatchDesc::new(self.dtype, order.layout, shapes.collect());
        self.order = order;
        Ok(vec![desc])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        match io.inputs().desc(0)?.dtype {
            DType::U8 if self.library.is_some() => self.run_tables(cx, io),
            DType::U8 => self.run_from::<u8>(cx, io),
            DType::U16 => self.run_from::<u16>(cx, io),
            DType::I16 => self.run_from::<i16>(cx, io),
            DType::I32 => self.run_from::<i32>(cx, io),
            DType::F16 => self.run_from::<f16>(cx, io),
            DType::F32 => self.run_from::<f32>(cx, io),
            other => self.check_input(other),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        gpu::prepare(gpu, &inputs[0], self.dtype, self.library.is_some())
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        self.record(cx, io)
    }
}

impl CropMirrorNormalize {
    /// Element type of the output.
    pub(in crate::ops) fn dtype(&self) -> DType {
        self.dtype
    }

    fn check_input(&self, dtype: DType) -> Result<()> {
        use DType::{F16, F32, I16, I32, U8, U16};
        self.library.map_or(Ok(()), |library| library::check_input(library, dtype))?;
        dtypes::accepted("input", dtype, &[U8, U16, I16, I32, F16, F32])
    }

    /// How an input of `layout` with `ndim` dimensions is reordered.
    pub(in crate::ops) fn order_of(&self, layout: Layout, ndim: usize) -> Result<Order> {
        Order::new(layout, self.output_layout, ndim)
    }

    fn output_channels(&self, channels: usize) -> usize {
        if self.pad_output { channels.checked_next_power_of_two().unwrap_or(channels) } else { channels }
    }

    /// What is done with a sample of `shape`, which is not the input's where that is resized first.
    pub(in crate::ops) fn job(
        &self,
        sample: &SampleInputs<'_>,
        shape: &Shape,
        order: &Order,
        recent: &mut Recent,
    ) -> Result<Arc<Job>> {
        let mirror = self.mirror.int(sample)? != 0;
        let is_fixed =
            self.window.is_fixed() && [&self.mean, &self.std].iter().all(|arg| arg.known().is_some());
        let recent = &mut recent[usize::from(mirror)];
        if let Some((_, job)) = recent.as_ref().filter(|(known, _)| is_fixed && known == shape) {
            return Ok(Arc::clone(job));
        }
        let job = Arc::new(self.new_job(sample, shape, order, mirror)?);
        *recent = Some((shape.clone(), Arc::clone(&job)));
        Ok(job)
    }

    fn new_job(&self, sample: &SampleInputs<'_>, shape: &Shape, order: &Order, mirror: bool) -> Result<Job> {
        let window = self.window.place(sample, shape, order.input_layout)?;
        let window = self.policy.settle(window, shape)?;
        let channels = shape[order.channel];
        if channels > limits::MAX_CHANNELS {
            return Err(Error::invalid(format!(
                "{channels} channels, more than the limit of {}",
                limits::MAX_CHANNELS
            )));
        }
        let padded = self.output_channels(channels);
        let mean = per_channel("mean", &self.mean.floats(sample)?, channels, padded)?;
        let std = per_channel("std", &self.std.floats(sample)?, channels, padded)?;
        let statistics = mean.into_iter().zip(std).take(channels);
        let (mut dali, mut tables) = (Vec::new(), Vec::new());
        match self.library {
            None => dali.extend(statistics.map(|(mean, std)| affine(mean, std, self.scale, self.shift))),
            Some(library) => tables.extend(statistics.map(|(mean, std)| self.table(library, mean, std))),
        }
        let fill = match self.policy {
            // DALI 2.4's CPU operator zeroes all channels but the first when there are several fill values but one mean
            // and one std; that is a defect, and not done here.
            OutOfBounds::Outside(_) => per_channel("fill_values", &self.fill, channels, padded)?,
            // DALI writes 0 to surplus channels unless the policy is to pad, whatever the fill values.
            OutOfBounds::Error | OutOfBounds::Trim => vec![0.0; padded],
        };
        Ok(Job { window, mirror, affine: dali, tables, fill, per_channel: OnceLock::new() })
    }

    fn table(&self, library: Library, mean: f32, std: f32) -> Table {
        let table = Table::new(library, mean, std);
        if self.dtype == DType::F16 { table.in_half_precision() } else { table }
    }

    fn run_tables(&self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        fn tables(job: &Job) -> Vec<&Table> {
            job.tables.iter().collect()
        }
        match self.dtype {
            DType::F16 => io.for_each_sample(cx, |sample| self.run_sample::<u8, _, f16>(sample, tables)),
            _ => io.for_each_sample(cx, |sample| self.run_sample::<u8, _, f32>(sample, tables)),
        }
    }

    fn run_from<S: Element + ConvertSat<f32>>(&self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        fn affine(job: &Job) -> Vec<Affine> {
            job.affine.clone()
        }
        match self.dtype {
            DType::F16 => io.for_each_sample(cx, |sample| self.run_sample::<S, _, f16>(sample, affine)),
            DType::U8 => io.for_each_sample(cx, |sample| self.run_sample::<S, _, u8>(sample, affine)),
            DType::I8 => io.for_each_sample(cx, |sample| self.run_sample::<S, _, i8>(sample, affine)),
            _ => io.for_each_sample(cx, |sample| self.run_sample::<S, _, f32>(sample, affine)),
        }
    }

    fn run_sample<'s, S, A, T>(
        &'s self,
        sample: &mut SampleIo<'_>,
        channels: fn(&'s Job) -> Vec<A>,
    ) -> Result<()>
    where
        S: Element,
        A: Channel<S>,
        T: Element + Normalized,
    {
        let job = self.jobs.get(sample.index()).and_then(Option::as_ref);
        let job = job.ok_or_else(|| Error::internal("a sample has no window"))?;
        let (input, output) = sample.unary()?;
        let (src, dst) = (input.as_slice::<S>()?, output.as_slice_mut::<T>()?);
        if dst.is_empty() {
            return Ok(());
        }
        let channels = &channels(job);
        match self.order.images {
            Some([from, to]) => job.images(channels, input.shape, from, to, src, dst),
            None => job.any_order(channels, input.shape, &self.order, src, dst),
        }
    }
}

/// The values of an argument for the `padded` channels of the output, from one for all, or one each for the `channels`
/// of the input or those of the output.
fn per_channel(name: &str, values: &[f32], channels: usize, padded: usize) -> Result<Vec<f32>> {
    if let [value] = values {
        return Ok(vec![*value; padded]);
    }
    if values.len() != channels && values.len() != padded {
        return Err(Error::invalid(format!(
            "argument `{name}` has {} values, expected 1 or {channels} as channels",
            values.len()
        )));
    }
    let mut values = values.to_vec();
    values.resize(padded, 0.0);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Failures;
    use crate::operator::args::Value;
    use crate::tensor::{Batch, Sample};

    fn infer(values: &[(&str, Value)], input: ValueType) -> Option<Vec<Option<usize>>> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let operator = DEF.instantiate(&Args::new(values, [].into()), 1).unwrap();
        operator.infer(&[input]).unwrap().remove(0).dims
    }

    #[test]
    fn a_fixed_window_gives_fixed_dimensions() {
        let crop = [("crop", Value::Floats(vec![224.0, 192.0]))];
        let and = |name, value| [crop[0].clone(), (name, value)];
        let image = ValueType {
            dtype: Some(DType::U8),
            dims: Some(vec![None, None, Some(3)]),
            layout: Some(Layout::hwc()),
        };
        assert_eq!(infer(&crop, image.clone()), Some(vec![Some(3), Some(224), Some(192)]));
        assert_eq!(infer(&crop, ValueType::default()), Some(vec![None, Some(224), Some(192)]));
        let pad = and("pad_output", Value::Bools(vec![true]));
        assert_eq!(infer(&pad, image.clone()), Some(vec![Some(4), Some(224), Some(192)]));
        let trim = and("out_of_bounds_policy", Value::Strings(vec!["trim_to_shape".to_owned()]));
        assert_eq!(infer(&trim, image.clone()), Some(vec![Some(3), None, None]));
        assert_eq!(infer(&[], image), Some(vec![Some(3), None, None]));
    }

    #[test]
    fn shapes_without_pixels_cost_nothing() {
        let huge = 1 << 62;
        let shapes = [[0, 0, huge], [0, huge, 3], [0, 0, 3]].map(Shape::from);
        let desc = BatchDesc::new(DType::U8, Layout::hwc(), shapes.to_vec());
        let batch = Batch::new(desc, vec![Sample::Borrowed(&[]); 3]).unwrap();
        let mut operator = DEF.instantiate(&Args::default(), 1).unwrap();
        let failures = Failures::none(3);
        operator.setup(&Inputs::new(&"N".into(), &[&batch], &[], &failures)).unwrap();
        assert!(failures.get(0).unwrap().to_string().contains("channels"));
        assert!(failures.get(1).is_none() && failures.get(2).is_none());
    }
}
