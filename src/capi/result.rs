//! What a batch gave: its samples, in memory of the result or of the caller, and why samples failed.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::Arc;

use super::failure::{ErrorInfo, Failure};
use super::sample::{Data, Destination, Exports, Made};
use super::size::Out;
use super::status::{Status, guard, guarded};
use super::types::{self, ElementType, Tensor};
use crate::error::{Error, Result};
use crate::memory::HostPool;
use crate::pipeline::{Instance, Outcome};
use crate::tensor::{Batch, Sample};

/// The outputs of one batch. It never changes, and may outlive its instance and its pipeline.
pub struct ResultHandle(pub(super) Arc<Data>);

impl ResultHandle {
    /// Takes over what a batch gave. What lies in memory that the result cannot keep, such as an input that was passed
    /// through, is copied. `places` is where the caller wanted samples.
    ///
    /// # Errors
    /// What the device says, where samples are brought to the host.
    pub(super) fn new(
        outcome: &Outcome<'_>,
        batch_size: usize,
        places: &HashMap<(usize, usize), Destination>,
        instance: &mut Instance,
        ordinal: i32,
        on_host: bool,
    ) -> Result<Self> {
        let failure = |i| outcome.failures.get(i).map(Failure::of);
        let failures: Vec<_> = (0..batch_size).map(failure).collect();
        let pool = Arc::clone(instance.memory());
        let mut outputs = Vec::with_capacity(outcome.outputs.len());
        for (output, batch) in outcome.outputs.iter().enumerate() {
            let place = |i| places.get(&(output, i)).copied();
            let foreign =
                |i| matches!(batch.sample(i), Some(Sample::Device(bytes)) if bytes.owner().is_none());
            let moved;
            let batch = if (0..batch.len()).any(|i| place(i).is_none() && (on_host || foreign(i))) {
                // What the caller has already stays where it is.
                let left = (0..batch.len()).map(|i| match (place(i), batch.sample(i)) {
                    (None, Some(sample)) => sample.clone(),
                    _ => Sample::Missing,
                });
                let left = Batch::new(batch.desc().clone(), left.collect())?;
                moved = instance.to_host(&left)?.coming_from(batch.origins().cloned());
                &moved
            } else {
                batch
            };
            let made = |i: usize| match failures.get(i) {
                Some(None) => Made::new(batch, i, place(i), &pool).map(Some),
                _ => Ok(None),
            };
            outputs.push((0..batch.len()).map(made).collect::<Result<Vec<_>>>()?);
        }
        let (exports, branch_samples) = (Exports::default(), outcome.branch_samples.clone());
        Ok(Self(Arc::new(Data { exports, outputs, failures, ordinal, branch_samples })))
    }
}

impl ResultHandle {
    /// Takes over a batch whose outputs are in memory of ours, on the host or on GPU `ordinal`, which it keeps. What
    /// lies in the caller's memory on the host is copied.
    ///
    /// # Errors
    /// Internal for a sample that has neither bytes nor an error, or that is in the caller's memory on a GPU.
    pub(super) fn of_own(outcome: &Outcome<'_>, pool: &Arc<HostPool>, ordinal: i32) -> Result<Self> {
        let count = outcome.failures.len();
        let failure = |i| outcome.failures.get(i).map(Failure::of);
        let failures: Vec<_> = (0..count).map(failure).collect();
        let made = |batch: &Batch<'_>, i: usize| match failures.get(i) {
            Some(None) => Made::new(batch, i, None, pool).map(Some),
            _ => Ok(None),
        };
        let of_output =
            |batch: &Batch<'_>| (0..batch.len()).map(|i| made(batch, i)).collect::<Result<Vec<_>>>();
        let outputs = outcome.outputs.iter().map(of_output).collect::<Result<_>>()?;
        let (exports, branch_samples) = (Exports::default(), outcome.branch_samples.clone());
        Ok(Self(Arc::new(Data { exports, outputs, failures, ordinal, branch_samples })))
    }
}

/// Frees a result. Tensors that were exported stay. Null is all right. Any thread, while no other uses the result.
///
/// # Safety
/// `result` is null or from a run, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_free(result: *mut ResultHandle) {
    guarded((), || {
        if !result.is_null() {
            // SAFETY: made by `Box::into_raw` in a run; the caller gives it back once.
            drop(unsafe { Box::from_raw(result) });
        }
    });
}

/// How many samples the batch had; 0 for null. Any thread.
///
/// # Safety
/// `result` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_batch_size(result: *const ResultHandle) -> usize {
    // SAFETY: the caller vouches for the pointer.
    guarded(0, || unsafe { types::reference("result", result) }.map_or(0, |result| result.0.failures.len()))
}

