//! What a caller feeds, as batches that borrow his memory.

use std::ffi::c_char;

use super::size;
use super::types::{self, GPU, InputSample, InputTensor};
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::memory::DeviceBytes;
use crate::pipeline::{Input, Pipeline};
use crate::tensor::{Batch, BatchDesc, DType, Device, Layout, Origins, Sample, Shape};

/// Batches for every input of `pipeline`, in its order.
///
/// # Errors
/// Invalid when an input is missing, unknown or given twice, or when a sample cannot be what it is said to be.
///
/// # Safety
/// `inputs` points at `count` inputs, each `struct_size` bytes behind the one before, whose pointers are valid for `'r`
/// and whose memory nobody changes that long.
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
    let given = unsafe { size::read_all("inputs", inputs, count) }?;
    let mut found: Vec<Option<Batch<'r>>> = declared.iter().map(|_| None).collect();
    for input in given {
        // SAFETY: the caller vouches for the input.
        let (place, batch) = unsafe { named(declared, &input, batch_size) }?;
        if found.get_mut(place).and_then(|slot| slot.replace(batch)).is_some() {
            let name = declared.get(place).map_or("", |declared| &declared.name);
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

/// One input of `pipeline`: its name, and a batch of `count` samples.
///
/// # Errors
/// Invalid when it cannot be what it is said to be, not found for an unknown name.
///
/// # Safety
/// As for [`batches`].
pub(super) unsafe fn one<'r>(
    pipeline: &Pipeline,
    count: usize,
    input: *const InputTensor,
) -> Result<(String, Batch<'r>)> {
    if count > limits::MAX_BATCH_SIZE {
        return Err(Error::invalid(format!("{count} samples, expected at most {}", limits::MAX_BATCH_SIZE)));
    }
    // SAFETY: the caller vouches for the input.
    let given = unsafe { size::read("input", input) }?;
    // SAFETY: as above.
    let (place, batch) = unsafe { named(pipeline.inputs(), &given, count) }?;
    Ok((pipeline.inputs().get(place).map_or_else(String::new, |input| input.name.clone()), batch))
}

/// Which of the `declared` inputs `input` is, and its batch.
///
/// # Safety
/// As for [`batches`].
unsafe fn named<'r>(declared: &[Input], input: &InputTensor, count: usize) -> Result<(usize, Batch<'r>)> {
    // SAFETY: the caller vouches for the name.
    let name = unsafe { types::text("name", input.name) }?;
    let found = declared.iter().enumerate().find(|(_, declared)| declared.name == name);
    let Some((place, declared)) = found else {
        let names: Vec<String> = declared.iter().map(|input| format!("`{}`", input.name)).collect();
        return Err(Error::not_found(format!(
            "the pipeline has no input `{}`, its inputs are {}",
            name.escape_debug(),
            names.join(", ")
        )));
    };
    // SAFETY: the caller vouches for the samples.
    let batch = unsafe { batch(declared, input, count) }
        .context(|| format!("input `{name}`"))
        .map_err(|error| error.of_input(name))?;
    Ok((place, batch))
}

/// The batch of an input that is declared so.
///
/// # Errors
/// Invalid when it cannot be what it is said to be.
///
/// # Safety
/// The samples of `input`, their shapes and their memory are valid for `'r`.
pub(super) unsafe fn batch<'r>(
    declared: &Input,
    input: &InputTensor,
    batch_size: usize,
) -> Result<Batch<'r>> {
    let dtype = types::dtype(input.dtype)?;
    if types::device(input.device)? == Device::Gpu && declared.device == Device::Cpu {
        return Err(Error::invalid(
            "its samples are in memory of a GPU, but the pipeline reads it on the host: give it host memory",
        ));
    }
    // SAFETY: the caller vouches for as many samples.
    let given = unsafe { size::read_all("samples", input.samples, batch_size) }?;
    // SAFETY: the caller vouches for the text.
    let layout = unsafe { layout(declared.layout, input.layout) }?;
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
    if let Some(first) =
        shapes.first().filter(|first| !layout.is_none() && first.len() != layout.letters().len())
    {
        return Err(Error::invalid(format!(
            "its samples have {} dimensions, layout `{layout}` another number",
            first.len()
        )));
    }
    // SAFETY: the caller vouches for as many texts.
    let origins = unsafe { origins(input, batch_size) }?;
    Ok(Batch::new(BatchDesc::new(dtype, layout, shapes), samples)?.coming_from(origins))
}

/// Where the samples of `input` come from, if it says that.
///
/// # Safety
/// Its texts, as many as `count`, are null or valid.
unsafe fn origins(input: &InputTensor, count: usize) -> Result<Option<Origins>> {
    if input.origins.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller says.
    let texts = unsafe { types::slice("origins", input.origins, count) }?;
    let origin = |&text: &*const c_char| {
        if text.is_null() {
            return Ok("");
        }
        // SAFETY: as the caller says.
        unsafe { types::text("origins", text) }
    };
    Ok(Some(texts.iter().map(|text| origin(text).map(Into::into)).collect::<Result<_>>()?))
}

/// The layout of a batch: what the pipeline declares, or, where it declares none, what comes with the data.
///
/// # Safety
/// `given` is null or a text.
unsafe fn layout(declared: Layout, given: *const c_char) -> Result<Layout> {
    if given.is_null() {
        return Ok(declared);
    }
    // SAFETY: as the caller says.
    let given = Layout::new(unsafe { types::text("layout", given) }?)?;
    match (declared.is_none(), given.is_none()) {
        (_, true) => Ok(declared),
        (true, false) => Ok(given),
        _ if given == declared => Ok(declared),
        _ => Err(Error::invalid(format!("its layout is `{given}`, expected `{declared}`"))),
    }
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
