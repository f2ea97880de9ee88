//! `experimental__Dilate` and `experimental__Erode`: every pixel becomes the largest or the smallest one under a
//! rectangle.

use std::sync::Arc;

use super::spatial::{IMAGE_LAYOUTS, Images, per_axis};
use crate::cpu::extremes::{Extreme, extremes};
use crate::cpu::window::{Border, Outside, WindowCopy};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::shared::border::DeviceBorder;
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, ValueType};

/// Arguments of both.
const ARGS: &[ArgSpec] = &[
    ArgSpec::ints("mask_size", "width and height of the rectangle").tensor().per_frame().or_ints(&[3, 3]),
    ArgSpec::ints("anchor", "column and row of the rectangle that lie on the pixel, -1: the middle")
        .tensor()
        .per_frame()
        .or_ints(&[-1, -1]),
    ArgSpec::int("iterations", "how often; each time more makes the rectangle larger by its size less 1")
        .or_int(1),
    ArgSpec::string(
        "border_mode",
        "what is outside: `constant` (nothing that counts), `replicate`, `reflect`, `reflect_101` or `wrap`",
    )
    .or_string("constant"),
];

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DILATE: OpDef = OpDef {
    name: "experimental__Dilate",
    doc: "The largest value under a rectangle",
    build: &|args, _| build(args, Extreme::Largest),
    ..BOTH
};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const ERODE: OpDef = OpDef {
    name: "experimental__Erode",
    doc: "The smallest value under a rectangle",
    build: &|args, _| build(args, Extreme::Smallest),
    ..BOTH
};

