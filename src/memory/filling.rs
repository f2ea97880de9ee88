//! What memory holds when it is given away, for tests: filled before each use with a byte that they choose, whatever of
//! it nobody writes shows that byte. Otherwise it holds what somebody left there, perhaps of another client. It must
//! not know who gives memory away.

use std::sync::atomic::{AtomicU16, Ordering};

/// No byte.
const NOTHING: u16 = 1 << 8;

static PATTERN: AtomicU16 = AtomicU16::new(NOTHING);

/// From now on all memory that pools of the process give away, of the host and of devices, is filled with `pattern`
/// before. Only tests want that: it takes as long as to write the memory.
#[doc(hidden)]
pub fn fill_with(pattern: Option<u8>) {
    PATTERN.store(pattern.map_or(NOTHING, u16::from), Ordering::Relaxed);
}

/// What memory is to be filled with before it is given away; `None`: with nothing, as ever but in tests.
pub(crate) fn pattern() -> Option<u8> {
    u8::try_from(PATTERN.load(Ordering::Relaxed)).ok()
}
