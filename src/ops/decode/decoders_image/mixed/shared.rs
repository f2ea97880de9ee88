//! What of a batch is decoded at the same time: files on the engines, others on threads of the host, which also read
//! the SMs' data. It must not know what becomes of pixels.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::DeviceDecoder;
use super::image::{Home, Image};
use crate::cpu::decode::{self, Decoder};
use crate::error::{Error, Result};
use crate::gpu::jpeg::sm::{self, Batch, Data, Scan};
use crate::gpu::jpeg::{DevicePath, EngineLock, Engines, Size, Task, Watch};
use crate::gpu::{Staged, demote};
use crate::operator::{GpuCx, Inputs, Source};
use crate::ops::decode::decoders_image::files::{File, Files, missing_sample};
use crate::ops::decode::decoders_image::finish::ALIGNMENT;
use crate::ops::decode::decoders_image::on_engines::Proving;
use crate::ops::decode::decoders_image::on_host::decode_on_host;
use crate::ops::decode::decoders_image::reading::Unread;
use crate::threads::call;

/// Who decodes files on the host.
#[derive(Clone, Copy)]
pub(super) struct Work<'w> {
    pub(super) decoder: &'w Decoder,
    pub(super) files: &'w Files,
    pub(super) inputs: Inputs<'w>,
}

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

/// The next of items that threads take in turn.
fn next_of<I: Iterator>(items: &Mutex<I>) -> Option<I::Item> {
    items.lock().next()
}

/// Bytes of data that one thread prepares for the SMs before others have begun.
const SPREAD_BYTES: usize = 128 << 10;

/// Bytes of a group that caches hold until the device has them.
const MOST_AWAITED_BYTES: usize = 32 << 20;

impl DeviceDecoder {
    /// Decodes on the engines, with the `turn` at them if it is had, and on the threads, which also prepare the SMs'
    /// data; records the copies of what the threads decoded, or notes it as `unread`.
    pub(super) fn decode<'s>(
        &mut self,
        Work { decoder, files, inputs }: Work<'_>,
        cx: &mut GpuCx<'_>,
        shares: Shares<'s, '_>,
        turn: Option<EngineLock>,
        unread: Option<&mut Unread<'_>>,
    ) -> Result<Made<'s>> {
        let Shares { engines: tasks, sms, threads } = shares;
        let engines = self.engines.as_ref().map_or(0, Engines::count);
        let mut turn = EngineLock::of_batch(cx.recorder.gpu(), turn, tasks.len(), engines);
        let stream = Arc::clone(cx.recorder.stream());
        let bytes: usize = sms.iter().map(|(image, _)| image.file.all.len()).sum();
        // Else the device has another batch meanwhile, and larger groups are out of the caches by themselves.
        let is_awaited = !stream.gpu().is_shared() && (SPREAD_BYTES..MOST_AWAITED_BYTES).contains(&bytes);
        let planned: Vec<_> = sms
            .iter()
            .map(|(image, home)| {
                Ok((
                    image.planned.as_ref().ok_or_else(missing_sample)?,
                    home.as_ref().map(|home| &home.stored),
                ))
            })
            .collect::<Result<_>>()?;
        let rooms = planned.iter().map(|(planned, _)| planned.coded.room());
        let sizes: Vec<usize> = threads.iter().map(|image| image.bytes).chain(rooms).collect();
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
        let for_sms = buffers.split_off(threads.len());
        let (watch, by_threads) = (Watch::new(events), AtomicUsize::new(0));
        // Of JPEGs that were decoded: how long it takes to refuse a file, or to inflate one, says nothing about the
        // engines' work.
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
        let idle = sms.len() + threads.len() <= cx.cpu.pool.current_num_threads() / 2;
        let read = |image: &Image<'_>, out: &mut [u8]| {
            let coded = &image.planned.as_ref()?.coded;
            let data = Data { bytes: coded.data, may_change: image.file.may_change() };
            let scan = sm::read(data, &coded.layout(), out, idle);
            if is_awaited {
                demote(out);
            }
            scan
        };
        let copying = self.copies.begin(tasks);
        let mut start = || match &mut self.engines {
            Some(engines) if !tasks.is_empty() => {
                let started = copying.start(engines, &stream, tasks);
                turn = None;
                watch.submitted();
                started.map(Some)
            }
            _ => Ok(None),
        };
        let proving: OnceLock<Option<Proving<'_>>> = OnceLock::new();
        let prove = || {
            if let Some(Some(proving)) = proving.get() {
                proving.work();
                watch.look();
            }
        };
        let mut scans = vec![None; sms.len()];
        let images = threads.iter().zip(buffers);
        let data = sms.iter().zip(for_sms).zip(&mut scans);
        let few = threads.len() <= usize::from(tasks.is_empty()) && bytes < SPREAD_BYTES;
        let (data, images) = (Mutex::new(data), Mutex::new(images));
        // What the SMs wait for first.
        let work = || {
            while let Some((((image, _), out), scan)) = next_of(&data) {
                *scan = read(image, out);
            }
            while let Some((image, out)) = next_of(&images) {
                decode(image, out);
            }
        };
        let prepared = cx.cpu.pool.in_place_scope(|scope| {
            let (work, copying) = (&work, &copying);
            // So little gains nothing from another thread.
            let helpers = if few { 0 } else { sms.len() + threads.len() };
            // First, as the engines wait for it.
            for _ in 1..copying.len() {
                scope.spawn(move |_| copying.work());
            }
            call(scope, work, helpers.min(cx.cpu.pool.current_num_threads()));
            let started = start()?;
            let lookers = started.as_ref().map_or(1, Proving::threads).min(cx.cpu.pool.current_num_threads());
            proving.get_or_init(|| started);
            call(scope, &prove, lookers - 1);
            let prepared = self.sms.prepare(&planned)?;
            work();
            prove();
            Ok::<_, Error>(prepared)
        })?;
        let refused = proving.into_inner().flatten().map_or_else(Vec::new, Proving::into_refused);
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
        let live = |image: &Image<'_>| inputs.failures().get(image.index).is_none();
        let (mut copies, mut unread) = (Vec::new(), unread);
        for (image, &place) in threads.iter().zip(decoded).filter(|(image, _)| live(image)) {
            let pixels = cx.recorder.staged(place)?;
            match (&image.target, &mut unread) {
                (Some(target), _) => copies.push((target.clone(), pixels)),
                (None, Some(unread)) => unread.add(image.index, Source::Elements(pixels.address())),
                (None, None) => return Err(missing_sample()),
            }
        }
        cx.copy(&copies)?;
        Ok(Made { refused, scans: written.iter().copied().zip(scans).collect(), prepared })
    }
}
