//! `RandomBBoxCrop`: random windows that bounding boxes survive, and the boxes in them. The search is in `bbox_window`.

use super::bbox_window::{Found, Metric, Pixels, Region, Rules};
use super::{SEED, seed};
use crate::cpu::random::{BatchRandom, Seed};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::shared::boxes::BoxLayout;
use crate::operator::shared::{boxes, dtypes};
use crate::operator::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct RandomBBoxCrop {
    rules: Rules,
    crop_shape: Option<Arg>,
    input_shape: Option<Arg>,
    bbox_layout: Option<String>,
    shape_layout: Option<String>,
    has_labels: bool,
    has_indices: bool,
    seed: Seed,
    /// Per sample, for the batch at hand.
    answers: Vec<Answer>,
}

/// What becomes of one sample.
#[derive(Debug, Default)]
struct Answer {
    anchor: Vec<f32>,
    size: Vec<f32>,
    boxes: Vec<f32>,
    kept: Vec<usize>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "RandomBBoxCrop",
    doc: "Random windows that bounding boxes survive, and the boxes in them",
    devices: &[Device::Cpu],
    inputs: (1, 2),
    args: &[
        SEED,
        ArgSpec::floats("scaling", "least and largest side of the window, relative to the image")
            .or_floats(&[1.0, 1.0]),
        ArgSpec::floats("aspect_ratio", "least and largest width by height; in 3-D of x/y, x/z and y/z")
            .or_floats(&[1.0, 1.0]),
        ArgSpec::floats("thresholds", "metrics of which one is drawn that the window must reach")
            .or_floats(&[0.0]),
        ArgSpec::string("threshold_type", "the metric: `iou`, or `overlap`, the part of a box in the window")
            .or_string("iou"),
        ArgSpec::bool(
            "all_boxes_above_threshold",
            "whether all boxes must reach the threshold, not just one",
        )
        .or_bool(true),
        ArgSpec::bool("allow_no_crop", "whether the whole image is one more choice; not with `crop_shape`")
            .or_computed("true without `crop_shape`"),
        ArgSpec::int("num_attempts", "windows that are drawn for a threshold before another one is")
            .or_int(1),
        ArgSpec::int("total_num_attempts", "windows after which the best one is taken; -1: no limit")
            .or_int(-1),
        ArgSpec::float("bbox_prune_threshold", "part of a box that must be left; without, its center"),
        ArgSpec::ints("crop_shape", "size of the window in pixels, in place of `scaling`").tensor(),
        ArgSpec::ints("input_shape", "size of the image in pixels").tensor(),
        ArgSpec::layout("shape_layout", "order of sizes in pixels: `WH` or `WHD`, reordered"),
        ArgSpec::layout("bbox_layout", "order of the numbers of a box, such as `xyXY` or `xyWH`"),
        ArgSpec::bool("ltrb", "false: `xyWH` is the layout of boxes").or_bool(true),
        ArgSpec::bool("output_bbox_indices", "whether an output says which boxes are left").or_bool(false),
        ArgSpec::bool("quiet", "whether DALI does not warn").no_effect().or_bool(false),
    ],
    build: &build,
    outputs: &|args, inputs| Ok(2 + inputs + usize::from(args.bool("output_bbox_indices")?)),
    ..OpDef::BASE
};

