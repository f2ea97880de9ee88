//! Host memory for intermediate values: aligned buffers that go back to their pool when the last value that uses them
//! is freed. It must not know what the bytes mean.
//!
//! ```text
//! batches      1          2 beside 1          3 beside 2
//! may take     all        a part, then all    a part ...       for more than the part, a batch waits until those before are done
//! ```

use std::sync::{Arc, Weak};

use crate::error::{Error, ErrorKind, Result};
use crate::lanes::Ticket;
use crate::limits;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Alignment of every buffer and of every sample in it: a cache line, and more than any element needs.
pub const ALIGNMENT: usize = 64;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// Rounds `bytes` up to whole cache lines.
pub fn align_up(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Bytes at an aligned address. Fresh memory is zero, reused memory holds what the last batch left.
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
            pool.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
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
            pool.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
            pool.give_back(std::mem::take(&mut self.lines));
        }
    }
}

/// Keeps freed buffers for the next batch, up to [`limits::MAX_RETAINED_BYTES`].
pub struct HostPool {
    /// Shared with the pools beside it.
    free: Arc<Mutex<Vec<Vec<Line>>>>,
    /// Bytes of buffers that were taken and are not back.
    in_use: AtomicUsize,
    /// The most of them.
    most: usize,
    /// Of the batch at hand, if there may be others beside it.
    turn: Mutex<Option<Ticket>>,
}

/// The time in which a pool's buffers are for one batch among others.
pub struct Turn(Arc<HostPool>);

impl Drop for Turn {
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

    /// Begins a batch, which may take one part in [`limits::MEMORY_BESIDE`] of the limit, and waits before it takes more until the tickets
    /// before its own are gone. They go when their batches end, which is when what this returns is dropped.
    #[must_use]
    pub fn in_turn(self: &Arc<Self>, ticket: Ticket) -> Turn {
        *self.turn.lock() = Some(ticket);
        Turn(Arc::clone(self))
    }

    /// Waits until `bytes` more may be taken beside other batches: see [`HostPool::in_turn`]. They may still not exist. Not for threads that
    /// other batches need, too.
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
        self.free.lock().clear();
    }

    /// A buffer of at least `bytes` bytes: the smallest free one that is large enough, else a new one in place of the
    /// largest free one. So the pool holds as many buffers as were ever in use at once, not one of every size.
    ///
    /// # Errors
    /// Unavailable, when the pool's limit is reached or the system has no memory.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Result<HostBuffer> {
        self.wait_for(bytes);
        let lines = bytes.div_ceil(ALIGNMENT);
        let more = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.most);
        self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|used| {
            let (most, left) = (self.most, self.most.saturating_sub(used));
            Error::new(
                ErrorKind::Unavailable,
                format!("a buffer of {bytes} bytes, of the limit of {most} bytes {left} are left"),
            )
        })?;
        // From here on it is counted, and given back when it is dropped.
        let mut buffer = HostBuffer { lines: Vec::new(), bytes, pool: Arc::downgrade(self) };
        buffer.lines = match self.reuse(lines) {
            Some(lines) => lines,
            // Zeroed by the system, page by page as they are touched.
            None => bytemuck::allocation::try_zeroed_vec(lines).map_err(|()| {
                Error::new(ErrorKind::Unavailable, format!("no memory for a buffer of {bytes} bytes"))
            })?,
        };
        Ok(buffer)
    }

    fn reuse(&self, lines: usize) -> Option<Vec<Line>> {
        let mut free = self.free.lock();
        let sizes = || free.iter().map(Vec::len).enumerate();
        let fitting = sizes().filter(|&(_, size)| size >= lines).min_by_key(|&(_, size)| size);
        if let Some((i, _)) = fitting {
            return Some(free.swap_remove(i));
        }
        if let Some((i, _)) = sizes().max_by_key(|&(_, size)| size) {
            free.swap_remove(i);
        }
        None
    }

    fn give_back(&self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        let mut free = self.free.lock();
        free.push(lines);
        // A smaller buffer is easier to replace than a larger one, so those go first.
        let mut held: usize = free.iter().map(|buffer| buffer.len() * ALIGNMENT).sum();
        while held > limits::MAX_RETAINED_BYTES {
            let Some(smallest) = free.iter().enumerate().min_by_key(|(_, b)| b.len()).map(|(i, _)| i) else {
                break;
            };
            held -= free.swap_remove(smallest).len() * ALIGNMENT;
        }
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
        let buffer = pool.take(100).unwrap();
        let address = buffer.bytes().as_ptr() as usize;
        assert_eq!(address % ALIGNMENT, 0);
        assert!(buffer.bytes().len() >= 100);
        drop(buffer);
        assert_eq!(pool.take(65).unwrap().bytes().as_ptr() as usize, address);
    }

    #[test]
    fn sizes_that_grow_do_not_pile_up() {
        let pool = Arc::new(HostPool::default());
        for bytes in [100, 1_000, 10_000, 100_000] {
            drop(pool.take(bytes).unwrap());
        }
        let held: Vec<usize> = pool.free.lock().iter().map(Vec::len).collect();
        assert_eq!(held, [100_000usize.div_ceil(ALIGNMENT)]);
    }

    #[test]
    fn a_limit_holds_for_what_is_in_use() {
        let pool = Arc::new(HostPool::within(1_000));
        let first = pool.take(600).unwrap();
        assert_eq!(pool.room(), 400);
        let error = pool.take(401).err().unwrap();
        assert_eq!(error.to_string(), "a buffer of 401 bytes, of the limit of 1000 bytes 400 are left");
        drop((first, pool.take(400).unwrap()));
        assert_eq!(pool.room(), 1_000);
        assert!(!pool.free.lock().is_empty());
        pool.release();
        assert!(pool.free.lock().is_empty());
    }

    #[test]
    fn a_buffer_that_is_parted_leaves_room_and_stays() {
        let pool = Arc::new(HostPool::within(1_000));
        let mut kept = pool.take(600).unwrap();
        kept.bytes_mut()[0] = 7;
        kept.part();
        assert_eq!((pool.room(), kept.bytes()[0], kept.held()), (1_000, 7, 640));
        let other = pool.take(1_000).unwrap();
        drop(kept);
        assert_eq!((pool.room(), pool.free.lock().len()), (0, 0));
        drop(other);
    }

    #[test]
    fn a_batch_beside_another_waits_for_more_than_its_part() {
        let (first, places) = (Arc::new(HostPool::within(800)), Arc::new(Places::default()));
        let second = Arc::new(first.beside());
        let (turn, next) = (first.in_turn(places.ticket()), second.in_turn(places.ticket()));
        let large = first.take(800).unwrap();
        let small = second.take(60).unwrap();
        let (say, said) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = &second;
            scope.spawn(move || say.send(second.take(700).unwrap().bytes().len()).unwrap());
            assert!(said.recv_timeout(Duration::from_millis(50)).is_err());
            drop((large, turn));
            assert_eq!(
                said.recv().unwrap(),
                700usize.next_multiple_of(ALIGNMENT).max(800_usize.next_multiple_of(ALIGNMENT))
            );
        });
        drop((small, next));
        // What one has given back, the other takes.
        assert_eq!(first.free.lock().len(), 2);
        assert_eq!((first.room(), second.room()), (800, 800));
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
