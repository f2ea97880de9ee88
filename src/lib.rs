//! The engine of Gesso: runs pipelines serialized by NVIDIA DALI, on the CPU and on GPUs.
//!
//! ```text
//! error, limits  <-  lanes, threads, deadline, memory, tensor  <-  cpu, gpu  <-  coded_video, operator
//!                <-  ops, source  <-  readers  <-  graph, executor  <-  pipeline  <-  capi
//! ```
//!
//! A file becomes a graph, the graph a plan ([`graph`]), once per model. A request becomes part of a batch, and each
//! operator ([`operator`], [`ops`]) makes a batch of the batches before it ([`executor`]).
//!
//! Programs that embed it use [`pipeline`] from Rust and [`capi`] from C. The plugin for Triton Inference Server
//! (`crates/plugin`) and the command line (`crates/cli`) are such programs.
//!
//! To read: [`pipeline`] is what programs see, [`tensor`] what flows, `ops/geometry/flip.rs` a small operator.

pub mod capi;
pub mod coded_video;
pub mod cpu;
pub mod deadline;
pub mod error;
pub mod executor;
mod faults;
pub mod gpu;
pub mod graph;
pub mod lanes;
pub mod limits;
pub mod memory;
pub mod operator;
pub mod ops;
pub mod pipeline;
pub mod readers;
pub mod source;
mod sync;
pub mod tensor;
pub mod threads;
