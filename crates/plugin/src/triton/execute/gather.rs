//! Requests to batches: cuts a request's tensors into samples, and joins the samples of all requests. Bytes are copied
//! only where a tensor came in pieces or lies at an address its elements cannot be read at.

mod files;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::fetch::Arrived;
use crate::config::{self, DefaultSample};
use crate::fetch::File;
use crate::triton::api::{Chunk, DataType};
use crate::triton::folder::Folder;
use crate::triton::lane::BatchSlot;
use gesso::error::{Context, Error, Result};
use gesso::limits;
use gesso::memory::{HostPool, copy_once};
use gesso::pipeline::{self, DeviceBytes};
use gesso::tensor::{Batch, BatchDesc, DType, Sample, Shape};

pub(super) use files::{Reading, read_files};

/// Bytes of the length in front of each element of a `TYPE_STRING` tensor.
const LENGTH_BYTES: usize = 4;

/// The inputs of one request, in the order of the pipeline's inputs.
pub(super) struct Tensors<'r> {
    samples: usize,
    inputs: Vec<Tensor<'r>>,
}

/// One input of one request, cut into samples.
struct Tensor<'r> {
    dtype: DType,
    shapes: Vec<Shape>,
    samples: Vec<Sample<'r>>,
    /// Where the files are that the samples name, until those were read.
    folder: Option<&'r Folder>,
}

/// A batch of the requests that could be joined.
pub(super) struct Merged<'r> {
    /// One batch per input of the pipeline.
    pub(super) inputs: Vec<Batch<'r>>,
    /// For each request: its samples in the batch.
    pub(super) ranges: Vec<Option<Range<usize>>>,
    /// For each request without samples in the batch: why.
    pub(super) errors: Vec<Option<Error>>,
    /// Samples in the batch.
    pub(super) samples: usize,
}

impl Merged<'_> {
    /// The batch among samples of others, which have no bytes, as at `place`.
    ///
    /// # Errors
    /// Internal, when the samples are not what their shapes say.
    pub(super) fn padded_to(mut self, place: BatchSlot) -> Result<Self> {
        let after = place.total.saturating_sub(place.before).saturating_sub(self.samples);
        for batch in &mut self.inputs {
            let desc = batch.desc();
            let none = Shape::new(vec![0; desc.shapes.first().map_or(0, |shape| shape.len())]);
            let around = |count| (vec![none.clone(); count], vec![Sample::Missing; count]);
            let ((mut shapes, mut samples), (more_shapes, more_samples)) =
                (around(place.before), around(after));
            shapes.extend(desc.shapes.iter().cloned().chain(more_shapes));
            samples.extend((0..batch.len()).filter_map(|i| batch.sample(i).cloned()).chain(more_samples));
            *batch = Batch::new(BatchDesc::new(desc.dtype, desc.layout, shapes), samples)?;
        }
        for range in self.ranges.iter_mut().flatten() {
            *range = range.start + place.before..range.end + place.before;
        }
        self.samples += place.before + after;
        Ok(self)
    }
}

