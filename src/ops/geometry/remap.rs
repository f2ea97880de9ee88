//! `experimental__Remap`: an image whose pixels come from the places that two maps give.

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::cpu::warp::{Pixels, Sampling, displace};
use crate::cpu::weights::{cubic, lanczos};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, SampleIo,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType};

/// Layouts of the images; those of sequences are taken apart before.
const LAYOUTS: [&str; 1] = ["HWC"];

device_constants! {
    fn constants;

    /// Where a place lies that is no number, before the image: far outside of every one.
    const FAR: f32 = 1e9;
}

const HEADER: Header = Header { name: "remap", text: || text_with::<Row, Params>(&constants()) };

/// How values between pixels are found, as the argument numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interpolation {
    Nearest,
    Linear,
    Cubic,
    /// Of four pixels to either side, as in OpenCV.
    Lanczos,
}

struct Remap {
    interpolation: Interpolation,
    /// What is added to a place in the maps, so that the first pixel goes from 0 to 1.
    shift: f32,
    efforts: Vec<Effort>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "experimental__Remap",
    doc: "An image whose pixels come from the places in two maps, of x and of y; 0 where they lie outside",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (3, 3),
    args: &[
        ArgSpec::interp_type("interp", "0 nearest neighbour, 1 linear, 2 cubic, 3 Lanczos").or_int(1),
        ArgSpec::string("pixel_origin", "where coordinates begin in the first pixel: `corner` or `center`")
            .or_string("corner"),
    ],
    build: &build,
    kernels: &[kernels],
    sequences: true,
    splits_inputs: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let interpolation = match args.int("interp")? {
        1 => Interpolation::Linear,
        0 => Interpolation::Nearest,
        2 => Interpolation::Cubic,
        3 => Interpolation::Lanczos,
        other => {
            return Err(Error::unsupported(format!("argument `interp` is {other}, expected 0 to 3")));
        }
    };
    let shift = match args.string("pixel_origin")? {
        "corner" => 0.0,
        "center" => 0.5,
        other => {
            return Err(Error::invalid(format!(
                "argument `pixel_origin` is `{other}`, expected `corner` or `center`"
            )));
        }
    };
    Ok(Box::new(Remap { interpolation, shift, efforts: Vec::new() }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8, DType::I16, DType::U16, DType::F32])
}

/// The shape of the output: rows and columns are those of the maps.
fn output_shape(sample: &SampleInputs<'_>) -> Result<Shape> {
    let image = sample.input(0)?.shape;
    let [mapx, mapy] = [sample.input(1)?, sample.input(2)?];
    let [rows, columns, ref rest @ ..] = mapx.shape[..] else {
        return Err(Error::invalid(format!("a map of shape {}, expected rows and columns", mapx.shape)));
    };
    if mapx.dtype != DType::F32 || mapy.dtype != DType::F32 || mapx.shape != mapy.shape {
        return Err(Error::invalid(format!(
            "maps of {} {} and {} {}, expected two of float32 and of one shape",
            mapx.dtype, mapx.shape, mapy.dtype, mapy.shape
        )));
    }
    if rest.iter().any(|&extent| extent != 1) {
        return Err(Error::invalid(format!("a map of shape {}, expected one channel", mapx.shape)));
    }
    let [height, width, channels] = image[..] else {
        return Err(Error::internal("a planned image has three dimensions"));
    };
    if height * width == 0 && rows * columns > 0 {
        return Err(Error::invalid(format!("an image of shape {image} has no pixels to show")));
    }
    Ok(Shape::from([rows, columns, channels]))
}

/// Pixels that one is made of.
const LOOKS: usize = 16;

impl Remap {
    fn run<T>(&self, sample: &mut SampleIo<'_>, watch: &Watch<'_>) -> Result<()>
    where
        T: Element + ConvertSat<T> + ConvertSat<f32>,
        f32: ConvertSat<T>,
    {
        let [mapx, mapy] = [sample.input(1)?, sample.input(2)?];
        let (mapx, mapy) = (mapx.as_slice::<f32>()?, mapy.as_slice::<f32>()?);
        let (input, output) = sample.unary()?;
        let ([height, width, channels], [_, columns, _]) = (&input.shape[..], &output.shape[..]) else {
            return Err(Error::internal("a planned image has three dimensions"));
        };
        let columns = *columns;
        let source =
            Pixels { values: input.as_slice::<T>()?, size: [*width, *height, 1], channels: *channels };
        let places = |row: usize, shift: f32, places: &mut [[f32; 3]]| {
            let maps = mapx[row * columns..].iter().zip(&mapy[row * columns..]);
            let shifted = |at: f32| if at.is_finite() { at + shift } else { -FAR };
            for (place, (x, y)) in places.iter_mut().zip(maps) {
                *place = [shifted(*x), shifted(*y), 0.0];
            }
        };
        let output = output.as_slice_mut()?;
        let sampling = match self.interpolation {
            Interpolation::Nearest => Sampling::Nearest,
            Interpolation::Linear => Sampling::Linear,
            Interpolation::Cubic | Interpolation::Lanczos => {
                let mut line = vec![[0.0; 3]; columns];
                for (y, row) in output.chunks_exact_mut((columns * channels).max(1)).enumerate() {
                    // Here pixel centers are whole numbers.
                    places(y, self.shift - 0.5, &mut line);
                    match self.interpolation {
                        Interpolation::Cubic => cubic(source, &line, row),
                        _ => lanczos(source, &line, row),
                    }
                    watch.charge(row.len().saturating_mul(LOOKS))?;
                }
                return Ok(());
            }
        };
        displace(source, output, columns, sampling, T::default(), watch, |row, line| {
            places(row, self.shift, line);
        })
    }
}

