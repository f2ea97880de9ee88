//! Device memory that only the commands of one batch at a time see: little of it stays from batch to batch, as the
//! driver takes longer to give and take it than a small kernel runs. It must not know what is in it.

use std::sync::Arc;

use super::device::Stream;
use super::memory::DeviceBuffer;
use super::slab::Slab;
use crate::error::{Error, Result};
use crate::memory::pattern;

/// Bytes that stay at most: what a picture of two megapixels needs. What a batch needs beyond that it takes from the
/// device's pool.
const MOST_BYTES: usize = 16 << 20;

/// Of the memory that a model may have on a device, the part (one in so many) that stays, where that is less.
const PART: usize = 64;

/// The memory, in one piece as soon as it is known how much a batch takes.
pub(super) struct KeptScratch {
    slab: Slab<DeviceBuffer>,
    most: usize,
    stream: Arc<Stream>,
}

impl KeptScratch {
    /// For what is put into `stream`, and into streams that it waits for.
    pub(super) fn new(stream: &Arc<Stream>) -> Self {
        let most = MOST_BYTES.min(stream.gpu().ceiling() / PART);
        Self { slab: Slab::new(most), most, stream: Arc::clone(stream) }
    }

    /// Where `bytes` bytes are that the batch has not had yet: a kernel may write them before those ahead are done.
    /// `None`: with what it has they are too many, or memory is filled with a pattern for every batch.
    ///
    /// # Errors
    /// Unavailable, when the device has no memory.
    pub(super) fn place(&mut self, bytes: usize) -> Result<Option<u64>> {
        let used: usize = self.slab.pieces.iter().map(|piece| piece.used).sum();
        if bytes > self.most.saturating_sub(used) || pattern().is_some() {
            return Ok(None);
        }
        let (piece, offset) = self.slab.place(bytes, |bytes| DeviceBuffer::new(&self.stream, bytes))?;
        let piece = self.slab.pieces.get(piece);
        let piece = piece.ok_or_else(|| Error::internal("scratch memory without a piece"))?;
        Ok(Some(piece.memory.address() + offset as u64))
    }

    /// Forgets a batch that was waited for.
    pub(super) fn clear(&mut self) {
        // Only an attempt: what is too small is replaced when it is needed.
        let _ = self.slab.clear(|bytes| DeviceBuffer::new(&self.stream, bytes));
    }
}
