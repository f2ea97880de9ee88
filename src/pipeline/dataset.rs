//! The samples of one reader, in any order.

use std::sync::Arc;

use crate::cpu::formats::Formats;
use crate::error::{Error, Result};
use crate::executor::Outcome;
use crate::graph::import::PipelineFile;
use crate::memory::HostPool;
use crate::operator::Failures;
use crate::readers;
use crate::tensor::{Batch, BatchDesc, Layout, ValueType};

/// What a reader finds.
pub struct Dataset {
    samples: Box<dyn readers::Dataset>,
    outputs: Vec<ValueType>,
}

impl Dataset {
    /// Finds the samples of the reader in a serialized pipeline, of which it is the only operator.
    ///
    /// # Errors
    /// Bytes that are no such pipeline; what the reader says.
    pub fn open(bytes: &[u8]) -> Result<Self> {
        let (reader, args) = PipelineFile::parse(bytes)?.reader()?;
        Ok(Self { samples: (reader.open)(&args)?, outputs: (reader.outputs)(&args)? })
    }

    /// Says which formats of files it may decode: all until then.
    pub fn allow(&mut self, formats: Formats) {
        self.samples.allow(formats);
    }

    /// Behind which sample each file ends, where `shuffle_after_epoch` shuffles the files; else none.
    pub fn files(&self) -> Vec<usize> {
        self.samples.groups().unwrap_or_default().into_iter().map(|group| group.end).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.samples.count()
    }

    /// Sample `index` as a batch of one, in memory of `memory`.
    ///
    /// # Errors
    /// Not found where there is none; why it cannot be read.
    pub fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Outcome<'static>> {
        self.read_fed(index, &[], memory)
    }

    /// The same, with the values that arguments have for this sample.
    ///
    /// # Errors
    /// As there; unsupported for a reader whose arguments are the same for all samples.
    pub fn read_fed(
        &self,
        index: usize,
        fed: readers::Fed<'_>,
        memory: &Arc<HostPool>,
    ) -> Result<Outcome<'static>> {
        let count = self.count();
        if index >= count {
            return Err(Error::not_found(format!("there is no sample {index}: the reader has {count}")));
        }
        let tensors = self.samples.read_fed(index, fed, memory)?;
        let outputs = tensors.into_iter().zip(&self.outputs).map(|(tensor, ty)| {
            let desc = BatchDesc::new(tensor.dtype, ty.layout.unwrap_or(Layout::NONE), vec![tensor.shape]);
            let source = Some(tensor.source).filter(|source| !source.is_empty());
            Ok(Batch::new(desc, vec![tensor.bytes])?.coming_from(source.map(|source| [source.into()].into())))
        });
        Ok(Outcome {
            failures: Failures::none(1),
            outputs: outputs.collect::<Result<_>>()?,
            branch_samples: Vec::new(),
        })
    }
}
