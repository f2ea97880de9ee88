//! The work of one batch: recorded first, then put into a stream at once. So all tables and the payload go up in one
//! copy, and the host waits once. Of a large batch the stream may have the beginning while the rest is recorded.
//!
//! What kernels report is read after that. When it says that something must be mended, the work behind a [`Slot`] runs
//! once more.

use std::sync::Arc;
use std::time::Instant;

use bytemuck::Pod;
use cudarc::driver::result;

use super::command::{Call, Command, Move};
use super::compile::KernelSpec;
use super::context::driver_error;
use super::counters::Counters;
use super::device::{Event, Gpu, Stream};
use super::handles::{Download, Report, Slot};
use super::in_flight::Commands;
use super::kept_scratch::KeptScratch;
use super::kernel::{Grid, Launch, words};
use super::memory::DeviceBuffer;
use super::retention::Reused;
use super::room::Held;
use super::side_streams::Sides;
use super::staging::{Pinned, Staged, Staging};
use crate::error::{Error, Result};
use crate::memory::DeviceBytes;

/// Records and runs the work of one batch at a time on one stream.
pub struct Recorder {
    staging: Staging,
    commands: Commands<Command>,
    downloads: Vec<Download>,
    /// How many downloads are in the stream.
    landed: usize,
    download_bytes: usize,
    landing: Reused<Pinned>,
    reports: Vec<Reused<Pinned>>,
    /// How many of them the batch uses.
    reported: usize,
    /// Memory that commands use although no value does any more.
    kept: Vec<DeviceBytes<'static>>,
    scratch: KeptScratch,
    sides: Sides,
    /// When the device got the beginning of the batch early.
    started: Option<Instant>,
    counters: Counters,
    held: Held,
    // Last, so that it outlives what uses it.
    stream: Arc<Stream>,
}

