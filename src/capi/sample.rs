//! Samples that came out of a batch: what they are, whose memory they are in. How C gets at them, it must not know.

use std::ffi::{CString, c_void};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::failure::Failure;
use super::status::c_text;
use super::types::{self, Tensor, device_number};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{DeviceBytes, DeviceMemory, HostBuffer, HostPool};
use crate::tensor::{Batch, BatchDesc, DType, Device, Sample};

/// What a result and the tensors that were exported from it share.
pub(super) struct Data {
    /// First, because it waits for work on the outputs before they are freed.
    pub(super) exports: Exports,
    pub(super) outputs: Vec<Vec<Option<Made>>>,
    pub(super) failures: Vec<Option<Failure>>,
    pub(super) ordinal: i32,
    /// How many samples each branch of conditionals has had: see [`crate::pipeline::Outcome`].
    pub(super) branch_samples: Vec<u64>,
}

/// Memory of a result on a device from which tensors were exported, if there is any. It goes before the result's memory
/// does: whoever took a tensor there may have put work into a stream of his own, which nobody tells us of, and have let
/// go of the tensor at once.
#[derive(Default)]
pub(super) struct Exports(OnceLock<Arc<dyn DeviceMemory>>);

impl Exports {
    /// Says that a tensor in `memory` is exported.
    pub(super) fn note(&self, memory: &Arc<dyn DeviceMemory>) {
        self.0.get_or_init(|| Arc::clone(memory));
    }
}

impl Drop for Exports {
    fn drop(&mut self) {
        if let Some(memory) = self.0.get()
            && let Err(error) = memory.wait_for_device()
        {
            tracing::error!("a result that was exported is freed: {error}");
        }
    }
}

/// A sample's description as C has it.
pub(super) struct Described {
    pub(super) dtype: DType,
    pub(super) shape: Vec<i64>,
    layout: CString,
    /// Where it comes from, if that is known.
    origin: Option<CString>,
}

/// Where a caller wanted a sample.
#[derive(Clone, Copy)]
pub(super) struct Destination {
    pub(super) address: usize,
    pub(super) device: Device,
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
    Callers(Destination),
}

impl Described {
    pub(super) fn new(desc: &BatchDesc, sample: usize) -> Result<Self> {
        let shape = desc.shapes.get(sample).ok_or_else(|| Error::internal("a sample without a shape"))?;
        let extent =
            |&extent: &usize| i64::try_from(extent).map_err(|_| Error::internal("an extent beyond 63 bits"));
        let shape = shape.iter().map(extent).collect::<Result<Vec<_>>>()?;
        Ok(Self { dtype: desc.dtype, shape, layout: c_text(desc.layout.as_str()), origin: None })
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
            origin: self.origin.as_deref().unwrap_or(c"").as_ptr(),
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

impl Made {
    /// What a batch gave for sample `i`. What the result cannot keep is copied into memory of `pool`.
    ///
    /// # Errors
    /// Internal for a sample that has neither bytes nor an error.
    pub(super) fn new(
        batch: &Batch<'_>,
        i: usize,
        place: Option<Destination>,
        pool: &Arc<HostPool>,
    ) -> Result<Self> {
        let mut described = Described::new(batch.desc(), i)?;
        described.origin = Some(batch.origin(i)).filter(|origin| !origin.is_empty()).map(c_text);
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
    /// What a sample failed with, if it did.
    pub(super) fn failure(&self, sample: usize) -> Result<Option<&Failure>> {
        let count = self.failures.len();
        let failure = self.failures.get(sample).map(Option::as_ref);
        failure.ok_or_else(|| Error::not_found(format!("there is no sample {sample}: the batch has {count}")))
    }

    pub(super) fn made(&self, output: usize, sample: usize) -> Result<&Made> {
        if let Some(Some(failure)) = self.failures.get(sample) {
            let text = failure.message.to_string_lossy();
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("sample {sample} failed and has no outputs: {text}"),
            ));
        }
        let made = self.outputs.get(output).and_then(|samples| samples.get(sample)).and_then(Option::as_ref);
        made.ok_or_else(|| Error::not_found(format!("there is no output {output} of sample {sample}")))
    }
}
