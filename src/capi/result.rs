//! What a batch gave: its samples, in memory of the result or of the caller, and why samples failed.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::ops::Range;
use std::sync::Arc;

use super::dlpack::{self, DLManagedTensor, Exports};
use super::sink::Place;
use super::status::{Status, c_text, guard, guarded};
use super::types::{self, Tensor, check_size, device_number};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{DeviceBytes, DeviceMemory, HostBuffer, HostPool};
use crate::pipeline::{Instance, Outcome};
use crate::tensor::{Batch, BatchDesc, DType, Device, Sample};

/// The outputs of one batch. It never changes, and may outlive its instance and its pipeline.
pub struct ResultHandle(Arc<Data>);

/// What a result and the tensors that were exported from it share.
pub(super) struct Data {
    /// First, because it waits for work on the outputs before they are freed.
    pub(super) exports: Exports,
    outputs: Vec<Vec<Option<Made>>>,
    failures: Vec<Option<(Status, CString)>>,
    ordinal: i32,
}

/// A sample's description as C has it.
pub(super) struct Described {
    pub(super) dtype: DType,
    pub(super) shape: Vec<i64>,
    layout: CString,
}

/// One sample of one output.
pub(super) struct Made {
    pub(super) described: Described,
    memory: Memory,
    pub(super) bytes: usize,
}

/// Whose memory a sample is in.
enum Memory {
    Pooled(Arc<HostBuffer>, Range<usize>),
    Device(DeviceBytes<'static>),
    Callers(Place),
}

impl Described {
    pub(super) fn new(desc: &BatchDesc, sample: usize) -> Result<Self> {
        let shape = desc.shapes.get(sample).ok_or_else(|| Error::internal("a sample without a shape"))?;
        let extent =
            |&extent: &usize| i64::try_from(extent).map_err(|_| Error::internal("an extent beyond 63 bits"));
        let shape = shape.iter().map(extent).collect::<Result<Vec<_>>>()?;
        Ok(Self { dtype: desc.dtype, shape, layout: c_text(desc.layout.as_str()) })
    }

    /// The description with its elements at `data`. Points into `self`.
    pub(super) fn tensor(&self, data: *mut c_void, bytes: usize, device: Device, ordinal: i32) -> Tensor {
        Tensor {
            struct_size: size_of::<Tensor>(),
            data,
            bytes,
            dtype: types::number(Some(self.dtype)),
            device: device_number(device),
            device_id: if device == Device::Gpu { ordinal } else { 0 },
            ndim: self.shape.len() as i32,
            shape: self.shape.as_ptr(),
            layout: self.layout.as_ptr(),
        }
    }
}

impl Made {
    /// Where its elements are; null when there are none.
    pub(super) fn data(&self) -> *mut c_void {
        match &self.memory {
            _ if self.bytes == 0 => std::ptr::null_mut(),
            Memory::Pooled(buffer, range) => {
                buffer.bytes().get(range.clone()).map_or(std::ptr::null(), <[u8]>::as_ptr).cast_mut().cast()
            }
            Memory::Device(bytes) => std::ptr::with_exposed_provenance_mut(bytes.address() as usize),
            Memory::Callers(place) => std::ptr::with_exposed_provenance_mut(place.address),
        }
    }

    pub(super) fn device(&self) -> Device {
        match &self.memory {
            Memory::Pooled(..) => Device::Cpu,
            Memory::Device(_) => Device::Gpu,
            Memory::Callers(place) => place.device,
        }
    }

    /// The memory of ours on a device that it is in.
    pub(super) fn on_device(&self) -> Option<&Arc<dyn DeviceMemory>> {
        match &self.memory {
            Memory::Device(bytes) => bytes.owner(),
            _ => None,
        }
    }

