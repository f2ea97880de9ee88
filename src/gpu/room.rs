//! Room on a device for the large values of the batches that are under way: one that finds none waits for those that
//! took some before it. It must not know what the values are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::limits;

/// What all batches on a device share.
pub(super) struct Room {
    bytes: usize,
    wait: Duration,
    holders: Mutex<Holders>,
    freed: Condvar,
    waiting: AtomicUsize,
}

/// Batches that hold some, the oldest first, and how much.
#[derive(Default)]
struct Holders {
    bytes: BTreeMap<u64, usize>,
    next: u64,
}

impl Holders {
    /// Whether `number` may hold `bytes` more of `room`. The oldest always may: it waits for none, so that they all
    /// end.
    fn admit(&self, number: u64, bytes: usize, room: usize) -> bool {
        let held: usize = self.bytes.values().sum();
        held.saturating_add(bytes) <= room || self.bytes.keys().next() == Some(&number)
    }
}

impl Room {
    /// Room for `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let wait = Duration::from_millis(limits::DEVICE_ROOM_WAIT_MS);
        Self { bytes, wait, holders: Mutex::default(), freed: Condvar::new(), waiting: AtomicUsize::new(0) }
    }

    /// Batches that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// What one batch at a time holds of a room.
pub(super) struct Held {
    room: Arc<Room>,
    /// Among all that ever held some; `None`: it holds nothing.
    number: Option<u64>,
}

impl Held {
    /// Nothing.
    pub(super) fn new(room: &Arc<Room>) -> Self {
        Self { room: Arc::clone(room), number: None }
    }

    /// Takes `bytes` more, when there is room or nobody older; else it waits as long as others give room back now and
    /// then: two batches may wait for each other, one of them for something else. What is small is not counted.
    pub(super) fn take(&mut self, bytes: usize) {
        if bytes < limits::MIN_DEVICE_ROOM_BYTES {
            return;
        }
        let room = &*self.room;
        let mut holders = room.holders.lock();
        let number = *self.number.get_or_insert_with(|| {
            holders.next += 1;
            holders.next
        });
        holders.bytes.entry(number).or_default();
        while !holders.admit(number, bytes, room.bytes) {
            room.waiting.fetch_add(1, Ordering::Relaxed);
            let freed = room.freed.wait_for(&mut holders, room.wait);
            room.waiting.fetch_sub(1, Ordering::Relaxed);
            if freed.timed_out() {
                tracing::debug!("a batch goes on without room for {bytes} bytes on the device");
                break;
            }
        }
        *holders.bytes.entry(number).or_default() += bytes;
    }

    /// Whether the batch holds something.
    pub(super) fn is_some(&self) -> bool {
        self.number.is_some()
    }

    /// Gives back what the batch held, whose memory is free.
    pub(super) fn give_back(&mut self) {
        if let Some(number) = self.number.take() {
            self.room.holders.lock().bytes.remove(&number);
            self.room.freed.notify_all();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    const LARGE: usize = limits::MIN_DEVICE_ROOM_BYTES;

    #[test]
    fn the_oldest_takes_what_it_needs_and_others_wait_for_it() {
        let room = Arc::new(Room::new(3 * LARGE));
        let [mut old, mut young] = [Held::new(&room), Held::new(&room)];
        old.take(2 * LARGE);
        young.take(LARGE);
        // More than there is.
        old.take(5 * LARGE);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                young.take(LARGE);
                assert!(is_over.load(Ordering::SeqCst));
            });
            while room.freed.notify_all() == 0 {
                thread::yield_now();
            }
            is_over.store(true, Ordering::SeqCst);
            old.give_back();
        });
        // Who comes next is behind it, also the one that was the oldest.
        assert!(room.holders.lock().admit(2, 9 * LARGE, room.bytes));
        old.take(LARGE);
        assert!(!room.holders.lock().admit(3, LARGE, room.bytes));
        drop((old, young));
        assert!(room.holders.lock().bytes.is_empty());
    }

    #[test]
    fn small_values_are_not_counted_and_nobody_waits_for_ever() {
        let mut room = Room::new(LARGE);
        room.wait = Duration::from_millis(1);
        let room = Arc::new(room);
        let [mut old, mut young] = [Held::new(&room), Held::new(&room)];
        old.take(LARGE);
        young.take(LARGE - 1);
        assert_eq!(room.holders.lock().bytes.len(), 1);
        young.take(LARGE);
        assert_eq!(room.holders.lock().bytes.values().sum::<usize>(), 2 * LARGE);
    }
}
