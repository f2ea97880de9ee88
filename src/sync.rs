//! Locks, what waits for them, and threads, for the modules whose order of events matters. `tests/loom` builds those
//! modules with another `sync`, which tries every order.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::thread;

pub(crate) use parking_lot::{Condvar, Mutex};
