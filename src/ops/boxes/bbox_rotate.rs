//! `BBoxRotate`: bounding boxes turned with their image.

use crate::error::{Error, Result};
use crate::operator::shared::boxes::BoxLayout;
use crate::operator::shared::{boxes, dtypes};
use crate::operator::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::ops::geometry::transforms::radians;
use crate::ops::geometry::warp::rotate::canvas;
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct BBoxRotate {
    angle: Arg,
    input_shape: Arg,
    shape_layout: String,
    /// Size of the canvas, when it is given.
    size: Option<Arg>,
    keep_size: bool,
    layout: BoxLayout,
    is_relative: bool,
    mode: Mode,
    /// Boxes of which less is left go.
    least_part: f32,
    has_labels: bool,
    /// Per sample: the boxes that stay, and which ones they were.
    answers: Vec<(Vec<f32>, Vec<usize>)>,
}

/// How large a box is when it was turned.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// So large that it holds the turned box.
    Expand,
    /// As large as before.
    Fixed,
    /// The mean of both.
    Halfway,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "BBoxRotate",
    doc: "Bounding boxes turned with their image",
    devices: &[Device::Cpu],
    inputs: (1, 2),
    args: &[
        ArgSpec::float("angle", "degrees, counter-clockwise").tensor().required(),
        ArgSpec::ints("input_shape", "size of the image in pixels").tensor().required(),
        ArgSpec::layout("shape_layout", "order of the sizes of the image").or_string("HW"),
        ArgSpec::floats(
            "size",
            "height and width of the turned image; empty: so large that it holds all of it",
        )
        .tensor()
        .or_floats(&[]),
        ArgSpec::bool("keep_size", "whether the turned image is as large as the image").or_bool(false),
        ArgSpec::layout("bbox_layout", "order of the numbers of a box: `xyXY` or `xyWH`").or_string("xyXY"),
        ArgSpec::bool("bbox_normalized", "whether boxes are relative to the image").or_bool(true),
        ArgSpec::string("mode", "size of a turned box: `expand` to hold it, `fixed`, or `halfway` between")
            .or_string("expand"),
        ArgSpec::float("remove_threshold", "boxes go of which a smaller part is inside, below 1")
            .or_float(0.1),
    ],
    build: &build,
    outputs: &|_, inputs| Ok(inputs),
    ..OpDef::BASE
};

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let needed = |name| args.arg(name);
    let mode = match args.string("mode")? {
        "expand" => Mode::Expand,
        "fixed" => Mode::Fixed,
        "halfway" => Mode::Halfway,
        other => {
            let text = format!("argument `mode` is `{other}`, expected `expand`, `fixed` or `halfway`");
            return Err(Error::invalid(text));
        }
    };
    let least_part = args.float("remove_threshold")?;
    if !(0.0..1.0).contains(&least_part) {
        let text = format!("argument `remove_threshold` is {least_part}, expected 0 to below 1");
        return Err(Error::invalid(text));
    }
    let keep_size = args.bool("keep_size")?;
    // An empty list is one that was not given.
    let size = args.given_arg("size")?.filter(|size| size.known().is_none_or(|size| !size.is_empty()));
    if keep_size && size.is_some() {
        return Err(Error::invalid("arguments `keep_size` and `size` exclude each other"));
    }
    Ok(Box::new(BBoxRotate {
        angle: needed("angle")?,
        input_shape: needed("input_shape")?,
        shape_layout: args.string("shape_layout")?.to_owned(),
        size,
        keep_size,
        layout: BoxLayout::parse(args.string("bbox_layout")?, 2)?,
        is_relative: args.bool("bbox_normalized")?,
        mode,
        least_part,
        has_labels: inputs > 1,
        answers: Vec::new(),
    }))
}

/// What one sample's boxes are turned by.
struct Rotation {
    sin: f32,
    cos: f32,
    /// Width and height of the image, and of the turned one.
    from: [f32; 2],
    to: [f32; 2],
}

impl BBoxRotate {
    fn turn(&self, sample: &SampleInputs<'_>) -> Result<Rotation> {
        let angle = radians(self.angle.float(sample)?);
        if !angle.is_finite() {
            return Err(Error::invalid("argument `angle` is no number"));
        }
        let from = boxes::sizes::<2>(&self.input_shape, sample, &self.shape_layout)?.map(|side| side as f32);
        let to = match &self.size {
            Some(size) => match size.floats(sample)?[..] {
                [height, width] if height > 0.0 && width > 0.0 => [width, height],
                ref other => {
                    return Err(Error::invalid(format!("argument `size` is {other:?}, expected two sides")));
                }
            },
            None if self.keep_size => from,
            None => {
                let [height, width] = canvas(from[1] as usize, from[0] as usize, f64::from(angle));
                [width as f32, height as f32]
            }
        };
        let (sin, cos) = angle.sin_cos();
        Ok(Rotation { sin, cos, from, to })
    }

