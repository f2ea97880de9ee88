//! `experimental__MedianBlur`: every pixel becomes the median of a window around it; pixels at the edge are repeated
//! outside.

use std::sync::Arc;

use super::spatial::{IMAGE_LAYOUTS, Images, per_axis};
use crate::cpu::extremes::{Ordered, Surrounded};
use crate::cpu::window::{Border, Outside, WindowCopy};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::limits;
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, ValueType};

struct MedianBlur {
    window_size: Arg,
    jobs: Vec<Option<Job>>,
    /// Bytes of an element.
    element: usize,
}

/// One sample's work: its images, and columns and rows of the window.
#[derive(Debug, Clone, Copy)]
struct Job {
    images: Images,
    window: [usize; 2],
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "experimental__MedianBlur",
    doc: "The median of a window around every pixel",
    devices: &[Device::Cpu, Device::Gpu],
    args: &[ArgSpec::ints("window_size", "width and height of the window, odd").tensor().or_ints(&[3, 3])],
    build: &build,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let window_size = args.arg("window_size")?;
    Ok(Box::new(MedianBlur { window_size, jobs: Vec::new(), element: 0 }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8, DType::U16, DType::I16, DType::I32, DType::F32])
}

impl MedianBlur {
    fn job(&self, sample: &SampleInputs<'_>, layout: Layout) -> Result<Job> {
        let images = Images::new(layout, sample.input(0)?.shape)?;
        let sizes = per_axis("window_size", &self.window_size.ints(sample)?, 2)?;
        let most = limits::MAX_MASK_SIDE as i64;
        if let Some(size) = sizes.iter().find(|size| !(1..=most).contains(*size) || *size % 2 == 0) {
            return Err(Error::invalid(format!(
                "argument `window_size` holds {size}, expected odd sizes from 1 to {most}"
            )));
        }
        let window = [sizes[0] as usize, sizes[1] as usize];
        images.check_with(window.map(|size| size - 1))?;
        Ok(Job { images, window })
    }
}

fn job_of(jobs: &[Option<Job>], index: usize) -> Result<Job> {
    jobs.get(index).copied().flatten().ok_or_else(|| Error::internal("a live sample was not planned"))
}

/// Nanoseconds of a median of nine; of one by counts, and for each row of its window; for each element of a window that
/// is put in order.
const NINE_TIME: f64 = 2.0;
const COUNTS_TIME: f64 = 20.0;
const COUNT_TIME: f64 = 2.0;
const SELECTED_TIME: f64 = 4.0;