/// A fixed list that is one range or several of them.
fn ranges(args: &Args, name: &str) -> Result<Vec<[f32; 2]>> {
    let values = args.floats(name)?;
    let (ranges, rest) = values.as_chunks::<2>();
    let rise = |[low, high]: &[f32; 2]| 0.0 <= *low && low <= high && high.is_finite();
    if ranges.is_empty() || !rest.is_empty() || !ranges.iter().all(rise) {
        let text = format!("argument `{name}` is {values:?}, expected pairs of numbers from 0 on that rise");
        return Err(Error::invalid(text));
    }
    Ok(ranges.to_vec())
}

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let part = |name: &str, value: f32| {
        if (0.0..=1.0).contains(&value) {
            return Ok(value);
        }
        Err(Error::invalid(format!("argument `{name}` is {value}, expected 0 to 1")))
    };
    let attempts = |name: &str, count: i64| {
        usize::try_from(count)
            .ok()
            .filter(|count| (1..=limits::MAX_BOX_COMPARISONS).contains(count))
            .ok_or_else(|| {
                let most = limits::MAX_BOX_COMPARISONS;
                Error::invalid(format!("argument `{name}` is {count}, expected 1 to {most}"))
            })
    };
    let [scaling] = ranges(args, "scaling")?[..] else {
        return Err(Error::invalid("argument `scaling` has several ranges, expected one"));
    };
    let thresholds = args.floats("thresholds")?;
    if thresholds.is_empty() {
        return Err(Error::invalid("argument `thresholds` is empty"));
    }
    for &threshold in &thresholds {
        part("thresholds", threshold)?;
    }
    let metric = match args.string("threshold_type")? {
        "iou" => Metric::IntersectionOverUnion,
        "overlap" => Metric::Overlap,
        other => {
            let text = format!("argument `threshold_type` is `{other}`, expected `iou` or `overlap`");
            return Err(Error::invalid(text));
        }
    };
    // A window of a given size is never the whole image, unless that is asked for, which is an error.
    let may_keep_all = args.given_bool("allow_no_crop")?.unwrap_or(!args.has("crop_shape"));
    if args.has("crop_shape") {
        if let Some(other) = ["scaling", "aspect_ratio"].into_iter().find(|name| args.has(name)) {
            return Err(Error::invalid(format!("arguments `crop_shape` and `{other}` exclude each other")));
        }
        if may_keep_all || !args.has("input_shape") {
            let text = "argument `crop_shape` needs `input_shape`, and no `allow_no_crop` that is true";
            return Err(Error::invalid(text));
        }
    }
    let has_ends = args.bool("ltrb")?;
    let bbox_layout = args.given_string("bbox_layout")?.filter(|text| !text.is_empty());
    let total = args.given_int("total_num_attempts")?.filter(|&total| total != -1);
    Ok(Box::new(RandomBBoxCrop {
        rules: Rules {
            scaling,
            ratios: ranges(args, "aspect_ratio")?,
            thresholds,
            may_keep_all,
            attempts: attempts("num_attempts", args.int("num_attempts")?)?,
            total: total.map(|total| attempts("total_num_attempts", total)).transpose()?,
            metric,
            all_boxes: args.bool("all_boxes_above_threshold")?,
            least_part: args
                .given_float("bbox_prune_threshold")?
                .map(|least| part("bbox_prune_threshold", least))
                .transpose()?,
        },
        crop_shape: args.given_arg("crop_shape")?,
        input_shape: args.given_arg("input_shape")?,
        bbox_layout: bbox_layout.or((!has_ends).then_some("xyWH")).map(str::to_owned),
        shape_layout: args.given_string("shape_layout")?.filter(|text| !text.is_empty()).map(str::to_owned),
        has_labels: inputs > 1,
        has_indices: args.bool("output_bbox_indices")?,
        seed: seed(args)?,
        answers: Vec::new(),
    }))
}

impl RandomBBoxCrop {
    fn answer<const N: usize>(&self, sample: &SampleInputs<'_>, batch: BatchRandom) -> Result<Answer> {
        let layout = self.bbox_layout.as_deref().unwrap_or(if N == 2 { "xyXY" } else { "xyzXYZ" });
        let layout = BoxLayout::parse(layout, N)?;
        let order = self.shape_layout.as_deref().unwrap_or(if N == 2 { "WH" } else { "WHD" });
        let size =
            |arg: &Option<Arg>| arg.as_ref().map(|arg| boxes::sizes::<N>(arg, sample, order)).transpose();
        let pixels = Pixels { image: size(&self.input_shape)?, window: size(&self.crop_shape)? };
        let regions = sample.input(0)?.as_slice::<f32>()?.chunks_exact(2 * N).map(|numbers| {
            let [low, high] = layout.read::<N>(numbers);
            let inside = |at: &f32| (0.0..=1.0).contains(at);
            if low.iter().chain(&high).all(inside) {
                return Ok(Region { low, high });
            }
            Err(Error::invalid(format!("a box from {low:?} to {high:?}, expected it inside of 0 to 1")))
        });
        let regions = regions.collect::<Result<Vec<_>>>()?;
        if self.has_labels {
            boxes::check_labels(&sample.input(1)?, regions.len())?;
        }
        let Found { window, anchor, size, kept } =
            self.rules.find(&mut batch.sample(sample.index), &regions, pixels)?;
        let mut left = vec![0.0; kept.len() * 2 * N];
        for (&i, numbers) in kept.iter().zip(left.chunks_exact_mut(2 * N)) {
            let Region { low, high } = window.cut(&regions[i]);
            layout.write([low, high], numbers);
        }
        Ok(Answer { anchor: anchor.to_vec(), size: size.to_vec(), boxes: left, kept })
    }
}

