//! `AudioResample`: a signal at another sampling rate.

use std::sync::Arc;

use super::{Level, floats, frames, level_for, rate, resampler};
use crate::cpu::audio::resample::Resampler;
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Shape, ValueType, View, ViewMut};

/// What gives the rates.
enum Rates {
    Both(Arg, Arg),
    Scale(Arg),
    Length(Arg),
}

struct AudioResample {
    rates: Rates,
    dtype: Option<DType>,
    resampler: Resampler,
    /// Rates of the input and the output.
    jobs: Vec<Option<(f64, f64)>>,
    efforts: Vec<Effort>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "AudioResample",
    aliases: &["experimental__AudioResample"],
    doc: "A signal at another sampling rate",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("in_rate", "samples a second of the input, with `out_rate`").tensor(),
        ArgSpec::float("out_rate", "samples a second of the output").tensor(),
        ArgSpec::float("scale", "length of the output over that of the input, instead of rates").tensor(),
        ArgSpec::int("out_length", "samples of the output, instead of rates").tensor(),
        ArgSpec::float("quality", "from 0, 3 lobes of a sinc, to 100, 64 lobes").or_float(50.0),
        ArgSpec::dtype("dtype", "element type of the output, scaled to its range").or_computed("the input's"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let rates = (
        args.given_arg("in_rate")?,
        args.given_arg("out_rate")?,
        args.given_arg("scale")?,
        args.given_arg("out_length")?,
    );
    let rates = match rates {
        (Some(from), Some(to), None, None) => Rates::Both(from, to),
        (None, None, Some(scale), None) => Rates::Scale(scale),
        (None, None, None, Some(length)) => Rates::Length(length),
        _ => {
            return Err(Error::invalid(
                "expected the arguments `in_rate` and `out_rate`, or `scale`, or `out_length`",
            ));
        }
    };
    let dtype = args.given_dtype("dtype")?;
    dtype.map_or(Ok(()), supported)?;
    Ok(Box::new(AudioResample {
        rates,
        dtype,
        resampler: resampler(args.float("quality")?)?,
        jobs: Vec::new(),
        efforts: Vec::new(),
    }))
}

fn supported(dtype: DType) -> Result<()> {
    use DType::{F32, I8, I16, I32, U8, U16, U32};
    if matches!(dtype, U8 | U16 | U32 | I8 | I16 | I32 | F32) {
        return Ok(());
    }
    Err(Error::unsupported(format!("signals of type {dtype}, expected integers of up to 32 bits or float32")))
}

impl AudioResample {
    /// Both rates and the length of the output for an input of `length` samples.
    fn job(&self, sample: &SampleInputs<'_>, length: usize) -> Result<(f64, f64, usize)> {
        let (from, to) = match &self.rates {
            Rates::Both(from, to) => (rate(from, sample, f64::MIN_POSITIVE)?, rate(to, sample, 0.0)?),
            Rates::Scale(scale) => (1.0, rate(scale, sample, 0.0)?),
            Rates::Length(arg) => {
                let wanted = frames(arg.int(sample)? as f64)?;
                if length == 0 && wanted > 0 {
                    return Err(Error::invalid(format!("{wanted} samples of an empty signal")));
                }
                return Ok((length.max(1) as f64, wanted.max(1) as f64, wanted));
            }
        };
        Ok((from, to, frames(Resampler::length(length, from, to))?))
    }

    /// Rates of live sample `index`.
    fn rates(&self, index: usize) -> Result<(f64, f64)> {
        let rates = self.jobs.get(index).copied().flatten();
        rates.ok_or_else(|| Error::internal("a live sample has no rates"))
    }

