//! Videos to frames on a device: what its engines decode, and what threads of the host do in their place. It must not
//! know how frames are chosen.
//!
//! ```text
//! engines:  packets -> pictures as stored -> [ kernel `video` ] -> output   a run of frames at a time, several at once
//! threads:  file -> output's bytes in the staging slab -> copy on the device -> output
//! ```
//!
//! A video of which the engines refuse anything is decoded on the host as a whole, whose answer is the answer also when
//! it is an error.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{CHANNELS, Job, Opened};
use crate::coded_video::{OpenedVideo, Takes, codec_of};
use crate::cpu::video::{Budget, Video};
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::video::{Engines, decode};
use crate::gpu::{Event, Gpu, KernelSpec, NoParams};
use crate::limits;
use crate::memory::DeviceBytes;
use crate::operator::{Decoded, GpuCx, GpuIo, Inputs};

/// The decoder of an instance on a device.
pub(super) struct OnDevice {
    /// `None`: the device has none, everything is decoded on the host.
    engines: Option<Arc<Engines>>,
    /// Marks where outputs were allocated in the stream of the batch.
    ready: Arc<Event>,
}

/// One video of a batch.
struct Clip<'a> {
    index: usize,
    job: &'a Job,
    video: Arc<Video<'a>>,
    target: DeviceBytes<'a>,
}

/// Frames that are decoded from the same key frame.
struct Run<'c> {
    /// The number of its clip.
    clip: usize,
    frames: Vec<usize>,
    /// Where they go, until it is decoded.
    targets: Mutex<Targets<'c>>,
    budget: &'c Budget<'c>,
}

/// Where frames go: each to one place or several.
type Targets<'c> = BTreeMap<usize, Vec<DeviceBytes<'c>>>;

/// Why a video is not decoded on the engines.
enum Refusal {
    /// The engines do not.
    Engines(Error),
    /// Nobody does.
    Video(Error),
}

impl OnDevice {
    /// A decoder on `gpu`. Without engines it says so in the log and does without them.
    ///
    /// # Errors
    /// When a kernel does not compile.
    pub(super) fn open(gpu: &Arc<Gpu>) -> Result<Self> {
        gpu.kernel(&fill_kernel())?;
        let engines = Engines::open(gpu)
            .inspect_err(|error| tracing::info!("videos are decoded without video engines: {error}"))
            .ok();
        Ok(Self { engines: engines.map(Arc::new), ready: Arc::new(Event::new(gpu)?) })
    }

