//! Where Triton's functions are in the running process: among those that the program shows to every library, or in the
//! server's own library alone. The latter is so where Python loads the server: what its extension modules need, it
//! shows to nobody else.

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;

use libloading::os::unix::{Library, RTLD_LAZY};

/// A library of the process that has `function`; the program itself when it has it, or when none has.
pub(super) fn library_with(function: &CStr) -> Library {
    let program = Library::this();
    if has(&program, function) {
        return program;
    }
    loaded().iter().filter_map(|path| again(path)).find(|library| has(library, function)).unwrap_or(program)
}

/// Also true when a library that this one needs has it.
fn has(library: &Library, function: &CStr) -> bool {
    // SAFETY: the symbol is not used, only looked for.
    unsafe { library.get::<*const c_void>(function.to_bytes_with_nul()) }.is_ok()
}

/// A library that is loaded already; none is loaded for it.
fn again(path: &CStr) -> Option<Library> {
    let path = OsStr::from_bytes(path.to_bytes());
    // SAFETY: with `RTLD_NOLOAD` no code of the library runs.
    unsafe { Library::open(Some(path), RTLD_LAZY | libc::RTLD_NOLOAD) }.ok()
}

/// The paths of all libraries of the process, in the order in which they were loaded.
fn loaded() -> Vec<CString> {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _size: usize, paths: *mut c_void) -> c_int {
        // SAFETY: the loader passes what it knows of a library.
        let info = unsafe { &*info };
        // SAFETY: this is the pointer that was given to the loader below.
        let paths = unsafe { &mut *paths.cast::<Vec<CString>>() };
        if !info.dlpi_name.is_null() {
            // SAFETY: the name ends with NUL and lives as long as the library, so during this call.
            let path = unsafe { CStr::from_ptr(info.dlpi_name) };
            // The program's own is empty.
            if !path.is_empty() {
                paths.push(path.to_owned());
            }
        }
        0
    }
    let mut paths: Vec<CString> = Vec::new();
    // SAFETY: `note` gets the vector that outlives the call, and nobody else uses it meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    paths
}