impl<'r> Tensors<'r> {
    /// Cuts the tensors of one request, which stand in the order of the `declared` and the `configured` inputs; for one
    /// that is not there, every sample has the default.
    ///
    /// # Errors
    /// Invalid when a tensor is not what the pipeline declares, has no batch dimension, or has another number of
    /// samples than the first.
    pub(super) fn gather(
        declared: &[pipeline::Input],
        configured: &[config::Tensor],
        arrived: &[Option<Arrived<'r>>],
        memory: &Arc<HostPool>,
    ) -> Result<Self> {
        let mut inputs: Vec<Option<Tensor<'r>>> = Vec::with_capacity(arrived.len());
        let mut samples = None;
        for (arrived, declared) in arrived.iter().zip(declared) {
            let Some(arrived) = arrived else {
                inputs.push(None);
                continue;
            };
            let name = arrived.input.name;
            let tensor = Tensor::cut(arrived, memory)
                .and_then(|tensor| tensor.check(declared).map(|()| tensor))
                .context(|| format!("input `{name}`"))?;
            let (found, expected) = (tensor.samples.len(), *samples.get_or_insert(tensor.samples.len()));
            if found != expected {
                return Err(Error::invalid(format!(
                    "input `{name}` has {found} samples, expected {expected} as the inputs before it"
                )));
            }
            inputs.push(Some(tensor));
        }
        // A request without inputs, or a pipeline without any, makes one sample.
        let samples = samples.unwrap_or(1);
        if samples == 0 {
            return Err(Error::invalid("the request has no samples: its batch dimension is 0"));
        }
        let defaults = configured.iter().map(|input| input.default.as_ref());
        let inputs = inputs.into_iter().zip(defaults).map(|(tensor, default)| match (tensor, default) {
            (Some(tensor), _) => Ok(tensor),
            (None, Some(default)) => Tensor::of_default(default, samples, memory),
            (None, None) => Err(Error::internal("an input without a tensor and without a default")),
        });
        Ok(Self { samples, inputs: inputs.collect::<Result<_>>()? })
    }
}

impl<'r> Tensor<'r> {
    fn cut(arrived: &Arrived<'r>, memory: &Arc<HostPool>) -> Result<Self> {
        let Arrived { input, chunks, .. } = arrived;
        let [batch, dims @ ..] = input.shape.as_slice() else {
            return Err(Error::invalid("a scalar has no batch dimension"));
        };
        if *batch > limits::MAX_BATCH_SIZE {
            return Err(Error::invalid(format!(
                "{batch} samples, more than the limit of {}",
                limits::MAX_BATCH_SIZE
            )));
        }
        if let ([Chunk::Device { bytes, .. }], DataType::Dense(dtype)) = (chunks.as_slice(), input.dtype) {
            return Self::cut_on_device(dtype, *batch, Shape::new(dims), bytes);
        }
        let on_host = |chunk: &Chunk<'r>| match chunk {
            Chunk::Host(bytes) => Ok(*bytes),
            Chunk::Device { memory, .. } => {
                Err(Error::internal(format!("a piece was left in memory `{memory}`")))
            }
        };
        let chunks = chunks.iter().map(on_host).collect::<Result<Vec<_>>>()?;
        match input.dtype {
            DataType::Bytes => {
                let elements = Self::cut_strings(*batch, dims, &chunks, memory)?;
                match arrived.folder {
                    Some(folder) => elements.name_files(folder, memory),
                    None => elements.with(arrived.files),
                }
            }
            DataType::Dense(dtype) => {
                Self::cut_dense(dtype, *batch, Shape::new(dims), &chunks, memory)?.with(arrived.files)
            }
        }
    }

    /// The files that were fetched, in place of the addresses that name them.
    fn with(mut self, files: Option<&'r BTreeMap<usize, File>>) -> Result<Self> {
        for (number, file) in files.into_iter().flatten() {
            let place = self.samples.get_mut(*number).zip(self.shapes.get_mut(*number));
            let (sample, shape) =
                place.ok_or_else(|| Error::invalid("it has changed while its files were fetched"))?;
            *shape = Shape::from([file.bytes().len()]);
            *sample = Sample::Borrowed(file.bytes());
        }
        Ok(self)
    }

    /// The same sample, in one place, for each of `count`.
    fn of_default(default: &DefaultSample, count: usize, memory: &Arc<HostPool>) -> Result<Self> {
        let mut buffer = memory.take(default.bytes)?;
        if let Some(sample) = buffer.bytes_mut().get_mut(..default.bytes) {
            default.write(sample);
        }
        let buffer = Arc::new(buffer);
        let samples = (0..count).map(|_| Sample::Pooled(Arc::clone(&buffer), 0..default.bytes)).collect();
        Ok(Self {
            dtype: default.dtype,
            shapes: vec![Shape::new(default.shape.clone()); count],
            samples,
            folder: None,
        })
    }

