//! Image decoders on a device: which image of a batch goes where, and what becomes of decoded pixels. Files are on the
//! host, pixels end on the device. It must not know nvJPEG.
//!
//! ```text
//! engines:  file -> pixels as stored -> [ kernel: window, orientation, colours, type ] -> output
//! SMs:      data in the staging slab -> the window's pixels as stored -> [ the same ] -> output
//! library:  JPEG 2000 -> pixels as stored -> [ the same ] -> output
//! threads:  file -> output's bytes in the staging slab -> copy on the device -> output
//! ```
//!
//! Engines and SMs write straight to the output when it is what they store. What they do not take, and what they
//! refuse, is decoded by the host's decoder, whose answer is the answer also when it is an error. Where an operator
//! reads the images at once, there is no output: of what the SMs decode there is a group at a time, as planes where
//! these are enough, and what threads decode is read in the slab.

mod choice;
mod groups;
mod image;
mod shared;

use std::sync::Arc;

use super::Job;
use super::files::{Files, missing_sample};
use super::finish::{Extent, Finish};
use super::on_engines::Copies;
use super::on_nvjpeg2000::OnNvJpeg2000;
use super::on_sms::{Doubts, OnSms};
use super::reading::{Read, Unread};
use crate::cpu::decode::{self, Decoder};
use crate::error::Result;
use crate::gpu::jpeg::{
    DevicePath, EngineLock, EngineOffload, Engines, Header, Path, Settings, Speeds, Task, Wish,
};
use crate::gpu::{Gpu, Load};
use crate::limits;
use crate::memory::DeviceBytes;
use crate::operator::{Decoded, GpuCx, GpuIo, Source};
use choice::bound_sent;
use groups::Grouped;
use image::{Home, Image, bytes_of, homes};
use shared::{Shares, Work};

