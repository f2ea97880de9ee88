//! The server that loaded this library, as the functions it offers. They are looked up by name in the running
//! process, once: those of backend API 1.0 must be there, newer ones may be missing.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use super::program::library_with;
use super::words::object_of;
use crate::triton::sys;
use gesso::error::{Error, Result};

/// A function by which a server is known: every one has it.
const ANY: &CStr = c"TRITONBACKEND_ApiVersion";

/// Triton's functions. Every other type of this folder holds a reference to it, which proves that they were found.
pub struct Server {
    pub(super) required: sys::Required,
    pub(super) newer: sys::Newer,
}

impl Server {
    /// The server of this process.
    ///
    /// # Errors
    /// `Unsupported` when a function of backend API 1.0 is missing, naming it: the process is not a Triton server.
    pub fn get() -> Result<&'static Server> {
        static SERVER: OnceLock<Result<Server>> = OnceLock::new();
        SERVER.get_or_init(Server::look_up).as_ref().map_err(Clone::clone)
    }

    /// Whether requests of this server show their parameters: headers that it hands on among them.
    pub fn has_parameters(&self) -> bool {
        self.newer.TRITONBACKEND_RequestParameterCount.is_ok()
            && self.newer.TRITONBACKEND_RequestParameter.is_ok()
    }

    fn look_up() -> Result<Server> {
        let missing =
            |error| Error::unsupported(format!("a function of Triton's backend API 1.0 is missing: {error}"));
        // SAFETY: the library is loaded already, so opening it runs nothing; the headers state the signatures that
        // Triton's functions with these names have.
        let required = unsafe { sys::Required::from_library(library_with(ANY)) }.map_err(missing)?;
        // SAFETY: as above.
        let newer = unsafe { sys::Newer::from_library(library_with(ANY)) }.map_err(missing)?;
        Ok(Server { required, newer })
    }

    /// An error object for a process in which [`Server::get`] failed with `error`. Null, which reads as success, when
    /// even errors cannot be made: then there is no way to say anything.
    pub(in crate::triton) fn refusal(error: &Error) -> *mut sys::TRITONSERVER_Error {
        type New =
            unsafe extern "C" fn(sys::TRITONSERVER_Error_Code, *const c_char) -> *mut sys::TRITONSERVER_Error;
        let library = library_with(c"TRITONSERVER_ErrorNew");
        // SAFETY: a function of this name is Triton's, with the signature of the header.
        let Ok(new) = (unsafe { library.get::<New>(b"TRITONSERVER_ErrorNew\0") }) else {
            return std::ptr::null_mut();
        };
        // SAFETY: the text ends with NUL and outlives the call, which copies it.
        object_of(error, |code, text| unsafe { new(code, text.as_ptr()) }).as_ptr()
    }
}
