//! `Erase`: fills regions of a sample with a value.

mod gpu;

use crate::operator::shared::dtypes;
use std::sync::Arc;

use half::f16;

use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::shared::axes::Axes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, ValueType, elements_mut};

struct Erase {
    /// `None`: every dimension but that of the channels.
    axes: Option<Axes>,
    anchor: Option<Arg>,
    shape: Option<Arg>,
    fill: Arg,
    /// Whether anchors and shapes are parts of the sample's extents.
    normalized: [bool; 2],
    centered: bool,
    /// Per sample, for the batch at hand.
    jobs: Vec<Job>,
}

/// What to do with one sample.
#[derive(Debug, Clone, Default)]
struct Job {
    /// Of each region, the first position along every dimension and that behind the last.
    regions: Vec<Vec<(usize, usize)>>,
    /// Bits of elements: one for all, or one for each position along the dimension of the channels.
    fill: Vec<u64>,
}

impl Job {
    /// Fills the regions of a sample of shape `shape`, whose elements are as large as a `T`.
    fn erase<T: Element>(
        &self,
        bytes: &mut [u8],
        shape: &[usize],
        channel: Option<usize>,
        element: fn(u64) -> T,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let elements = elements_mut(bytes)?;
        let fill: Vec<T> = self.fill.iter().map(|&bits| element(bits)).collect();
        for region in &self.regions {
            erase(elements, shape, region, &fill, channel);
            watch.charge(volume(region))?;
        }
        Ok(())
    }
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Erase",
    doc: "Fills regions of a tensor with a value",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::floats("anchor", "where regions begin, one number for each axis and region; empty: 0")
            .tensor()
            .or_floats(&[]),
        ArgSpec::floats("shape", "how large they are, likewise").tensor().or_floats(&[]),
        ArgSpec::floats("fill_value", "what fills them: one value, or one a channel")
            .tensor()
            .or_floats(&[0.0]),
        ArgSpec::ints("axes", "dimensions that `anchor` and `shape` speak of")
            .or_computed("those of `axis_names`"),
        ArgSpec::string("axis_names", "the same by the letters of the layout")
            .or_computed("all but the channels"),
        ArgSpec::bool("centered_anchor", "whether anchors are the centres of regions").or_bool(false),
        ArgSpec::bool("normalized", "whether both are parts of the sample's extents").or_bool(false),
        ArgSpec::bool("normalized_anchor", "whether anchors are").or_computed("as `normalized`"),
        ArgSpec::bool("normalized_shape", "whether shapes are").or_computed("as `normalized`"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gpu::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let axes =
        if args.has("axis_names") || args.has("axes") { Some(Axes::new(args, Axes::All)?) } else { None };
    let both = args.bool("normalized")?;
    let normalized = [
        args.given_bool("normalized_anchor")?.unwrap_or(both),
        args.given_bool("normalized_shape")?.unwrap_or(both),
    ];
    Ok(Box::new(Erase {
        axes,
        anchor: args.given_arg("anchor")?,
        shape: args.given_arg("shape")?,
        fill: args.arg("fill_value")?,
        normalized,
        centered: args.bool("centered_anchor")?,
        jobs: Vec::new(),
    }))
}

fn check(dtype: DType) -> Result<()> {
    if matches!(dtype, DType::F64 | DType::Bool) {
        return Err(Error::unsupported(format!("elements of type {dtype}")));
    }
    Ok(())
}

impl Erase {
    fn job(&self, sample: &SampleInputs<'_>, layout: Layout) -> Result<Job> {
        let input = sample.input(0)?;
        let ndim = input.shape.len();
        let axes = match &self.axes {
            Some(axes) => axes.of(sample, layout, ndim)?,
            None => (0..ndim).filter(|&dim| layout.letters().get(dim) != Some(&b'C')).collect(),
        };
        let values = |arg: &Option<Arg>| arg.as_ref().map(|arg| arg.floats(sample)).transpose();
        let (mut anchors, shapes) =
            (values(&self.anchor)?.unwrap_or_default(), values(&self.shape)?.unwrap_or_default());
        if anchors.is_empty() {
            anchors.resize(shapes.len(), 0.0);
        }
        let fits = anchors.len() == shapes.len() && shapes.len().checked_rem(axes.len()).unwrap_or(1) == 0;
        if !shapes.is_empty() && !fits {
            return Err(Error::invalid(format!(
                "{} anchors and {} sizes for {} axes",
                anchors.len(),
                shapes.len(),
                axes.len()
            )));
        }
        let count = shapes.len().checked_div(axes.len()).unwrap_or_default();
        if count > limits::MAX_REGIONS {
            let most = limits::MAX_REGIONS;
            return Err(Error::invalid(format!("{count} regions, expected at most {most}")));
        }
        let whole: Vec<(usize, usize)> = input.shape.iter().map(|&extent| (0, extent)).collect();
        let region = |(anchor, shape): (&[f32], &[f32])| {
            let mut region = whole.clone();
            for ((&axis, &anchor), &shape) in axes.iter().zip(anchor).zip(shape) {
                let extent = input.shape[axis];
                region[axis] = self.range(anchor, shape, extent);
            }
            region
        };
        let regions = if shapes.is_empty() {
            Vec::new()
        } else {
            anchors.chunks_exact(axes.len()).zip(shapes.chunks_exact(axes.len())).map(region).collect()
        };
        let fill = self.fill.floats(sample)?;
        let channels = layout.find(b'C').and_then(|dim| input.shape.get(dim).copied());
        if fill.len() != 1 && Some(fill.len()) != channels {
            return Err(Error::invalid(format!(
                "{} fill values, expected 1 or one for each of {} channels",
                fill.len(),
                channels.unwrap_or(1)
            )));
        }
        let fill = fill.into_iter().map(|value| element(value, input.dtype)).collect();
        Ok(Job { regions, fill })
    }