const BOTH: OpDef = OpDef {
    devices: &[Device::Cpu, Device::Gpu],
    shared_args: &[ARGS],
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

struct Morphology {
    wanted: Extreme,
    mask_size: Arg,
    anchor: Arg,
    iterations: i64,
    outside: Outside,
    jobs: Vec<Option<Job>>,
    /// Bytes of an element.
    element: usize,
}

/// One sample's work. Pairs are columns and rows.
#[derive(Debug, Clone, PartialEq)]
struct Job {
    images: Images,
    mask: [usize; 2],
    /// How far the mask lies before the pixel written.
    before: [usize; 2],
}

fn build(args: &Args, wanted: Extreme) -> Result<Box<dyn Operator>> {
    let outside = match args.string("border_mode")? {
        "constant" => Outside::Fill,
        "replicate" => Outside::Border(Border::Clamp),
        "reflect" => Outside::Border(Border::Reflect1001),
        "reflect_101" => Outside::Border(Border::Reflect101),
        "wrap" => Outside::Border(Border::Wrap),
        other => {
            return Err(Error::invalid(format!(
                "argument `border_mode` is `{other}`, expected `constant`, `replicate`, `reflect`, `reflect_101` or `wrap`"
            )));
        }
    };
    let iterations = args.int("iterations")?;
    if iterations < 0 {
        return Err(Error::invalid(format!("argument `iterations` is {iterations}, expected 0 or more")));
    }
    Ok(Box::new(Morphology {
        wanted,
        mask_size: args.arg("mask_size")?,
        anchor: args.arg("anchor")?,
        iterations,
        outside,
        jobs: Vec::new(),
        element: 0,
    }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8, DType::U16, DType::I16, DType::F32])
}

/// Elements that can be outside of an image without being the extreme of any window.
trait Neutral: Element + PartialOrd {
    const LOWEST: Self;
    const HIGHEST: Self;
}

macro_rules! neutral {
    ($($ty:ident $low:ident $high:ident),*) => {
        $(impl Neutral for $ty {
            const LOWEST: Self = $ty::$low;
            const HIGHEST: Self = $ty::$high;
        })*
    };
}
neutral!(u8 MIN MAX, u16 MIN MAX, i16 MIN MAX, f32 NEG_INFINITY INFINITY);

impl Morphology {
    fn job(&self, sample: &SampleInputs<'_>, layout: Layout) -> Result<Job> {
        let images = Images::new(layout, sample.input(0)?.shape)?;
        let sizes = per_axis("mask_size", &self.mask_size.ints(sample)?, 2)?;
        let anchors = per_axis("anchor", &self.anchor.ints(sample)?, 2)?;
        let mut job = Job { images, mask: [1; 2], before: [0; 2] };
        for i in 0..2 {
            let (size, anchor) = (sizes[i], anchors[i]);
            let most = limits::MAX_MASK_SIDE as i64;
            if !(1..=most).contains(&size) {
                return Err(Error::invalid(format!(
                    "argument `mask_size` holds {size}, expected 1 to {most}"
                )));
            }
            if !(-1..size).contains(&anchor) {
                return Err(Error::invalid(format!("the anchor {anchor} lies outside of a mask of {size}")));
            }
            let anchor = if anchor < 0 { size / 2 } else { anchor };
            // Rectangle on rectangle is a larger rectangle.
            let grown = self.iterations.saturating_mul(size - 1).saturating_add(1);
            if grown > most {
                return Err(Error::invalid(format!(
                    "a mask of {size}, {} times, expected at most {most} pixels in all",
                    self.iterations
                )));
            }
            (job.mask[i], job.before[i]) = (grown as usize, (anchor * self.iterations) as usize);
        }
        if images.elements() == 0 {
            return Ok(job);
        }
        images.check_with(job.mask.map(|size| size - 1))?;
        Ok(job)
    }
}

fn job_of(jobs: &[Option<Job>], index: usize) -> Result<&Job> {
    jobs.get(index).and_then(Option::as_ref).ok_or_else(|| Error::internal("a live sample was not planned"))
}

/// Nanoseconds of a byte at each step.
const STEP_TIME: f64 = 0.15;

impl Job {
    /// What it takes, of elements of so many bytes.
    fn effort(&self, element: usize) -> Effort {
        let Images { planes, rows, columns, channels } = self.images;
        let padded = (rows + self.mask[1]).saturating_mul(columns + self.mask[0]).saturating_mul(channels);
        // Each step doubles what is under the mask.
        let steps =
            self.mask.map(|side| f64::from(usize::BITS - side.leading_zeros())).iter().sum::<f64>() + 2.0;
        let bytes = padded.saturating_mul(element);
        Effort::new(planes as f64 * bytes as f64 * steps * STEP_TIME, bytes.saturating_mul(2))
    }

    fn run<T: Neutral>(
        &self,
        src: &[T],
        dst: &mut [T],
        (outside, wanted): (Outside, Extreme),
        watch: &Watch<'_>,
    ) -> Result<()> {
        let Images { rows, columns, channels, .. } = self.images;
        let elements = self.images.elements();
        if elements == 0 {
            return Ok(());
        }
        let padded = [rows + self.mask[1] - 1, columns + self.mask[0] - 1, channels];
        let anchor = [-(self.before[1] as i64), -(self.before[0] as i64), 0];
        let copy = WindowCopy::new(&[rows, columns, channels], &anchor, &padded, outside)?;
        let neutral = if wanted == Extreme::Largest { T::LOWEST } else { T::HIGHEST };
        let mut values = vec![neutral; padded.iter().product()];
        let mut scratch = values.clone();
        let pitch = padded[1] * channels;
        for (src, dst) in src.chunks_exact(elements).zip(dst.chunks_exact_mut(elements)) {
            if outside == Outside::Fill {
                values.fill(neutral);
            }
            copy.copy(src, &mut values)?;
            for (stride, count) in [(channels, self.mask[0]), (pitch, self.mask[1])] {
                extremes(&mut values, &mut scratch, stride, count, wanted);
                watch.charge(values.len())?;
            }
            let written = columns * channels;
            for (to, from) in dst.chunks_exact_mut(written).zip(values.chunks_exact(pitch)) {
                to.copy_from_slice(&from[..written]);
            }
        }
        Ok(())
    }
}

impl Operator for Morphology {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), check)?;
        ty.layout = layouts::of_type(&ty, &IMAGE_LAYOUTS)?;
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout = layouts::of_batch(desc, &IMAGE_LAYOUTS)?;
        self.element = desc.dtype.size();
        self.jobs = inputs.map(|sample| self.job(&sample, layout).map(Some));
        Ok(vec![BatchDesc { layout, ..desc.clone() }])
    }

    fn effort(&self, sample: usize) -> Effort {
        let job = self.jobs.get(sample).and_then(Option::as_ref);
        job.map_or_else(Effort::default, |job| job.effort(self.element))
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (jobs, how, failures) = (&self.jobs, (self.outside, self.wanted), io.inputs().failures());
        macro_rules! run {
            ($ty:ty) => {
                io.for_each_sample(cx, |sample| {
                    let job = job_of(jobs, sample.index())?;
                    let watch = cx.watch(failures, sample.index());
                    let (input, output) = sample.unary()?;
                    job.run::<$ty>(input.as_slice()?, output.as_slice_mut()?, how, &watch)
                })
            };
        }
        match io.inputs().desc(0)?.dtype {
            DType::U8 => run!(u8),
            DType::U16 => run!(u16),
            DType::I16 => run!(i16),
            DType::F32 => run!(f32),
            other => check(other),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&kernel(dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        let mut most = 0;
        let rows = io.rows(|sample| {
            let job = job_of(&self.jobs, sample.index())?;
            let places = job.images.places(sample.target(0)?, sample.source(0)?, dtype);
            most = most.max(job.images.elements());
            let row = |(to, from)| Row {
                to,
                from,
                size: [job.images.columns as i32, job.images.rows as i32],
                mask: job.mask.map(|size| size as i32),
                before: job.before.map(|size| size as i32),
                channels: job.images.channels as i32,
                unused: 0,
            };
            Ok(places.map(row).collect::<Vec<_>>())
        });
        let rows: Vec<Row> = rows.into_iter().flatten().collect();
        let params = Params {
            border: DeviceBorder::from(self.outside).number(),
            smallest: u32::from(self.wanted == Extreme::Smallest),
        };
        cx.launch(&kernel(dtype), most, &params, &rows)
    }
}

device_struct! {
    /// An image, as `kernels/morphology.cu` sees it. Pairs are columns and rows.
    struct Row as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        /// columns, rows
        size: [i32; 2],
        mask: [i32; 2],
        before: [i32; 2],
        channels: i32,
        unused: i32,
    }
}

