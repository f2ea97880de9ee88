//! What only a device can show. On hosts without one these tests print `skipped: no GPU`.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod decoders;
mod engines;
mod fusion;
mod header;
mod pictures;
mod promises;

use std::sync::Arc;

use triton_gesso::gpu::Gpu;

/// The first device; `None` where there is none, which a test says and passes.
fn gpu() -> Option<Arc<Gpu>> {
    if let Err(error) = triton_gesso::gpu::devices() {
        println!("skipped: no GPU ({error})");
        return None;
    }
    Some(Gpu::open(0).unwrap())
}
