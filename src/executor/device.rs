//! The memory of outputs on a device, copies between host and device, and the end of a batch: submit, wait, land.

use std::sync::Arc;

use rayon::prelude::*;

use super::host::{Scratch, bound_bytes};
use super::{OutputSink, State, Target};
use crate::error::{Context, Error, ErrorKind, Layer, Result};
use crate::gpu::{Download, Gpu, Recorder};
use crate::graph::infer::Operators;
use crate::graph::{Graph, GraphOutput, Placement, Plan, ValueId};
use crate::memory::{Bounds, DeviceBytes, HostPool, align_up};
use crate::operator::{DeviceOutput, Failures, Inputs, prepare_copy};
use crate::tensor::{Batch, BatchDesc, Sample, ValueType};

/// Alignment of a sample in a buffer of the device.
const ALIGNMENT: usize = 256;

/// Copies of at least this many bytes into responses are spread over the threads.
const PARALLEL_BYTES: usize = 1 << 20;

/// A sample on its way from the device into the caller's memory.
pub(super) struct Landing<'r> {
    value: ValueId,
    sample: usize,
    download: Download,
    target: &'r mut [u8],
}

/// The memory of one output on the device: what the sink gave, one buffer for the rest.
pub(super) struct DeviceStorage<'r> {
    desc: BatchDesc,
    value: ValueId,
    samples: Vec<Option<DeviceBytes<'r>>>,
    /// Where samples go that could not be written in place.
    targets: Vec<Option<Target<'r>>>,
}

/// Whether a kernel can read and write elements at this address.
fn is_aligned(memory: &DeviceBytes<'_>, desc: &BatchDesc) -> bool {
    memory.address().is_multiple_of(desc.dtype.size() as u64)
}

impl<'r> DeviceStorage<'r> {
    pub(super) fn allocate(
        desc: BatchDesc,
        value: ValueId,
        target: Option<(usize, &GraphOutput)>,
        inputs: &Inputs<'_>,
        recorder: &mut Recorder,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Self> {
        let failures = inputs.failures();
        let expected = failures.len();
        if desc.shapes.len() != expected {
            return Err(Error::internal(format!("{} shapes, expected {expected}", desc.shapes.len())));
        }
        let bounds = Bounds { value: recorder.gpu().most_of_a_value(), all: usize::MAX };
        recorder.wait_for_room(bound_bytes(&desc, inputs, Scratch::NONE, bounds));
        let targets = match target {
            Some((output, declared)) => {
                sink.allocate_on_device(output, &desc, failures, recorder.gpu(), declared.device)?
            }
            None => desc.shapes.iter().map(|_| None).collect(),
        };
        if targets.len() != expected {
            return Err(Error::internal(format!("{} output buffers, expected {expected}", targets.len())));
        }
        let mut later = Vec::with_capacity(expected);
        let mut samples = Vec::with_capacity(expected);
        let (mut end, mut ranges) = (0, Vec::with_capacity(expected));
        for (i, (target, shape)) in targets.into_iter().zip(&desc.shapes).enumerate() {
            let (mut late, mut sample, mut range) = (None, None, None);
            if failures.get(i).is_none() {
                let bytes = shape.bytes(desc.dtype.size())?;
                let found = match &target {
                    Some(Target::Host(buffer)) => buffer.len(),
                    Some(Target::Device(memory)) => memory.len(),
                    None => bytes,
                };
                if found != bytes {
                    return Err(Error::internal(format!(
                        "an output buffer of {found} bytes, expected {bytes}"
                    )));
                }
                match target {
                    Some(Target::Device(memory)) if is_aligned(&memory, &desc) => sample = Some(memory),
                    other => {
                        range = Some((end, bytes));
                        end += bytes.next_multiple_of(ALIGNMENT);
                        late = other;
                    }
                }
            }
            later.push(late);
            samples.push(sample);
            ranges.push(range);
        }
        if ranges.iter().any(Option::is_some) {
            let buffer = recorder.allocate(end)?;
            for (sample, range) in samples.iter_mut().zip(ranges) {
                let Some((offset, bytes)) = range else { continue };
                *sample = Some(DeviceBytes::of(&buffer, offset, bytes));
            }
        }
        Ok(Self { desc, value, samples, targets: later })
    }

    pub(super) fn samples(&self) -> DeviceOutput<'_> {
        DeviceOutput { desc: &self.desc, samples: self.samples.clone() }
    }

