//! `decoders__Audio`: sound files to samples, and their sampling rate.

use super::{floats, frames, rate, resampler};
use crate::cpu::audio::decode::{effort, header};
use crate::cpu::audio::level::{Stored, store, write};
use crate::cpu::audio::resample::Resampler;
use crate::cpu::audio::sound::Header;
use crate::cpu::encoded::Encoded;
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType, ViewMut};

/// Nanoseconds of one core for each sample that is mixed.
const MIXED_SAMPLE: f64 = 1.0;

struct DecodersAudio {
    /// The rate of the output; the file's when it is 0 or not given.
    sample_rate: Option<Arg>,
    downmixes: bool,
    dtype: DType,
    resampler: Resampler,
    jobs: Vec<Option<Job>>,
}

/// One sample's work.
#[derive(Debug, Clone, Copy)]
struct Job {
    header: Header,
    /// Of the output.
    rate: f64,
    /// What the second output holds.
    reported: f64,
    frames: usize,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "decoders__Audio",
    aliases: &["AudioDecoder"],
    doc: "Decodes WAV, W64, AIFF, AU, CAF, FLAC, Ogg Vorbis, Opus, MP3, AAC and ALAC to samples and their rate",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("sample_rate", "samples a second of the output, 0 or less: the file's")
            .tensor()
            .or_float(0.0),
        ArgSpec::bool("downmix", "whether the mean of all channels is taken").or_bool(false),
        ArgSpec::dtype("dtype", "element type of the output: float32, int16 or int32").or_dtype(DType::F32),
        ArgSpec::float("quality", "of resampling, 0 to 100").or_float(50.0),
    ],
    build: &build,
    outputs: &|_, _| Ok(2),
    encoded: Some(Encoded::Sound),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let dtype = args.dtype("dtype")?;
    if !matches!(dtype, DType::F32 | DType::I16 | DType::I32) {
        return Err(Error::unsupported(format!(
            "argument `dtype` is {dtype}, expected float32, int16 or int32"
        )));
    }
    Ok(Box::new(DecodersAudio {
        sample_rate: args.given_arg("sample_rate")?,
        downmixes: args.bool("downmix")?,
        dtype,
        resampler: resampler(args.float("quality")?)?,
        jobs: Vec::new(),
    }))
}

impl DecodersAudio {
    fn job(&self, sample: &SampleInputs<'_>) -> Result<Job> {
        let header = header(sample.input(0)?.as_slice::<u8>()?)?;
        // All of it is decoded, however short it is at another rate.
        Shape::from([header.frames, header.channels]).bytes(size_of::<f32>())?;
        let own = f64::from(header.rate);
        // As in DALI, a rate of 0 or less is the file's, and is reported as it was asked for.
        let reported = self.sample_rate.as_ref().map_or(Ok(own), |arg| rate(arg, sample, f64::MIN))?;
        let rate = if reported > 0.0 { reported } else { own };
        let frames = frames(Resampler::length(header.frames, own, rate))?;
        Ok(Job { header, rate, reported, frames })
    }

    fn shape(&self, job: Option<&Job>) -> Shape {
        let Some(job) = job else { return Shape::new(vec![0; if self.downmixes { 1 } else { 2 }]) };
        Shape::new(if self.downmixes { vec![job.frames] } else { vec![job.frames, job.header.channels] })
    }

    /// Whether a sample of `job` is kept whole before it is at another rate, with how many channels.
    fn kept(&self, job: &Job) -> Option<usize> {
        let channels = if self.downmixes { 1 } else { job.header.channels };
        (job.rate != f64::from(job.header.rate)).then_some(channels)
    }

    fn effort(&self, job: &Job) -> Effort {
        let Header { frames, channels, .. } = job.header;
        let mut effort = effort(&job.header);
        if self.downmixes && channels > 1 {
            let samples = frames as f64 * channels as f64;
            effort.time += std::time::Duration::from_nanos((samples * MIXED_SAMPLE) as u64);
        }
        if let Some(kept) = self.kept(job) {
            let samples = [frames, job.frames].map(|frames| frames.saturating_mul(kept));
            effort.time += self.resampler.effort(samples[1]);
            let kept = samples[0].saturating_add(samples[1]).saturating_mul(size_of::<f32>());
            effort.scratch = effort.scratch.saturating_add(kept);
        }
        effort
    }

    fn run(&self, bytes: &[u8], output: &mut ViewMut<'_>, job: &Job, watch: &Watch<'_>) -> Result<()> {
        let dtype = output.dtype;
        let Some(channels) = self.kept(job) else {
            return match dtype {
                DType::I16 => self.decode::<i16>(bytes, job, watch, output.as_slice_mut()?),
                DType::I32 => self.decode::<i32>(bytes, job, watch, output.as_slice_mut()?),
                _ => self.decode::<f32>(bytes, job, watch, output.as_slice_mut()?),
            };
        };
        let mut signal = floats(job.header.frames * channels)?;
        signal.resize(job.header.frames * channels, 0.0);
        self.decode(bytes, job, watch, &mut signal)?;
        let mut resampled = floats(job.frames * channels)?;
        resampled.resize(job.frames * channels, 0.0);
        let rates = [f64::from(job.header.rate), job.rate];
        self.resampler.run(&signal, &mut resampled, channels, rates, watch)?;
        match dtype {
            DType::I16 => store::<i16>(&resampled, output.as_slice_mut()?),
            DType::I32 => store::<i32>(&resampled, output.as_slice_mut()?),
            _ => store::<f32>(&resampled, output.as_slice_mut()?),
        }
        Ok(())
    }

    fn decode<T: Stored>(&self, bytes: &[u8], job: &Job, watch: &Watch<'_>, dst: &mut [T]) -> Result<()> {
        write(bytes, &job.header, self.downmixes, 0..job.header.frames, watch, dst)
    }
}

impl Operator for DecodersAudio {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        if let Some(dtype) = inputs[0].dtype.filter(|&dtype| dtype != DType::U8) {
            return Err(Error::invalid(format!("encoded audio of type {dtype}, expected uint8")));
        }
        let samples = ValueType::ranked(self.dtype, if self.downmixes { 1 } else { 2 }, Layout::NONE);
        Ok(vec![samples, ValueType::ranked(DType::F32, 0, Layout::NONE)])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.jobs = inputs.map(|sample| self.job(&sample).map(Some));
        let shapes = self.jobs.iter().map(|job| self.shape(job.as_ref())).collect();
        let scalars = vec![Shape::default(); self.jobs.len()];
        Ok(vec![
            BatchDesc::new(self.dtype, Layout::NONE, shapes),
            BatchDesc::new(DType::F32, Layout::NONE, scalars),
        ])
    }

    fn effort(&self, sample: usize) -> Effort {
        let job = self.jobs.get(sample).and_then(Option::as_ref);
        job.map(|job| self.effort(job)).unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        let failures = io.inputs().failures();
        io.for_each_sample(cx, |sample| {
            let job = this.jobs.get(sample.index()).and_then(Option::as_ref);
            let job = job.ok_or_else(|| Error::internal("a live sample has no header"))?;
            let watch = Watch::new(cx.deadline, failures.member(sample.index()));
            let input = sample.input(0)?;
            this.run(input.as_slice()?, sample.output(0)?, job, &watch)?;
            sample.output(1)?.as_slice_mut::<f32>()?.fill(job.reported as f32);
            Ok(())
        })
    }
}
