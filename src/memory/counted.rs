//! Memory that a pool counts and does not give: a library's, which says how much it is. It must not know whose.

use std::sync::{Arc, Weak};

use super::HostPool;
use crate::error::Result;
use crate::sync::Mutex;

/// Bytes that count as a pool's. Dropped, they do no more.
#[derive(Default)]
pub struct Counted(Mutex<(Weak<HostPool>, usize)>);

impl Counted {
    /// Counts with `pool` from here on, nothing yet.
    pub fn join(&self, pool: &Arc<HostPool>) {
        self.part();
        self.0.lock().0 = Arc::downgrade(pool);
    }

    /// Makes it `bytes` at least.
    ///
    /// # Errors
    /// Unavailable when the pool has no room for them.
    pub fn grow_to(&self, bytes: usize) -> Result<()> {
        let mut counted = self.0.lock();
        let more = bytes.saturating_sub(counted.1);
        if more > 0
            && let Some(pool) = counted.0.upgrade()
        {
            pool.count(more)?;
            counted.1 = bytes;
        }
        Ok(())
    }

    /// Counts nothing any more.
    pub fn part(&self) {
        let mut counted = self.0.lock();
        let (pool, bytes) = std::mem::take(&mut *counted);
        if let Some(pool) = pool.upgrade() {
            pool.discount(bytes);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.part();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_leaves_less_room() {
        let (pool, counted) = (Arc::new(HostPool::within(1_000)), Counted::default());
        counted.join(&pool);
        counted.grow_to(600).unwrap();
        counted.grow_to(300).unwrap();
        assert_eq!(pool.room(), 400);
        assert!(counted.grow_to(1_001).is_err());
        assert_eq!(pool.room(), 400);
        counted.part();
        assert_eq!(pool.room(), 1_000);
        counted.join(&pool);
        counted.grow_to(1_000).unwrap();
        drop(counted);
        assert_eq!(pool.room(), 1_000);
    }
}
