//! `NonsilentRegion`: where a signal begins and ends to be louder than a threshold.

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::{ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType};
use crate::{dispatch, limits};

struct NonsilentRegion {
    cutoff_db: f32,
    /// What 0 dB is; the loudest window when it is not given.
    reference_power: Option<f32>,
    window: usize,
    /// Samples after which a sum of squares is computed anew.
    reset: Option<usize>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "NonsilentRegion",
    doc: "Start and length of what is not silence in a signal",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("cutoff_db", "decibels below which is silence").or_float(-60.0),
        ArgSpec::float("reference_power", "power of 0 dB, 0: the loudest window's").or_float(0.0),
        ArgSpec::int("window_length", "samples of which the mean power is taken").or_int(2048),
        ArgSpec::int("reset_interval", "samples between sums computed anew, a multiple").or_int(8192),
    ],
    build: &build,
    outputs: &|_, _| Ok(2),
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let window = args.int("window_length")?;
    let window =
        usize::try_from(window).ok().filter(|window| (1..=limits::MAX_SAMPLE_BYTES).contains(window));
    let window = window.ok_or_else(|| Error::invalid("argument `window_length` is not positive"))?;
    let reset = args.int("reset_interval")?;
    let reset = (reset != -1).then_some(reset);
    if let Some(reset) = reset.filter(|reset| *reset < 1 || *reset % window as i64 != 0) {
        return Err(Error::invalid(format!(
            "argument `reset_interval` is {reset}, expected a multiple of the {window} samples of a window"
        )));
    }
    let reference_power = args.given_float("reference_power")?.filter(|&power| power != 0.0);
    if let Some(power) = reference_power.filter(|power| power.is_nan() || *power < 0.0) {
        return Err(Error::invalid(format!(
            "argument `reference_power` is {power}, expected a positive one"
        )));
    }
    let cutoff_db = args.float("cutoff_db")?;
    Ok(Box::new(NonsilentRegion {
        cutoff_db,
        reference_power,
        window,
        reset: reset.map(|reset| reset as usize),
    }))
}

fn supported(dtype: DType) -> Result<()> {
    if matches!(dtype, DType::F16 | DType::F64 | DType::Bool) {
        return Err(Error::unsupported(format!("signals of type {dtype}, expected integers or float32")));
    }
    Ok(())
}

/// The mean of squares of every `window` elements of `signal`, summed exactly for short integers, else anew after
/// `reset`.
fn mean_squares<S: Element + ConvertSat<f32> + ConvertSat<i64>>(
    signal: &[S],
    window: usize,
    reset: Option<usize>,
) -> Vec<f32> {
    let factor = 1.0 / window as f32;
    let is_exact = S::DTYPE.size() <= 2;
    let exact = |value: &S| -> i64 {
        let value: i64 = value.convert_sat();
        value * value
    };
    let square = |value: &S| -> f32 {
        let value: f32 = value.convert_sat();
        value * value
    };
    let reset = if is_exact { signal.len() } else { reset.unwrap_or(signal.len()) };
    let mut means = vec![0.0; signal.len() - window + 1];
    // From one reset to the next.
    let run = (reset + 1).saturating_sub(window).max(1);
    for (i, means) in means.chunks_mut(run).enumerate() {
        let begin = i * run;
        let mut sum: f32 = signal[begin..][..window].iter().map(square).sum();
        let mut exact_sum: i64 = if is_exact { signal[begin..][..window].iter().map(exact).sum() } else { 0 };
        let Some((first, others)) = means.split_first_mut() else { break };
        *first = if is_exact { exact_sum as f32 } else { sum } * factor;
        let leaving = &signal[begin..];
        for ((mean, new), old) in others.iter_mut().zip(&leaving[window..]).zip(leaving) {
            *mean = if is_exact {
                exact_sum += exact(new) - exact(old);
                exact_sum as f32
            } else {
                sum += square(new) - square(old);
                sum
            } * factor;
        }
    }
    means
}

/// The largest of `means`, found in several places side by side: one comparison would wait for another.
fn loudest(means: &[f32]) -> f32 {
    let keep = |most: &mut f32, &mean: &f32| *most = if mean > *most { mean } else { *most };
    let mut lanes = [f32::NEG_INFINITY; 16];
    for means in means.chunks(lanes.len()) {
        lanes.iter_mut().zip(means).for_each(|(most, mean)| keep(most, mean));
    }
    let mut most = f32::NEG_INFINITY;
    lanes.iter().for_each(|lane| keep(&mut most, lane));
    most
}

