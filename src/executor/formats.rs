//! Refuses files of formats that may not be decoded, before an operator sees them. It must not know formats.

use crate::cpu::formats::Formats;
use crate::graph::Node;
use crate::operator::Inputs;

/// Fails those samples whose first input is a file of a format that is not one of `formats`, if `node` decodes files.
pub(super) fn refuse(formats: Formats, node: &Node, inputs: &Inputs<'_>) {
    let Some(encoded) = node.first().and_then(|def| def.encoded) else { return };
    if !formats.is_all() {
        inputs.map(|sample| formats.check_file(encoded, sample.input(0)?.bytes));
    }
}