impl Job {
    /// Calls `row` for each row to write, with its number and the image with its edges repeated around it.
    fn each_row<T: Element>(
        &self,
        src: &[T],
        dst: &mut [T],
        mut row: impl FnMut(&Surrounded<'_, T>, usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let Images { rows, columns, channels, .. } = self.images;
        let elements = self.images.elements();
        if elements == 0 {
            return Ok(());
        }
        let [width, height] = self.window;
        let padded = [rows + height - 1, columns + width - 1, channels];
        let anchor = [-(height as i64 / 2), -(width as i64 / 2), 0];
        let copy =
            WindowCopy::new(&[rows, columns, channels], &anchor, &padded, Outside::Border(Border::Clamp))?;
        let mut values = vec![T::default(); padded.iter().product()];
        for (src, dst) in src.chunks_exact(elements).zip(dst.chunks_exact_mut(elements)) {
            copy.copy(src, &mut values)?;
            let image = Surrounded { values: &values, pitch: padded[1] * channels, channels };
            dst.chunks_exact_mut(columns * channels)
                .enumerate()
                .try_for_each(|(y, to)| row(&image, y, to))?;
        }
        Ok(())
    }

    fn run<T: Element + Ordered>(&self, src: &[T], dst: &mut [T], watch: &Watch<'_>) -> Result<()> {
        let mut window = Vec::new();
        self.each_row(src, dst, |image, y, row| image.medians(y, row, self.window, &mut window, watch))
    }

    fn run_bytes(&self, src: &[u8], dst: &mut [u8], watch: &Watch<'_>) -> Result<()> {
        if self.window == [3, 3] {
            return self.run(src, dst, watch);
        }
        self.each_row(src, dst, |image, y, row| {
            image.medians_by_counts(y, row, self.window);
            let [width, height] = self.window;
            watch.charge((row.len() + width * self.images.channels).saturating_mul(height))
        })
    }

    /// What it takes, of elements of so many bytes.
    fn effort(&self, element: usize) -> Effort {
        let Images { planes, rows, columns, channels } = self.images;
        let [width, height] = self.window;
        // Counts begin anew with each row.
        let (each, each_row) = match (element, self.window) {
            (_, [3, 3]) => (NINE_TIME, 0.0),
            (1, _) => {
                (COUNTS_TIME + height as f64 * COUNT_TIME, (width * height * channels) as f64 * COUNT_TIME)
            }
            _ => ((width * height) as f64 * SELECTED_TIME, 0.0),
        };
        let padded = (rows + height).saturating_mul(columns + width).saturating_mul(channels);
        let scratch = padded.saturating_mul(element).saturating_add(width * height * element);
        let nanoseconds = self.images.elements() as f64 * each + rows as f64 * each_row;
        Effort::new(planes as f64 * nanoseconds, scratch)
    }
}

impl Operator for MedianBlur {
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
        self.jobs.get(sample).copied().flatten().map_or_else(Effort::default, |job| job.effort(self.element))
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (jobs, failures) = (&self.jobs, io.inputs().failures());
        macro_rules! run {
            ($run:ident) => {
                io.for_each_sample(cx, |sample| {
                    let index = sample.index();
                    let job = job_of(jobs, index)?;
                    let (input, output) = sample.unary()?;
                    let watch = cx.watch(failures, index);
                    job.$run(input.as_slice()?, output.as_slice_mut()?, &watch)
                })
            };
            ($run:ident $ty:ty) => {
                io.for_each_sample(cx, |sample| {
                    let index = sample.index();
                    let job = job_of(jobs, index)?;
                    let (input, output) = sample.unary()?;
                    let watch = cx.watch(failures, index);
                    job.$run::<$ty>(input.as_slice()?, output.as_slice_mut()?, &watch)
                })
            };
        }
        match io.inputs().desc(0)?.dtype {
            DType::U8 => run!(run_bytes),
            DType::U16 => run!(run u16),
            DType::I16 => run!(run i16),
            DType::I32 => run!(run i32),
            DType::F32 => run!(run f32),
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
            let Job { images, window } = job_of(&self.jobs, sample.index())?;
            let places = images.places(sample.target(0)?, sample.source(0)?, dtype);
            most = most.max(images.elements());
            let row = |(to, from)| Row {
                to,
                from,
                size: [images.columns as i32, images.rows as i32],
                window: window.map(|size| size as i32),
                channels: images.channels as i32,
                unused: 0,
            };
            Ok(places.map(row).collect::<Vec<_>>())
        });
        let rows: Vec<Row> = rows.into_iter().flatten().collect();
        cx.launch(&kernel(dtype), most, &NoParams::default(), &rows)
    }
}

device_struct! {
    /// An image, as `kernels/median.cu` sees it. Pairs are columns and rows.
    struct Row as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        /// columns, rows
        size: [i32; 2],
        window: [i32; 2],
        channels: i32,
        unused: i32,
    }
}

fn kernel(dtype: DType) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("median", "median").dtype("ELEMENT", dtype)
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    vec![kernel(DType::U8), kernel(DType::I16), kernel(DType::F32)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing;

    #[test]
    fn windows_are_odd() {
        let pixels = [1u8, 9, 2, 3];
        for (size, is_right) in [([3, 1], true), ([2, 3], false), ([0, 1], false), ([257, 1], false)] {
            let args = testing::args(&[("window_size", Value::Ints(size.to_vec()))], &[]);
            let input = testing::batch::<u8>(&[(&[1, 4], &pixels)]);
            let done = testing::run(&DEF, &args, &[input], &[]).unwrap();
            if is_right {
                assert_eq!(done.values::<u8>(0), [1, 2, 3, 3]);
            } else {
                assert!(done.error(0).contains("`window_size`"));
            }
        }
    }
}
