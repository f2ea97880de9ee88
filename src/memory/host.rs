//! Host memory for intermediate values: aligned buffers that go back to their pool when the last value that uses them
//! is freed. It must not know what the bytes mean.
//!
//! ```text
//! batches      1          2 beside 1          3 beside 2
//! may take     all        a part, then all    a part ...       for more, a batch waits until those before are done
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::filling::pattern;
use crate::error::{Error, ErrorKind, Result};
use crate::lanes::Ticket;
use crate::limits;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Alignment of every buffer and of every sample in it: a cache line, and more than any element needs.
pub const ALIGNMENT: usize = 64;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// Buffers of fewer lines are not kept: the system gives them as fast, and no thread waits for another.
const KEPT_LINES: usize = 4096 / ALIGNMENT;

/// Rounds `bytes` up to whole cache lines.
pub fn align_up(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Bytes at an aligned address. Fresh memory is zero, reused memory holds what the last batch left: who takes it writes
/// all of what it gives away (`tests/conformance/unwritten.rs`).
pub struct HostBuffer {
    lines: Vec<Line>,
    /// What was asked for.
    bytes: usize,
    pool: Weak<HostPool>,
}

impl HostBuffer {
    /// All bytes, to read.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines)
    }

    /// All bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }

    /// Parts it from its pool, which has room for others then. For what outlives a batch: who keeps it counts it.
    pub fn part(&mut self) {
        if let Some(pool) = std::mem::take(&mut self.pool).upgrade() {
            pool.discount(self.bytes);
        }
    }

    /// Bytes of memory that it takes.
    pub fn held(&self) -> usize {
        self.lines.len() * ALIGNMENT
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.discount(self.bytes);
            pool.give_back(std::mem::take(&mut self.lines));
        }
    }
}

/// Freed memory, by its size: a batch of files takes and gives back hundreds of buffers, in all threads.
#[derive(Default)]
struct Free {
    /// By the number of lines.
    by_size: BTreeMap<usize, Vec<Vec<Line>>>,
    lines: usize,
}

impl Free {
    /// The smallest of at least `lines`.
    fn fitting(&mut self, lines: usize) -> Option<Vec<Line>> {
        let size = *self.by_size.range(lines..).next()?.0;
        self.remove(size)
    }

    fn remove(&mut self, size: usize) -> Option<Vec<Line>> {
        let same = self.by_size.get_mut(&size)?;
        let taken = same.pop();
        if same.is_empty() {
            self.by_size.remove(&size);
        }
        self.lines -= taken.as_ref().map_or(0, Vec::len);
        taken
    }

    fn remove_largest(&mut self) -> Option<Vec<Line>> {
        let size = *self.by_size.last_key_value()?.0;
        self.remove(size)
    }

    fn remove_smallest(&mut self) -> Option<Vec<Line>> {
        let size = *self.by_size.first_key_value()?.0;
        self.remove(size)
    }

    fn push(&mut self, lines: Vec<Line>) {
        self.lines += lines.len();
        self.by_size.entry(lines.len()).or_default().push(lines);
    }
}

/// Keeps freed buffers for the next batch, up to [`limits::MAX_RETAINED_BYTES`].
pub struct HostPool {
    /// Shared with the pools beside it.
    free: Arc<Mutex<Free>>,
    /// Bytes of buffers that were taken and are not back.
    in_use: AtomicUsize,
    /// The most of them.
    most: usize,
    /// Of the batch at hand, if there may be others beside it.
    turn: Mutex<Option<Ticket>>,
}

/// The time in which a pool's buffers are for one batch among others.
pub struct PoolLease(Arc<HostPool>);

impl Drop for PoolLease {
    fn drop(&mut self) {
        *self.0.turn.lock() = None;
    }
}

impl Default for HostPool {
    fn default() -> Self {
        Self::within(usize::MAX)
    }
}

