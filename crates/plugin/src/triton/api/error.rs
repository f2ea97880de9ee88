//! Errors across the boundary: the crate's kinds and Triton's codes are the same eight classes.

use std::ffi::CStr;
use std::ptr::NonNull;

use super::server::{Server, c_string};
use crate::triton::sys::{self, TRITONSERVER_Error_Code as Code};
use gesso::error::{Error, ErrorKind};

/// Kinds and the codes that they are sent as.
const CODES: [(ErrorKind, Code); 8] = [
    (ErrorKind::Unknown, Code::TRITONSERVER_ERROR_UNKNOWN),
    (ErrorKind::Internal, Code::TRITONSERVER_ERROR_INTERNAL),
    (ErrorKind::NotFound, Code::TRITONSERVER_ERROR_NOT_FOUND),
    (ErrorKind::InvalidArg, Code::TRITONSERVER_ERROR_INVALID_ARG),
    (ErrorKind::Unavailable, Code::TRITONSERVER_ERROR_UNAVAILABLE),
    (ErrorKind::Unsupported, Code::TRITONSERVER_ERROR_UNSUPPORTED),
    (ErrorKind::AlreadyExists, Code::TRITONSERVER_ERROR_ALREADY_EXISTS),
    (ErrorKind::Cancelled, Code::TRITONSERVER_ERROR_CANCELLED),
];

/// The code of `kind`.
pub(super) fn code_of(kind: ErrorKind) -> Code {
    CODES.iter().find(|(k, _)| *k == kind).map_or(Code::TRITONSERVER_ERROR_UNKNOWN, |(_, code)| *code)
}

/// The kind of `code`; codes that we do not know are of the kind that says so.
fn kind_of(code: Code) -> ErrorKind {
    CODES.iter().find(|(_, c)| *c == code).map_or(ErrorKind::Unknown, |(kind, _)| *kind)
}

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

    /// Triton's object for `error`; `None` when Triton could not make one.
    pub fn from_error(server: &'s Server, error: &Error) -> Option<Self> {
        let text = c_string(&error.to_string());
        // SAFETY: the text ends with NUL and outlives the call, which copies it.
        let raw = unsafe { server.required.TRITONSERVER_ErrorNew(code_of(error.kind()), text.as_ptr()) };
        NonNull::new(raw).map(|raw| Self { server, raw })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_codes_are_a_bijection_in_tritons_order() {
        for (number, (kind, code)) in CODES.iter().enumerate() {
            assert_eq!(code.0 as usize, number);
            assert_eq!(code_of(*kind), *code);
            assert_eq!(kind_of(*code), *kind);
        }
    }

    #[test]
    fn a_code_of_a_later_server_is_unknown() {
        assert_eq!(kind_of(Code(99)), ErrorKind::Unknown);
    }
}
