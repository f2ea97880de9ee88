//! `noise__SaltAndPepper`: images with some pixels bright and some dark.

use std::sync::Arc;

use super::gpu::{Change, noise_kernel, run_noise};
use super::noise::check;
use super::{SEED, STRETCH, counts, drawing, seed};
use crate::cpu::random::{BatchRandom, Seed};
use crate::deadline::{Effort, Watch};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::dtypes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleIo, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, ValueType, bits, of_bits};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "noise__SaltAndPepper",
    doc: "Replaces random pixels by bright and dark ones",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        SEED,
        ArgSpec::float("prob", "probability that a pixel is replaced").tensor().or_float(0.05),
        ArgSpec::float("salt_vs_pepper", "probability that such a pixel is bright").tensor().or_float(0.5),
        ArgSpec::float("salt_val", "value of bright pixels")
            .tensor()
            .or_computed("the type's largest, 1 for float32"),
        ArgSpec::float("pepper_val", "value of dark pixels")
            .tensor()
            .or_computed("the type's smallest, -1 for float32"),
        ArgSpec::bool("per_channel", "whether channels are replaced one by one").or_bool(false),
    ],
    build: &SaltAndPepper::operator,
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

struct SaltAndPepper {
    probability: Arg,
    salt_share: Arg,
    salt: Option<Arg>,
    pepper: Option<Arg>,
    per_channel: bool,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample, for the batch at hand.
    jobs: Vec<Job>,
    counts: Vec<usize>,
}

/// Nanoseconds that an element takes.
const NUMBER_TIME: f64 = 3.0;

/// What becomes of one sample.
#[derive(Debug, Clone, Default)]
struct Job {
    probability: f32,
    /// Below this, a pixel becomes bright.
    salt_below: f32,
    salt: Option<f32>,
    pepper: Option<f32>,
}

impl SaltAndPepper {
    fn operator(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Self {
            probability: args.arg("prob")?,
            salt_share: args.arg("salt_vs_pepper")?,
            salt: args.given_arg("salt_val")?,
            pepper: args.given_arg("pepper_val")?,
            per_channel: args.bool("per_channel")?,
            seed: seed(args)?,
            batch: BatchRandom::default(),
            jobs: Vec::new(),
            counts: Vec::new(),
        }))
    }

    /// Whether channels come first, of an input in which they are the last or the first dimension.
    fn channels_first(&self, layout: Layout, ndim: usize) -> Result<bool> {
        match layout.find(b'C') {
            _ if self.per_channel || layout.is_none() => Ok(false),
            Some(0) => Ok(ndim > 1),
            Some(last) if last + 1 == ndim => Ok(false),
            _ => Err(Error::invalid(format!(
                "layout `{layout}`, expected channels as the first or the last dimension"
            ))),
        }
    }

    /// Elements that share a random number.
    fn channels(&self, shape: &[usize], channels_first: bool) -> usize {
        match shape {
            _ if self.per_channel => 1,
            [] => 1,
            [first, ..] if channels_first => *first,
            [.., last] => *last,
        }
    }

    fn run<T: Element>(&self, sample: &mut SampleIo<'_>, watch: &Watch<'_>) -> Result<()> {
        let (job, random) = (&self.jobs[sample.index()], self.batch.sample(sample.index()));
        let (input, output) = sample.unary()?;
        let channels_first = self.channels_first(input.layout, input.shape.len())?;
        let elements = output.as_slice_mut::<T>()?;
        elements.copy_from_slice(input.as_slice::<T>()?);
        let [salt, pepper] = extremes(T::DTYPE, job)?.map(of_bits::<T>);
        let channels = self.channels(input.shape, channels_first);
        let Some(pixels) = elements.len().checked_div(channels) else { return Ok(()) };
        for (pixel, mut random) in (0..pixels).zip(random.elements()) {
            if pixel % STRETCH == 0 {
                watch.charge(STRETCH.saturating_mul(channels))?;
            }
            let drawn = random.unit_f32();
            if drawn >= job.probability {
                continue;
            }
            let value = if drawn < job.salt_below { salt } else { pepper };
            if channels_first {
                elements.iter_mut().skip(pixel).step_by(pixels).for_each(|element| *element = value);
            } else {
                elements[pixel * channels..(pixel + 1) * channels].fill(value);
            }
        }
        Ok(())
    }
}

impl Operator for SaltAndPepper {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, check)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        self.channels_first(desc.layout, desc.shapes.first().map_or(0, |shape| shape.len()))?;
        self.batch = self.seed.batch(inputs.first_sample());
        self.jobs = inputs.map(|sample| {
            let probability = self.probability.float(&sample)?;
            let value = |arg: &Option<Arg>| arg.as_ref().map(|arg| arg.float(&sample)).transpose();
            Ok(Job {
                probability,
                salt_below: probability * self.salt_share.float(&sample)?,
                salt: value(&self.salt)?,
                pepper: value(&self.pepper)?,
            })
        });
        self.counts = counts(&desc.shapes);
        Ok(vec![desc.clone()])
    }

    fn effort(&self, sample: usize) -> Effort {
        drawing(&self.counts, sample, NUMBER_TIME)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (dtype, failures) = (io.inputs().desc(0)?.dtype, io.inputs().failures());
        dispatch!(dtype, T => io.for_each_sample(cx, |sample| {
            self.run::<T>(sample, &cx.watch(failures, sample.index()))
        }))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&noise_kernel("salt_and_pepper", dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let desc = io.inputs().desc(0)?;
        let channels_first = self.channels_first(desc.layout, desc.shapes.first().map_or(0, |s| s.len()))?;
        run_noise(cx, io, ("salt_and_pepper", 1), &self.batch, |sample, shape| {
            let job = &self.jobs[sample];
            let channels = self.channels(shape, channels_first);
            let pixels = shape.iter().product::<usize>().checked_div(channels).unwrap_or_default();
            Ok(Change {
                channels,
                steps: if channels_first { [1, pixels] } else { [channels, 1] },
                extremes: extremes(desc.dtype, job)?,
                bounds: [job.probability, job.salt_below],
            })
        })
    }
}

/// The bits of a bright and of a dark element.
fn extremes(dtype: DType, job: &Job) -> Result<[u64; 2]> {
    macro_rules! integers {
        ($T:ty) => {
            // DALI keeps the low bits of a value that does not fit.
            [(job.salt, <$T>::MAX), (job.pepper, <$T>::MIN)]
                .map(|(given, default)| bits(given.map_or(default, |value| value as i64 as $T)))
        };
    }
    Ok(match dtype {
        DType::U8 => integers!(u8),
        DType::U16 => integers!(u16),
        DType::U32 => integers!(u32),
        DType::U64 => integers!(u64),
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        DType::F32 => {
            [(job.salt, 1.0f32), (job.pepper, -1.0)].map(|(given, default)| bits(given.unwrap_or(default)))
        }
        DType::F16 | DType::F64 | DType::Bool => return check(dtype).map(|()| [0; 2]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_bits_of_elements() {
        let job = Job { salt: Some(300.7), pepper: None, ..Job::default() };
        assert_eq!(extremes(DType::U8, &job).unwrap(), [44, 0]);
        assert_eq!(extremes(DType::I16, &job).unwrap(), [300, 0x8000]);
        assert_eq!(extremes(DType::F32, &Job::default()).unwrap(), [0x3F80_0000, 0xBF80_0000]);
        assert!(extremes(DType::F64, &job).is_err());
    }
}
