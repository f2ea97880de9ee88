//! The memory of an operator's outputs on the host, and limits on what a batch may take.

use std::ops::Range;
use std::sync::Arc;

use super::OutputSink;
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::memory::{Bounds, HostBuffer, HostPool, Size, align_up, bound};
use crate::operator::{Failures, Inputs, OutputSamples};
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
        scratch: Scratch<'_>,
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
        let bytes = bound_bytes(&desc, inputs, scratch, Bounds::host(memory.room()));
        memory.wait_for(bytes);
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

/// What an operator takes beside its outputs while it runs.
#[derive(Clone, Copy)]
pub(super) struct Scratch<'a> {
    /// Of each sample.
    pub(super) efforts: &'a [Effort],
    /// Samples that are worked on at the same time.
    pub(super) threads: usize,
}

impl Scratch<'_> {
    /// Nothing.
    pub(super) const NONE: Self = Self { efforts: &[], threads: 0 };
}

/// Fails samples that are too large by themselves, then, from the smallest on, those past the limit of the batch.
/// Returns what the others take.
pub(super) fn bound_bytes(
    desc: &BatchDesc,
    inputs: &Inputs<'_>,
    scratch: Scratch<'_>,
    bounds: Bounds,
) -> usize {
    let mut sizes = Vec::with_capacity(desc.shapes.len());
    for (i, shape) in desc.shapes.iter().enumerate() {
        match shape.bytes(desc.dtype.size()) {
            Ok(bytes) if inputs.failures().get(i).is_none() => {
                let scratch = scratch.efforts.get(i).map_or(0, |effort| effort.scratch);
                sizes.push(Size { bytes, scratch, sample: i });
            }
            Ok(_) => {}
            Err(error) => inputs.fail(i, error),
        }
    }
    bound(sizes, scratch.threads, bounds, |i, error| inputs.fail(i, error))
}

fn check_buffers(buffers: &[Option<&mut [u8]>], desc: &BatchDesc) -> Result<()> {
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

/// Copies a value that its operator could not write into the response itself.
pub(super) fn copy_output<'r>(
    output: usize,
    value: &Batch<'r>,
    failures: &Failures,
    sink: &mut dyn OutputSink<'r>,
) -> Result<()> {
    let buffers = sink.allocate(output, value.desc(), failures)?;
    check_buffers(&buffers, value.desc())?;
    for (i, buffer) in buffers.into_iter().enumerate() {
        if let (Some(buffer), None) = (buffer, failures.get(i)) {
            buffer.copy_from_slice(value.view(i).bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::limits;

    #[test]
    fn the_largest_samples_have_no_room() {
        let sizes = |all: &[(usize, usize)]| {
            let size = |(sample, &(bytes, scratch))| Size { bytes, scratch, sample };
            all.iter().enumerate().map(size).collect::<Vec<_>>()
        };
        let failed = |all: &[(usize, usize)], threads, room| {
            let failed = RefCell::new(Vec::new());
            bound(sizes(all), threads, Bounds::host(room), |i, _| failed.borrow_mut().push(i));
            failed.into_inner()
        };
        assert_eq!(failed(&[(640, 0), (64, 0), (128, 0)], 2, 192), [0]);
        assert_eq!(failed(&[(limits::MAX_BATCH_BYTES, 0), (64, 0)], 2, usize::MAX), [0]);
        // Two at a time take 64 bytes each beside what they make.
        assert_eq!(failed(&[(64, 64); 3], 2, 320), [0; 0]);
        assert_eq!(failed(&[(64, 64); 3], 2, 319), [2]);
        // What does not fit leaves its room to others.
        assert_eq!(failed(&[(64, 1_000), (640, 0), (640, 0)], 2, 1_280), [0]);
    }
}
