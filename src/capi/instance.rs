//! Instances and their runs.

use std::ffi::c_void;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::device;
use super::input;
use super::pipeline::PipelineHandle;
use super::result::ResultHandle;
use super::sink::CallersMemory;
use super::size;
use super::status::{Status, guard, guarded};
use super::types::{self, Allocate, InputTensor, InstanceOptions};
use crate::cpu::formats::Formats;
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::{Instance, Pipeline, Preferences};

/// Runs one batch at a time.
pub struct InstanceHandle {
    pipeline: Arc<Pipeline>,
    /// Locked by the run that is under way, so that a second one is an error.
    instance: Mutex<Instance>,
    ordinal: i32,
    outputs_on_host: bool,
}

/// Makes an instance of a pipeline: its threads, its memory and, where the pipeline needs one, its GPU. `options` may
/// be null.
///
/// `*instance` is the caller's, to give to `gesso_instance_free`; it is null after an error. The pipeline may be freed
/// before. Any thread; instances of one pipeline are independent of one another.
///
/// # Safety
/// `pipeline` is valid; `options` is null or points at a struct of the size that it says; `instance` points at a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_instance_create(
    pipeline: *const PipelineHandle,
    options: *const InstanceOptions,
    instance: *mut *mut InstanceHandle,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("instance", instance) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the pointer.
        let pipeline = &unsafe { types::reference("pipeline", pipeline) }?.pipeline;
        let options = if options.is_null() {
            InstanceOptions::default()
        } else {
            // SAFETY: the caller vouches for the pointer.
            unsafe { size::read("options", options) }?
        };
        // SAFETY: the caller vouches for the text.
        let formats = unsafe { types::formats(options.formats) }?;
        *out = Box::into_raw(Box::new(InstanceHandle::new(pipeline, &options, formats)?));
        Ok(())
    })
}

impl InstanceHandle {
    fn new(pipeline: &Arc<Pipeline>, options: &InstanceOptions, formats: Formats) -> Result<Self> {
        let gpu = device::open(pipeline, options.gpu, options.gpu_multiprocessors)?;
        let threads = (options.num_threads != 0).then_some(options.num_threads);
        let preferences = Preferences {
            inputs_may_change: options.inputs_may_change != 0,
            deterministic: options.deterministic != 0,
            formats,
            ..Preferences::default()
        };
        let instance = pipeline.instance_with(threads, gpu.as_ref(), &preferences)?;
        Ok(Self {
            pipeline: Arc::clone(pipeline),
            instance: Mutex::new(instance),
            ordinal: options.gpu,
            outputs_on_host: options.outputs_on_host != 0,
        })
    }
}

impl InstanceHandle {
    /// The instance for this thread alone.
    fn alone(&self) -> Result<MutexGuard<'_, Instance>> {
        let busy =
            "the instance is running a batch: an instance runs one at a time, make one for each thread";
        self.instance.try_lock().ok_or_else(|| Error::new(ErrorKind::Unavailable, busy))
    }
}

/// Frees an instance. Results stay. Null is all right. Any thread, while no other uses the instance.
///
/// # Safety
/// `instance` is null or from `gesso_instance_create`, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_instance_free(instance: *mut InstanceHandle) {
    guarded((), || {
        if !instance.is_null() {
            // SAFETY: made by `Box::into_raw` in `gesso_instance_create`; the caller gives it back once.
            drop(unsafe { Box::from_raw(instance) });
        }
    });
}

/// Runs one batch of `batch_size` samples; returns when it is done. The outputs are in memory of the result: see
/// `gesso_result_tensor`. A sample that fails leaves the others alone: see `gesso_result_sample_status`.
///
/// The inputs and their memory are the caller's, are read during the call only, and must not change during it
/// unless `inputs_may_change` is set. `*result` is the caller's, to give to
/// `gesso_result_free`; it is null after an error. Any thread, but one at a time for an instance: else
/// `GESSO_STATUS_UNAVAILABLE`.
///
/// # Safety
/// `instance` is valid; `inputs` points at `input_count` inputs whose pointers are valid; `result` points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_instance_run(
    instance: *const InstanceHandle,
    batch_size: usize,
    inputs: *const InputTensor,
    input_count: usize,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller vouches for the same.
    guard(|| unsafe { run(instance, batch_size, inputs, input_count, None, std::ptr::null_mut(), result) })
}

