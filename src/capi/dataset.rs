//! What a reader reads, sample by sample, for programs that decide themselves which comes next.

use std::sync::Arc;

use super::result::ResultHandle;
use super::status::{Status, guard, guarded};
use super::types;
use crate::memory::HostPool;
use crate::pipeline::Dataset;

/// The samples of a reader.
pub struct DatasetHandle {
    dataset: Dataset,
    pool: Arc<HostPool>,
}

/// Finds the samples of the reader in a serialized pipeline, of which it is the only operator. Its order is not looked
/// at.
///
/// `*dataset` is the caller's, to give to `gesso_dataset_free`; it is null after an error. Any thread.
///
/// # Safety
/// `bytes` points at `length` bytes; `dataset` points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_dataset_open(
    bytes: *const u8,
    length: usize,
    dataset: *mut *mut DatasetHandle,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("dataset", dataset) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the bytes.
        let bytes = unsafe { types::slice("bytes", bytes, length) }?;
        let handle = DatasetHandle { dataset: Dataset::open(bytes)?, pool: Arc::default() };
        *out = Box::into_raw(Box::new(handle));
        Ok(())
    })
}

/// Frees the samples. Results stay. Null is all right. Any thread, while no other uses them.
///
/// # Safety
/// `dataset` is null or from `gesso_dataset_open`, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_dataset_free(dataset: *mut DatasetHandle) {
    guarded((), || {
        if !dataset.is_null() {
            // SAFETY: made by `Box::into_raw` in `gesso_dataset_open`; the caller gives it back once.
            drop(unsafe { Box::from_raw(dataset) });
        }
    });
}

/// How many samples there are; 0 for null. Any thread.
///
/// # Safety
/// `dataset` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_dataset_count(dataset: *const DatasetHandle) -> usize {
    // SAFETY: the caller vouches for the pointer.
    guarded(0, || unsafe { types::reference("dataset", dataset) }.map_or(0, |handle| handle.dataset.count()))
}

/// Reads sample `index`: a batch of one, with the outputs of the reader.
///
/// `*result` is the caller's, to give to `gesso_result_free`; it is null after an error. Any thread, several at a time.
///
/// # Safety
/// `dataset` is valid; `result` points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_dataset_read(
    dataset: *const DatasetHandle,
    index: usize,
    result: *mut *mut ResultHandle,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("result", result) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the pointer.
        let handle = unsafe { types::reference("dataset", dataset) }?;
        let outcome = handle.dataset.read(index, &handle.pool)?;
        *out = Box::into_raw(Box::new(ResultHandle::of_own(&outcome, &handle.pool, 0)?));
        Ok(())
    })
}