    /// The batch, once its work is recorded; notes what must land on the host, and copies what must go elsewhere.
    pub(super) fn into_batch(
        self,
        recorder: &mut Recorder,
        failures: &Failures,
        landings: &mut Vec<Landing<'r>>,
    ) -> Result<Batch<'r>> {
        for (i, (target, sample)) in self.targets.into_iter().zip(&self.samples).enumerate() {
            match (target, sample, failures.get(i)) {
                (Some(Target::Host(target)), Some(sample), None) => {
                    let download = recorder.download(sample);
                    landings.push(Landing { value: self.value, sample: i, download, target });
                }
                (Some(Target::Device(target)), Some(sample), None) => recorder.copy(&target, sample)?,
                _ => {}
            }
        }
        let samples = self.samples.into_iter().map(|s| s.map_or(Sample::Missing, Sample::Device));
        Batch::new(self.desc, samples.collect())
    }
}

/// A value on its way to the device, or straight into an output there.
pub(super) fn upload<'r>(
    recorder: &mut Recorder,
    from: &Batch<'r>,
    inputs: Inputs<'_>,
    target: Option<(usize, &GraphOutput)>,
    sink: &mut dyn OutputSink<'r>,
    landings: &mut Vec<Landing<'r>>,
) -> Result<Vec<Batch<'r>>> {
    let failures = inputs.failures();
    let mut samples = Vec::with_capacity(from.len());
    for i in 0..from.len() {
        if let Some(Sample::Device(bytes)) = from.sample(i) {
            // The value goes when its last reader is recorded.
            recorder.keep(bytes);
        }
        samples.push(match from.sample(i) {
            _ if failures.get(i).is_some() => Sample::Missing,
            // A request may bring a tensor that is on the device already.
            Some(Sample::Device(bytes)) if is_aligned(bytes, from.desc()) => Sample::Device(bytes.clone()),
            Some(Sample::Device(bytes)) => {
                let own = DeviceBytes::of(&recorder.allocate(bytes.len())?, 0, bytes.len());
                recorder.copy(&own, bytes)?;
                Sample::Device(own)
            }
            _ => Sample::Device(recorder.stage(from.view(i).bytes)?),
        });
    }
    let staged = Batch::new(from.desc().clone(), samples)?;
    let Some((output, declared)) = target else { return Ok(vec![staged]) };
    let storage = DeviceStorage::allocate(
        staged.desc().clone(),
        declared.value,
        Some((output, declared)),
        &inputs,
        recorder,
        sink,
    )?;
    copy_into(recorder, &staged, &storage, failures)?;
    Ok(vec![storage.into_batch(recorder, failures, landings)?])
}

/// A value that the host needs in the middle of a batch: runs what is recorded so far, and waits.
pub(super) fn download<'r>(
    recorder: &mut Recorder,
    from: &Batch<'r>,
    failures: &Failures,
    memory: &Arc<HostPool>,
) -> Result<Vec<Batch<'r>>> {
    let is_live = |i: &usize| failures.get(*i).is_none() && !matches!(from.sample(*i), Some(Sample::Missing));
    let live = (0..from.len()).filter(is_live);
    let sources = live.map(|i| Ok((i, from.device(i)?.clone()))).collect::<Result<Vec<_>>>()?;
    let bytes: usize = sources.iter().map(|(_, source)| align_up(source.len())).sum();
    let mut buffer = memory.take(bytes)?;
    let mut ranges = vec![None; from.len()];
    let addresses: Vec<DeviceBytes<'_>> = sources.iter().map(|(_, source)| source.clone()).collect();
    let mut end = 0;
    for ((i, _), bytes) in sources.iter().zip(recorder.flush(&addresses)?) {
        buffer.bytes_mut()[end..end + bytes.len()].copy_from_slice(bytes);
        ranges[*i] = Some(end..end + bytes.len());
        end += align_up(bytes.len());
    }
    let buffer = Arc::new(buffer);
    let samples = ranges.into_iter().map(|range| match range {
        Some(range) => Sample::Pooled(Arc::clone(&buffer), range),
        None => Sample::Missing,
    });
    Ok(vec![Batch::new(from.desc().clone(), samples.collect())?])
}