    /// A tensor that stays where it is, on the device.
    fn cut_on_device(dtype: DType, batch: usize, shape: Shape, whole: &DeviceBytes<'r>) -> Result<Self> {
        let size = sample_bytes(dtype, batch, &shape, whole.len())?;
        let samples = (0..batch).map(|i| whole.part(i * size, size).map(Sample::Device));
        Ok(Self { dtype, shapes: vec![shape; batch], samples: samples.collect::<Result<_>>()?, folder: None })
    }

    fn cut_dense(
        dtype: DType,
        batch: usize,
        shape: Shape,
        chunks: &[&'r [u8]],
        memory: &Arc<HostPool>,
    ) -> Result<Self> {
        let found = chunks.iter().map(|chunk| chunk.len()).sum();
        let size = sample_bytes(dtype, batch, &shape, found)?;
        let cut = |i: usize| i * size..(i + 1) * size;
        let samples = match chunks {
            [whole] if whole.as_ptr().addr().is_multiple_of(dtype.size()) => {
                (0..batch).map(|i| Sample::Borrowed(&whole[cut(i)])).collect()
            }
            pieces => {
                let mut buffer = memory.take(found)?;
                join(pieces, buffer.bytes_mut());
                let buffer = Arc::new(buffer);
                (0..batch).map(|i| Sample::Pooled(Arc::clone(&buffer), cut(i))).collect()
            }
        };
        Ok(Self { dtype, shapes: vec![shape; batch], samples, folder: None })
    }

    /// Elements of a `TYPE_STRING` tensor, each a sample of bytes.
    fn cut_strings(
        batch: usize,
        dims: &[usize],
        chunks: &[&'r [u8]],
        memory: &Arc<HostPool>,
    ) -> Result<Self> {
        if dims.iter().any(|&extent| extent != 1) {
            return Err(Error::invalid(format!("expected one element a sample, found shape {dims:?}")));
        }
        let samples: Vec<Sample<'r>> = match chunks {
            [] => Vec::new(),
            [whole] => {
                elements(whole, batch)?.into_iter().map(|range| Sample::Borrowed(&whole[range])).collect()
            }
            pieces => {
                let found = pieces.iter().map(|piece| piece.len()).sum();
                let mut buffer = memory.take(found)?;
                join(pieces, buffer.bytes_mut());
                let ranges = elements(&buffer.bytes()[..found], batch)?;
                let buffer = Arc::new(buffer);
                ranges.into_iter().map(|range| Sample::Pooled(Arc::clone(&buffer), range)).collect()
            }
        };
        if samples.len() != batch {
            return Err(Error::invalid(format!("{} elements, expected {batch}", samples.len())));
        }
        let shapes: Vec<Shape> = samples.iter().map(|sample| Shape::from([sample.bytes().len()])).collect();
        // Here, where one that is too large fails its request alone.
        shapes.iter().try_for_each(|shape| shape.volume().map(drop))?;
        Ok(Self { dtype: DType::U8, shapes, samples, folder: None })
    }

    fn check(&self, declared: &pipeline::Input) -> Result<()> {
        if let Some(dtype) = declared.dtype.filter(|&dtype| dtype != self.dtype) {
            return Err(Error::invalid(format!("type is {}, expected {dtype}", self.dtype)));
        }
        let ndim = self.shapes.first().map_or(0, |shape| shape.len());
        match declared.ndim {
            Some(expected) if !self.shapes.is_empty() && expected != ndim => Err(Error::invalid(format!(
                "a sample has {ndim} dimensions beside the batch dimension, expected {expected}"
            ))),
            _ => Ok(()),
        }
    }
}

/// The tensors of one request that brings a video, each as a batch of its own: what stands beside the video may have
/// other numbers of samples.
///
/// # Errors
/// As for [`Tensors::gather`]; what `wanted` says, which is asked while files are read.
pub(super) fn separate<'r>(
    declared: &[pipeline::Input],
    configured: &[config::Tensor],
    arrived: &[Option<Arrived<'r>>],
    memory: &Arc<HostPool>,
    wanted: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Vec<Batch<'r>>> {
    let tensors = arrived.iter().zip(declared).zip(configured).map(|((arrived, declared), configured)| {
        let mut tensor = match (arrived, &configured.default) {
            (Some(arrived), _) => Tensor::cut(arrived, memory)?,
            (None, Some(default)) => Tensor::of_default(default, 1, memory)?,
            (None, None) => return Err(Error::internal("an input without a tensor and without a default")),
        };
        tensor.read(memory, wanted).context(|| format!("input `{}`", declared.name))?;
        tensor.check(declared).context(|| format!("input `{}`", declared.name))?;
        Batch::new(BatchDesc::new(tensor.dtype, declared.layout, tensor.shapes), tensor.samples)
    });
    tensors.collect()
}

/// Bytes of each of `batch` samples, of which `found` bytes arrived.
fn sample_bytes(dtype: DType, batch: usize, shape: &Shape, found: usize) -> Result<usize> {
    let size = shape.bytes_of_input(dtype.size())?;
    if size.checked_mul(batch) != Some(found) {
        return Err(Error::invalid(format!(
            "{found} bytes for {batch} samples of shape {shape} and type {dtype}, expected {size} bytes each"
        )));
    }
    Ok(size)
}

/// Copies `pieces` one after the other to the start of `target`, which is large enough.
fn join(pieces: &[&[u8]], target: &mut [u8]) {
    let mut rest = target;
    for piece in pieces {
        let (head, tail) = rest.split_at_mut(piece.len());
        head.copy_from_slice(piece);
        rest = tail;
    }
}

/// Where the `count` elements of a `TYPE_STRING` tensor are: each is a little-endian length and that many bytes.
fn elements(bytes: &[u8], count: usize) -> Result<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let cut = || {
            Error::invalid(format!("element {} ends behind the tensor's {} bytes", found.len(), bytes.len()))
        };
        let mut length = [0; LENGTH_BYTES];
        copy_once(bytes.get(at..at + LENGTH_BYTES).ok_or_else(cut)?, &mut length);
        let start = at + LENGTH_BYTES;
        let end = start + u32::from_le_bytes(length) as usize;
        if end > bytes.len() {
            return Err(cut());
        }
        if found.len() == count {
            return Err(Error::invalid(format!("more than {count} elements")));
        }
        found.push(start..end);
        at = end;
    }
    Ok(found)
}

