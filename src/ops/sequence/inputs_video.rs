//! `inputs.Video`: an input that takes a video and gives its sequences, batch after batch. Nothing of it runs here: the
//! importer lets a source feed the pipeline.

use crate::cpu::video::Sequences;
use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args, OpDef};
use crate::tensor::Device;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "experimental__inputs__Video",
    aliases: &["inputs__Video"],
    doc: "An input of the pipeline: callers feed a video, and its frames come as sequences, FHWC, batch after batch",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (0, 0),
    args: &[
        ArgSpec::int("sequence_length", "frames of a sequence").required(),
        ArgSpec::string(
            "last_sequence_policy",
            "`partial`: the last sequence may be shorter; `pad`: it is filled up with zeros",
        )
        .or_string("partial"),
        ArgSpec::bool("affine", "threads are not bound to cores").no_effect().or_bool(true),
        ArgSpec::bool("blocking", "callers feed and run").no_effect().or_bool(false),
        ArgSpec::bool("no_copy", "callers say it as they feed").no_effect().or_bool(false),
    ],
    build: &|_, _| Err(Error::internal("an input of the pipeline is fed, not built")),
    kernels: &[crate::gpu::video::kernels],
    is_input: true,
    videos: Some(&sequences),
    ..OpDef::BASE
};

fn sequences(args: &Args) -> Result<Sequences> {
    let length = args.given_int("sequence_length")?.ok_or_else(|| Error::invalid("no `sequence_length`"))?;
    let length = usize::try_from(length).ok().filter(|&length| length > 0).ok_or_else(|| {
        Error::invalid(format!("argument `sequence_length` is {length}, expected 1 or more"))
    })?;
    let pads = match args.string("last_sequence_policy")? {
        "partial" => false,
        "pad" => true,
        other => {
            return Err(Error::invalid(format!(
                "argument `last_sequence_policy` is `{other}`, expected `partial` or `pad`"
            )));
        }
    };
    Ok(Sequences { length, pads })
}
