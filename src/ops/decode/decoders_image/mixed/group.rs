//! What of a batch is decoded at the same time: files on the engines, others on threads of the host, which also read
//! the SMs' data. It must not know what becomes of pixels.
//!
//! ```text
//! reserve -> start the engines -> fill: threads decode and read  -> record -> account
//!                                 engines decode, threads prove
//! ```

use std::sync::Arc;
use std::time::Duration;

use super::DeviceDecoder;
use super::image::{Home, Image};
use super::threads::{Host, Together};
use crate::error::{Error, Result};
use crate::gpu::jpeg::sm::{self, Batch, Planned, Scan};
use crate::gpu::jpeg::{DevicePath, EngineLock, Engines, Size, Task, Watch};
use crate::gpu::{Event, Staged};
use crate::memory::DeviceBytes;
use crate::operator::{GpuCx, Inputs, Source};
use crate::ops::decode::decoders_image::files::{File, missing_sample};
use crate::ops::decode::decoders_image::finish::ALIGNMENT;
use crate::ops::decode::decoders_image::on_engines::Proving;
use crate::ops::decode::decoders_image::reading::Unread;
use crate::threads::call;

/// Bytes of data that one thread prepares for the SMs before others have begun.
const SPREAD_BYTES: usize = 128 << 10;

/// Bytes of a group that caches hold until the device has them.
const MOST_AWAITED_BYTES: usize = 32 << 20;

/// What is decoded at the same time.
#[derive(Clone, Copy, Default)]
pub(super) struct Shares<'s, 'a> {
    pub(super) engines: &'s [(Task<'a>, File<'a>)],
    pub(super) sms: &'s [(&'s Image<'a>, Option<Home<'a>>)],
    pub(super) threads: &'s [&'s Image<'a>],
}

/// What became of it.
pub(super) struct Made<'s> {
    /// Places in the engines' share.
    pub(super) refused: Vec<usize>,
    /// For each image of the SMs, where its data was written to; `None`: it is no whole scan.
    pub(super) scans: Vec<(Staged, Option<Scan>)>,
    /// Their tables, as far as these do not depend on that.
    pub(super) prepared: Option<Batch<'s>>,
}

/// Images of a batch while they are decoded.
pub(super) struct Group<'s, 'a> {
    shares: Shares<'s, 'a>,
    /// How the SMs' share is decoded, and where its pixels go.
    planned: Vec<(&'s Planned<'s>, Option<&'s DeviceBytes<'s>>)>,
    /// Bytes of their files.
    bytes: usize,
    /// In the staging slab: of the threads' share, then of the SMs'.
    places: Vec<Staged>,
}

/// What the host found while it filled the slab.
struct Filled<'s> {
    made: Made<'s>,
    watch: Watch,
    /// Images that threads decoded, how long this was expected to take, and how long it took.
    decoded: usize,
    expected: Duration,
    busy: Duration,
}

impl<'s, 'a> Group<'s, 'a> {
    pub(super) fn new(shares: Shares<'s, 'a>) -> Result<Self> {
        let planned = shares.sms.iter().map(|(image, home)| {
            let planned = image.planned.as_ref().ok_or_else(missing_sample)?;
            Ok((planned, home.as_ref().map(|home| &home.stored)))
        });
        let planned = planned.collect::<Result<_>>()?;
        let bytes = shares.sms.iter().map(|(image, _)| image.file.all.len()).sum();
        Ok(Self { shares, planned, bytes, places: Vec::new() })
    }

