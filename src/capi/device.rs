//! The GPU that an instance or a stream works on.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::pipeline::{Allowance, Gpu, Pipeline};

/// GPU number `ordinal` for a pipeline that needs one, `None` for others; its batches take no more than
/// `multiprocessors`, but for 0.
///
/// # Errors
/// Invalid for a negative number; unavailable when the GPU, or a part of it, cannot be had.
pub(super) fn open(pipeline: &Pipeline, ordinal: i32, multiprocessors: usize) -> Result<Option<Arc<Gpu>>> {
    let number = usize::try_from(ordinal)
        .map_err(|_| Error::invalid(format!("`gpu` is {ordinal}, expected at least 0")))?;
    let allowance = Allowance { memory: None, multiprocessors: NonZeroUsize::new(multiprocessors) };
    pipeline.needs_gpu().then(|| Gpu::open_within(number, allowance)).transpose().map_err(|error| {
        Error::new(
            error.kind(),
            format!("{error}; load the pipeline for `GESSO_DEVICE_CPU` to run it on host threads"),
        )
    })
}