    /// The positions of a dimension of `extent` that a region covers.
    fn range(&self, anchor: f32, shape: f32, extent: usize) -> (usize, usize) {
        let scaled = |value: f32, is_part: bool| if is_part { value * extent as f32 } else { value };
        let shape = scaled(shape, self.normalized[1]);
        let mut anchor = scaled(anchor, self.normalized[0]);
        if self.centered {
            anchor -= shape / 2.0;
        }
        // Casts saturate, and take what is no number for 0.
        let (from, to) = (anchor as i64, (anchor + shape) as i64);
        let clipped = |position: i64| usize::try_from(position).unwrap_or(0).min(extent);
        (clipped(from), clipped(to))
    }
}

impl Operator for Erase {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, check)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        self.jobs = inputs.map(|sample| self.job(&sample, desc.layout));
        Ok(vec![desc.clone()])
    }

    fn effort(&self, sample: usize) -> Effort {
        let regions = self.jobs.get(sample).map(|job| job.regions.as_slice()).unwrap_or_default();
        // All may lie over one another.
        Effort::new(regions.iter().map(|region| volume(region) as f64 * ELEMENT_TIME).sum(), 0)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (desc, failures) = (io.inputs().desc(0)?, io.inputs().failures());
        let channel = desc.layout.find(b'C');
        io.for_each_sample(cx, |sample| {
            let job = &self.jobs[sample.index()];
            let watch = &cx.watch(failures, sample.index());
            let (input, output) = sample.unary()?;
            output.bytes.copy_from_slice(input.bytes);
            match desc.dtype.size() {
                1 => job.erase(output.bytes, input.shape, channel, |bits| bits as u8, watch),
                2 => job.erase(output.bytes, input.shape, channel, |bits| bits as u16, watch),
                4 => job.erase(output.bytes, input.shape, channel, |bits| bits as u32, watch),
                _ => job.erase(output.bytes, input.shape, channel, |bits| bits, watch),
            }
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu::prepare(gpu, dtype))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        self.record(cx, io)
    }
}

/// Nanoseconds of an element, where each is found by itself.
const ELEMENT_TIME: f64 = 1.0;

/// Elements of a region.
fn volume(region: &[(usize, usize)]) -> usize {
    region.iter().map(|&(from, to)| to.saturating_sub(from)).fold(1, usize::saturating_mul)
}

/// The bits of a fill value as an element of type `dtype`. DALI makes an integer of it without its fraction, and of a
/// large one the low bits.
fn element(value: f32, dtype: DType) -> u64 {
    let whole = if value.abs() < 2f32.powi(31) { value as i32 } else { i32::MIN };
    match dtype {
        DType::F16 => f16::from_f32(value).to_bits().into(),
        DType::F32 => value.to_bits().into(),
        DType::U64 => value as u64,
        DType::U32 | DType::I64 => value as i64 as u64,
        _ => whole as u64,
    }
}

/// Fills `region` of a tensor of shape `shape` with the one value or, along dimension `channel`, with one a position.
fn erase<T: Element>(
    data: &mut [T],
    shape: &[usize],
    region: &[(usize, usize)],
    fill: &[T],
    channel: Option<usize>,
) {
    fn walk<T: Element>(
        data: &mut [T],
        shape: &[usize],
        region: &[(usize, usize)],
        dim: usize,
        cx: (&[T], Option<usize>),
    ) {
        let (Some((&extent, shape)), Some((&(from, to), region))) =
            (shape.split_first(), region.split_first())
        else {
            if let (Some(element), Some(&value)) = (data.first_mut(), cx.0.first()) {
                *element = value;
            }
            return;
        };
        let inner = data.len() / extent.max(1);
        let is_whole = region.iter().zip(shape).all(|(&range, &extent)| range == (0, extent));
        if let ([value], true) = (cx.0, is_whole) {
            return data[from * inner..to.max(from) * inner].fill(*value);
        }
        for position in from..to.max(from) {
            let part = &mut data[position * inner..(position + 1) * inner];
            let fill = if Some(dim) == cx.1 && cx.0.len() > 1 { &cx.0[position..=position] } else { cx.0 };
            match fill {
                [value] if is_whole => part.fill(*value),
                fill => walk(part, shape, region, dim + 1, (fill, cx.1)),
            }
        }
    }
    if !data.is_empty() {
        walk(data, shape, region, 0, (fill, channel));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing;

    #[test]
    fn more_regions_than_the_limit_fail_their_sample() {
        let count = limits::MAX_REGIONS + 1;
        let each = |value| Value::Floats(vec![value; count]);
        let args = testing::args(&[("anchor", each(0.0)), ("shape", each(1.0))], &[]);
        let input = testing::batch::<u8>(&[(&[2], &[7, 8])]);
        let done = testing::run(&DEF, &args, &[input], &[]).unwrap();
        assert!(done.error(0).contains("4097 regions, expected at most 4096"), "{}", done.error(0));
    }
}
