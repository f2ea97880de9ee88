//! JPEGs of a batch on the device's SMs, and what becomes of those that turn out to be damaged when the batch has
//! run. It must not know the other paths.

use super::Job;
use super::files::{Files, missing_sample};
use super::finish;
use super::on_host::decode_on_host;
use super::reading::{Read, Unread};
use crate::cpu::decode::{DecodeOptions, Decoder};
use crate::error::Result;
use crate::gpu::jpeg::sm::{Batch, Coded, Cut, Planned, Recorded, Scan, Scratch, Sm, Unmade};
use crate::gpu::jpeg::{Format, Header};
use crate::gpu::{Gpu, Recorder, Report, Slot, Staged};
use crate::memory::DeviceBytes;
use crate::operator::{GpuCx, GpuIo, Source};
use crate::threads::Threads;

/// Bytes of a batch's files from which on the device gets data and begins to decode while the host still records: for
/// less, more calls cost what the time is worth.
pub(super) const EARLY_BYTES: usize = 1 << 20;

/// Bytes of files that are worth launches of their own: 64 pictures of 1080p fill a device, and take it longer than to
/// read as many.
const GROUP_BYTES: usize = 32 << 20;

/// The same where no more than [`MOST_BESIDE`] batches are under way: then groups are decoded beside one another, as
/// these leave room on the device. More of them take the host longer to record than they gain.
const LONE_GROUP_BYTES: usize = 16 << 20;
const MOST_LONE_GROUPS: usize = 6;

/// Batches under way, with the one at hand, that leave room on the device.
pub(super) const MOST_BESIDE: usize = 2;

/// Side streams that these are in, in turn.
pub(super) const SIDES: usize = 2;

/// From so many lone groups on the last is half as large as the others: the device is done with it sooner after the
/// host is, which waits for it.
const TAPERED_GROUPS: usize = 4;

/// `images` with files of `bytes` bytes together, in the groups that they are decoded in, at least one: a group is read
/// while the device has another. Each takes as much memory as `scratch` says, a group of several no more than `most`.
pub(super) fn groups<T>(
    images: &[T],
    bytes: usize,
    has_room: bool,
    scratch: impl Fn(&T) -> usize,
    most: usize,
) -> Vec<&[T]> {
    let count = if has_room { (bytes / LONE_GROUP_BYTES).min(MOST_LONE_GROUPS) } else { bytes / GROUP_BYTES };
    let all: usize = images.iter().map(&scratch).sum();
    // One more, as the last may be smaller than the others.
    let count = if all > most { count.max(all.div_ceil(most.max(1)) + 1) } else { count };
    let halves = if has_room && count >= TAPERED_GROUPS { 2 * count - 1 } else { 2 * count.max(1) };
    let mut groups = Vec::with_capacity(count + 1);
    for mut rest in images.chunks((2 * images.len()).div_ceil(halves).max(1)) {
        // Mostly all of them; fewer where some are much larger than others.
        while !rest.is_empty() {
            let mut room = most;
            let mut fits =
                |image: &T| room.checked_sub(scratch(image)).inspect(|&left| room = left).is_some();
            let (group, others) = rest.split_at(rest.iter().take_while(|&image| fits(image)).count().max(1));
            groups.push(group);
            rest = others;
        }
    }
    if groups.is_empty() {
        groups.push(images);
    }
    groups
}

/// Tables that a thread makes at a time: some take longer than others.
const TABLES_OF_A_TASK: usize = 16;

/// The SMs, as an image decoder uses them.
pub(super) struct OnSms {
    sms: Sm,
    /// Of the batch that was recorded last.
    doubts: Option<Doubts>,
}

/// What may have come out wrong.
pub(super) struct Doubts {
    /// A number for each image, 0 when it is right, a group of images after the other.
    pub(super) reports: Vec<Report>,
    /// Which samples they are, and bytes of their outputs.
    pub(super) images: Vec<(usize, usize)>,
    /// Behind everything that writes the images' outputs, or reads them.
    pub(super) slot: Slot,
}

impl OnSms {
    /// Compiles the kernels for images with `options`.
    ///
    /// # Errors
    /// When they do not compile.
    pub(super) fn open(gpu: &Gpu, format: Format, options: &DecodeOptions) -> Result<Self> {
        Ok(Self { sms: Sm::open(gpu, format, options.smooth_chroma)?, doubts: None })
    }

