//! Loading, describing and writing a pipeline.

use std::ffi::{CString, c_char};
use std::sync::Arc;

use super::callback::{self, CallbackTable};
use super::size::Out;
use super::status::{Status, c_text, guard, guarded};
use super::types::{self, GESSO_MAX_NDIM, TensorInfo, device_number};
use crate::error::{Error, Result};
use crate::limits;
use crate::pipeline::Pipeline;
use crate::tensor::{DType, Device, Layout};

/// A pipeline, planned for one kind of device. It never changes.
pub struct PipelineHandle {
    pub(super) pipeline: Arc<Pipeline>,
    inputs: Vec<Named>,
    outputs: Vec<Named>,
}

/// An input or an output with its texts as C has them.
struct Named {
    name: CString,
    layout: CString,
    dtype: Option<DType>,
    device: Device,
    dims: Option<Vec<Option<usize>>>,
}

impl PipelineHandle {
    fn new(pipeline: Pipeline) -> Self {
        let named = |name: &str, layout: Layout| (c_text(name), c_text(layout.as_str()));
        let inputs = pipeline.inputs().iter().map(|input| {
            let (name, layout) = named(&input.name, input.layout);
            let dims = input.ndim.map(|ndim| vec![None; ndim]);
            Named { name, layout, dtype: input.dtype, device: input.device, dims }
        });
        let outputs = pipeline.outputs().iter().enumerate().map(|(i, output)| {
            let (name, layout) = named(&output.name, output.ty.layout.unwrap_or_default());
            let device = pipeline.output_device(i);
            Named { name, layout, dtype: output.ty.dtype, device, dims: output.ty.dims.clone() }
        });
        let (inputs, outputs) = (inputs.collect(), outputs.collect());
        Self { pipeline: Arc::new(pipeline), inputs, outputs }
    }
}

impl Named {
    /// For C; points into `self`.
    fn info(&self) -> TensorInfo {
        let dims = self.dims.as_ref().filter(|dims| dims.len() <= GESSO_MAX_NDIM);
        let mut shape = [-1; GESSO_MAX_NDIM];
        for (extent, known) in shape.iter_mut().zip(dims.into_iter().flatten()) {
            *extent = known.and_then(|known| i64::try_from(known).ok()).unwrap_or(-1);
        }
        TensorInfo {
            struct_size: size_of::<TensorInfo>(),
            name: self.name.as_ptr(),
            layout: self.layout.as_ptr(),
            dtype: types::number(self.dtype),
            device: device_number(self.device),
            ndim: dims.and_then(|dims| i32::try_from(dims.len()).ok()).unwrap_or(-1),
            shape,
        }
    }
}

/// Reads a file that DALI's `Pipeline.serialize` wrote and plans it for a `gesso_device`. For `GESSO_DEVICE_CPU` the
/// devices in the file are ignored. Needs no GPU, whatever the device.
///
/// The bytes are the caller's and are not kept. `*pipeline` is the caller's, to give to `gesso_pipeline_free`; it is
/// null after an error. Any thread.
///
/// # Safety
/// `bytes` points at `length` bytes, `pipeline` at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_load(
    bytes: *const u8,
    length: usize,
    device: i32,
    pipeline: *mut *mut PipelineHandle,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("pipeline", pipeline) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the bytes.
        let bytes = unsafe { types::slice("bytes", bytes, length) }?;
        let loaded = Pipeline::load(bytes, types::device(device)?)?;
        *out = Box::into_raw(Box::new(PipelineHandle::new(loaded)));
        Ok(())
    })
}

/// `gesso_pipeline_load` for a file in which operators `Callback` and sources `CallbackSource` are functions of the
/// program: `callbacks`, of which each has the name of one. A pipeline with sources runs as a stream, one at a time.
///
/// Ownership and threads as for `gesso_pipeline_load`.
///
/// # Safety
/// As for `gesso_pipeline_load`; `callbacks` points at `callback_count` structs of the size that they say, which keep
/// the promises of `gesso_callback`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_load_with_callbacks(
    bytes: *const u8,
    length: usize,
    device: i32,
    callbacks: *const CallbackTable,
    callback_count: usize,
    pipeline: *mut *mut PipelineHandle,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("pipeline", pipeline) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the bytes.
        let bytes = unsafe { types::slice("bytes", bytes, length) }?;
        // SAFETY: the caller vouches for the structs.
        let callbacks = unsafe { callback::callbacks(callbacks, callback_count) }?;
        let loaded = Pipeline::load_with_callbacks(bytes, types::device(device)?, &callbacks)?;
        *out = Box::into_raw(Box::new(PipelineHandle::new(loaded)));
        Ok(())
    })
}

/// Frees a pipeline. Instances that were made of it stay. Null is all right. Any thread, while no other uses the
/// pipeline.
///
/// # Safety
/// `pipeline` is null or from `gesso_pipeline_load`, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_free(pipeline: *mut PipelineHandle) {
    guarded((), || {
        if !pipeline.is_null() {
            // SAFETY: made by `Box::into_raw` in `gesso_pipeline_load`; the caller gives it back once.
            drop(unsafe { Box::from_raw(pipeline) });
        }
    });
}

/// Says what a file holds, as JSON: inputs, operators with their arguments, outputs, and for each operator why Gesso
/// does not run it, if it does not. Works for files that do not load, too. The fields are those that
/// `gesso inspect --json` prints under `pipeline`.
///
/// The bytes are the caller's and are not kept. `*json` is the caller's, to give to `gesso_string_free`; it is null
/// after an error. Any thread.
///
/// # Safety
/// `bytes` points at `length` bytes, `json` at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_describe(bytes: *const u8, length: usize, json: *mut *mut c_char) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("json", json) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the bytes.
        let bytes = unsafe { types::slice("bytes", bytes, length) }?;
        let text = serde_json::to_string(&Pipeline::describe(bytes)?)
            .map_err(|error| Error::internal(format!("a description is no JSON: {error}")))?;
        *out = c_text(&text).into_raw();
        Ok(())
    })
}

