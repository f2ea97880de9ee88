//! `ExternalSource`: an input of the pipeline. It stands in the table for what it accepts; nothing of it runs, as the
//! importer makes an input of the graph of it.

use crate::error::Error;
use crate::operator::{ArgSpec, OpDef};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ExternalSource",
    aliases: &["_ExternalSource"],
    doc: "An input of the pipeline: what callers feed",
    devices: &[crate::tensor::Device::Cpu, crate::tensor::Device::Gpu],
    inputs: (0, 0),
    args: &[
        ArgSpec::dtype("dtype", "element type of what is fed").or_computed("what comes"),
        ArgSpec::layout("layout", "layout of what is fed"),
        ArgSpec::int("ndim", "dimensions of a sample").or_computed("those of `layout`, or what comes"),
        ArgSpec::bool("blocking", "callers feed and run").or_bool(false).no_effect(),
        ArgSpec::bool("no_copy", "callers say it as they feed").or_bool(false).no_effect(),
        ArgSpec::bool("repeat_last", "every batch is fed").or_bool(false).no_effect(),
    ],
    build: &|_, _| Err(Error::internal("an input of the pipeline is fed, not built")),
    is_input: true,
    ..OpDef::BASE
};