    /// How the SMs make of a file what is asked for; whether its planes may be left in place of pixels. `None`: it is
    /// for others.
    pub(super) fn plan<'a>(
        &self,
        job: &Job,
        header: &Header<'a>,
        may_leave_planes: bool,
    ) -> Option<Planned<'a>> {
        let coded = Coded::of(header)?;
        // Both have read the same header.
        let same = (coded.width, coded.height) == job.info.stored_size();
        let takes = same && self.sms.takes(&coded);
        takes.then(|| self.sms.plan(coded, finish::part(job), may_leave_planes))
    }

    /// Makes what tables of a batch do not depend on its data: of pictures, and where their pixels go. `None` without
    /// pictures.
    ///
    /// # Errors
    /// Internal, when a target has not the size of its picture.
    pub(super) fn prepare<'b>(
        &self,
        pictures: &[(&'b Planned<'b>, Option<&'b DeviceBytes<'b>>)],
    ) -> Result<Option<Batch<'b>>> {
        if pictures.is_empty() {
            return Ok(None);
        }
        let cut = Cut::of(pictures.iter().map(|(planned, _)| planned.coded.data.len()).sum());
        self.sms.prepare(pictures.iter().copied(), cut).map(Some)
    }

    /// Makes the tables that are still missing, by threads if they are many.
    pub(super) fn make_tables(&mut self, batch: &mut Batch<'_>, pool: &Threads) {
        self.sms.make_tables(batch, |unmade| {
            let mut parts: Vec<_> = unmade.chunks_mut(TABLES_OF_A_TASK).collect();
            pool.for_each(&mut parts, |part| part.iter_mut().for_each(Unmade::make));
        });
    }

    /// Records what decodes those that have a scan, with the memory of a stream; see [`Sm::record`].
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn record(
        &self,
        recorder: &mut Recorder,
        scratch: (&mut Scratch, usize),
        (prepared, beside): (Option<Batch<'_>>, usize),
        scans: &[(Staged, Option<Scan>)],
    ) -> Result<Option<Recorded>> {
        let Some(prepared) = prepared.filter(|_| scans.iter().any(|(_, scan)| scan.is_some())) else {
            return Ok(None);
        };
        let scans = scans
            .iter()
            .map(|(place, scan)| Ok((recorder.staged(*place)?, scan.as_ref())))
            .collect::<Result<Vec<_>>>()?;
        self.sms.record(recorder, scratch, (prepared, beside), &scans).map(Some)
    }

    /// Keeps what to look at after the batch.
    pub(super) fn doubt(&mut self, doubts: Option<Doubts>) {
        self.doubts = doubts;
    }

    /// Whether there is something to look at.
    pub(super) fn is_unsettled(&self) -> bool {
        self.doubts.is_some()
    }

    /// Decodes on the host what the SMs could not: its answer is the answer also when it is an error. `read` reads
    /// it, or it is the output. Returns whether outputs change.
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
        let Some(Doubts { reports, images, slot }) = self.doubts.take() else { return Ok(false) };
        let statuses = reports.iter().flat_map(|&report| cx.recorder.reported(report));
        let images = images.into_iter().zip(statuses);
        let wrong: Vec<_> = images.filter(|(_, status)| **status != 0).map(|(image, _)| image).collect();
        if wrong.is_empty() {
            return Ok(false);
        }
        tracing::debug!("{} damaged images are decoded again on the CPU", wrong.len());
        let (inputs, sizes) = (io.inputs(), wrong.iter().map(|&(_, bytes)| bytes));
        let places = cx.recorder.reserve_all(&sizes.collect::<Vec<_>>())?;
        let buffers = cx.recorder.fill(&places)?;
        cx.cpu.pool.in_place_scope(|scope| {
            for (&(index, _), out) in wrong.iter().zip(buffers) {
                let job = jobs.get(index).and_then(Option::as_ref);
                scope.spawn(move |_| {
                    decode_on_host(decoder, files, inputs, (index, job), out);
                });
            }
        });
        let mut right = Vec::with_capacity(wrong.len());
        for ((index, _), place) in wrong.into_iter().zip(places) {
            if inputs.failures().get(index).is_none() {
                right.push((index, cx.recorder.staged(place)?));
            }
        }
        if right.is_empty() {
            return Ok(false);
        }
        cx.mend(slot, |cx| match read {
            Some(read) => {
                let mut unread = Unread::new(read, inputs.batch_size());
                right.iter().for_each(|(index, image)| unread.add(*index, Source::Elements(image.address())));
                unread.read(cx)
            }
            None => {
                let output = |index: usize| io.outputs().first()?.samples.get(index)?.clone();
                let pairs = right
                    .into_iter()
                    .map(|(index, image)| Ok((output(index).ok_or_else(missing_sample)?, image)));
                cx.copy(&pairs.collect::<Result<Vec<_>>>()?)
            }
        })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(scratch: &[usize], bytes: usize, has_room: bool, most: usize) -> Vec<usize> {
        groups(scratch, bytes, has_room, |&scratch| scratch, most).iter().map(|group| group.len()).collect()
    }

    #[test]
    fn groups_fill_the_device_and_its_memory() {
        assert_eq!(sizes(&[], 0, true, 100), [0]);
        assert_eq!(sizes(&[1; 128], 4 << 20, true, 1_000), [128]);
        assert_eq!(sizes(&[1; 512], 8 * LONE_GROUP_BYTES, true, 1_000), [94, 94, 94, 94, 94, 42]);
        assert_eq!(sizes(&[1; 512], 4 * GROUP_BYTES, false, 1_000), [128; 4]);
        // No more than there is memory for, and all but the last about as many.
        assert_eq!(sizes(&[10; 100], 4 << 20, false, 1_000), [100]);
        assert_eq!(sizes(&[10; 300], 4 << 20, false, 1_000), [75; 4]);
        let alone = sizes(&[10; 1_000], 4 << 20, true, 1_000);
        assert!(alone.iter().sum::<usize>() == 1_000 && alone.len() == 11 && alone.iter().all(|&n| n <= 100));
        // Large ones beside small ones; what is larger than all memory is alone.
        assert_eq!(sizes(&[1, 1, 1, 600, 600, 1_001], 4 << 20, false, 1_000), [2, 2, 1, 1]);
        assert_eq!(sizes(&[1, 1, 1, 1, 400, 500], 4 << 20, false, 1_000), [6]);
        assert_eq!(sizes(&[1, 1, 1, 1, 500, 500, 1, 1], 4 << 20, false, 1_000), [3, 2, 1, 2]);
    }
}
