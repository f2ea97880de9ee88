//! `gesso__SeamlessFeatures`: SeamlessM4T's features of a sound.

use super::log_mel::{floats_only, length};
use super::sides::count;
use crate::cpu::audio::kaldi::Features;
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct SeamlessFeatures {
    features: Features,
    bands: usize,
    /// Windows in a row of the output.
    stride: usize,
    /// Samples of each signal.
    samples: Vec<usize>,
}

/// transformers adds a window of zeros where the number of windows is no multiple of this.
const MULTIPLE: usize = 2;

/// Fewest windows: a variance needs two values.
const LEAST: usize = 2;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__SeamlessFeatures",
    doc: "SeamlessM4T's features of a sound of one channel, float32: a row for each group of windows with the \
          logarithms of their mel bands' powers, as Kaldi has them, each band with a mean of 0 and a variance of 1; \
          and a mask, int32: 0 for a group that is filled with zeros",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("nfilter", "number of mel bands").or_int(80),
        ArgSpec::int("sample_rate", "samples a second").or_int(16_000),
        ArgSpec::int("stride", "windows of a group, 2 at least").or_int(2),
    ],
    build: &build,
    outputs: &|_, _| Ok(2),
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let number = |name: &str, most| Ok::<_, Error>(count(name, args.int(name)?, most)? as usize);
    let (bands, stride) =
        (number("nfilter", limits::MAX_MEL_BANDS)?, number("stride", limits::MAX_PATCH_GROUP)?);
    let sample_rate = number("sample_rate", limits::MAX_SAMPLE_BYTES)?;
    if stride < LEAST {
        return Err(Error::invalid(format!(
            "argument `stride` is {stride}, expected {LEAST} to {}",
            limits::MAX_PATCH_GROUP
        )));
    }
    let features = Features::new(bands, sample_rate);
    Ok(Box::new(SeamlessFeatures { features, bands, stride, samples: Vec::new() }))
}

impl SeamlessFeatures {
    fn rows(&self, samples: usize) -> usize {
        Features::windows(samples).next_multiple_of(MULTIPLE) / self.stride
    }
}

impl Operator for SeamlessFeatures {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), floats_only)?;
        let of = |dtype, dims| ValueType { dtype: Some(dtype), dims: Some(dims), layout: Some(Layout::NONE) };
        Ok(vec![of(DType::F32, vec![None, Some(self.bands * self.stride)]), of(DType::I32, vec![None])])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        floats_only(inputs.desc(0)?.dtype)?;
        self.samples = inputs.map(|sample| {
            let samples = length(sample.input(0)?.shape)?;
            match Features::windows(samples) {
                LEAST.. => Ok(samples),
                found => Err(Error::invalid(format!(
                    "a signal of {samples} samples, which have {found} windows, expected {LEAST} at least"
                ))),
            }
        });
        let rows: Vec<_> = self.samples.iter().map(|&samples| self.rows(samples)).collect();
        let features = rows.iter().map(|&rows| Shape::from([rows, self.bands * self.stride])).collect();
        let masks = rows.iter().map(|&rows| Shape::from([rows])).collect();
        Ok(vec![
            BatchDesc::new(DType::F32, Layout::NONE, features),
            BatchDesc::new(DType::I32, Layout::NONE, masks),
        ])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.samples.get(sample).map(|&samples| self.features.effort(samples)).unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let failures = io.inputs().failures();
        io.for_each_sample(cx, |sample| {
            let watch = cx.watch(failures, sample.index());
            let input = sample.input(0)?;
            let signal: &[f32] = input.as_slice()?;
            let windows = Features::windows(signal.len());
            self.features.run(signal, sample.output(0)?.as_slice_mut()?, &watch)?;
            for (row, to) in sample.output(1)?.as_slice_mut::<i32>()?.iter_mut().enumerate() {
                *to = i32::from(row * self.stride + 1 < windows);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    fn made(values: &[(&str, i64)], shape: &[usize], signal: &[f32]) -> Result<[usize; 2], String> {
        let values: Vec<_> = values.iter().map(|&(name, value)| (name, Value::Ints(vec![value]))).collect();
        let made = run(&DEF, &args(&values, &[]), &[batch(&[(shape, signal)])], &[]);
        let made = made.map_err(|error| error.to_string())?;
        made.words(0)?;
        Ok([made.desc.shapes[0][0], made.desc.shapes[0][1]])
    }

    #[test]
    fn windows_are_grouped() {
        let signal = [0.25; 1200];
        assert_eq!(made(&[], &[1040], &signal[..1040]), Ok([3, 160]));
        assert_eq!(made(&[("stride", 3)], &[1200, 1], &signal), Ok([2, 240]));
    }

    #[test]
    fn hostile_signals_and_arguments_are_errors() {
        let signal = [0.0; 800];
        for samples in [0, 1, 399, 400, 559] {
            assert!(
                made(&[], &[samples], &signal[..samples]).unwrap_err().contains("2 at least"),
                "{samples}"
            );
        }
        assert!(made(&[], &[2, 400], &signal).unwrap_err().contains("one channel"));
        for name in ["nfilter", "sample_rate", "stride"] {
            for value in [0, -1, i64::MAX] {
                assert!(
                    made(&[(name, value)], &[800], &signal).unwrap_err().contains(name),
                    "{name} {value}"
                );
            }
        }
        assert!(made(&[("stride", 1)], &[800], &signal).unwrap_err().contains("expected 2"));
    }
}
