//! The memory pool of a device, as one model uses it: what batches free stays for the next ones, as much as the last
//! ones needed. It must not know what the memory is for.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::{DriverError, result, sys};

use super::context::{Context, driver_error};
use crate::error::{Error, Result};
use crate::limits;

/// After so many batches, of all instances together, the pool gives back what none of them needed.
const WINDOW: u32 = 64;

/// Device memory that stays with us between batches.
pub(super) struct Pool {
    raw: sys::CUmemoryPool,
    most: Option<NonZeroUsize>,
    ceiling: usize,
    batches: AtomicU32,
    context: Arc<Context>,
}

// SAFETY: a pool is a handle that the driver lets any thread use.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// A pool on device `ordinal` that never takes more than `most` bytes.
    ///
    /// # Errors
    /// What the driver says.
    pub(super) fn new(context: Arc<Context>, ordinal: usize, most: Option<NonZeroUsize>) -> Result<Self> {
        // SAFETY: all zeros is a valid value of this plain struct: no exported handles, no largest size.
        let mut props: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        props.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        props.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        props.location.id = ordinal as i32;
        props.maxSize = most.map_or(0, NonZeroUsize::get);
        let bound = context.bind()?;
        // SAFETY: the context is current and the properties are valid.
        let raw = unsafe { result::mem_pool::create(&props) }
            .map_err(|error| driver_error("making a memory pool", error))?;
        let memory = result::mem_get_info().map_err(|error| driver_error("asking for memory", error));
        drop(bound);
        let mut pool = Self { raw, most, ceiling: 0, batches: AtomicU32::new(0), context };
        let (_, total) = memory?;
        pool.ceiling = most.map_or(total, |most| most.get().min(total));
        // The driver would give back all that is free beyond a threshold whenever somebody waits for the device, and a
        // batch that needs more would map it again: that takes longer than the batch.
        pool.set(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)?;
        Ok(pool)
    }

    /// The driver's handle.
    pub(super) fn raw(&self) -> sys::CUmemoryPool {
        self.raw
    }

    /// The most bytes that buffers may take together, when there is such a limit.
    pub(super) fn most(&self) -> Option<NonZeroUsize> {
        self.most
    }

    /// The same, or all that the device has.
    pub(super) fn ceiling(&self) -> usize {
        self.ceiling
    }

    /// Counts a batch that was waited for. Now and then what the last ones did not need goes back to the device, beyond
    /// [`limits::MAX_RETAINED_DEVICE_BYTES`].
    pub(super) fn end_batch(&self) {
        if self.batches.fetch_add(1, Ordering::Relaxed) % WINDOW != WINDOW - 1 {
            return;
        }
        if let Err(error) = self.trim() {
            tracing::debug!("memory of the device that is not needed stays: {error}");
        }
    }

    fn trim(&self) -> Result<()> {
        use sys::CUmemPool_attribute as Attribute;
        let reserved = self.get(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        let needed = self.get(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?;
        // The driver takes no other value: the highest so far is that of now.
        self.set(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)?;
        // Free memory is in pieces, so that a load takes somewhat more than it uses.
        let kept = (needed + needed / 4).max(limits::MAX_RETAINED_DEVICE_BYTES);
        if reserved <= kept {
            return Ok(());
        }
        let kept = usize::try_from(kept).map_err(|_| Error::internal("a pool beyond all memory"))?;
        let _bound = self.context.bind()?;
        // SAFETY: the pool is valid.
        unsafe { result::mem_pool::trim_to(self.raw, kept) }.map_err(failed)
    }

    fn get(&self, attribute: sys::CUmemPool_attribute) -> Result<u64> {
        let mut value = 0u64;
        let _bound = self.context.bind()?;
        // SAFETY: the pool is valid; all attributes that are asked for here are a `u64`.
        unsafe { result::mem_pool::get_attribute(self.raw, attribute, (&raw mut value).cast()) }
            .map_err(failed)?;
        Ok(value)
    }

    fn set(&self, attribute: sys::CUmemPool_attribute, mut value: u64) -> Result<()> {
        let _bound = self.context.bind()?;
        // SAFETY: the pool is valid; all attributes that are set here are a `u64`, which the driver reads before it
        // returns.
        unsafe { result::mem_pool::set_attribute(self.raw, attribute, (&raw mut value).cast()) }
            .map_err(failed)
    }
}

fn failed(error: DriverError) -> Error {
    driver_error("a memory pool", error)
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _bound = self.context.bind();
        // SAFETY: every buffer holds its `Gpu`, so none is left.
        let _ = unsafe { result::mem_pool::destroy(self.raw) };
    }
}
