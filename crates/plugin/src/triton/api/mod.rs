//! Triton's C API as safe Rust: each handle is a type, what must be freed is freed by `Drop`, what borrows has a
//! lifetime, and every error is the crate's [`Error`](gesso::error::Error). It must not know pipelines.
//!
//! ```text
//! Server     the functions of the process we live in        Backend, Model, Instance   borrowed from Triton
//! Request    owned: released once, by Drop                   Input<'r>, Chunk<'r>       live as long as the request
//! Response   owned: sent once; unsent, it answers an error   Output<'s>, &'s mut [u8]   live as long as the response
//! ```

mod backend;
mod error;
mod instance;
mod log;
mod memory;
mod message;
mod metric;
mod model;
mod program;
mod request;
mod response;
mod server;
mod trace;
mod types;
mod words;

pub use crate::config::{DataType, InstanceKind};
pub use backend::{Attributes, Backend};
pub use error::ServerError;
pub use instance::{Instance, Times, now};
pub use log::Level;
pub use memory::{Memory, MemoryKind};
pub use metric::{Counter, Family};
pub use model::Model;
pub use request::{Chunk, Client, Correlation, InSequence, Input, Request};
pub use response::{NewResponse, Output, OutputMemory, Response, Written};
pub use server::Server;
pub use trace::Trace;

/// What a pointer of ours can be attached to. Only `state.rs` does: elsewhere the pointers could get mixed up.
pub(in crate::triton) trait Slot {
    /// The attached pointer; null when there is none.
    fn state(&self) -> gesso::error::Result<*mut std::ffi::c_void>;

    /// Attaches `state`; Triton never reads it.
    fn set_state(&self, state: *mut std::ffi::c_void) -> gesso::error::Result<()>;
}
