//! Operators that change every pixel by a linear function of its channels: [`brightness_contrast`] and [`color_twist`]
//! say by which, [`Pointwise`] does it.

pub(in crate::ops) mod brightness_contrast;
pub(in crate::ops) mod color_twist;

use std::sync::Arc;

use bytemuck::Zeroable;

use crate::cpu::color::{Mix, mix_channels, scale_add};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{Args, CpuCx, GpuCx, GpuIo, Inputs, Io, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, ValueType};

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 3] = ["HWC", "FHWC", "DHWC"];

/// Types of channels, read and written.
const TYPES: [DType; 5] = [DType::U8, DType::I16, DType::I32, DType::F16, DType::F32];

/// What happens to the pixels of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PixelMap {
    /// Every channel is multiplied and something is added.
    Scale { factor: f32, addend: f32 },
    /// Three channels become three others.
    Mix(Mix),
}

/// Where a sample's map comes from.
trait Rule: Send {
    /// The map of one sample with channels of type `from`, to channels of type `to`.
    fn map(&self, sample: &SampleInputs<'_>, from: DType, to: DType) -> Result<PixelMap>;

    /// Whether the maps are over three channels.
    fn mixes(&self) -> bool;
}

struct Pointwise<R> {
    rule: R,
    /// The type of the output; the input's when it is not given.
    dtype: Option<DType>,
    maps: Vec<Option<PixelMap>>,
}

/// An operator that follows `rule`, with the argument `dtype`, or `default` for it.
fn build<R: Rule + 'static>(rule: R, args: &Args, default: Option<DType>) -> Result<Box<dyn Operator>> {
    let dtype = args.given_dtype("dtype")?.or(default);
    dtype.map_or(Ok(()), supported)?;
    Ok(Box::new(Pointwise { rule, dtype, maps: Vec::new() }))
}

fn supported(dtype: DType) -> Result<()> {
    dtypes::accepted("channels", dtype, &TYPES)
}

impl<R: Rule> Operator for Pointwise<R> {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        input.dtype.map_or(Ok(()), supported)?;
        let layout = layouts::of_type(input, &LAYOUTS)?.or(input.layout.filter(|layout| !layout.is_none()));
        Ok(vec![ValueType { dtype: self.dtype.or(input.dtype), layout, dims: input.dims.clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        supported(desc.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        let dtype = self.dtype.unwrap_or(desc.dtype);
        self.maps = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            let channels = shape.last().copied().unwrap_or_default();
            if self.rule.mixes() && channels != 3 {
                return Err(Error::invalid(format!("an image of shape {shape}, expected 3 channels")));
            }
            self.rule.map(&sample, desc.dtype, dtype).map(Some)
        });
        Ok(vec![BatchDesc::new(dtype, layout, desc.shapes.clone())])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let maps = &self.maps;
        macro_rules! run {
            ($from:ty, $to:ty) => {
                io.for_each_sample(cx, |sample| {
                    let map = map_of(maps, sample.index())?;
                    let (input, output) = sample.unary()?;
                    let (src, dst) = (input.as_slice::<$from>()?, output.as_slice_mut::<$to>()?);
                    match map {
                        PixelMap::Scale { factor, addend } => scale_add(src, dst, factor, addend),
                        PixelMap::Mix(mix) => mix_channels(src, dst, &mix),
                    }
                    Ok(())
                })
            };
        }
        macro_rules! run_from {
            ($from:ty, $to:expr) => {
                match $to {
                    DType::U8 => run!($from, u8),
                    DType::I16 => run!($from, i16),
                    DType::I32 => run!($from, i32),
                    DType::F16 => run!($from, half::f16),
                    DType::F32 => run!($from, f32),
                    other => supported(other),
                }
            };
        }
        let from = io.inputs().desc(0)?.dtype;
        let to = self.dtype.unwrap_or(from);
        match from {
            DType::U8 => run_from!(u8, to),
            DType::I16 => run_from!(i16, to),
            DType::I32 => run_from!(i32, to),
            DType::F16 => run_from!(half::f16, to),
            DType::F32 => run_from!(f32, to),
            other => supported(other),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let Some(from) = inputs[0].dtype else { return Ok(()) };
        gpu.kernel(&kernel(self.rule.mixes(), from, self.dtype.unwrap_or(from))).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let mixes = self.rule.mixes();
        let mut most = 0;
        let rows = io.rows(|sample| {
            let elements = sample.output_shape(0)?.volume()? / if mixes { 3 } else { 1 };
            most = most.max(elements);
            let mut row = Row::zeroed();
            (row.to, row.from, row.elements) = (sample.target(0)?, sample.source(0)?, elements as u64);
            match map_of(&self.maps, sample.index())? {
                PixelMap::Scale { factor, addend } => (row.factor[0], row.addend) = (factor, addend),
                PixelMap::Mix(mix) => {
                    row.factor[..9].copy_from_slice(mix.matrix.as_flattened());
                    row.addend = mix.offset;
                }
            }
            Ok(row)
        });
        cx.launch(&kernel(mixes, from, self.dtype.unwrap_or(from)), most, &NoParams::default(), &rows)
    }
}

fn map_of(maps: &[Option<PixelMap>], index: usize) -> Result<PixelMap> {
    let map = maps.get(index).copied().flatten();
    map.ok_or_else(|| Error::internal("a live sample has no colour map"))
}

device_struct! {
    /// A sample, as `kernels/color.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        /// channels of the sample, or pixels where they are mixed
        elements: u64,
        /// one, or a row of three for each channel of the output
        factor: [f32; 9],
        addend: f32,
    }
}

fn kernel(mixes: bool, from: DType, to: DType) -> KernelSpec {
    let entry = if mixes { "mix_channels" } else { "scale_add" };
    KernelSpec::of::<Row, NoParams>("color", entry).dtype("FROM", from).dtype("TO", to)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let types = [(DType::U8, DType::U8), (DType::F32, DType::F16), (DType::I16, DType::I32)];
    types.into_iter().flat_map(|(from, to)| [true, false].map(|mixes| kernel(mixes, from, to))).collect()
}
