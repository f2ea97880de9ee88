//! Streams: batches of a pipeline whose inputs readers feed, one after the other.

use std::ffi::c_char;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::device;
use super::input;
use super::pipeline::PipelineHandle;
use super::result::ResultHandle;
use super::size;
use super::status::{Status, c_text, guard, guarded};
use super::types::{self, InputTensor, StreamOptions};
use crate::cpu::formats::Formats;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::pipeline::{Pipeline, Preferences, Stream, StreamSettings};

/// Reads, computes and gives batches in order, ahead of who takes them.
pub struct StreamHandle {
    stream: Mutex<Stream>,
    pipeline: Arc<Pipeline>,
    /// Memory for samples that a result cannot keep where they are.
    pool: Arc<HostPool>,
    readers: String,
    /// The number of the GPU.
    ordinal: i32,
}

impl StreamHandle {
    /// The stream for this thread alone.
    fn alone(&self) -> Result<MutexGuard<'_, Stream>> {
        let busy = || Error::new(ErrorKind::Unavailable, "another thread waits for a batch of this stream");
        self.stream.try_lock().ok_or_else(busy)
    }
}

/// Makes a stream of a pipeline whose inputs are all fed by readers, or which has none, or which takes videos: finds
/// the samples, and begins to read ahead when the first batch is asked for. `options` may be null. Outputs are where
/// they are made, on the host or on the GPU.
///
/// `*stream` is the caller's, to give to `gesso_stream_free`; it is null after an error. The pipeline may be freed
/// before. Any thread.
///
/// # Safety
/// `pipeline` is valid; `options` is null or points at a struct of the size that it says; `stream` points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_stream_create(
    pipeline: *const PipelineHandle,
    options: *const StreamOptions,
    stream: *mut *mut StreamHandle,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("stream", stream) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the pointer.
        let pipeline = &unsafe { types::reference("pipeline", pipeline) }?.pipeline;
        let options = if options.is_null() {
            StreamOptions::default()
        } else {
            // SAFETY: the caller vouches for the pointer.
            unsafe { size::read("options", options) }?
        };
        // SAFETY: the caller vouches for the text.
        let formats = unsafe { types::formats(options.formats) }?;
        // SAFETY: the caller vouches for the numbers.
        let branches =
            unsafe { types::slice("branch_samples", options.branch_samples, options.branch_count) }?;
        let settings = settings(&options, formats, branches)?;
        let gpu = device::open(pipeline, options.gpu, options.gpu_multiprocessors)?;
        let made = pipeline.stream(&settings, gpu.as_ref())?;
        let readers: serde_json::Map<_, _> =
            made.readers().iter().map(|(name, facts)| (name.clone(), serde_json::json!(facts))).collect();
        let readers = serde_json::Value::Object(readers).to_string();
        *out = Box::into_raw(Box::new(StreamHandle {
            stream: Mutex::new(made),
            pipeline: Arc::clone(pipeline),
            pool: Arc::default(),
            readers,
            ordinal: options.gpu,
        }));
        Ok(())
    })
}

fn settings(options: &StreamOptions, formats: Formats, branch_samples: &[u64]) -> Result<StreamSettings> {
    let given = |value: usize| (value != 0).then_some(value);
    let within = |name: &str, value: usize, most: usize| match value <= most {
        true => Ok(given(value)),
        false => Err(Error::invalid(format!("`{name}` is {value}, expected at most {most}"))),
    };
    let usual = StreamSettings::default();
    Ok(StreamSettings {
        batch_size: within("batch_size", options.batch_size, limits::MAX_BATCH_SIZE)?,
        prefetch: within("prefetch", options.prefetch, limits::MAX_STREAM_BATCHES)?.unwrap_or(usual.prefetch),
        lanes: within("lanes", options.lanes, limits::MAX_BATCHES_IN_FLIGHT)?.unwrap_or(usual.lanes),
        num_threads: given(options.num_threads),
        first: options.first,
        branch_samples: branch_samples.to_vec(),
        next_epoch: (options.next_epoch != 0).then_some(options.read),
        to_host: options.outputs_on_host != 0,
        preferences: Preferences { deterministic: options.deterministic != 0, formats, ..usual.preferences },
    })
}

/// Frees a stream; what it is doing ends at the next operator. Results stay. Null is all right. Any thread, while no
/// other uses the stream.
///
/// # Safety
/// `stream` is null or from `gesso_stream_create`, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_stream_free(stream: *mut StreamHandle) {
    guarded((), || {
        if !stream.is_null() {
            // SAFETY: made by `Box::into_raw` in `gesso_stream_create`; the caller gives it back once.
            drop(unsafe { Box::from_raw(stream) });
        }
    });
}

