//! A device: its memory pool, its compiled kernels; streams and events on it.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::driver::{DriverError, result, sys};
use parking_lot::Mutex;

use super::compile::{self, KernelSpec};
use super::context::{Bound, Context, driver_error};
use super::in_flight::Timeline;
use super::kernel::{Kernel, Module};
use super::library::Library;
use super::nvrtc::Nvrtc;
use super::part::Part;
use super::pool::Pool;
use super::room::Room;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;

/// How many CUDA devices there are.
///
/// # Errors
/// Unavailable without a driver or when it finds no device; the text says what to do.
pub fn devices() -> Result<usize> {
    // cudarc panics when there is no driver, so this comes before its first call.
    Library::DRIVER.open()?;
    result::init().map_err(|error| driver_error("starting the NVIDIA driver", error))?;
    let count = result::device::get_count().map_err(|error| driver_error("counting devices", error))?;
    usize::try_from(count).ok().filter(|&count| count > 0).ok_or_else(|| {
        Error::new(ErrorKind::Unavailable, "the NVIDIA driver finds no device; see `nvidia-smi`")
    })
}

/// What batches may take of a device, together. `None`: as much as there is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// Bytes of its memory; JPEG engines and kernels have memory of their own.
    pub memory: Option<NonZeroUsize>,
    /// Multiprocessors; the driver rounds them up. Only what is launched in streams of ours is held to it.
    pub multiprocessors: Option<NonZeroUsize>,
}

/// One CUDA device as one model uses it. Dropping it gives its memory back.
pub struct Gpu {
    ordinal: usize,
    name: String,
    arch: (i32, i32),
    multiprocessors: usize,
    nvrtc: Nvrtc,
    kernels: Mutex<HashMap<KernelSpec, Kernel>>,
    /// Batches under way.
    batches: AtomicUsize,
    room: Arc<Room>,
    pool: Pool,
    /// Where its streams work, if not in all of it.
    part: Option<Part>,
    context: Arc<Context>,
}

impl Gpu {
    /// Opens device `ordinal`.
    ///
    /// # Errors
    /// Unavailable, saying what is missing: the driver, a device, NVRTC.
    pub fn open(ordinal: usize) -> Result<Arc<Self>> {
        Self::open_within(ordinal, Allowance::default())
    }

    /// Opens device `ordinal`; its batches take no more than `allowance`.
    ///
    /// # Errors
    /// As [`Gpu::open`]; and where the driver gives no part of the multiprocessors, but one is asked for.
    pub fn open_within(ordinal: usize, allowance: Allowance) -> Result<Arc<Self>> {
        let count = devices()?;
        if ordinal >= count {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("device {ordinal} is not there: found {count} devices"),
            ));
        }
        let failed = |error| driver_error(&format!("device {ordinal}"), error);
        let device = result::device::get(ordinal as i32).map_err(failed)?;
        let name = result::device::get_name(device).map_err(failed)?;
        let attribute = |attribute| {
            // SAFETY: the device is from the driver.
            unsafe { result::device::get_attribute(device, attribute) }.map_err(failed)
        };
        let arch = (
            attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let multiprocessors = attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        if attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
            return Err(Error::unsupported(format!("device {ordinal} (`{name}`) has no memory pools")));
        }
        let nvrtc = Nvrtc::open()?;
        let context = Arc::new(Context::retain(device)?);
        let pool = Pool::new(Arc::clone(&context), ordinal, allowance.memory)?;
        let all = usize::try_from(multiprocessors).unwrap_or(1);
        let part = allowance.multiprocessors.filter(|count| count.get() < all);
        let part = part.map(|count| Part::new(device, count)).transpose()?;
        let multiprocessors = part.as_ref().map_or(all, Part::multiprocessors);
        Ok(Arc::new(Self {
            ordinal,
            name,
            arch,
            multiprocessors,
            nvrtc,
            kernels: Mutex::default(),
            batches: AtomicUsize::new(0),
            room: Arc::new(Room::new(pool.ceiling() / 8 * limits::DEVICE_ROOM_EIGHTHS)),
            pool,
            part,
            context,
        }))
    }

    /// Its number, as Triton and `nvidia-smi` count.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// What the driver calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many multiprocessors its batches may take.
    pub fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// Counts a batch as under way until the guard goes.
    pub fn begin_batch(&self) -> InFlight<'_> {
        self.batches.fetch_add(1, Ordering::Relaxed);
        InFlight(&self.batches)
    }

    /// How many batches of the model are under way, without those that wait for room.
    pub fn in_flight(&self) -> usize {
        self.batches.load(Ordering::Relaxed).saturating_sub(self.room.waiting())
    }

    /// Whether those are several.
    pub fn is_shared(&self) -> bool {
        self.in_flight() > 1
    }

    /// Makes it the calling thread's device until the guard goes, for libraries that use the thread's. Everything in
    /// this module does so by itself.
    ///
    /// # Errors
    /// What the driver says.
    pub fn bind(&self) -> Result<Bound<'_>> {
        self.context.bind()
    }

    /// The driver's handle of its context (a `CUcontext`), for libraries that take one.
    pub(super) fn context_handle(&self) -> *mut std::ffi::c_void {
        self.context.raw().cast()
    }

    /// Waits until everything on the device is done, whoever started it.
    ///
    /// # Errors
    /// What failed on the device.
    pub fn synchronize(&self) -> Result<()> {
        self.context.synchronize()
    }

    /// The kernel that `spec` describes; compiled when it is asked for the first time.
    ///
    /// # Errors
    /// Internal, when it does not compile; what the driver says.
    pub fn kernel(&self, spec: &KernelSpec) -> Result<Kernel> {
        if let Some(kernel) = self.kernels.lock().get(spec) {
            return Ok(kernel.clone());
        }
        let code = compile::compile(&self.nvrtc, spec, self.arch)?;
        let module = Arc::new(Module::load(&self.context, &code)?);
        let kernel = Kernel::new(module, spec.entry(), spec.sizes(), spec.begins_early(self.arch))?;
        self.kernels.lock().insert(spec.clone(), kernel.clone());
        Ok(kernel)
    }

    /// A new stream, which waits for no other.
    ///
    /// # Errors
    /// What the driver says.
    pub fn stream(self: &Arc<Self>) -> Result<Arc<Stream>> {
        let _bound = self.bind()?;
        let raw = match &self.part {
            Some(part) => part.stream()?,
            None => result::stream::create(result::stream::StreamKind::NonBlocking)
                .map_err(|error| driver_error("making a stream", error))?,
        };
        Ok(Arc::new(Stream { raw, gpu: Arc::clone(self) }))
    }

    /// Free and total bytes of the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let _bound = self.bind()?;
        result::mem_get_info().map_err(|error| driver_error("asking for free memory", error))
    }

    /// Bytes of the device that batches may take together.
    pub fn ceiling(&self) -> usize {
        self.pool.ceiling()
    }

    /// Bytes of the device that one output of an operator may take over a whole batch.
    pub fn most_of_a_value(&self) -> usize {
        limits::MAX_BATCH_BYTES.max(self.ceiling() / limits::DEVICE_VALUE_PART)
    }

    pub(super) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// A batch that is under way.
