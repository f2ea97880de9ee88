//! Why an operator of a file does not run here.

use std::collections::BTreeMap;

use super::super::super::proto::OpDef;
use super::super::is_bookkeeping;
use crate::error::{Error, Result};
use crate::operator::{Args, SEED};
use crate::ops;
use crate::readers;

/// Whether an operator by itself can be built.
pub(super) fn check(op: &OpDef) -> Result<()> {
    let values = super::super::arguments(&op.args)?;
    let name = op.name.as_deref().unwrap_or_default();
    if let Some(reader) = readers::find(name) {
        return reader.source(&Args::new(values, BTreeMap::new()), None).map(drop);
    }
    if let Some(def) = ops::find(name).filter(|def| def.videos.is_some()) {
        let values = values.into_iter().filter(|(keyword, _)| !is_bookkeeping(keyword) && keyword != SEED);
        return super::super::sources::videos(def, &Args::new(values.collect(), BTreeMap::new())).map(drop);
    }
    let Some(def) = ops::find(name) else { return Err(unknown(name)) };
    let fed = op.input.iter().filter(|edge| edge.is_argument_input.unwrap_or(false));
    let tensors: BTreeMap<String, usize> =
        fed.enumerate().map(|(i, edge)| (edge.arg_name.clone().unwrap_or_default(), i)).collect();
    let regular = op.input.iter().filter(|edge| !edge.is_argument_input.unwrap_or(false)).count();
    // Old versions write a seed for every operator.
    let counts = |keyword: &str| !is_bookkeeping(keyword) && keyword != SEED;
    let values = values.into_iter().filter(|(keyword, _)| counts(keyword)).collect();
    def.instantiate(&Args::new(values, tensors), regular).map(drop)
}

/// The error for an operator that [`ops::find`] does not know.
pub(in crate::graph::import) fn unknown(name: &str) -> Error {
    let reads_files = name.contains("readers_") || name.contains("Reader") || name == "io__file__Read";
    Error::unsupported(if reads_files {
        "it reads files of the server, which Gesso does not: feed what is in them to an external source"
    } else {
        "this operator is not known to this version of Gesso"
    })
}
