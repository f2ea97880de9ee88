//! The plugin for NVIDIA Triton Inference Server: `libtriton_gesso.so`, which also exports the engine's C API.
//!
//! ```text
//! gesso::pipeline  <-  fetch  <-  config  <-  record  <-  triton
//! ```
//!
//! [`fetch`] downloads files by their address; [`config`] reads, completes and checks what a model says of itself;
//! [`record`] is the file of a recorded request; [`triton`] implements the server's C API.

pub mod config;
pub mod fetch;
pub mod record;
pub mod triton;

#[cfg(not(gesso_exact_allocations))]
#[global_allocator]
static ALLOCATOR: gesso::memory::Slack = gesso::memory::Slack;
