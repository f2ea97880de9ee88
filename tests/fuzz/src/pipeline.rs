//! Serialized pipelines: any bytes as a file, described, written again, loaded and, if that can be, run.

use gesso::pipeline::Pipeline;
use gesso::tensor::Device;

use crate::bytes::Bytes;
use crate::operator::{is_left_out, run_on};

/// Bytes of input that pipelines are run on, behind the file.
const INPUT: &[u8] = b"any bytes will do: they are samples of some type and some shape, or no image at all";

pub(crate) fn run(file: &[u8]) {
    let Ok(description) = Pipeline::describe(file) else { return };
    if let Ok(again) = Pipeline::author(&description) {
        // As text: what is no number is not equal to itself.
        let second = Pipeline::describe(&again).map(|second| format!("{second:?}"));
        assert_eq!(second.ok(), Some(format!("{description:?}")), "what was written says something else");
    }
    // Some would write files.
    if description.operators.iter().any(|operator| is_left_out(&operator.name)) {
        return;
    }
    if let Ok(pipeline) = Pipeline::load(file, Device::Cpu)
        && !pipeline.reads()
    {
        run_on(&pipeline, &mut Bytes::new(INPUT));
    }
}
