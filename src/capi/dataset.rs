//! What a reader reads, sample by sample, for programs that decide themselves which comes next.

use std::ffi::c_char;
use std::sync::Arc;

use super::input;
use super::result::ResultHandle;
use super::size;
use super::status::{Status, guard, guarded};
use super::types::{self, InputTensor};
use crate::error::{Context, Error, Result};
use crate::memory::HostPool;
use crate::pipeline::{Dataset, Input};
use crate::tensor::{DType, Device, Layout};

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

/// Says which formats of files may be decoded, as `formats` of `gesso_instance_options` does: all until then. Any
/// thread, while no other uses the samples.
///
/// # Safety
/// `dataset` is valid; `formats` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_dataset_allow(dataset: *mut DatasetHandle, formats: *const c_char) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer, and that no other uses it.
        let handle = unsafe { types::place("dataset", dataset) }?;
        // SAFETY: the caller vouches for the text.
        handle.dataset.allow(unsafe { types::formats(formats) }?);
        Ok(())
    })
}

/// The files of a data set whose order `shuffle_after_epoch` changes by files, not by samples: how many there are; 0
/// for other data sets. Puts behind which sample each ends into `ends`, of as many as `capacity`. Any thread.
///
/// # Safety
/// `dataset` is null or valid; `ends` points at so many numbers, or is null and `capacity` 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_dataset_files(
    dataset: *const DatasetHandle,
    ends: *mut u64,
    capacity: usize,
) -> usize {
    guarded(0, || {
        // SAFETY: the caller vouches for the pointer.
        let Ok(handle) = (unsafe { types::reference("dataset", dataset) }) else { return 0 };
        let files = handle.dataset.files();
        let room = if ends.is_null() { 0 } else { capacity };
        for (i, &end) in files.iter().take(room).enumerate() {
            let place = ends.wrapping_add(i);
            // SAFETY: the caller vouches for so many numbers.
            unsafe { place.write_unaligned(end as u64) };
        }
        files.len()
    })
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
    // SAFETY: the caller vouches for the same.
    guard(|| unsafe { read(dataset, index, (std::ptr::null(), 0), result) })
}

/// `gesso_dataset_read` for a reader whose `arguments` have values of their own for each sample, such as the region of
/// an array: by their names, each a list of `double` in host memory.
///
/// The arguments and their memory are the caller's, and are read during the call only. Ownership and threads as for
/// `gesso_dataset_read`.
///
/// # Safety
/// As for `gesso_dataset_read`; `arguments` points at `argument_count` inputs of one sample whose pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_dataset_read_with(
    dataset: *const DatasetHandle,
    index: usize,
    arguments: *const InputTensor,
    argument_count: usize,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller vouches for the same.
    guard(|| unsafe { read(dataset, index, (arguments, argument_count), result) })
}

/// # Safety
/// As for [`gesso_dataset_read_with`].
unsafe fn read(
    dataset: *const DatasetHandle,
    index: usize,
    (arguments, argument_count): (*const InputTensor, usize),
    result: *mut *mut ResultHandle,
) -> Result<()> {
    // SAFETY: the caller vouches for the pointer.
    let out = unsafe { types::place("result", result) }?;
    *out = std::ptr::null_mut();
    // SAFETY: the caller vouches for the pointer.
    let handle = unsafe { types::reference("dataset", dataset) }?;
    // SAFETY: the caller vouches for the arguments.
    let given = unsafe { size::read_all("arguments", arguments, argument_count) }?;
    // SAFETY: as above.
    let fed = given.iter().map(|argument| unsafe { values(argument) }).collect::<Result<Vec<_>>>()?;
    let outcome = handle.dataset.read_fed(index, &fed, &handle.pool)?;
    *out = Box::into_raw(Box::new(ResultHandle::of_own(&outcome, &handle.pool, 0)?));
    Ok(())
}

/// The name and the values of an argument.
///
/// # Safety
/// It is one sample whose pointers are valid.
unsafe fn values(argument: &InputTensor) -> Result<(String, Vec<f64>)> {
    // SAFETY: the caller vouches for the text.
    let name = unsafe { types::text("name", argument.name) }?.to_owned();
    let declared =
        Input { name: String::new(), dtype: None, ndim: None, layout: Layout::NONE, device: Device::Cpu };
    // SAFETY: the caller vouches for the sample; the batch lives no longer than this call.
    let batch = unsafe { input::batch(&declared, argument, 1) }.context(|| format!("argument `{name}`"))?;
    if batch.desc().dtype != DType::F64 {
        let found = batch.desc().dtype;
        return Err(Error::invalid(format!("argument `{name}` is of type {found}, expected {}", DType::F64)));
    }
    let numbers = batch.view(0).bytes.as_chunks::<8>().0;
    Ok((name, numbers.iter().map(|&bytes| f64::from_ne_bytes(bytes)).collect()))
}
