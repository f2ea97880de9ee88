//! What only a device can show. On hosts without one these tests print `skipped: no GPU`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod coded;
mod coder;
mod cores;
mod decoders;
mod engines;
mod exported;
mod flow;
mod fusion;
mod header;
#[path = "../common/numbers.rs"]
mod numbers;
mod pictures;
mod promises;
mod shared_files;
mod soundness;
mod spectra;
mod video;
mod video_input;

use std::path::PathBuf;
use std::sync::Arc;

use gesso::gpu::Gpu;

/// The first device; `None` where there is none, which a test says and passes.
fn gpu() -> Option<Arc<Gpu>> {
    if let Err(error) = gesso::gpu::devices() {
        println!("skipped: no GPU ({error})");
        return None;
    }
    Some(Gpu::open(0).unwrap())
}

/// A file of the project; where it is now, for tests that run on another machine than they were built on.
fn file(path: &str) -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(root).join(path)
}
