//! The context of a device: retained as long as something was made in it, and bound to a thread only while we call the
//! driver, so that a caller with a context of its own finds that again. And what the driver's errors mean. It must not
//! know what is made in a context.

use std::marker::PhantomData;

use cudarc::driver::{DriverError, result, sys};

use crate::error::{Error, ErrorKind, Result};

/// An error of the driver. Out of memory is unavailable, everything else a defect or a broken device.
pub(super) fn driver_error(what: &str, error: DriverError) -> Error {
    use sys::CUresult as Code;
    let kind = match error.0 {
        Code::CUDA_ERROR_OUT_OF_MEMORY
        | Code::CUDA_ERROR_NO_DEVICE
        | Code::CUDA_ERROR_INVALID_DEVICE
        | Code::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    let text = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
    };
    Error::new(kind, format!("{what}: {} ({})", text(error.error_string()), text(error.error_name())))
}

/// The primary context of a device; shared with everything else in the process that uses the device.
pub(super) struct Context {
    raw: sys::CUcontext,
    device: sys::CUdevice,
}

// SAFETY: a context is a handle that the driver lets any thread use.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of `device`, which comes from the driver.
    pub(super) fn retain(device: sys::CUdevice) -> Result<Self> {
        // SAFETY: the device is from the driver.
        let raw = unsafe { result::primary_ctx::retain(device) }
            .map_err(|error| driver_error("opening the device", error))?;
        Ok(Self { raw, device })
    }

    /// The driver's handle.
    pub(super) fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    /// Makes it the calling thread's context until the guard goes. Needed around calls of the driver, and of libraries
    /// that call it.
    pub(super) fn bind(&self) -> Result<Bound<'_>> {
        // SAFETY: the context is retained as long as `self`, which the guard borrows.
        unsafe { sys::cuCtxPushCurrent_v2(self.raw) }
            .result()
            .map_err(|error| driver_error("binding the device", error))?;
        Ok(Bound { context: PhantomData })
    }

    /// Waits until everything on the device is done, whoever started it.
    pub(super) fn synchronize(&self) -> Result<()> {
        let _bound = self.bind()?;
        result::ctx::synchronize().map_err(|error| driver_error("waiting for the device", error))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once by `retain`; everything made in it is gone, since it holds the context.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// A device's context on top of the calling thread's stack of contexts. When it goes, the thread has the one again that
/// it had before, or none.
#[must_use = "the context is the thread's only as long as this lives"]
pub struct Bound<'c> {
    /// A raw pointer, because the stack is the thread's: the guard cannot go to another one.
    context: PhantomData<(&'c Context, *const ())>,
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call; what is taken off was pushed when the guard was made, or set in
        // its place since.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
    }
}
