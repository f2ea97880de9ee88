//! Places in a row, for batches that are worked on at the same time: each takes as many samples of the row as it turns
//! out to have, in the order in which the batches came. It must not know what the samples are for.
//!
//! ```text
//! tickets   0         1         2             drawn when a batch comes
//! take      [0 1 2]             [3 4]         when its size is known; waits for the tickets before
//!                     dropped                 a batch that had no samples after all
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Condvar, Mutex};

/// A row of samples.
#[derive(Default)]
pub struct Places {
    row: Mutex<Row>,
    /// The turn has passed on.
    passed: Condvar,
}

#[derive(Default)]
struct Row {
    /// Tickets that were drawn.
    drawn: u64,
    /// The ticket whose turn it is.
    turn: u64,
    /// Later tickets that take nothing.
    dropped: BTreeSet<u64>,
    /// Samples that were taken.
    samples: u64,
}

/// The right to take the next samples when it is one's turn. Dropped, it takes none.
pub struct Ticket {
    places: Arc<Places>,
    number: u64,
    is_used: bool,
}

impl Places {
    /// The next ticket.
    pub fn ticket(self: &Arc<Self>) -> Ticket {
        let mut row = self.row.lock();
        let number = row.drawn;
        row.drawn += 1;
        Ticket { places: Arc::clone(self), number, is_used: false }
    }
}

impl Ticket {
    /// Waits until every earlier ticket was used or dropped.
    pub fn wait(&self) {
        let mut row = self.places.row.lock();
        while row.turn != self.number {
            self.places.passed.wait(&mut row);
        }
    }

    /// The same for at most `time`; whether every earlier ticket was used or dropped by then.
    pub fn wait_for(&self, time: Duration) -> bool {
        let mut row = self.places.row.lock();
        while row.turn != self.number {
            if self.places.passed.wait_for(&mut row, time).timed_out() {
                return row.turn == self.number;
            }
        }
        true
    }

    /// Waits until every earlier ticket was used or dropped. Takes `samples` samples, and returns how many there are
    /// before them.
    pub fn take(mut self, samples: usize) -> u64 {
        let places = Arc::clone(&self.places);
        let mut row = places.row.lock();
        while row.turn != self.number {
            places.passed.wait(&mut row);
        }
        let first = row.samples;
        row.samples = first.wrapping_add(samples as u64);
        self.is_used = true;
        row.pass_on();
        places.passed.notify_all();
        first
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_used {
            return;
        }
        let mut row = self.places.row.lock();
        if row.turn == self.number {
            row.pass_on();
            self.places.passed.notify_all();
        } else {
            row.dropped.insert(self.number);
        }
    }
}

impl Row {
    fn pass_on(&mut self) {
        self.turn += 1;
        while self.dropped.remove(&self.turn) {
            self.turn += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_turn_or_the_time() {
        let places = Arc::new(Places::default());
        let (first, second) = (places.ticket(), places.ticket());
        assert!(first.wait_for(Duration::ZERO) && !second.wait_for(Duration::from_millis(1)));
        let waiting = std::thread::spawn(move || second.wait_for(Duration::from_secs(60)));
        drop(first);
        assert!(waiting.join().unwrap());
    }

    /// Every order of three threads, each of which uses or drops its ticket.
    #[test]
    fn places_are_taken_in_the_order_of_the_tickets() {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for (order, uses) in orders.into_iter().flat_map(|order| (0..8).map(move |uses| (order, uses))) {
            let places = Arc::new(Places::default());
            let mut tickets: Vec<_> = (0..3).map(|_| Some(places.ticket())).collect();
            let mut threads = Vec::new();
            for number in order {
                let ticket = tickets[number].take().unwrap();
                if uses >> number & 1 == 1 {
                    threads.push((number, std::thread::spawn(move || ticket.take(number + 1))));
                } else {
                    drop(ticket);
                }
            }
            for (number, thread) in threads {
                let before = (0..number).filter(|other| uses >> other & 1 == 1).map(|other| other as u64 + 1);
                assert_eq!(thread.join().unwrap(), before.sum::<u64>(), "{order:?} {uses:03b}");
            }
        }
    }
}
