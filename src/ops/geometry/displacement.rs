//! `Sphere`, `Water` and `Jitter`: images whose every pixel is taken from another place.

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::cpu::random::{BatchRandom, Philox, Seed, uniform_int};
use crate::cpu::warp::{self, Pixels, Sampling, displace};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleIo, one_output,
};
use crate::ops::random::{SEED, seed};
use crate::tensor::{BatchDesc, DType, Device, Element, ValueType};

/// Layouts of the images.
const LAYOUTS: [&str; 1] = ["HWC"];

/// Radians of the waves from one pixel to the next, when the file does not say it.
const FREQUENCY: f32 = (2.0 * std::f64::consts::PI / 128.0) as f32;

/// Arguments of all.
const ARGS: &[ArgSpec] = &[
    ArgSpec::int("mask", "whether the image is changed at all").tensor().or_int(1),
    ArgSpec::float("fill_value", "value outside of the image").or_float(0.0),
    ArgSpec::interp_type("interp_type", "0 nearest neighbour, 1 linear").or_int(0),
];

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const SPHERE: OpDef = OpDef {
    name: "Sphere",
    doc: "An image as if it lay on a sphere",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[],
    shared_args: &[ARGS],
    build: &|args, _| operator(args, Field::Sphere),
    outputs: &one_output,
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const WATER: OpDef = OpDef {
    name: "Water",
    doc: "An image as if it were under water",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("ampl_x", "how far waves move pixels along x").or_float(10.0),
        ArgSpec::float("ampl_y", "how far waves move pixels along y").or_float(10.0),
        ArgSpec::float("freq_x", "radians of the waves along x for each row").or_float(FREQUENCY),
        ArgSpec::float("freq_y", "radians of the waves along y for each column").or_float(FREQUENCY),
        ArgSpec::float("phase_x", "radians of the waves along x at row 0").or_float(0.0),
        ArgSpec::float("phase_y", "radians of the waves along y at column 0").or_float(0.0),
    ],
    shared_args: &[ARGS],
    build: &|args, _| operator(args, Field::water(args)?),
    outputs: &one_output,
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const JITTER: OpDef = OpDef {
    name: "Jitter",
    doc: "An image whose every pixel is taken from a random place near by",
    devices: &[Device::Cpu, Device::Gpu],
    args: &[
        SEED,
        ArgSpec::int("nDegree", "twice the pixels, along x and along y, that a place is away at most")
            .or_int(2),
    ],
    shared_args: &[ARGS],
    build: &|args, _| operator(args, Field::jitter(args)?),
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// Nanoseconds of one core for a pixel's random numbers.
const JITTER_PIXEL: f64 = 30.0;

/// Where pixels are taken from.
#[derive(Debug, Clone, Copy)]
enum Field {
    Sphere,
    Water { x: Wave, y: Wave },
    Jitter { most: u16 },
}

device_struct! {
    /// How far pixels move along one axis, by their place on the other.
    #[derive(Debug, Default)]
    struct Wave as Wave {
        amplitude: f32,
        frequency: f32,
        phase: f32,
    }
}

impl Field {
    fn water(args: &Args) -> Result<Self> {
        let wave = |[amplitude, rate, phase]: [&str; 3]| -> Result<Wave> {
            Ok(Wave {
                amplitude: args.float(amplitude)?,
                frequency: args.float(rate)?,
                phase: args.float(phase)?,
            })
        };
        Ok(Field::Water {
            x: wave(["ampl_x", "freq_x", "phase_x"])?,
            y: wave(["ampl_y", "freq_y", "phase_y"])?,
        })
    }

    fn jitter(args: &Args) -> Result<Self> {
        let degree = args.int("nDegree")?;
        match u16::try_from(degree) {
            Ok(degree) => Ok(Field::Jitter { most: degree / 2 }),
            Err(_) => {
                Err(Error::invalid(format!("argument `nDegree` is {degree}, expected 0 to {}", u16::MAX)))
            }
        }
    }

    /// For every row of an image of `size` (x, y) pixels, with these random numbers: where its pixels are taken from.
    fn places(self, size: [usize; 2], random: Philox) -> impl Fn(usize, &mut [[f32; 3]]) {
        let radius = (size[0] / 2).max(size[1] / 2) as f32;
        let [mid_x, mid_y] = size.map(|extent| extent as f32 * 0.5);
        // Waves along y are the same for every row.
        let shifts: Vec<f32> = match self {
            Field::Sphere | Field::Jitter { .. } => Vec::new(),
            Field::Water { y: wave, .. } => (0..size[0])
                .map(|x| wave.amplitude * (wave.frequency * x as f32 + wave.phase).cos())
                .collect(),
        };
        move |row, places| match self {
            Field::Sphere => {
                for (x, place) in places.iter_mut().enumerate() {
                    let (x, y) = (x as f32 + 0.5 - mid_x, row as f32 + 0.5 - mid_y);
                    let scale = (x * x + y * y).sqrt() / radius;
                    *place = [mid_x + scale * x, mid_y + scale * y, 0.0];
                }
            }
            Field::Water { x: wave, .. } => {
                let y = row as f32;
                let shift = wave.amplitude * (wave.frequency * y + wave.phase).sin();
                for ((x, place), down) in places.iter_mut().enumerate().zip(&shifts) {
                    *place = [x as f32 + shift, y + down, 0.0];
                }
            }
            Field::Jitter { most } => {
                // From the middle of a pixel to that of another.
                let most = f32::from(most);
                let step = |random: &mut Philox| uniform_int(random, 2 * most as u32) as f32 - most + 0.5;
                for (x, place) in places.iter_mut().enumerate() {
                    let mut random = random.element((row * size[0] + x) as u64);
                    *place = [x as f32 + step(&mut random), row as f32 + step(&mut random), 0.0];
                }
            }
        }
    }
}

struct Displacement {
    field: Field,
    mask: Arg,
    sampling: Sampling,
    fill: f32,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample: whether it is changed.
    changed: Vec<bool>,
    efforts: Vec<Effort>,
}

fn operator(args: &Args, field: Field) -> Result<Box<dyn Operator>> {
    let sampling = match args.int("interp_type")? {
        0 => Sampling::Nearest,
        1 => Sampling::Linear,
        other => {
            return Err(Error::unsupported(format!("argument `interp_type` is {other}, expected 0 or 1")));
        }
    };
    Ok(Box::new(Displacement {
        field,
        mask: args.arg("mask")?,
        sampling,
        fill: args.float("fill_value")?,
        seed: seed(args)?,
        batch: BatchRandom::default(),
        changed: Vec::new(),
        efforts: Vec::new(),
    }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8, DType::F32])
}

impl Displacement {
    fn run<T>(&self, sample: &mut SampleIo<'_>, fill: T, watch: &Watch<'_>) -> Result<()>
    where
        T: Element + ConvertSat<T> + ConvertSat<f32>,
        f32: ConvertSat<T>,
    {
        let (changed, random) = (self.changed[sample.index()], self.batch.sample(sample.index()));
        let (input, output) = sample.unary()?;
        if !changed || output.bytes.is_empty() {
            output.bytes.copy_from_slice(input.bytes);
            return Ok(());
        }
        let [height, width, channels] = input.shape[..] else {
            return Err(Error::internal("a planned image has three dimensions"));
        };
        let source = Pixels { values: input.as_slice::<T>()?, size: [width, height, 1], channels };
        let places = self.field.places([width, height], random);
        displace(source, output.as_slice_mut()?, width, self.sampling, fill, watch, places)
    }
}

impl Operator for Displacement {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), check)?;
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?;
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let mut desc = inputs.desc(0)?.clone();
        check(desc.dtype)?;
        desc.layout = layouts::of_batch(&desc, &LAYOUTS)?;
        self.batch = self.seed.batch(inputs.first_sample());
        self.changed = inputs.map(|sample| Ok(self.mask.int(&sample)? != 0));
        let jitters = if matches!(self.field, Field::Jitter { .. }) { JITTER_PIXEL } else { 0.0 };
        let efforts = desc.shapes.iter().map(|shape| {
            let channels = shape.last().copied().unwrap_or_default();
            let pixels = shape.volume().unwrap_or(usize::MAX) / channels.max(1);
            let Effort { time, scratch } = warp::effort(pixels, channels, self.sampling, false);
            Effort { time: time + Effort::new(pixels as f64 * jitters, 0).time, scratch }
        });
        self.efforts = efforts.collect();
        Ok(vec![desc])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (this, fill, failures) = (&*self, self.fill, io.inputs().failures());
        let watch = |sample: &SampleIo<'_>| cx.watch(failures, sample.index());
        match io.inputs().desc(0)?.dtype {
            DType::U8 => io.for_each_sample(cx, |sample| this.run(sample, low_bits(fill), &watch(sample))),
            DType::F32 => io.for_each_sample(cx, |sample| this.run(sample, fill, &watch(sample))),
            other => check(other),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&kernel(self.field.entry(), dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        let fill = if dtype == DType::U8 { f32::from(low_bits(self.fill)) } else { self.fill };
        let rows = io.rows(|sample| {
            let [height, width, channels] = sample.input(0)?.shape[..] else {
                return Err(Error::internal("a planned image has three dimensions"));
            };
            let (key, sequence) = self.batch.position(sample.index());
            Ok(Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                key,
                sequence,
                pixels: (height * width) as u64,
                channels: channels as u64,
                size: [width as i32, height as i32],
                is_changed: self.changed.get(sample.index()).copied().unwrap_or_default().into(),
                fill,
            })
        });
        let most = rows.iter().map(|row| row.pixels).max().unwrap_or_default();
        let (waves, pixels) = match self.field {
            Field::Sphere => Default::default(),
            Field::Water { x, y } => ([x, y], 0),
            Field::Jitter { most } => (Default::default(), most),
        };
        let params =
            Params { waves, most: pixels.into(), is_linear: (self.sampling == Sampling::Linear).into() };
        cx.launch(&kernel(self.field.entry(), dtype), most as usize, &params, &rows)
    }
}

