//! Lines for the server's log.

use super::server::Server;
use super::words::c_string;
use crate::triton::sys;

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
}
