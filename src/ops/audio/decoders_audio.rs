//! `decoders__Audio`: WAV, FLAC and Ogg Vorbis to samples, and their sampling rate.

use super::{Level, frames, rate, resampler};
use crate::cpu::audio::decode::{Header, Samples, decode, header};
use crate::cpu::audio::resample::Resampler;
use crate::error::{Error, Result};
use crate::ops::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType, ViewMut};

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
    doc: "Decodes WAV, FLAC and Ogg Vorbis to samples and their rate",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("sample_rate", "samples a second of the output, 0: the file's").tensor().or_float(0.0),
        ArgSpec::bool("downmix", "whether the mean of all channels is taken").or_bool(false),
        ArgSpec::dtype("dtype", "element type of the output: float32, int16 or int32").or_dtype(DType::F32),
        ArgSpec::float("quality", "of resampling, 0 to 100").or_float(50.0),
    ],
    build: &build,
    outputs: &|_, _| Ok(2),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F32);
    if !matches!(dtype, DType::F32 | DType::I16 | DType::I32) {
        return Err(Error::unsupported(format!(
            "argument `dtype` is {dtype}, expected float32, int16 or int32"
        )));
    }
    Ok(Box::new(DecodersAudio {
        sample_rate: args.arg("sample_rate")?,
        downmixes: args.bool("downmix")?.unwrap_or(false),
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
        // As in DALI, a rate of 0 that is asked for is reported as such.
        let reported = self.sample_rate.as_ref().map_or(Ok(own), |arg| rate(arg, sample, 0.0))?;
        let rate = if reported == 0.0 { own } else { reported };
        let frames = frames(Resampler::length(header.frames, own, rate))?;
        Ok(Job { header, rate, reported, frames })
    }

    fn shape(&self, job: Option<&Job>) -> Shape {
        let Some(job) = job else { return Shape::new(vec![0; if self.downmixes { 1 } else { 2 }]) };
        Shape::new(if self.downmixes { vec![job.frames] } else { vec![job.frames, job.header.channels] })
    }

    fn run(&self, bytes: &[u8], output: &mut ViewMut<'_>, job: &Job) -> Result<()> {
        let (header, dtype) = (job.header, output.dtype);
        let samples = decode(bytes, header)?;
        let mixes = self.downmixes && header.channels > 1;
        let resamples = job.rate != f64::from(header.rate);
        // Integers stay what they are unless something is computed.
        if let (Samples::Integers(samples), false, false) = (&samples, mixes, resamples) {
            match dtype {
                DType::I16 => {
                    let to = output.as_slice_mut::<i16>()?.iter_mut().zip(samples);
                    to.for_each(|(to, from)| *to = (from >> 16) as i16);
                    return Ok(());
                }
                DType::I32 => {
                    output.as_slice_mut::<i32>()?.copy_from_slice(samples);
                    return Ok(());
                }
                _ => {}
            }
        }
        let mut signal = match samples {
            Samples::Floats(samples) => samples,
            Samples::Integers(samples) => {
                samples.into_iter().map(|sample| sample as f32 * (1.0 / 2_147_483_648.0)).collect()
            }
        };
        let mut channels = header.channels;
        if mixes {
            let weight = 1.0 / channels as f32;
            let mix = |frame: &[f32]| frame[1..].iter().fold(frame[0] * weight, |sum, x| sum + x * weight);
            signal = signal.chunks_exact(channels).map(mix).collect();
            channels = 1;
        }
        if resamples {
            let mut resampled = vec![0.0; job.frames * channels];
            self.resampler.run(&signal, &mut resampled, channels, f64::from(header.rate), job.rate);
            signal = resampled;
        }
        match dtype {
            DType::I16 => store::<i16>(&signal, output.as_slice_mut()?),
            DType::I32 => store::<i32>(&signal, output.as_slice_mut()?),
            _ => store::<f32>(&signal, output.as_slice_mut()?),
        }
        Ok(())
    }
}

fn store<T: Level>(signal: &[f32], dst: &mut [T]) {
    dst.iter_mut().zip(signal).for_each(|(to, &level)| *to = T::from_level(level));
}

impl Operator for DecodersAudio {
    fn is_steered_by(&self, _input: usize) -> bool {
        true
    }

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

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        io.for_each_sample(cx, |sample| {
            let job = this.jobs.get(sample.index()).and_then(Option::as_ref);
            let job = job.ok_or_else(|| Error::internal("a live sample has no header"))?;
            let input = sample.input(0)?;
            this.run(input.as_slice()?, sample.output(0)?, job)?;
            sample.output(1)?.as_slice_mut::<f32>()?.fill(job.reported as f32);
            Ok(())
        })
    }
}
