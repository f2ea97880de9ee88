//! Whose turn it is at the engines of a device: one large batch at a time, of all instances of the process.
//!
//! One call keeps all engines busy: beside a model that fills the multiprocessors, nvJPEG decoded 23,700 images a
//! second in calls from one thread, and 4,800 in calls from two, because each then waits for kernels of its own behind
//! those of the model (H200, 500 x 375).

use parking_lot::{Mutex, MutexGuard};

use crate::gpu::Gpu;

/// Devices with turns of their own.
const DEVICES: usize = 64;

static TURNS: [Mutex<()>; DEVICES] = [const { Mutex::new(()) }; DEVICES];

/// A turn, until it is dropped. It ends when all is submitted; what is left of the work then does not hold up others.
pub struct EngineLock {
    _held: MutexGuard<'static, ()>,
}

impl EngineLock {
    fn wait(gpu: &Gpu) -> Self {
        Self { _held: of(gpu).lock() }
    }

    /// For a batch of so many images on so many `engines`: the turn that it `has`, else waits for it. A few images, or
    /// none, need no turn: they disturb nobody.
    pub fn of_batch(gpu: &Gpu, has: Option<Self>, images: usize, engines: usize) -> Option<Self> {
        if images <= engines {
            has.filter(|_| images > 0)
        } else {
            Some(has.unwrap_or_else(|| Self::wait(gpu)))
        }
    }

    /// The turn, if nobody has it.
    pub fn if_free(gpu: &Gpu) -> Option<Self> {
        of(gpu).try_lock().map(|held| Self { _held: held })
    }
}

fn of(gpu: &Gpu) -> &'static Mutex<()> {
    &TURNS[gpu.ordinal() % DEVICES]
}
