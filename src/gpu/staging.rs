//! The staging slab: pinned host memory with a twin on the device. Payload and tables of a batch are written to the
//! host side, whose addresses on the device are known at once, and go up together. It grows until a batch fits into one
//! piece.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::context::driver_error;
use super::device::{Gpu, Stream};
use super::memory::DeviceBuffer;
use super::slab::Slab;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::pattern;

/// Pinned host memory.
pub(super) struct Pinned {
    address: *mut u8,
    bytes: usize,
    gpu: Arc<Gpu>,
}

// SAFETY: plain memory that `self` owns.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self> {
        let _bound = gpu.bind()?;
        // SAFETY: no flags: plain cached memory, pinned.
        let address = unsafe { result::malloc_host(bytes, 0) }
            .map_err(|error| driver_error(&format!("pinning {bytes} bytes of host memory"), error))?
            .cast::<u8>();
        // SAFETY: fresh memory of this size. Zeroed, so that no one reads what was never written.
        unsafe { address.write_bytes(pattern().unwrap_or(0), bytes) };
        Ok(Self { address, bytes, gpu: Arc::clone(gpu) })
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Where kernels find it: with one address space for host and device, where the host does.
    pub(super) fn address(&self) -> u64 {
        self.address as u64
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: allocated with this size and zeroed; written only through `bytes_mut`, or by copies and kernels that
        // are waited for before anyone reads.
        unsafe { std::slice::from_raw_parts(self.address, self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _bound = self.gpu.bind();
        // SAFETY: allocated by `new`, and no copy is under way: the recorder waits before it lets go.
        let _ = unsafe { result::free_host(self.address.cast()) };
    }
}

/// A place in the slab: write to the host side with `Staging::bytes_mut` or at once, read on the device at `address`.
#[derive(Debug, Clone, Copy)]
pub struct Staged {
    piece: usize,
    offset: usize,
    bytes: usize,
    address: u64,
}

impl Staged {
    /// Where it will be on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Memory on the host and its twin.
struct Twins {
    host: Pinned,
    device: Arc<DeviceBuffer>,
}

/// The slab of one batch in flight.
pub(super) struct Staging {
    stream: Arc<Stream>,
    slab: Slab<Twins>,
    /// How many pieces were made since the last batch began.
    made: u32,
}

impl Staging {
    pub(super) fn new(stream: &Arc<Stream>) -> Self {
        let most = limits::MAX_LARGE_STAGING_BYTES.max(stream.gpu().ceiling() / limits::STAGING_PART);
        Self { stream: Arc::clone(stream), slab: Slab::new(most), made: 0 }
    }

    /// Makes sure that the next reservations of `bytes` bytes together are in one piece, with room for tables behind
    /// them.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<()> {
        self.slab.make_room(bytes, twins(&self.stream, &mut self.made))
    }

    /// Room for `bytes` bytes.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<Staged> {
        let (piece, offset) = self.slab.place(bytes, twins(&self.stream, &mut self.made))?;
        let address = self.owner_of(piece)?.address() + offset as u64;
        let place = Staged { piece, offset, bytes, address };
        if let Some(pattern) = pattern() {
            self.bytes_mut(place)?.fill(pattern);
        }
        Ok(place)
    }

    /// The host side of a place.
    pub(super) fn bytes_mut(&mut self, place: Staged) -> Result<&mut [u8]> {
        let piece = self.slab.pieces.get_mut(place.piece);
        piece
            .and_then(|piece| piece.memory.host.bytes_mut().get_mut(place.offset..place.offset + place.bytes))
            .ok_or_else(|| Error::internal("a place in the staging slab of another batch"))
    }

    /// The host sides of several places that were reserved in this order, to be written by several threads.
    pub(super) fn split(&mut self, places: &[Staged]) -> Result<Vec<&mut [u8]>> {
        let mut parts = Vec::with_capacity(places.len());
        let mut rest = places;
        for (index, piece) in self.slab.pieces.iter_mut().enumerate() {
            let mut tail = piece.memory.host.bytes_mut();
            let mut start = 0;
            while let Some((place, others)) = rest.split_first().filter(|(place, _)| place.piece == index) {
                let skipped = place.offset.checked_sub(start);
                let (part, after) = skipped
                    .and_then(|skipped| std::mem::take(&mut tail).split_at_mut_checked(skipped))
                    .and_then(|(_, after)| after.split_at_mut_checked(place.bytes))
                    .ok_or_else(|| Error::internal("places in the staging slab out of order"))?;
                parts.push(part);
                (tail, start, rest) = (after, place.offset + place.bytes, others);
            }
        }
        if rest.is_empty() {
            Ok(parts)
        } else {
            Err(Error::internal("places in the staging slab out of order"))
        }
    }

    /// The device side of a place, for as long as a value needs it.
    pub(super) fn owner(&self, place: Staged) -> Result<&Arc<DeviceBuffer>> {
        self.owner_of(place.piece)
    }

    fn owner_of(&self, piece: usize) -> Result<&Arc<DeviceBuffer>> {
        let piece = self.slab.pieces.get(piece);
        piece
            .map(|piece| &piece.memory.device)
            .ok_or_else(|| Error::internal("a place in another staging slab"))
    }

    /// Copies everything that was reserved since the last time to the device; returns how many copies that took: one,
    /// but for batches that made the slab grow.
    pub(super) fn upload(&mut self) -> Result<u32> {
        let mut copies = 0;
        for piece in self.slab.pieces.iter_mut().filter(|piece| piece.used > piece.uploaded) {
            let target = piece.memory.device.address() + piece.uploaded as u64;
            let bytes = piece.memory.host.bytes().get(piece.uploaded..piece.used).unwrap_or_default();
            // SAFETY: source and target are this large, and both stay until the stream was waited for.
            unsafe { result::memcpy_htod_async(target, bytes, self.stream.raw()) }
                .map_err(|error| driver_error("copying to the device", error))?;
            piece.uploaded = piece.used;
            copies += 1;
        }
        Ok(copies)
    }

    /// How many pieces of host memory were pinned for the batch.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// Forgets what was reserved, after the stream was waited for. What is left is enough for another batch like that.
    pub(super) fn clear(&mut self) {
        self.made = 0;
        // Only an attempt: a slab that is too small is replaced when it is needed.
        let _ = self.slab.clear(twins(&self.stream, &mut self.made));
    }
}

/// Makes memory for `stream` and counts that.
fn twins<'s>(stream: &'s Arc<Stream>, made: &'s mut u32) -> impl FnOnce(usize) -> Result<Twins> + 's {
    move |bytes| {
        let host = Pinned::new(stream.gpu(), bytes)?;
        let device = Arc::new(DeviceBuffer::lasting(stream, bytes)?);
        *made += 1;
        Ok(Twins { host, device })
    }
}

/// A `CUdeviceptr` is what we call an address.
const _: () = assert!(size_of::<sys::CUdeviceptr>() == size_of::<u64>());