/// Makes a file of a description: JSON as `gesso_describe` gives it, of which a description that somebody writes may
/// leave out most. The format is that of `docs/reference/c-api.md`. Whether the pipeline can be run,
/// `gesso_pipeline_load` says of the bytes.
///
/// The text is the caller's and is not kept; it needs no zero at its end. `*bytes` are the caller's, to give to
/// `gesso_bytes_free` with their number; they are null after an error. Any thread.
///
/// # Safety
/// `description` points at `length` bytes, `bytes` at a pointer, `bytes_length` at a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_author(
    description: *const c_char,
    length: usize,
    bytes: *mut *mut u8,
    bytes_length: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("bytes", bytes) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the pointer.
        let out_length = unsafe { types::place("bytes_length", bytes_length) }?;
        *out_length = 0;
        if length > limits::MAX_DESCRIPTION_BYTES {
            return Err(Error::invalid(format!(
                "the description has {length} bytes, more than the limit of {}",
                limits::MAX_DESCRIPTION_BYTES
            )));
        }
        // SAFETY: the caller vouches for the text.
        let text = unsafe { types::slice("description", description.cast::<u8>(), length) }?;
        let description = serde_json::from_slice(text)
            .map_err(|error| Error::invalid(format!("not the description of a pipeline: {error}")))?;
        let made = Pipeline::author(&description)?.into_boxed_slice();
        *out_length = made.len();
        *out = Box::into_raw(made).cast();
        Ok(())
    })
}

/// Frees bytes that the library gave away, as many as it said. Null is all right. Any thread.
///
/// # Safety
/// `bytes` is null, or from `gesso_author` with this length, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_bytes_free(bytes: *mut u8, length: usize) {
    guarded((), || {
        if !bytes.is_null() {
            // SAFETY: made by `Box::into_raw` of a slice of this length; the caller gives it back once.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes, length)) });
        }
    });
}

/// Frees a text that the library gave away. Null is all right. Any thread.
///
/// # Safety
/// `text` is null or from `gesso_describe`, and neither freed nor changed in length before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_string_free(text: *mut c_char) {
    guarded((), || {
        if !text.is_null() {
            // SAFETY: made by `CString::into_raw`; the caller gives it back once.
            drop(unsafe { CString::from_raw(text) });
        }
    });
}

/// How many inputs a pipeline has; 0 for null. Any thread.
///
/// # Safety
/// `pipeline` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_input_count(pipeline: *const PipelineHandle) -> usize {
    // SAFETY: the caller vouches for the pointer.
    guarded(0, || unsafe { types::reference("pipeline", pipeline) }.map_or(0, |handle| handle.inputs.len()))
}

/// How many outputs a pipeline has; 0 for null. Any thread.
///
/// # Safety
/// `pipeline` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_output_count(pipeline: *const PipelineHandle) -> usize {
    // SAFETY: the caller vouches for the pointer.
    guarded(0, || unsafe { types::reference("pipeline", pipeline) }.map_or(0, |handle| handle.outputs.len()))
}

/// Fills `info`, whose `struct_size` is set, with what is known of input `index`. Any thread.
///
/// # Safety
/// `pipeline` is valid; `info` points at a struct of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_input(
    pipeline: *const PipelineHandle,
    index: usize,
    info: *mut TensorInfo,
) -> Status {
    // SAFETY: the caller vouches for both pointers.
    guard(|| unsafe { fill(pipeline, |handle| &handle.inputs, "input", index, info) })
}

/// Fills `info`, whose `struct_size` is set, with what is known of output `index`. Any thread.
///
/// # Safety
/// `pipeline` is valid; `info` points at a struct of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_output(
    pipeline: *const PipelineHandle,
    index: usize,
    info: *mut TensorInfo,
) -> Status {
    // SAFETY: the caller vouches for both pointers.
    guard(|| unsafe { fill(pipeline, |handle| &handle.outputs, "output", index, info) })
}

/// # Safety
/// `pipeline` and `info` are null or valid.
unsafe fn fill(
    pipeline: *const PipelineHandle,
    of: fn(&PipelineHandle) -> &Vec<Named>,
    what: &str,
    index: usize,
    info: *mut TensorInfo,
) -> Result<()> {
    // SAFETY: the caller vouches for the pointer.
    let handle = unsafe { types::reference("pipeline", pipeline) }?;
    // SAFETY: the caller vouches for the pointer.
    let info = unsafe { Out::new("info", info) }?;
    let named = of(handle);
    let count = named.len();
    let found = named
        .get(index)
        .ok_or_else(|| Error::not_found(format!("there is no {what} {index}: the pipeline has {count}")))?;
    info.write(&found.info());
    Ok(())
}

/// The largest batch that the file was made for; larger ones run, too. 0 for null. Any thread.
///
/// # Safety
/// `pipeline` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_max_batch_size(pipeline: *const PipelineHandle) -> usize {
    // SAFETY: the caller vouches for the pointer.
    let handle = || unsafe { types::reference("pipeline", pipeline) };
    guarded(0, || handle().map_or(0, |handle| handle.pipeline.max_batch_size()))
}

/// 1 if instances of the pipeline need a GPU, else 0. Any thread.
///
/// # Safety
/// `pipeline` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_pipeline_needs_gpu(pipeline: *const PipelineHandle) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    let handle = || unsafe { types::reference("pipeline", pipeline) };
    guarded(0, || handle().map_or(0, |handle| i32::from(handle.pipeline.needs_gpu())))
}
