//! The stand-in server's functions that came after backend API 1.0. A test that leaves this file out is an old server.

use std::ffi::{c_char, c_void};

use crate::host::request::Request;
use crate::host::server::Error;
use crate::host::{Host, at, book, call, end, make, put, text};

/// What the plugin answers about itself.
pub(crate) struct Attributes;

pub(crate) struct Parameter(String);

pub(crate) struct Family(String);

pub(crate) struct Metric(String);

impl Host {
    pub(crate) fn attributes(&self) -> *mut Attributes {
        make("attributes", Attributes)
    }
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    attributes: *mut Attributes,
    kind: u32,
    count: u64,
    devices: *const u64,
    device_count: u64,
) -> *mut Error {
    call("TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup", || {
        at("attributes", attributes)?;
        assert!(devices.is_null());
        book().attributes.push(format!("kind {kind} count {count} devices {device_count}"));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    attributes: *mut Attributes,
    enabled: bool,
) -> *mut Error {
    call("TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading", || {
        at("attributes", attributes)?;
        book().attributes.push(format!("parallel {enabled}"));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestIsCancelled(request: *mut Request, out: *mut bool) -> *mut Error {
    call("TRITONBACKEND_RequestIsCancelled", || put(out, at("request", request)?.cancelled))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestParameterCount(request: *mut Request, out: *mut u32) -> *mut Error {
    call("TRITONBACKEND_RequestParameterCount", || put(out, at("request", request)?.parameters.len() as u32))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestParameter(
    request: *mut Request,
    index: u32,
    name: *mut *const c_char,
    kind: *mut u32,
    value: *mut *const c_void,
) -> *mut Error {
    call("TRITONBACKEND_RequestParameter", || {
        let (key, of, text) = &at("request", request)?.parameters[index as usize];
        put(name, key.as_ptr())?;
        put(kind, *of)?;
        put(value, text.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_ParameterNew(
    name: *const c_char,
    kind: u32,
    value: *const c_void,
) -> *mut Parameter {
    assert_eq!(kind, 0, "only strings");
    make("parameter", Parameter(format!("{}=\"{}\"", text(name), text(value.cast()))))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_ParameterDelete(parameter: *mut Parameter) {
    if let Err(violation) = end("parameter", parameter) {
        book().violations.push(violation);
    }
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_MetricFamilyNew(
    out: *mut *mut Family,
    kind: u32,
    name: *const c_char,
    help: *const c_char,
) -> *mut Error {
    call("TRITONSERVER_MetricFamilyNew", || {
        assert!(kind == 0 && !text(help).is_empty());
        // Not one of the test's own: the plugin keeps it for the whole process.
        put(out, Box::into_raw(Box::new(Family(text(name)))))
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_MetricNew(
    out: *mut *mut Metric,
    family: *mut Family,
    labels: *mut *mut Parameter,
    count: u64,
) -> *mut Error {
    call("TRITONSERVER_MetricNew", || {
        // SAFETY: the plugin passes `count` labels.
        let labels = unsafe { std::slice::from_raw_parts(labels, count as usize) };
        let labels = labels
            .iter()
            .map(|&label| at("parameter", label).map(|label| label.0.clone()))
            .collect::<Result<Vec<_>, _>>()?;
        // SAFETY: families are never freed.
        let name = unsafe { &(*family).0 };
        put(out, make("metric", Metric(format!("{name}{{{}}}", labels.join(",")))))
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_MetricDelete(metric: *mut Metric) -> *mut Error {
    call("TRITONSERVER_MetricDelete", || end("metric", metric))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_MetricIncrement(metric: *mut Metric, value: f64) -> *mut Error {
    call("TRITONSERVER_MetricIncrement", || {
        let name = at("metric", metric)?.0.clone();
        *book().metrics.entry(name).or_default() += value;
        Ok(())
    })
}
