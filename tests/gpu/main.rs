//! What needs a GPU: prints `skipped: no GPU` elsewhere.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod fusion;
mod promises;
