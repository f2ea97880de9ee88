//! What the server writes of one request where it traces.

use std::ffi::CString;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::request::Request;
use super::server::Server;
use crate::triton::sys;
use gesso::error::{Error, Result};

/// The trace of a request that the server traces.
pub struct Trace<'r> {
    server: &'static Server,
    raw: NonNull<sys::TRITONSERVER_InferenceTrace>,
    request: PhantomData<&'r Request>,
}

impl Request {
    /// Its trace; `None` where the server does not trace it, and where it is too old to say.
    pub fn trace(&self) -> Option<Trace<'_>> {
        let server = self.server();
        let trace = server.newer.TRITONBACKEND_RequestTrace.as_ref().ok()?;
        // SAFETY: we own the request and did not release it.
        let raw = server.out(std::ptr::null_mut(), |out| unsafe { trace(self.as_ptr(), out) }).ok()?;
        Some(Trace { server, raw: NonNull::new(raw)?, request: PhantomData })
    }
}

impl Trace<'_> {
    /// Adds what lasted from `start` to `end`, by [`now`](super::now): two events, of which OpenTelemetry makes a span.
    ///
    /// # Errors
    /// What Triton says; invalid for a name with a NUL.
    pub fn span(&self, name: &str, start: u64, end: u64) -> Result<()> {
        self.event(&format!("{name}_START"), start)?;
        self.event(&format!("{name}_END"), end)
    }

    fn event(&self, name: &str, time: u64) -> Result<()> {
        let Ok(report) = &self.server.newer.TRITONSERVER_InferenceTraceReportActivity else { return Ok(()) };
        let name = CString::new(name).map_err(|_| Error::invalid("the name of a span holds a NUL"))?;
        // SAFETY: the trace lives as long as the request, which is borrowed; the name, which is copied, ends with NUL.
        self.server.check(unsafe { report(self.raw.as_ptr(), time, name.as_ptr()) })
    }
}
