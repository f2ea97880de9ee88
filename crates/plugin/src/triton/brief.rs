//! Whether a batch is soon done, as far as the first bytes of its requests tell. Then the server's thread, which cannot
//! be had back before, works on it itself: to wake another one takes longer than many an image. It must not know who
//! works on batches.

use std::sync::Arc;
use std::time::Duration;

use super::api::{Chunk, DataType, Input};
use super::exchange::Claim;
use super::model::ModelState;
use gesso::error::Result;
use gesso::memory::copy_once;
use gesso::pipeline::Pipeline;
use gesso::tensor::DType;

/// What is expected to take longer than this is not brief.
const BRIEF: Duration = Duration::from_millis(10);

/// First bytes of a file that are looked at, which hold the headers of most.
const HEAD_BYTES: usize = 64 << 10;

/// Bytes of the length in front of an element of a `TYPE_STRING` tensor.
const LENGTH_BYTES: usize = 4;

/// What tells brief batches of a model from others.
pub(super) struct Brief {
    pub(super) model: Arc<ModelState>,
    pub(super) pipeline: Arc<Pipeline>,
}

impl Brief {
    /// Whether the work of `claims` is brief: that of one request with one sample, or of a pipeline whose work follows
    /// from the number of bytes. `head` is memory for this, of which nothing is kept.
    pub(super) fn is(&self, claims: &[Claim], head: &mut Vec<u8>) -> bool {
        if !self.pipeline.is_steered() {
            return true;
        }
        let [claim] = claims else { return false };
        let time = self.time(claim, head).unwrap_or_default();
        time.is_some_and(|time| time <= BRIEF)
    }

    /// What a request is expected to take; `None`: nobody can tell.
    fn time(&self, claim: &Claim, head: &mut Vec<u8>) -> Result<Option<Duration>> {
        let found = claim.request().inputs()?;
        let mut time = Duration::ZERO;
        for declared in self.pipeline.inputs() {
            let name = declared.name.as_str();
            if self.pipeline.expected(name, &[], 0) == Some(Duration::ZERO) {
                continue;
            }
            // A file that the request names is not there yet.
            if self.model.folders.contains_key(name) || claim.files().contains_key(name) {
                return Ok(None);
            }
            let Some(input) = found.iter().find(|input| input.name == name) else { return Ok(None) };
            let Some(length) = take_head(input, head)? else { return Ok(None) };
            let Some(expected) = self.pipeline.expected(name, head, length) else { return Ok(None) };
            time += expected;
        }
        Ok(Some(time))
    }
}

/// Takes the beginning of an input's only sample, and says how long that is; `None` if it has several, or is not in one
/// piece on the host. It may change meanwhile.
fn take_head(input: &Input<'_>, head: &mut Vec<u8>) -> Result<Option<usize>> {
    let chunks = input.chunks()?;
    let ([Chunk::Host(bytes)], Some(1)) = (chunks.as_slice(), input.shape.first()) else { return Ok(None) };
    let start = match input.dtype {
        DataType::Dense(DType::U8) => 0,
        DataType::Bytes => LENGTH_BYTES,
        DataType::Dense(_) => return Ok(None),
    };
    let sample = bytes.get(start..).unwrap_or_default();
    let first = sample.get(..sample.len().min(HEAD_BYTES)).unwrap_or_default();
    head.resize(first.len(), 0);
    copy_once(first, head);
    Ok(Some(sample.len()))
}
