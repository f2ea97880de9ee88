//! Batches to responses: asks Triton for the memory of each request's outputs when their shapes are known, so that the
//! last operator writes there.

use std::ops::Range;
use std::time::Duration;

use super::patience::{Patience, Until};
use crate::triton::api::{DataType, Memory, MemoryKind, OutputMemory, Request, Response};
use crate::triton::exchange::Claim;
use crate::triton::lane::{Link, Slow};
use crate::triton::model::ModelState;
use gesso::error::{Context, Error, Result};
use gesso::pipeline::{Deadline, DeviceBytes, Failures, Fetch, Gpu, Outcome, OutputSink, Target, Watch};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Sample, Shape};

/// Nanoseconds that Triton takes for a byte of a response on the host: its gRPC zeroes them, which took 410 to 460 ms
/// for 675 MB on a core that had nothing else to do.
const RESPONSE_BYTE: f64 = 1.0;

/// The responses to the requests of one batch.
pub(super) struct Responses<'r> {
    model: &'r ModelState,
    /// The device of an instance that has one.
    link: Option<&'r Link>,
    requests: Vec<Destination<'r>>,
    /// How long those may take.
    patience: Patience<'r>,
    late: Vec<Late<'r>>,
}

/// What one request asks for, and where that goes.
pub(super) struct RequestedOutputs<'r> {
    request: &'r Request,
    response: &'r Response,
    /// For each output of the pipeline: whether the client asked for it.
    wanted: Vec<bool>,
}

impl<'r> RequestedOutputs<'r> {
    /// What the request of `claim` asks for.
    ///
    /// # Errors
    /// What Triton says of it.
    pub(super) fn of(model: &ModelState, claim: &'r Claim) -> Result<Self> {
        let names = claim.request().requested_outputs()?;
        let wanted = model.tensors.outputs.iter().map(|output| names.contains(&output.name)).collect();
        Ok(Self { request: claim.request(), response: claim.reply()?, wanted })
    }
}

/// One request in the batch.
struct Destination<'r> {
    asked: RequestedOutputs<'r>,
    range: Range<usize>,
}

/// Memory of a response that the output's operator cannot write: its bytes are copied there at the end.
struct Late<'r> {
    output: usize,
    range: Range<usize>,
    memory: LateMemory<'r>,
}

