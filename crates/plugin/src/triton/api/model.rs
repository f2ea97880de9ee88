//! A model: one version of one directory of the model repository.

use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::NonNull;

use super::Slot;
use super::backend::Backend;
use super::error::not_null;
use super::message::Message;
use super::server::Server;
use crate::triton::sys;
use gesso::error::{Error, Result};

/// The only format of model configurations that there is.
const CONFIG_VERSION: u32 = 1;

/// A model that names this backend.
pub struct Model {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Model>,
}

impl Model {
    /// Wraps Triton's handle.
    ///
    /// # Errors
    /// When `raw` is null.
    ///
    /// # Safety
    /// `raw` is null or a model that stays valid as long as the value is used.
    pub unsafe fn from_raw(server: &'static Server, raw: *mut sys::TRITONBACKEND_Model) -> Result<Self> {
        Ok(Self { server, raw: not_null(raw, "a model")? })
    }

    /// The server that holds the model.
    pub fn server(&self) -> &'static Server {
        self.server
    }

    /// The backend that the model names.
    ///
    /// # Errors
    /// What Triton says.
    pub fn backend(&self) -> Result<Backend> {
        let raw = self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the model is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelBackend(self.raw.as_ptr(), out) }
        })?;
        // SAFETY: a backend outlives its models.
        unsafe { Backend::from_raw(self.server, raw) }
    }

    /// The name of the model.
    ///
    /// # Errors
    /// What Triton says.
    pub fn name(&self) -> Result<String> {
        self.server.text("model name", |out| {
            // SAFETY: the model is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelName(self.raw.as_ptr(), out) }
        })
    }

    /// The version: the number that its directory has for a name.
    ///
    /// # Errors
    /// What Triton says.
    pub fn version(&self) -> Result<u64> {
        self.server.out(0, |out| {
            // SAFETY: the model is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelVersion(self.raw.as_ptr(), out) }
        })
    }

    /// The model's directory, which holds `config.pbtxt` and a directory for each version. Any path that the file
    /// system allows, UTF-8 or not.
    ///
    /// # Errors
    /// `Unsupported` when the model is not a directory; else what Triton says.
    pub fn directory(&self) -> Result<PathBuf> {
        let mut kind = sys::TRITONBACKEND_ArtifactType::TRITONBACKEND_ARTIFACT_FILESYSTEM;
        let path = self.server.out(std::ptr::null(), |out| {
            // SAFETY: the model is valid by the contract of `from_raw`; both out pointers are valid.
            unsafe {
                self.server.required.TRITONBACKEND_ModelRepository(self.raw.as_ptr(), &raw mut kind, out)
            }
        })?;
        if kind != sys::TRITONBACKEND_ArtifactType::TRITONBACKEND_ARTIFACT_FILESYSTEM || path.is_null() {
            return Err(Error::unsupported(format!(
                "expected a model in a directory, found one of Triton's artifact type {}",
                kind.0
            )));
        }
        // SAFETY: the path ends with NUL and lives as long as the model.
        let path = unsafe { CStr::from_ptr(path) };
        Ok(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
    }

    /// The model's configuration as JSON.
    ///
    /// # Errors
    /// What Triton says.
    pub fn config(&self) -> Result<String> {
        let message = self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the model is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelConfig(self.raw.as_ptr(), CONFIG_VERSION, out) }
        })?;
        Message::from_raw(self.server, message)?.json()
    }

    /// Replaces inputs, outputs, maximal batch size and, where none was chosen, the scheduler. Only while the model is
    /// initialized; Triton may add to it, so read [`Model::config`] again.
    ///
    /// # Errors
    /// What Triton says.
    pub fn set_config(&self, json: &str) -> Result<()> {
        let message = Message::new(self.server, json)?;
        // SAFETY: the model is valid by the contract of `from_raw`, the message until the end of this function.
        self.server.check(unsafe {
            self.server.required.TRITONBACKEND_ModelSetConfig(
                self.raw.as_ptr(),
                CONFIG_VERSION,
                message.as_ptr(),
            )
        })
    }

    /// Whether the backend should fill what the configuration leaves out.
    ///
    /// # Errors
    /// What Triton says.
    pub fn wants_auto_complete(&self) -> Result<bool> {
        self.server.out(false, |out| {
            // SAFETY: the model is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelAutoCompleteConfig(self.raw.as_ptr(), out) }
        })
    }
}

impl Slot for Model {
    fn state(&self) -> Result<*mut c_void> {
        self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the model is valid by the contract of `from_raw`.
            unsafe { self.server.required.TRITONBACKEND_ModelState(self.raw.as_ptr(), out) }
        })
    }

    fn set_state(&self, state: *mut c_void) -> Result<()> {
        // SAFETY: the model is valid by the contract of `from_raw`; Triton only keeps the pointer.
        self.server
            .check(unsafe { self.server.required.TRITONBACKEND_ModelSetState(self.raw.as_ptr(), state) })
    }
}
