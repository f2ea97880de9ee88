//! Image decoders on a device: which image of a batch goes where, and what becomes of decoded pixels. Files are on the host,
//! pixels end on the device. It must not know nvJPEG.
//!
//! ```text
//! engines:  file -> pixels as stored -> [ kernel: window, orientation, colours, type ] -> output
//! threads:  file -> output's bytes in the staging slab -> copy on the device -> output
//! ```
//!
//! The engines write straight to the output when it is the stored pixels. What they do not take, and what they refuse, is
//! decoded by the host's decoder, whose answer is the answer also when it is an error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Job;
use crate::cpu::decode::{self, ColorSpace, Decoder, Scaling, View};
use crate::error::{Error, Result};
use crate::gpu::jpeg::{
    Candidate, DevicePath, Engines, Format, Path, Picture, Settings, Speeds, Task, Watch, assign,
};
use crate::gpu::{DeviceBytes, Gpu, KernelSpec};
use crate::ops::{Decoded, GpuCx, GpuIo, Inputs};
use crate::tensor::DType;

/// A decoder on a device.
pub(super) struct Mixed {
    /// `None`: the device has none, everything is decoded on the host.
    engines: Option<Engines>,
    speeds: Speeds,
    /// The part of the images for the engines that the author of the pipeline asked for.
    load: Option<f32>,
    kernel: KernelSpec,
    params: Params,
    format: Format,
    color: ColorSpace,
    /// Images decoded so far.
    pub(super) decoded: Decoded,
}

/// One image of a batch.
struct Image<'a> {
    index: usize,
    job: Job,
    bytes: &'a [u8],
    target: DeviceBytes,
    /// Set when the engines take it.
    picture: Option<Picture<'a>>,
}

impl Mixed {
    /// A decoder on `gpu` for images with `options`. Without engines it says so in the log and does without them.
    ///
    /// # Errors
    /// When the kernel does not compile.
    pub(super) fn open(gpu: &Arc<Gpu>, options: &decode::DecodeOptions, load: Option<f32>) -> Result<Self> {
        let format = format(options.color);
        let engines = match Engines::open(gpu, Settings::new(format, options.smooth_chroma)) {
            Ok(engines) => {
                tracing::debug!("device {} has {} JPEG engines", gpu.ordinal(), engines.count());
                Some(engines)
            }
            Err(error) => {
                tracing::warn!("images are decoded on the CPU and uploaded: {error}");
                None
            }
        };
        let count = engines.as_ref().map_or(0, Engines::count);
        let kernel = kernel(options.dtype, options.color);
        gpu.kernel(&kernel)?;
        let params = Params::new(options.dtype)?;
        let (speeds, color, decoded) = (Speeds::new(count), options.color, Decoded::default());
        Ok(Self { engines, speeds, load, kernel, params, format, color, decoded })
    }

    /// Records what decodes `jobs`, after the parts that are decoded while it records.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory. Errors of images are in `io`.
    pub(super) fn run(
        &mut self,
        decoder: &Decoder,
        jobs: &[Option<Job>],
        cx: &mut GpuCx<'_>,
        io: &GpuIo<'_>,
    ) -> Result<()> {
        let images = io.rows(|sample| {
            let job = *jobs.get(sample.index()).and_then(Option::as_ref).ok_or_else(unseen)?;
            let (bytes, target) = (sample.input(0)?.as_slice()?, sample.output(0)?.clone());
            Ok(Image { index: sample.index(), job, bytes, target, picture: self.picture(&job, bytes) })
        });
        let candidate = |image: &Image<'_>| Candidate {
            bytes: image.bytes.len(),
            pixels: image.target.len(),
            engines: image.picture.is_some(),
        };
        let candidates: Vec<Candidate> = images.iter().map(candidate).collect();
        let paths = assign(&candidates, cx.cpu.pool.current_num_threads(), &self.speeds, self.load);
        let on = |wanted: Path| images.iter().zip(&paths).filter(move |(_, path)| **path == wanted);
        let mut on_threads: Vec<&Image<'_>> = on(Path::Threads).map(|(image, _)| image).collect();
        // The longest first, so that no thread is left with one at the end.
        on_threads.sort_by_key(|image| std::cmp::Reverse(image.bytes.len()));
        let on_engines: Vec<&Image<'_>> = on(Path::Engines).map(|(image, _)| image).collect();

