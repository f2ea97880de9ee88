//! The backend: this library as the server sees it, and what the server asks about it.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::Slot;
use super::message::json_of;
use super::server::{Server, not_null};
use crate::config::InstanceKind;
use crate::triton::sys;
use gesso::error::Result;

/// This library, loaded under some name.
pub struct Backend {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Backend>,
}

impl Backend {
    /// Wraps Triton's handle.
    ///
    /// # Errors
    /// When `raw` is null.
    ///
    /// # Safety
    /// `raw` is null or a backend that stays valid as long as the value is used.
    pub unsafe fn from_raw(server: &'static Server, raw: *mut sys::TRITONBACKEND_Backend) -> Result<Self> {
        Ok(Self { server, raw: not_null(raw, "a backend")? })
    }

    /// The server that holds the backend.
    pub fn server(&self) -> &'static Server {
        self.server
    }

    /// The name that models use for it: `gesso`, or `dali` where this library stands in for that one.
    ///
    /// # Errors
    /// What Triton says.
    pub fn name(&self) -> Result<String> {
        self.server.text("backend name", |out| {
            // SAFETY: the backend is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_BackendName(self.raw.as_ptr(), out) }
        })
    }

    /// The settings from the server's command line as JSON, `{"cmdline": {key: text}}`.
    ///
    /// # Errors
    /// What Triton says.
    pub fn config(&self) -> Result<String> {
        let message = self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the backend is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_BackendConfig(self.raw.as_ptr(), out) }
        })?;
        // SAFETY: the message belongs to the backend and lives as long.
        unsafe { json_of(self.server, message) }
    }
}

impl Slot for Backend {
    fn state(&self) -> Result<*mut c_void> {
        self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the backend is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_BackendState(self.raw.as_ptr(), out) }
        })
    }

    fn set_state(&self, state: *mut c_void) -> Result<()> {
        // SAFETY: the backend is valid by the contract of `from_raw`; Triton only keeps the pointer.
        self.server
            .check(unsafe { self.server.required.TRITONBACKEND_BackendSetState(self.raw.as_ptr(), state) })
    }
}

/// What the server wants to know about the backend before it places models. Both functions came after backend API 1.0:
/// a server without them has no way to call for this, or keeps its default.
pub struct Attributes {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_BackendAttribute>,
}

impl Attributes {
    /// Wraps Triton's handle.
    ///
    /// # Errors
    /// When `raw` is null.
    ///
    /// # Safety
    /// `raw` is null or attributes that stay valid as long as the value is used.
    pub unsafe fn from_raw(
        server: &'static Server,
        raw: *mut sys::TRITONBACKEND_BackendAttribute,
    ) -> Result<Self> {
        Ok(Self { server, raw: not_null(raw, "backend attributes")? })
    }

    /// Where models go that do not say it: the first call names the most preferred kind. Count and devices are left to
    /// the server.
    ///
    /// # Errors
    /// What Triton says.
    pub fn prefer(&self, kind: InstanceKind) -> Result<()> {
        let Ok(add) = &self.server.newer.TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup else {
            return Ok(());
        };
        // SAFETY: the attributes are valid by the contract of `from_raw`; no devices are a null pointer and 0.
        self.server.check(unsafe { add(self.raw.as_ptr(), kind.raw(), 0, std::ptr::null(), 0) })
    }

    /// Whether instances of a model may be initialized at the same time.
    ///
    /// # Errors
    /// What Triton says.
    pub fn set_parallel_loading(&self, enabled: bool) -> Result<()> {
        let Ok(set) = &self.server.newer.TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading else {
            return Ok(());
        };
        // SAFETY: the attributes are valid by the contract of `from_raw`.
        self.server.check(unsafe { set(self.raw.as_ptr(), enabled) })
    }
}
