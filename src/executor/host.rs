//! The memory of an operator's outputs on the host, and limits on what a batch may take.

use std::ops::Range;
use std::sync::Arc;

use super::OutputSink;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::memory::{HostBuffer, HostPool, align_up};
use crate::ops::{Inputs, OutputSamples};
use crate::tensor::{Batch, BatchDesc, Sample};

/// The memory of one output while its operator writes it: response buffers where the sink gave some, one pooled buffer
/// for the rest.
pub(super) struct Storage<'r> {
    desc: BatchDesc,
    direct: Vec<Option<&'r mut [u8]>>,
    pooled: HostBuffer,
    ranges: Vec<Option<Range<usize>>>,
}

impl<'r> Storage<'r> {
    pub(super) fn allocate(
        desc: BatchDesc,
        target: Option<usize>,
        inputs: &Inputs<'_>,
        memory: &Arc<HostPool>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Self> {
        let failures = inputs.failures();
        if desc.shapes.len() != failures.len() {
            return Err(Error::internal(format!(
                "{} shapes, expected {}",
                desc.shapes.len(),
                failures.len()
            )));
        }
        bound_bytes(&desc, inputs);
        let direct = match target {
            Some(output) => sink.allocate(output, &desc, failures)?,
            None => (0..desc.shapes.len()).map(|_| None).collect(),
        };
        check_buffers(&direct, &desc)?;
        let mut end = 0;
        let mut ranges = Vec::with_capacity(direct.len());
        for (i, (buffer, shape)) in direct.iter().zip(&desc.shapes).enumerate() {
            if buffer.is_some() || failures.get(i).is_some() {
                ranges.push(None);
                continue;
            }
            let bytes = shape.bytes(desc.dtype.size())?;
            ranges.push(Some(end..end + bytes));
            end += align_up(bytes);
        }
        Ok(Self { desc, direct, pooled: memory.take(end)?, ranges })
    }

    pub(super) fn samples(&mut self) -> OutputSamples<'_> {
        let mut rest = self.pooled.bytes_mut();
        let mut buffers = Vec::with_capacity(self.ranges.len());
        for (direct, range) in self.direct.iter_mut().zip(&self.ranges) {
            let Some(range) = range else {
                buffers.push(direct.as_deref_mut());
                continue;
            };
            let (sample, tail) = std::mem::take(&mut rest).split_at_mut(align_up(range.len()));
            rest = tail;
            buffers.push(Some(&mut sample[..range.len()]));
        }
        OutputSamples { desc: &self.desc, buffers }
    }

    pub(super) fn into_batch(self) -> Result<Batch<'r>> {
        let pooled = Arc::new(self.pooled);
        let samples = self
            .direct
            .into_iter()
            .zip(self.ranges)
            .map(|(direct, range)| match (direct, range) {
                (Some(bytes), _) => Sample::Borrowed(bytes),
                (None, Some(range)) => Sample::Pooled(Arc::clone(&pooled), range),
                (None, None) => Sample::Missing,
            })
            .collect();
        Batch::new(self.desc, samples)
    }
}

/// Fails samples that are too large by themselves, then, from the smallest on, those past the limit of the batch.
pub(super) fn bound_bytes(desc: &BatchDesc, inputs: &Inputs<'_>) {
    let mut sizes = Vec::with_capacity(desc.shapes.len());
    for (i, shape) in desc.shapes.iter().enumerate() {
        match shape.bytes(desc.dtype.size()) {
            Ok(bytes) if inputs.failures().get(i).is_none() => sizes.push((bytes, i)),
            Ok(_) => {}
            Err(error) => inputs.fail(i, error),
        }
    }
    sizes.sort_unstable();
    let mut total = 0usize;
    for (bytes, i) in sizes {
        total = total.saturating_add(align_up(bytes));
        if total > limits::MAX_BATCH_BYTES {
            let text = format!(
                "a sample of {bytes} bytes does not fit into its batch any more, whose limit is {} bytes",
                limits::MAX_BATCH_BYTES
            );
            inputs.fail(i, Error::new(ErrorKind::Unavailable, text));
        }
    }
}

pub(super) fn check_buffers(buffers: &[Option<&mut [u8]>], desc: &BatchDesc) -> Result<()> {
    if buffers.len() != desc.shapes.len() {
        return Err(Error::internal(format!(
            "{} output buffers, expected {}",
            buffers.len(),
            desc.shapes.len()
        )));
    }
    for (buffer, shape) in buffers.iter().zip(&desc.shapes) {
        let Some(buffer) = buffer else { continue };
        let expected = shape.bytes(desc.dtype.size())?;
        if buffer.len() != expected {
            return Err(Error::internal(format!(
                "an output buffer of {} bytes, expected {expected}",
                buffer.len()
            )));
        }
    }
    Ok(())
}