/// A fill value as DALI makes a byte of it: it keeps the low bits of what does not fit.
fn low_bits(fill: f32) -> u8 {
    fill as i64 as u8
}

impl Field {
    /// The function of `kernels/displace.cu`.
    fn entry(self) -> &'static str {
        match self {
            Field::Sphere => "sphere",
            Field::Water { .. } => "water",
            Field::Jitter { .. } => "jitter",
        }
    }
}

device_struct! {
    /// An image, as `kernels/displace.cu` sees it.
    struct Row as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        /// of the image's random numbers
        key: u64,
        sequence: u64,
        pixels: u64,
        channels: u64,
        /// columns, rows
        size: [i32; 2],
        is_changed: u32,
        /// outside of the image, as an element holds it
        fill: f32,
    }
}

device_struct! {
    struct Params as Params {
        /// along x, along y
        waves: [Wave; 2],
        /// pixels along each axis
        most: u32,
        is_linear: u32,
    }
}

fn kernel(entry: &'static str, dtype: DType) -> KernelSpec {
    KernelSpec::of::<Row, Params>("displace", entry).dtype("ELEMENT", dtype)
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    ["sphere", "water", "jitter"].map(|entry| [kernel(entry, DType::U8), kernel(entry, DType::F32)]).concat()
}
