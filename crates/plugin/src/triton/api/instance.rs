//! An instance: one copy of a model on one device, and the statistics that it reports.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::Slot;
use super::error::not_null;
use super::model::Model;
use super::request::Request;
use super::server::Server;
use crate::config::InstanceKind;
use crate::triton::sys::{self, TRITONSERVER_InstanceGroupKind as RawKind};
use gesso::error::{Error, Result};

impl InstanceKind {
    fn from_raw(raw: RawKind) -> Result<Self> {
        match raw {
            RawKind::TRITONSERVER_INSTANCEGROUPKIND_AUTO => Ok(InstanceKind::Auto),
            RawKind::TRITONSERVER_INSTANCEGROUPKIND_CPU => Ok(InstanceKind::Cpu),
            RawKind::TRITONSERVER_INSTANCEGROUPKIND_GPU => Ok(InstanceKind::Gpu),
            RawKind::TRITONSERVER_INSTANCEGROUPKIND_MODEL => Ok(InstanceKind::Model),
            RawKind(number) => {
                Err(Error::unsupported(format!("instances of Triton's kind {number} are not supported")))
            }
        }
    }

    pub(super) fn raw(self) -> RawKind {
        match self {
            InstanceKind::Auto => RawKind::TRITONSERVER_INSTANCEGROUPKIND_AUTO,
            InstanceKind::Cpu => RawKind::TRITONSERVER_INSTANCEGROUPKIND_CPU,
            InstanceKind::Gpu => RawKind::TRITONSERVER_INSTANCEGROUPKIND_GPU,
            InstanceKind::Model => RawKind::TRITONSERVER_INSTANCEGROUPKIND_MODEL,
        }
    }
}

/// When an execution reached its stages, by [`now`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The requests arrived.
    pub start: u64,
    /// Inputs are gathered, computing starts.
    pub compute_start: u64,
    /// Computing is done.
    pub compute_end: u64,
    /// Responses were sent.
    pub end: u64,
}

/// The clock of Triton's statistics: nanoseconds of `CLOCK_MONOTONIC`, which is C++'s `steady_clock` on Linux.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the out pointer is valid; this clock always exists on Linux, so the call does not fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A copy of a model on a device.
#[derive(Clone, Copy)]
pub struct Instance {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_ModelInstance>,
}

// SAFETY: Triton's functions on an instance may be called from any thread; they lock where they write.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    /// Wraps Triton's handle.
    ///
    /// # Errors
    /// When `raw` is null.
    ///
    /// # Safety
    /// `raw` is null or an instance that stays valid as long as the value, or a copy of it, is used.
    pub unsafe fn from_raw(
        server: &'static Server,
        raw: *mut sys::TRITONBACKEND_ModelInstance,
    ) -> Result<Self> {
        Ok(Self { server, raw: not_null(raw, "a model instance")? })
    }

    /// The server that holds the instance.
    pub fn server(&self) -> &'static Server {
        self.server
    }

    /// The name of the instance.
    ///
    /// # Errors
    /// What Triton says.
    pub fn name(&self) -> Result<String> {
        self.server.text("instance name", |out| {
            // SAFETY: the instance is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelInstanceName(self.raw.as_ptr(), out) }
        })
    }

    /// What the instance runs on.
    ///
    /// # Errors
    /// `Unsupported` for a kind that a later server added; else what Triton says.
    pub fn kind(&self) -> Result<InstanceKind> {
        let raw = self.server.out(RawKind::TRITONSERVER_INSTANCEGROUPKIND_AUTO, |out| {
            // SAFETY: the instance is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelInstanceKind(self.raw.as_ptr(), out) }
        })?;
        InstanceKind::from_raw(raw)
    }

    /// The number of the GPU; only of meaning for [`InstanceKind::Gpu`].
    ///
    /// # Errors
    /// What Triton says.
    pub fn device(&self) -> Result<i32> {
        self.server.out(0, |out| {
            // SAFETY: the instance is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelInstanceDeviceId(self.raw.as_ptr(), out) }
        })
    }

    /// The model that the instance is a copy of.
    ///
    /// # Errors
    /// What Triton says.
    pub fn model(&self) -> Result<Model> {
        let raw = self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the instance is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelInstanceModel(self.raw.as_ptr(), out) }
        })?;
        // SAFETY: a model outlives its instances.
        unsafe { Model::from_raw(self.server, raw) }
    }

    /// Adds `request` to the model's statistics; the times of a failed request are ignored.
    ///
    /// # Errors
    /// What Triton says.
    pub fn report_request(&self, request: &Request, success: bool, times: &Times) -> Result<()> {
        // SAFETY: the instance is valid by the contract of `from_raw`, and the request is not released: it is borrowed.
        self.server.check(unsafe {
            self.server.required.TRITONBACKEND_ModelInstanceReportStatistics(
                self.raw.as_ptr(),
                request.as_ptr(),
                success,
                times.start,
                times.compute_start,
                times.compute_end,
                times.end,
            )
        })
    }

    /// Adds one execution of `batch_size` samples, summed over its requests, to the model's statistics.
    ///
    /// # Errors
    /// What Triton says.
    pub fn report_batch(&self, batch_size: u64, times: &Times) -> Result<()> {
        // SAFETY: the instance is valid by the contract of `from_raw`.
        self.server.check(unsafe {
            self.server.required.TRITONBACKEND_ModelInstanceReportBatchStatistics(
                self.raw.as_ptr(),
                batch_size,
                times.start,
                times.compute_start,
                times.compute_end,
                times.end,
            )
        })
    }
}

impl Slot for Instance {
    fn state(&self) -> Result<*mut c_void> {
        self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the instance is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelInstanceState(self.raw.as_ptr(), out) }
        })
    }

    fn set_state(&self, state: *mut c_void) -> Result<()> {
        // SAFETY: the instance is valid by the contract of `from_raw`; Triton only keeps the pointer.
        self.server.check(unsafe {
            self.server.required.TRITONBACKEND_ModelInstanceSetState(self.raw.as_ptr(), state)
        })
    }
}
