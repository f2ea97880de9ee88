//! `Spectrogram`: the spectrum of a signal over time.

use std::sync::Arc;

use super::floats_only;
use crate::cpu::audio::chirp::{Chirp, span, turns};
use crate::cpu::audio::spectrogram::{Spectrogram as Plan, hann};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct Spectrogram {
    plan: Plan,
    /// For a device, made for the first batch.
    tables: Option<Tables>,
    efforts: Vec<Effort>,
}

/// What transforms on a device need.
struct Tables {
    /// Cosines and sines of the parts of a circle.
    turns: Vec<[f32; 2]>,
    /// For a convolution.
    chirp: Chirp,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Spectrogram",
    doc: "The spectrum of a signal over time",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("window_length", "samples of a window").or_int(512),
        ArgSpec::int("window_step", "samples from one window to the next").or_int(256),
        ArgSpec::floats("window_fn", "factors of a window's samples").or_computed("a Hann window"),
        ArgSpec::int("nfft", "samples of a transform, at least the window's")
            .or_computed("as many as the window's"),
        ArgSpec::int("power", "1 for magnitudes, 2 for powers").or_int(2),
        ArgSpec::bool("center_windows", "whether windows are centered on their steps").or_bool(true),
        ArgSpec::bool("reflect_padding", "whether the signal is mirrored beyond its ends").or_bool(true),
        ArgSpec::layout("layout", "`ft`: a row for each frequency, or `tf`: for each window").or_string("ft"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let size = |name: &str, value: i64| {
        usize::try_from(value).ok().filter(|value| (1..=limits::MAX_TRANSFORM).contains(value)).ok_or_else(
            || {
                Error::invalid(format!(
                    "argument `{name}` is {value}, expected 1 to {}",
                    limits::MAX_TRANSFORM
                ))
            },
        )
    };
    let (length, step) =
        (size("window_length", args.int("window_length")?)?, size("window_step", args.int("window_step")?)?);
    let transform = size("nfft", args.given_int("nfft")?.unwrap_or(length as i64))?;
    if transform < length {
        return Err(Error::invalid(format!("argument `nfft` is {transform}, expected at least {length}")));
    }
    let window =
        args.given_floats("window_fn")?.filter(|window| !window.is_empty()).unwrap_or_else(|| hann(length));
    if window.len() != length {
        return Err(Error::invalid(format!(
            "argument `window_fn` has {} values, expected {length}",
            window.len()
        )));
    }
    let mut plan = Plan::new(transform, window, step);
    plan.is_centered = args.bool("center_windows")?;
    plan.mirrors = args.bool("reflect_padding")?;
    plan.squares = match args.int("power")? {
        1 => false,
        2 => true,
        other => return Err(Error::invalid(format!("argument `power` is {other}, expected 1 or 2"))),
    };
    plan.bins_last = match args.string("layout")? {
        "ft" => false,
        "tf" => true,
        other => {
            return Err(Error::invalid(format!("argument `layout` is `{other}`, expected `ft` or `tf`")));
        }
    };
    Ok(Box::new(Spectrogram { plan, tables: None, efforts: Vec::new() }))
}

impl Spectrogram {
    fn layout(&self) -> Layout {
        Layout::from_letters(if self.plan.bins_last { b"tf" } else { b"ft" })
    }
}

impl Operator for Spectrogram {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), floats_only)?;
        let bins = Some(self.plan.bins());
        let dims = if self.plan.bins_last { [None, bins] } else { [bins, None] };
        let layout = Some(self.layout());
        Ok(vec![ValueType { dtype: Some(DType::F32), dims: Some(dims.to_vec()), layout }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        floats_only(inputs.desc(0)?.dtype)?;
        let shapes = inputs.map_shapes(2, |sample| {
            let shape = sample.input(0)?.shape;
            let length = shape.volume()?;
            if length == 0 || shape.iter().any(|&extent| extent != 1 && extent != length) {
                return Err(Error::invalid(format!("a signal of shape {shape}, expected one dimension")));
            }
            let (bins, windows) = (self.plan.bins(), self.plan.windows(length));
            if windows == 0 {
                return Err(Error::invalid(format!("a signal of {length} samples is shorter than a window")));
            }
            Ok(Shape::from(if self.plan.bins_last { [windows, bins] } else { [bins, windows] }))
        });
        let windows = shapes.iter().map(|shape| shape[usize::from(!self.plan.bins_last)]);
        self.efforts = windows.map(|windows| self.plan.effort(windows)).collect();
        Ok(vec![BatchDesc::new(DType::F32, self.layout(), shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (plan, failures) = (&self.plan, io.inputs().failures());
        io.for_each_sample(cx, |sample| {
            let watch = cx.watch(failures, sample.index());
            let (input, output) = sample.unary()?;
            plan.run(input.as_slice()?, output.as_slice_mut()?, &watch)
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel(self.plan.length())).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let (plan, length) = (&self.plan, self.plan.length());
        let rows = io.rows(|sample| {
            let samples = sample.input(0)?.shape.volume()?;
            let windows = plan.windows(samples) as u64;
            Ok(Row { to: sample.target(0)?, from: sample.source(0)?, samples: samples as i64, windows })
        });
        let way = Way::of(length);
        let Tables { turns, chirp } = self.tables.get_or_insert_with(|| way.tables(length));
        let most = rows.iter().map(|row| row.windows as usize).max().unwrap_or_default();
        let bytes = way.bytes(length);
        // Of all windows and signals, as many at a time as there is room for.
        let room = limits::TRANSFORM_BYTES.checked_div(bytes).map_or(usize::MAX, |room| room.max(1));
        let blocks = most.clamp(1, room);
        let signals = (room / blocks).clamp(1, rows.len().max(1));
        let memory = match bytes {
            0 => 0,
            bytes => cx.recorder.scratch(bytes * blocks * signals)?,
        };
        let params = Params {
            window: cx.recorder.stage(bytemuck::cast_slice(&plan.window))?.address(),
            turns: cx.recorder.stage(bytemuck::cast_slice(turns))?.address(),
            chirp: cx.recorder.stage(bytemuck::cast_slice(&chirp.chirp))?.address(),
            filter: cx.recorder.stage(bytemuck::cast_slice(&chirp.filter))?.address(),
            memory,
            taps: plan.window.len() as u32,
            step: plan.step as u32,
            before: if plan.is_centered { plan.window.len() as i32 / 2 } else { 0 },
            mirrors: u32::from(plan.mirrors),
            squares: u32::from(plan.squares),
            bins_last: u32::from(plan.bins_last),
        };
        let threads = if bytes == 0 { 256 } else { 1024 };
        rows.chunks(signals)
            .try_for_each(|rows| cx.launch_blocks(&kernel(length), (blocks, threads), &params, rows))
    }
}

/// How a device transforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Step after step, in memory that threads share: powers of two.
    Fast,
    /// The same in other memory.
    FastLarge,
    /// As transforms are defined.
    Plain,
    /// By a convolution.
    Convolution,
}

impl Way {
    fn of(length: usize) -> Self {
        match (length >= 4 && length.is_power_of_two(), length > limits::MAX_SHARED_TRANSFORM) {
            (true, false) => Way::Fast,
            (true, true) => Way::FastLarge,
            (false, false) => Way::Plain,
            (false, true) => Way::Convolution,
        }
    }

    /// Bytes of memory that a block takes, besides that which its threads share.
    fn bytes(self, length: usize) -> usize {
        size_of::<f32>()
            * match self {
                Way::Fast | Way::Plain => 0,
                Way::FastLarge => length,
                Way::Convolution => 2 * span(length),
            }
    }

    fn tables(self, length: usize) -> Tables {
        let none = Chirp { chirp: Vec::new(), filter: Vec::new() };
        match self {
            Way::Convolution => {
                Tables { turns: turns(span(length) / 2, span(length)), chirp: Chirp::new(length) }
            }
            _ => Tables { turns: turns(length, length), chirp: none },
        }
    }
}

device_struct! {
    /// A signal, as `kernels/spectrum.cu` sees it.
    struct Row as Row {
        to: u64 = "float *",
        from: u64 = "const float *",
        samples: i64,
        windows: u64,
    }
}

device_struct! {
    struct Params as Params {
        /// `taps` factors
        window: u64 = "const float *",
        /// by i / LENGTH of a circle, clockwise; for a convolution by i / SPAN
        turns: u64 = "const Turn *",
        /// for a convolution, by i * i / (2 * LENGTH)
        chirp: u64 = "const Turn *",
        /// and the spectrum that it multiplies by, in the order of reversed bits
        filter: u64 = "const Turn *",
        /// large transforms: of each block
        memory: u64 = "float *",
        taps: u32,
        /// samples from a window to the next
        step: u32,
        /// samples of the first window before the signal
        before: i32,
        mirrors: u32,
        squares: u32,
        bins_last: u32,
    }
}

/// For transforms of `length` samples.
pub(super) fn kernel(length: usize) -> KernelSpec {
    let way = Way::of(length);
    KernelSpec::of::<Row, Params>("spectrum", "spectrum")
        .define("LENGTH", format!("{length}u"))
        .define("FAST", u8::from(matches!(way, Way::Fast | Way::FastLarge)))
        .define("LARGE", u8::from(matches!(way, Way::FastLarge | Way::Convolution)))
        .define("SPAN", format!("{}u", span(length)))
}
