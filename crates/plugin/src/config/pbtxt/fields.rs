//! Which fields a model configuration has, and which of them repeat.

use super::{Content, Field, at};
use crate::config::spelling;
use gesso::error::Result;

/// Fields that may stand several times, wherever they are.
const REPEATED: [&str; 32] = [
    "agents",
    "batch_input",
    "batch_output",
    "bool_false_true",
    "buckets",
    "control",
    "control_input",
    "cpu_execution_accelerator",
    "dim",
    "dims",
    "fp32_false_true",
    "gpu_execution_accelerator",
    "gpus",
    "graph_spec",
    "initial_state",
    "input",
    "instance_group",
    "int32_false_true",
    "metric_control",
    "model_warmup",
    "op_library_filename",
    "output",
    "preferred_batch_size",
    "profile",
    "resources",
    "secondary_devices",
    "shape",
    "source_input",
    "state",
    "step",
    "target_name",
    "versions",
];

/// Fields that map a key to a value, one entry each time that they stand.
const MAPS: [&str; 7] = [
    "cc_model_filenames",
    "input_map",
    "inputs",
    "metric_tags",
    "output_map",
    "parameters",
    PRIORITY_QUEUE_POLICY,
];

/// The one map whose keys are numbers.
const PRIORITY_QUEUE_POLICY: &str = "priority_queue_policy";

/// Fields that hold a name of an enumeration, or a number with a fraction, for which there are names, too (`inf`).
const BARE: [&str; 8] = [
    "buckets",
    "data_type",
    "format",
    "fp32_false_true",
    "kind",
    "minimum_slot_utilization",
    "priority",
    "timeout_action",
];

/// The fields of a configuration, of an input, of an output and of an instance group.
const OF_CONFIG: [&str; 25] = [
    "backend",
    "batch_input",
    "batch_output",
    "cc_model_filenames",
    "default_model_filename",
    "dynamic_batching",
    "ensemble_scheduling",
    "input",
    "instance_group",
    "max_batch_size",
    "metric_tags",
    "model_metrics",
    "model_operations",
    "model_repository_agents",
    "model_transaction_policy",
    "model_warmup",
    "name",
    "optimization",
    "output",
    "parameters",
    "platform",
    "response_cache",
    "runtime",
    "sequence_batching",
    "version_policy",
];
const OF_INPUT: [&str; 9] = [
    "allow_ragged_batch",
    "data_type",
    "dims",
    "format",
    "is_non_linear_format_io",
    "is_shape_tensor",
    "name",
    "optional",
    "reshape",
];
const OF_OUTPUT: [&str; 7] =
    ["data_type", "dims", "is_non_linear_format_io", "is_shape_tensor", "label_filename", "name", "reshape"];
const OF_GROUP: [&str; 9] = [
    "count",
    "gpus",
    "host_policy",
    "kind",
    "name",
    "passive",
    "profile",
    "rate_limiter",
    "secondary_devices",
];

/// Whether a field may stand several times.
pub(super) fn repeats(name: &str) -> bool {
    REPEATED.contains(&name)
}

/// Whether a field is an entry of a map.
pub(super) fn is_map(name: &str) -> bool {
    MAPS.contains(&name)
}

/// Whether the keys of a map are numbers.
pub(super) fn has_numbers_as_keys(name: &str) -> bool {
    name == PRIORITY_QUEUE_POLICY
}

/// Whether what a field holds stands without quotes, if it is no number.
pub(super) fn is_bare(name: &str) -> bool {
    BARE.contains(&name)
}

/// Checks the fields of a configuration, and those of its tensors and instance groups.
///
/// # Errors
/// Invalid, with the line, for a field that is none, and for one that stands twice.
pub(super) fn check_all(fields: &[Field]) -> Result<()> {
    check(fields, &OF_CONFIG, "a model configuration")?;
    for field in fields {
        let Content::Message(inner) = &field.value else { continue };
        match field.name.as_str() {
            "input" => check(inner, &OF_INPUT, "an input")?,
            "output" => check(inner, &OF_OUTPUT, "an output")?,
            "instance_group" => check(inner, &OF_GROUP, "an instance group")?,
            _ => {}
        }
    }
    Ok(())
}

fn check(fields: &[Field], known: &[&str], of: &str) -> Result<()> {
    for (i, field) in fields.iter().enumerate() {
        if !known.contains(&field.name.as_str()) {
            let hint = spelling::hint(&field.name, known.iter().copied());
            return Err(at(field.line, format!("`{}` is no field of {of}{hint}", field.name.escape_debug())));
        }
        if !repeats(&field.name)
            && !is_map(&field.name)
            && fields.iter().take(i).any(|other| other.name == field.name)
        {
            return Err(at(field.line, format!("`{}` is given twice", field.name)));
        }
    }
    Ok(())
}
