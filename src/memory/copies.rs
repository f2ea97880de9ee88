//! Copies of memory that somebody else may write to, and large memory that several threads fill: what it costs is less
//! the copying than the pages that the system hands out meanwhile. It must not know what the bytes mean.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

use crate::error::{Error, Result};

/// Bytes that nobody writes to as long as they are held.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// What one thread fills at least: making another takes as long as a part of it.
const PART: usize = 4 << 20;

/// More threads than this wait for memory.
const MOST_THREADS: usize = 8;

/// Copies memory that somebody else may write to meanwhile, before anything of it is looked at. Not inlined, so that no
/// compiler reads the original where the copy is meant. Both are of one length.
#[inline(never)]
pub fn copy_once(bytes: &[u8], own: &mut [u8]) {
    own.copy_from_slice(bytes);
}

/// The same into memory of its own.
pub fn copied_once(bytes: &[u8]) -> Vec<u8> {
    let mut own = vec![0; bytes.len()];
    // No part fails.
    let _ = fill(&mut own, |at, own| {
        copy_once(bytes.get(at..at + own.len()).unwrap_or_default(), own);
        Ok(())
    });
    own
}

/// Lets `part` fill `own`, of large memory several parts at a time: it is told where its part begins.
///
/// # Errors
/// What `part` says.
pub fn fill(own: &mut [u8], part: impl Fn(usize, &mut [u8]) -> Result<()> + Sync) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    fill_by(threads.min(MOST_THREADS).min(own.len() / PART), own, &part)
}

fn fill_by(
    threads: usize,
    own: &mut [u8],
    part: &(impl Fn(usize, &mut [u8]) -> Result<()> + Sync),
) -> Result<()> {
    if threads < 2 {
        return part(0, own);
    }
    let size = own.len().div_ceil(threads);
    let parts = Mutex::new(own.chunks_mut(size).enumerate());
    let work = || loop {
        let next = parts.lock().next();
        let Some((i, own)) = next else { return Ok(()) };
        part(i * size, own)?;
    };
    thread::scope(|scope| {
        // One that cannot be made leaves its part to the others.
        let begin = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let begun: Vec<_> = (1..threads).filter_map(begin).collect();
        let mut filled = work();
        for thread in begun {
            let ended = thread.join();
            filled = filled
                .and(ended.unwrap_or_else(|_| Err(Error::internal("a thread that fills memory panicked"))));
        }
        filled
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_filled_once_and_knows_its_place() {
        for (threads, length) in [(0, 7), (1, 0), (2, 5), (3, 9), (8, 9)] {
            let mut own = vec![0_u8; length];
            let part = |at: usize, own: &mut [u8]| {
                own.iter_mut().enumerate().for_each(|(i, byte)| *byte += (at + i) as u8);
                Ok(())
            };
            fill_by(threads, &mut own, &part).unwrap();
            assert_eq!(own, (0..length as u8).collect::<Vec<_>>(), "{threads} threads");
        }
    }

    #[test]
    fn an_error_of_any_part_is_told() {
        let part = |at: usize, _: &mut [u8]| if at > 0 { Err(Error::invalid("cut off")) } else { Ok(()) };
        assert_eq!(fill_by(3, &mut [0; 9], &part).unwrap_err().to_string(), "cut off");
    }

    #[test]
    fn a_large_copy_is_the_original() {
        let bytes: Vec<u8> = (0..3 * PART + 11).map(|i| (i / 7) as u8).collect();
        assert!(copied_once(&bytes) == bytes);
        assert!(copied_once(&[]).is_empty());
    }
}
