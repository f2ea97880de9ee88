//! Errors and texts in the words of C: the crate's kinds and Triton's codes are the same eight classes.

use std::ffi::{CStr, CString};
use std::ptr::NonNull;

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
fn code_of(kind: ErrorKind) -> Code {
    CODES.iter().find(|(k, _)| *k == kind).map_or(Code::TRITONSERVER_ERROR_UNKNOWN, |(_, code)| *code)
}

/// The kind of `code`; codes that we do not know are of the kind that says so.
pub(super) fn kind_of(code: Code) -> ErrorKind {
    CODES.iter().find(|(_, c)| *c == code).map_or(ErrorKind::Unknown, |(kind, _)| *kind)
}

/// `text` for C. A text with a NUL inside cannot be said: the NUL becomes the replacement character.
pub(super) fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default())
}

/// Triton's object for `error`, by its function `new`. Null would read as success: a request that nobody answers, a
/// model without a state. So where Triton cannot make an object with this text, it is one with a short text, and where
/// not even that, the process ends, as when memory runs out elsewhere.
pub(super) fn object_of(
    error: &Error,
    new: impl Fn(Code, &CStr) -> *mut sys::TRITONSERVER_Error,
) -> NonNull<sys::TRITONSERVER_Error> {
    let code = code_of(error.kind());
    let made = NonNull::new(new(code, &c_string(&error.to_string())));
    made.or_else(|| NonNull::new(new(code, c"an error whose text does not fit into memory")))
        .unwrap_or_else(|| std::process::abort())
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
