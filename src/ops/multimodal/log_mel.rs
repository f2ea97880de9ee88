//! `gesso__LogMel`: Whisper's features of a sound.

use super::sides::count;
use crate::cpu::audio::log_mel::{LogMel as Features, Settings};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::shared::dtypes;
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct LogMel {
    features: Features,
    bands: usize,
    /// Samples that each signal is cut or lengthened to; `None`: as many as it has.
    samples: Option<usize>,
    efforts: Vec<Effort>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__LogMel",
    doc: "Whisper's features of a sound of one channel: a row for each mel band (Slaney's scale and norm) with the \
          decimal logarithms of its powers, of Hann windows of a signal that is mirrored at its ends; down to 8 below \
          the largest, plus 4, over 4",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("nfilter", "number of mel bands").or_int(80),
        ArgSpec::int("nfft", "samples of a window and of its transform").or_int(400),
        ArgSpec::int("window_step", "samples from one window to the next").or_int(160),
        ArgSpec::int("sample_rate", "samples a second").or_int(16_000),
        ArgSpec::float("freq_high", "where the last band ends, in hertz").or_float(8000.0),
        ArgSpec::int(
            "samples",
            "samples that a signal is cut to or, by silence, lengthened to; 0: as many as it has",
        )
        .or_int(480_000),
    ],
    build: &build,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let number = |name: &str, most| Ok::<_, Error>(count(name, args.int(name)?, most)? as usize);
    let sample_rate = number("sample_rate", limits::MAX_SAMPLE_BYTES)?;
    let high = args.float("freq_high")?;
    if !(high > 0.0 && high <= sample_rate as f32 / 2.0) {
        return Err(Error::invalid(format!(
            "argument `freq_high` is {high}, expected a number above 0, at most half of `sample_rate`, {sample_rate}"
        )));
    }
    let settings = Settings {
        bands: number("nfilter", limits::MAX_MEL_BANDS)?,
        length: number("nfft", limits::MAX_FEATURE_TRANSFORM)?,
        step: number("window_step", limits::MAX_SAMPLE_BYTES)?,
        sample_rate,
        high: f64::from(high),
    };
    let samples = match args.int("samples")? {
        0 => None,
        samples => Some(count("samples", samples, limits::MAX_SAMPLE_BYTES / size_of::<f32>())? as usize),
    };
    let features = Features::new(settings);
    Ok(Box::new(LogMel { features, bands: settings.bands, samples, efforts: Vec::new() }))
}

/// The samples of a signal: of one dimension, or of one channel.
///
/// # Errors
/// When it has more.
pub(super) fn length(shape: &Shape) -> Result<usize> {
    let length = shape.volume()?;
    if shape.is_empty() || shape.iter().any(|&extent| extent != 1 && extent != length) {
        return Err(Error::invalid(format!(
            "a signal of shape {shape}, expected one dimension or one channel"
        )));
    }
    Ok(length)
}

impl Operator for LogMel {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), floats_only)?;
        let windows = self.samples.map(|samples| self.features.shape(samples)[1]);
        Ok(vec![ValueType {
            dtype: Some(DType::F32),
            dims: Some(vec![Some(self.bands), windows]),
            layout: Some(Layout::from_letters(b"ft")),
        }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        floats_only(inputs.desc(0)?.dtype)?;
        let samples = inputs.map(|sample| {
            let found = length(sample.input(0)?.shape)?;
            match self.samples.unwrap_or(found) {
                0 => Err(Error::invalid("a signal without samples, expected one at least")),
                samples => Ok(samples),
            }
        });
        self.efforts = samples.iter().map(|&samples| self.features.effort(samples)).collect();
        let shapes = inputs.map_shapes(2, |sample| {
            let samples = samples.get(sample.index).copied().unwrap_or_default();
            Ok(Shape::from(self.features.shape(samples)))
        });
        Ok(vec![BatchDesc::new(DType::F32, Layout::from_letters(b"ft"), shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (features, failures) = (&self.features, io.inputs().failures());
        io.for_each_sample(cx, |sample| {
            let watch = cx.watch(failures, sample.index());
            let (input, output) = sample.unary()?;
            let signal: &[f32] = input.as_slice()?;
            let samples = self.samples.unwrap_or(signal.len());
            let signal = signal.get(..samples).unwrap_or(signal);
            features.run(signal, samples, output.as_slice_mut()?, &watch)
        })
    }
}

/// Fails for what is not float32.
pub(super) fn floats_only(dtype: DType) -> Result<()> {
    dtypes::accepted("samples", dtype, &[DType::F32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    fn made(values: &[(&str, i64)], shape: &[usize], signal: &[f32]) -> Result<usize, String> {
        let values: Vec<_> = values.iter().map(|&(name, value)| (name, Value::Ints(vec![value]))).collect();
        let made = run(&DEF, &args(&values, &[]), &[batch(&[(shape, signal)])], &[]);
        let made = made.map_err(|error| error.to_string())?;
        made.words(0)?;
        Ok(made.desc.shapes[0][1])
    }

    #[test]
    fn signals_are_cut_or_lengthened() {
        let signal = [0.25; 640];
        assert_eq!(made(&[("samples", 320)], &[640], &signal), Ok(2));
        assert_eq!(made(&[("samples", 0)], &[640, 1], &signal), Ok(4));
        assert_eq!(made(&[("samples", 800)], &[0], &[]), Ok(5));
    }

    #[test]
    fn hostile_signals_and_arguments_are_errors() {
        assert!(made(&[("samples", 0)], &[0], &[]).unwrap_err().contains("without samples"));
        assert!(made(&[], &[2, 2], &[0.0; 4]).unwrap_err().contains("one channel"));
        assert!(made(&[], &[], &[0.0]).unwrap_err().contains("one channel"));
        for name in ["nfilter", "nfft", "window_step", "sample_rate"] {
            for value in [0, -1, i64::MAX] {
                assert!(
                    made(&[(name, value)], &[4], &[0.0; 4]).unwrap_err().contains(name),
                    "{name} {value}"
                );
            }
        }
        assert!(made(&[("samples", -1)], &[4], &[0.0; 4]).unwrap_err().contains("samples"));
        assert!(made(&[("freq_high", 8001)], &[4], &[0.0; 4]).unwrap_err().contains("half of `sample_rate`"));
    }
}
