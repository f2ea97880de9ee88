//! One image of a batch on the host, in place of the device: what other paths refuse or leave. It must not know those.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Job;
use super::files::{Files, missing_sample};
use crate::cpu::decode::{Decoder, probe};
use crate::error::Error;
use crate::operator::Inputs;

/// Decodes a sample on the host; an error or a panic fails it and no other. Returns whether it is decoded.
pub(super) fn decode_on_host(
    decoder: &Decoder,
    files: &Files,
    inputs: Inputs<'_>,
    (index, job): (usize, Option<&Job>),
    out: &mut [u8],
) -> bool {
    let decode = || {
        let job = job.ok_or_else(missing_sample)?;
        let sample = inputs.sample(index);
        let file = files.own(&sample)?;
        if matches!(file, Cow::Owned(_)) && probe(&file, job.options.adjust_orientation)? != job.info {
            return Err(Error::invalid("the file was changed while it was decoded"));
        }
        decoder.decode_into(&file, &job.options, out)
    };
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    let outcome = decoded.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
    outcome.map_err(|error| inputs.fail(index, error)).is_ok()
}