device_struct! {
    struct Params as Params {
        border: u32 = "Border" of DeviceBorder,
        smallest: u32,
    }
}

fn kernel(dtype: DType) -> KernelSpec {
    KernelSpec::of::<Row, Params>("morphology", "morphology").dtype("ELEMENT", dtype)
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    vec![kernel(DType::U8), kernel(DType::F32)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing;

    #[test]
    fn a_mask_that_is_none_fails_its_sample() {
        let pixels = [1u8, 5, 2];
        let sizes = [3i32, 1, 0, 1, 300, 1];
        let input = testing::batch::<u8>(&[(&[1, 3], &pixels), (&[1, 3], &pixels), (&[1, 3], &pixels)]);
        let masks = testing::batch::<i32>(&[(&[2], &sizes[..2]), (&[2], &sizes[2..4]), (&[2], &sizes[4..])]);
        let done = testing::run(&DILATE, &testing::args(&[], &["mask_size"]), &[input], &[masks]).unwrap();
        assert_eq!(done.values::<u8>(0), [5, 5, 5]);
        assert!(done.error(1).contains("`mask_size`") && done.error(2).contains("300"), "{}", done.error(1));
    }

    #[test]
    fn anchors_lie_in_the_mask_and_no_iteration_changes_nothing() {
        let pixels = [1u8, 5, 2];
        let run = |args: &[(&str, Value)]| {
            let input = testing::batch::<u8>(&[(&[1, 3], &pixels)]);
            testing::run(&ERODE, &testing::args(args, &[]), &[input], &[]).unwrap()
        };
        let anchor = |x| ("anchor", Value::Ints(vec![x, 0]));
        assert_eq!(run(&[anchor(0)]).values::<u8>(0), [1, 2, 2]);
        assert_eq!(run(&[anchor(2)]).values::<u8>(0), [1, 1, 1]);
        assert!(run(&[anchor(3)]).error(0).contains("anchor"));
        assert_eq!(run(&[("iterations", Value::Ints(vec![0]))]).values::<u8>(0), pixels);
    }
}
