//! What a caller feeds, as batches that borrow his memory.

use super::types::{self, GPU, InputSample, InputTensor, check_size};
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::memory::DeviceBytes;
use crate::pipeline::{Input, Pipeline};
use crate::tensor::{Batch, BatchDesc, DType, Device, Sample, Shape};

/// Batches for every input of `pipeline`, in its order.
///
/// # Errors
/// Invalid when an input is missing, unknown or given twice, or when a sample cannot be what it is said to be.
///
/// # Safety
/// `inputs` points at `count` inputs, each `struct_size` bytes behind the one before, whose pointers are valid for `'r` and whose memory nobody
/// changes that long.
pub(super) unsafe fn batches<'r>(
    pipeline: &Pipeline,
    batch_size: usize,
    inputs: *const InputTensor,
    count: usize,
) -> Result<Vec<Batch<'r>>> {
    if batch_size == 0 || batch_size > limits::MAX_BATCH_SIZE {
        return Err(Error::invalid(format!(
            "a batch of {batch_size} samples, expected 1 to {}",
            limits::MAX_BATCH_SIZE
        )));
    }
    let declared = pipeline.inputs();
    if count > limits::MAX_PIPELINE_TENSORS {
        return Err(Error::invalid(format!("{count} inputs, expected {}", declared.len())));
    }
    // SAFETY: the caller vouches for the inputs.
    let given = unsafe { given(inputs, count) }?;
    let mut found: Vec<Option<Batch<'r>>> = declared.iter().map(|_| None).collect();
    for input in given {
        // SAFETY: the caller vouches for the name.
        let name = unsafe { types::text("name", input.name) }?;
        let place = declared.iter().position(|declared| declared.name == name);
        let (Some(declared), Some(slot)) =
            (place.and_then(|i| declared.get(i)), place.and_then(|i| found.get_mut(i)))
        else {
            let names: Vec<String> = declared.iter().map(|input| format!("`{}`", input.name)).collect();
            return Err(Error::not_found(format!(
                "the pipeline has no input `{}`, its inputs are {}",
                name.escape_debug(),
                names.join(", ")
            )));
        };
        // SAFETY: the caller vouches for the samples.
        let batch = unsafe { batch(declared, input, batch_size) }.context(|| format!("input `{name}`"))?;
        if slot.replace(batch).is_some() {
            return Err(Error::invalid(format!("input `{name}` is given twice")));
        }
    }
    declared
        .iter()
        .zip(found)
        .map(|(input, batch)| {
            batch.ok_or_else(|| Error::invalid(format!("input `{}` is missing", input.name)))
        })
        .collect()
}

/// # Safety
/// As for [`batches`].
unsafe fn given<'a>(inputs: *const InputTensor, count: usize) -> Result<Vec<&'a InputTensor>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller vouches for the first.
    let stride = unsafe { types::reference("inputs", inputs) }?.struct_size;
    check_size::<InputTensor>("gesso_input", stride)?;
    let mut given = Vec::with_capacity(count);
    for i in 0..count {
        // SAFETY: the caller vouches for so many, each of the size that the first says.
        let input = unsafe { inputs.byte_add(i * stride) };
        // SAFETY: as above.
        let input = unsafe { types::reference("inputs", input) }?;
        if input.struct_size != stride {
            return Err(Error::invalid(format!(
                "`struct_size` of input {i} is {}, expected {stride}",
                input.struct_size
            )));
        }
        given.push(input);
    }
    Ok(given)
}

/// # Safety
/// The samples of `input`, their shapes and their memory are valid for `'r`.
unsafe fn batch<'r>(declared: &Input, input: &InputTensor, batch_size: usize) -> Result<Batch<'r>> {
    let dtype = types::dtype(input.dtype)?;
    if types::device(input.device)? == Device::Gpu && declared.device == Device::Cpu {
        return Err(Error::invalid(
            "its samples are in memory of a GPU, but the pipeline reads it on the host: give it host memory",
        ));
    }
    // SAFETY: the caller vouches for as many samples.
    let given = unsafe { types::slice("samples", input.samples, batch_size) }?;
    let (mut shapes, mut samples) = (Vec::with_capacity(batch_size), Vec::with_capacity(batch_size));
    for (i, sample) in given.iter().enumerate() {
        // SAFETY: the caller vouches for the shape and the memory.
        let (shape, sample) =
            unsafe { read(sample, dtype, input.device) }.context(|| format!("sample {i}"))?;
        shapes.push(shape);
        samples.push(sample);
    }
    if let [first, rest @ ..] = shapes.as_slice()
        && let Some(other) = rest.iter().find(|shape| shape.len() != first.len())
    {
        return Err(Error::invalid(format!(
            "its samples have shapes {first} and {other}, expected one rank"
        )));
    }
    Batch::new(BatchDesc::new(dtype, declared.layout, shapes), samples)
}

/// # Safety
/// The shape and the memory of `sample` are valid for `'r`.
unsafe fn read<'r>(sample: &InputSample, dtype: DType, device: i32) -> Result<(Shape, Sample<'r>)> {
    if sample.ndim > limits::MAX_NDIM {
        return Err(Error::invalid(format!(
            "{} dimensions, expected at most {}",
            sample.ndim,
            limits::MAX_NDIM
        )));
    }
    // SAFETY: the caller vouches for the shape.
    let extents = unsafe { types::slice("shape", sample.shape, sample.ndim) }?;
    let extents = extents.iter().map(|&extent| {
        usize::try_from(extent)
            .map_err(|_| Error::invalid(format!("an extent is {extent}, expected at least 0")))
    });
    let shape = Shape::new(extents.collect::<Result<Vec<_>>>()?);
    let bytes = shape.bytes_of_input(dtype.size())?;
    if !(sample.data as usize).is_multiple_of(dtype.size()) {
        return Err(Error::invalid(format!(
            "`data` is at an address that is no multiple of {}",
            dtype.size()
        )));
    }
    if bytes != 0 && device == GPU {
        if sample.data.is_null() {
            return Err(Error::invalid("`data` is a null pointer"));
        }
        // SAFETY: the caller vouches for the memory, which is on the device that it names.
        return Ok((shape, Sample::Device(unsafe { DeviceBytes::foreign(sample.data as u64, bytes) })));
    }
    // SAFETY: the caller vouches for the memory.
    let memory = unsafe { types::slice("data", sample.data.cast::<u8>(), bytes) }?;
    Ok((shape, Sample::Borrowed(memory)))
}
