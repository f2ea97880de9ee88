//! Gesso runs pipelines serialized by NVIDIA DALI inside Triton Inference Server.

pub mod cpu;
pub mod error;
pub mod executor;
pub mod graph;
pub mod limits;
pub mod ops;
pub mod pipeline;
pub mod tensor;
pub mod triton;