impl Recorder {
    /// A recorder with a stream of its own.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let stream = gpu.stream()?;
        Ok(Self {
            staging: Staging::new(&stream),
            commands: Commands::new(),
            downloads: Vec::new(),
            landed: 0,
            download_bytes: 0,
            landing: Reused::default(),
            reports: Vec::new(),
            reported: 0,
            kept: Vec::new(),
            scratch: KeptScratch::new(&stream),
            sides: Sides::default(),
            started: None,
            counters: Counters::default(),
            held: Held::new(gpu.room()),
            stream,
        })
    }

    /// Its device.
    pub fn gpu(&self) -> &Arc<Gpu> {
        self.stream.gpu()
    }

    /// Its stream, for work that is not recorded but runs before what is: the decoders.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// What the batch has cost so far.
    pub fn counters(&self) -> Counters {
        Counters { pinned: self.staging.made(), ..self.counters }
    }

    /// Waits until the device has room for `bytes` bytes more of the batch, beside those of earlier batches.
    pub fn wait_for_room(&mut self, bytes: usize) {
        self.held.take(bytes);
    }

    /// Device memory for the batch. What it holds is unspecified.
    ///
    /// # Errors
    /// Unavailable, when the device has no memory.
    pub fn allocate(&mut self, bytes: usize) -> Result<Arc<DeviceBuffer>> {
        let buffer = Arc::new(DeviceBuffer::new(&self.stream, bytes)?);
        // Whoever frees it does so while it records, before anything has run.
        self.kept.push(DeviceBytes::of(&buffer, 0, bytes));
        Ok(buffer)
    }

    /// Where device memory is that nobody sees but the batch's own commands. What it holds is unspecified.
    ///
    /// # Errors
    /// Unavailable, when the device has no memory.
    pub fn scratch(&mut self, bytes: usize) -> Result<u64> {
        self.scratch.place(bytes)?.map_or_else(|| Ok(self.allocate(bytes)?.address()), Ok)
    }

    /// Keeps memory that commands read although it was not allocated here, until the batch is over.
    pub fn keep(&mut self, bytes: &DeviceBytes<'_>) {
        self.kept.extend(bytes.owned());
    }

    /// Puts `bytes` on the way to the device.
    ///
    /// # Errors
    /// Unavailable, when there is no memory.
    pub fn stage(&mut self, bytes: &[u8]) -> Result<DeviceBytes<'static>> {
        let place = self.reserve(bytes.len())?;
        self.staging.bytes_mut(place)?.copy_from_slice(bytes);
        self.staged(place)
    }

    /// Room on the way to the device, to be written with [`Recorder::fill`] before the batch is submitted.
    ///
    /// # Errors
    /// Unavailable, when there is no memory.
    pub fn reserve(&mut self, bytes: usize) -> Result<Staged> {
        self.staging.reserve(bytes)
    }

    /// Makes sure that what is reserved and staged next, `bytes` bytes together, goes up in one copy.
    ///
    /// # Errors
    /// Unavailable, when there is no memory.
    pub fn make_room(&mut self, bytes: usize) -> Result<()> {
        self.staging.make_room(bytes)
    }

    /// Room for several places of `sizes` bytes, next to each other, so that they go up in one copy.
    ///
    /// # Errors
    /// Unavailable, when there is no memory.
    pub fn reserve_all(&mut self, sizes: &[usize]) -> Result<Vec<Staged>> {
        let places = sizes.iter().map(|bytes| bytes.next_multiple_of(super::memory::ALIGNMENT));
        self.staging.make_room(places.sum())?;
        sizes.iter().map(|&bytes| self.reserve(bytes)).collect()
    }

    /// The host side of places that were reserved in this order: threads may write them at once.
    ///
    /// # Errors
    /// Internal, for places out of order or of another batch.
    pub fn fill(&mut self, places: &[Staged]) -> Result<Vec<&mut [u8]>> {
        self.staging.split(places)
    }

    /// A place as a value on the device.
    ///
    /// # Errors
    /// Internal, for a place of another batch.
    pub fn staged(&self, place: Staged) -> Result<DeviceBytes<'static>> {
        let owner = self.staging.owner(place)?;
        let offset = place.address() - owner.address();
        Ok(DeviceBytes::of(owner, offset as usize, place.bytes()))
    }

    /// Records a launch: a table with one row for each piece of work, and parameters by value. Nothing happens for an
    /// empty table or grid.
    ///
    /// # Errors
    /// Internal, when the kernel does not compile or was made for other structs.
    pub fn launch<R: Pod, P: Pod>(
        &mut self,
        spec: &KernelSpec,
        grid: Grid,
        params: &P,
        rows: &[R],
    ) -> Result<()> {
        if rows.is_empty() || grid.threads == 0 || grid.blocks.contains(&0) {
            return Ok(());
        }
        let kernel = self.gpu().kernel(spec)?;
        kernel.check::<R, P>()?;
        let count = u32::try_from(rows.len()).map_err(|_| Error::internal("too many rows for a launch"))?;
        let table = self.stage(bytemuck::cast_slice(rows))?.address();
        let launch = Launch { kernel, grid, rows: table, count, params: words(params) };
        self.commands.push(Command::Launch(launch, self.sides.current()));
        Ok(())
    }

    /// Records a copy within the device.
    ///
    /// # Errors
    /// Internal, when the two are not equally long.
    pub fn copy(&mut self, to: &DeviceBytes<'_>, from: &DeviceBytes<'_>) -> Result<()> {
        self.commands.push(Command::Copy(Move::new((to.address(), to.len()), from)?));
        Ok(())
    }

    /// Records that something may have to run here which nobody knows before the rest has run.
    pub fn slot(&mut self) -> Slot {
        Slot(self.commands.push(Command::Slot(Vec::new())))
    }

    /// How much is recorded so far.
    pub(crate) fn recorded(&self) -> usize {
        self.commands.len()
    }

    /// Puts what was recorded behind the first `begin` commands into a slot of the batch, and lets everything from
    /// there on run once more with the next [`Recorder::submit`]. The last one was waited for.
    ///
    /// # Errors
    /// Internal, for a slot of another batch.
    pub(crate) fn mend(&mut self, slot: Slot, begin: usize) -> Result<()> {
        let more = self.commands.split_off(begin);
        let Some(Command::Slot(commands)) = self.commands.get_mut(slot.0) else {
            return Err(Error::internal("a slot of another batch"));
        };
        commands.extend(more);
        self.commands.again_from(slot.0);
        self.landed = 0;
        Ok(())
    }

    /// Memory on the host for `words` that kernels write. What it holds before is unspecified.
    ///
    /// # Errors
    /// Unavailable, when there is no memory.
    pub fn report(&mut self, words: usize) -> Result<Report> {
        let place = self.reported;
        if self.reports.len() == place {
            self.reports.push(Reused::default());
        }
        let report =
            self.reports.get_mut(place).ok_or_else(|| Error::internal("a report without a place"))?;
        let gpu = self.stream.gpu();
        // No kernel of this batch knows the memory before it.
        let address = report.fit(words * 4, |bytes, _| Pinned::new(gpu, bytes))?.address();
        self.reported += 1;
        Ok(Report { address, place, words })
    }

    /// The words of a report, after [`Recorder::wait`].
    pub fn reported(&self, report: Report) -> &[u32] {
        let bytes = self.reports.get(report.place).and_then(Reused::get).map_or(&[][..], Pinned::bytes);
        bytes.get(..report.words * 4).map(bytemuck::cast_slice).unwrap_or_default()
    }

    /// Says that others put work for the batch into `stream`, or are about to: before any of it starts, so that it is
    /// waited for whatever happens after that.
    pub fn work_in(&mut self, stream: &Arc<Stream>) {
        self.commands.work_in(Arc::clone(stream) as _);
    }

    /// What is recorded from here on runs after `event`, which was recorded into another stream.
    pub fn wait_for(&mut self, event: Arc<Event>) {
        self.commands.work_in(Arc::clone(&event) as _);
        self.commands.push(Command::Wait(event));
    }

    /// What is launched from here on, until [`Recorder::join`], runs behind what was recorded so far, and beside what
    /// other side streams have.
    ///
    /// # Errors
    /// What the driver says.
    pub fn fork(&mut self, number: usize) -> Result<()> {
        let side = self.sides.fork(number, self.stream.gpu())?;
        self.commands.work_in(Arc::clone(&side.stream) as _);
        self.commands.push(Command::Fork(side));
        Ok(())
    }

    /// What is recorded from here on runs behind what side streams have.
    pub fn join(&mut self) {
        for side in self.sides.join() {
            self.commands.push(Command::Join(Arc::clone(side)));
        }
    }

    /// Records work of others, which `call` puts into the stream. It uses memory that the batch keeps.
    pub fn call(&mut self, call: Call) {
        self.commands.push(Command::Call(call));
    }

    /// Records a copy to the host, after everything that is recorded before the batch is submitted.
    pub fn download(&mut self, from: &DeviceBytes<'_>) -> Download {
        let buffer = from.owner().map(|owner| owner.address());
        let download =
            Download { from: from.address(), offset: self.download_bytes, bytes: from.len(), buffer };
        self.download_bytes += from.len().next_multiple_of(super::memory::ALIGNMENT);
        self.downloads.push(download);
        download
    }

    /// Puts what is recorded so far into the stream, without waiting, so that the device works while the host records
    /// the rest. Every place that is reserved was filled.
    ///
    /// # Errors
    /// As [`Recorder::submit`].
    pub fn start(&mut self) -> Result<()> {
        self.started.get_or_insert_with(Instant::now);
        self.enqueue()
    }

    /// When [`Recorder::start`] was called first for the batch.
    pub fn started(&self) -> Option<Instant> {
        self.started
    }

    fn enqueue(&mut self) -> Result<()> {
        let stream = Arc::clone(&self.stream);
        let _bound = stream.gpu().bind()?;
        self.counters.uploads += self.staging.upload()?;
        let counters = &mut self.counters;
        self.commands.submit(|command| command.enqueue(&stream, counters))
    }

    /// Puts everything recorded into the stream.
    ///
    /// # Errors
    /// What the driver says, or others. Part of the batch may be under way then: it must be
    /// [abandoned](Recorder::abandon).
    pub fn submit(&mut self) -> Result<()> {
        let stream = Arc::clone(&self.stream);
        let _bound = stream.gpu().bind()?;
        self.enqueue()?;
        self.submit_downloads()?;
        self.landed = self.downloads.len();
        Ok(())
    }

    /// Adjacent ranges of one buffer are one copy. A copy that spans two buffers is an error of the driver's.
    fn submit_downloads(&mut self) -> Result<()> {
        let downloads = self.downloads.get(self.landed..).unwrap_or_default();
        if downloads.is_empty() {
            return Ok(());
        }
        let (gpu, is_first) = (self.stream.gpu(), self.landed == 0);
        let landing = self.landing.fit(self.download_bytes, |bytes, smaller| {
            // What landed in the middle of the batch, and was waited for then, is read at its end.
            let landed = smaller.filter(|_| !is_first);
            let mut larger = Pinned::new(gpu, bytes)?;
            if let Some(landed) = landed
                && let Some(begin) = larger.bytes_mut().get_mut(..landed.len())
            {
                begin.copy_from_slice(landed.bytes());
            }
            Ok(larger)
        })?;
        let bytes = landing.bytes_mut();
        let mut rest = downloads.iter().peekable();
        while let Some(first) = rest.next() {
            let mut end = first.offset + first.bytes;
            while let Some(next) = rest.next_if(|next| {
                next.from.checked_sub(first.from) == next.offset.checked_sub(first.offset).map(|d| d as u64)
                    && next.from >= first.from
                    && first.buffer.is_some()
                    && next.buffer == first.buffer
                    && next.offset - end < super::memory::ALIGNMENT
            }) {
                end = next.offset + next.bytes;
            }
            let target = bytes
                .get_mut(first.offset..end)
                .ok_or_else(|| Error::internal("a download outside of its buffer"))?;
            if target.is_empty() {
                continue;
            }
            // SAFETY: the source is of a value that the batch keeps, with the gaps between adjacent samples inside of
            // their common buffer; the target stays until the stream was waited for.
            unsafe { result::memcpy_dtoh_async(target, first.from, self.stream.raw()) }
                .map_err(|error| driver_error("copying to the host", error))?;
            self.counters.downloads += 1;
        }
        Ok(())
    }

    /// Waits until the batch is done: the one synchronisation. Downloads can be read afterwards, until the next batch.
    ///
    /// # Errors
    /// What failed on the device.
    pub fn wait(&mut self) -> Result<()> {
        self.counters.waits += 1;
        self.stream.synchronize()
    }

    /// Runs what is recorded so far and waits for it, in the middle of a batch: the host needs a value of the device.
    ///
    /// # Errors
    /// What failed on the device.
    pub fn flush(&mut self, from: &[DeviceBytes<'_>]) -> Result<Vec<&[u8]>> {
        let downloads: Vec<Download> = from.iter().map(|from| self.download(from)).collect();
        self.submit()?;
        self.wait()?;
        Ok(downloads.into_iter().map(|download| self.downloaded(download)).collect())
    }

    /// Gives the batch up: waits for everything that works for it, here and in streams of others, and only then lets go
    /// of what that uses.
    pub fn abandon(&mut self) {
        self.commands.settle(&*self.stream);
        self.clear();
    }

    /// The bytes of a download, after [`Recorder::wait`].
    pub fn downloaded(&self, download: Download) -> &[u8] {
        let bytes = self.landing.get().map_or(&[][..], Pinned::bytes);
        bytes.get(download.offset..download.offset + download.bytes).unwrap_or_default()
    }

    /// Starts the next batch; the last one was waited for.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.downloads.clear();
        (self.landed, self.reported, self.download_bytes) = (0, 0, 0);
        self.landing.end_batch();
        self.reports.iter_mut().for_each(Reused::end_batch);
        self.sides.join();
        self.kept.clear();
        if self.held.is_some() {
            // Until then what was freed is not for others.
            let _ = self.stream.synchronize();
            self.held.give_back();
        }
        self.started = None;
        self.staging.clear();
        self.scratch.clear();
        self.stream.gpu().pool().end_batch();
        self.counters = Counters::default();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A batch may be under way whose owner panicked: it uses our memory, and that of its commands.
        self.commands.settle(&*self.stream);
    }
}