/// Joins the requests whose tensors could be read and agree with those before them in type and rank.
///
/// # Errors
/// Internal, when the samples are not what their shapes say.
pub(super) fn merge<'r>(
    declared: &[pipeline::Input],
    tensors: Vec<Result<Tensors<'r>>>,
) -> Result<Merged<'r>> {
    let mut ranges = Vec::with_capacity(tensors.len());
    let mut errors = Vec::with_capacity(tensors.len());
    let mut joined: Vec<(BatchDesc, Vec<Sample<'r>>)> = Vec::new();
    let mut samples = 0;
    for request in tensors {
        let request = match request.and_then(|request| agree(&joined, &request).map(|()| request)) {
            Ok(request) => request,
            Err(error) => {
                ranges.push(None);
                errors.push(Some(error));
                continue;
            }
        };
        ranges.push(Some(samples..samples + request.samples));
        errors.push(None);
        samples += request.samples;
        for (i, (tensor, declared)) in request.inputs.into_iter().zip(declared).enumerate() {
            if joined.len() == i {
                joined.push((BatchDesc::new(tensor.dtype, declared.layout, Vec::new()), Vec::new()));
            }
            let (desc, all) = &mut joined[i];
            desc.shapes.extend(tensor.shapes);
            all.extend(tensor.samples);
        }
    }
    let inputs =
        joined.into_iter().map(|(desc, samples)| Batch::new(desc, samples)).collect::<Result<_>>()?;
    Ok(Merged { inputs, ranges, errors, samples })
}