    fn run<S: Element + Level, T: Element + Level>(
        &self,
        input: &View<'_>,
        output: &mut ViewMut<'_>,
        (from, to): (f64, f64),
        watch: &Watch<'_>,
    ) -> Result<()> {
        let channels = input.shape.get(1).copied().unwrap_or(1);
        let input = input.as_slice::<S>()?;
        let mut signal = floats(input.len())?;
        signal.extend(input.iter().map(|&value| level_for::<S, T>(value)));
        let dst = output.as_slice_mut::<T>()?;
        if dst.is_empty() {
            return Ok(());
        }
        let mut resampled = floats(dst.len())?;
        resampled.resize(dst.len(), 0.0);
        self.resampler.run(&signal, &mut resampled, channels, [from, to], watch)?;
        dst.iter_mut().zip(resampled).for_each(|(to, level)| *to = T::from_level(level));
        Ok(())
    }
}

impl Operator for AudioResample {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), supported)?;
        ty.dtype = self.dtype.or(ty.dtype);
        if let Some(first) = ty.dims.as_mut().and_then(|dims| dims.first_mut()) {
            *first = None;
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        supported(desc.dtype)?;
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let jobs = inputs.map(|sample| match sample.input(0)?.shape[..] {
            [length] | [length, _] => self.job(&sample, length).map(Some),
            ref shape => {
                Err(Error::invalid(format!("a signal of shape {shape:?}, expected 1 or 2 dimensions")))
            }
        });
        let shapes = desc.shapes.iter().zip(&jobs).map(|(shape, job)| match job {
            Some((.., length)) => Shape::new([&[*length], shape.get(1..).unwrap_or_default()].concat()),
            None => Shape::new(vec![0; ndim]),
        });
        let shapes: Vec<_> = shapes.collect();
        let efforts = desc.shapes.iter().zip(&shapes).map(|(from, to)| {
            let [from, to] = [from, to].map(|shape| shape.volume().unwrap_or(usize::MAX));
            // Both as floats.
            let scratch = from.saturating_add(to).saturating_mul(size_of::<f32>());
            Effort { time: self.resampler.effort(to), scratch }
        });
        self.efforts = efforts.collect();
        let desc = BatchDesc::new(self.dtype.unwrap_or(desc.dtype), desc.layout, shapes);
        self.jobs = jobs.into_iter().map(|job| job.map(|(from, to, _)| (from, to))).collect();
        Ok(vec![desc])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        let from = io.inputs().desc(0)?.dtype;
        let failures = io.inputs().failures();
        macro_rules! run {
            ($from:ty) => {
                io.for_each_sample(cx, |sample| {
                    let rates = this.rates(sample.index())?;
                    let watch = Watch::new(cx.deadline, failures.member(sample.index()));
                    let (input, output) = sample.unary()?;
                    match output.dtype {
                        DType::U8 => this.run::<$from, u8>(&input, output, rates, &watch),
                        DType::U16 => this.run::<$from, u16>(&input, output, rates, &watch),
                        DType::U32 => this.run::<$from, u32>(&input, output, rates, &watch),
                        DType::I8 => this.run::<$from, i8>(&input, output, rates, &watch),
                        DType::I16 => this.run::<$from, i16>(&input, output, rates, &watch),
                        DType::I32 => this.run::<$from, i32>(&input, output, rates, &watch),
                        _ => this.run::<$from, f32>(&input, output, rates, &watch),
                    }
                })
            };
        }
        match from {
            DType::U8 => run!(u8),
            DType::U16 => run!(u16),
            DType::U32 => run!(u32),
            DType::I8 => run!(i8),
            DType::I16 => run!(i16),
            DType::I32 => run!(i32),
            _ => run!(f32),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let Some(from) = inputs[0].dtype else { return Ok(()) };
        gpu.kernel(&kernel(from, self.dtype.unwrap_or(from))).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let rows = io.rows(|sample| {
            let (in_rate, out_rate) = self.rates(sample.index())?;
            let shape = sample.input(0)?.shape;
            Ok(Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                elements: sample.output_shape(0)?.volume()? as u64,
                frames: shape.first().copied().unwrap_or_default() as i64,
                // An output at an even lower rate has one frame.
                step: (in_rate / out_rate).min(f64::from(f32::MAX)),
                channels: shape.get(1).copied().unwrap_or(1) as u64,
            })
        });
        let window = self.resampler.window();
        let params = Params {
            table: cx.recorder.stage(bytemuck::cast_slice(window.table))?.address(),
            scale: window.scale,
            center: window.center,
            lobes: window.lobes as i32,
            entries: window.table.len() as i32,
        };
        let most = rows.iter().map(|row| row.elements as usize).max().unwrap_or_default();
        cx.launch(&kernel(from, self.dtype.unwrap_or(from)), most, &params, &rows)
    }
}

device_struct! {
    /// A signal, as `kernels/audio_resample.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        /// of the output
        elements: u64,
        /// of the input
        frames: i64,
        /// frames of the input for one of the output
        step: f64,
        channels: u64,
    }
}

device_struct! {
    struct Params as Params {
        /// starts and ends with zeros, so that interpolation needs no bounds
        table: u64 = "const float *",
        scale: f32,
        center: f32,
        lobes: i32,
        entries: i32,
    }
}

pub(super) fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, Params>("audio_resample", "audio_resample").dtype("FROM", from).dtype("TO", to)
}
