//! The C API: what `include/gesso.h` declares, which cbindgen makes of these files. It must not know Triton.
//!
//! ```text
//! types    what crosses: enumerations, structs with a size        status   statuses, the last error, the fence
//! pipeline load, describe          instance   create, run         result   what came out of a batch
//! stream   batches that readers or videos feed             dataset  what a reader reads, sample by sample
//! size     structs of older and newer callers              sample   samples that came out
//! dlpack   the same for others
//! operator what libraries with operators offer      library    loads them      foreign    runs them
//! device   the GPU of an instance or a stream               failure  what a call or a sample failed with
//! callback functions of the program as operators and sources  store  files that the program reads for readers
//! ```
//!
//! Every function is one `status::guard`ed closure: no panic leaves it. Pointers from C are looked at once, at the top
//! of a function, and become references or an error.

#![expect(unsafe_code, reason = "this is a boundary to C")]

pub mod callback;
pub mod dataset;
mod device;
pub mod dlpack;
pub mod failure;
mod foreign;
pub mod input;
pub mod instance;
pub mod library;
pub mod operator;
pub mod pipeline;
pub mod result;
mod sample;
pub mod sink;
mod size;
pub mod status;
pub mod store;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod types;