    /// Decodes `jobs` on engines and host at the same time, and records the copies of what the host decoded. Returns
    /// how many frames were decoded by each.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory. Errors of videos are in `io`.
    pub(super) fn run(
        &self,
        (jobs, fill): (&[Option<Job>], [u8; CHANNELS]),
        cx: &mut GpuCx<'_>,
        io: &GpuIo<'_>,
    ) -> Result<Decoded> {
        let mut opened = Opened::default();
        let clips = io.rows(|sample| {
            let job = jobs.get(sample.index()).and_then(Option::as_ref);
            let job = job.ok_or_else(|| Error::internal("a video was not looked at"))?;
            let video = opened.video(sample.input(0)?.as_slice::<u8>()?)?;
            Ok(Clip { index: sample.index(), job, video, target: sample.output(0)?.clone() })
        });
        let takes = |clip: &Clip<'_>| {
            let codec = clip.video.coding().map(codec_of);
            let size = [clip.video.width(), clip.video.height()];
            matches!((&self.engines, codec), (Some(engines), Some(codec)) if engines.takes(codec, size))
        };
        let (on_engines, on_host): (Vec<_>, Vec<_>) = clips.iter().partition(|clip| takes(clip));
        let refusals = self.decode(fill, cx, io.inputs(), &on_engines, &on_host)?;
        let (mut made, mut again, mut reason) = (Vec::new(), Vec::new(), None);
        for (clip, refusal) in on_engines.into_iter().zip(refusals) {
            match refusal {
                None => made.push(clip),
                Some(Refusal::Video(error)) => io.inputs().fail(clip.index, error),
                // The host could say nothing but that it has no decoder.
                Some(Refusal::Engines(error)) if !clip.video.is_for_hosts() => {
                    io.inputs().fail(clip.index, error);
                }
                Some(Refusal::Engines(error)) => {
                    reason.get_or_insert(error);
                    again.push(clip);
                }
            }
        }
        if let Some(reason) = reason {
            tracing::info!("{} of {} videos are decoded on the host: {reason}", again.len(), clips.len());
            self.decode(fill, cx, io.inputs(), &[], &again)?;
        }
        record_fills(fill, cx, &made)?;
        let count = |clips: &[&Clip<'_>]| {
            clips.iter().map(|clip| clip.job.frames.iter().flatten().count()).sum::<usize>()
        };
        let frames = count(&on_host) + count(&again);
        Ok(Decoded { frames, engine_frames: count(&made), ..Decoded::default() })
    }

    /// Decodes on the engines and at the same time on threads; records the copies of what these made. Returns for each
    /// clip of the engines why they did not.
    fn decode(
        &self,
        fill: [u8; CHANNELS],
        cx: &mut GpuCx<'_>,
        inputs: Inputs<'_>,
        on_engines: &[&Clip<'_>],
        on_host: &[&Clip<'_>],
    ) -> Result<Vec<Option<Refusal>>> {
        let sizes: Vec<usize> = on_host.iter().map(|clip| clip.target.len()).collect();
        let places = cx.recorder.reserve_all(&sizes)?;
        self.ready.record(cx.recorder.stream())?;
        let deadline = cx.cpu.deadline;
        let watch = |clip: &Clip<'_>| Watch::new(deadline, inputs.failures().member(clip.index));
        let budgets: Vec<Budget<'_>> =
            on_engines.iter().map(|clip| Budget::while_waiting(watch(clip))).collect();
        let refusals: Vec<Mutex<Option<Refusal>>> = on_engines.iter().map(|_| Mutex::default()).collect();
        let mut runs = Vec::new();
        for (number, (clip, budget)) in on_engines.iter().zip(&budgets).enumerate() {
            let mut left = wanted(clip);
            let frames: Vec<usize> = left.keys().copied().collect();
            let found = clip.video.runs(&frames).unwrap_or_else(|error| {
                // The host says it of the sample.
                refusals.get(number).map(|refusal| refusal.lock().replace(Refusal::Engines(error)));
                Vec::new()
            });
            for run in found {
                let targets = run.iter().filter_map(|frame| left.remove_entry(frame)).collect();
                runs.push(Run { clip: number, frames: run.to_vec(), targets: Mutex::new(targets), budget });
            }
        }
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (Some(clip), Some(refusal)) = (on_engines.get(run.clip), refusals.get(run.clip)) else {
                    continue;
                };
                if refusal.lock().is_none()
                    && let Err(error) = self.decode_run(clip, run)
                {
                    refusal.lock().get_or_insert(error);
                }
            }
        };
        let host = |clip: &Clip<'_>, out: &mut [u8]| {
            let budget = clip.job.budget(watch(clip));
            let decode = || clip.video.write_all(&clip.job.frames, fill, out, &budget, clip.job.decoders);
            let decoded = catch_unwind(AssertUnwindSafe(decode));
            if let Err(error) = decoded.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref()))) {
                inputs.fail(clip.index, error);
            }
        };
        let buffers = cx.recorder.fill(&places)?;
        let workers = runs.len().min(limits::MAX_VIDEO_DECODERS);
        cx.cpu.pool.in_place_scope(|scope| {
            let (work, host) = (&work, &host);
            for _ in 1..workers {
                scope.spawn(move |_| work());
            }
            for (clip, out) in on_host.iter().zip(buffers) {
                scope.spawn(move |_| host(clip, out));
            }
            work();
        });
        let live =
            on_host.iter().zip(&places).filter(|(clip, _)| inputs.failures().get(clip.index).is_none());
        let copies = live
            .map(|(clip, &place)| Ok((clip.target.clone(), cx.recorder.staged(place)?)))
            .collect::<Result<Vec<_>>>()?;
        cx.copy(&copies)?;
        Ok(refusals.into_iter().map(Mutex::into_inner).collect())
    }

    /// Decodes a run on the engines.
    fn decode_run(&self, clip: &Clip<'_>, run: &Run<'_>) -> Result<(), Refusal> {
        let engines = self.engines.as_ref().ok_or_else(|| Refusal::Engines(Error::internal("no engines")))?;
        let coded = clip.video.coded(&run.frames).map_err(Refusal::Engines)?;
        let targets = std::mem::take(&mut *run.targets.lock());
        let mut coded_video = OpenedVideo::new(coded, RunTargets { budget: run.budget, targets });
        let decode = || decode(engines, &mut coded_video, &self.ready).map(|_| ());
        let decoded = catch_unwind(AssertUnwindSafe(decode));
        match decoded.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref()))) {
            Ok(()) => Ok(()),
            Err(error) => Err(coded_video.at_fault().map_or(Refusal::Engines(error), Refusal::Video)),
        }
    }
}

/// Where the frames go that are asked for.
fn wanted<'c>(clip: &'c Clip<'_>) -> Targets<'c> {
    let mut wanted = Targets::new();
    let bytes = clip.job.height * clip.job.width * CHANNELS;
    for (place, frame) in clip.job.frames.iter().enumerate() {
        if let (Some(frame), Ok(target)) = (frame, clip.target.part(place * bytes, bytes)) {
            wanted.entry(*frame).or_default().push(target);
        }
    }
    wanted
}

/// Where the frames of a run go.
struct RunTargets<'r> {
    budget: &'r Budget<'r>,
    targets: Targets<'r>,
}

impl Takes for RunTargets<'_> {
    fn budget(&self) -> &Budget<'_> {
        self.budget
    }

    fn targets(&mut self, frames: &[usize]) -> Result<Vec<DeviceBytes<'_>>> {
        Ok(frames.iter().flat_map(|frame| self.targets.remove(frame).unwrap_or_default()).collect())
    }
}

device_struct! {
    /// A frame of one colour, as `kernels/video_fill.cu` sees it.
    struct Filled as Row {
        to: u64 = "uint8_t *",
        pixels: u64,
        color: [u8; 8],
    }
}

fn fill_kernel() -> KernelSpec {
    KernelSpec::of::<Filled, NoParams>("video_fill", "video_fill")
}

/// Records what fills the frames that videos do not have.
fn record_fills(fill: [u8; CHANNELS], cx: &mut GpuCx<'_>, clips: &[&Clip<'_>]) -> Result<()> {
    let [red, green, blue] = fill;
    let (mut rows, mut most) = (Vec::new(), 0);
    for clip in clips {
        let pixels = clip.job.height * clip.job.width;
        most = most.max(pixels);
        for (place, _) in clip.job.frames.iter().enumerate().filter(|(_, frame)| frame.is_none()) {
            let target = clip.target.part(place * pixels * CHANNELS, pixels * CHANNELS)?;
            let color = [red, green, blue, 0, 0, 0, 0, 0];
            rows.push(Filled { to: target.address(), pixels: pixels as u64, color });
        }
    }
    cx.launch(&fill_kernel(), most, &NoParams::default(), &rows)
}

pub(super) fn kernels() -> Vec<KernelSpec> {
    let mut kernels = crate::gpu::video::kernels();
    kernels.push(fill_kernel());
    kernels
}