    pub(super) fn is_callers(&self) -> bool {
        matches!(self.memory, Memory::Callers(_))
    }
}

impl ResultHandle {
    /// Takes over what a batch gave. What lies in memory that the result cannot keep, such as an input that was passed through,
    /// is copied. `places` is where the caller wanted samples.
    ///
    /// # Errors
    /// What the device says, where samples are brought to the host.
    pub(super) fn new(
        outcome: &Outcome<'_>,
        batch_size: usize,
        places: &HashMap<(usize, usize), Place>,
        instance: &mut Instance,
        ordinal: i32,
        on_host: bool,
    ) -> Result<Self> {
        let failure =
            |i| outcome.failures.get(i).map(|error| (error.kind().into(), c_text(&error.to_string())));
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
                moved = instance.to_host(&Batch::new(batch.desc().clone(), left.collect())?)?;
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
        Ok(Self(Arc::new(Data { exports: Exports::default(), outputs, failures, ordinal })))
    }
}

impl Made {
    fn new(batch: &Batch<'_>, i: usize, place: Option<Place>, pool: &Arc<HostPool>) -> Result<Self> {
        let described = Described::new(batch.desc(), i)?;
        let (memory, bytes) = match (place, batch.sample(i)) {
            (Some(place), _) => {
                let shape =
                    batch.desc().shapes.get(i).ok_or_else(|| Error::internal("a sample without a shape"))?;
                (Memory::Callers(place), shape.bytes(batch.desc().dtype.size())?)
            }
            (None, Some(Sample::Pooled(buffer, range))) => {
                (Memory::Pooled(Arc::clone(buffer), range.clone()), range.len())
            }
            (None, Some(Sample::Device(bytes))) => {
                let owned = bytes.owned().ok_or_else(|| Error::internal("a result in memory of others"))?;
                (Memory::Device(owned), bytes.len())
            }
            (None, Some(Sample::Borrowed(bytes))) => {
                let mut copy = pool.take(bytes.len())?;
                copy.bytes_mut().get_mut(..bytes.len()).unwrap_or_default().copy_from_slice(bytes);
                (Memory::Pooled(Arc::new(copy), 0..bytes.len()), bytes.len())
            }
            (None, Some(Sample::Missing) | None) => {
                return Err(Error::internal(format!("sample {i} has neither bytes nor an error")));
            }
        };
        Ok(Self { described, memory, bytes })
    }
}

impl Data {
    pub(super) fn made(&self, output: usize, sample: usize) -> Result<&Made> {
        if let Some(Some((_, error))) = self.failures.get(sample) {
            let text = error.to_string_lossy();
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("sample {sample} failed and has no outputs: {text}"),
            ));
        }
        let made = self.outputs.get(output).and_then(|samples| samples.get(sample)).and_then(Option::as_ref);
        made.ok_or_else(|| Error::not_found(format!("there is no output {output} of sample {sample}")))
    }

    pub(super) fn ordinal(&self) -> i32 {
        self.ordinal
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

/// What became of a sample: `GESSO_STATUS_OK`, or why it failed; then `*message`, unless `message` is null, says more. The
/// text lives as long as the result. Any thread.
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
        let count = result.0.failures.len();
        let failure =
            result.0.failures.get(sample).ok_or_else(|| {
                Error::not_found(format!("there is no sample {sample}: the batch has {count}"))
            })?;
        let text = failure.as_ref().map_or(c"".as_ptr(), |(_, text)| text.as_ptr());
        of_sample = failure.as_ref().map_or(Status::Ok, |(status, _)| *status);
        if !message.is_null() {
            // SAFETY: the caller vouches for the pointer.
            *unsafe { types::place("message", message) }? = text;
        }
        Ok(())
    });
    if done == Status::Ok { of_sample } else { done }
}

/// Fills `tensor`, whose `struct_size` is set, with output `output` of sample `sample`. What it points at is the result's (or
/// memory that the caller offered) and lives as long as it. `GESSO_STATUS_NOT_FOUND` for a sample that failed. Any thread.
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
        let out = unsafe { types::place("tensor", tensor) }?;
        check_size::<Tensor>("gesso_tensor", out.struct_size)?;
        let made = data.made(output, sample)?;
        let struct_size = out.struct_size;
        *out = made.described.tensor(made.data(), made.bytes, made.device(), data.ordinal);
        out.struct_size = struct_size;
        Ok(())
    })
}

/// Exports output `output` of sample `sample` as a DLPack tensor, without copying. `*tensor` is the caller's, who calls its
/// `deleter`, once, from any thread; the result may be freed before. Work on a tensor in memory of a GPU may still be under way then: when the
/// last of the result and its tensors goes, that waits until the GPU is idle. `GESSO_STATUS_UNSUPPORTED` for a sample in memory that the caller
/// offered, which is his already. The elements must not be changed while others read them. Any thread.
///
/// # Safety
/// `result` is valid; `tensor` points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_dlpack(
    result: *const ResultHandle,
    output: usize,
    sample: usize,
    tensor: *mut *mut DLManagedTensor,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("tensor", tensor) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the pointer.
        let data = &unsafe { types::reference("result", result) }?.0;
        *out = dlpack::export(data, output, sample)?;
        Ok(())
    })
}
