//! `BoxEncoder`: which of a detector's anchors stand for which of an image's bounding boxes, as detectors of the SSD
//! kind are trained.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::shared::{boxes, dtypes};
use crate::operator::{ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType, View};

/// Left, top, right and bottom.
type Corners = [f32; 4];

struct BoxEncoder {
    anchors: Vec<Corners>,
    /// An anchor stands for a box whose intersection over union with it is more.
    criteria: f32,
    /// Whether boxes are told by how they differ from their anchors.
    tells_offsets: bool,
    scale: f32,
    means: [f32; 4],
    stds: [f32; 4],
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "BoxEncoder",
    doc: "For each anchor of a detector the bounding box that it stands for, and its label",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (2, 2),
    args: &[
        ArgSpec::floats("anchors", "left, top, right and bottom of each anchor").required(),
        ArgSpec::float("criteria", "least intersection over union of an anchor and its box").or_float(0.5),
        ArgSpec::bool("offset", "whether boxes are told by how they differ from their anchors")
            .or_bool(false),
        ArgSpec::float("scale", "what boxes and anchors are multiplied by for that").or_float(1.0),
        ArgSpec::floats("means", "subtracted from the four differences").or_floats(&[0.0; 4]),
        ArgSpec::floats("stds", "what they are divided by then").or_floats(&[1.0; 4]),
    ],
    build: &build,
    outputs: &|_, _| Ok(2),
    kernels: &[kernels],
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let four = |name: &str| {
        let values = args.floats(name)?;
        <[f32; 4]>::try_from(values.as_slice())
            .map_err(|_| Error::invalid(format!("argument `{name}` has {} values, expected 4", values.len())))
    };
    let anchors = args.floats("anchors")?;
    let (anchors, rest) = anchors.as_chunks::<4>();
    if anchors.is_empty() || !rest.is_empty() || !anchors.iter().all(has_area) {
        let text =
            "argument `anchors` holds no boxes: expected left, top, right and bottom of each, with an area";
        return Err(Error::invalid(text));
    }
    let criteria = args.float("criteria")?;
    if !(0.0..=1.0).contains(&criteria) {
        return Err(Error::invalid(format!("argument `criteria` is {criteria}, expected 0 to 1")));
    }
    Ok(Box::new(BoxEncoder {
        anchors: anchors.to_vec(),
        criteria,
        tells_offsets: args.bool("offset")?,
        scale: args.float("scale")?,
        means: four("means")?,
        stds: four("stds")?,
    }))
}

/// Whether these are numbers, and corners in order. A box without an area is one: annotations have such boxes.
fn is_box(corners: &Corners) -> bool {
    let &[left, top, right, bottom] = corners;
    corners.iter().all(|corner| corner.is_finite()) && left <= right && top <= bottom
}

fn has_area(corners: &Corners) -> bool {
    let &[left, top, right, bottom] = corners;
    is_box(corners) && left < right && top < bottom
}

fn intersection_over_union(a: &Corners, b: &Corners) -> f32 {
    let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let area = |corners: &Corners| (corners[2] - corners[0]) * (corners[3] - corners[1]);
    let shared = width * height;
    shared / (area(a) + area(b) - shared)
}

/// Center, width and height.
fn centered(&[left, top, right, bottom]: &Corners) -> [f32; 4] {
    [0.5 * (left + right), 0.5 * (top + bottom), right - left, bottom - top]
}

impl BoxEncoder {
    /// For each anchor the box that it stands for: the one it has most in common with, if that is enough; but every box
    /// has the anchor that it has most in common with.
    fn matched(&self, boxes: &[Corners]) -> Vec<Option<usize>> {
        let mut best = vec![(self.criteria, None); self.anchors.len()];
        let mut own = Vec::with_capacity(boxes.len());
        for (i, one) in boxes.iter().enumerate() {
            let (mut most, mut closest) = (f32::NEG_INFINITY, 0);
            for (k, anchor) in self.anchors.iter().enumerate() {
                let common = intersection_over_union(one, anchor);
                // Of equals the last one counts.
                if common > self.criteria && common >= best[k].0 {
                    best[k] = (common, Some(i));
                }
                if common >= most {
                    (most, closest) = (common, k);
                }
            }
            own.push(closest);
        }
        for (i, closest) in own.into_iter().enumerate() {
            best[closest].1 = Some(i);
        }
        best.into_iter().map(|(_, matched)| matched).collect()
    }

    /// What is told of a box that `anchor` stands for; of an anchor that stands for none, itself.
    fn told(&self, anchor: &Corners, matched: Option<&Corners>) -> [f32; 4] {
        let Some(matched) = matched else {
            return if self.tells_offsets { [0.0; 4] } else { centered(anchor) };
        };
        if !self.tells_offsets {
            return centered(matched);
        }
        let [ax, ay, aw, ah] = centered(anchor).map(|v| v * self.scale);
        let [bx, by, bw, bh] = centered(matched).map(|v| v * self.scale);
        let differences = [(bx - ax) / aw, (by - ay) / ah, (bw / aw).ln(), (bh / ah).ln()];
        std::array::from_fn(|i| (differences[i] - self.means[i]) / self.stds[i])
    }
}