impl NonsilentRegion {
    /// The threshold over the reference.
    fn ratio(&self) -> f32 {
        10.0f32.powf(self.cutoff_db / 10.0)
    }

    /// Start and length.
    fn region<S: Element + ConvertSat<f32> + ConvertSat<i64>>(&self, signal: &[S]) -> (usize, usize) {
        let window = self.window.min(signal.len());
        if window == 0 {
            return (0, 0);
        }
        let means = mean_squares(signal, window, self.reset);
        let reference = self.reference_power.unwrap_or_else(|| loudest(&means));
        let cutoff = self.ratio() * reference;
        let begin = means.iter().position(|&mean| mean >= cutoff);
        let end = means.iter().rposition(|&mean| mean >= cutoff);
        begin.zip(end).map_or((0, 0), |(begin, end)| (begin, end - begin + window))
    }
}

impl Operator for NonsilentRegion {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), supported)?;
        Ok(vec![ValueType::ranked(DType::I32, 0, Layout::NONE); 2])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        supported(inputs.desc(0)?.dtype)?;
        let shapes = inputs.map_shapes(0, |sample| match sample.input(0)?.shape[..] {
            [_] => Ok(Shape::default()),
            ref shape => Err(Error::invalid(format!("a signal of shape {shape:?}, expected one dimension"))),
        });
        Ok(vec![BatchDesc::new(DType::I32, Layout::NONE, shapes); 2])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        dispatch!(io.inputs().desc(0)?.dtype, S => io.for_each_sample(cx, |sample| {
            let (begin, length) = this.region::<S>(sample.input(0)?.as_slice()?);
            for (i, value) in [begin, length].into_iter().enumerate() {
                sample.output(i)?.as_slice_mut::<i32>()?.fill(value as i32);
            }
            Ok(())
        }))
    }
    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let Some(from) = inputs[0].dtype else { return Ok(()) };
        ["mean_squares", "nonsilent"]
            .into_iter()
            .try_for_each(|entry| gpu.kernel(&kernel(entry, from)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let mut rows = io.rows(|sample| {
            let samples = sample.input(0)?.shape.volume()?;
            let window = self.window.min(samples);
            let positions = if samples > 0 { samples - window + 1 } else { 0 };
            Ok(Row {
                from: sample.source(0)?,
                means: 0,
                begin: sample.target(0)?,
                length: sample.target(1)?,
                positions: positions as u64,
                window: window as u64,
            })
        });
        let all: u64 = rows.iter().map(|row| row.positions).sum();
        let mut means = cx.recorder.scratch(all as usize * size_of::<f32>())?;
        for row in &mut rows {
            row.means = means;
            means += row.positions * size_of::<f32>() as u64;
        }
        let params = Params { ratio: self.ratio(), reference: self.reference_power.unwrap_or(-1.0) };
        let most = rows.iter().map(|row| row.positions as usize).max().unwrap_or_default();
        cx.launch(&kernel("mean_squares", from), most.div_ceil(RUN), &params, &rows)?;
        cx.launch_blocks(&kernel("nonsilent", from), (1, THREADS), &params, &rows)
    }
}

device_constants! {
    fn constants;

    /// Windows of which a thread sums the squares, each from those of the last: exactly, or in double precision, so
    /// that nothing is computed anew.
    const RUN: usize as "uint64_t" = 256;
    /// Threads that look for the region of a signal.
    const THREADS: u32 = 1_024;
}

const HEADER: Header = Header { name: "nonsilent", text: || text_with::<Row, Params>(&constants()) };

device_struct! {
    /// A signal, as `kernels/nonsilent.cu` sees it.
    struct Row as Row {
        from: u64 = "const FROM *",
        /// of the squares of every window
        means: u64 = "float *",
        begin: u64 = "int32_t *",
        length: u64 = "int32_t *",
        /// of windows
        positions: u64,
        /// elements
        window: u64,
    }
}

device_struct! {
    struct Params as Params {
        /// of the threshold to the reference
        ratio: f32,
        /// negative: the loudest window
        reference: f32,
    }
}

/// Function `entry` for signals of type `from`.
pub(super) fn kernel(entry: &'static str, from: DType) -> KernelSpec {
    let sum = if from.size() <= 2 { DType::I64 } else { DType::F64 };
    KernelSpec::of::<Row, Params>("nonsilent", entry).header(HEADER).dtype("FROM", from).dtype("SUM", sum)
}
