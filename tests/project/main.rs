//! What holds the project together beyond its behaviour: generated files are fresh, layers are kept, pages say what is
//! so.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod abi;
mod circles;
mod comments;
mod counts;
mod dali;
mod defaults;
mod docs;
mod gesso_h;
mod kernels;
mod layers;
mod operators;
#[path = "../common/skips.rs"]
mod skips;
mod triton_sys;

use std::path::Path;

/// The project's folder.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
