//! `gesso__SeamlessFeatures`: SeamlessM4T's features of a sound.

use std::sync::Arc;

use super::log_mel::{floats_only, length};
use super::sides::count;
use super::spectra::{Asked, Band, Tables, radices};
use crate::cpu::audio::kaldi::{self, Features};
use crate::cpu::audio::pairwise;
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::{ArgSpec, Args, CpuCx, Deferred, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct SeamlessFeatures {
    features: Features,
    bands: usize,
    /// Windows in a row of the output.
    stride: usize,
    /// Samples of each signal.
    samples: Vec<usize>,
    /// For a device, made for the first batch.
    tables: Option<Tables>,
    /// What the device was asked for and has not been heard of.
    asked: Option<Asked>,
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
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("nfilter", "number of mel bands").or_int(80),
        ArgSpec::int("sample_rate", "samples a second").or_int(16_000),
        ArgSpec::int("stride", "windows of a group, 2 at least").or_int(2),
    ],
    build: &build,
    outputs: &|_, _| Ok(2),
    kernels: &[kernels],
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
    Ok(Box::new(SeamlessFeatures { features, bands, stride, samples: Vec::new(), tables: None, asked: None }))
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

    fn deferred(&mut self) -> Option<&mut dyn Deferred> {
        Some(self)
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        kernels().iter().try_for_each(|kernel| gpu.kernel(kernel).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mut asked = Asked::new(cx.recorder, io.inputs().batch_size(), self.bands)?;
        let mut rows = io.rows(|sample| {
            let samples = sample.input(0)?.shape.volume()?;
            let windows = Features::windows(samples);
            Ok(Row {
                to: sample.target(0)?,
                mask: sample.target(1)?,
                from: sample.source(0)?,
                columns: 0,
                sums: 0,
                outcome: asked.next(sample.index()),
                windows: windows as u64,
                groups: self.rows(samples) as u64,
                depth: pairwise::depth(windows),
                unused: 0,
            })
        });
        let blocks = self.bands.min(MAX_BLOCKS);
        let of_columns = |row: &Row| row.windows as usize * self.bands * size_of::<f32>();
        let of_sums = |row: &Row| blocks * ((2 * size_of::<f32>()) << row.depth);
        let bytes = rows.iter().map(|row| of_columns(row) + of_sums(row)).sum::<usize>().max(1);
        let mut memory = cx.recorder.scratch(bytes)?;
        for row in &mut rows {
            row.columns = memory;
            row.sums = memory + of_columns(row) as u64;
            memory = row.sums + of_sums(row) as u64;
        }
        let features = &self.features;
        let tables = self
            .tables
            .get_or_insert_with(|| Tables::new(kaldi::LENGTH, features.window(), features.bands()))
            .stage(cx)?;
        let params = Params {
            window: tables.window,
            turns: tables.turns,
            filters: tables.bands,
            weights: tables.weights,
            emphasis: kaldi::EMPHASIS,
            floor: kaldi::FLOOR,
            levels: kaldi::LEVELS,
            epsilon: kaldi::EPSILON,
            bands: self.bands as u32,
            stride: self.stride as u32,
        };
        // A block makes two windows at a time.
        let most = rows.iter().map(|row| row.windows as usize).max().unwrap_or_default().div_ceil(2);
        cx.launch_blocks(&kernel("logarithms"), (most, THREADS), &params, &rows)?;
        cx.launch_blocks(&kernel("normalized"), (blocks, THREADS), &params, &rows)?;
        if cx.may_settle {
            self.asked = Some(asked);
            return Ok(());
        }
        cx.recorder.flush(&[])?;
        asked.fail(cx.recorder, &io.inputs());
        Ok(())
    }
}

impl Deferred for SeamlessFeatures {
    fn is_unsettled(&self) -> bool {
        self.asked.is_some()
    }

    fn settle(&mut self, cx: &mut GpuCx<'_>, io: &GpuIo<'_>) -> Result<bool> {
        if let Some(asked) = self.asked.take() {
            asked.fail(cx.recorder, &io.inputs());
        }
        Ok(false)
    }
}

/// Blocks that normalize the bands of a signal, each with memory for its sums.
const MAX_BLOCKS: usize = 128;

device_constants! {
    fn constants;

    /// Samples of a window, from one window to the next, and of a transform.
    const WINDOW: usize = kaldi::WINDOW;
    const STEP: usize = kaldi::STEP;
    const LENGTH: usize = kaldi::LENGTH;
    /// How often a window is halved until all parts have at most PART samples.
    const DEPTH: u32 = pairwise::depth(kaldi::WINDOW);
    /// Values up to which a sum is one loop, and sums side by side in it.
    const PART: usize = pairwise::BLOCK;
    const LANES: usize = pairwise::LANES;
    const THREADS: u32 = 256;
    /// What the kernel says of a band.
    const MADE: u32 = 0;
    const NO_NUMBERS: u32 = 1;
}

const HEADER: Header = Header { name: "seamless_features", text: || text_with::<Row, Params>(&constants()) };

device_struct! {
    /// A signal, as `kernels/seamless_features.cu` sees it.
    struct Row as Row {
        to: u64 = "float *",
        mask: u64 = "int32_t *",
        from: u64 = "const float *",
        /// logarithms, all of a band one after the other
        columns: u64 = "float *",
        /// of each block, with room for 2 << depth
        sums: u64 = "float *",
        /// of each band: MADE or NO_NUMBERS
        outcome: u64 = "uint32_t *",
        windows: u64,
        /// of windows: rows of the output
        groups: u64,
        /// how often windows are halved until all parts have at most PART
        depth: u32,
        unused: u32,
    }
}

device_struct! {
    struct Params as Params {
        /// WINDOW factors
        window: u64 = "const double *",
        turns: u64 = "const Complex *",
        filters: u64 = "const Band *" of Band,
        weights: u64 = "const double *",
        /// what of a sample is subtracted from the next one
        emphasis: f64,
        /// powers below are this
        floor: f64,
        /// what samples are multiplied by
        levels: f32,
        /// added to a variance
        epsilon: f32,
        bands: u32,
        /// windows of a group
        stride: u32,
    }
}

/// Its function `entry`.
fn kernel(entry: &'static str) -> KernelSpec {
    KernelSpec::of::<Row, Params>("seamless_features", entry)
        .header(HEADER)
        .define("RADICES", radices(kaldi::LENGTH))
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    ["logarithms", "normalized"].map(kernel).to_vec()
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
