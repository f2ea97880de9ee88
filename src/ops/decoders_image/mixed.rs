//! Image decoders on a device: which image of a batch goes where, and what becomes of decoded pixels. Files are on the host,
//! pixels end on the device. It must not know nvJPEG.
//!
//! ```text
//! engines:  file -> pixels as stored -> [ kernel: window, orientation, colours, type ] -> output
//! cores:    data in the staging slab -> the window's pixels as stored -> [ the same ] -> output
//! library:  JPEG 2000 -> pixels as stored -> [ the same ] -> output
//! threads:  file -> output's bytes in the staging slab -> copy on the device -> output
//! ```
//!
//! Engines and cores write straight to the output when it is what they store. What they do not take, and what they
//! refuse, is decoded by the host's decoder, whose answer is the answer also when it is an error.

mod choice;
mod image;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Job;
use super::files::{File, Files, unseen};
use super::finish::{ALIGNMENT, Extent, Finish};
use super::on_cores::{Doubts, EARLY_BYTES, MOST_BESIDE, OnCores, SIDES, groups};
use super::on_engines::Copies;
use super::on_host::decode_on_host;
use super::on_nvjpeg2000::OnNvJpeg2000;
use crate::cpu::decode::{self, Decoder};
use crate::error::{Error, Result};
use crate::gpu::jpeg::cores::{self, Batch, Data, Planned, Scan, Scratch};
use crate::gpu::jpeg::{
    DevicePath, Engines, Header, Path, Relief, Settings, Size, Speeds, Task, Turn, Watch, Wish,
};
use crate::gpu::{Gpu, Load, Report, Staged, demote};
use crate::limits;
use crate::memory::DeviceBytes;
use crate::ops::{Decoded, GpuCx, GpuIo, Inputs};
use crate::threads::call;
use image::Image;

/// A decoder on a device.
pub(super) struct Mixed {
    /// `None`: the device has none, everything is decoded on the host.
    engines: Option<Engines>,
    cores: OnCores,
    nvjpeg2000: OnNvJpeg2000,
    speeds: Speeds,
    /// Bytes of the device that batches may take together.
    memory: usize,
    wish: Option<Wish>,
    relief: Relief,
    /// Where there are engines.
    load: Option<Arc<Load>>,
    finish: Finish,
    /// Whether whole pictures may be left as planes.
    leaves_planes: bool,
    copies: Copies,
    /// Images decoded so far.
    pub(super) decoded: Decoded,
}

/// What is decoded at the same time.
#[derive(Clone, Copy, Default)]
struct Shares<'s, 'a> {
    engines: &'s [(Task<'a>, File<'a>)],
    cores: &'s [(&'s Image<'a>, &'s DeviceBytes<'a>)],
    threads: &'s [&'s Image<'a>],
}

/// What became of it.
struct Made<'s> {
    /// Places in the engines' share.
    refused: Vec<usize>,
    /// For each image of the cores, where its data was written to; `None`: it is no whole scan.
    scans: Vec<(Staged, Option<Scan>)>,
    /// Their tables, as far as these do not depend on that.
    prepared: Option<Batch<'s>>,
}

/// The next of items that threads take in turn.
fn next_of<I: Iterator>(items: &Mutex<I>) -> Option<I::Item> {
    items.lock().next()
}

/// Bytes of data that one thread prepares for the cores before others have begun.
const SPREAD_BYTES: usize = 128 << 10;

/// Bytes of a group that caches hold until the device has them.
const MOST_AWAITED_BYTES: usize = 32 << 20;