fn agree(joined: &[(BatchDesc, Vec<Sample<'_>>)], request: &Tensors<'_>) -> Result<()> {
    for (i, ((desc, _), tensor)) in joined.iter().zip(&request.inputs).enumerate() {
        let rank = |shapes: &[Shape]| shapes.first().map_or(0, |shape| shape.len());
        let (expected, found) = (rank(&desc.shapes), rank(&tensor.shapes));
        if tensor.dtype != desc.dtype || found != expected {
            return Err(Error::invalid(format!(
                "input {i} is {} with {found} dimensions, expected {} with {expected} as in the requests it was merged with",
                tensor.dtype, desc.dtype
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_cut_at_their_lengths() {
        assert_eq!(
            elements(&[2, 0, 0, 0, 7, 8, 0, 0, 0, 0, 1, 0, 0, 0, 9], 3).unwrap(),
            [4..6, 10..10, 14..15]
        );
        assert_eq!(elements(&[], 3).unwrap(), []);
        assert!(elements(&[2, 0, 0, 0, 7], 1).is_err());
        assert!(elements(&[2, 0], 1).is_err());
        assert!(elements(&[0; 8], 1).is_err(), "two elements where one is announced");
        assert!(elements(&[255, 255, 255, 255, 1], 1).is_err());
    }

    #[test]
    fn samples_keep_their_places_among_others() {
        let desc = BatchDesc::new(DType::U8, gesso::tensor::Layout::NONE, vec![Shape::from([1]); 2]);
        let batch = Batch::new(desc, vec![Sample::Borrowed(&[7]), Sample::Borrowed(&[8])]).unwrap();
        let merged = Merged { inputs: vec![batch], ranges: vec![Some(0..2)], errors: vec![None], samples: 2 };
        let placed = merged.padded_to(BatchSlot { first: 9, before: 3, total: 6 }).unwrap();
        assert_eq!((placed.samples, &placed.ranges), (6, &vec![Some(3..5)]));
        let [batch] = placed.inputs.as_slice() else { panic!("one input") };
        assert_eq!((batch.len(), batch.view(3).bytes, batch.view(4).bytes), (6, &[7][..], &[8][..]));
        assert!([0, 1, 2, 5].iter().all(|&i| matches!(batch.sample(i), Some(Sample::Missing))));
    }

    #[test]
    fn a_tensor_in_pieces_is_joined() {
        let memory = Arc::new(HostPool::default());
        let pieces: [&[u8]; 3] = [&[1, 0], &[], &[2, 0, 3, 0, 4, 0]];
        let tensor = Tensor::cut_dense(DType::U16, 2, Shape::from([2]), &pieces, &memory).unwrap();
        let desc = BatchDesc::new(tensor.dtype, gesso::tensor::Layout::NONE, tensor.shapes);
        let batch = Batch::new(desc, tensor.samples).unwrap();
        assert_eq!(batch.view(1).as_slice::<u16>().unwrap(), [3, 4]);
        assert!(Tensor::cut_dense(DType::U16, 3, Shape::from([2]), &pieces, &memory).is_err());
    }

    #[test]
    fn a_tensor_at_an_odd_address_is_copied() {
        let memory = Arc::new(HostPool::default());
        let words = [0u64; 2];
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let tensor = Tensor::cut_dense(DType::F32, 1, Shape::from([2]), &[&bytes[1..9]], &memory).unwrap();
        assert!(matches!(tensor.samples[0], Sample::Pooled(..)));
    }
}
