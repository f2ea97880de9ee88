//! A batch on its way through a plan: values, and which samples of each branch have failed.

use super::device::Landing;
use super::settle::Unsettled;
use crate::error::{Error, Result};
use crate::graph::{BranchId, Plan, ValueId};
use crate::operator::Failures;
use crate::tensor::{Batch, BatchDesc, DType, Layout, Sample, Shape};

/// A batch while its steps run.
pub(super) struct State<'r> {
    pub(super) values: Vec<Option<Batch<'r>>>,
    pub(super) failures: Failures,
    /// How many samples there were before the batch.
    pub(super) first: u64,
    /// Failures of the samples of each branch, once it is known which those are. Not used for the whole batch.
    pub(super) branches: Vec<Option<Failures>>,
    /// What is copied from the device into the caller's memory at the end.
    pub(super) landings: Vec<Landing<'r>>,
    pub(super) unsettled: Vec<Unsettled<'r>>,
    /// Copies of inputs, and what decoders on the device were given. They stay until the batch is done: engines read
    /// files after their step is recorded.
    pub(super) own: Vec<Batch<'r>>,
}

impl State<'_> {
    /// The failures of the samples of `branch`.
    pub(super) fn failures(&self, branch: BranchId) -> Result<&Failures> {
        if branch == BranchId::ALL {
            return Ok(&self.failures);
        }
        self.branches[branch.0].as_ref().ok_or_else(|| Error::internal("a branch has no samples yet"))
    }

    /// Gives outputs of a step that has no sample to work on samples without bytes.
    pub(super) fn skip(&mut self, plan: &Plan, outputs: &[ValueId]) -> Result<()> {
        for &id in outputs {
            let branch = plan.branches.of(id);
            if branch != BranchId::ALL {
                // The step may be the `Split` that the branch comes from.
                self.branches[branch.0].get_or_insert_with(|| self.failures.part(&[]));
            }
            let samples = self.failures(branch)?.len();
            let ty = &plan.graph.value(id).ty;
            let shapes = vec![Shape::new(vec![0; ty.ndim().unwrap_or(0)]); samples];
            let (dtype, layout) = (ty.dtype.unwrap_or(DType::U8), ty.layout.unwrap_or(Layout::NONE));
            let batch = Batch::new(BatchDesc::new(dtype, layout, shapes), vec![Sample::Missing; samples])?;
            self.values[id.0] = Some(batch);
        }
        Ok(())
    }
}
