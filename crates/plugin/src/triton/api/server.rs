//! The server that loaded this library, as the functions it offers. They are looked up by name in the running
//! process, once: those of backend API 1.0 must be there, newer ones may be missing.

use std::ffi::{CStr, CString, c_char};
use std::ptr::NonNull;
use std::sync::OnceLock;

use libloading::os::unix::Library;

use super::error::{ServerError, code_of};
use crate::triton::sys;
use gesso::error::{Error, Result};

/// The major version of the backend API that this library is written for.
const API_MAJOR: u32 = 1;

/// Triton's functions. Every other type of this folder holds a reference to it, which proves that they were found.
pub struct Server {
    pub(super) required: sys::Required,
    pub(super) newer: sys::Newer,
}

/// Levels of the server's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Level {
    Error,
    Warn,
    Info,
    Verbose,
}

impl Level {
    fn raw(self) -> sys::TRITONSERVER_LogLevel {
        match self {
            Level::Error => sys::TRITONSERVER_LogLevel::TRITONSERVER_LOG_ERROR,
            Level::Warn => sys::TRITONSERVER_LogLevel::TRITONSERVER_LOG_WARN,
            Level::Info => sys::TRITONSERVER_LogLevel::TRITONSERVER_LOG_INFO,
            Level::Verbose => sys::TRITONSERVER_LogLevel::TRITONSERVER_LOG_VERBOSE,
        }
    }
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

    fn look_up() -> Result<Server> {
        let missing =
            |error| Error::unsupported(format!("a function of Triton's backend API 1.0 is missing: {error}"));
        // SAFETY: the process is loaded already, so opening it runs nothing; the headers state the signatures that
        // Triton's functions with these names have.
        let required = unsafe { sys::Required::from_library(Library::this()) }.map_err(missing)?;
        // SAFETY: as above.
        let newer = unsafe { sys::Newer::from_library(Library::this()) }.map_err(missing)?;
        Ok(Server { required, newer })
    }

    /// An error object for a process in which [`Server::get`] failed with `error`. Null, which reads as success, when
    /// even errors cannot be made: then there is no way to say anything.
    pub(in crate::triton) fn refusal(error: &Error) -> *mut sys::TRITONSERVER_Error {
        type New =
            unsafe extern "C" fn(sys::TRITONSERVER_Error_Code, *const c_char) -> *mut sys::TRITONSERVER_Error;
        let process = Library::this();
        // SAFETY: a function of this name is Triton's, with the signature of the header.
        let Ok(new) = (unsafe { process.get::<New>(b"TRITONSERVER_ErrorNew\0") }) else {
            return std::ptr::null_mut();
        };
        let text = c_string(&error.to_string());
        // SAFETY: the text ends with NUL and outlives the call, which copies it.
        unsafe { new(code_of(error.kind()), text.as_ptr()) }
    }

    /// Major and minor version of the backend API that the server offers.
    ///
    /// # Errors
    /// What Triton says.
    pub fn api_version(&self) -> Result<(u32, u32)> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both out pointers are valid for the call.
        self.check(unsafe { self.required.TRITONBACKEND_ApiVersion(&raw mut major, &raw mut minor) })?;
        Ok((major, minor))
    }

    /// # Errors
    /// `Unsupported` when the server's API is not one that this library can talk to. Minor versions only add functions,
    /// and what is missing is done without, so only the major version counts.
    pub fn check_api_version(&self) -> Result<()> {
        let (major, minor) = self.api_version()?;
        if major == API_MAJOR {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "the server offers backend API {major}.{minor}, expected a version {API_MAJOR}.x"
        )))
    }

    /// Whether the server prints messages of `level`.
    pub fn log_enabled(&self, level: Level) -> bool {
        // SAFETY: the function takes any level and has no other precondition.
        unsafe { self.required.TRITONSERVER_LogIsEnabled(level.raw()) }
    }

    /// Prints `message` into the server's log, as said at `line` of `file`. What goes wrong is lost: there is no other
    /// place to say it.
    pub fn log(&self, level: Level, file: &str, line: u32, message: &str) {
        let (file, message) = (c_string(file), c_string(message));
        let line = i32::try_from(line).unwrap_or(0);
        // SAFETY: both texts end with NUL and outlive the call.
        let raw = unsafe {
            self.required.TRITONSERVER_LogMessage(level.raw(), file.as_ptr(), line, message.as_ptr())
        };
        let _ = self.check(raw);
    }

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

/// `text` for C. A text with a NUL inside cannot be said: the NUL becomes the replacement character.
pub(super) fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default())
}

/// `raw`, or an error that names `what` was expected.
pub(super) fn not_null<T>(raw: *mut T, what: &str) -> Result<NonNull<T>> {
    NonNull::new(raw).ok_or_else(|| Error::internal(format!("expected {what}, found a null pointer")))
}
