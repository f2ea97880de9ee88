//! What a test says that cannot run here. On a machine that is meant to have what it needs, it fails instead.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fmt::Display;

/// What a test needs.
#[derive(Clone, Copy)]
pub(crate) enum Needs {
    /// A program or a library of the build: a compiler, binutils, NVRTC.
    Tool,
    /// A GPU, or an engine of it.
    Gpu,
}

/// Says that a test is skipped, and why.
///
/// # Panics
/// Where `GESSO_REQUIRE_TOOLS` or `GESSO_REQUIRE_GPU` says that this machine has what the test needs.
#[track_caller]
pub(crate) fn skip(needs: Needs, why: impl Display) {
    let required = match needs {
        Needs::Tool => "GESSO_REQUIRE_TOOLS",
        Needs::Gpu => "GESSO_REQUIRE_GPU",
    };
    assert!(std::env::var_os(required).is_none(), "{required} is set, and this test cannot run: {why}");
    println!("skipped: {why}");
}
