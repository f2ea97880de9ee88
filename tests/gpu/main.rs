//! What only a device can show. On hosts without one these tests are skipped (`common/skips.rs`).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod coded;
mod coder;
mod decoders;
mod engines;
mod exported;
mod flow;
mod fusion;
mod header;
mod heic;
mod jpeg2000;
#[path = "../cpu/npz.rs"]
mod npz;
#[path = "../common/numbers.rs"]
mod numbers;
mod pictures;
mod predecessors;
mod promises;
mod repeatable;
mod shared_files;
#[path = "../common/skips.rs"]
mod skips;
mod sm;
mod soundness;
mod spectra;
mod video;
mod video_input;
mod whole;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gesso::gpu::Gpu;
use skips::{Needs, skip};

/// Held by tests while they use the device: by those that measure its memory alone, by others together.
static DEVICE: RwLock<()> = RwLock::new(());

#[expect(dead_code, reason = "held until the thread of the test ends")]
enum Held {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The first device, `held`; `None` where there is none, which a test says and passes.
fn gpu_as(held: impl FnOnce() -> Held) -> Option<Arc<Gpu>> {
    if let Err(error) = gesso::gpu::devices() {
        skip(Needs::Gpu, format_args!("no GPU ({error})"));
        return None;
    }
    // One thread may run test after test.
    HELD.with(|place| place.borrow_mut().take());
    let held = held();
    HELD.with(|place| place.replace(Some(held)));
    Some(Gpu::open(0).unwrap())
}

/// The first device, for a test that other tests may use it beside.
fn gpu() -> Option<Arc<Gpu>> {
    gpu_as(|| Held::Shared(DEVICE.read().unwrap_or_else(PoisonError::into_inner)))
}

/// The first device, for a test that measures what is left of its memory.
fn gpu_alone() -> Option<Arc<Gpu>> {
    gpu_as(|| Held::Alone(DEVICE.write().unwrap_or_else(PoisonError::into_inner)))
}

/// `count` of random things, or a part of them: one of `$GESSO_FEWER`, where a tool makes kernels take a hundred times
/// as long.
fn fewer(count: u64) -> u64 {
    let of = std::env::var("GESSO_FEWER").ok().and_then(|text| text.parse().ok());
    (count / of.unwrap_or(1).max(1)).max(1)
}

/// A file of the project; where it is now, for tests that run on another machine than they were built on.
fn file(path: &str) -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(root).join(path)
}
