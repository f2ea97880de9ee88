//! The plugin as Triton Inference Server sees it: the functions that it calls. It must not know operators or plans;
//! nothing imports it.
//!
//! ```text
//! sys       Triton's C API as bindgen reads it          api       the same, safe
//! guard     no panic and no error leaves unseen         log       events to the server's log
//! model     a loaded model: plans, devices              instance  its lanes, which work on batches
//! lane      what works on one batch, its device         state     how ours is attached to Triton's handles
//! exchange  a request and the replies to it             execute   how requests are answered
//! options   the backend's settings from the command line  metrics   what a model counts
//! slow      the thread for requests that take long      allocator memory of models that have gone
//! crowd     whether batches wait for one another          streams   videos that come in pieces, a request each
//! folder    files that clients name                 hidden    names that it does not export
//! record    requests and answers into files          addresses files that clients name by address
//! arrivals  requests that wait for such files         clients   how much one client asks at a time
//! ```
//!
//! Every entry point is one [`guard`]ed closure that wraps the handles and calls a safe function of the same name.

#![expect(unsafe_code, reason = "this is the boundary to C")]

mod addresses;
mod allocator;
pub mod api;
mod arrivals;
mod brief;
mod clients;
mod crowd;
pub mod exchange;
mod execute;
mod folder;
mod guard;
mod hidden;
mod instance;
mod lane;
mod log;
mod metrics;
mod model;
mod options;
mod record;
mod slow;
mod state;
mod streams;
#[expect(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    clippy::expect_used,
    clippy::missing_safety_doc,
    clippy::semicolon_if_nothing_returned,
    clippy::too_many_arguments,
    clippy::undocumented_unsafe_blocks,
    reason = "generated: the C names, and what bindgen makes of them"
)]
pub mod sys;

use std::sync::Arc;

use api::{Attributes, Backend, Instance, InstanceKind, Model};
use guard::guard;
use instance::InstanceState;
use model::ModelState;
use options::Options;

use gesso::capi::library;
use gesso::error::{Context, Error, Result};
use gesso::pipeline;

/// Called once, when the library is loaded.
///
/// # Safety
/// For Triton to call, with a valid backend.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_Initialize(
    backend: *mut sys::TRITONBACKEND_Backend,
) -> *mut sys::TRITONSERVER_Error {
    guard("TRITONBACKEND_Initialize", |server| {
        // SAFETY: Triton passes a backend that is valid during the call.
        initialize(&unsafe { Backend::from_raw(server, backend) }?)
    })
}

/// Called once, before the library is unloaded.
///
/// # Safety
/// For Triton to call, with a valid backend.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_Finalize(
    backend: *mut sys::TRITONBACKEND_Backend,
) -> *mut sys::TRITONSERVER_Error {
    guard("TRITONBACKEND_Finalize", |server| {
        // SAFETY: Triton passes a backend that is valid during the call.
        finalize(&unsafe { Backend::from_raw(server, backend) }?)
    })
}

/// Called when Triton decides where to place models.
///
/// # Safety
/// For Triton to call, with a valid backend and attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_GetBackendAttribute(
    _backend: *mut sys::TRITONBACKEND_Backend,
    attributes: *mut sys::TRITONBACKEND_BackendAttribute,
) -> *mut sys::TRITONSERVER_Error {
    guard("TRITONBACKEND_GetBackendAttribute", |server| {
        // SAFETY: Triton passes attributes that are valid during the call.
        backend_attribute(&unsafe { Attributes::from_raw(server, attributes) }?)
    })
}

/// Called when a model is loaded.
///
/// # Safety
/// For Triton to call, with a valid model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInitialize(
    model: *mut sys::TRITONBACKEND_Model,
) -> *mut sys::TRITONSERVER_Error {
    guard("TRITONBACKEND_ModelInitialize", |server| {
        // SAFETY: Triton passes a model that is valid during the call.
        model_initialize(&unsafe { Model::from_raw(server, model) }?)
    })
}

/// Called when a model is unloaded, and when its initialization failed.
///
/// # Safety
/// For Triton to call, with a valid model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelFinalize(
    model: *mut sys::TRITONBACKEND_Model,
) -> *mut sys::TRITONSERVER_Error {
    guard("TRITONBACKEND_ModelFinalize", |server| {
        // SAFETY: Triton passes a model that is valid during the call.
        let detached = state::detach(&unsafe { Model::from_raw(server, model) }?);
        allocator::give_back();
        detached
    })
}

