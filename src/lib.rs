//! Gesso runs pipelines serialized by NVIDIA DALI inside Triton Inference Server.
//!
//! ```text
//! tensor, error, limits  <-  cpu, gpu  <-  ops  <-  graph, executor  <-  pipeline  <-  config  <-  triton
//!                                                                            ^          ^
//!                                                                          capi       bin/gesso
//! ```
//!
//! A file becomes a graph, the graph a plan ([`graph`]), once per model. A request becomes part of a batch, each operator
//! ([`ops`]) makes a batch of the batches before it ([`executor`]), and the last one writes into the response ([`triton`]).
//!
//! Programs that embed it use [`pipeline`] from Rust and [`capi`] from C.
//!
//! To read: [`pipeline`] is what the leaves see, [`tensor`] what flows, `ops/flip.rs` a small operator.

pub mod capi;
pub mod config;
pub mod cpu;
pub mod error;
pub mod executor;
pub mod gpu;
pub mod graph;
pub mod limits;
pub mod ops;
pub mod pipeline;
pub mod tensor;
pub mod triton;