enum LateMemory<'r> {
    /// On the host, at an address that elements cannot be written to.
    Host(&'r mut [u8]),
    /// On a device: an output that was made on the host or on another device.
    Device(DeviceBytes<'r>),
}

impl<'r> Responses<'r> {
    /// The responses to those requests that have samples in the batch.
    pub(super) fn new(
        model: &'r ModelState,
        link: Option<&'r Link>,
        asked: Vec<Result<RequestedOutputs<'r>>>,
        ranges: &[Option<Range<usize>>],
        until: Until,
        slow: Option<&'r Slow>,
    ) -> Self {
        let destination = |(asked, range): (Result<_>, &Option<_>)| {
            Some(Destination { asked: asked.ok()?, range: range.clone()? })
        };
        let requests: Vec<_> = asked.into_iter().zip(ranges).filter_map(destination).collect();
        let clients =
            requests.iter().map(|Destination { asked, range }| (asked.request.client(), range.clone()));
        let patience = Patience::new(until, slow, clients);
        Self { model, link, requests, patience, late: Vec::new() }
    }

    /// Sets the request with samples `range` aside before anything is done for it.
    pub(super) fn put_aside(&mut self, range: &Range<usize>, time: Duration, failures: &Failures) {
        self.patience.put_aside(range, time, failures);
    }

    /// The requests that were set aside: their samples of the batch, and what they are expected to take.
    pub(super) fn deferred(&self) -> Vec<(Range<usize>, Duration)> {
        self.patience.deferred()
    }

    /// Copies the outputs that could not be written in place. Where that fails, the samples of that request fail.
    pub(super) fn copy_late(self, outcome: &Outcome<'_>) {
        copy_all(self.late, self.link, outcome, |output| {
            self.model.tensors.outputs.get(output).map_or("", |o| &o.name)
        });
    }

    /// Asks for memory for the samples of each request that wants `output` and has not failed. `place` says what
    /// becomes of it, given the bytes of each sample: a piece for each, or nothing when it is to be copied late.
    fn allocate_each<B>(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
        preferred: Memory,
        mut place: impl FnMut(OutputMemory<'r>, &[usize]) -> Result<Placed<'r, B>>,
    ) -> Result<Vec<Option<B>>> {
        let mut buffers: Vec<Option<B>> = desc.shapes.iter().map(|_| None).collect();
        let configured = &self.model.tensors.outputs[output];
        let name = &configured.name;
        if configured.data_type != DataType::Dense(desc.dtype)
            && self.requests.iter().any(|request| request.asked.wanted[output])
        {
            self.model.tell_of_type(output, desc.dtype);
        }
        for Destination { asked, range } in &self.requests {
            let (range, watch) = (range.clone(), Watch::new(&self.patience, Some(range.start)));
            if !asked.wanted[output] || range.clone().any(|i| failures.get(i).is_some()) {
                continue;
            }
            let placed =
                Described::new(desc, &desc.shapes[range.clone()], configured.split).and_then(|described| {
                    if preferred.kind != MemoryKind::Gpu {
                        described.must_come_in_time(&watch)?;
                    }
                    place(described.memory(asked.response, name, preferred)?, &described.sizes)
                });
            match placed.context(|| format!("output `{name}`")) {
                Err(error) => range.for_each(|i| failures.fail(i, error.clone())),
                Ok(Placed::Late(memory)) => self.late.push(Late { output, range, memory }),
                Ok(Placed::Each(samples)) => {
                    for (buffer, sample) in buffers[range].iter_mut().zip(samples) {
                        *buffer = Some(sample);
                    }
                }
            }
        }
        Ok(buffers)
    }
}

/// What becomes of the memory of one request's output.
enum Placed<'r, B> {
    /// A piece for each sample.
    Each(Vec<B>),
    /// Nothing yet.
    Late(LateMemory<'r>),
}

impl<'r> OutputSink<'r> for Responses<'r> {
    fn poll_cancelled(&mut self, failures: &Failures) {
        self.patience.look(failures);
    }

    fn deadline(&self) -> &dyn Deadline {
        &self.patience
    }

    fn wants_estimates(&self) -> bool {
        self.patience.wants_estimates()
    }

    fn admit(&mut self, expected: &[(usize, Duration)], failures: &Failures) {
        let Self { patience, requests, .. } = self;
        patience.admit(expected, failures, |i| {
            requests.get(i).is_some_and(|request| request.asked.response.has_outputs())
        });
    }

    fn allocate(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
    ) -> Result<Vec<Option<&'r mut [u8]>>> {
        let link = self.link;
        self.allocate_each(output, desc, failures, Memory::HOST, |memory, sizes| match memory {
            OutputMemory::Host(memory) if !memory.as_ptr().addr().is_multiple_of(desc.dtype.size()) => {
                Ok(Placed::Late(LateMemory::Host(memory)))
            }
            OutputMemory::Host(memory) => Ok(Placed::Each(cut(memory, sizes))),
            OutputMemory::Device { bytes, memory } => late_on_device(link, memory, bytes),
        })
    }

    fn allocate_on_device(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
        gpu: &Gpu,
        wanted: Device,
    ) -> Result<Vec<Option<Target<'r>>>> {
        let link = self.link;
        let own = Memory::gpu(gpu.ordinal());
        let preferred = if wanted == Device::Gpu { own } else { Memory::PINNED };
        self.allocate_each(output, desc, failures, preferred, |memory, sizes| match memory {
            OutputMemory::Host(memory) => {
                Ok(Placed::Each(cut(memory, sizes).into_iter().map(Target::Host).collect()))
            }
            OutputMemory::Device { bytes, memory } if memory == own => {
                let mut end = 0;
                let sample = |&size: &usize| {
                    let start = end;
                    end += size;
                    bytes.part(start, size).map(Target::Device)
                };
                Ok(Placed::Each(sizes.iter().map(sample).collect::<Result<_>>()?))
            }
            OutputMemory::Device { bytes, memory } => late_on_device(link, memory, bytes),
        })
    }
}

/// Memory on a device that the operator cannot write.
fn late_on_device<'r, B>(
    link: Option<&Link>,
    memory: Memory,
    bytes: DeviceBytes<'r>,
) -> Result<Placed<'r, B>> {
    let Some(link) = link.filter(|_| memory.kind == MemoryKind::Gpu) else {
        return Err(Error::unsupported(format!("Triton offers memory `{memory}`, expected host memory")));
    };
    // Opened here, where a failure is the request's.
    link.stream()?;
    Ok(Placed::Late(LateMemory::Device(bytes)))
}

