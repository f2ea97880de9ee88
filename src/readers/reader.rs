//! A data set and an order as a source: batches, endlessly, one epoch behind the other. It must not know what a sample is.

use std::sync::Arc;

use rayon::prelude::*;

use super::order::{Options, Order};
use super::{Dataset, Tensor};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::source::{Facts, Pulled, Source, Upcoming};
use crate::tensor::{Batch, BatchDesc, Layout, Origins, Sample, Shape, ValueType};
use crate::threads;
use crate::waiting::{Forever, Waiting};

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
        let order = Order::new(dataset.count(), &options)?;
        Ok(Self { dataset: dataset.into(), order, options, outputs: outputs.into() })
    }
}

impl Source for Reader {
    fn infer(&self) -> Result<Vec<ValueType>> {
        Ok(self.outputs.to_vec())
    }

    fn facts(&self) -> Option<Facts> {
        let size = self.dataset.count();
        Some(Facts {
            size,
            shards: self.options.shards,
            shard: self.options.shard,
            pads: self.options.pads,
            sticks: self.options.sticks,
        })
    }

    fn next(&mut self, most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
        self.begin(most, memory, &Forever)?.map(Upcoming::read).transpose()
    }

    fn begin(
        &mut self,
        most: usize,
        memory: &Arc<HostPool>,
        _waiting: &dyn Waiting,
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
    let mut columns: Vec<(Vec<Shape>, Vec<Sample<'static>>)> = vec![Default::default(); outputs.len()];
    let mut failures = Vec::new();
    let sources: Origins = indices.iter().map(|&index| dataset.source_info(index).into()).collect();
    let mut origins: Vec<String> = indices.iter().map_while(|&index| dataset.origin(index)).collect();
    let read: Vec<_> =
        threads::divided(|| indices.into_par_iter().map(|index| dataset.read(index, memory)).collect())?;
    for (i, tensors) in read.into_iter().enumerate() {
        let tensors = tensors.unwrap_or_else(|error| {
            failures.push((i, error));
            origins.get_mut(i).map(String::clear);
            let missing = |ty: &ValueType| Tensor {
                shape: Shape::from(vec![0; ty.ndim().unwrap_or(1)]),
                bytes: Sample::Missing,
            };
            outputs.iter().map(missing).collect()
        });
        for ((shapes, samples), tensor) in columns.iter_mut().zip(tensors) {
            shapes.push(tensor.shape);
            samples.push(tensor.bytes);
        }
    }
    let batches = columns.into_iter().zip(outputs).map(|((shapes, samples), ty)| {
        let dtype = ty.dtype.ok_or_else(|| Error::internal("a reader's output without a type"))?;
        Batch::new(BatchDesc::new(dtype, ty.layout.unwrap_or(Layout::NONE), shapes), samples)
    });
    let mut batches = batches.collect::<Result<Vec<_>>>()?;
    if let Some(first) = batches.first_mut().filter(|_| sources.iter().any(|source| !source.is_empty())) {
        first.come_from(Some(sources));
    }
    Ok(Pulled { batches, failures, origins })
}
