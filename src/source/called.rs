//! A source that is a function of the program which runs the pipeline, for data that the program alone can read: it is
//! called for one batch after the other, ahead of who takes them. It must not know how a program gives a function
//! (`capi` does).

use std::sync::Arc;

use super::{Pulled, Source};
use crate::error::{Error, Result};
use crate::memory::HostPool;
use crate::operator::{Callback, types_of_callback};
use crate::tensor::{Batch, Layout, Sample, ValueType};

/// Calls a function for each batch, and copies what it gives.
pub(crate) struct Called {
    function: Arc<dyn Callback>,
    layouts: Vec<Option<Layout>>,
}

impl Called {
    /// Calls `function`; `layouts` has that of each output, as far as it is known.
    pub(crate) fn new(function: Arc<dyn Callback>, layouts: Vec<Option<Layout>>) -> Self {
        Self { function, layouts }
    }
}

impl Source for Called {
    fn infer(&self) -> Result<Vec<ValueType>> {
        Ok(types_of_callback(&self.layouts))
    }

    fn next(&mut self, most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
        let Some(answer) = self.function.next(most, &self.layouts)? else { return Ok(None) };
        let batches = answer.outputs().iter().map(|batch| copied(batch, memory));
        Ok(Some(batches.collect::<Result<Vec<_>>>()?.into()))
    }
}

/// The batch in memory of ours. Samples that are in one place stay so, such as those of a constant.
fn copied(batch: &Batch<'_>, memory: &Arc<HostPool>) -> Result<Batch<'static>> {
    let mut samples: Vec<Sample<'static>> = Vec::with_capacity(batch.len());
    let mut last: &[u8] = &[];
    for i in 0..batch.len() {
        let bytes = batch.sample(i).map_or(&[][..], Sample::bytes);
        if let (true, Some(sample)) = (std::ptr::eq(bytes, last), samples.last()) {
            samples.push(sample.clone());
            continue;
        }
        let mut buffer = memory.take(bytes.len())?;
        let place = buffer.bytes_mut().get_mut(..bytes.len());
        place.ok_or_else(|| Error::internal("a buffer that is too small"))?.copy_from_slice(bytes);
        samples.push(Sample::Pooled(Arc::new(buffer), 0..bytes.len()));
        last = bytes;
    }
    Ok(Batch::new(batch.desc().clone(), samples)?.coming_from(batch.origins().cloned()))
}
