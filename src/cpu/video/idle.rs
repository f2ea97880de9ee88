//! Decoders between two videos: who decodes one after the other keeps them, and the memory of their pictures is used
//! again. It must not know codecs.

use std::any::Any;
use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::limits;

/// Decoders that nobody uses. What they hold together stays below a limit: those that were used longest ago go first.
#[derive(Debug)]
pub struct Idle {
    /// Bytes that they may hold.
    most: usize,
    kept: Mutex<Kept>,
}

/// Those that are there, the one that was used last at the end, each with its bytes.
#[derive(Debug, Default)]
struct Kept {
    decoders: VecDeque<(Box<dyn Any + Send>, usize)>,
    bytes: usize,
}

impl Default for Idle {
    fn default() -> Self {
        Self::within(limits::MAX_IDLE_DECODER_BYTES)
    }
}

impl Idle {
    /// A place for decoders that hold `most` bytes together, or [`limits::MAX_IDLE_DECODER_BYTES`] if that is less.
    pub fn within(most: usize) -> Self {
        Self { most: most.min(limits::MAX_IDLE_DECODER_BYTES), kept: Mutex::default() }
    }

    /// Takes a decoder out that `fits`, the one that was used last.
    pub(super) fn take<T: Any>(&self, fits: impl Fn(&T) -> bool) -> Option<T> {
        let mut kept = self.kept.lock();
        let place = kept.decoders.iter().rposition(|(kept, _)| kept.downcast_ref().is_some_and(&fits))?;
        let (decoder, bytes) = kept.decoders.remove(place)?;
        kept.bytes -= bytes;
        decoder.downcast().ok().map(|decoder| *decoder)
    }

    /// Keeps a decoder that holds so many bytes, if that is not too much.
    pub(super) fn give<T: Any + Send>(&self, decoder: T, bytes: usize) {
        if bytes > self.most {
            return;
        }
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        while kept.bytes > self.most - bytes
            && let Some((oldest, held)) = kept.decoders.pop_front()
        {
            kept.bytes -= held;
            gone.push(oldest);
        }
        kept.bytes += bytes;
        kept.decoders.push_back((Box::new(decoder), bytes));
        // Nobody waits while memory goes back.
        drop(kept);
    }

    /// Bytes that they hold.
    pub fn held(&self) -> usize {
        self.kept.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_fits_and_was_used_last_is_taken() {
        let idle = Idle::within(100);
        idle.give("a".to_owned(), 10);
        idle.give(7_u8, 10);
        idle.give("b".to_owned(), 10);
        idle.give("other".to_owned(), 10);
        let short = |name: &String| name.len() == 1;
        assert_eq!(idle.take(short).as_deref(), Some("b"));
        assert_eq!(idle.take(short).as_deref(), Some("a"));
        assert_eq!((idle.take(short), idle.held()), (None, 20));
        assert_eq!((idle.take(|_: &u8| true), idle.held()), (Some(7), 10));
    }

    #[test]
    fn what_is_kept_stays_below_the_limit() {
        let idle = Idle::within(100);
        (0..5_u8).for_each(|number| idle.give(number, 40));
        assert_eq!(idle.held(), 80);
        idle.give(9_u8, 101);
        assert_eq!(idle.take(|_: &u8| true), Some(4));
        idle.give(8_u8, 100);
        assert_eq!((idle.take(|_: &u8| true), idle.held()), (Some(8), 0));
        assert_eq!(idle.take(|_: &u8| true), None);
        assert_eq!(Idle::within(usize::MAX).most, limits::MAX_IDLE_DECODER_BYTES);
    }
}
