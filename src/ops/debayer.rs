//! `Debayer`: colours from the image of a sensor whose pixels see one colour each.

use multiversion::multiversion;

use super::{
    Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs, dtypes, layouts, one_output,
};
use crate::error::{Error, Result};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType};

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 4] = ["HW", "HWC", "FHW", "FHWC"];

struct Debayer {
    blue_position: Arg,
    /// Per sample: row and column of a blue pixel among the first two.
    blues: Vec<[usize; 2]>,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "Debayer",
    aliases: &["experimental__Debayer"],
    doc: "Colours from the pattern of a sensor, by bilinear interpolation",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints(
            "blue_position",
            "row and column, 0 or 1, of blue in the tile that begins at the second row and column",
        )
        .tensor()
        .per_frame()
        .required(),
        ArgSpec::string("algorithm", "only `bilinear_ocv` is known").or_computed("bilinear_ocv"),
    ],
    build: &build,
    outputs: &one_output,
    sequences: true,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    if let Some(other) = args.string("algorithm")?.filter(|&name| name != "bilinear_ocv") {
        let text = format!("argument `algorithm` is `{other}`, expected `bilinear_ocv`");
        return Err(Error::unsupported(text));
    }
    let blue_position = args.arg("blue_position")?;
    let blue_position = blue_position.ok_or_else(|| Error::invalid("argument `blue_position` is missing"))?;
    Ok(Box::new(Debayer { blue_position, blues: Vec::new() }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8, DType::U16])
}

/// The layout of the output for an input of layout `layout`, and the dimension of its rows.
fn output_layout(layout: Layout) -> (Layout, usize) {
    let rows = layout.find(b'H').unwrap_or_default();
    (Layout::from_letters(if rows == 0 { b"HWC" } else { b"FHWC" }), rows)
}

impl Debayer {
    /// The first blue pixel. The argument's tile begins at the second row and column.
    fn blue(&self, sample: &SampleInputs<'_>) -> Result<[usize; 2]> {
        match self.blue_position.ints(sample)?[..] {
            [y @ (0 | 1), x @ (0 | 1)] => Ok([1 - y as usize, 1 - x as usize]),
            ref other => Err(Error::invalid(format!(
                "argument `blue_position` is {other:?}, expected a row and a column, each 0 or 1"
            ))),
        }
    }
}

fn output_shape(shape: &Shape, rows: usize) -> Result<Shape> {
    let channels: usize = shape[rows + 2..].iter().product();
    if channels != 1 || !shape[rows].is_multiple_of(2) || !shape[rows + 1].is_multiple_of(2) {
        return Err(Error::invalid(format!(
            "an image of shape {shape}, expected an even height and width and one channel"
        )));
    }
    Ok(Shape::from([&shape[..rows + 2], &[3]].concat()))
}

impl Operator for Debayer {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        input.dtype.map_or(Ok(()), check)?;
        let accepted = layouts::of_type(input, &LAYOUTS)?.map(output_layout);
        let dims = accepted.zip(input.dims.as_ref()).map(|((_, rows), dims)| {
            let mut dims = dims[..rows + 2].to_vec();
            dims.push(Some(3));
            dims
        });
        Ok(vec![ValueType { dtype: input.dtype, dims, layout: accepted.map(|(layout, _)| layout) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let (layout, rows) = output_layout(layouts::of_batch(desc, &LAYOUTS)?);
        self.blues = inputs.map(|sample| self.blue(&sample));
        let shapes = inputs.map_shapes(rows + 3, |sample| output_shape(sample.input(0)?.shape, rows));
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let blues = &self.blues;
        macro_rules! run {
            ($T:ty) => {
                io.for_each_sample(cx, |sample| {
                    let blue = blues[sample.index()];
                    let (input, output) = sample.unary()?;
                    let [.., height, width, _] = output.shape[..] else {
                        return Err(Error::internal("a planned image has rows and columns"));
                    };
                    if output.bytes.is_empty() {
                        return Ok(());
                    }
                    let images = output.as_slice_mut::<$T>()?.chunks_exact_mut(height * width * 3);
                    for (src, dst) in input.as_slice::<$T>()?.chunks_exact(height * width).zip(images) {
                        debayer(src, dst.as_chunks_mut().0, [height, width], blue);
                    }
                    Ok(())
                })
            };
        }
        match io.inputs().desc(0)?.dtype {
            DType::U8 => run!(u8),
            DType::U16 => run!(u16),
            other => check(other),
        }
    }
}

/// Fills in the two colours that every pixel lacks with the means of its neighbours that have them. The frame of the image is
/// that of the pixels inside of it; an image without an inside is black.
fn debayer<T: Element + Into<u32> + TryFrom<u32>>(
    src: &[T],
    dst: &mut [[T; 3]],
    [height, width]: [usize; 2],
    blue: [usize; 2],
) {
    if height <= 2 || width <= 2 {
        return dst.fill([T::default(); 3]);
    }
    for (y, row) in dst.chunks_exact_mut(width).enumerate().take(height - 1).skip(1) {
        let lines = [y - 1, y, y + 1].map(|y| &src[y * width..][..width]);
        fill_row(lines, &mut row[1..width - 1], y % 2 == blue[0], blue[1]);
        row[0] = row[1];
        row[width - 1] = row[width - 2];
    }
    dst.copy_within(width..2 * width, 0);
    dst.copy_within((height - 2) * width..(height - 1) * width, (height - 1) * width);
}

/// Fills in the pixels between the first and the last of a row, from that row and those above and below it.
#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
fn fill_row<T>([above, own, below]: [&[T]; 3], dst: &mut [[T; 3]], in_blue_row: bool, blue_column: usize)
where
    T: Element + Into<u32> + TryFrom<u32>,
{
    let lines = above.array_windows().zip(own.array_windows()).zip(below.array_windows());
    for (x, (to, ((a, o), b))) in dst.iter_mut().zip(lines).enumerate() {
        let [a, o, b]: [[u32; 3]; 3] = [a, o, b].map(|line: &[T; 3]| line.map(Into::into));
        let across = (a[1] + b[1] + o[0] + o[2] + 2) / 4;
        let diagonal = (a[0] + a[2] + b[0] + b[2] + 2) / 4;
        let (beside, upright) = ((o[0] + o[2]).div_ceil(2), (a[1] + b[1]).div_ceil(2));
        let in_blue_column = (x + 1) % 2 == blue_column;
        let colour = match (in_blue_row, in_blue_column) {
            (true, true) => [diagonal, across, o[1]],
            (true, false) => [upright, o[1], beside],
            (false, true) => [beside, o[1], upright],
            (false, false) => [o[1], across, diagonal],
        };
        *to = colour.map(|level| T::try_from(level).unwrap_or_default());
    }
}
