//! Bytes on a device as the host knows them: where they are, how many, and what keeps them. It must not know how they
//! are read or written.

#![expect(unsafe_code, reason = "an address is believed: who gives one says why it may be")]

use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Memory on a device that goes back to where it came from when it is dropped.
///
/// # Safety
/// [`DeviceMemory::len`] bytes at [`DeviceMemory::address`] are allocated as long as `self`, and the answers never
/// change.
pub unsafe trait DeviceMemory: Send + Sync {
    /// Where it is.
    fn address(&self) -> u64;

    /// How large it is.
    fn len(&self) -> usize;

    /// Whether it has no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until everything on its device is done, whoever started it: nobody reads or writes the memory any more.
    ///
    /// # Errors
    /// What failed on the device.
    fn wait_for_device(&self) -> Result<()>;
}

/// The bytes of one sample on a device, in memory that lives for `'r`: as long as these, when it is ours; else as long
/// as the request or the response that it belongs to.
///
/// ```
/// use gesso::memory::DeviceBytes;
///
/// struct Allocation {
///     address: u64,
///     bytes: usize,
/// }
///
/// fn sample(allocation: &Allocation) -> DeviceBytes<'_> {
///     // SAFETY: an allocation is there as long as the value that stands for it.
///     unsafe { DeviceBytes::foreign(allocation.address, allocation.bytes) }
/// }
///
/// let allocation = Allocation { address: 4096, bytes: 16 };
/// let bytes = sample(&allocation);
/// assert_eq!(bytes.part(4, 12)?.address(), 4100);
/// # Ok::<(), gesso::error::Error>(())
/// ```
///
/// A batch with such a sample cannot outlive the memory:
///
/// ```compile_fail,E0597
/// use gesso::memory::DeviceBytes;
/// use gesso::tensor::{Batch, BatchDesc, DType, Layout, Sample, Shape};
///
/// struct Allocation {
///     address: u64,
///     bytes: usize,
/// }
///
/// fn sample(allocation: &Allocation) -> DeviceBytes<'_> {
///     // SAFETY: an allocation is there as long as the value that stands for it.
///     unsafe { DeviceBytes::foreign(allocation.address, allocation.bytes) }
/// }
///
/// let desc = BatchDesc::new(DType::U8, Layout::NONE, vec![Shape::from([16])]);
/// let batch = {
///     let allocation = Allocation { address: 4096, bytes: 16 };
///     Batch::new(desc, vec![Sample::Device(sample(&allocation))])
/// };
/// assert!(batch.is_ok());
/// ```
#[derive(Clone)]
pub struct DeviceBytes<'r> {
    address: u64,
    bytes: usize,
    /// What keeps the memory; `None`: it lives for `'r`.
    owner: Option<Arc<dyn DeviceMemory>>,
    life: PhantomData<&'r [u8]>,
}

impl<'r> DeviceBytes<'r> {
    /// `bytes` bytes of `owner` from `offset` on.
    ///
    /// # Panics
    /// When they are not inside of it.
    pub fn of<M: DeviceMemory + 'static>(owner: &Arc<M>, offset: usize, bytes: usize) -> Self {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= owner.len()), "outside of its buffer");
        let owner: Arc<dyn DeviceMemory> = Arc::<M>::clone(owner);
        Self { address: owner.address() + offset as u64, bytes, owner: Some(owner), life: PhantomData }
    }

    /// Bytes in memory of somebody else's.
    ///
    /// # Safety
    /// For `'r` there are `bytes` bytes at `address` that a device of the process can read, and write where they are a
    /// target, and that nobody else changes, or for a target uses, meanwhile.
    pub unsafe fn foreign(address: u64, bytes: usize) -> Self {
        Self { address, bytes, owner: None, life: PhantomData }
    }

    /// `bytes` of these bytes from `offset` on.
    ///
    /// # Errors
    /// Internal, when they are not inside.
    pub fn part(&self, offset: usize, bytes: usize) -> Result<Self> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Error::internal(format!("{bytes} bytes from {offset} on of {}", self.bytes)));
        }
        Ok(Self { address: self.address + offset as u64, bytes, ..self.clone() })
    }

    /// The same bytes for as long as anybody wants them; `None` when they are in memory of somebody else's.
    pub fn owned(&self) -> Option<DeviceBytes<'static>> {
        let owner = self.owner.clone()?;
        Some(DeviceBytes { address: self.address, bytes: self.bytes, owner: Some(owner), life: PhantomData })
    }

    /// Where they are.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// What keeps them, when it is memory of ours.
    pub fn owner(&self) -> Option<&Arc<dyn DeviceMemory>> {
        self.owner.as_ref()
    }
}
