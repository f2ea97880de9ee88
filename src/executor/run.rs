//! One operator: it is set up, gets memory for its outputs, and runs. It must not know what comes before or after.

use std::sync::Arc;
use std::time::Duration;

use super::OutputSink;
use super::device::{DeviceStorage, Landing};
use super::host::{Scratch, Storage};
use super::view::setup;
use crate::deadline::Effort;
use crate::error::Result;
use crate::graph::Plan;
use crate::graph::plan::Step;
use crate::memory::HostPool;
use crate::operator::{CpuCx, GpuCx, GpuIo, Inputs, Io, Operator};
use crate::tensor::{Batch, BatchDesc, Sample};
use crate::threads::Threads;

/// Runs an operator on host threads, its outputs into responses where the sink gives memory there.
pub(super) fn run_on_host<'r>(
    operator: &mut dyn Operator,
    inputs: Inputs<'_>,
    step: &Step,
    pool: &Threads,
    memory: &Arc<HostPool>,
    sink: &mut dyn OutputSink<'r>,
) -> Result<Vec<Batch<'r>>> {
    operator.work_ahead(&CpuCx { pool, deadline: sink.deadline() }, &inputs)?;
    let descs = setup(operator, &inputs, step)?;
    let efforts: Vec<Effort> = (0..inputs.batch_size()).map(|i| operator.effort(i)).collect();
    if sink.wants_estimates() {
        admit(&descs, &efforts, &inputs, sink);
    }
    if inputs.failures().all_failed() {
        return without_bytes(descs);
    }
    let scratch = Scratch { efforts: &efforts, threads: pool.current_num_threads() };
    let mut storage = Vec::with_capacity(descs.len());
    for (desc, &target) in descs.into_iter().zip(&step.writes) {
        storage.push(Storage::allocate(desc, target, &inputs, scratch, memory, sink)?);
    }
    let outputs = storage.iter_mut().map(Storage::samples).collect();
    // Samples that there was no room for.
    sink.poll_cancelled(&inputs.failures().whole());
    let deadline = sink.deadline();
    operator.run_cpu(&CpuCx { pool, deadline }, &mut Io::new(inputs, outputs))?;
    storage.into_iter().map(Storage::into_batch).collect()
}

/// Tells the sink what the operator is expected to take for each sample.
fn admit(descs: &[BatchDesc], efforts: &[Effort], inputs: &Inputs<'_>, sink: &mut dyn OutputSink<'_>) {
    let failures = inputs.failures();
    let expected = |(i, effort): (usize, &Effort)| {
        let sample = failures.member(i).filter(|_| failures.get(i).is_none())?;
        let outputs = descs.iter().filter_map(|desc| desc.shapes.get(i)?.bytes(desc.dtype.size()).ok());
        Some((sample, effort.time + moving(outputs.fold(0, usize::saturating_add))))
    };
    let expected: Vec<_> = efforts.iter().enumerate().filter_map(expected).collect();
    sink.admit(&expected, &failures.whole());
}

/// What writing so many bytes is expected to take, with what fresh memory costs.
fn moving(bytes: usize) -> Duration {
    Duration::from_nanos(bytes as u64 / 4)
}

/// Batches of which every sample failed when it was looked at: their type says nothing, so nobody is asked for memory.
fn without_bytes<'r>(descs: Vec<BatchDesc>) -> Result<Vec<Batch<'r>>> {
    let missing = |desc: BatchDesc| {
        let samples = vec![Sample::Missing; desc.shapes.len()];
        Batch::new(desc, samples)
    };
    descs.into_iter().map(missing).collect()
}

/// Records an operator that runs on the device.
pub(super) fn run_on_device<'r>(
    operator: &mut dyn Operator,
    inputs: Inputs<'_>,
    plan: &Plan,
    step: &Step,
    mut cx: GpuCx<'_>,
    sink: &mut dyn OutputSink<'r>,
    landings: &mut Vec<Landing<'r>>,
) -> Result<Vec<Batch<'r>>> {
    operator.work_ahead_on_gpu(&mut cx, &inputs)?;
    let descs = setup(operator, &inputs, step)?;
    if inputs.failures().all_failed() {
        return without_bytes(descs);
    }
    let node = &plan.graph.nodes[step.node];
    let mut storage = Vec::with_capacity(descs.len());
    for ((desc, &target), &id) in descs.into_iter().zip(&step.writes).zip(&node.outputs) {
        let target = target.map(|output| (output, &plan.graph.outputs[output]));
        storage.push(DeviceStorage::allocate(desc, id, target, &inputs, cx.recorder, sink)?);
    }
    let outputs = storage.iter().map(DeviceStorage::samples).collect();
    operator.run_gpu(&mut cx, &mut GpuIo::new(inputs, outputs))?;
    storage.into_iter().map(|storage| storage.into_batch(cx.recorder, inputs.failures(), landings)).collect()
}
