//! How an instance answers the requests of one execution.

use super::exchange::Exchange;
use super::state::InstanceState;
use crate::error::Error;

/// Answers every exchange.
pub(super) fn execute(state: &InstanceState, exchanges: &mut Vec<Exchange>) {
    for exchange in exchanges.drain(..) {
        exchange.fail(&Error::unsupported(format!(
            "model `{}`: this version of Gesso does not execute pipelines",
            state.model.name
        )));
    }
}
