//! How much memory the responses of one request may fill before somebody has taken them. Triton does not say when a
//! response was taken, and some servers keep all of them until the last one was sent; what can be seen is how the
//! process grows. It must not know responses.

use std::time::{Duration, Instant};

use gesso::error::{Error, ErrorKind, Result};

/// For how long a request waits until responses were taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(5);

/// Of the memory that is free when a request comes, its responses may fill one part in so many. Requests that come
/// later get parts of the rest.
const SHARE: u64 = 2;

/// What one request may fill.
pub(super) struct Room {
    /// Bytes of the process when the request came.
    before: u64,
    /// Bytes that it may grow by.
    allowed: u64,
    patience: Duration,
}

impl Room {
    /// For a request that came now. Where the system does not say what is free, anything is allowed.
    pub(super) fn new() -> Self {
        let (before, allowed) = match (resident(), available()) {
            (Some(before), Some(available)) => (before, available / SHARE),
            _ => (0, u64::MAX),
        };
        Self { before, allowed, patience: PATIENCE }
    }

    /// Waits until the process has shrunk, if it has grown by more than is allowed.
    ///
    /// # Errors
    /// Unavailable when that takes too long. `is_wanted` is asked meanwhile: when nobody waits any more, this returns.
    pub(super) fn wait(&self, is_wanted: &dyn Fn() -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            let grown = resident().unwrap_or_default().saturating_sub(self.before);
            if grown <= self.allowed || !is_wanted() {
                return Ok(());
            }
            if begun.elapsed() >= self.patience {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    format!(
                        "the server has grown by {} MB since the request came, of {} MB that it may, as responses are not taken as fast as \
                         they are made, or the server keeps them all: `--grpc-max-response-pool-size` bounds them",
                        grown >> 20,
                        self.allowed >> 20
                    ),
                ));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Bytes of memory that this process has.
fn resident() -> Option<u64> {
    kilobytes("/proc/self/status", "VmRSS:")
}

/// Bytes that can be had: of the host, and of the container.
fn available() -> Option<u64> {
    let host = kilobytes("/proc/meminfo", "MemAvailable:")?;
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let container = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    Some(container.map_or(host, |(most, now)| host.min(most.saturating_sub(now))))
}

/// The number behind `name` in a file of lines, in bytes.
fn kilobytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|number| number << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_room_does_not_wait() {
        let begun = Instant::now();
        Room::new().wait(&|| true).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(resident().unwrap() > 0 && available().unwrap() > 0);
    }

    #[test]
    fn what_has_none_waits_and_then_fails_unless_nobody_waits() {
        let full = Room { before: 0, allowed: 1, patience: Duration::from_millis(30) };
        let begun = Instant::now();
        let error = full.wait(&|| true).unwrap_err();
        assert!(begun.elapsed() >= full.patience);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("--grpc-max-response-pool-size"), "{error}");
        full.wait(&|| false).unwrap();
    }
}