/// Called for each instance of a loaded model; for several at the same time, as we allow it.
///
/// # Safety
/// For Triton to call, with a valid instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceInitialize(
    instance: *mut sys::TRITONBACKEND_ModelInstance,
) -> *mut sys::TRITONSERVER_Error {
    guard("TRITONBACKEND_ModelInstanceInitialize", |server| {
        // SAFETY: Triton passes an instance that is valid until it is finalized, which frees what is attached.
        instance_initialize(&unsafe { Instance::from_raw(server, instance) }?)
    })
}

/// Called before the model is finalized, and when the instance's initialization failed. Waits for batches in flight.
///
/// # Safety
/// For Triton to call, with a valid instance that it gives no more requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceFinalize(
    instance: *mut sys::TRITONBACKEND_ModelInstance,
) -> *mut sys::TRITONSERVER_Error {
    guard("TRITONBACKEND_ModelInstanceFinalize", |server| {
        // SAFETY: Triton passes an instance that is valid during the call.
        state::detach(&unsafe { Instance::from_raw(server, instance) }?)
    })
}

/// Takes a batch of requests over, which may be answered after it returns. An error leaves all of them with Triton;
/// success means that they are ours.
///
/// # Safety
/// For Triton to call, with a valid instance and `count` valid requests; not twice at a time for one instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceExecute(
    instance: *mut sys::TRITONBACKEND_ModelInstance,
    requests: *mut *mut sys::TRITONBACKEND_Request,
    count: u32,
) -> *mut sys::TRITONSERVER_Error {
    guard("TRITONBACKEND_ModelInstanceExecute", |server| {
        // SAFETY: Triton passes an instance that is valid until it is finalized, which waits until its lanes have
        // answered.
        let instance = unsafe { Instance::from_raw(server, instance) }?;
        if requests.is_null() {
            return Err(Error::internal("expected requests, found a null pointer"));
        }
        // SAFETY: Triton passes as many requests as it says, and the array is not changed during the call.
        let requests = unsafe { std::slice::from_raw_parts(requests, count as usize) };
        let state = state::attached(&instance)?;
        // SAFETY: the requests are valid and distinct, and ours when this call returns success.
        let taken = unsafe { exchange::run(&instance, requests, |claims| state.execute(claims)) };
        // This error goes to the clients, not to the log.
        taken.inspect_err(|error| tracing::error!("requests are left with the server: {error}"))
    })
}

fn initialize(backend: &Backend) -> Result<()> {
    let server = backend.server();
    server.check_api_version()?;
    log::install(server);
    let config = backend.config()?;
    let options = Options::parse(&config)?;
    log::set_format(options.log_format);
    allocator::settle();
    let (major, minor) = server.api_version()?;
    tracing::info!(
        backend = backend.name()?,
        version = env!("CARGO_PKG_VERSION"),
        server_api = format_args!("{major}.{minor}"),
        "Gesso is loaded"
    );
    tracing::debug!(config, "backend configuration");
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    for path in &options.operators {
        // Models that do without its operators are served all the same.
        match library::load(path) {
            Ok(operators) => tracing::info!(library = %path.display(), ?operators, "operators are loaded"),
            Err(error) => tracing::warn!("{error}; models that use its operators will not load"),
        }
    }
    state::attach(backend, Arc::new(options))
}

fn finalize(backend: &Backend) -> Result<()> {
    tracing::info!(backend = backend.name()?, "Gesso is unloaded");
    state::detach(backend)
}

fn backend_attribute(attributes: &Attributes) -> Result<()> {
    // Triton takes the first kind that the host has.
    match pipeline::devices() {
        Ok(count) => {
            tracing::debug!(count, "devices found");
            attributes.prefer(InstanceKind::Gpu)?;
        }
        Err(error) => tracing::debug!("no device: {error}"),
    }
    attributes.prefer(InstanceKind::Cpu)?;
    attributes.set_parallel_loading(true)
}

fn model_initialize(model: &Model) -> Result<()> {
    let name = model.name()?;
    let state = ModelState::load(model).context(|| format!("model `{name}`"))?;
    tracing::info!(model = state.name, version = model.version()?, "model is loaded");
    state::attach(model, Arc::new(state))
}

fn instance_initialize(instance: &Instance) -> Result<()> {
    let model = state::attached(&instance.model()?)?;
    let name = model.name.clone();
    let state = InstanceState::new(instance, &model).context(|| format!("model `{name}`"))?;
    state::attach(instance, Arc::new(state))
}