/// A decoder on a device.
pub(super) struct DeviceDecoder {
    /// `None`: the device has none, everything is decoded on the host.
    engines: Option<Engines>,
    sms: OnSms,
    nvjpeg2000: OnNvJpeg2000,
    speeds: Speeds,
    /// Bytes of the device that batches may take together.
    memory: usize,
    wish: Option<Wish>,
    offload: EngineOffload,
    /// Where there are engines.
    load: Option<Arc<Load>>,
    finish: Finish,
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
        let load = engines.as_ref().map(|_| Arc::clone(gpu.load()));
        let sms = OnSms::open(gpu, format, options)?;
        let nvjpeg2000 = OnNvJpeg2000::new(gpu, format);
        let memory = gpu.ceiling();
        let scratch = memory / limits::SM_SCRATCH_PART;
        let speeds = Speeds::new(count, gpu.multiprocessors()).within(scratch);
        Ok(Self {
            engines,
            sms,
            nvjpeg2000,
            speeds,
            memory,
            wish,
            offload: EngineOffload::default(),
            load,
            finish,
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
        let (takers, may_settle, at_once) = (self.takers(), cx.may_settle, read.is_some());
        let mut images = io.rows_by_threads(&cx.cpu, |sample| {
            let job = *jobs.get(sample.index()).and_then(Option::as_ref).ok_or_else(missing_sample)?;
            let file = files.file(&sample.inputs)?;
            let target = if at_once { None } else { Some(sample.output(0)?.clone()) };
            let bytes = target.as_ref().map_or_else(|| output_bytes(&job), DeviceBytes::len);
            let is_jpeg = job.info.format == decode::Format::Jpeg;
            let header = if is_jpeg { Header::of_head(file.head, file.all) } else { None };
            let picture = header.as_ref().and_then(|header| takers.picture(&job, header));
            let planned = header.filter(|_| may_settle).and_then(|header| takers.planned(&job, &header));
            let is_wavelets = takers.wavelets(&job, file.all);
            Ok(Image { index: sample.index(), job, file, target, bytes, picture, planned, is_wavelets })
        });
        self.limit(&mut images);
        // Before it may have a turn, for which others that hold room may wait.
        cx.recorder.wait_for_room(self.least_bytes(&images));
        let wavelets: Vec<_> = images.extract_if(.., |image| image.is_wavelets).collect();
        let wavelets: Vec<&Image<'_>> = wavelets.iter().collect();
        let part = self.load.as_ref().map_or(0.0, |load| self.offload.follow(load.others(), cx.busy));
        // While another batch has the engines, this one is sooner done without them.
        let turn =
            (self.wish.is_none() && part > 0.0).then(|| EngineLock::if_free(cx.recorder.gpu())).flatten();
        let wish = self.wish.or_else(|| turn.as_ref().map(|_| Wish::EngineOffload(part)));
        let paths = self.paths(&images, cx.cpu.pool.current_num_threads(), wish);
        let on = |wanted: Path| {
            let images = images.iter().zip(&paths).filter(move |(_, path)| **path == wanted);
            images.map(|(image, _)| image).collect::<Vec<_>>()
        };
        let (on_engines, on_sms, mut on_threads) = (on(Path::Engines), on(Path::Sm), on(Path::Threads));
        let inputs = io.inputs();
        let most = cx.recorder.gpu().most_of_a_value();
        let sent = bound_sent(&mut on_threads, inputs, most, 0);
        // The longest first, so that no thread is left with one at the end.
        on_threads.sort_by_key(|image| std::cmp::Reverse(image.file.all.len()));

        if turn.is_none() {
            let whole =
                [&on_engines, &wavelets].map(|images| bytes_of(images, &self.finish, Extent::Picture));
            let more =
                on_threads.iter().map(|image| image.own_bytes(Extent::Picture) - image.only_sent_bytes());
            cx.recorder.wait_for_room(whole.into_iter().chain(more).sum());
        }
        let engine_homes = self.homes(cx, &on_engines, Extent::Picture)?;
        let wavelet_homes = self.homes(cx, &wavelets, Extent::Picture)?;
        let mut tasks = Vec::with_capacity(on_engines.len());
        for (image, home) in on_engines.iter().zip(&engine_homes) {
            let target = home.stored.clone();
            tasks.push((Task { picture: image.picture.ok_or_else(missing_sample)?, target }, image.file));
        }
        if tasks.is_empty() {
            self.speeds.engines_rested();
        }
        let mut unread = read.map(|read| Unread::new(read, inputs.batch_size()));
        let work = Work { decoder, files, inputs };
        let others = Shares { engines: &tasks, threads: &on_threads, ..Shares::default() };
        let Grouped { refused, doubts, mut again } =
            self.groups(work, cx, &on_sms, others, turn, unread.as_mut())?;
        // Not before the SMs have begun: they need not wait for the engines.
        if let Some(engines) = &self.engines {
            engines.join(cx.recorder);
        }
        let files = wavelets.iter().map(|image| (&image.job, image.file));
        let targets: Vec<_> = wavelet_homes.iter().map(|home| home.stored.clone()).collect();
        let left = self.nvjpeg2000.decode(cx.recorder, files, &targets)?;
        self.decoded.sms += wavelets.len() - left.len();
        let mut made = Vec::new();
        for (images, homes, refused) in
            [(&on_engines, &engine_homes, refused), (&wavelets, &wavelet_homes, left)]
        {
            for (i, (image, home)) in images.iter().zip(homes).enumerate() {
                if refused.contains(&i) {
                    again.push(*image);
                    continue;
                }
                made.push(image.stored(Extent::Picture, home));
                if let Some(unread) = &mut unread {
                    unread.add(image.index, Source::Elements(home.output.address()));
                }
            }
        }
        self.finish.record(cx, &made)?;
        if !again.is_empty() {
            tracing::debug!("engines, SMs and libraries refuse {} of {} images", again.len(), images.len());
            bound_sent(&mut again, inputs, most, sent);
            let shares = Shares { threads: &again, ..Shares::default() };
            self.decode(work, cx, shares, None, unread.as_mut())?;
        }
        if let Some(unread) = &mut unread {
            unread.read(cx)?;
        }
        let (reports, images) = doubts;
        let doubts = (!reports.is_empty()).then(|| Doubts { reports, images, slot: cx.recorder.slot() });
        self.sms.doubt(doubts);
        Ok(())
    }

    /// Where pixels of `images` go that are there when all of the batch is.
    fn homes<'a>(&self, cx: &mut GpuCx<'_>, images: &[&Image<'a>], extent: Extent) -> Result<Vec<Home<'a>>> {
        let bytes = bytes_of(images, &self.finish, extent);
        let memory = memory_of(bytes, |bytes| Ok(DeviceBytes::of(&cx.recorder.allocate(bytes)?, 0, bytes)))?;
        let homes = homes(images, &self.finish, extent, memory.as_ref())?;
        homes.into_iter().map(|home| home.ok_or_else(missing_sample)).collect()
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

/// So many bytes of memory that `allocate` gives; `None` of none.
fn memory_of<'a>(
    bytes: usize,
    allocate: impl FnOnce(usize) -> Result<DeviceBytes<'a>>,
) -> Result<Option<DeviceBytes<'a>>> {
    if bytes == 0 { Ok(None) } else { allocate(bytes).map(Some) }
}

/// Bytes of an image that is made as asked for.
fn output_bytes(job: &Job) -> usize {
    decode::output_shape(&job.info, &job.options).iter().product::<usize>() * job.options.dtype.size()
}
