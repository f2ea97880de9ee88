//! Counters on the server's metrics port. It must not know what is counted.

use std::ffi::CString;
use std::ptr::NonNull;

use super::error::not_null;
use super::server::Server;
use super::words::c_string;
use crate::triton::sys;
use gesso::error::{Error, Result};

/// Counters of one name. Never freed: the server has one for all handles, which another one may still use.
pub struct Family {
    server: &'static Server,
    raw: NonNull<sys::TRITONSERVER_MetricFamily>,
}

// SAFETY: Triton's functions on metrics may be called from any thread; they lock where they write.
unsafe impl Send for Family {}
// SAFETY: as above.
unsafe impl Sync for Family {}

impl Family {
    /// The counters called `name`; `help` says what they count.
    ///
    /// # Errors
    /// `Unsupported` where the server is older than metrics of backends; what Triton says, as where metrics are turned
    /// off.
    pub fn new(server: &'static Server, name: &str, help: &str) -> Result<Self> {
        let Ok(new) = &server.newer.TRITONSERVER_MetricFamilyNew else {
            return Err(Error::unsupported("this server shows no metrics of backends"));
        };
        let (name, help) = (c_string(name), c_string(help));
        let raw = server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the out pointer is valid; both texts end with NUL and are copied by the call.
            unsafe {
                let counter = sys::TRITONSERVER_MetricKind::TRITONSERVER_METRIC_KIND_COUNTER;
                new(out, counter, name.as_ptr(), help.as_ptr())
            }
        })?;
        Ok(Self { server, raw: not_null(raw, "a family of metrics")? })
    }

    /// The counter with these labels, name and value of each.
    ///
    /// # Errors
    /// What Triton says.
    pub fn counter(&self, labels: &[(&str, &str)]) -> Result<Counter> {
        let Ok(new) = &self.server.newer.TRITONSERVER_MetricNew else {
            return Err(Error::unsupported("this server shows no metrics of backends"));
        };
        let owned = labels
            .iter()
            .map(|(name, value)| Label::new(self.server, &c_string(name), &c_string(value)))
            .collect::<Result<Vec<_>>>()?;
        let mut raw: Vec<_> = owned.iter().map(|label| label.raw.as_ptr().cast_const()).collect();
        let metric = self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the family is never freed; `raw` holds as many valid labels as we say, which the call copies.
            unsafe { new(out, self.raw.as_ptr(), raw.as_mut_ptr(), raw.len() as u64) }
        })?;
        Ok(Counter { server: self.server, raw: not_null(metric, "a metric")? })
    }
}

/// A number that grows; gone from the metrics port when the last one with its labels is dropped.
pub struct Counter {
    server: &'static Server,
    raw: NonNull<sys::TRITONSERVER_Metric>,
}

// SAFETY: Triton's functions on metrics may be called from any thread; they lock where they write.
unsafe impl Send for Counter {}
// SAFETY: as above.
unsafe impl Sync for Counter {}

impl Counter {
    /// Adds `value`, which must not be negative.
    ///
    /// # Errors
    /// What Triton says.
    pub fn add(&self, value: f64) -> Result<()> {
        let Ok(increment) = &self.server.newer.TRITONSERVER_MetricIncrement else { return Ok(()) };
        // SAFETY: we own the metric and did not delete it.
        self.server.check(unsafe { increment(self.raw.as_ptr(), value) })
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let Ok(delete) = &self.server.newer.TRITONSERVER_MetricDelete else { return };
        // SAFETY: we own the metric, and nothing uses it after `drop`.
        let deleted = unsafe { delete(self.raw.as_ptr()) };
        if let Err(error) = self.server.check(deleted) {
            tracing::warn!("cannot delete a metric: {error}");
        }
    }
}

/// One label, owned.
struct Label {
    server: &'static Server,
    raw: NonNull<sys::TRITONSERVER_Parameter>,
}

impl Label {
    fn new(server: &'static Server, name: &CString, value: &CString) -> Result<Self> {
        let Ok(new) = &server.newer.TRITONSERVER_ParameterNew else {
            return Err(Error::unsupported("this server has no parameters"));
        };
        let text = sys::TRITONSERVER_ParameterType::TRITONSERVER_PARAMETER_STRING;
        // SAFETY: both texts end with NUL and are copied by the call; a string's value is its text.
        let raw = unsafe { new(name.as_ptr(), text, value.as_ptr().cast()) };
        Ok(Self { server, raw: not_null(raw, "a parameter")? })
    }
}

impl Drop for Label {
    fn drop(&mut self) {
        let Ok(delete) = &self.server.newer.TRITONSERVER_ParameterDelete else { return };
        // SAFETY: we own the parameter, and nothing uses it after `drop`.
        unsafe { delete(self.raw.as_ptr()) };
    }
}
