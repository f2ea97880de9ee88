//! Batches to responses: asks Triton for the memory of each request's outputs when their shapes are known, so that the
//! last operator writes there.

use std::ops::Range;

use crate::error::{Context, Error, Result};
use crate::pipeline::{Failures, Outcome, OutputSink};
use crate::tensor::{BatchDesc, Shape};
use crate::triton::api::{DataType, Response};
use crate::triton::exchange::Exchange;
use crate::triton::state::ModelState;

/// The responses to the requests of one batch.
pub(super) struct Responses<'r> {
    model: &'r ModelState,
    requests: Vec<Destination<'r>>,
    late: Vec<Late<'r>>,
}

/// One request in the batch.
struct Destination<'r> {
    response: &'r Response,
    range: Range<usize>,
    /// For each output of the pipeline: whether the client asked for it.
    wanted: Vec<bool>,
}

/// Memory of a response at an address that elements cannot be written to: its bytes are copied there at the end.
struct Late<'r> {
    output: usize,
    range: Range<usize>,
    memory: &'r mut [u8],
}

impl<'r> Responses<'r> {
    /// The responses of the exchanges that have samples in the batch.
    ///
    /// # Errors
    /// What Triton says of a request.
    pub(super) fn new(
        model: &'r ModelState,
        exchanges: &'r [Exchange],
        ranges: &[Option<Range<usize>>],
    ) -> Result<Self> {
        let mut requests = Vec::with_capacity(exchanges.len());
        for (exchange, range) in exchanges.iter().zip(ranges) {
            let Some(range) = range.clone() else { continue };
            let names = exchange.request().requested_outputs()?;
            let wanted = model.tensors.outputs.iter().map(|output| names.contains(&output.name)).collect();
            requests.push(Destination { response: exchange.response()?, range, wanted });
        }
        Ok(Self { model, requests, late: Vec::new() })
    }

    /// Copies the outputs that could not be written in place.
    ///
    /// # Errors
    /// Internal, when a sample has another size than its response.
    pub(super) fn copy_late(self, outcome: &Outcome<'_>) -> Result<()> {
        for Late { output, range, memory } in self.late {
            if range.clone().any(|i| outcome.failures.get(i).is_some()) {
                continue;
            }
            let batch = outcome.outputs.get(output).ok_or_else(|| Error::internal("an output is missing"))?;
            let mut rest = memory;
            for i in range {
                let bytes = batch.view(i).bytes;
                let (target, tail) = rest
                    .split_at_mut_checked(bytes.len())
                    .ok_or_else(|| Error::internal("an output is larger than its response"))?;
                target.copy_from_slice(bytes);
                rest = tail;
            }
        }
        Ok(())
    }
}

impl<'r> OutputSink<'r> for Responses<'r> {
    fn allocate(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
    ) -> Result<Vec<Option<&'r mut [u8]>>> {
        let mut buffers: Vec<Option<&'r mut [u8]>> = desc.shapes.iter().map(|_| None).collect();
        let configured = &self.model.tensors.outputs[output];
        let name = &configured.name;
        if configured.data_type != DataType::Dense(desc.dtype) {
            return Err(Error::invalid(format!(
                "output `{name}` is {}, but the model's configuration says {}",
                desc.dtype, configured.data_type
            )));
        }
        for request in &self.requests {
            let range = request.range.clone();
            if !request.wanted[output] || range.clone().any(|i| failures.get(i).is_some()) {
                continue;
            }
            let memory = memory(request.response, name, desc, &desc.shapes[range.clone()]);
            match memory.context(|| format!("output `{name}`")) {
                Err(error) => range.for_each(|i| failures.fail(i, error.clone())),
                Ok(memory) if !memory.as_ptr().addr().is_multiple_of(desc.dtype.size()) => {
                    self.late.push(Late { output, range, memory });
                }
                Ok(memory) => {
                    let size = memory.len() / range.len();
                    let mut rest = memory;
                    for buffer in &mut buffers[range] {
                        let (sample, tail) = rest.split_at_mut(size);
                        *buffer = Some(sample);
                        rest = tail;
                    }
                }
            }
        }
        Ok(buffers)
    }
}

/// Memory for the samples of one request, which a response can only hold when they have one shape.
fn memory<'r>(
    response: &'r Response,
    name: &str,
    desc: &BatchDesc,
    shapes: &[Shape],
) -> Result<&'r mut [u8]> {
    let Some(first) = shapes.first() else { return Err(Error::internal("a request without samples")) };
    if let Some(other) = shapes.iter().find(|shape| *shape != first) {
        return Err(Error::invalid(format!(
            "the samples of one request have shapes {first} and {other}, but a response holds samples of one shape: \
             pad or resize them in the pipeline, or send one request for each"
        )));
    }
    let bytes = first.bytes(desc.dtype.size())?.checked_mul(shapes.len()).ok_or_else(|| {
        Error::invalid(format!("{} samples of shape {first} do not fit into memory", shapes.len()))
    })?;
    let shape: Vec<usize> = [shapes.len()].into_iter().chain(first.iter().copied()).collect();
    response.output(name, DataType::Dense(desc.dtype), &shape)?.host_buffer(bytes)
}
