//! The plugin in a process that can make errors but is no Triton server: it says what is missing.
#![expect(unsafe_code, reason = "calls the plugin as C does")]
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

static SAID: Mutex<Vec<(u32, String)>> = Mutex::new(Vec::new());

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_ErrorNew(code: u32, message: *const c_char) -> *mut c_void {
    // SAFETY: the plugin passes a text that ends with NUL.
    let text = unsafe { CStr::from_ptr(message) }.to_str().unwrap().to_owned();
    SAID.lock().unwrap().push((code, text));
    std::ptr::without_provenance_mut(1)
}

#[test]
fn names_the_missing_function() {
    let path = std::env::current_exe().unwrap().with_file_name("libtriton_gesso.so");
    // SAFETY: loading runs no code of the plugin but Rust's start-up.
    let plugin = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.unwrap();
    type Entry = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
    // SAFETY: this is the signature of the entry point.
    let initialize = unsafe { plugin.get::<Entry>(b"TRITONBACKEND_Initialize") }.unwrap();
    // SAFETY: the plugin takes null for an error.
    let error = unsafe { initialize(std::ptr::null_mut()) };
    assert!(!error.is_null());
    let said = SAID.lock().unwrap();
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].0, 5);
    assert!(
        said[0].1.contains("backend API 1.0 is missing") && said[0].1.contains("TRITON"),
        "{}",
        said[0].1
    );
}
