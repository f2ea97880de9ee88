//! Statuses, the last error of each thread, and the fence that no panic passes.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::types::GESSO_ABI_VERSION;
use crate::error::{Error, ErrorKind, Result};

/// What became of a call.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It did what it should.
    Ok = 0,
    /// Nothing better is known.
    Unknown = 1,
    /// A defect of the library, or of one that it calls.
    Internal = 2,
    /// Something that was named does not exist.
    NotFound = 3,
    /// The caller's data or pipeline is wrong.
    InvalidArgument = 4,
    /// A resource is used up or missing now, such as memory, a GPU, or an instance that is busy.
    Unavailable = 5,
    /// Valid, but this version or this device cannot do it.
    Unsupported = 6,
    /// A name is taken.
    AlreadyExists = 7,
    /// Nobody wants the answer any more.
    Cancelled = 8,
}

impl From<ErrorKind> for Status {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Unknown => Status::Unknown,
            ErrorKind::Internal => Status::Internal,
            ErrorKind::NotFound => Status::NotFound,
            ErrorKind::InvalidArg => Status::InvalidArgument,
            ErrorKind::Unavailable => Status::Unavailable,
            ErrorKind::Unsupported => Status::Unsupported,
            ErrorKind::AlreadyExists => Status::AlreadyExists,
            ErrorKind::Cancelled => Status::Cancelled,
        }
    }
}

/// What a function of a library failed with; `None` when it did not.
pub(super) fn kind(code: i32) -> Option<ErrorKind> {
    Some(match code {
        code if code == Status::Ok as i32 => return None,
        code if code == Status::Internal as i32 => ErrorKind::Internal,
        code if code == Status::NotFound as i32 => ErrorKind::NotFound,
        code if code == Status::InvalidArgument as i32 => ErrorKind::InvalidArg,
        code if code == Status::Unavailable as i32 => ErrorKind::Unavailable,
        code if code == Status::Unsupported as i32 => ErrorKind::Unsupported,
        code if code == Status::AlreadyExists as i32 => ErrorKind::AlreadyExists,
        code if code == Status::Cancelled as i32 => ErrorKind::Cancelled,
        _ => ErrorKind::Unknown,
    })
}

/// An error and its text.
#[derive(Default)]
struct Last {
    error: Option<Error>,
    text: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// What the last call of this thread that failed did so with.
pub(super) fn last() -> Option<Error> {
    LAST.with(|last| last.borrow().error.clone())
}

/// Text as C has it; a zero byte ends nothing early.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Runs `body`. An error, and the text of a panic, becomes the thread's last error.
///
/// Nothing that `body` changes is looked at after a panic but to free it.
pub(super) fn guard(body: impl FnOnce() -> Result<()>) -> Status {
    let done =
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
    let Err(error) = done else { return Status::Ok };
    let (kind, text) = (error.kind(), c_text(&error.to_string()));
    LAST.with(|last| *last.borrow_mut() = Last { error: Some(error), text });
    kind.into()
}

/// Runs `body`, which cannot say that it failed.
pub(super) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// The version of this interface that the library has, to compare with `GESSO_ABI_VERSION` of the header. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gesso_abi_version() -> u32 {
    GESSO_ABI_VERSION
}

/// The version of the library, such as `0.1.0`. Never freed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gesso_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Why the last call of this thread that did not return `GESSO_STATUS_OK` failed; empty when none has. The text is the
/// library's, and lives until the next call of this thread that fails. Any thread; each has its own.
#[unsafe(no_mangle)]
pub extern "C" fn gesso_last_error() -> *const c_char {
    guarded(c"".as_ptr(), || LAST.with(|last| last.borrow().text.as_ptr()))
}
