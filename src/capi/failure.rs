//! Errors as C has them: what a call or a sample failed with, and where. It must not know what failed.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use super::size::{Out, Versioned};
use super::status::{Status, c_text, guard, last};
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
    pub(super) fn info(&self) -> ErrorInfo {
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
    /// What this thread was told last.
    static TOLD: RefCell<Failure> = RefCell::default();
}

/// Fills `error`, whose `struct_size` is set, with what the last call of this thread failed with that did not return
/// `GESSO_STATUS_OK`: `gesso_last_error` in its parts. The texts are the library's, and live until the next call of
/// this function by this thread. Any thread; each has its own.
///
/// # Safety
/// `error` points at a struct of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_last_error_info(error: *mut ErrorInfo) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new("error", error) }?;
        TOLD.with(|told| {
            let mut told = told.borrow_mut();
            *told = last().as_ref().map(Failure::of).unwrap_or_default();
            out.write(&told.info());
        });
        Ok(())
    })
}
