//! The end of a batch: what operators learn only when the device has run it. It must not know why.

use super::{Executor, State, caught, device, value};
use crate::deadline::NoDeadline;
use crate::error::{Context, Result};
use crate::graph::{Placement, Plan, ValueId};
use crate::operator::{CpuCx, DeviceOutput, GpuCx, GpuIo, Inputs};
use crate::tensor::Batch;

/// A step that is looked at again when the batch has run, with its inputs and outputs.
pub(super) struct Unsettled<'r> {
    step: usize,
    inputs: Vec<Batch<'r>>,
    outputs: Vec<Batch<'r>>,
}

impl Executor {
    /// Runs what is recorded, and puts the outputs where they belong.
    pub(super) fn finish(&mut self, plan: &Plan, state: &mut State<'_>) -> Result<()> {
        self.settle(plan, state)?;
        match &self.recorder {
            Some(recorder) => device::land(recorder, &self.pool, state),
            None => Ok(()),
        }
    }

    /// Keeps inputs and outputs of a step that was recorded, if it wants to look at them again.
    pub(super) fn remember(&mut self, plan: &Plan, step: usize, state: &mut State<'_>) -> Result<()> {
        let number = plan.steps[step].node;
        let node = &plan.graph.nodes[number];
        if node.placement == Placement::Mixed {
            // Engines read files after their step is recorded.
            for &id in &node.inputs {
                state.own.push(value(&state.values, id)?.clone());
            }
        }
        let deferred = self.operators[number].as_mut().and_then(|operator| operator.deferred());
        if deferred.is_some_and(|deferred| deferred.is_unsettled()) {
            let all = |ids: &[ValueId]| ids.iter().map(|&id| value(&state.values, id).cloned()).collect();
            let (inputs, outputs): (Result<_>, Result<_>) = (all(&node.inputs), all(&node.outputs));
            state.unsettled.push(Unsettled { step, inputs: inputs?, outputs: outputs? });
        }
        Ok(())
    }

    /// Runs what is recorded on the device, and once more what operators mend after that.
    pub(super) fn settle(&mut self, plan: &Plan, state: &mut State<'_>) -> Result<()> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        device::run(recorder)?;
        let mut mended = false;
        for Unsettled { step, inputs, outputs } in std::mem::take(&mut state.unsettled) {
            let step = &plan.steps[step];
            let regular: Vec<&Batch<'_>> = inputs.iter().collect();
            let failures = state.failures(step.branch)?.clone();
            let inputs = Inputs::new(&step.label, &regular, &[], &failures).of_parts(&step.parts);
            let outputs = outputs.iter().map(|batch| {
                let samples = (0..batch.len()).map(|i| batch.device(i).ok().cloned()).collect();
                DeviceOutput { desc: batch.desc(), samples }
            });
            let io = GpuIo::new(inputs, outputs.collect());
            let cpu = CpuCx { pool: &self.pool, deadline: &NoDeadline };
            let mut cx = GpuCx { recorder: &mut *recorder, cpu, may_settle: self.may_settle };
            if let Some(operator) =
                self.operators[step.node].as_mut().and_then(|operator| operator.deferred())
            {
                mended |= caught(|| operator.settle(&mut cx, &io)).context(|| step.label.clone())?;
            }
        }
        if mended { device::run(recorder) } else { Ok(()) }
    }
}
