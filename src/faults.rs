//! Panics on purpose, for tests of what becomes of a request and of the process when a decoder panics. It must not know
//! decoders: a place has a name, and in a process that was begun with `GESSO_FAULT=NAME` it panics. Only in unit tests
//! and in builds with the feature `fault-injection`; in others it is nothing.

/// Panics if the process was told to at the place `name`.
#[cfg(any(test, feature = "fault-injection"))]
pub(crate) fn reach(name: &str) {
    use std::sync::LazyLock;

    static WANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("GESSO_FAULT").ok());
    assert!(WANTED.as_deref() != Some(name), "a panic on purpose in `{name}`");
}

/// Nothing.
#[cfg(not(any(test, feature = "fault-injection")))]
#[inline]
pub(crate) fn reach(_name: &str) {}

/// [`reach`] in a function that C could call: a panic that leaves it ends the process.
pub(crate) extern "C" fn reach_as_from_c() {
    reach("av1 from C");
}
