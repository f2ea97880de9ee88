//! How busy a device is with the work of others, such as the model behind a pipeline: what the driver's management
//! library (NVML) says of the device, less what our own batches wait for it. It must not know what batches are.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::library::{Found, Library};
use crate::error::{Error, ErrorKind, Result};

/// How often the device is looked at; NVML's own figure is of the last sixth of a second to second.
const PERIOD: Duration = Duration::from_millis(200);

/// Weight of the newest look.
const NEWEST: f64 = 0.5;

/// One for each device that anyone watches.
static WATCHED: LazyLock<Mutex<HashMap<usize, Weak<Load>>>> = LazyLock::new(Mutex::default);

/// The load of one device, as all instances of this process share it.
pub struct Load {
    /// Nanoseconds that batches of ours waited for the device.
    waited: AtomicU64,
    /// The part of the time that others keep the device busy, as bits of an `f64`.
    others: AtomicU64,
}

impl Load {
    /// The load of device `ordinal`, whose address on the bus is `bus`. It is looked at by a thread of its own for as
    /// long as somebody holds it. Without NVML it stays 0.
    pub fn of(ordinal: usize, bus: &std::ffi::CStr) -> Arc<Self> {
        let mut watched = WATCHED.lock();
        if let Some(load) = watched.get(&ordinal).and_then(Weak::upgrade) {
            return load;
        }
        let load = Arc::new(Self { waited: AtomicU64::new(0), others: AtomicU64::new(0f64.to_bits()) });
        watched.insert(ordinal, Arc::downgrade(&load));
        match Nvml::open(bus) {
            Ok(nvml) => {
                let load = Arc::downgrade(&load);
                let look = std::thread::Builder::new().name("gesso-load".into());
                if let Err(error) = look.spawn(move || watch(&nvml, &load)) {
                    tracing::info!("the load of device {ordinal} is not known: {error}");
                }
            }
            Err(error) => tracing::info!("the load of device {ordinal} is not known: {error}"),
        }
        load
    }

    /// Takes in that a batch waited so long for the device.
    pub fn waited(&self, time: Duration) {
        self.waited.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The part of the time, 0 to 1, that others keep the device busy.
    pub fn others(&self) -> f64 {
        f64::from_bits(self.others.load(Ordering::Relaxed))
    }

    /// Takes in that the device was busy for this part of the last `elapsed`, during which our batches waited `ours`
    /// for it.
    fn look(&self, busy: f64, ours: Duration, elapsed: Duration) {
        let now = (busy - ours.as_secs_f64() / elapsed.as_secs_f64().max(1e-9)).clamp(0.0, 1.0);
        let others = self.others();
        self.others.store((others + NEWEST * (now - others)).to_bits(), Ordering::Relaxed);
    }
}

/// Looks at the device until nobody holds its load any more, or it cannot be asked.
fn watch(nvml: &Nvml, load: &Weak<Load>) {
    let (mut last, mut before) = (Instant::now(), 0);
    loop {
        std::thread::sleep(PERIOD);
        let Some(load) = load.upgrade() else { return };
        let busy = match nvml.busy() {
            Ok(busy) => busy,
            Err(error) => {
                tracing::info!("the load of a device is not known any more: {error}");
                load.others.store(0f64.to_bits(), Ordering::Relaxed);
                return;
            }
        };
        let waited = load.waited.load(Ordering::Relaxed);
        load.look(busy, Duration::from_nanos(waited.wrapping_sub(before)), last.elapsed());
        (last, before) = (Instant::now(), waited);
    }
}

/// `nvmlUtilization_t`: percent of the last period in which a kernel ran, and in which memory was read or written.
#[repr(C)]
#[derive(Default)]
struct Utilization {
    kernels: c_uint,
    memory: c_uint,
}

/// One device, as NVML knows it.
struct Nvml {
    device: *mut c_void,
    utilization: unsafe extern "C" fn(*mut c_void, *mut Utilization) -> c_int,
    shutdown: unsafe extern "C" fn() -> c_int,
    /// Keeps the functions above loaded.
    _library: Found,
}

// SAFETY: NVML is made for calls from any thread, and its handles belong to none.
unsafe impl Send for Nvml {}

impl Nvml {
    fn open(bus: &std::ffi::CStr) -> Result<Self> {
        let library = Library::NVML.open()?;
        // SAFETY: the types of all functions here are those of nvml.h since version 4.
        let start: unsafe extern "C" fn() -> c_int = unsafe { library.function("nvmlInit_v2") }?;
        // SAFETY: as above.
        let find: unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int =
            unsafe { library.function("nvmlDeviceGetHandleByPciBusId_v2") }?;
        let mut nvml = Self {
            device: std::ptr::null_mut(),
            // SAFETY: as above.
            utilization: unsafe { library.function("nvmlDeviceGetUtilizationRates") }?,
            // SAFETY: as above.
            shutdown: unsafe { library.function("nvmlShutdown") }?,
            _library: library,
        };
        // SAFETY: it takes nothing.
        check("nvmlInit_v2", unsafe { start() })?;
        // From here on dropping it counts down what that counted up.
        // SAFETY: the text ends with a zero, and the pointer is valid for the call.
        check("nvmlDeviceGetHandleByPciBusId_v2", unsafe { find(bus.as_ptr(), &raw mut nvml.device) })?;
        nvml.busy()?;
        Ok(nvml)
    }

    /// The part of the last moments in which a kernel ran on the device, 0 to 1.
    fn busy(&self) -> Result<f64> {
        let mut found = Utilization::default();
        // SAFETY: the handle is from NVML, the pointer valid for the call.
        check("nvmlDeviceGetUtilizationRates", unsafe { (self.utilization)(self.device, &raw mut found) })?;
        Ok(f64::from(found.kernels.min(100)) / 100.0)
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: it takes nothing; NVML counts its users, and refuses one call too many.
        unsafe { (self.shutdown)() };
    }
}

fn check(function: &str, status: c_int) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unavailable, format!("{function} answers {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Load {
        Load { waited: AtomicU64::new(0), others: AtomicU64::new(0) }
    }

    #[test]
    fn what_we_wait_for_ourselves_is_not_the_load_of_others() {
        let (load, second) = (load(), Duration::from_secs(1));
        for _ in 0..20 {
            load.look(0.9, second * 9 / 10, second);
        }
        assert!(load.others() < 0.01, "{}", load.others());
        for _ in 0..20 {
            load.look(1.0, second / 4, second);
        }
        assert!((load.others() - 0.75).abs() < 0.01, "{}", load.others());
        // Several batches that wait at the same time wait for longer than there is time.
        for _ in 0..20 {
            load.look(1.0, second * 3, second);
        }
        assert!(load.others() < 0.01, "{}", load.others());
    }

    #[test]
    fn a_device_is_watched_once() {
        let (one, two) = (Load::of(usize::MAX, c"nowhere"), Load::of(usize::MAX, c"nowhere"));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(one.others(), 0.0);
    }
}
