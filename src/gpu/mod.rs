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

mod cache;
mod caches;
mod command;
mod compile;
mod context;
mod counters;
mod device;
pub mod flow;
mod handles;
pub mod jpeg;
pub mod jpeg2000;
mod kernel;
pub mod layout;
mod library;
mod load;
mod memory;
mod nvrtc;
mod part;
mod pool;
mod recorder;
mod retention;
mod room;
mod sides;
mod slab;
mod staging;
mod transfer;
mod under_way;
pub mod video;

pub use cache::kernel_cache;
pub use caches::demote;
pub use command::Call;
pub use compile::{KernelSpec, SOURCES, Source, compile, cuda_type};
pub use context::Bound;
pub use counters::Counters;
pub use device::{Allowance, Event, Gpu, Stream, UnderWay, devices};
pub use handles::{Download, Report, Slot};
pub use kernel::{Grid, Kernel, NoParams};
pub use library::{Found, Library};
pub use load::Load;
pub use memory::DeviceBuffer;
pub use nvrtc::Nvrtc;
pub use recorder::Recorder;
pub use staging::Staged;
pub use transfer::Fetch;
