//! Image decoders on a device: which image of a batch goes where, and what becomes of decoded pixels. Files are on the
//! host, pixels end on the device. It must not know nvJPEG.
//!
//! ```text
//! engines:  file -> pixels as stored -> [ kernel: window, orientation, colours, type ] -> output
//! SMs:      data in the staging slab -> the window's pixels as stored -> [ the same ] -> output
//! video engines: HEIC -> pixels as stored -> [ the same ] -> output
//! library:  JPEG 2000 -> pixels as stored -> [ the same ] -> output
//! threads:  file -> output's bytes in the staging slab -> copy on the device -> output
//! ```
//!
//! Engines and SMs write straight to the output when it is what they store. What they do not take, and what they
//! refuse, is decoded by the host's decoder, whose answer is the answer also when it is an error. Where an operator
//! reads the images at once, there is no output: of what the SMs decode there is a group at a time, as planes where
//! these are enough, and what threads decode is read in the slab.

mod batch;
mod choice;
mod group;
mod groups;
mod image;
mod threads;

use std::collections::HashMap;
use std::sync::Arc;

use super::Job;
use super::colors::Colors;
use super::files::{Files, missing_sample};
use super::finish::Finish;
use super::on_engines::Copies;
use super::on_nvjpeg2000::OnNvJpeg2000;
use super::on_sms::OnSms;
use super::on_video_engines::OnVideoEngines;
use super::reading::Read;
use crate::cpu::decode::{self, Decoder};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::gpu::jpeg::{Engines, Format, Header, Settings, Speeds, Wish};
use crate::limits;
use crate::memory::DeviceBytes;
use crate::operator::{Decoded, GpuCx, GpuIo};
use batch::Batch;
use image::Image;
use threads::Host;

/// A decoder on a device.
pub(super) struct DeviceDecoder {
    /// `None`: the device has none, everything is decoded on the host.
    engines: Option<Engines>,
    sms: OnSms,
    nvjpeg2000: OnNvJpeg2000,
    video_engines: OnVideoEngines,
    speeds: Speeds,
    /// Bytes of the device that batches may take together.
    memory: usize,
    wish: Option<Wish>,
    finish: Finish,
    colors: Colors,
    /// Whether whole pictures may be left as planes.
    leaves_planes: bool,
    copies: Copies,
    /// Images decoded so far.
    pub(super) decoded: Decoded,
}

impl DeviceDecoder {
    /// A decoder on `gpu` for images with `options`, which may leave planes in place of pixels. Without engines it says
    /// so in the log and does without them.
    ///
    /// # Errors
    /// When the kernel does not compile.
    pub(super) fn open(
        gpu: &Arc<Gpu>,
        options: &decode::DecodeOptions,
        wish: Option<Wish>,
        leaves_planes: bool,
    ) -> Result<Self> {
        let finish = Finish::open(gpu, options)?;
        let format = finish.format();
        let engines = match Engines::open(gpu, Settings::new(format, options.smooth_chroma)) {
            Ok(engines) => {
                tracing::debug!("device {} has {} JPEG engines", gpu.ordinal(), engines.count());
                Some(engines)
            }
            Err(error) => {
                tracing::info!("images are decoded without JPEG engines: {error}");
                None
            }
        };
        let count = engines.as_ref().map_or(0, Engines::count);
        let sms = OnSms::open(gpu, format, options)?;
        let nvjpeg2000 = OnNvJpeg2000::new(gpu, format);
        let video_engines = OnVideoEngines::new(gpu, format)?;
        let memory = gpu.ceiling();
        let scratch = memory / limits::SM_SCRATCH_PART;
        let speeds = Speeds::new(count, gpu.multiprocessors()).within(scratch);
        Ok(Self {
            engines,
            sms,
            nvjpeg2000,
            video_engines,
            speeds,
            memory,
            wish,
            finish,
            colors: Colors::default(),
            leaves_planes,
            copies: Copies::default(),
            decoded: Decoded::default(),
        })
    }