/// One output of one request: what the response says of it, and the bytes of each sample.
struct Described {
    dtype: DType,
    shape: Vec<usize>,
    sizes: Vec<usize>,
    bytes: usize,
}

impl Described {
    /// A response holds one dense tensor, so the samples must have one shape. Where their first dimension is to be
    /// `split`, only the rest of it: then they stand one behind the other along the batch dimension.
    fn new(desc: &BatchDesc, shapes: &[Shape], split: bool) -> Result<Self> {
        let Some(first) = shapes.first() else { return Err(Error::internal("a request without samples")) };
        let inner = if split { first.get(1..) } else { Some(&first[..]) };
        let Some(inner) = inner.filter(|inner| !split || !inner.is_empty()) else {
            return Err(Error::invalid(format!(
                "a sample of shape {first} cannot be split along its outer axis, which takes at least 2 dimensions"
            )));
        };
        let rest =
            |shape: &Shape| if split { shape.get(1..).map(<[usize]>::to_vec) } else { Some(shape.to_vec()) };
        if let Some(other) = shapes.iter().find(|shape| rest(shape).as_deref() != Some(inner)) {
            return Err(Error::invalid(format!(
                "the samples of one request have shapes {first} and {other}, but a response holds samples of one shape: \
                 pad or resize them in the pipeline, or send one request for each"
            )));
        }
        let sizes = shapes.iter().map(|shape| shape.bytes(desc.dtype.size())).collect::<Result<Vec<_>>>()?;
        let count = if split {
            shapes.iter().filter_map(|shape| shape.first()).fold(0usize, |sum, &n| sum.saturating_add(n))
        } else {
            shapes.len()
        };
        let bytes = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)).ok_or_else(|| {
            Error::invalid(format!("{} samples as large as {first} do not fit into memory", shapes.len()))
        })?;
        let shape = [count].into_iter().chain(inner.iter().copied()).collect();
        Ok(Self { dtype: desc.dtype, shape, sizes, bytes })
    }

    /// Asked before Triton makes the memory, which cannot be interrupted.
    fn must_come_in_time(&self, watch: &Watch<'_>) -> Result<()> {
        let expected = Duration::from_nanos((self.bytes as f64 * RESPONSE_BYTE) as u64);
        watch.ensure_time(expected).context(|| format!("memory for {} bytes", self.bytes))
    }

    fn memory<'r>(&self, response: &'r Response, name: &str, preferred: Memory) -> Result<OutputMemory<'r>> {
        response.output(name, DataType::Dense(self.dtype), &self.shape)?.memory(self.bytes, preferred)
    }
}

/// `memory` in pieces of the `sizes` of its samples.
fn cut<'m>(memory: &'m mut [u8], sizes: &[usize]) -> Vec<&'m mut [u8]> {
    let mut rest = memory;
    let mut samples = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let (sample, tail) = rest.split_at_mut(size);
        samples.push(sample);
        rest = tail;
    }
    samples
}

/// Copies `late` memory from the outputs of a batch. What fails marks its samples, so that it fails its request alone.
fn copy_all<'n>(
    late: Vec<Late<'_>>,
    link: Option<&Link>,
    outcome: &Outcome<'_>,
    name: impl Fn(usize) -> &'n str,
) {
    for Late { output, range, memory } in late {
        if range.clone().any(|i| outcome.failures.get(i).is_some()) {
            continue;
        }
        let copied = match (outcome.outputs.get(output), memory, link) {
            (None, ..) => Err(Error::internal("the batch has no such output")),
            (Some(batch), LateMemory::Host(memory), _) => copy_to_host(batch, range.clone(), memory),
            (Some(batch), LateMemory::Device(memory), Some(link)) => {
                copy_to_device(batch, range.clone(), &memory, link)
            }
            (Some(_), LateMemory::Device(_), None) => Err(Error::internal("a device without an instance")),
        };
        if let Err(error) = copied.context(|| format!("output `{}`", name(output))) {
            range.for_each(|i| outcome.failures.fail(i, error.clone()));
        }
    }
}

