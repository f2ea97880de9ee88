//! Modules of the engine over loom. `sync` stands for the engine's; the rest are its own files.

// Those have tests of their own, which are not for loom.
#![cfg(not(test))]

#[path = "../../src/error.rs"]
pub mod error;
#[path = "../../src/memory/filling.rs"]
pub mod filling;
#[path = "../../src/memory/host.rs"]
pub mod host;
#[path = "../../src/lanes/mod.rs"]
pub mod lanes;
#[path = "../../src/limits/mod.rs"]
pub mod limits;

/// What the engine's `sync` has, with loom behind it.
mod sync {
    use std::ops::{Deref, DerefMut};
    use std::time::Duration;

    pub(crate) use loom::sync::atomic::AtomicUsize;
    pub(crate) use loom::thread;
    pub(crate) use std::sync::atomic::Ordering;

    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    /// Its own lock goes away while it waits.
    pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

    #[derive(Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    /// Whether the time was over: loom has no time.
    pub(crate) struct Waited;

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(self.0.lock().ok())
        }
    }

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Self::new(T::default())
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        #[expect(clippy::expect_used, reason = "a panic under the lock ends the model")]
        fn deref(&self) -> &T {
            self.0.as_deref().expect("a lock that nobody panicked under")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        #[expect(clippy::expect_used, reason = "a panic under the lock ends the model")]
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_deref_mut().expect("a lock that nobody panicked under")
        }
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            guard.0 = guard.0.take().and_then(|lock| self.0.wait(lock).ok());
        }

        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> Waited {
            self.wait(guard);
            Waited
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    impl Waited {
        pub(crate) fn timed_out(&self) -> bool {
            false
        }
    }
}
