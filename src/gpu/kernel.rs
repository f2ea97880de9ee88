//! A kernel that is ready to launch, and the one place that launches. It must not know devices, only contexts and
//! streams.
//!
//! Every kernel has the same signature: `(const Row *rows, unsigned count, Params params)`. `rows` is a table with a
//! row for each piece of work (a sample, a plane), so a ragged batch is one launch; `params` goes by value.

use std::ffi::c_void;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cudarc::driver::{result, sys};

use super::context::{Context, driver_error};
use super::layout::DeviceType;
use crate::error::{Error, Result};

/// Machine code on a device.
pub(super) struct Module {
    raw: sys::CUmodule,
    context: Arc<Context>,
}

// SAFETY: a module is a handle of a context; the driver lets any thread use it.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads machine code.
    pub(super) fn load(context: &Arc<Context>, code: &[u8]) -> Result<Self> {
        let _bound = context.bind()?;
        // SAFETY: `code` is a whole cubin from NVRTC; the driver copies it.
        let raw = unsafe { result::module::load_data(code.as_ptr().cast()) }
            .map_err(|error| driver_error("loading a kernel", error))?;
        Ok(Self { raw, context: Arc::clone(context) })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _bound = self.context.bind();
        // SAFETY: kernels of the module hold it, so none is left.
        let _ = unsafe { result::module::unload(self.raw) };
    }
}

/// A kernel of a loaded module. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    function: sys::CUfunction,
    /// Keeps the function loaded.
    _module: Arc<Module>,
    name: &'static str,
    row_bytes: usize,
    param_bytes: usize,
    begins_early: bool,
}

// SAFETY: a function is a handle of its module; the driver lets any thread launch it.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    pub(super) fn new(
        module: Arc<Module>,
        name: &'static str,
        [row_bytes, param_bytes]: [usize; 2],
        begins_early: bool,
    ) -> Result<Self> {
        let symbol = std::ffi::CString::new(name).map_err(|_| Error::internal("a kernel's name"))?;
        let bound = module.context.bind()?;
        // SAFETY: the module is loaded and stays so as long as `self`.
        let function = unsafe { result::module::get_function(module.raw, symbol) }
            .map_err(|error| driver_error(&format!("kernel `{name}`"), error))?;
        drop(bound);
        Ok(Self { function, _module: module, name, row_bytes, param_bytes, begins_early })
    }

    /// Checks that `R` and `P` are the structs that the kernel was compiled for.
    pub(super) fn check<R: Pod, P: Pod>(&self) -> Result<()> {
        if (size_of::<R>(), size_of::<P>()) == (self.row_bytes, self.param_bytes) {
            return Ok(());
        }
        Err(Error::internal(format!(
            "kernel `{}` takes rows of {} and parameters of {} bytes, found {} and {}",
            self.name,
            self.row_bytes,
            self.param_bytes,
            size_of::<R>(),
            size_of::<P>()
        )))
    }
}

/// The parameters of a kernel that takes none: `common.cuh` has them.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub struct NoParams {
    unused: u32,
}

impl DeviceType for NoParams {
    const NAME: &'static str = "NoParams";
}

/// Blocks and threads of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Blocks along x, y and z. By custom y counts rows of the table.
    pub blocks: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
}

/// The bytes of `params` in words, so that every struct is aligned.
pub(super) fn words<P: Pod>(params: &P) -> Vec<u64> {
    let mut words = vec![0; size_of::<P>().div_ceil(8).max(1)];
    bytemuck::cast_slice_mut(&mut words)[..size_of::<P>()].copy_from_slice(bytemuck::bytes_of(params));
    words
}

/// A launch with everything it needs but the stream.
pub(super) struct Launch {
    pub(super) kernel: Kernel,
    pub(super) grid: Grid,
    /// Address of the table on the device.
    pub(super) rows: u64,
    pub(super) count: u32,
    /// As [`words`] makes them.
    pub(super) params: Vec<u64>,
}

/// A launch of at most so many threads may begin early. A larger one would take room from kernels in other streams
/// while it waits; all blocks of the kernel ahead have begun by then. An H100 has room for four times as many.
const EARLY_THREADS: u64 = 64 << 10;

impl Launch {
    /// Puts the kernel into `stream`, which is one of the kernel's device; its context is bound.
    ///
    /// # Safety
    /// The stream is valid, and what table and parameters point at stays until it is done with the kernel.
    pub(super) unsafe fn enqueue(&mut self, stream: sys::CUstream) -> Result<()> {
        let mut arguments: [*mut c_void; 3] =
            [(&raw mut self.rows).cast(), (&raw mut self.count).cast(), self.params.as_mut_ptr().cast()];
        let [x, y, z] = self.grid.blocks;
        let threads = [x, y, z, self.grid.threads].into_iter().map(u64::from).fold(1, u64::saturating_mul);
        let early = self.kernel.begins_early && threads <= EARLY_THREADS;
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: self.grid.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: stream,
            attrs: &raw mut attribute,
            numAttrs: u32::from(early),
        };
        // SAFETY: the function is loaded and has this signature: rows, count and parameters, whose sizes were checked
        // when the launch was recorded and by the compiler. The driver reads the arguments, the attribute and where
        // they are before it returns. One that begins early waits by itself for what is ahead (`begin_early` in
        // `kernels/common.cuh`). The caller vouches for the stream and for the addresses in the table and the
        // parameters.
        unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                self.kernel.function,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
        .result()
        .map_err(|error| driver_error(&format!("launching `{}`", self.kernel.name), error))
    }
}
