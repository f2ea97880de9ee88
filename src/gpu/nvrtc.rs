//! NVRTC: CUDA C++ to machine code at run time. It must not know which kernels there are.

use std::ffi::{CStr, CString, c_char, c_int};

use super::library::{Found, Library};
use crate::error::{Error, ErrorKind, Result};

type Program = *mut std::ffi::c_void;
type Status = c_int;

/// The compiler, loaded.
pub struct Nvrtc {
    version: (i32, i32),
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    error_text: unsafe extern "C" fn(Status) -> *const c_char,
    /// Keeps the functions above loaded.
    _library: Found,
}

impl Nvrtc {
    /// Loads the compiler.
    ///
    /// # Errors
    /// Unavailable, when it is not there or too old.
    pub fn open() -> Result<Self> {
        let library = Library::NVRTC.open()?;
        // SAFETY: the types of all functions here are those of nvrtc.h, versions 12 and 13.
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status =
            unsafe { library.function("nvrtcVersion") }?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for the call.
        unsafe { version(&raw mut major, &raw mut minor) };
        Ok(Self {
            version: (major, minor),
            // SAFETY: as above.
            create: unsafe { library.function("nvrtcCreateProgram") }?,
            // SAFETY: as above.
            destroy: unsafe { library.function("nvrtcDestroyProgram") }?,
            // SAFETY: as above.
            compile: unsafe { library.function("nvrtcCompileProgram") }?,
            // SAFETY: as above.
            log_size: unsafe { library.function("nvrtcGetProgramLogSize") }?,
            // SAFETY: as above.
            log: unsafe { library.function("nvrtcGetProgramLog") }?,
            // SAFETY: as above.
            cubin_size: unsafe { library.function("nvrtcGetCUBINSize") }?,
            // SAFETY: as above.
            cubin: unsafe { library.function("nvrtcGetCUBIN") }?,
            // SAFETY: as above.
            error_text: unsafe { library.function("nvrtcGetErrorString") }?,
            _library: library,
        })
    }

    /// Major and minor version.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Machine code of `source` for the architecture in `options`. `headers` are what it may include, by name.
    ///
    /// # Errors
    /// Internal, with the compiler's log: the kernels are ours.
    pub fn compile(
        &self,
        name: &str,
        source: &str,
        headers: &[(&str, &str)],
        options: &[String],
    ) -> Result<Vec<u8>> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| Error::internal(format!("kernel `{name}` holds a NUL byte")))
        };
        let (source, file) = (text(source)?, text(name)?);
        let header_names: Vec<CString> = headers.iter().map(|h| text(h.0)).collect::<Result<_>>()?;
        let header_texts: Vec<CString> = headers.iter().map(|h| text(h.1)).collect::<Result<_>>()?;
        let options: Vec<CString> = options.iter().map(|o| text(o)).collect::<Result<_>>()?;
        let pointers = |texts: &[CString]| texts.iter().map(|t| t.as_ptr()).collect::<Vec<_>>();
        let (texts, names, options) = (pointers(&header_texts), pointers(&header_names), pointers(&options));
        let mut program = std::ptr::null_mut();
        // SAFETY: all texts end with NUL and live until the end of this function, the arrays are as long as is said.
        let status = unsafe {
            (self.create)(
                &raw mut program,
                source.as_ptr(),
                file.as_ptr(),
                headers.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        self.check(status, "nvrtcCreateProgram")?;
        let program = Guard { program, nvrtc: self };
        // SAFETY: the program is valid, the options as the texts above.
        let status = unsafe { (self.compile)(program.program, options.len() as c_int, options.as_ptr()) };
        if status != 0 {
            let log = self.fetch(&program, self.log_size, self.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            return Err(Error::internal(format!(
                "kernel `{name}` does not compile ({}): {}",
                self.describe(status),
                log.trim_end_matches('\0')
            )));
        }
        self.fetch(&program, self.cubin_size, self.cubin)
    }

    fn fetch(
        &self,
        program: &Guard<'_>,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        read: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is valid, and so is the pointer for the call.
        self.check(unsafe { size(program.program, &raw mut bytes) }, "size of a result")?;
        let mut buffer = vec![0u8; bytes];
        // SAFETY: the buffer has the size that NVRTC asked for.
        self.check(unsafe { read(program.program, buffer.as_mut_ptr().cast()) }, "a result")?;
        Ok(buffer)
    }

    fn describe(&self, status: Status) -> String {
        // SAFETY: takes any status and returns a constant text or null.
        let text = unsafe { (self.error_text)(status) };
        if text.is_null() {
            return format!("status {status}");
        }
        // SAFETY: a constant text that ends with NUL.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    fn check(&self, status: Status, what: &str) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Internal, format!("NVRTC: {what}: {}", self.describe(status))))
    }
}

/// Deletes the program.
struct Guard<'a> {
    program: Program,
    nvrtc: &'a Nvrtc,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is valid and nobody uses it any more.
        unsafe { (self.nvrtc.destroy)(&raw mut self.program) };
    }
}
