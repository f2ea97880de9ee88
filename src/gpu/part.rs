//! A part of a device's multiprocessors, for work beside that of others: a green context of the driver (CUDA 12.4 and
//! later). It must not know what works in it.
//!
//! Kernels that run beside a model's take some room of every multiprocessor, and each kernel of the model then waits
//! for blocks of ours where its own are to go. In a part they hold up only that.

use std::ffi::{c_int, c_uint, c_void};
use std::num::NonZeroUsize;

use cudarc::driver::sys;

use super::library::{Found, Library};
use crate::error::{Error, ErrorKind, Result};

/// `CUdevResource`: what it is, room of the driver's, and for multiprocessors how many. 144 bytes in CUDA 12, 152 in
/// CUDA 13.
#[repr(C, align(8))]
struct Resource {
    kind: c_uint,
    drivers: [u8; 92],
    count: c_uint,
    rest: [u8; 156],
}

impl Resource {
    const NONE: Self = Self { kind: 0, drivers: [0; 92], count: 0, rest: [0; 156] };
    /// `CU_DEV_RESOURCE_TYPE_SM`.
    const MULTIPROCESSORS: c_uint = 1;
}

/// Makes a green context of what a description says, on a device.
type Make = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, sys::CUdevice, c_uint) -> c_int;
/// Puts groups of a resource, of at least so many multiprocessors, into the first, and what is left into the second
/// one.
type Split =
    unsafe extern "C" fn(*mut Resource, *mut c_uint, *const Resource, *mut Resource, c_uint, c_uint) -> c_int;

/// A part of the multiprocessors of a device.
pub(super) struct Part {
    raw: *mut c_void,
    multiprocessors: usize,
    stream: unsafe extern "C" fn(*mut sys::CUstream, *mut c_void, c_uint, c_int) -> c_int,
    destroy: unsafe extern "C" fn(*mut c_void) -> c_int,
    /// Keeps the functions loaded.
    _library: Found,
}

// SAFETY: a green context is a handle that the driver lets any thread use.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl Part {
    /// At least `count` multiprocessors of `device`, whose primary context is retained: the driver gives some at once,
    /// eight on an H100. They may be those of another part.
    ///
    /// # Errors
    /// Unavailable, when the driver knows no parts or does not give one so large.
    pub(super) fn new(device: sys::CUdevice, count: NonZeroUsize) -> Result<Self> {
        /// `CU_GREEN_CTX_DEFAULT_STREAM`, without which there is none.
        const DEFAULT_STREAM: c_uint = 1;
        let library = Library::DRIVER.open()?;
        // SAFETY: the types of all functions here are those of cuda.h since 12.4.
        let find: unsafe extern "C" fn(sys::CUdevice, *mut Resource, c_uint) -> c_int =
            unsafe { library.function("cuDeviceGetDevResource") }?;
        // SAFETY: as above.
        let split: Split = unsafe { library.function("cuDevSmResourceSplitByCount") }?;
        // SAFETY: as above.
        let describe: unsafe extern "C" fn(*mut *mut c_void, *mut Resource, c_uint) -> c_int =
            unsafe { library.function("cuDevResourceGenerateDesc") }?;
        // SAFETY: as above.
        let make: Make = unsafe { library.function("cuGreenCtxCreate") }?;
        // SAFETY: as above.
        let stream = unsafe { library.function("cuGreenCtxStreamCreate") }?;
        // SAFETY: as above.
        let destroy = unsafe { library.function("cuGreenCtxDestroy") }?;

        let (mut all, mut own, mut rest) = (Resource::NONE, Resource::NONE, Resource::NONE);
        // SAFETY: the device is from the driver, and what is written fits.
        check("cuDeviceGetDevResource", unsafe { find(device, &raw mut all, Resource::MULTIPROCESSORS) })?;
        let (least, mut groups) = (c_uint::try_from(count.get()).unwrap_or(c_uint::MAX), 1);
        // SAFETY: there is room for one group and for what is left.
        let status = unsafe { split(&raw mut own, &raw mut groups, &raw const all, &raw mut rest, 0, least) };
        check("cuDevSmResourceSplitByCount", status)?;
        let (mut description, mut raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: one resource is given, which the driver made.
        check("cuDevResourceGenerateDesc", unsafe { describe(&raw mut description, &raw mut own, 1) })?;
        // SAFETY: description and device are from the driver.
        check("cuGreenCtxCreate", unsafe { make(&raw mut raw, description, device, DEFAULT_STREAM) })?;
        let multiprocessors = usize::try_from(own.count).unwrap_or(1).max(1);
        Ok(Self { raw, multiprocessors, stream, destroy, _library: library })
    }

    /// How many there are.
    pub(super) fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// A new stream, which works in the part and waits for no other.
    ///
    /// # Errors
    /// Unavailable, with what the driver says.
    pub(super) fn stream(&self) -> Result<sys::CUstream> {
        /// `CU_STREAM_NON_BLOCKING`.
        const WAITS_FOR_NONE: c_uint = 1;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the part is from the driver; 0 is the priority that streams have.
        let status = unsafe { (self.stream)(&raw mut raw, self.raw, WAITS_FOR_NONE, 0) };
        check("cuGreenCtxStreamCreate", status).map(|()| raw)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: made by the driver; its streams are gone, as they keep the device that has it.
        unsafe { (self.destroy)(self.raw) };
    }
}

fn check(function: &str, status: c_int) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        format!("no part of the device's multiprocessors: {function} answers {status}"),
    ))
}
