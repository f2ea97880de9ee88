//! Errors as C has them: what a call or a sample failed with, and where. It must not know what failed.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use super::result::ResultHandle;
use super::size::{Out, Versioned};
use super::status::{Status, c_text, guard};
use super::types;
use crate::error::Error;

/// What a call or a sample failed with. Texts that say where are empty where nobody knows.
#[repr(C)]
pub struct ErrorInfo {
    /// `sizeof(gesso_error_info)`; the caller sets it.
    pub struct_size: usize,
    /// The `gesso_status`; `GESSO_STATUS_OK` if nothing failed.
    pub status: i32,
    /// All of the text, for people.
    pub message: *const c_char,
    /// The part of it behind the name of the operator or reader that failed; all of it where none is named.
    pub reason: *const c_char,
    /// The name in the pipeline of the operator that failed. Operators that run as one have ` + ` between their names.
    pub operator_name: *const c_char,
    /// The name in the pipeline of the reader that failed, or of the input whose source did.
    pub source_name: *const c_char,
    /// The path of the file that failed.
    pub file: *const c_char,
}

// SAFETY: numbers and pointers, the first of which is the size.
unsafe impl Versioned for ErrorInfo {
    const NAME: &'static str = "gesso_error_info";
    const FIRST: usize = 56;
}

/// An error with its texts as C has them.
#[derive(Default)]
pub(super) struct Failure {
    status: Option<Status>,
    pub(super) message: CString,
    reason: CString,
    operator: CString,
    source: CString,
    file: CString,
}

impl Failure {
    pub(super) fn of(error: &Error) -> Self {
        let given = |text: Option<&str>| text.map(c_text).unwrap_or_default();
        Self {
            status: Some(error.kind().into()),
            message: c_text(&error.to_string()),
            reason: c_text(&error.reason()),
            operator: given(error.operator()),
            source: given(error.source_name()),
            file: given(error.file()),
        }
    }

    pub(super) fn status(&self) -> Status {
        self.status.unwrap_or(Status::Ok)
    }

    /// For C; points into `self`.
    fn info(&self) -> ErrorInfo {
        ErrorInfo {
            struct_size: size_of::<ErrorInfo>(),
            status: self.status() as i32,
            message: self.message.as_ptr(),
            reason: self.reason.as_ptr(),
            operator_name: self.operator.as_ptr(),
            source_name: self.source.as_ptr(),
            file: self.file.as_ptr(),
        }
    }
}

thread_local! {
    static LAST: RefCell<Failure> = RefCell::default();
}

/// Keeps what a call of this thread failed with.
pub(super) fn keep(error: &Error) {
    LAST.with(|last| *last.borrow_mut() = Failure::of(error));
}

/// The text of what was kept last.
pub(super) fn last_message() -> *const c_char {
    LAST.with(|last| last.borrow().message.as_ptr())
}

/// Fills `error`, whose `struct_size` is set, with what the last call of this thread failed with that did not return
/// `GESSO_STATUS_OK`: `gesso_last_error` in its parts. The texts are the library's, and live until the next call of
/// this thread that fails. Any thread; each has its own.
///
/// # Safety
/// `error` points at a struct of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_last_error_info(error: *mut ErrorInfo) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new("error", error) }?;
        LAST.with(|last| out.write(&last.borrow().info()));
        Ok(())
    })
}

/// Fills `error`, whose `struct_size` is set, with what sample `sample` failed with; its `status` is `GESSO_STATUS_OK`,
/// and its texts are empty, if it did not. The texts live as long as the result. Any thread.
///
/// # Safety
/// `result` is valid; `error` points at a struct of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_sample_error(
    result: *const ResultHandle,
    sample: usize,
    error: *mut ErrorInfo,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let data = &unsafe { types::reference("result", result) }?.0;
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new("error", error) }?;
        match data.failure(sample)? {
            Some(failure) => out.write(&failure.info()),
            None => out.write(&NONE),
        }
        Ok(())
    })
}

/// What stands for a sample that did not fail.
const NONE: ErrorInfo = ErrorInfo {
    struct_size: size_of::<ErrorInfo>(),
    status: Status::Ok as i32,
    message: c"".as_ptr(),
    reason: c"".as_ptr(),
    operator_name: c"".as_ptr(),
    source_name: c"".as_ptr(),
    file: c"".as_ptr(),
};
