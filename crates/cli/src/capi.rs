//! The command line as a function of C, for programs that hold it as a shared library: the Python package's `gesso`.
#![expect(unsafe_code, reason = "this is a boundary to C")]

use std::ffi::{CStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use std::panic::catch_unwind;

// This crate's library exports as little as the plugin.
core::arch::global_asm!(include_str!("../../plugin/src/triton/hidden.s"));

/// The exit status of a program that panicked, as Rust's own.
const PANICKED: u8 = 101;

/// Runs the command line `argv`, of which the first is the program's name; returns the exit status. It prints to the
/// process's own output and may end the process, when nobody reads what it prints.
///
/// # Safety
/// `argv` has `argc` pointers to texts that end with a zero, as C's `main` gets them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_main(argc: c_int, argv: *const *const c_char) -> c_int {
    let count = if argv.is_null() { 0 } else { usize::try_from(argc).unwrap_or(0) };
    let arguments: Vec<OsString> = (0..count)
        .map(|i| {
            // SAFETY: the caller gives so many pointers.
            let text = unsafe { *argv.wrapping_add(i) };
            // SAFETY: each is a text that ends with a zero.
            let text = unsafe { CStr::from_ptr(text) };
            OsString::from_vec(text.to_bytes().to_vec())
        })
        .collect();
    // What panicked has said so already.
    c_int::from(catch_unwind(|| crate::main(arguments)).unwrap_or(PANICKED))
}
