//! Runs recorded requests in this process. It must not know what their answers were.

use gesso::error::{Error, Result};
use gesso::pipeline::{Instance, Keep, Pipeline};
use gesso::tensor::{Batch, BatchDesc, DType, Sample, Shape};
use triton_gesso::config::DataType;
use triton_gesso::record::{Recorded, Tensor};

/// A pipeline that answers.
pub(super) struct Runner {
    pipeline: Pipeline,
    instance: Instance,
    /// Samples so far, which random numbers depend on.
    samples: u64,
}

/// An output of one request.
pub(super) struct Output {
    pub(super) datatype: String,
    /// `None` where the samples have different shapes.
    pub(super) shape: Option<Vec<usize>>,
    /// The shape if the samples are split along their outer axis.
    pub(super) split: Option<Vec<usize>>,
    pub(super) bytes: Vec<u8>,
}

/// One sample, at an address that elements of any type may have.
struct Value {
    shape: Shape,
    words: Vec<u64>,
    bytes: usize,
}

impl Runner {
    /// # Errors
    /// Unsupported for a pipeline that no request feeds.
    pub(super) fn new(pipeline: Pipeline, instance: Instance) -> Result<Self> {
        if pipeline.reads() || pipeline.takes_videos() {
            let text = "requests of a pipeline that reads by itself, or that takes videos, are not recorded";
            return Err(Error::unsupported(text));
        }
        Ok(Self { pipeline, instance, samples: 0 })
    }

    /// The outputs of a request, in the order of the pipeline.
    ///
    /// # Errors
    /// Why the request fails.
    pub(super) fn run(&mut self, recorded: &Recorded) -> Result<Vec<Output>> {
        let mut columns = Vec::new();
        for input in self.pipeline.inputs() {
            let tensor = recorded.inputs.iter().find(|tensor| tensor.name == input.name).ok_or_else(|| {
                Error::invalid(format!(
                    "the request leaves out input `{}`: what stands in for it is in the model's configuration",
                    input.name
                ))
            })?;
            columns.push((input, samples(tensor)?));
        }
        let count = columns.first().map_or(0, |(_, (_, values))| values.len());
        if count == 0 || columns.iter().any(|(_, (_, values))| values.len() != count) {
            return Err(Error::invalid("the request's inputs have no samples, or different numbers of them"));
        }
        let mut batches = Vec::with_capacity(columns.len());
        for (input, (dtype, values)) in &columns {
            let shapes = values.iter().map(|value| value.shape.clone()).collect();
            let samples = values.iter().map(|value| Sample::Borrowed(value.bytes())).collect();
            batches.push(Batch::new(BatchDesc::new(*dtype, input.layout, shapes), samples)?);
        }
        let first = self.samples;
        self.samples += count as u64;
        let outcome = self.instance.run_at(first, count, batches, &mut Keep)?;
        if let Some(error) = (0..count).find_map(|i| outcome.failures.get(i)) {
            return Err(error.clone());
        }
        outcome.outputs.iter().map(|batch| Ok(Output::of(&self.instance.to_host(batch)?, count))).collect()
    }
}

impl Value {
    fn new(shape: &[usize], bytes: &[u8]) -> Self {
        let mut words = vec![0_u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self { shape: Shape::new(shape), words, bytes: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }
}

impl Output {
    fn of(batch: &Batch<'_>, count: usize) -> Self {
        let mut bytes = Vec::new();
        let mut shapes: Vec<Vec<usize>> = Vec::new();
        let mut dtype = DType::U8;
        for i in 0..count {
            let view = batch.view(i);
            dtype = view.dtype;
            bytes.extend_from_slice(view.bytes);
            shapes.push(view.shape.to_vec());
        }
        let first = shapes.first().cloned().unwrap_or_default();
        let is_one = shapes.iter().all(|shape| *shape == first);
        let inner = first.get(1..).filter(|inner| shapes.iter().all(|shape| shape.get(1..) == Some(inner)));
        let outer = shapes.iter().filter_map(|shape| shape.first()).sum();
        let datatype = DataType::Dense(dtype).config_name().trim_start_matches("TYPE_").to_owned();
        Self {
            datatype,
            shape: is_one.then(|| [&[count], &first[..]].concat()),
            split: inner.map(|inner| [&[outer], inner].concat()),
            bytes,
        }
    }
}

/// The samples of an input.
fn samples(tensor: &Tensor) -> Result<(DType, Vec<Value>)> {
    let bytes = tensor.bytes.as_deref().unwrap_or_default();
    let DataType::Dense(dtype) = tensor.data_type()? else { return Ok((DType::U8, strings(tensor, bytes)?)) };
    let Some((&count, shape)) = tensor.shape.split_first() else {
        return Err(Error::invalid(format!("input `{}` has no dimension for the batch", tensor.name)));
    };
    if count > bytes.len() {
        return Err(Error::invalid(format!("input `{}` has {count} samples of nothing", tensor.name)));
    }
    let size = bytes.len().checked_div(count).unwrap_or(0).max(1);
    Ok((dtype, bytes.chunks_exact(size).map(|sample| Value::new(shape, sample)).collect()))
}

/// Files, each behind its length in four bytes.
fn strings(tensor: &Tensor, mut rest: &[u8]) -> Result<Vec<Value>> {
    let mut files = Vec::new();
    while !rest.is_empty() {
        let file = rest.split_first_chunk().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
        });
        let (file, left) = file.ok_or_else(|| {
            Error::invalid(format!("input `{}`: an element ends behind the tensor", tensor.name))
        })?;
        files.push(Value::new(&[file.len()], file));
        rest = left;
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(datatype: &str, shape: &[usize], bytes: &[u8]) -> Tensor {
        Tensor {
            name: "X".to_owned(),
            datatype: datatype.to_owned(),
            shape: shape.to_vec(),
            sent: None,
            index: None,
            bytes: Some(bytes.to_vec()),
        }
    }

    #[test]
    fn tensors_are_samples() {
        let (dtype, values) = samples(&tensor("INT16", &[2, 1, 2], &[1, 2, 3, 4, 5, 6, 7, 8])).unwrap();
        assert_eq!((dtype, values.len()), (DType::I16, 2));
        assert_eq!((values[1].bytes(), values[1].shape.to_vec()), (&[5, 6, 7, 8][..], vec![1, 2]));
        let (_, values) = samples(&tensor("BYTES", &[2, 1], &[1, 0, 0, 0, 9, 0, 0, 0, 0])).unwrap();
        assert_eq!(values.iter().map(Value::bytes).collect::<Vec<_>>(), [&[9][..], &[]]);
        for wrong in [
            tensor("BYTES", &[1, 1], &[2, 0, 0, 0, 9]),
            tensor("BYTES", &[1, 1], &[2, 0]),
            tensor("UINT8", &[], &[1]),
            tensor("UINT8", &[1_000_000, 0], &[]),
        ] {
            assert!(samples(&wrong).is_err(), "{wrong:?}");
        }
    }
}