impl HostPool {
    /// A pool of which `most` bytes may be in use at a time.
    pub fn within(most: usize) -> Self {
        Self { free: Arc::default(), in_use: AtomicUsize::new(0), most, turn: Mutex::default() }
    }

    /// Another pool, with the same limit, that keeps what is freed together with this one.
    pub fn beside(&self) -> Self {
        Self { free: Arc::clone(&self.free), ..Self::within(self.most) }
    }

    /// Begins a batch, which may take one part in [`limits::MEMORY_BESIDE`] of the limit, and waits before it takes
    /// more until the tickets before its own are gone. They go when their batches end, which is when what this returns
    /// is dropped.
    #[must_use]
    pub fn in_turn(self: &Arc<Self>, ticket: Ticket) -> PoolLease {
        *self.turn.lock() = Some(ticket);
        PoolLease(Arc::clone(self))
    }

    /// Waits until `bytes` more may be taken beside other batches: see [`HostPool::in_turn`]. They may still not exist.
    /// Not for threads that other batches need, too.
    pub fn wait_for(&self, bytes: usize) {
        if self.in_use.load(Ordering::Relaxed).saturating_add(bytes) > self.most / limits::MEMORY_BESIDE
            && let Some(ticket) = self.turn.lock().as_ref()
        {
            ticket.wait();
        }
    }

    /// Bytes that may be taken yet.
    pub fn room(&self) -> usize {
        self.most.saturating_sub(self.in_use.load(Ordering::Relaxed))
    }

    /// Gives the system what was kept for the next batch.
    pub fn release(&self) {
        let free = std::mem::take(&mut *self.free.lock());
        drop(free);
    }

