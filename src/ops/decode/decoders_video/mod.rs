//! `decoders__Video`: video files to sequences of RGB frames.

mod frames;
mod on_device;
pub(in crate::ops) mod resized;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cpu::encoded::Encoded;
use crate::cpu::video::{Budget, Efforts, Idle, Video, fill_color};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::{
    ArgSpec, Args, CpuCx, Decoded, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, Preferences, SampleInputs,
    one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};
use frames::Frames;
use on_device::OnDevice;

/// Red, green, blue.
const CHANNELS: usize = 3;

/// Of the memory that a batch may take, the part (one in so many) that decoders between two samples may hold.
const IDLE_PART: usize = 8;

struct DecodersVideo {
    frames: Frames,
    fill: [u8; CHANNELS],
    /// Of the batch at hand; `None` for samples that failed.
    jobs: Vec<Option<Job>>,
    /// Bytes of memory that a batch may take.
    memory: usize,
    /// Frames decoded since somebody asked.
    decoded: Decoded,
    on_device: Option<OnDevice>,
    /// Decoders of the host from one sample to the next.
    idle: Arc<Idle>,
}

/// Videos of a batch that were opened: samples may share the memory of one, as sequences that a reader found do.
#[derive(Default)]
struct Opened<'a>(HashMap<(usize, usize), Arc<Video<'a>>>);

impl<'a> Opened<'a> {
    /// The video in `file`.
    fn video(&mut self, file: &'a [u8]) -> Result<Arc<Video<'a>>> {
        let place = (file.as_ptr().addr(), file.len());
        if let Some(video) = self.0.get(&place) {
            return Ok(Arc::clone(video));
        }
        let video = Arc::new(Video::open(file)?);
        self.0.insert(place, Arc::clone(&video));
        Ok(video)
    }
}

/// What to make of one sample.
struct Job {
    /// The video's frame for each of the output; `None`: the fill value.
    frames: Vec<Option<usize>>,
    height: usize,
    width: usize,
    efforts: Efforts,
    /// Bytes of memory that the video takes beside its decoders.
    opened: usize,
    /// Decoders that may be at work on it at a time.
    decoders: usize,
    /// Decoders that earlier samples left.
    idle: Arc<Idle>,
}

impl Job {
    /// What decoding it takes on the host.
    fn effort(&self) -> Effort {
        let decoders = self.efforts.decoder.saturating_mul(self.decoders);
        Effort { time: self.efforts.time, scratch: decoders.saturating_add(self.opened) }
    }

    /// What it may cost, for as long as `watch` says.
    fn budget<'w>(&self, watch: Watch<'w>) -> Budget<'w> {
        Budget::while_waiting(watch).within(self.efforts.decoder).keeping(&self.idle)
    }
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "decoders__Video",
    aliases: &["experimental__decoders__Video"],
    doc: "Decodes frames of MP4, Matroska, WebM, AVI, IVF, H.264 and H.265 files to FHWC pixels",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("fill_value", "0 to 255: what frames are filled with that the video does not have; one value, or one for each channel").or_ints(&[0]),
        ArgSpec::bool("build_index", "frames are always found by their times").no_effect().or_bool(true),
        ArgSpec::bool("affine", "threads are not bound to cores").no_effect().or_bool(true),
    ],
    shared_args: &[frames::ARGS],
    build: &build,
    outputs: &one_output,
    kernels: &[on_device::kernels],
    host_inputs: Some(0),
    encoded: Some(Encoded::Video),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(DecodersVideo::new(args)?))
}

impl DecodersVideo {
    fn new(args: &Args) -> Result<Self> {
        let frames = Frames::new(args)?;
        let fill = fill_color(&args.ints("fill_value")?, frames.padding())?;
        Ok(Self {
            frames,
            fill,
            jobs: Vec::new(),
            memory: usize::MAX,
            decoded: Decoded::default(),
            on_device: None,
            idle: Arc::default(),
        })
    }