    /// Decodes on the engines, and on the threads, which also prepare the SMs'
    /// data; records the copies of what the threads decoded, or notes it as `unread`.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory.
    pub(super) fn decode(
        mut self,
        device: &mut DeviceDecoder,
        host: Host<'_>,
        cx: &mut GpuCx<'_>,
        unread: Option<&mut Unread<'_>>,
    ) -> Result<Made<'s>> {
        let engines = device.engines.as_ref().map_or(0, Engines::count);
        let lock = EngineLock::of_batch(cx.recorder.gpu(), self.shares.engines.len(), engines);
        self.reserve(cx)?;
        // Before they start: from here on whatever fails waits for them.
        let watch = Watch::new(self.prepare_engines(device, cx)?);
        let filled = self.fill(device, host, cx, lock, watch)?;
        self.record(cx, host.inputs, unread)?;
        Ok(self.account(device, filled))
    }

    /// Room in the slab for all that threads write.
    fn reserve(&mut self, cx: &mut GpuCx<'_>) -> Result<()> {
        let rooms = self.planned.iter().map(|(planned, _)| planned.coded.room());
        let sizes: Vec<usize> = self.shares.threads.iter().map(|image| image.bytes).chain(rooms).collect();
        let tables: usize = self.planned.iter().map(|(planned, _)| planned.table_bytes()).sum();
        let padded = sizes.iter().map(|bytes| bytes.next_multiple_of(ALIGNMENT));
        let dealt = if tables > 0 { sm::extra_table_bytes(cx.recorder.gpu().multiprocessors()) } else { 0 };
        cx.recorder.make_room(padded.sum::<usize>() + tables + dealt)?;
        self.places = cx.recorder.reserve_all(&sizes)?;
        Ok(())
    }

    /// What says that the engines are done.
    fn prepare_engines(&self, device: &mut DeviceDecoder, cx: &mut GpuCx<'_>) -> Result<Vec<Arc<Event>>> {
        match &mut device.engines {
            Some(engines) if !self.shares.engines.is_empty() => {
                engines.prepare(cx.recorder, self.shares.engines.len())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Starts the engines; meanwhile and until then threads decode, read the SMs' data, and prove what the engines
    /// have. The `lock` ends when the engines have all their files.
    fn fill(
        &self,
        device: &mut DeviceDecoder,
        host: Host<'_>,
        cx: &mut GpuCx<'_>,
        lock: Option<EngineLock>,
        watch: Watch,
    ) -> Result<Filled<'s>> {
        let Shares { engines: tasks, sms, threads } = self.shares;
        let DeviceDecoder { engines, sms: on_sms, copies, .. } = device;
        let stream = Arc::clone(cx.recorder.stream());
        let most = cx.cpu.pool.current_num_threads();
        let mut scans = vec![None; sms.len()];
        let copying = &copies.begin(tasks);
        let together = {
            let mut buffers = cx.recorder.fill(&self.places)?;
            let for_sms = buffers.split_off(threads.len());
            let data = sms.iter().zip(for_sms).zip(&mut scans);
            let data = data.map(|(((image, _), out), scan)| (*image, out, scan)).collect();
            let images = threads.iter().copied().zip(buffers).collect();
            // Else the device has another batch meanwhile, and larger groups are out of the caches by themselves.
            let is_awaited =
                !stream.gpu().is_shared() && (SPREAD_BYTES..MOST_AWAITED_BYTES).contains(&self.bytes);
            let are_idle = sms.len() + threads.len() <= most / 2;
            let idle = are_idle.then_some(&**cx.cpu.pool);
            Together::new(host, data, images, watch, idle, is_awaited)
        };
        let start = || match engines {
            Some(engines) if !tasks.is_empty() => {
                let started = copying.start(engines, &stream, tasks);
                drop(lock);
                together.watch.submitted();
                started.map(Some)
            }
            _ => Ok(None),
        };
        // One file, or little data, is read before another thread is awake.
        let files = sms.len() + threads.len();
        let few = threads.len() <= usize::from(tasks.is_empty()) && self.bytes < SPREAD_BYTES;
        let helpers = if few || tasks.is_empty() && files == 1 { 0 } else { files };
        let (fill, prove) = (|| together.fill(), || together.prove());
        let prepared = cx.cpu.pool.in_place_scope(|scope| {
            // First, as the engines wait for it.
            for _ in 1..copying.len() {
                scope.spawn(move |_| copying.work());
            }
            call(scope, &fill, helpers.min(most));
            let started = start()?;
            let lookers = started.as_ref().map_or(1, Proving::threads).min(most);
            together.proves(started);
            call(scope, &prove, lookers - 1);
            let prepared = on_sms.prepare(&self.planned)?;
            fill();
            prove();
            Ok::<_, Error>(prepared)
        })?;
        let mut prepared = prepared;
        if let Some(batch) = &mut prepared {
            on_sms.make_tables(batch, cx.cpu.pool);
        }
        let (watch, refused, decoded, [expected, busy]) = together.into_found();
        let written = self.places.iter().skip(threads.len()).copied();
        let made = Made { refused, scans: written.zip(scans).collect(), prepared };
        Ok(Filled { made, watch, decoded, expected, busy })
    }

    /// Records the copies of what threads decoded, or notes where it is.
    fn record(
        &self,
        cx: &mut GpuCx<'_>,
        inputs: Inputs<'_>,
        mut unread: Option<&mut Unread<'_>>,
    ) -> Result<()> {
        let is_live = |image: &Image<'_>| inputs.failures().get(image.index).is_none();
        let mut copies = Vec::new();
        for (image, &place) in
            self.shares.threads.iter().zip(&self.places).filter(|(image, _)| is_live(image))
        {
            let pixels = cx.recorder.staged(place)?;
            match (&image.target, &mut unread) {
                (Some(target), _) => copies.push((target.clone(), pixels)),
                (None, Some(unread)) => unread.add(image.index, Source::Elements(pixels.address())),
                (None, None) => return Err(missing_sample()),
            }
        }
        cx.copy(&copies)
    }

    /// Counts what was decoded where, and learns how fast threads and engines are.
    fn account(&self, device: &mut DeviceDecoder, filled: Filled<'s>) -> Made<'s> {
        let Filled { made, watch, decoded, expected, busy } = filled;
        let tasks = self.shares.engines;
        device.decoded.engine += tasks.len() - made.refused.len();
        device.decoded.cpu += decoded;
        device.speeds.threads_took(expected, busy);
        if !tasks.is_empty() && made.refused.is_empty() {
            let files: Vec<Size> = tasks.iter().map(|(task, _)| task.picture.size()).collect();
            let (least, most) = watch.bounds();
            device.speeds.engines_took(&files, least, most);
        }
        made
    }
}
