//! Who has the engines of a device: one large batch at a time, of all instances of the process.
//!
//! One call keeps all engines busy: beside a model that fills the multiprocessors, nvJPEG decoded 23,700 images a
//! second in calls from one thread, and 4,800 in calls from two, because each then waits for kernels of its own behind
//! those of the model (H200, 500 x 375).

use parking_lot::{Mutex, MutexGuard};

use crate::gpu::Gpu;

/// Devices with a lock of their own.
const DEVICES: usize = 64;

static LOCKS: [Mutex<()>; DEVICES] = [const { Mutex::new(()) }; DEVICES];

/// The engines of a device, until it is dropped: when all is submitted. What is left of the work then does not hold up
/// others.
pub struct EngineLock {
    _held: MutexGuard<'static, ()>,
}

impl EngineLock {
    /// Waits for the engines, for a batch of so many images on so many `engines`. A few images, or none, need no lock:
    /// they disturb nobody.
    pub fn of_batch(gpu: &Gpu, images: usize, engines: usize) -> Option<Self> {
        (images > engines).then(|| Self { _held: of(gpu).lock() })
    }
}

fn of(gpu: &Gpu) -> &'static Mutex<()> {
    &LOCKS[gpu.ordinal() % DEVICES]
}