/// The dimensions of boxes of shape `shape`.
fn dimensions(shape: &Shape) -> Result<usize> {
    match shape[..] {
        [_, 4] => Ok(2),
        [_, 6] => Ok(3),
        _ => Err(Error::invalid(format!("boxes of shape {shape}, expected a list of 4 or 6 numbers each"))),
    }
}

impl Operator for RandomBBoxCrop {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), |dtype| dtypes::accepted("boxes", dtype, &[DType::F32]))?;
        let numbers = inputs[0].dims.as_ref().and_then(|dims| *dims.get(1)?);
        let ty = |dtype, dims| ValueType { dtype: Some(dtype), dims: Some(dims), layout: Some(Layout::NONE) };
        let point = ty(DType::F32, vec![numbers.map(|numbers| numbers / 2)]);
        let mut types = vec![point.clone(), point, ty(DType::F32, vec![None, numbers])];
        let lists = usize::from(self.has_labels) + usize::from(self.has_indices);
        types.extend(vec![ty(DType::I32, vec![None]); lists]);
        Ok(types)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        dtypes::accepted("boxes", desc.dtype, &[DType::F32])?;
        if self.has_labels {
            dtypes::accepted("labels", inputs.desc(1)?.dtype, &[DType::I32])?;
        }
        let batch = self.seed.batch(inputs.first_sample());
        self.answers = inputs.map(|sample| match dimensions(sample.input(0)?.shape)? {
            2 => self.answer::<2>(&sample, batch),
            _ => self.answer::<3>(&sample, batch),
        });
        let shapes = |shape: &dyn Fn(&Answer) -> Shape| self.answers.iter().map(shape).collect::<Vec<_>>();
        let point =
            BatchDesc::new(DType::F32, Layout::NONE, shapes(&|found| Shape::from([found.anchor.len()])));
        let left = shapes(&|found| Shape::from([found.kept.len(), 2 * found.anchor.len()]));
        let mut outputs = vec![point.clone(), point, BatchDesc::new(DType::F32, Layout::NONE, left)];
        let lists = usize::from(self.has_labels) + usize::from(self.has_indices);
        let list = shapes(&|found| Shape::from([found.kept.len()]));
        outputs.extend(vec![BatchDesc::new(DType::I32, Layout::NONE, list); lists]);
        Ok(outputs)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let answer = &self.answers[sample.index()];
            sample.output(0)?.as_slice_mut::<f32>()?.copy_from_slice(&answer.anchor);
            sample.output(1)?.as_slice_mut::<f32>()?.copy_from_slice(&answer.size);
            sample.output(2)?.as_slice_mut::<f32>()?.copy_from_slice(&answer.boxes);
            let mut next = 3;
            if self.has_labels {
                let labels = sample.input(1)?;
                let labels = labels.as_slice::<i32>()?;
                for (to, &i) in sample.output(next)?.as_slice_mut::<i32>()?.iter_mut().zip(&answer.kept) {
                    *to = labels[i];
                }
                next += 1;
            }
            if self.has_indices {
                for (to, &i) in sample.output(next)?.as_slice_mut::<i32>()?.iter_mut().zip(&answer.kept) {
                    *to = i as i32;
                }
            }
            Ok(())
        })
    }
}
