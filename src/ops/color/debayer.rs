//! `Debayer`: colours from the image of a sensor whose pixels see one colour each.

use std::sync::Arc;

use crate::cpu::debayer::{Algorithm, debayer};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 4] = ["HW", "HWC", "FHW", "FHWC"];

struct Debayer {
    blue_position: Arg,
    algorithm: Algorithm,
    /// Per sample: row and column of a blue pixel among the first two.
    blues: Vec<[usize; 2]>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Debayer",
    aliases: &["experimental__Debayer"],
    doc: "Colours from the pattern of a sensor",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints(
            "blue_position",
            "row and column, 0 or 1, of blue in the tile that begins at the second row and column",
        )
        .tensor()
        .per_frame()
        .required(),
        ArgSpec::string("algorithm", "`bilinear_ocv`, `edgeaware_ocv`, `vng_ocv` (of 8 bits) or `gray_ocv`")
            .or_string("bilinear_ocv"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let algorithm = match args.string("algorithm")? {
        "bilinear_ocv" => Algorithm::Bilinear,
        "edgeaware_ocv" => Algorithm::EdgeAware,
        "vng_ocv" => Algorithm::Gradients,
        "gray_ocv" => Algorithm::Gray,
        other => {
            let expected = "`bilinear_ocv`, `edgeaware_ocv`, `vng_ocv` or `gray_ocv`";
            return Err(Error::unsupported(format!(
                "argument `algorithm` is `{other}`, expected {expected}"
            )));
        }
    };
    let blue_position = args.arg("blue_position")?;
    Ok(Box::new(Debayer { blue_position, algorithm, blues: Vec::new() }))
}

/// The layout of the output for an input of layout `layout`, and the dimension of its rows.
fn output_layout(layout: Layout) -> (Layout, usize) {
    let rows = layout.find(b'H').unwrap_or_default();
    (Layout::from_letters(if rows == 0 { b"HWC" } else { b"FHWC" }), rows)
}

impl Debayer {
    fn check(&self, dtype: DType) -> Result<()> {
        let all = [DType::U8, DType::U16];
        let accepted = if self.algorithm == Algorithm::Gradients { &all[..1] } else { &all };
        dtypes::accepted("images", dtype, accepted)
    }

    /// The first blue pixel. The argument's tile begins at the second row and column.
    fn blue(&self, sample: &SampleInputs<'_>) -> Result<[usize; 2]> {
        match self.blue_position.ints(sample)?[..] {
            [y @ (0 | 1), x @ (0 | 1)] => Ok([1 - y as usize, 1 - x as usize]),
            // One value is both, as in DALI.
            [both @ (0 | 1)] => Ok([1 - both as usize; 2]),
            ref other => Err(Error::invalid(format!(
                "argument `blue_position` is {other:?}, expected a row and a column, each 0 or 1"
            ))),
        }
    }
}

fn output_shape(shape: &Shape, rows: usize, channels: usize) -> Result<Shape> {
    let found: usize = shape[rows + 2..].iter().product();
    if found != 1 || !shape[rows].is_multiple_of(2) || !shape[rows + 1].is_multiple_of(2) {
        return Err(Error::invalid(format!(
            "an image of shape {shape}, expected an even height and width and one channel"
        )));
    }
    Ok(Shape::from([&shape[..rows + 2], &[channels]].concat()))
}

impl Operator for Debayer {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        input.dtype.map_or(Ok(()), |dtype| self.check(dtype))?;
        let accepted = layouts::of_type(input, &LAYOUTS)?.map(output_layout);
        let dims = accepted.zip(input.dims.as_ref()).map(|((_, rows), dims)| {
            let mut dims = dims[..rows + 2].to_vec();
            dims.push(Some(self.algorithm.channels()));
            dims
        });
        Ok(vec![ValueType { dtype: input.dtype, dims, layout: accepted.map(|(layout, _)| layout) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        self.check(desc.dtype)?;
        let (layout, rows) = output_layout(layouts::of_batch(desc, &LAYOUTS)?);
        self.blues = inputs.map(|sample| self.blue(&sample));
        let channels = self.algorithm.channels();
        let shapes =
            inputs.map_shapes(rows + 3, |sample| output_shape(sample.input(0)?.shape, rows, channels));
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (blues, algorithm) = (&self.blues, self.algorithm);
        macro_rules! run {
            ($T:ty) => {
                io.for_each_sample(cx, |sample| {
                    let blue = blues[sample.index()];
                    let (input, output) = sample.unary()?;
                    let [.., height, width, channels] = output.shape[..] else {
                        return Err(Error::internal("a planned image has rows and columns"));
                    };
                    if output.bytes.is_empty() {
                        return Ok(());
                    }
                    let images = output.as_slice_mut::<$T>()?.chunks_exact_mut(height * width * channels);
                    for (src, dst) in input.as_slice::<$T>()?.chunks_exact(height * width).zip(images) {
                        debayer(algorithm, src, dst, [height, width], blue);
                    }
                    Ok(())
                })
            };
        }
        match io.inputs().desc(0)?.dtype {
            DType::U8 => run!(u8),
            DType::U16 => run!(u16),
            other => self.check(other),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&kernel(dtype, self.algorithm)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let desc = io.inputs().desc(0)?;
        let first = layouts::of_batch(desc, &LAYOUTS)?.find(b'H').unwrap_or_default();
        let rows = io.rows(|sample| {
            let blue = self.blues.get(sample.index()).copied().unwrap_or_default();
            let shape = sample.input(0)?.shape;
            let (images, [height, width]) = (&shape[..first], [shape[first], shape[first + 1]]);
            let bytes = height * width * desc.dtype.size();
            let (target, source) = (sample.target(0)?, sample.source(0)?);
            let row = |image: usize| Row {
                to: target + (image * bytes * self.algorithm.channels()) as u64,
                from: source + (image * bytes) as u64,
                height: height as u32,
                width: width as u32,
                blue: blue.map(|place| place as u32),
            };
            Ok((0..images.iter().product()).map(row).collect::<Vec<Row>>())
        });
        let rows = rows.concat();
        let most = rows.iter().map(|row| row.height as usize * row.width as usize);
        let most = most.max().unwrap_or_default();
        cx.launch(&kernel(desc.dtype, self.algorithm), most, &NoParams::default(), &rows)
    }
}

device_struct! {
    /// An image, as `kernels/debayer.cu` sees it.
    struct Row as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        height: u32,
        width: u32,
        /// row and column of the first blue pixel
        blue: [u32; 2],
    }
}

fn kernel(dtype: DType, algorithm: Algorithm) -> KernelSpec {
    let number = match algorithm {
        Algorithm::Bilinear => 0,
        Algorithm::EdgeAware => 1,
        Algorithm::Gray => 2,
        Algorithm::Gradients => 3,
    };
    KernelSpec::of::<Row, NoParams>("debayer", "debayer").dtype("ELEMENT", dtype).define("ALGORITHM", number)
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    let all = [Algorithm::Bilinear, Algorithm::EdgeAware, Algorithm::Gray];
    let kernels = all.into_iter().map(|algorithm| kernel(DType::U16, algorithm));
    kernels.chain([kernel(DType::U8, Algorithm::Gradients)]).collect()
}