fn copy_to_host(batch: &Batch<'_>, range: Range<usize>, memory: &mut [u8]) -> Result<()> {
    let mut rest = memory;
    for i in range {
        let bytes = batch.view(i).bytes;
        let (target, tail) = rest
            .split_at_mut_checked(bytes.len())
            .ok_or_else(|| Error::internal("an output is larger than its response"))?;
        target.copy_from_slice(bytes);
        rest = tail;
    }
    if !rest.is_empty() {
        return Err(Error::internal("an output is smaller than its response"));
    }
    Ok(())
}

/// Copies samples that are on the host, or on the instance's device, to `memory` on any device.
fn copy_to_device(
    batch: &Batch<'_>,
    range: Range<usize>,
    memory: &DeviceBytes<'_>,
    link: &Link,
) -> Result<()> {
    let stream = link.stream()?;
    let on_device = |i| match batch.sample(i) {
        Some(Sample::Device(bytes)) => Some(bytes.clone()),
        _ => None,
    };
    let sources: Vec<DeviceBytes<'_>> = range.clone().filter_map(on_device).collect();
    // Between two devices by way of the host: that works whether or not they can reach one another.
    let mut landing = Fetch::new(stream);
    let mut fetched = if sources.is_empty() { Vec::new() } else { landing.fetch(&sources)? }.into_iter();
    let mut end = 0;
    let mut copies = Vec::with_capacity(range.len());
    for i in range {
        let bytes = match batch.sample(i) {
            Some(Sample::Device(_)) => fetched.next().unwrap_or_default(),
            _ => batch.view(i).bytes,
        };
        copies.push((memory.part(end, bytes.len())?, bytes));
        end += bytes.len();
    }
    if end != memory.len() {
        return Err(Error::internal("an output has another size than its response"));
    }
    stream.put(&copies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gesso::tensor::Layout;

    fn described(shapes: &[&[usize]], split: bool) -> Result<(Vec<usize>, Vec<usize>)> {
        let shapes: Vec<Shape> = shapes.iter().map(|&shape| Shape::new(shape)).collect();
        let desc = BatchDesc::new(DType::U16, Layout::NONE, shapes.clone());
        Described::new(&desc, &shapes, split).map(|described| (described.shape, described.sizes))
    }

    /// Two requests of one sample each; the memory of the first is too small, which Triton does not let happen.
    #[test]
    fn a_copy_that_fails_fails_its_request_alone() {
        let pixels = [7, 8];
        let shapes = vec![Shape::from([1]); 2];
        let samples = pixels.chunks(1).map(Sample::Borrowed).collect();
        let batch = Batch::new(BatchDesc::new(DType::U8, Layout::NONE, shapes), samples).unwrap();
        let outcome =
            Outcome { failures: Failures::none(2), outputs: vec![batch], branch_samples: Vec::new() };
        let (mut small, mut right) = ([], [0]);
        let late = vec![
            Late { output: 0, range: 0..1, memory: LateMemory::Host(&mut small) },
            Late { output: 0, range: 1..2, memory: LateMemory::Host(&mut right) },
        ];
        copy_all(late, None, &outcome, |_| "pixels");
        let error = outcome.failures.get(0).unwrap().to_string();
        assert_eq!(error, "output `pixels`: an output is larger than its response");
        assert!(outcome.failures.get(1).is_none());
        assert_eq!(right, [8]);
    }

    #[test]
    fn samples_of_one_shape_are_one_tensor() {
        assert_eq!(described(&[&[2, 3], &[2, 3]], false).unwrap(), (vec![2, 2, 3], vec![12, 12]));
        assert_eq!(described(&[&[]], false).unwrap(), (vec![1], vec![2]));
        let error = described(&[&[2, 3], &[1, 3]], false).unwrap_err().to_string();
        assert!(error.contains("[2, 3] and [1, 3]"), "{error}");
    }

    #[test]
    fn split_samples_stand_along_the_batch_dimension() {
        assert_eq!(described(&[&[2, 3], &[1, 3], &[0, 3]], true).unwrap(), (vec![3, 3], vec![12, 6, 0]));
        assert!(described(&[&[2, 3], &[1, 4]], true).unwrap_err().to_string().contains("one shape"));
        for flat in [&[2][..], &[]] {
            assert!(described(&[flat], true).unwrap_err().to_string().contains("at least 2 dimensions"));
        }
        assert!(described(&[&[usize::MAX, 2]], true).is_err());
    }
}
