//! The built plugin, loaded as a server loads it, and calls of its entry points.

use std::mem::ManuallyDrop;
use std::path::PathBuf;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::host::Failure;
use crate::host::objects::{Backend, Instance, Model};
use crate::host::request::Request;
use crate::host::server::{Error, take};

/// The plugin. It stays loaded: a test that is over may have left threads in it.
pub(crate) struct Plugin(ManuallyDrop<Library>);

/// The library that cargo built for this test, or the one that `GESSO_PLUGIN` names, like a release build.
pub(crate) fn path() -> PathBuf {
    let built = || std::env::current_exe().unwrap().with_file_name("libtriton_gesso.so");
    std::env::var_os("GESSO_PLUGIN").map_or_else(built, PathBuf::from)
}

impl Plugin {
    pub(crate) fn load() -> Plugin {
        // SAFETY: loading runs no code of the plugin but Rust's start-up.
        Plugin(ManuallyDrop::new(unsafe { Library::open(Some(path()), RTLD_NOW | RTLD_LOCAL) }.unwrap()))
    }

    /// Calls an entry point that takes one handle.
    pub(crate) fn call<T>(&self, entry: &str, handle: *mut T) -> Result<(), Failure> {
        // SAFETY: the entry points of this signature are named by the callers below.
        let function =
            unsafe { self.0.get::<unsafe extern "C" fn(*mut T) -> *mut Error>(entry.as_bytes()) }.unwrap();
        // SAFETY: the handle is one of the stand-in server's, or null on purpose.
        take(unsafe { function(handle) })
    }

    pub(crate) fn initialize(&self, backend: *mut Backend) -> Result<(), Failure> {
        self.call("TRITONBACKEND_Initialize", backend)
    }

    pub(crate) fn finalize(&self, backend: *mut Backend) -> Result<(), Failure> {
        self.call("TRITONBACKEND_Finalize", backend)
    }

    pub(crate) fn model_initialize(&self, model: *mut Model) -> Result<(), Failure> {
        self.call("TRITONBACKEND_ModelInitialize", model)
    }

    pub(crate) fn model_finalize(&self, model: *mut Model) -> Result<(), Failure> {
        self.call("TRITONBACKEND_ModelFinalize", model)
    }

    pub(crate) fn instance_initialize(&self, instance: *mut Instance) -> Result<(), Failure> {
        self.call("TRITONBACKEND_ModelInstanceInitialize", instance)
    }

    pub(crate) fn instance_finalize(&self, instance: *mut Instance) -> Result<(), Failure> {
        self.call("TRITONBACKEND_ModelInstanceFinalize", instance)
    }

    pub(crate) fn execute(
        &self,
        instance: *mut Instance,
        requests: &mut [*mut Request],
    ) -> Result<(), Failure> {
        type Execute = unsafe extern "C" fn(*mut Instance, *mut *mut Request, u32) -> *mut Error;
        // SAFETY: this is the signature of the entry point.
        let execute = unsafe { self.0.get::<Execute>(b"TRITONBACKEND_ModelInstanceExecute") }.unwrap();
        // SAFETY: instance and requests are the stand-in server's, or broken on purpose.
        take(unsafe { execute(instance, requests.as_mut_ptr(), requests.len() as u32) })
    }

    pub(crate) fn backend_attribute<A>(
        &self,
        backend: *mut Backend,
        attributes: *mut A,
    ) -> Result<(), Failure> {
        type Get<A> = unsafe extern "C" fn(*mut Backend, *mut A) -> *mut Error;
        // SAFETY: this is the signature of the entry point.
        let get = unsafe { self.0.get::<Get<A>>(b"TRITONBACKEND_GetBackendAttribute") }.unwrap();
        // SAFETY: both are the stand-in server's.
        take(unsafe { get(backend, attributes) })
    }
}