impl Operator for Remap {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), check)?;
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?;
        let size = |d: usize| inputs[1].dims.as_ref().and_then(|dims| *dims.get(d)?);
        let channels = ty.dims.as_ref().and_then(|dims| *dims.get(2)?);
        ty.dims = Some(vec![size(0), size(1), channels]);
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout: Layout = layouts::of_batch(desc, &LAYOUTS)?;
        let shapes = inputs.map_shapes(3, |sample| output_shape(&sample));
        let elements = shapes.iter().map(|shape| shape.volume().unwrap_or(usize::MAX));
        let nanoseconds = match self.interpolation {
            Interpolation::Nearest => 12.0,
            Interpolation::Linear => 20.0,
            Interpolation::Cubic => 80.0,
            Interpolation::Lanczos => 250.0,
        };
        self.efforts = elements.map(|elements| Effort::new(elements as f64 * nanoseconds, 0)).collect();
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (this, failures) = (&*self, io.inputs().failures());
        let watch = |sample: &SampleIo<'_>| cx.watch(failures, sample.index());
        match io.inputs().desc(0)?.dtype {
            DType::U8 => io.for_each_sample(cx, |sample| this.run::<u8>(sample, &watch(sample))),
            DType::I16 => io.for_each_sample(cx, |sample| this.run::<i16>(sample, &watch(sample))),
            DType::U16 => io.for_each_sample(cx, |sample| this.run::<u16>(sample, &watch(sample))),
            DType::F32 => io.for_each_sample(cx, |sample| this.run::<f32>(sample, &watch(sample))),
            other => check(other),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&kernel(dtype, self.interpolation)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        let mut most = 0;
        let rows = io.rows(|sample| {
            let (input, output) = (sample.input(0)?.shape, sample.output_shape(0)?);
            most = most.max(output[0] * output[1]);
            Ok(Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                maps: [sample.source(1)?, sample.source(2)?],
                source: [input[1] as i32, input[0] as i32],
                pixels: (output[0] * output[1]) as u64,
                channels: input[2] as u64,
            })
        });
        cx.launch(&kernel(dtype, self.interpolation), most, &Params { shift: self.shift }, &rows)
    }
}

device_struct! {
    /// An image, as `kernels/remap.cu` sees it.
    struct Row as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        /// x, y
        maps: [u64; 2] = "const float *",
        /// columns, rows
        source: [i32; 2],
        pixels: u64,
        channels: u64,
    }
}

device_struct! {
    struct Params as Params {
        /// what is added to places, so that the first pixel goes from 0 to 1
        shift: f32,
    }
}

fn kernel(dtype: DType, interpolation: Interpolation) -> KernelSpec {
    let number = match interpolation {
        Interpolation::Nearest => 0,
        Interpolation::Linear => 1,
        Interpolation::Cubic => 2,
        Interpolation::Lanczos => 3,
    };
    KernelSpec::of::<Row, Params>("remap", "remap")
        .header(HEADER)
        .dtype("ELEMENT", dtype)
        .define("SAMPLING", number)
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    use Interpolation::{Cubic, Lanczos, Linear, Nearest};
    [Nearest, Linear, Cubic, Lanczos].map(|how| [kernel(DType::U8, how), kernel(DType::F32, how)]).concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::testing;

    #[test]
    fn maps_that_do_not_fit_fail_their_sample() {
        let (pixels, map) = ([1u8, 2, 3], [2.5f32, 1.5, 0.5, f32::NAN]);
        let images = testing::batch::<u8>(&[(&[1, 3, 1], &pixels), (&[1, 3, 1], &pixels)]);
        let mapx = testing::batch::<f32>(&[(&[1, 4], &map), (&[1, 2], &map[..2])]);
        let mapy = testing::batch::<f32>(&[(&[1, 4], &[0.5; 4]), (&[1, 4], &map)]);
        let done = testing::run(&DEF, &testing::args(&[], &[]), &[images, mapx, mapy], &[]).unwrap();
        assert_eq!(done.values::<u8>(0), [3, 2, 1, 0]);
        assert!(done.error(1).contains("maps of"), "{}", done.error(1));
    }
}
