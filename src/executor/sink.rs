//! Where outputs go, as the executor sees it. It must not know what is behind a sink.

use std::time::Duration;

use crate::deadline::{Deadline, NoDeadline};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::memory::DeviceBytes;
use crate::operator::Failures;
use crate::tensor::{BatchDesc, Device};

/// Memory for one sample of an output that an operator made on a device.
pub enum Target<'r> {
    /// On the host: the sample is copied there at the end.
    Host(&'r mut [u8]),
    /// On the device: the last operator writes there.
    Device(DeviceBytes<'r>),
}

/// Where outputs go: a server's response buffers, a caller's memory, a test's vectors.
pub trait OutputSink<'r> {
    /// One buffer per sample for pipeline output `output`, each of exactly the bytes of its shape; `None` for a sample
    /// that failed or that nobody asked for. Called once per output and batch, when its shapes are known.
    ///
    /// # Errors
    /// Fails the whole batch. What concerns single samples goes into `failures`.
    fn allocate(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
    ) -> Result<Vec<Option<&'r mut [u8]>>>;

    /// Called before each operator: marks the samples that nobody wants any more.
    fn poll_cancelled(&mut self, _failures: &Failures) {}

    /// Who is asked for that while an operator runs on the host.
    fn deadline(&self) -> &dyn Deadline {
        &NoDeadline
    }

    /// Whether [`OutputSink::admit`] does anything.
    fn wants_estimates(&self) -> bool {
        false
    }

    /// Called before an operator runs on the host, and before it gets memory: samples of the batch with the time of one
    /// core that the operator is expected to take for each. Marks those that shall not be computed in this batch.
    fn admit(&mut self, _expected: &[(usize, Duration)], _failures: &Failures) {}

    /// [`OutputSink::allocate`] for an output that is made on `gpu`: memory there or on the host, as the receiver
    /// likes. `wanted` is what the pipeline's author asked for.
    ///
    /// # Errors
    /// Fails the whole batch. What concerns single samples goes into `failures`.
    fn allocate_on_device(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
        _gpu: &Gpu,
        _wanted: Device,
    ) -> Result<Vec<Option<Target<'r>>>> {
        let buffers = self.allocate(output, desc, failures)?;
        Ok(buffers.into_iter().map(|buffer| buffer.map(Target::Host)).collect())
    }
}

/// A sink without buffers of its own: outputs stay in the instance's memory.
pub struct Keep;

impl<'r> OutputSink<'r> for Keep {
    fn allocate(&mut self, _: usize, desc: &BatchDesc, _: &Failures) -> Result<Vec<Option<&'r mut [u8]>>> {
        Ok(desc.shapes.iter().map(|_| None).collect())
    }
}