/// Gives a stream one input of `count` samples, of a pipeline that takes videos: the video, after which batches of it
/// come, and before it what stands beside them. The memory is read during the call only. A video that is given while
/// another one is read waits for its turn.
///
/// Any thread, but one at a time for a stream: else `GESSO_STATUS_UNAVAILABLE`.
///
/// # Safety
/// `stream` is valid; `input` points at an input whose pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_stream_feed(
    stream: *const StreamHandle,
    count: usize,
    input: *const InputTensor,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let handle = unsafe { types::reference("stream", stream) }?;
        let mut stream = handle.alone()?;
        // SAFETY: the caller vouches for the input; the batch lives no longer than this call.
        let (name, batch) = unsafe { input::one(&handle.pipeline, count, input) }?;
        stream.feed(&name, &batch)
    })
}

/// As `gesso_stream_feed` for the video, one sample in host memory, but reads it where it is. The memory must stay as
/// it is until `gesso_stream_next` has given a null `*result`, which is the end of all that was fed, or the stream was
/// freed.
///
/// Any thread, but one at a time for a stream: else `GESSO_STATUS_UNAVAILABLE`.
///
/// # Safety
/// `stream` is valid; `input` points at an input whose pointers are valid, and stay so as it says above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_stream_feed_kept(
    stream: *const StreamHandle,
    input: *const InputTensor,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let handle = unsafe { types::reference("stream", stream) }?;
        let mut stream = handle.alone()?;
        // SAFETY: the caller vouches for the input, and for its memory until the stream has ended or is gone; it is
        // read by nobody else.
        let (name, batch) = unsafe { input::one(&handle.pipeline, 1, input) }?;
        stream.feed_kept(&name, &batch)
    })
}

/// Waits for the next batch, which is done then, on the GPU too. Readers have no end: one epoch follows the other. A
/// stream that has ended, as it has no inputs or a source that ends, gives a null `*result` and `GESSO_STATUS_OK`. An
/// error is that of one batch; the call after it gives the next.
///
/// `*result` is the caller's, to give to `gesso_result_free`; it is null after an error. Any thread, but one at a time
/// for a stream: else `GESSO_STATUS_UNAVAILABLE`.
///
/// # Safety
/// `stream` is valid; `result` points at a pointer; `first` is null or points at a number, which becomes the number of
/// samples before the batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_stream_next(
    stream: *const StreamHandle,
    result: *mut *mut ResultHandle,
    first: *mut u64,
) -> Status {
    // SAFETY: the caller vouches for the same.
    guard(|| unsafe { next(stream, None, result, first) })
}

/// `gesso_stream_next` for a pipeline that takes inputs from the caller beside its readers: `inputs` of `batch_size`
/// samples, as many as the stream's batches have, are those of this batch. It runs in this thread, while readers read
/// ahead. So do batches of pipelines that call functions of the program, with this function and `gesso_stream_next`.
///
/// The inputs and their memory are the caller's, and are read during the call only. Ownership and threads as for
/// `gesso_stream_next`.
///
/// # Safety
/// As for `gesso_stream_next`; `inputs` points at `input_count` inputs whose pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_stream_run(
    stream: *const StreamHandle,
    batch_size: usize,
    inputs: *const InputTensor,
    input_count: usize,
    result: *mut *mut ResultHandle,
    first: *mut u64,
) -> Status {
    // SAFETY: the caller vouches for the same.
    guard(|| unsafe { next(stream, Some((batch_size, inputs, input_count)), result, first) })
}

/// # Safety
/// As for [`gesso_stream_run`].
unsafe fn next(
    stream: *const StreamHandle,
    given: Option<(usize, *const InputTensor, usize)>,
    result: *mut *mut ResultHandle,
    first: *mut u64,
) -> Result<()> {
    // SAFETY: the caller vouches for the pointer.
    let out = unsafe { types::place("result", result) }?;
    *out = std::ptr::null_mut();
    // SAFETY: the caller vouches for the pointer.
    let handle = unsafe { types::reference("stream", stream) }?;
    let mut stream = handle.alone()?;
    let batches = match given {
        None => Vec::new(),
        // SAFETY: the caller vouches for the inputs; the batches live no longer than this call.
        Some((size, inputs, count)) => unsafe { input::batches(&handle.pipeline, size, inputs, count) }?,
    };
    let Some(delivered) = stream.next_with(batches).transpose()? else { return Ok(()) };
    if !first.is_null() {
        // SAFETY: the caller vouches for the pointer.
        *unsafe { types::place("first", first) }? = delivered.first;
    }
    let made = ResultHandle::of_own(&delivered.outcome, &handle.pool, handle.ordinal)?;
    *out = Box::into_raw(Box::new(made));
    Ok(())
}

/// What a stream's readers know of their data sets, as a JSON object: a name for each reader, with `epoch_size`,
/// `number_of_shards`, `shard_id`, `pad_last_batch` and `stick_to_shard`.
///
/// `*json` is the caller's, to give to `gesso_string_free`; it is null after an error. Any thread.
///
/// # Safety
/// `stream` is valid; `json` points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_stream_readers(stream: *const StreamHandle, json: *mut *mut c_char) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("json", json) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the pointer.
        let handle = unsafe { types::reference("stream", stream) }?;
        *out = c_text(&handle.readers).into_raw();
        Ok(())
    })
}
