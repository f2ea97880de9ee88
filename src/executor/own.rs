//! Copies of inputs that the caller, or somebody behind him, could change while they are read: a client of a server
//! sends tensors in shared memory and may still write there. A decoder that checks a header and reads it again would
//! write past its output. It must not know which values need that.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::memory::{Bounds, HostPool, Size, align_up, bound, copy_once};
use crate::operator::Failures;
use crate::tensor::{Batch, Sample};
use crate::threads::Threads;

/// Fewer bytes than this are copied by the thread at hand: waking others takes longer.
const PARALLEL_BYTES: usize = 256 << 10;

/// What copying a file of so many bytes and decoding it is expected to take at least.
pub(super) fn reading(bytes: usize) -> Duration {
    Duration::from_nanos(2 * bytes as u64)
}

/// The samples of `batch` that [`take`] copies, with their bytes.
pub(super) fn foreign<'r>(batch: &Batch<'r>, failures: &Failures) -> Vec<(usize, &'r [u8])> {
    let borrowed = |i| match batch.sample(i) {
        Some(&Sample::Borrowed(bytes)) if failures.get(i).is_none() => Some((i, bytes)),
        _ => None,
    };
    (0..batch.len()).filter_map(borrowed).collect()
}

/// Moves the samples of `batch` that are in the caller's memory into a buffer of our own, which is read from then on.
/// Those that there is no room for fail, the largest first.
///
/// # Errors
/// Unavailable, when there is no memory.
pub(super) fn take(
    batch: &mut Batch<'_>,
    failures: &Failures,
    pool: &Threads,
    memory: &Arc<HostPool>,
) -> Result<()> {
    let size = |(sample, bytes): (usize, &[u8])| Size { bytes: bytes.len(), scratch: 0, sample };
    let sizes = foreign(batch, failures).into_iter().map(size).collect();
    bound(sizes, 1, Bounds::host(memory.room()), |i, error| failures.fail(i, error));
    let foreign = foreign(batch, failures);
    if foreign.is_empty() {
        return Ok(());
    }
    let mut buffer = memory.take(foreign.iter().map(|(_, bytes)| align_up(bytes.len())).sum())?;
    let mut rest = buffer.bytes_mut();
    let mut copies = Vec::with_capacity(foreign.len());
    for (_, bytes) in &foreign {
        let (own, tail) = std::mem::take(&mut rest).split_at_mut(align_up(bytes.len()));
        rest = tail;
        copies.push((*bytes, &mut own[..bytes.len()]));
    }
    let total: usize = foreign.iter().map(|(_, bytes)| bytes.len()).sum();
    if total >= PARALLEL_BYTES {
        pool.for_each(&mut copies, |(bytes, own)| copy_once(bytes, own));
    } else {
        copies.iter_mut().for_each(|(bytes, own)| copy_once(bytes, own));
    }
    let mut ranges = Vec::with_capacity(foreign.len());
    let mut end = 0;
    for (i, bytes) in foreign {
        ranges.push((i, end..end + bytes.len()));
        end += align_up(bytes.len());
    }
    let buffer = Arc::new(buffer);
    for (i, range) in ranges {
        batch.replace(i, Sample::Pooled(Arc::clone(&buffer), range))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{BatchDesc, DType, Layout, Shape};
    use crate::threads;

    #[test]
    fn samples_become_copies_and_those_that_are_ours_stay() {
        let memory = Arc::new(HostPool::default());
        let pool = threads::start(2).unwrap();
        let long: Vec<u8> = (0..PARALLEL_BYTES + 3).map(|i| i as u8).collect();
        let ours = Arc::new(memory.take(4).unwrap());
        let samples = vec![
            Sample::Borrowed(&long[..5]),
            Sample::Missing,
            Sample::Pooled(Arc::clone(&ours), 0..4),
            Sample::Borrowed(&[]),
            Sample::Borrowed(&long),
        ];
        let shapes = [5, 9, 4, 0, long.len()].map(|len| Shape::from([len])).to_vec();
        let mut batch = Batch::new(BatchDesc::new(DType::U8, Layout::NONE, shapes), samples).unwrap();
        take(&mut batch, &Failures::none(5), &pool, &memory).unwrap();
        assert_eq!((batch.view(0).bytes, batch.view(4).bytes), (&long[..5], &long[..]));
        assert!([0, 3, 4].iter().all(|&i| matches!(batch.sample(i), Some(Sample::Pooled(..)))));
        assert!(matches!(batch.sample(1), Some(Sample::Missing)));
        assert_eq!(batch.view(2).bytes.as_ptr(), ours.bytes().as_ptr());
    }
}