/// How many boxes a sample has.
fn count(shape: &Shape) -> Result<usize> {
    match shape[..] {
        [count, 4] => Ok(count),
        _ => Err(Error::invalid(format!("boxes of shape {shape}, expected a list of 4 numbers each"))),
    }
}

/// The boxes of a sample on the host.
fn corners<'a>(view: &View<'a>) -> Result<&'a [Corners]> {
    count(view.shape)?;
    let corners = view.as_slice::<f32>()?.as_chunks::<4>().0;
    if let Some(wrong) = corners.iter().find(|corners| !is_box(corners)) {
        return Err(Error::invalid(format!(
            "a box {wrong:?}, expected left, top, right and bottom in order"
        )));
    }
    Ok(corners)
}

impl Operator for BoxEncoder {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), |dtype| dtypes::accepted("boxes", dtype, &[DType::F32]))?;
        let count = Some(self.anchors.len());
        let ty = |dtype, dims| ValueType { dtype: Some(dtype), dims: Some(dims), layout: Some(Layout::NONE) };
        Ok(vec![ty(DType::F32, vec![count, Some(4)]), ty(DType::I32, vec![count])])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        dtypes::accepted("boxes", inputs.desc(0)?.dtype, &[DType::F32])?;
        dtypes::accepted("labels", inputs.desc(1)?.dtype, &[DType::I32])?;
        inputs.map(|sample| {
            let found = count(sample.input(0)?.shape)?;
            if found * self.anchors.len() > limits::MAX_BOX_COMPARISONS {
                let (anchors, most) = (self.anchors.len(), limits::MAX_BOX_COMPARISONS);
                return Err(Error::invalid(format!(
                    "{found} boxes for {anchors} anchors, expected {most} pairs at most"
                )));
            }
            boxes::check_labels(&sample.input(1)?, found)
        });
        let (count, samples) = (self.anchors.len(), inputs.batch_size());
        Ok(vec![
            BatchDesc::new(DType::F32, Layout::NONE, vec![Shape::from([count, 4]); samples]),
            BatchDesc::new(DType::I32, Layout::NONE, vec![Shape::from([count]); samples]),
        ])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        io.for_each_sample(cx, |sample| {
            let (boxes, labels) = (sample.input(0)?, sample.input(1)?);
            let (boxes, labels) = (corners(&boxes)?, labels.as_slice::<i32>()?);
            let matched = this.matched(boxes);
            let told = sample.output(0)?.as_slice_mut::<f32>()?.as_chunks_mut::<4>().0;
            for ((to, anchor), matched) in told.iter_mut().zip(&this.anchors).zip(&matched) {
                *to = this.told(anchor, matched.map(|i| &boxes[i]));
            }
            for (to, matched) in sample.output(1)?.as_slice_mut::<i32>()?.iter_mut().zip(&matched) {
                *to = matched.map_or(0, |i| labels[i]);
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mut all = 0;
        let mut rows = io.rows(|sample| {
            let count = count(sample.input(0)?.shape)? as u64;
            all += count;
            Ok(Row {
                told: sample.target(0)?,
                labels_told: sample.target(1)?,
                // No boxes have no memory.
                boxes: if count > 0 { sample.source(0)? } else { 0 },
                labels: if count > 0 { sample.source(1)? } else { 0 },
                closest: 0,
                count,
            })
        });
        if all > 0 {
            let mut closest = cx.recorder.scratch(all as usize * size_of::<u32>())?;
            for row in &mut rows {
                row.closest = closest;
                closest += row.count * size_of::<u32>() as u64;
            }
        }
        let params = Params {
            anchors: cx.recorder.stage(bytemuck::cast_slice(&self.anchors))?.address(),
            count: self.anchors.len() as u64,
            criteria: self.criteria,
            tells_offsets: self.tells_offsets.into(),
            scale: self.scale,
            means: self.means,
            stds: self.stds,
            unused: 0,
        };
        cx.launch_blocks(&kernel(), (1, 1024), &params, &rows)
    }
}

device_struct! {
    /// A sample, as `kernels/box_encoder.cu` sees it.
    struct Row as Row {
        told: u64 = "Box *",
        /// holds the numbers of boxes meanwhile
        labels_told: u64 = "int32_t *",
        boxes: u64 = "const Box *",
        labels: u64 = "const int32_t *",
        /// for each box the anchor that it has most in common with
        closest: u64 = "uint32_t *",
        count: u64,
    }
}

device_struct! {
    struct Params as Params {
        anchors: u64 = "const Box *",
        count: u64,
        criteria: f32,
        tells_offsets: u32,
        scale: f32,
        means: [f32; 4],
        stds: [f32; 4],
        unused: u32,
    }
}

fn kernel() -> KernelSpec {
    KernelSpec::of::<Row, Params>("box_encoder", "box_encoder")
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    vec![kernel()]
}