    /// Records what decodes `jobs`, after the parts that are decoded while it records: to the output, or for `read`,
    /// which reads them at once.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory. Errors of images are in `io`.
    pub(super) fn run(
        &mut self,
        decoder: &Decoder,
        jobs: &[Option<Job>],
        files: &Files,
        cx: &mut GpuCx<'_>,
        io: &GpuIo<'_>,
        read: Option<Read<'_>>,
    ) -> Result<()> {
        self.sms.doubt(None);
        let colors = self.colors(jobs, files, cx, io);
        let mut images = self.images((jobs, &colors), files, cx, io, read.is_some());
        self.limit(&mut images);
        // Before it may have the lock of the engines, for which others that hold room may wait.
        cx.recorder.wait_for_room(self.least_bytes(&images));
        let others: Vec<_> = images.extract_if(.., |image| image.library.is_some()).collect();
        let host = Host { decoder, files, inputs: io.inputs() };
        let mut batch = Batch::classify(self, host, [&images, &others], cx, read);
        batch.reserve(cx)?;
        batch.decode_groups(cx)?;
        batch.decode_others(cx)?;
        batch.record(cx)?;
        batch.decode_again(cx)?;
        batch.account(cx);
        Ok(())
    }

    /// For each sample whose colours the device makes sRGB, where the table for that is. The host converts others.
    fn colors(
        &mut self,
        jobs: &[Option<Job>],
        files: &Files,
        cx: &mut GpuCx<'_>,
        io: &GpuIo<'_>,
    ) -> HashMap<usize, u64> {
        let wanted = |index: usize| jobs.get(index)?.as_ref().filter(|job| job.options.to_srgb);
        if self.finish.format() != Format::Rgb || !(0..jobs.len()).any(|index| wanted(index).is_some()) {
            return HashMap::new();
        }
        let found = io.rows(|sample| {
            let Some(job) = wanted(sample.index()) else { return Ok(None) };
            let file = files.file(&sample.inputs)?;
            Ok(self.colors.table(cx.recorder, job, file.all)?.map(|table| (sample.index(), table)))
        });
        found.into_iter().flatten().collect()
    }

    /// The images of the live samples, and which decoders take each.
    fn images<'a>(
        &self,
        (jobs, colors): (&[Option<Job>], &HashMap<usize, u64>),
        files: &'a Files,
        cx: &GpuCx<'_>,
        io: &'a GpuIo<'_>,
        at_once: bool,
    ) -> Vec<Image<'a>> {
        let (takers, may_settle) = (self.takers(), cx.may_settle);
        io.rows_by_threads(&cx.cpu, |sample| {
            let job = *jobs.get(sample.index()).and_then(Option::as_ref).ok_or_else(missing_sample)?;
            let file = files.file(&sample.inputs)?;
            let target = if at_once { None } else { Some(sample.output(0)?.clone()) };
            let bytes = target.as_ref().map_or_else(|| output_bytes(&job), DeviceBytes::len);
            let colors = colors.get(&sample.index()).copied();
            let is_for_host = job.options.to_srgb && colors.is_none();
            let is_jpeg = job.info.format == decode::Format::Jpeg && !is_for_host;
            let header = if is_jpeg { Header::of_head(file.head, file.all) } else { None };
            let picture = header.as_ref().and_then(|header| takers.picture(&job, header));
            let planned = header.filter(|_| may_settle).and_then(|header| takers.planned(&job, &header));
            let library = if is_for_host { None } else { takers.library(&job, file.all) };
            Ok(Image { index: sample.index(), job, file, target, bytes, picture, planned, colors, library })
        })
    }

    /// Whether [`DeviceDecoder::settle`] has something to look at.
    pub(super) fn is_unsettled(&self) -> bool {
        self.sms.is_unsettled()
    }

    /// Puts right what the SMs could not decode, after the batch, with `read` if it had that. Returns whether outputs
    /// change.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn settle(
        &mut self,
        decoder: &Decoder,
        jobs: &[Option<Job>],
        files: &Files,
        cx: &mut GpuCx<'_>,
        io: &GpuIo<'_>,
        read: Option<Read<'_>>,
    ) -> Result<bool> {
        self.sms.settle(decoder, jobs, files, cx, io, read)
    }
}

/// Bytes of an image that is made as asked for.
fn output_bytes(job: &Job) -> usize {
    decode::output_shape(&job.info, &job.options).iter().product::<usize>() * job.options.dtype.size()
}
