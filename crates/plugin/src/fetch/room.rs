//! Bytes of files that requests hold or wait for, which are bounded together. A file counts once, however many requests
//! hold it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a file takes of what all files may.
pub(super) struct Room {
    held: Arc<AtomicUsize>,
    most: usize,
    bytes: AtomicUsize,
}

impl Room {
    /// For a file of which nothing came yet; all have `most` bytes.
    pub(super) fn new(held: &Arc<AtomicUsize>, most: usize) -> Self {
        Self { held: Arc::clone(held), most, bytes: AtomicUsize::new(0) }
    }

    /// Takes room for more bytes; false where there is none.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        let fits = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.most);
        let taken = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