pub struct InFlight<'g>(&'g AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A queue of work on a device.
pub struct Stream {
    raw: sys::CUstream,
    gpu: Arc<Gpu>,
}

// SAFETY: a stream is a handle that the driver lets any thread use.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Its device.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The driver's handle (a `CUstream`, which is a `cudaStream_t`), for libraries that take one.
    pub fn handle(&self) -> *mut std::ffi::c_void {
        self.raw.cast()
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Waits until everything in the stream is done.
    ///
    /// # Errors
    /// What the driver says of anything that failed on the device.
    pub fn synchronize(&self) -> Result<()> {
        let _bound = self.gpu.bind()?;
        // SAFETY: the stream is valid.
        unsafe { result::stream::synchronize(self.raw) }
            .map_err(|error| driver_error("running a batch on the device", error))
    }

    /// Lets what comes next in the stream wait for `event`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        let _bound = self.gpu.bind()?;
        // SAFETY: both handles are valid.
        unsafe { result::stream::wait_event(self.raw, event.raw, flags) }
            .map_err(|error| driver_error("waiting for another stream", error))
    }
}

impl Timeline for Stream {
    fn settle(&self) -> Result<()> {
        self.synchronize()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _bound = self.gpu.bind();
        // SAFETY: the stream is valid and nobody uses it any more.
        let _ = unsafe { result::stream::destroy(self.raw) };
    }
}

/// A point in a stream that another stream can wait for.
pub struct Event {
    raw: sys::CUevent,
    gpu: Arc<Gpu>,
}

// SAFETY: an event is a handle that the driver lets any thread use.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that nothing was recorded into yet: nobody waits for it. It takes no time stamps, which are slow.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let _bound = gpu.bind()?;
        let raw = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(|error| driver_error("making an event", error))?;
        Ok(Self { raw, gpu: Arc::clone(gpu) })
    }

    /// Marks the end of what is in `stream` now.
    ///
    /// # Errors
    /// What the driver says.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        let _bound = self.gpu.bind()?;
        // SAFETY: both handles are valid.
        unsafe { result::event::record(self.raw, stream.raw) }
            .map_err(|error| driver_error("recording an event", error))
    }

    /// Whether what it marks is done.
    ///
    /// # Errors
    /// What failed on the device.
    pub fn is_done(&self) -> Result<bool> {
        let _bound = self.gpu.bind()?;
        // SAFETY: the event is valid.
        match unsafe { result::event::query(self.raw) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(driver_error("asking for an event", error)),
        }
    }
}

impl Timeline for Event {
    fn settle(&self) -> Result<()> {
        let _bound = self.gpu.bind()?;
        // SAFETY: the event is valid.
        unsafe { result::event::synchronize(self.raw) }
            .map_err(|error| driver_error("waiting for an event", error))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _bound = self.gpu.bind();
        // SAFETY: the event is valid and nobody uses it any more.
        let _ = unsafe { result::event::destroy(self.raw) };
    }
}