    /// The boxes that stay, and which ones they were.
    fn rotated(&self, sample: &SampleInputs<'_>) -> Result<(Vec<f32>, Vec<usize>)> {
        let input = sample.input(0)?;
        check_shape(input.shape)?;
        let turn = self.turn(sample)?;
        if self.has_labels {
            boxes::check_labels(&sample.input(1)?, input.shape[0])?;
        }
        let (mut numbers, mut kept) = (Vec::new(), Vec::new());
        for (i, one) in input.as_slice::<f32>()?.as_chunks::<4>().0.iter().enumerate() {
            let [mut low, mut high] = self.layout.read::<2>(one);
            if self.is_relative {
                (low, high) = (scaled(low, turn.from), scaled(high, turn.from));
            }
            let Some([low, high]) = self.turned(&turn, low, high) else { continue };
            let mut own = [0.0; 4];
            let corners = if self.is_relative {
                [low, high].map(|at| [at[0] / turn.to[0], at[1] / turn.to[1]])
            } else {
                [low, high]
            };
            self.layout.write(corners, &mut own);
            numbers.extend(own);
            kept.push(i);
        }
        Ok((numbers, kept))
    }

    /// A turned box within its canvas; `None` if too little of it is.
    fn turned(&self, turn: &Rotation, low: [f32; 2], high: [f32; 2]) -> Option<[[f32; 2]; 2]> {
        let Rotation { sin, cos, from, to } = *turn;
        let size = [high[0] - low[0], high[1] - low[1]];
        let [dx, dy] = [0, 1].map(|d| (low[d] + high[d]) / 2.0 - from[d] / 2.0);
        let center = [cos * dx + sin * dy + to[0] / 2.0, cos * dy - sin * dx + to[1] / 2.0];
        let (s, c) = (sin.abs(), cos.abs());
        let expanded = [c * size[0] + s * size[1], s * size[0] + c * size[1]];
        // A box that is turned by more than 45 degrees lies on its other side.
        let same = if s > c { [size[1], size[0]] } else { size };
        let size = match self.mode {
            Mode::Expand => expanded,
            Mode::Fixed => same,
            Mode::Halfway => [0, 1].map(|d| (expanded[d] + same[d]) / 2.0),
        };
        let low = [0, 1].map(|d| center[d] - size[d] / 2.0);
        let high = [0, 1].map(|d| center[d] + size[d] / 2.0);
        let inside = |at: [f32; 2]| [0, 1].map(|d| at[d].max(0.0).min(to[d]));
        let corners = [inside(low), inside(high)];
        let area = |[low, high]: [[f32; 2]; 2]| (high[0] - low[0]) * (high[1] - low[1]);
        let is_lost = area(corners) / area([low, high]) < self.least_part;
        (!is_lost).then_some(corners)
    }
}

fn scaled(at: [f32; 2], by: [f32; 2]) -> [f32; 2] {
    [at[0] * by[0], at[1] * by[1]]
}

fn check_shape(shape: &Shape) -> Result<()> {
    match shape[..] {
        [_, 4] => Ok(()),
        _ => Err(Error::invalid(format!("boxes of shape {shape}, expected a list of 4 numbers each"))),
    }
}

/// Shape of the labels of `kept` of the boxes, where those of all have `ndim` dimensions.
fn labels(kept: usize, ndim: usize) -> Shape {
    Shape::from(if ndim == 2 { vec![kept, 1] } else { vec![kept] })
}

impl Operator for BBoxRotate {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), |dtype| dtypes::accepted("boxes", dtype, &[DType::F32]))?;
        let boxes = ValueType {
            dtype: Some(DType::F32),
            dims: Some(vec![None, Some(4)]),
            layout: Some(Layout::NONE),
        };
        let labels = inputs.get(1).map(|labels| ValueType {
            dtype: Some(DType::I32),
            dims: labels
                .dims
                .as_ref()
                .map(|dims| [vec![None], dims.get(1..).unwrap_or_default().to_vec()].concat()),
            layout: Some(Layout::NONE),
        });
        Ok(std::iter::once(boxes).chain(labels).collect())
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        dtypes::accepted("boxes", inputs.desc(0)?.dtype, &[DType::F32])?;
        self.answers = inputs.map(|sample| self.rotated(&sample));
        let shapes = self.answers.iter().map(|(_, kept)| Shape::from([kept.len(), 4])).collect();
        let mut outputs = vec![BatchDesc::new(DType::F32, Layout::NONE, shapes)];
        if self.has_labels {
            let desc = inputs.desc(1)?;
            dtypes::accepted("labels", desc.dtype, &[DType::I32])?;
            let ndim = desc.shapes.first().map_or(1, |shape| shape.len());
            let shapes = self.answers.iter().map(|(_, kept)| labels(kept.len(), ndim)).collect();
            outputs.push(BatchDesc::new(DType::I32, Layout::NONE, shapes));
        }
        Ok(outputs)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (boxes, kept) = &self.answers[sample.index()];
            sample.output(0)?.as_slice_mut::<f32>()?.copy_from_slice(boxes);
            if self.has_labels {
                let labels = sample.input(1)?;
                let labels = labels.as_slice::<i32>()?;
                for (to, &i) in sample.output(1)?.as_slice_mut::<i32>()?.iter_mut().zip(kept) {
                    *to = labels[i];
                }
            }
            Ok(())
        })
    }
}
