//! What batches cost, for those who watch a server. It must not know where that is shown.

use std::time::{Duration, Instant};

use crate::operator::{Decoded, Operator};

/// What a batch took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Time that each operator took on the host, in the order of the pipeline's operators.
    pub operators: Vec<Duration>,
    /// Time until the device was done with what was recorded for it, from when it had the beginning of that.
    pub device: Duration,
    /// Images that were decoded.
    pub decoded: Decoded,
}

impl Tally {
    /// Of a batch that begins, for a pipeline of so many operators.
    pub(super) fn begin(operators: usize) -> Self {
        Self { operators: vec![Duration::ZERO; operators], ..Self::default() }
    }

    /// Adds one run of an operator: its number, when it began, and itself where it is more than a copy.
    pub(super) fn add(&mut self, number: usize, begun: Instant, operator: Option<&mut Box<dyn Operator>>) {
        if let Some(elapsed) = self.operators.get_mut(number) {
            *elapsed += begun.elapsed();
        }
        if let Some(operator) = operator {
            self.decoded += operator.take_decoded();
        }
    }
}
