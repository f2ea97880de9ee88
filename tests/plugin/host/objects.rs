//! Backend, models and instances of the stand-in server.

use std::ffi::{CString, c_char, c_void};

use super::server::{self, Error, Message};
use super::{Host, Report, at, book, c, call, end, make, put, request};

/// Triton's numbers of kinds of instances.
pub(crate) const KIND_CPU: u32 = 1;
pub(crate) const KIND_GPU: u32 = 2;

pub(crate) struct Backend {
    name: CString,
    /// What the command line says, as JSON.
    pub(crate) options: String,
    config: *mut Message,
    state: *mut c_void,
}

pub(crate) struct Model {
    name: CString,
    directory: CString,
    pub(crate) config: String,
    pub(crate) state: *mut c_void,
    pub(crate) backend: *mut Backend,
}

pub(crate) struct Instance {
    name: CString,
    kind: u32,
    device: i32,
    model: *mut Model,
    pub(crate) state: *mut c_void,
}

impl Host {
    pub(crate) fn backend(&self) -> *mut Backend {
        let (options, null) = (r#"{"cmdline":{}}"#.to_owned(), std::ptr::null_mut());
        make("backend", Backend { name: c("gesso"), options, config: null, state: std::ptr::null_mut() })
    }

    /// A model that mirrors `image`, [H, W, C] of bytes, to `pixels`: `plugin/models/make.py`.
    pub(crate) fn model(&self) -> *mut Model {
        self.model_of("prepare", "{}")
    }

    /// A model of `plugin/models` with the configuration that the server hands over.
    pub(crate) fn model_of(&self, name: &str, config: &str) -> *mut Model {
        let folder = format!("{}/../../tests/plugin/models/{name}", env!("CARGO_MANIFEST_DIR"));
        self.model_in(&folder, name, config)
    }

    /// A model of a folder.
    pub(crate) fn model_in(&self, directory: &str, name: &str, config: &str) -> *mut Model {
        let (name, directory, config) = (c(name), c(directory), config.to_owned());
        make("model", Model { name, directory, config, state: std::ptr::null_mut(), backend: self.backend() })
    }

    /// An instance on the host.
    pub(crate) fn instance(&self, model: *mut Model) -> *mut Instance {
        self.instance_of(model, KIND_CPU, 0)
    }

    pub(crate) fn instance_of(&self, model: *mut Model, kind: u32, device: i32) -> *mut Instance {
        let (name, state) = (c("prepare_0"), std::ptr::null_mut());
        make("instance", Instance { name, kind, device, model, state })
    }
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_BackendName(backend: *mut Backend, out: *mut *const c_char) -> *mut Error {
    call("TRITONBACKEND_BackendName", || put(out, at("backend", backend)?.name.as_ptr()))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_BackendConfig(backend: *mut Backend, out: *mut *mut Message) -> *mut Error {
    call("TRITONBACKEND_BackendConfig", || {
        let backend = at("backend", backend)?;
        if backend.config.is_null() {
            backend.config = server::message(&backend.options);
        }
        put(out, backend.config)
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_BackendState(backend: *mut Backend, out: *mut *mut c_void) -> *mut Error {
    call("TRITONBACKEND_BackendState", || put(out, at("backend", backend)?.state))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_BackendSetState(backend: *mut Backend, state: *mut c_void) -> *mut Error {
    call("TRITONBACKEND_BackendSetState", || {
        at("backend", backend)?.state = state;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelBackend(model: *mut Model, out: *mut *mut Backend) -> *mut Error {
    call("TRITONBACKEND_ModelBackend", || put(out, at("model", model)?.backend))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelName(model: *mut Model, out: *mut *const c_char) -> *mut Error {
    call("TRITONBACKEND_ModelName", || put(out, at("model", model)?.name.as_ptr()))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelVersion(model: *mut Model, out: *mut u64) -> *mut Error {
    call("TRITONBACKEND_ModelVersion", || at("model", model).and_then(|_| put(out, 1)))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelRepository(
    model: *mut Model,
    kind: *mut u32,
    out: *mut *const c_char,
) -> *mut Error {
    call("TRITONBACKEND_ModelRepository", || {
        put(kind, 0)?;
        put(out, at("model", model)?.directory.as_ptr())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelConfig(
    model: *mut Model,
    version: u32,
    out: *mut *mut Message,
) -> *mut Error {
    call("TRITONBACKEND_ModelConfig", || {
        assert_eq!(version, 1);
        put(out, server::message(&at("model", model)?.config))
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelSetConfig(
    model: *mut Model,
    version: u32,
    config: *mut Message,
) -> *mut Error {
    call("TRITONBACKEND_ModelSetConfig", || {
        assert_eq!(version, 1);
        at("model", model)?.config = server::json(config)?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelAutoCompleteConfig(model: *mut Model, out: *mut bool) -> *mut Error {
    call("TRITONBACKEND_ModelAutoCompleteConfig", || at("model", model).and_then(|_| put(out, true)))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelState(model: *mut Model, out: *mut *mut c_void) -> *mut Error {
    call("TRITONBACKEND_ModelState", || put(out, at("model", model)?.state))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelSetState(model: *mut Model, state: *mut c_void) -> *mut Error {
    call("TRITONBACKEND_ModelSetState", || {
        at("model", model)?.state = state;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelInstanceName(
    instance: *mut Instance,
    out: *mut *const c_char,
) -> *mut Error {
    call("TRITONBACKEND_ModelInstanceName", || put(out, at("instance", instance)?.name.as_ptr()))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelInstanceKind(instance: *mut Instance, out: *mut u32) -> *mut Error {
    call("TRITONBACKEND_ModelInstanceKind", || put(out, at("instance", instance)?.kind))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelInstanceDeviceId(instance: *mut Instance, out: *mut i32) -> *mut Error {
    call("TRITONBACKEND_ModelInstanceDeviceId", || put(out, at("instance", instance)?.device))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelInstanceModel(instance: *mut Instance, out: *mut *mut Model) -> *mut Error {
    call("TRITONBACKEND_ModelInstanceModel", || put(out, at("instance", instance)?.model))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelInstanceState(instance: *mut Instance, out: *mut *mut c_void) -> *mut Error {
    call("TRITONBACKEND_ModelInstanceState", || put(out, at("instance", instance)?.state))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelInstanceSetState(instance: *mut Instance, state: *mut c_void) -> *mut Error {
    call("TRITONBACKEND_ModelInstanceSetState", || {
        at("instance", instance)?.state = state;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelInstanceReportStatistics(
    instance: *mut Instance,
    request: *mut request::Request,
    success: bool,
    start: u64,
    compute_start: u64,
    compute_end: u64,
    end: u64,
) -> *mut Error {
    call("TRITONBACKEND_ModelInstanceReportStatistics", || {
        at("instance", instance)?;
        let request = at("request", request)?.id.to_str().unwrap().to_owned();
        book().reports.push(Report { request, success, times: [start, compute_start, compute_end, end] });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ModelInstanceReportBatchStatistics(
    instance: *mut Instance,
    batch_size: u64,
    start: u64,
    compute_start: u64,
    compute_end: u64,
    end: u64,
) -> *mut Error {
    call("TRITONBACKEND_ModelInstanceReportBatchStatistics", || {
        at("instance", instance)?;
        assert!(start <= compute_start && compute_start <= compute_end && compute_end <= end);
        book().batches.push(batch_size);
        Ok(())
    })
}

/// Ends a backend, which owns its configuration.
pub(crate) fn drop_backend(backend: *mut Backend) {
    let config = at("backend", backend).unwrap().config;
    if !config.is_null() {
        end("message", config).unwrap();
    }
    end("backend", backend).unwrap();
}

/// What the plugin attached to a model.
pub(crate) fn state_of(model: *mut Model) -> *mut c_void {
    at("model", model).unwrap().state
}
