//! How much the samples of a batch may take together, and which of them it has no room for. It must not know what they
//! are.

use super::align_up;
use crate::error::{Error, ErrorKind};
use crate::limits;

/// Bytes that a batch may take.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// For one value.
    pub(crate) value: usize,
    /// For it and what is taken while it is made.
    pub(crate) all: usize,
}

impl Bounds {
    /// Those of a batch on the host that may take `room` bytes yet.
    pub(crate) fn host(room: usize) -> Self {
        Self { value: limits::MAX_BATCH_BYTES, all: room }
    }
}

/// What a sample takes: its bytes, and others while it is worked on.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) bytes: usize,
    pub(crate) scratch: usize,
    pub(crate) sample: usize,
}

/// Fails those of `sizes` that do not fit into `bounds`, where the smallest come first. `threads` of them are worked on
/// at a time. Returns what the others take.
pub(crate) fn bound(
    mut sizes: Vec<Size>,
    threads: usize,
    bounds: Bounds,
    fail: impl Fn(usize, Error),
) -> usize {
    sizes.sort_unstable_by_key(|size| (size.bytes.saturating_add(size.scratch), size.sample));
    let (mut total, mut scratch, mut taken) = (0usize, 0usize, 0);
    for (before, size) in sizes.into_iter().enumerate() {
        let with = total.saturating_add(align_up(size.bytes));
        let beside = scratch.max(size.scratch);
        let all = with.saturating_add(beside.saturating_mul(threads.min(before + 1)));
        if with <= bounds.value && all <= bounds.all {
            (total, scratch, taken) = (with, beside, all);
            continue;
        }
        let beside =
            if size.scratch > 0 { format!("; it takes {} beside them", size.scratch) } else { String::new() };
        let text = format!(
            "a sample of {} bytes does not fit into its batch any more, whose limit is {} bytes{beside}",
            size.bytes,
            bounds.all.min(bounds.value)
        );
        fail(size.sample, Error::new(ErrorKind::Unavailable, text));
    }
    taken
}
