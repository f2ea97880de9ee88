//! One step of a batch: which of its inputs are there, who runs it, and what becomes of its outputs. It must not know
//! in which order steps come.

use super::run::{run_on_device, run_on_host};
use super::state::State;
use super::view::view;
use super::{Executor, OutputSink, device, formats, origins, value};
use crate::deadline::NoDeadline;
use crate::error::{Error, Result, caught};
use crate::graph::plan::Step;
use crate::graph::{BranchId, NodeKind, Placement, Plan, ValueId};
use crate::operator::{CpuCx, GpuCx, Inputs, Operator, Routing};
use crate::tensor::Device;

impl Executor {
    /// Does a step on the host, or records it for the device.
    ///
    /// # Errors
    /// What fails the whole batch.
    pub(super) fn step<'r>(
        &mut self,
        plan: &Plan,
        step: &Step,
        state: &mut State<'r>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<()> {
        let node = &plan.graph.nodes[step.node];
        if !state.failures(step.branch)?.any_live() {
            return state.skip(plan, &node.outputs);
        }
        let collect =
            |ids: &[ValueId]| ids.iter().map(|&id| value(&state.values, id)).collect::<Result<Vec<_>>>();
        let (regular, arguments) = (collect(&node.inputs)?, collect(&node.arguments)?);
        let failures = state.failures(step.branch)?.clone();
        let samples = match step.branch {
            BranchId::ALL => state.first,
            BranchId(branch) => self.branch_samples.get(branch).copied().unwrap_or_default(),
        };
        let inputs = Inputs::new(&step.label, &regular, &arguments, &failures);
        let inputs = inputs.after(samples).of_parts(&step.parts);
        formats::refuse(self.formats, node, &inputs);
        let made = match (&node.kind, &mut self.operators[step.node], &mut self.recorder) {
            (NodeKind::Transfer, _, Some(recorder)) => {
                let [from] = regular.as_slice() else {
                    return Err(Error::internal("a transfer of not one value"));
                };
                let target = step.writes.first().copied().flatten();
                let target = target.map(|output| (output, &plan.graph.outputs[output]));
                let to = plan.graph.value(node.outputs[0]).device;
                match to {
                    Device::Gpu => device::upload(recorder, from, inputs, target, sink, &mut state.landings)?,
                    Device::Cpu => device::download(recorder, from, &failures, &self.memory)?,
                }
            }
            (_, Some(operator), _) if operator.is_view() => {
                let made = caught(|| view(operator.as_mut(), inputs, step, &regular))?;
                if operator.routing() == Some(Routing::Split) {
                    for (output, (&id, batch)) in node.outputs.iter().zip(&made).enumerate() {
                        let samples: Vec<_> =
                            (0..batch.len()).map(|i| operator.source(output, i).1).collect();
                        let branch = plan.branches.of(id);
                        state.branches[branch.0].get_or_insert_with(|| failures.part(&samples));
                    }
                }
                made
            }
            // After a panic the operator's scratch state is stale, but every batch starts with a new setup.
            (_, Some(operator), _) if node.placement == Placement::Cpu => {
                caught(|| run_on_host(operator.as_mut(), inputs, step, &self.pool, &self.memory, sink))?
            }
            (_, Some(operator), Some(recorder)) => {
                let cx = GpuCx {
                    recorder,
                    cpu: CpuCx { pool: &self.pool, deadline: &NoDeadline },
                    may_settle: self.may_settle,
                };
                let landings = &mut state.landings;
                caught(|| run_on_device(operator.as_mut(), inputs, plan, step, cx, sink, landings))?
            }
            _ => return Err(Error::internal("a step that nothing can run")),
        };
        let mut made = made;
        let operator = self.operators[step.node].as_deref();
        origins::hand_on(operator.map(|operator| operator as &dyn Operator), &inputs, &regular, &mut made);
        for (&id, batch) in node.outputs.iter().zip(made) {
            state.values[id.0] = Some(batch);
        }
        Ok(())
    }
}
