//! `ColorSpaceConversion`: RGB, BGR, gray and studio-range YCbCr, 8 bits a channel.

use std::sync::Arc;

use crate::cpu::color::{Space, convert_space};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Shape, ValueType};

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 4] = ["FDHWC", "FHWC", "DHWC", "HWC"];

struct ColorSpaceConversion {
    from: Space,
    to: Space,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ColorSpaceConversion",
    doc: "From RGB, BGR, gray or YCbCr to another of them, 8 bits a channel",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::image_type("image_type", "colour space of the input: 0 RGB, 1 BGR, 2 gray, 3 YCbCr")
            .required(),
        ArgSpec::image_type("output_type", "colour space of the output").required(),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let space = |name| match args.given_int(name)? {
        Some(0) => Ok(Space::Rgb),
        Some(1) => Ok(Space::Bgr),
        Some(2) => Ok(Space::Gray),
        Some(3) => Ok(Space::YCbCr),
        Some(other) => Err(Error::invalid(format!("argument `{name}` is {other}, expected 0 to 3"))),
        None => Err(Error::invalid(format!("argument `{name}` is missing"))),
    };
    Ok(Box::new(ColorSpaceConversion { from: space("image_type")?, to: space("output_type")? }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8])
}

impl Operator for ColorSpaceConversion {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), check)?;
        ty.dtype = Some(DType::U8);
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?;
        if let Some(channels) = ty.dims.as_mut().and_then(|dims| dims.last_mut()) {
            *channels = Some(self.to.channels());
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        let shapes = inputs.map_shapes(layout.letters().len(), |sample| {
            let mut dims = sample.input(0)?.shape.to_vec();
            match dims.last_mut() {
                Some(channels) if *channels == self.from.channels() => *channels = self.to.channels(),
                _ => {
                    let expected = self.from.channels();
                    return Err(Error::invalid(format!(
                        "an image of {dims:?}, expected {expected} channels"
                    )));
                }
            }
            Ok(Shape::new(dims))
        });
        Ok(vec![BatchDesc::new(DType::U8, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            convert_space(input.as_slice()?, output.as_slice_mut()?, self.from, self.to);
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel(self.from, self.to)).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mut most = 0;
        let rows = io.rows(|sample| {
            let pixels = sample.output_shape(0)?.volume()? / self.to.channels();
            most = most.max(pixels);
            Ok(Row { to: sample.target(0)?, from: sample.source(0)?, pixels: pixels as u64 })
        });
        cx.launch(&kernel(self.from, self.to), most, &NoParams::default(), &rows)
    }
}

device_struct! {
    /// A sample, as `kernels/color_space.cu` sees it.
    struct Row as Row {
        to: u64 = "uint8_t *",
        from: u64 = "const uint8_t *",
        pixels: u64,
    }
}

fn kernel(from: Space, to: Space) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("color_space", "color_space")
        .define("FROM", from as i32)
        .define("TO", to as i32)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    use Space::{Bgr, Gray, Rgb, YCbCr};
    [(Rgb, Gray), (Rgb, YCbCr), (YCbCr, Bgr), (Gray, YCbCr), (YCbCr, Gray), (Gray, Rgb)]
        .map(|(from, to)| kernel(from, to))
        .to_vec()
}
