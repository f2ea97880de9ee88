//! Errors across the boundary, and what Triton's functions return as results.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

use super::server::Server;
use super::words::{kind_of, object_of};
use crate::triton::sys;
use gesso::error::{Error, Result};

/// An error object of Triton that we own.
pub struct ServerError<'s> {
    server: &'s Server,
    raw: NonNull<sys::TRITONSERVER_Error>,
}

impl<'s> ServerError<'s> {
    /// Takes the error that a function of Triton returned.
    pub(super) fn new(server: &'s Server, raw: NonNull<sys::TRITONSERVER_Error>) -> Self {
        Self { server, raw }
    }

    /// Triton's object for `error`.
    pub fn from_error(server: &'s Server, error: &Error) -> Self {
        let raw = object_of(error, |code, text| {
            // SAFETY: the text ends with NUL and outlives the call, which copies it.
            unsafe { server.required.TRITONSERVER_ErrorNew(code, text.as_ptr()) }
        });
        Self { server, raw }
    }

    /// The crate's error with the same class and text.
    pub fn to_error(&self) -> Error {
        // SAFETY: `raw` is an error that was not deleted: only `drop` deletes it.
        let code = unsafe { self.server.required.TRITONSERVER_ErrorCode(self.raw.as_ptr()) };
        // SAFETY: as above.
        let text = unsafe { self.server.required.TRITONSERVER_ErrorMessage(self.raw.as_ptr()) };
        if text.is_null() {
            return Error::new(kind_of(code), "Triton returned an error without a text");
        }
        // SAFETY: the text of an error ends with NUL and lives as long as the error.
        let text = unsafe { CStr::from_ptr(text) };
        Error::new(kind_of(code), text.to_string_lossy())
    }

    /// The object, for a call that leaves it with us.
    pub(super) fn as_ptr(&self) -> *mut sys::TRITONSERVER_Error {
        self.raw.as_ptr()
    }

    /// Hands the object to Triton, which deletes it.
    pub fn into_raw(self) -> *mut sys::TRITONSERVER_Error {
        let raw = self.raw.as_ptr();
        std::mem::forget(self);
        raw
    }
}

impl Drop for ServerError<'_> {
    fn drop(&mut self) {
        // SAFETY: we own the error, and nothing uses it after `drop`.
        unsafe { self.server.required.TRITONSERVER_ErrorDelete(self.raw.as_ptr()) };
    }
}

impl Server {
    /// Turns what a function of Triton returned into a result; frees the error.
    pub(super) fn check(&self, raw: *mut sys::TRITONSERVER_Error) -> Result<()> {
        match NonNull::new(raw) {
            None => Ok(()),
            Some(raw) => Err(ServerError::new(self, raw).to_error()),
        }
    }

    /// What `call` wrote to its out pointer, which starts as `initial`.
    pub(super) fn out<T>(
        &self,
        initial: T,
        call: impl FnOnce(*mut T) -> *mut sys::TRITONSERVER_Error,
    ) -> Result<T> {
        let mut value = initial;
        self.check(call(&raw mut value))?;
        Ok(value)
    }

    /// The text that a function of Triton wrote to its out pointer; `what` names it in errors.
    pub(super) fn text(
        &self,
        what: &str,
        call: impl FnOnce(*mut *const c_char) -> *mut sys::TRITONSERVER_Error,
    ) -> Result<String> {
        let text = self.out(std::ptr::null(), call)?;
        if text.is_null() {
            return Err(Error::internal(format!("Triton returned no {what}")));
        }
        // SAFETY: the callers in this folder pass functions that return texts ending with NUL, which live as long as
        // the object that they were asked from, and the caller holds that.
        let text = unsafe { CStr::from_ptr(text) };
        match text.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Error::invalid(format!("the {what} is not UTF-8: `{}`", text.to_string_lossy()))),
        }
    }
}

/// `raw`, or an error that names `what` was expected.
pub(super) fn not_null<T>(raw: *mut T, what: &str) -> Result<NonNull<T>> {
    NonNull::new(raw).ok_or_else(|| Error::internal(format!("expected {what}, found a null pointer")))
}