impl Mixed {
    /// A decoder on `gpu` for images with `options`, which may leave planes in place of pixels. Without engines it says so in the log
    /// and does without them.
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
        let cores = OnCores::open(gpu, format, options)?;
        let nvjpeg2000 = OnNvJpeg2000::new(gpu, format);
        let memory = gpu.ceiling();
        let scratch = memory / limits::CORES_SCRATCH_PART;
        let speeds = Speeds::new(count, gpu.multiprocessors()).within(scratch);
        Ok(Self {
            engines,
            cores,
            nvjpeg2000,
            speeds,
            memory,
            wish,
            relief: Relief::default(),
            load,
            finish,
            leaves_planes,
            copies: Copies::default(),
            decoded: Decoded::default(),
        })
    }

    /// Records what decodes `jobs`, after the parts that are decoded while it records.
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
    ) -> Result<()> {
        self.cores.doubt(None);
        let (takers, may_settle) = (self.takers(), cx.may_settle);
        let mut images = io.rows_by_threads(&cx.cpu, |sample| {
            let job = *jobs.get(sample.index()).and_then(Option::as_ref).ok_or_else(unseen)?;
            let (file, target) = (files.file(&sample.inputs)?, sample.output(0)?.clone());
            let is_jpeg = job.info.format == decode::Format::Jpeg;
            let header = if is_jpeg { Header::of_head(file.head, file.all) } else { None };
            let picture = header.as_ref().and_then(|header| takers.picture(&job, header));
            let planned = header.filter(|_| may_settle).and_then(|header| takers.planned(&job, &header));
            let is_wavelets = takers.wavelets(&job, file.all);
            Ok(Image { index: sample.index(), job, file, target, picture, planned, is_wavelets })
        });
        let planes = self.limit(&mut images);
        let wavelets: Vec<_> = images.extract_if(.., |image| image.is_wavelets).collect();
        let wavelets: Vec<&Image<'_>> = wavelets.iter().collect();
        let part = self.load.as_ref().map_or(0.0, |load| self.relief.follow(load.others(), cx.busy));
        // While another batch has the engines, this one is sooner done without them.
        let turn = (self.wish.is_none() && part > 0.0).then(|| Turn::if_free(cx.recorder.gpu())).flatten();
        let wish = self.wish.or_else(|| turn.as_ref().map(|_| Wish::Relief(part)));
        let paths = self.paths(&images, cx.cpu.pool.current_num_threads(), wish);
        let on = |wanted: Path| {
            let images = images.iter().zip(&paths).filter(move |(_, path)| **path == wanted);
            images.map(|(image, _)| image).collect::<Vec<_>>()
        };
        let (on_engines, on_cores, mut on_threads) = (on(Path::Engines), on(Path::Cores), on(Path::Threads));
        // The longest first, so that no thread is left with one at the end.
        on_threads.sort_by_key(|image| std::cmp::Reverse(image.file.all.len()));

        let engine_targets = self.targets(cx, &on_engines, Extent::Picture)?;
        let core_targets = self.targets(cx, &on_cores, Extent::Window)?;
        let wavelet_targets = self.targets(cx, &wavelets, Extent::Picture)?;
        let mut tasks = Vec::with_capacity(on_engines.len());
        for (image, target) in on_engines.iter().zip(&engine_targets) {
            tasks.push((
                Task { picture: image.picture.ok_or_else(unseen)?, target: target.clone() },
                image.file,
            ));
        }
        let mut shares = Shares { engines: &tasks, threads: &on_threads, ..Shares::default() };
        if tasks.is_empty() {
            self.speeds.engines_rested();
        }
        let (mut made, mut again, mut doubtful) = (Vec::new(), Vec::new(), Vec::new());
        let (mut turn, mut refused, mut recorded) = (turn, Vec::new(), Vec::new());
        let bytes = on_cores.iter().map(|image| image.file.all.len()).sum();
        // Of a large batch the device has a group's data while tables are made, and works on it while the next group is read.
        let early = bytes >= EARLY_BYTES;
        let has_room = cx.recorder.gpu().under_way() <= MOST_BESIDE;
        let on_cores: Vec<_> = on_cores.into_iter().zip(&core_targets).collect();
        let scratch = |(image, _): &(&Image<'_>, _)| image.planned.as_ref().map_or(0, Planned::scratch_bytes);
        let groups = groups(&on_cores, bytes, has_room, scratch, self.speeds.scratch());
        let (mut memory, sides) = (Scratch::default(), if has_room { SIDES } else { 1 });
        let on_sides = has_room && groups.len() > 1;
        if groups.len() > 1 {
            let most = groups.iter().map(|group| group.iter().map(scratch).sum()).max();
            memory = Scratch::reserve(cx.recorder, sides, most.unwrap_or_default(), planes)?;
            // In one piece, also for the first batch of its size.
            let planned = on_cores.iter().filter_map(|(image, _)| image.planned.as_ref());
            let own = planned.map(|planned| planned.coded.room() + ALIGNMENT + planned.table_bytes());
            let decoded = on_threads.iter().map(|image| image.target.len() + ALIGNMENT);
            cx.recorder.make_room(own.chain(decoded).sum())?;
        }
        for (number, images) in groups.into_iter().enumerate() {
            shares.cores = images;
            let group = self.decode(decoder, files, cx, io.inputs(), shares, turn.take())?;
            if early {
                cx.recorder.start()?;
            }
            refused.extend(group.refused);
            for (&(image, target), (_, scan)) in images.iter().zip(&group.scans) {
                match scan {
                    Some(_) => {
                        made.push(image.stored(Extent::Window, target));
                        doubtful.push(image);
                        self.decoded.cores += 1;
                    }
                    None => again.push(image),
                }
            }
            let side = number % sides;
            if on_sides {
                cx.recorder.fork(side)?;
            }
            let (scratch, scans) = ((&mut memory, side), &group.scans);
            recorded.extend(self.cores.record(cx.recorder, scratch, group.prepared, scans)?);
            if early {
                cx.recorder.start()?;
            }
            // Engines and threads have theirs.
            shares = Shares::default();
        }
        cx.recorder.join();
        // Not before the cores have begun: they need not wait for the engines.
        if let Some(engines) = &self.engines {
            engines.join(cx.recorder);
        }
        let jobs = wavelets.iter().map(|image| (&image.job, image.file));
        let left = self.nvjpeg2000.decode(cx.recorder, jobs, &wavelet_targets)?;
        self.decoded.cores += wavelets.len() - left.len();
        let whole = [(&on_engines, &engine_targets, refused), (&wavelets, &wavelet_targets, left)];
        for (images, targets, refused) in whole {
            for (i, (image, target)) in images.iter().zip(targets).enumerate() {
                match refused.contains(&i) {
                    true => again.push(*image),
                    false => made.push(image.stored(Extent::Picture, target)),
                }
            }
        }
        self.finish.record(cx, &made)?;
        if !again.is_empty() {
            tracing::debug!(
                "engines, cores and libraries refuse {} of {} images",
                again.len(),
                again.len() + made.len()
            );
            let shares = Shares { threads: &again, ..Shares::default() };
            self.decode(decoder, files, cx, io.inputs(), shares, None)?;
        }
        let reports: Vec<Report> = recorded.iter().map(|recorded| recorded.report).collect();
        let planes = recorded.into_iter().flat_map(|recorded| recorded.planes);
        let left: Vec<_> = doubtful.into_iter().zip(planes).collect();
        if self.leaves_planes {
            // Memory is used again: what is not left as planes must not look so.
            for image in images.iter().chain(wavelets) {
                cx.put_off(image.target.address(), None);
            }
            for (image, planes) in &left {
                if let Some(planes) = planes {
                    cx.put_off(image.target.address(), Some(planes.address()));
                }
            }
        }
        let left = left.iter().map(|(image, planes)| (image.index, &image.target, planes.as_ref()));
        let doubts = if reports.is_empty() { None } else { Some(Doubts::new(cx.recorder, reports, left)?) };
        self.cores.doubt(doubts);
        Ok(())
    }

    /// Whether [`Mixed::settle`] has something to look at.
    pub(super) fn is_unsettled(&self) -> bool {
        self.cores.is_unsettled()
    }

    /// Puts right what the cores could not decode, after the batch. Returns whether outputs change.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn settle(
        &mut self,
        decoder: &Decoder,
        jobs: &[Option<Job>],
        files: &Files,
        cx: &mut GpuCx<'_>,
        inputs: Inputs<'_>,
    ) -> Result<bool> {
        self.cores.settle(decoder, jobs, files, cx, inputs)
    }

    /// Where pixels go as stored: to the output or, when a kernel must see them first, to memory of the batch.
    fn targets<'a>(
        &self,
        cx: &mut GpuCx<'_>,
        images: &[&Image<'a>],
        extent: Extent,
    ) -> Result<Vec<DeviceBytes<'a>>> {
        let room = |image: &&Image<'a>| self.finish.scratch_bytes(&image.job, extent);
        let total: usize = images.iter().map(room).sum();
        let scratch = if total > 0 { Some(cx.recorder.allocate(total)?) } else { None };
        let mut end = 0;
        let target = |image: &&Image<'a>| match (room(image), &scratch) {
            (1.., Some(scratch)) => {
                let start = end;
                end += room(image);
                DeviceBytes::of(scratch, start, self.finish.bytes(&image.job, extent))
            }
            _ => image.target.clone(),
        };
        Ok(images.iter().map(target).collect())
    }

    /// Decodes on the engines, with the `turn` at them if it is had, and on the threads, which also prepare the cores' data; records the
    /// copies of what the threads decoded.
    fn decode<'s>(
        &mut self,
        decoder: &Decoder,
        files: &Files,
        cx: &mut GpuCx<'_>,
        inputs: Inputs<'_>,
        shares: Shares<'s, '_>,
        turn: Option<Turn>,
    ) -> Result<Made<'s>> {
        let Shares { engines: tasks, cores, threads } = shares;
        let engines = self.engines.as_ref().map_or(0, Engines::count);
        let mut turn = Turn::of_batch(cx.recorder.gpu(), turn, tasks.len(), engines);
        let stream = Arc::clone(cx.recorder.stream());
        let bytes: usize = cores.iter().map(|(image, _)| image.file.all.len()).sum();
        // Else the device has another batch meanwhile, and larger groups are out of the caches by themselves.
        let is_awaited = !stream.gpu().is_shared() && (SPREAD_BYTES..MOST_AWAITED_BYTES).contains(&bytes);
        let planned: Vec<_> = cores
            .iter()
            .map(|&(image, target)| Ok((image.planned.as_ref().ok_or_else(unseen)?, target)))
            .collect::<Result<_>>()?;
        let rooms = planned.iter().map(|(planned, _)| planned.coded.room());
        let sizes: Vec<usize> = threads.iter().map(|image| image.target.len()).chain(rooms).collect();
        let tables: usize = planned.iter().map(|(planned, _)| planned.table_bytes()).sum();
        let padded = sizes.iter().map(|bytes| bytes.next_multiple_of(ALIGNMENT));
        cx.recorder.make_room(padded.sum::<usize>() + tables)?;
        let places = cx.recorder.reserve_all(&sizes)?;
        // Before they start: from here on whatever fails waits for them.
        let events = match &mut self.engines {
            Some(engines) if !tasks.is_empty() => engines.prepare(cx.recorder, tasks.len())?,
            _ => Vec::new(),
        };
        let mut buffers = cx.recorder.fill(&places)?;
        let for_cores = buffers.split_off(threads.len());
        let (watch, by_threads) = (Watch::new(events), AtomicUsize::new(0));
        // Of JPEGs that were decoded: how long it takes to refuse a file, or to inflate one, says nothing about the engines' work.
        let (busy, expected) = (AtomicU64::new(0), AtomicU64::new(0));
        let decode = |image: &Image<'_>, out: &mut [u8]| {
            let begun = Instant::now();
            let done = decode_on_host(decoder, files, inputs, (image.index, Some(&image.job)), out);
            by_threads.fetch_add(usize::from(done), Ordering::Relaxed);
            if done && image.job.info.format == decode::Format::Jpeg {
                let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                busy.fetch_add(nanos(begun.elapsed()), Ordering::Relaxed);
                expected.fetch_add(nanos(image.size().on_a_thread()), Ordering::Relaxed);
            }
            watch.look();
        };
        let idle = cores.len() + threads.len() <= cx.cpu.pool.current_num_threads() / 2;
        let read = |image: &Image<'_>, out: &mut [u8]| {
            let coded = &image.planned.as_ref()?.coded;
            let data = Data { bytes: coded.data, may_change: image.file.may_change() };
            let scan = cores::read(data, &coded.layout(), out, idle);
            if is_awaited {
                demote(out);
            }
            scan
        };
        let copying = self.copies.begin(tasks);
        let mut start = || match &mut self.engines {
            Some(engines) if !tasks.is_empty() => {
                let refused = copying.start(engines, &stream, tasks);
                turn = None;
                watch.submitted();
                refused
            }
            _ => Ok(Vec::new()),
        };
        let mut scans = vec![None; cores.len()];
        let images = threads.iter().zip(buffers);
        let data = cores.iter().zip(for_cores).zip(&mut scans);
        let few = threads.len() <= usize::from(tasks.is_empty()) && bytes < SPREAD_BYTES;
        let (data, images) = (Mutex::new(data), Mutex::new(images));
        // What the cores wait for first.
        let work = || {
            while let Some((((image, _), out), scan)) = next_of(&data) {
                *scan = read(image, out);
            }
            while let Some((image, out)) = next_of(&images) {
                decode(image, out);
            }
        };
        let (refused, prepared) = cx.cpu.pool.in_place_scope(|scope| {
            let (work, copying) = (&work, &copying);
            // So little gains nothing from another thread.
            let helpers = if few { 0 } else { cores.len() + threads.len() };
            // First, as the engines wait for it.
            for _ in 1..copying.len() {
                scope.spawn(move |_| copying.work());
            }
            call(scope, work, helpers.min(cx.cpu.pool.current_num_threads()));
            let refused = start()?;
            let prepared = self.cores.prepare(&planned)?;
            work();
            Ok::<_, Error>((refused, prepared))
        })?;
        self.decoded.engine += tasks.len() - refused.len();
        self.decoded.cpu += by_threads.into_inner();
        let [expected, busy] = [expected, busy].map(|nanos| Duration::from_nanos(nanos.into_inner()));
        self.speeds.threads_took(expected, busy);
        if !tasks.is_empty() && refused.is_empty() {
            let files: Vec<Size> = tasks.iter().map(|(task, _)| task.picture.size()).collect();
            let (least, most) = watch.bounds();
            self.speeds.engines_took(&files, least, most);
        }
        let (decoded, written) = places.split_at(threads.len());
        let live =
            threads.iter().zip(decoded).filter(|(image, _)| inputs.failures().get(image.index).is_none());
        let copies = live
            .map(|(image, &place)| Ok((image.target.clone(), cx.recorder.staged(place)?)))
            .collect::<Result<Vec<_>>>()?;
        cx.copy(&copies)?;
        Ok(Made { refused, scans: written.iter().copied().zip(scans).collect(), prepared })
    }
}