/// `gesso_instance_run` with outputs in memory of the caller's: `allocate` is asked for each sample, with `user`. The
/// memory must stay until the call returns, and as long as the result is asked for those samples. When this returns,
/// the memory is written.
///
/// Ownership and threads as for `gesso_instance_run`.
///
/// # Safety
/// As for `gesso_instance_run`; `allocate` keeps the promises of `gesso_allocate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_instance_run_into(
    instance: *const InstanceHandle,
    batch_size: usize,
    inputs: *const InputTensor,
    input_count: usize,
    allocate: Allocate,
    user: *mut c_void,
    result: *mut *mut ResultHandle,
) -> Status {
    guard(|| {
        if allocate.is_none() {
            return Err(Error::invalid("`allocate` is a null pointer"));
        }
        // SAFETY: the caller vouches for the same.
        unsafe { run(instance, batch_size, inputs, input_count, allocate, user, result) }
    })
}

/// Lets an instance go on where another one ended: there are `samples` samples before its next batch, and random
/// numbers are those of that batch. Those that are drawn in branches of conditionals depend on the data before:
/// `gesso_instance_go_on_in_branches`.
///
/// Any thread, but one at a time for an instance: else `GESSO_STATUS_UNAVAILABLE`.
///
/// # Safety
/// `instance` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_instance_go_on(instance: *const InstanceHandle, samples: u64) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let handle = unsafe { types::reference("instance", instance) }?;
        handle.alone()?.go_on(samples);
        Ok(())
    })
}

/// As `gesso_instance_go_on` for numbers that are drawn in branches of conditionals: `branch_samples` are the `count`
/// numbers of `gesso_result_branch_samples`, of the last batch of the instance that this one goes on from.
///
/// `GESSO_STATUS_INVALID_ARGUMENT` when the pipeline has another number of branches. Any thread, but one at a time for
/// an instance: else `GESSO_STATUS_UNAVAILABLE`.
///
/// # Safety
/// `instance` is valid; `branch_samples` points at `count` numbers, or is null if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_instance_go_on_in_branches(
    instance: *const InstanceHandle,
    branch_samples: *const u64,
    count: usize,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let handle = unsafe { types::reference("instance", instance) }?;
        // SAFETY: the caller vouches for the numbers.
        let samples = unsafe { types::slice("branch_samples", branch_samples, count) }?;
        handle.alone()?.go_on_in_branches(samples)
    })
}

/// # Safety
/// As for [`gesso_instance_run_into`]; without `allocate`, outputs stay in our memory.
unsafe fn run(
    instance: *const InstanceHandle,
    batch_size: usize,
    inputs: *const InputTensor,
    input_count: usize,
    allocate: Allocate,
    user: *mut c_void,
    result: *mut *mut ResultHandle,
) -> Result<()> {
    // SAFETY: the caller vouches for the pointer.
    let out = unsafe { types::place("result", result) }?;
    *out = std::ptr::null_mut();
    // SAFETY: the caller vouches for the pointer.
    let handle = unsafe { types::reference("instance", instance) }?;
    let mut instance = handle.alone()?;
    // SAFETY: the caller vouches for the inputs; the batches live no longer than this call.
    let batches = unsafe { input::batches(&handle.pipeline, batch_size, inputs, input_count) }?;
    let mut sink = CallersMemory::new(allocate, user, handle.ordinal);
    let outcome = instance.run(batch_size, batches, &mut sink)?;
    let (places, on_host) = (&sink.places, handle.outputs_on_host);
    let made = ResultHandle::new(&outcome, batch_size, places, &mut instance, handle.ordinal, on_host)?;
    *out = Box::into_raw(Box::new(made));
    Ok(())
}