    /// A buffer of at least `bytes` bytes: the smallest free one that is large enough, else a new one in place of the
    /// largest free one. So the pool holds as many buffers as were ever in use at once, not one of every size.
    ///
    /// # Errors
    /// Unavailable, when the pool's limit is reached or the system has no memory.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Result<HostBuffer> {
        let lines = bytes.div_ceil(ALIGNMENT);
        self.count(bytes)?;
        // From here on it is counted, and given back when it is dropped.
        let mut buffer = HostBuffer { lines: Vec::new(), bytes, pool: Arc::downgrade(self) };
        let reused = if lines < KEPT_LINES { None } else { self.reuse(lines) };
        buffer.lines = match reused {
            Some(lines) => lines,
            // Zeroed by the system, page by page as they are touched.
            None => bytemuck::allocation::try_zeroed_vec(lines).map_err(|()| {
                Error::new(ErrorKind::Unavailable, format!("no memory for a buffer of {bytes} bytes"))
            })?,
        };
        if let Some(pattern) = pattern() {
            buffer.bytes_mut().fill(pattern);
        }
        Ok(buffer)
    }

    /// Counts `bytes` more as in use.
    pub(super) fn count(&self, bytes: usize) -> Result<()> {
        self.wait_for(bytes);
        let more = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.most);
        match self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(used) => {
                let (most, left) = (self.most, self.most.saturating_sub(used));
                Err(Error::new(
                    ErrorKind::Unavailable,
                    format!("a buffer of {bytes} bytes, of the limit of {most} bytes {left} are left"),
                ))
            }
        }
    }

    /// Counts so many no longer.
    pub(super) fn discount(&self, bytes: usize) {
        self.in_use.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn reuse(&self, lines: usize) -> Option<Vec<Line>> {
        let mut free = self.free.lock();
        let fitting = free.fitting(lines);
        // Goes back to the system when others may take and give again.
        let largest = if fitting.is_none() { free.remove_largest() } else { None };
        drop(free);
        drop(largest);
        fitting
    }

    fn give_back(&self, lines: Vec<Line>) {
        if lines.len() < KEPT_LINES {
            return;
        }
        let mut dropped = Vec::new();
        let mut free = self.free.lock();
        free.push(lines);
        // A smaller buffer is easier to replace than a larger one, so those go first.
        while free.lines * ALIGNMENT > limits::MAX_RETAINED_BYTES {
            dropped.extend(free.remove_smallest());
        }
        drop(free);
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lanes::Places;

    #[test]
    fn buffers_are_aligned_and_come_back() {
        let pool = Arc::new(HostPool::default());
        let buffer = pool.take(10_000).unwrap();
        let address = buffer.bytes().as_ptr() as usize;
        assert_eq!(address % ALIGNMENT, 0);
        assert!(buffer.bytes().len() >= 10_000);
        // A small one takes none of those that are kept, and is not kept.
        drop((buffer, pool.take(100).unwrap()));
        assert_eq!(pool.take(6_500).unwrap().bytes().as_ptr() as usize, address);
    }

    #[test]
    fn sizes_that_grow_do_not_pile_up() {
        let pool = Arc::new(HostPool::default());
        for bytes in [10_000, 30_000, 50_000, 100_000] {
            drop(pool.take(bytes).unwrap());
        }
        let held: Vec<usize> = pool.free.lock().by_size.keys().copied().collect();
        assert_eq!(held, [100_000usize.div_ceil(ALIGNMENT)]);
        assert_eq!(pool.free.lock().lines, held[0]);
    }

    #[test]
    fn a_limit_holds_for_what_is_in_use() {
        let pool = Arc::new(HostPool::within(10_000));
        let first = pool.take(6_000).unwrap();
        assert_eq!(pool.room(), 4_000);
        let error = pool.take(4_001).err().unwrap();
        assert_eq!(error.to_string(), "a buffer of 4001 bytes, of the limit of 10000 bytes 4000 are left");
        drop((first, pool.take(4_000).unwrap()));
        assert_eq!(pool.room(), 10_000);
        assert!(pool.free.lock().lines > 0);
        pool.release();
        assert_eq!(pool.free.lock().lines, 0);
    }

    #[test]
    fn a_buffer_that_is_parted_leaves_room_and_stays() {
        let pool = Arc::new(HostPool::within(10_000));
        let mut kept = pool.take(6_000).unwrap();
        kept.bytes_mut()[0] = 7;
        kept.part();
        assert_eq!((pool.room(), kept.bytes()[0], kept.held()), (10_000, 7, 6_016));
        let other = pool.take(10_000).unwrap();
        drop(kept);
        assert_eq!((pool.room(), pool.free.lock().lines), (0, 0));
        drop(other);
    }

    #[test]
    fn a_batch_beside_another_waits_for_more_than_its_part() {
        let (first, places) = (Arc::new(HostPool::within(80_000)), Arc::new(Places::default()));
        let second = Arc::new(first.beside());
        let (turn, next) = (first.in_turn(places.ticket()), second.in_turn(places.ticket()));
        let large = first.take(80_000).unwrap();
        let small = second.take(6_000).unwrap();
        let (say, said) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = &second;
            scope.spawn(move || say.send(second.take(70_000).unwrap().bytes().len()).unwrap());
            assert!(said.recv_timeout(Duration::from_millis(50)).is_err());
            drop((large, turn));
            assert_eq!(
                said.recv().unwrap(),
                70_000usize.next_multiple_of(ALIGNMENT).max(80_000_usize.next_multiple_of(ALIGNMENT))
            );
        });
        drop((small, next));
        // What one has given back, the other takes.
        assert_eq!(first.free.lock().by_size.values().map(Vec::len).sum::<usize>(), 2);
        assert_eq!((first.room(), second.room()), (80_000, 80_000));
    }

    #[test]
    fn memory_that_does_not_exist_is_an_error() {
        let pool = Arc::new(HostPool::default());
        let error = pool.take(usize::MAX / 4).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn a_buffer_outlives_its_pool() {
        let pool = Arc::new(HostPool::default());
        let mut buffer = pool.take(1).unwrap();
        drop(pool);
        buffer.bytes_mut()[0] = 7;
        assert_eq!(buffer.bytes()[0], 7);
    }
}
