//! A data set and an order as a source: batches, endlessly, one epoch behind the other. It must not know what a sample
//! is.

use std::sync::Arc;

use rayon::prelude::*;

use super::order::{Options, Order};
use super::{Dataset, Tensor};
use crate::cpu::formats::Formats;
use crate::deadline::{Deadline, NoDeadline};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::source::{Facts, Pulled, Source, Upcoming};
use crate::tensor::{Batch, BatchDesc, DType, Layout, Sample, Shape, ValueType};
use crate::threads;

/// Reads the samples that come next.
pub(super) struct Reader {
    dataset: Arc<dyn Dataset>,
    order: Order,
    options: Options,
    outputs: Arc<[ValueType]>,
}

impl Reader {
    /// Reads `dataset`, which has such `outputs`, in the order of `options`.
    pub(super) fn new(dataset: Box<dyn Dataset>, outputs: Vec<ValueType>, options: Options) -> Result<Self> {
        if dataset.count() > limits::MAX_DATASET_SAMPLES {
            return Err(Error::invalid(format!(
                "{} samples, more than the limit of {}",
                dataset.count(),
                limits::MAX_DATASET_SAMPLES
            )));
        }
        let order = Order::new(dataset.count(), &options, dataset.groups())?;
        Ok(Self { dataset: dataset.into(), order, options, outputs: outputs.into() })
    }
}

impl Source for Reader {
    fn infer(&self) -> Result<Vec<ValueType>> {
        Ok(self.outputs.to_vec())
    }

    fn allow(&mut self, formats: Formats) {
        // Nothing is read yet, so nobody shares it.
        if let Some(dataset) = Arc::get_mut(&mut self.dataset) {
            dataset.allow(formats);
        }
    }

    fn facts(&self) -> Option<Facts> {
        let size = self.dataset.count();
        Some(Facts {
            size,
            shards: self.options.shards,
            shard: self.options.shard,
            pads: self.options.pad_last_batch,
            sticks: self.options.stick_to_shard,
        })
    }

    fn next(&mut self, most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
        self.begin(most, memory, &NoDeadline)?.map(Upcoming::read).transpose()
    }

    fn begin(
        &mut self,
        most: usize,
        memory: &Arc<HostPool>,
        _waiting: &dyn Deadline,
    ) -> Result<Option<Upcoming>> {
        let indices = self.order.batch(most);
        let (dataset, outputs, memory) =
            (Arc::clone(&self.dataset), Arc::clone(&self.outputs), Arc::clone(memory));
        let samples = indices.len();
        let read = move || read(&*dataset, indices, &outputs, &memory);
        Ok(Some(Upcoming::Later(samples, Box::new(read))))
    }

    fn skip(&mut self, samples: u64, most: usize) -> Result<()> {
        let mut left =
            usize::try_from(samples).map_err(|_| Error::invalid("so many samples cannot be skipped"))?;
        while left > 0 {
            let count = left.min(most);
            self.order.batch(count);
            left -= count;
        }
        Ok(())
    }

    fn next_epoch(&mut self) {
        self.order.next_epoch();
    }
}

/// A batch of these samples.
fn read(
    dataset: &dyn Dataset,
    indices: Vec<usize>,
    outputs: &[ValueType],
    memory: &Arc<HostPool>,
) -> Result<Pulled> {
    let mut columns: Vec<Vec<Option<Tensor>>> = outputs.iter().map(|_| Vec::new()).collect();
    let mut failures = Vec::new();
    let mut origins: Vec<String> = indices.iter().map_while(|&index| dataset.origin(index)).collect();
    let read: Vec<_> =
        threads::divided(|| indices.into_par_iter().map(|index| dataset.read(index, memory)).collect())?;
    for (i, tensors) in read.into_iter().enumerate() {
        let tensors = tensors.unwrap_or_else(|error| {
            failures.push((i, error));
            origins.get_mut(i).map(String::clear);
            Vec::new()
        });
        let mut tensors = tensors.into_iter();
        columns.iter_mut().for_each(|column| column.push(tensors.next()));
    }
    let batches = columns.into_iter().zip(outputs).map(|(column, ty)| batch(column, ty));
    Ok(Pulled { batches: batches.collect::<Result<_>>()?, failures, origins })
}

/// The batch of one output, without those that failed. What is not known of the output beforehand is as in the first
/// sample that there is.
fn batch(column: Vec<Option<Tensor>>, ty: &ValueType) -> Result<Batch<'static>> {
    let first = column.iter().flatten().next();
    let dtype = first.map(|tensor| tensor.dtype).or(ty.dtype).unwrap_or(DType::U8);
    let ndim = first.map(|tensor| tensor.shape.len()).or(ty.ndim()).unwrap_or(1);
    let origin = first.map(|tensor| tensor.source.clone()).unwrap_or_default();
    let mut sources: Vec<Arc<str>> = Vec::with_capacity(column.len());
    let (mut shapes, mut samples) = (Vec::with_capacity(column.len()), Vec::with_capacity(column.len()));
    for tensor in column {
        let Some(tensor) = tensor else {
            shapes.push(Shape::from(vec![0; ndim]));
            samples.push(Sample::Missing);
            sources.push("".into());
            continue;
        };
        if tensor.dtype != dtype {
            let (one, other) = (type_name(tensor.dtype), type_name(dtype));
            return Err(Error::invalid(format!(
                "Inconsistent data type in the batch: {one} in {}, {other} in {origin}.",
                tensor.source
            )));
        }
        if tensor.shape.len() != ndim {
            return Err(Error::invalid(format!(
                "Inconsistent data dimensionality in the batch: {} in {}, {ndim} in {origin}.",
                tensor.shape.len(),
                tensor.source
            )));
        }
        shapes.push(tensor.shape);
        samples.push(tensor.bytes);
        sources.push(tensor.source.into());
    }
    let batch = Batch::new(BatchDesc::new(dtype, ty.layout.unwrap_or(Layout::NONE), shapes), samples)?;
    let is_known = sources.iter().any(|source| !source.is_empty());
    Ok(batch.coming_from(is_known.then(|| sources.into())))
}

/// A type in DALI's words.
fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        other => other.name(),
    }
}
