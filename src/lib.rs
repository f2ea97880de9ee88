//! Gesso runs pipelines serialized by NVIDIA DALI inside Triton Inference Server.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod cpu;
pub mod error;
pub mod limits;
pub mod tensor;
pub mod triton;