        let tasks = self.tasks(cx, &on_engines)?;
        let refused = self.decode(decoder, cx, io.inputs(), &tasks, &on_threads)?;
        if let Some(engines) = &self.engines {
            engines.join(cx.recorder);
        }
        self.finish(cx, &on_engines, &tasks, &refused)?;
        if !refused.is_empty() {
            tracing::debug!("the JPEG engines refuse {} of {} images", refused.len(), tasks.len());
            let again: Vec<&Image<'_>> = refused.iter().filter_map(|&i| on_engines.get(i).copied()).collect();
            self.decode(decoder, cx, io.inputs(), &[], &again)?;
        }
        Ok(())
    }

    /// The file as the engines take it.
    fn picture<'a>(&self, job: &Job, bytes: &'a [u8]) -> Option<Picture<'a>> {
        let engines = self.engines.as_ref().filter(|_| job.info.format == decode::Format::Jpeg)?;
        let picture = Picture::read(bytes)?;
        let frame = *picture.frame();
        // Both have read the same header.
        let same = (frame.width, frame.height) == job.info.stored_size();
        (same && engines.takes(&frame)).then_some(picture)
    }

    /// What the engines shall do: pixels go to the output or, when a kernel must see them first, to memory of the batch.
    fn tasks<'a>(&self, cx: &mut GpuCx<'_>, images: &[&Image<'a>]) -> Result<Vec<Task<'a>>> {
        let channels = self.format.channels();
        let size = |picture: &Picture<'_>| picture.frame().width * picture.frame().height * channels;
        let room = |image: &&Image<'a>| {
            let picture = image.picture.as_ref().filter(|_| !self.is_direct(&image.job))?;
            Some(size(picture).next_multiple_of(ALIGNMENT))
        };
        let total: usize = images.iter().filter_map(room).sum();
        let scratch = if total > 0 { Some(cx.recorder.allocate(total)?) } else { None };
        let mut end = 0;
        let task = |image: &&Image<'a>| {
            let picture = image.picture.ok_or_else(unseen)?;
            let target = match (room(image), &scratch) {
                (Some(room), Some(scratch)) => {
                    let target = DeviceBytes::of(scratch, end, size(&picture));
                    end += room;
                    target
                }
                _ => image.target.clone(),
            };
            Ok(Task { picture, target })
        };
        images.iter().map(task).collect()
    }

    /// Decodes `tasks` on the engines and at the same time `images` on the threads; records the copies of the latter. Returns
    /// which tasks the engines refused.
    fn decode(
        &mut self,
        decoder: &Decoder,
        cx: &mut GpuCx<'_>,
        inputs: Inputs<'_>,
        tasks: &[Task<'_>],
        images: &[&Image<'_>],
    ) -> Result<Vec<usize>> {
        let stream = Arc::clone(cx.recorder.stream());
        let sizes: Vec<usize> = images.iter().map(|image| image.target.len()).collect();
        let places = cx.recorder.reserve_all(&sizes)?;
        let buffers = cx.recorder.fill(&places)?;
        let events = match &mut self.engines {
            Some(engines) if !tasks.is_empty() => engines.prepare(stream.gpu(), tasks.len())?,
            _ => Vec::new(),
        };
        let (watch, busy, by_threads) = (Watch::new(events), AtomicU64::new(0), AtomicUsize::new(0));
        let decode = |image: &Image<'_>, out: &mut [u8]| {
            let begun = Instant::now();
            let decoded =
                catch_unwind(AssertUnwindSafe(|| decoder.decode_into(image.bytes, &image.job.options, out)));
            match decoded.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref()))) {
                Ok(()) => {
                    by_threads.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => inputs.fail(image.index, error),
            }
            let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            busy.fetch_add(nanos, Ordering::Relaxed);
            watch.look();
        };
        let mut start = || match &mut self.engines {
            Some(engines) if !tasks.is_empty() => {
                let refused = engines.start(&stream, tasks);
                watch.submitted();
                refused
            }
            _ => Ok(Vec::new()),
        };
        let pairs = images.iter().zip(buffers);
        let refused = if tasks.is_empty() && images.len() <= 1 {
            // One image gains nothing from another thread.
            pairs.for_each(|(image, out)| decode(image, out));
            Vec::new()
        } else if images.is_empty() {
            start()?
        } else {
            cx.cpu.pool.in_place_scope(|scope| {
                let decode = &decode;
                for (image, out) in pairs {
                    scope.spawn(move |_| decode(image, out));
                }
                start()
            })?
        };
        self.decoded += Decoded { engine: tasks.len() - refused.len(), cpu: by_threads.into_inner() };
        let bytes = |images: &[&Image<'_>]| images.iter().map(|image| image.bytes.len()).sum();
        self.speeds.threads_took(bytes(images), Duration::from_nanos(busy.load(Ordering::Relaxed)));
        if refused.is_empty() && !tasks.is_empty() {
            let sizes = || tasks.iter().map(|task| task.picture.bytes().len());
            let (least, most) = watch.bounds();
            self.speeds.engines_took(sizes().sum(), sizes().max().unwrap_or_default(), least, most);
        }
        let live =
            images.iter().zip(places).filter(|(image, _)| inputs.failures().get(image.index).is_none());
        let copies = live
            .map(|(image, place)| Ok((image.target.clone(), cx.recorder.staged(place)?)))
            .collect::<Result<Vec<_>>>()?;
        cx.copy(&copies)?;
        Ok(refused)
    }

    /// Records the kernel for pictures that are not the output yet.
    fn finish(
        &self,
        cx: &mut GpuCx<'_>,
        images: &[&Image<'_>],
        tasks: &[Task<'_>],
        refused: &[usize],
    ) -> Result<()> {
        let mut rows = Vec::new();
        let mut most = 0;
        for (i, (image, task)) in images.iter().zip(tasks).enumerate() {
            if self.is_direct(&image.job) || refused.contains(&i) {
                continue;
            }
            let view = View::new(&image.job.info, image.job.options.window)?;
            let [height, width, channels] = decode::output_shape(&image.job.info, &image.job.options);
            most = most.max(height * width);
            rows.push(Row {
                to: image.target.address(),
                from: task.target.address(),
                start: view.start as i64,
                step_x: view.step_x as i64,
                step_y: view.step_y as i64,
                width: width as u32,
                height: height as u32,
                channels: channels as u32,
                unused: 0,
            });
        }
        cx.launch(&self.kernel, most, &self.params, &rows)
    }

    /// Whether what the engines write is the output.
    fn is_direct(&self, job: &Job) -> bool {
        decode::is_plain(&job.info, &job.options)
            && self.color != ColorSpace::YCbCr
            && self.color.channels(job.info.channels) == self.format.channels()
    }
}

/// Alignment of pictures in memory of the batch.
const ALIGNMENT: usize = 256;

fn unseen() -> Error {
    Error::internal("an image was not looked at")
}

/// What the engines write for an output of `color`.
fn format(color: ColorSpace) -> Format {
    match color {
        ColorSpace::Gray => Format::Gray,
        ColorSpace::Bgr => Format::Bgr,
        ColorSpace::Rgb | ColorSpace::YCbCr | ColorSpace::Any => Format::Rgb,
    }
}

/// An image, as `kernels/decoded.cu` sees it.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Row {
    to: u64,
    from: u64,
    start: i64,
    step_x: i64,
    step_y: i64,
    width: u32,
    height: u32,
    channels: u32,
    unused: u32,
}

/// What samples are multiplied by, as `kernels/decoded.cu` sees it.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Params {
    level: f32,
    studio: [[f32; 4]; 3],
}

impl Params {
    fn new(dtype: DType) -> Result<Self> {
        let scaling =
            Scaling::to(dtype).ok_or_else(|| Error::internal(format!("images are decoded to `{dtype}`")))?;
        let studio = scaling.studio.map(|([r, g, b], offset)| [r, g, b, offset]);
        Ok(Self { level: scaling.level, studio })
    }
}

fn kernel(dtype: DType, color: ColorSpace) -> KernelSpec {
    KernelSpec::new::<Row, Params>("decoded", "decoded")
        .dtype("TO", dtype)
        .define("IN", format(color).channels())
        .define("STUDIO", u8::from(color == ColorSpace::YCbCr))
}

/// One for each path through the source and each type.
pub(super) fn kernels() -> Vec<KernelSpec> {
    let dtypes = DType::ALL.into_iter().filter(|&dtype| decode::check_dtype(dtype).is_ok());
    let colors = [ColorSpace::Rgb, ColorSpace::Gray, ColorSpace::YCbCr];
    dtypes.flat_map(|dtype| colors.map(|color| kernel(dtype, color))).collect()
}
