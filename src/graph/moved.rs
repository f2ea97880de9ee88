//! A file as if its author had put every operator on the device that can run there: to try a pipeline made for hosts on
//! a GPU, and to compare the two.

use std::collections::HashSet;

use super::proto::{Argument, OpDef, PipelineDef};
use crate::ops;

/// Rewrites the devices of operators and edges.
pub(super) fn move_to_device(def: &mut PipelineDef) {
    let mut on_device = HashSet::new();
    for op in &mut def.op {
        let name = op.name.clone().unwrap_or_default();
        let Some(found) = ops::find(&name).filter(|found| found.runs_on_gpu()) else { continue };
        let mixed =
            found.is_mixed() && op.input.iter().any(|input| !input.is_argument_input.unwrap_or(false));
        let upsamples = found.all_args().any(|arg| arg.name == "jpeg_fancy_upsampling");
        if mixed && set_device(op, "mixed") && upsamples {
            // On the host chroma is always upsampled smoothly, whatever the file says.
            op.args.retain(|arg| arg.name.as_deref() != Some("jpeg_fancy_upsampling"));
            op.args.push(Argument {
                name: Some("jpeg_fancy_upsampling".to_owned()),
                r#type: Some("bool".to_owned()),
                bools: vec![true],
                ..Argument::default()
            });
        } else if !mixed {
            set_device(op, "gpu");
        }
        let regular = op.input.iter_mut().filter(|input| !input.is_argument_input.unwrap_or(false));
        for (i, input) in regular.enumerate() {
            let on_host = found.reads_on_host(i);
            input.device = Some(if on_host { "cpu" } else { "gpu" }.to_owned());
        }
        for output in &mut op.output {
            output.device = Some("gpu".to_owned());
            on_device.extend(output.name.clone());
        }
    }
    for output in &mut def.pipe_outputs {
        if output.name.as_ref().is_some_and(|name| on_device.contains(name)) {
            output.device = Some("gpu".to_owned());
        }
    }
}

/// Sets where an operator runs; whether it ran on the host before.
fn set_device(op: &mut OpDef, device: &str) -> bool {
    let before = op.args.iter().find(|arg| arg.name.as_deref() == Some("device"));
    let was_on_host = before.is_none_or(|arg| arg.strings.iter().all(|device| device == "cpu"));
    op.args.retain(|arg| arg.name.as_deref() != Some("device"));
    op.args.push(Argument {
        name: Some("device".to_owned()),
        r#type: Some("string".to_owned()),
        strings: vec![device.to_owned()],
        ..Argument::default()
    });
    was_on_host
}
