//! One CUDA device: libraries found at run time, contexts, memory, kernels, and the recording of a batch's work. It
//! must not know operators or graphs. The one module that names cudarc.
//!
//! ```text
//! Gpu (one per model and device)      kernels compiled once, memory pool
//!   Stream (one per batch in flight)
//!     Recorder                        staging slab: payload and tables of a batch
//!       record ... record             nothing runs yet
//!       submit                        1 upload, launches in order, downloads
//!       wait                          1 synchronisation
//! ```
//!
//! Everything here works on hosts without a GPU up to [`Gpu::open`], which says what is missing.

#![expect(unsafe_code, reason = "CUDA is a C interface; each block says what it relies on")]

mod command;
mod compile;
mod context;
mod counters;
mod cpu_cache;
mod device;
pub mod flow;
mod handles;
mod in_flight;
pub mod jpeg;
pub mod jpeg2000;
mod kept_scratch;
mod kernel;
mod kernel_cache;
pub mod layout;
mod library;
mod memory;
mod nvrtc;
mod part;
mod pool;
mod recorder;
mod retention;
mod room;
mod side_streams;
mod slab;
mod staging;
mod transfer;
pub mod video;

pub use command::Call;
pub use compile::{KernelSource, KernelSpec, SOURCES, compile, cuda_type};
pub use context::Bound;
pub use counters::Counters;
pub use cpu_cache::demote;
pub use device::{Allowance, Event, Gpu, InFlight, Stream, devices};
pub use handles::{Download, Report, Slot};
pub use kernel::{Grid, Kernel, NoParams};
pub use kernel_cache::kernel_cache;
pub use library::{Found, Library};
pub use memory::DeviceBuffer;
pub use nvrtc::Nvrtc;
pub use recorder::Recorder;
pub use staging::Staged;
pub use transfer::Fetch;