/// How many samples each branch of conditionals has had, in the batch and those before it: `*count` numbers, for
/// `gesso_instance_go_on_in_branches` or a stream that goes on behind the batch. None, and null, unless random numbers
/// are drawn in branches. They live as long as the result. Any thread.
///
/// # Safety
/// `result` is null or valid; `count` points at a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_branch_samples(
    result: *const ResultHandle,
    count: *mut usize,
) -> *const u64 {
    guarded(std::ptr::null(), || {
        // SAFETY: the caller vouches for the pointer.
        let result = unsafe { types::reference("result", result) };
        let samples = result.map_or(&[][..], |result| &result.0.branch_samples);
        // SAFETY: the caller vouches for the pointer.
        if let Ok(count) = unsafe { types::place("count", count) } {
            *count = samples.len();
        }
        if samples.is_empty() { std::ptr::null() } else { samples.as_ptr() }
    })
}

/// What became of a sample: `GESSO_STATUS_OK`, or why it failed; then `*message`, unless `message` is null, says more.
/// The text lives as long as the result. `gesso_result_sample_error` has it in its parts. Any thread.
///
/// # Safety
/// `result` is valid; `message` is null or points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_sample_status(
    result: *const ResultHandle,
    sample: usize,
    message: *mut *const c_char,
) -> Status {
    let mut of_sample = Status::Ok;
    let done = guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let result = unsafe { types::reference("result", result) }?;
        let failure = result.0.failure(sample)?;
        let text = failure.map_or(c"".as_ptr(), |failure| failure.message.as_ptr());
        of_sample = failure.map_or(Status::Ok, Failure::status);
        if !message.is_null() {
            // SAFETY: the caller vouches for the pointer.
            *unsafe { types::place("message", message) }? = text;
        }
        Ok(())
    });
    if done == Status::Ok { of_sample } else { done }
}

/// Fills `error`, whose `struct_size` is set, with what sample `sample` failed with; its `status` is `GESSO_STATUS_OK`,
/// and its texts are empty, if it did not. The texts live as long as the result. Any thread.
///
/// # Safety
/// `result` is valid; `error` points at a struct of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_sample_error(
    result: *const ResultHandle,
    sample: usize,
    error: *mut ErrorInfo,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let data = &unsafe { types::reference("result", result) }?.0;
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new("error", error) }?;
        match data.failure(sample)? {
            Some(failure) => out.write(&failure.info()),
            None => out.write(&NO_ERROR),
        }
        Ok(())
    })
}

/// What stands for a sample that did not fail.
const NO_ERROR: ErrorInfo = ErrorInfo {
    struct_size: size_of::<ErrorInfo>(),
    status: Status::Ok as i32,
    message: c"".as_ptr(),
    reason: c"".as_ptr(),
    operator_name: c"".as_ptr(),
    source_name: c"".as_ptr(),
    file: c"".as_ptr(),
};

/// Fills `tensor`, whose `struct_size` is set, with output `output` of sample `sample`. What it points at is the
/// result's (or memory that the caller offered) and lives as long as it. `GESSO_STATUS_NOT_FOUND` for a sample that
/// failed. Any thread.
///
/// # Safety
/// `result` is valid; `tensor` points at a struct of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_tensor(
    result: *const ResultHandle,
    output: usize,
    sample: usize,
    tensor: *mut Tensor,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let data = &unsafe { types::reference("result", result) }?.0;
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new("tensor", tensor) }?;
        out.write(&tensor_of(data.made(output, sample)?, data));
        Ok(())
    })
}

/// Fills `count` tensors, as many as the batch has samples, whose `struct_size` is set, with output `output`:
/// `gesso_result_tensor` for all samples at once. That of a sample that failed has the type `GESSO_DTYPE_ANY` and is
/// else empty. Any thread.
///
/// # Safety
/// `result` is valid; `tensors` points at `count` structs of the size that they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_tensors(
    result: *const ResultHandle,
    output: usize,
    tensors: *mut Tensor,
    count: usize,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let data = &unsafe { types::reference("result", result) }?.0;
        let (samples, outputs) = (data.failures.len(), data.outputs.len());
        if count != samples {
            return Err(Error::invalid(format!(
                "{count} tensors, expected one for each of {samples} samples"
            )));
        }
        let made = data.outputs.get(output).ok_or_else(|| {
            Error::not_found(format!("there is no output {output}: the pipeline has {outputs}"))
        })?;
        // SAFETY: the caller vouches for so many.
        for (out, made) in unsafe { Out::all("tensors", tensors, count) }?.into_iter().zip(made) {
            out.write(&made.as_ref().map_or(FAILED, |made| tensor_of(made, data)));
        }
        Ok(())
    })
}

/// What stands for a sample that failed.
const FAILED: Tensor = Tensor {
    struct_size: size_of::<Tensor>(),
    data: std::ptr::null_mut(),
    bytes: 0,
    dtype: ElementType::Any as i32,
    device: types::CPU,
    device_id: 0,
    ndim: 0,
    shape: std::ptr::null(),
    layout: c"".as_ptr(),
    origin: c"".as_ptr(),
};

fn tensor_of(made: &Made, data: &Data) -> Tensor {
    made.described.tensor(made.data(), made.bytes, made.device(), data.ordinal)
}