    /// The job of a live sample.
    fn job_of(&self, sample: usize) -> Result<&Job> {
        let job = self.jobs.get(sample).and_then(Option::as_ref);
        job.ok_or_else(|| Error::internal("a video was not looked at"))
    }

    fn job<'a>(&self, sample: &SampleInputs<'a>, opened: &mut Opened<'a>) -> Result<Job> {
        let video = opened.video(sample.input(0)?.as_slice()?)?;
        let (height, width) = (video.height(), video.width());
        let most = limits::MAX_SAMPLE_BYTES / (height * width * CHANNELS);
        let frames = self.frames.choose(sample, video.frames(), most)?;
        let efforts = video.effort(&frames);
        let idle = Arc::clone(&self.idle);
        Ok(Job { frames, height, width, efforts, opened: video.held(), decoders: 1, idle })
    }

    /// Lets several decoders work on a video where there is memory for them: as many as threads, and half of what the
    /// batch may take.
    fn share(&mut self) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let videos = self.jobs.iter().flatten().count().clamp(1, threads);
        let room = self.memory / 2 / videos;
        for job in self.jobs.iter_mut().flatten() {
            let fit = room.checked_div(job.efforts.decoder).unwrap_or(usize::MAX);
            job.decoders = job.efforts.runs.min(fit).clamp(1, threads);
        }
    }
}

impl Operator for DecodersVideo {
    fn infer_arguments(&mut self, arguments: &[ValueType]) {
        self.frames.infer_arguments(arguments);
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        if input.dtype.is_some_and(|dtype| dtype != DType::U8) || input.ndim().is_some_and(|ndim| ndim != 1) {
            return Err(Error::invalid(format!(
                "expected video files as uint8 with 1 dimension, found {:?} with {:?} dimensions",
                input.dtype,
                input.ndim()
            )));
        }
        let dims = vec![self.frames.known(), None, None, Some(CHANNELS)];
        Ok(vec![ValueType { dtype: Some(DType::U8), dims: Some(dims), layout: Some(layout()) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let mut opened = Opened::default();
        self.jobs = inputs.map(|sample| self.job(&sample, &mut opened).map(Some));
        self.share();
        let shape = |job: &Option<Job>| match job {
            Some(job) => Shape::from([job.frames.len(), job.height, job.width, CHANNELS]),
            None => Shape::new(vec![0; 4]),
        };
        Ok(vec![BatchDesc::new(DType::U8, layout(), self.jobs.iter().map(shape).collect())])
    }

    fn effort(&self, sample: usize) -> Effort {
        let job = self.jobs.get(sample).and_then(Option::as_ref);
        job.map(Job::effort).unwrap_or_default()
    }

    fn prefer(&mut self, preferences: &Preferences) {
        self.memory = preferences.max_memory.unwrap_or(usize::MAX);
        self.idle = Arc::new(Idle::within(self.memory / IDLE_PART));
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        let decoded = AtomicUsize::new(0);
        let failures = io.inputs().failures();
        io.for_each_sample(cx, |sample| {
            let job = this.job_of(sample.index())?;
            let budget = job.budget(Watch::new(cx.deadline, failures.member(sample.index())));
            let (input, output) = sample.unary()?;
            let video = Video::open(input.as_slice()?)?;
            let out = &mut *output.bytes;
            // Its parts are decoded by the instance's threads, not by those of the whole process.
            cx.pool.install(|| video.write_all(&job.frames, this.fill, out, &budget, job.decoders))?;
            decoded.fetch_add(job.frames.iter().flatten().count(), Ordering::Relaxed);
            Ok(())
        })?;
        self.decoded.frames += decoded.into_inner();
        Ok(())
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        self.on_device = Some(OnDevice::open(gpu)?);
        Ok(())
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let device = self.on_device.as_ref().ok_or_else(|| Error::internal("the device was not prepared"))?;
        self.decoded += device.run((&self.jobs, self.fill), cx, io)?;
        Ok(())
    }

    fn take_decoded(&mut self) -> Decoded {
        std::mem::take(&mut self.decoded)
    }
}

fn layout() -> Layout {
    Layout::from_letters(b"FHWC")
}
