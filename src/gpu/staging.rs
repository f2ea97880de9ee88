//! The staging slab: pinned host memory with a twin on the device. Payload and tables of a batch are written to the host
//! side, whose addresses on the device are known at once, and go up together. It grows until a batch fits into one piece.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::device::{Gpu, Stream, driver_error};
use super::memory::{ALIGNMENT, DeviceBuffer};
use crate::error::{Error, Result};
use crate::limits;

/// The smallest slab: tables of a batch, and small inputs.
const MIN_BYTES: usize = 256 << 10;

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
        gpu.bind()?;
        // SAFETY: no flags: plain cached memory, pinned.
        let address = unsafe { result::malloc_host(bytes, 0) }
            .map_err(|error| driver_error(&format!("pinning {bytes} bytes of host memory"), error))?
            .cast::<u8>();
        // SAFETY: fresh memory of this size. Zeroed, so that no one reads what was never written.
        unsafe { address.write_bytes(0, bytes) };
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
        // SAFETY: allocated with this size and zeroed; written only through `bytes_mut`, or by copies and kernels that are
        // waited for before anyone reads.
        unsafe { std::slice::from_raw_parts(self.address, self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.gpu.bind();
        // SAFETY: allocated by `new`, and no copy is under way: the recorder waits before it lets go.
        let _ = unsafe { result::free_host(self.address.cast()) };
    }
}

/// A place in the slab: write to the host side with [`Staging::bytes_mut`] or at once, read on the device at `address`.
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

struct Piece {
    host: Pinned,
    device: Arc<DeviceBuffer>,
    used: usize,
    /// How much of it is on the device.
    uploaded: usize,
}

/// The slab of one batch in flight.
pub(super) struct Staging {
    stream: Arc<Stream>,
    pieces: Vec<Piece>,
}

impl Staging {
    pub(super) fn new(stream: &Arc<Stream>) -> Self {
        Self { stream: Arc::clone(stream), pieces: Vec::new() }
    }

    /// Makes sure that the next reservations of `bytes` bytes together are in one piece, with room for tables behind them.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<()> {
        let room = |piece: &Piece| piece.host.len() - piece.used;
        if self.pieces.last().is_none_or(|piece| room(piece) < bytes) {
            let held: usize = self.pieces.iter().map(|piece| piece.host.len()).sum();
            let size = (bytes + bytes / 8).max(held).max(MIN_BYTES).next_multiple_of(ALIGNMENT);
            let host = Pinned::new(self.stream.gpu(), size)?;
            let device = Arc::new(DeviceBuffer::new(&self.stream, size)?);
            self.pieces.push(Piece { host, device, used: 0, uploaded: 0 });
        }
        Ok(())
    }

    /// Room for `bytes` bytes.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<Staged> {
        self.make_room(bytes)?;
        let index = self.pieces.len() - 1;
        let piece = &mut self.pieces[index];
        let offset = piece.used;
        piece.used = (offset + bytes).next_multiple_of(ALIGNMENT).min(piece.host.len());
        let address = piece.device.address() + offset as u64;
        Ok(Staged { piece: index, offset, bytes, address })
    }

    /// The host side of a place.
    pub(super) fn bytes_mut(&mut self, place: Staged) -> Result<&mut [u8]> {
        let piece = self.pieces.get_mut(place.piece);
        piece
            .and_then(|piece| piece.host.bytes_mut().get_mut(place.offset..place.offset + place.bytes))
            .ok_or_else(|| Error::internal("a place in the staging slab of another batch"))
    }

    /// The host sides of several places that were reserved in this order, to be written by several threads.
    pub(super) fn split(&mut self, places: &[Staged]) -> Result<Vec<&mut [u8]>> {
        let mut parts = Vec::with_capacity(places.len());
        let mut rest = places;
        for (index, piece) in self.pieces.iter_mut().enumerate() {
            let mut tail = piece.host.bytes_mut();
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
        let piece = self.pieces.get(place.piece);
        piece.map(|piece| &piece.device).ok_or_else(|| Error::internal("a place in another staging slab"))
    }

    /// Copies everything that was reserved since the last time to the device; returns how many copies that took: one, but for
    /// batches that made the slab grow.
    pub(super) fn upload(&mut self) -> Result<u32> {
        let mut copies = 0;
        for piece in self.pieces.iter_mut().filter(|piece| piece.used > piece.uploaded) {
            let target = piece.device.address() + piece.uploaded as u64;
            let bytes = piece.host.bytes().get(piece.uploaded..piece.used).unwrap_or_default();
            // SAFETY: source and target are this large, and both stay until the stream was waited for.
            unsafe { result::memcpy_htod_async(target, bytes, self.stream.raw()) }
                .map_err(|error| driver_error("copying to the device", error))?;
            piece.uploaded = piece.used;
            copies += 1;
        }
        Ok(copies)
    }

    /// Forgets what was reserved, after the stream was waited for. Several pieces become one that holds them all.
    pub(super) fn clear(&mut self) {
        let used: usize = self.pieces.iter().map(|piece| piece.used).sum();
        for piece in &mut self.pieces {
            (piece.used, piece.uploaded) = (0, 0);
        }
        if self.pieces.len() > 1 || used > limits::MAX_RETAINED_STAGING_BYTES {
            self.pieces.clear();
            if used <= limits::MAX_RETAINED_STAGING_BYTES {
                // A slab that is too small now is replaced when it is needed; this is only an attempt.
                let size = (used + used / 2).next_power_of_two();
                if self.reserve(size).is_ok() {
                    self.pieces.iter_mut().for_each(|piece| piece.used = 0);
                }
            }
        }
    }
}

/// A `CUdeviceptr` is what we call an address.
const _: () = assert!(size_of::<sys::CUdeviceptr>() == size_of::<u64>());