/// Copies a value that its operator could not write into the response itself.
pub(super) fn copy_output<'r>(
    recorder: &mut Recorder,
    output: usize,
    declared: &GraphOutput,
    value: &Batch<'r>,
    state: &mut State<'r>,
    sink: &mut dyn OutputSink<'r>,
) -> Result<Batch<'r>> {
    let label = Layer::Text(format!("output `{}`", declared.name));
    let inputs = Inputs::new(&label, &[], &[], &state.failures);
    let target = Some((output, declared));
    let desc = value.desc().clone();
    let storage = DeviceStorage::allocate(desc, declared.value, target, &inputs, recorder, sink)?;
    copy_into(recorder, value, &storage, &state.failures)?;
    storage.into_batch(recorder, &state.failures, &mut state.landings)
}

fn copy_into(
    recorder: &mut Recorder,
    from: &Batch<'_>,
    to: &DeviceStorage<'_>,
    failures: &Failures,
) -> Result<()> {
    for (i, target) in to.samples.iter().enumerate() {
        if let (Some(target), None) = (target, failures.get(i)) {
            recorder.copy(target, from.device(i)?)?;
        }
    }
    Ok(())
}

/// Submits what is recorded, and waits for it.
pub(super) fn run(recorder: &mut Recorder) -> Result<()> {
    let submitted = recorder.submit();
    // Waited for also when not everything could be submitted: what was still uses memory of the batch.
    let waited = recorder.wait();
    submitted.and(waited)
}

/// Copies what must land on the host, after the batch has run.
pub(super) fn land<'r>(recorder: &Recorder, pool: &rayon::ThreadPool, state: &mut State<'r>) -> Result<()> {
    let mut landings = std::mem::take(&mut state.landings);
    // Some may have failed while the batch ran.
    landings.retain(|landing| state.failures.get(landing.sample).is_none());
    let land = |landing: &mut Landing<'r>| {
        landing.target.copy_from_slice(recorder.downloaded(landing.download));
    };
    let bytes: usize = landings.iter().map(|landing| landing.target.len()).sum();
    if bytes < PARALLEL_BYTES || landings.len() < 2 {
        landings.iter_mut().for_each(land);
    } else {
        pool.install(|| landings.par_iter_mut().for_each(land));
    }
    for Landing { value, sample, target, .. } in landings {
        if let Some(batch) = state.values.get_mut(value.0).and_then(Option::as_mut) {
            batch.replace(sample, Sample::Borrowed(target))?;
        }
    }
    Ok(())
}

/// Whether `error` left the device unusable: then nothing works any more until the process is restarted.
pub(super) fn broken(gpu: &Gpu, error: &Error) -> Option<Error> {
    gpu.memory().is_err().then(|| {
        tracing::error!(device = gpu.ordinal(), "the device cannot be used any more: {error}");
        Error::new(
            ErrorKind::Unavailable,
            format!("device {} failed and cannot be used until the server restarts: {error}", gpu.ordinal()),
        )
    })
}

/// Lets every operator that runs on the device compile its kernels.
pub(super) fn prepare(plan: &Plan, operators: &mut Operators, gpu: &Arc<Gpu>) -> Result<()> {
    let _bound = gpu.bind()?;
    prepare_copy(gpu)?;
    for (node, operator) in plan.graph.nodes.iter().zip(operators) {
        let (Some(operator), true) = (operator, node.placement != Placement::Cpu) else { continue };
        let inputs: Vec<ValueType> = node.inputs.iter().map(|&id| plan.graph.value(id).ty.clone()).collect();
        operator
            .prepare_gpu(gpu, &inputs)
            .context(|| Layer::operator(Graph::op_name(node), &node.instance))?;
    }
    Ok(())
}
