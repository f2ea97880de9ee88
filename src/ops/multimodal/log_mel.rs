//! `gesso__LogMel`: Whisper's features of a sound.

use std::sync::Arc;

use super::sides::count;
use super::spectra::{Asked, Band, Tables, radices};
use crate::cpu::audio::log_mel::{FLOOR, LogMel as Features, RANGE, Settings};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::shared::dtypes;
use crate::operator::{ArgSpec, Args, CpuCx, Deferred, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct LogMel {
    features: Features,
    bands: usize,
    /// Samples that each signal is cut or lengthened to; `None`: as many as it has.
    samples: Option<usize>,
    efforts: Vec<Effort>,
    /// For a device, made for the first batch.
    tables: Option<Tables>,
    /// What the device was asked for and has not been heard of.
    asked: Option<Asked>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__LogMel",
    doc: "Whisper's features of a sound of one channel: a row for each mel band (Slaney's scale and norm) with the \
          decimal logarithms of its powers, of Hann windows of a signal that is mirrored at its ends; down to 8 below \
          the largest, plus 4, over 4",
    devices: &[Device::Cpu, Device::Gpu],
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
    kernels: &[kernels],
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
    let (bands, efforts) = (settings.bands, Vec::new());
    Ok(Box::new(LogMel { features, bands, samples, efforts, tables: None, asked: None }))
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

    fn deferred(&mut self) -> Option<&mut dyn Deferred> {
        Some(self)
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel(self.features.settings().length))?;
        gpu.kernel(&finish()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let Settings { length, step, .. } = *self.features.settings();
        let mut asked = Asked::new(cx.recorder, io.inputs().batch_size(), 1)?;
        let mut rows = io.rows(|sample| {
            let found = sample.input(0)?.shape.volume()?;
            let samples = self.samples.unwrap_or(found);
            Ok(Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                given: found.min(samples) as i64,
                samples: samples as i64,
                windows: self.features.shape(samples)[1] as u64,
                loudest: 0,
                outcome: asked.next(sample.index()),
            })
        });
        // A block makes two windows at a time, and where it takes memory of its own there are no more than have room.
        let most = rows.iter().map(|row| row.windows as usize).max().unwrap_or_default();
        let bytes = if is_large(length) { BUFFERS * length * size_of::<[f64; 2]>() } else { 0 };
        let room = limits::TRANSFORM_BYTES.checked_div(bytes).map_or(usize::MAX, |room| room.max(1));
        let blocks = most.div_ceil(2).clamp(1, PARTS.min(room));
        let signals = (room / blocks).clamp(1, rows.len().max(1));
        let memory = match bytes {
            0 => 0,
            bytes => cx.recorder.scratch(bytes * blocks * signals)?,
        };
        let loudest = cx.recorder.scratch(rows.len().max(1) * PARTS * size_of::<f32>())?;
        for (i, row) in rows.iter_mut().enumerate() {
            row.loudest = loudest + (i * PARTS * size_of::<f32>()) as u64;
        }
        let features = &self.features;
        let tables = self
            .tables
            .get_or_insert_with(|| Tables::new(length, features.window(), features.bands()))
            .stage(cx)?;
        let params = Params {
            window: tables.window,
            turns: tables.turns,
            filters: tables.bands,
            weights: tables.weights,
            memory,
            floor: FLOOR,
            range: RANGE,
            step: step as u32,
            bands: self.bands as u32,
            parts: blocks as u32,
        };
        for rows in rows.chunks(signals) {
            cx.launch_blocks(&kernel(length), (blocks, THREADS), &params, rows)?;
        }
        let elements = most * self.bands;
        cx.launch_blocks(&finish(), (elements.div_ceil(THREADS as usize), THREADS), &params, &rows)?;
        if cx.may_settle {
            self.asked = Some(asked);
            return Ok(());
        }
        cx.recorder.flush(&[])?;
        asked.fail(cx.recorder, &io.inputs());
        Ok(())
    }
}

impl Deferred for LogMel {
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

/// Largest transform in the memory that the threads of a block share.
const MAX_SHARED: usize = 1024;
/// Of a transform: passes read one and write the other.
const BUFFERS: usize = 2;

fn is_large(length: usize) -> bool {
    length > MAX_SHARED
}

device_constants! {
    fn constants;

    /// Blocks of a signal, of which each finds its loudest value, and threads of a block.
    const PARTS: usize = 256;
    const THREADS: u32 = 256;
    /// What the kernel says of a signal.
    const MADE: u32 = 0;
    const NO_NUMBERS: u32 = 1;
}

const HEADER: Header = Header { name: "log_mel", text: || text_with::<Row, Params>(&constants()) };

device_struct! {
    /// A signal, as `kernels/log_mel.cu` sees it.
    struct Row as Row {
        to: u64 = "float *",
        from: u64 = "const float *",
        /// samples that are there
        given: i64,
        /// and those with the silence behind them
        samples: i64,
        windows: u64,
        /// of each of PARTS blocks
        loudest: u64 = "float *",
        /// MADE or NO_NUMBERS
        outcome: u64 = "uint32_t *",
    }
}

device_struct! {
    struct Params as Params {
        /// LENGTH factors
        window: u64 = "const double *",
        turns: u64 = "const Complex *",
        filters: u64 = "const Band *" of Band,
        weights: u64 = "const double *",
        /// of each block, where threads do not share it
        memory: u64 = "Complex *",
        /// powers below are this
        floor: f64,
        /// how far below the loudest values are kept
        range: f32,
        /// samples from a window to the next
        step: u32,
        bands: u32,
        /// blocks of a signal
        parts: u32,
    }
}

/// For transforms of `length` samples.
fn kernel(length: usize) -> KernelSpec {
    spec("log_mel", length)
}

/// The second kernel, which transforms nothing.
fn finish() -> KernelSpec {
    spec("finish", 1)
}

fn spec(entry: &'static str, length: usize) -> KernelSpec {
    KernelSpec::of::<Row, Params>("log_mel", entry)
        .header(HEADER)
        .define("LENGTH", format!("{length}u"))
        .define("RADICES", radices(length))
        .define("LARGE", u8::from(is_large(length)))
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let mut specs = vec![finish()];
    specs.extend([400, 1, 512, 1009, MAX_SHARED, limits::MAX_FEATURE_TRANSFORM].map(kernel));
    specs
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
