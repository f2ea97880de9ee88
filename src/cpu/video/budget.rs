//! What decoding a video may cost: pixels, bytes that its decoder holds, time for as long as somebody waits. It must
//! not know codecs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::idle::Idle;
use crate::deadline::{NoDeadline, Watch};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::memory::Counted;

/// Pixels that a frame costs at least: one of a few takes as long.
const LEAST_PIXELS: u64 = 1 << 10;

/// What decoding may cost for one sample: [`limits::MAX_VIDEO_DECODED_PIXELS`], and what else is said. Several decoders
/// may spend of it.
pub struct Budget<'w> {
    /// Pixels that are left.
    pixels: AtomicU64,
    memory: Memory<'w>,
    watch: Watch<'w>,
    /// Whether Gesso's own decoders are used in any case.
    is_by_own: bool,
    /// Decoders that are kept from one video to the next.
    idle: Option<Arc<Idle>>,
}

/// What a decoder may hold.
enum Memory<'w> {
    /// Each of them so many bytes.
    Most(usize),
    /// The only one of them as much as there is room for; this counts it.
    Counted(&'w Counted),
}

impl Default for Budget<'static> {
    fn default() -> Self {
        Self::of(limits::MAX_VIDEO_DECODED_PIXELS)
    }
}

impl Budget<'static> {
    /// One of so many pixels, for as long as it takes.
    pub fn of(pixels: u64) -> Self {
        Self {
            pixels: AtomicU64::new(pixels),
            memory: Memory::Most(usize::MAX),
            watch: Watch::new(&NoDeadline, None),
            is_by_own: false,
            idle: None,
        }
    }
}

impl<'w> Budget<'w> {
    /// The whole of it for as long as `watch` says.
    pub fn while_waiting(watch: Watch<'w>) -> Self {
        let pixels = AtomicU64::new(limits::MAX_VIDEO_DECODED_PIXELS);
        Self { pixels, memory: Memory::Most(usize::MAX), watch, is_by_own: false, idle: None }
    }

    /// The same for decoders that may hold `most` bytes each.
    #[must_use]
    pub fn within(self, most: usize) -> Self {
        Self { memory: Memory::Most(most), ..self }
    }

    /// The same for one decoder, which `counted` counts.
    #[must_use]
    pub fn counted_by(self, counted: &'w Counted) -> Self {
        Self { memory: Memory::Counted(counted), ..self }
    }

    /// The same for Gesso's own decoders, also where there is an FFmpeg.
    #[must_use]
    pub fn by_own_decoders(self) -> Self {
        Self { is_by_own: true, ..self }
    }

    /// The same for decoders that are taken from `idle`, and kept there when their pictures have come.
    #[must_use]
    pub fn keeping(self, idle: &Arc<Idle>) -> Self {
        Self { idle: Some(Arc::clone(idle)), ..self }
    }

    pub(super) fn idle(&self) -> Option<&Arc<Idle>> {
        self.idle.as_ref()
    }

    pub(super) fn is_by_own(&self) -> bool {
        self.is_by_own
    }

    /// Pays for a frame of `size`, which is expected to take `time`. Comes before it is decoded.
    ///
    /// # Errors
    /// When that is more than is left; when nobody waits, or not for so long.
    pub(super) fn frame(&self, [width, height]: [usize; 2], time: Duration) -> Result<()> {
        self.watch.ensure_time(time)?;
        self.pay((width as u64).saturating_mul(height as u64).max(LEAST_PIXELS))
    }

    /// Pays for what is done to a part of a frame, which moves so many bytes.
    ///
    /// # Errors
    /// As [`Budget::frame`].
    pub(super) fn part(&self, bytes: usize) -> Result<()> {
        self.watch.check()?;
        self.pay(bytes as u64 / 8)
    }

    /// Counts bytes that were looked at.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub(super) fn look(&self, bytes: usize) -> Result<()> {
        self.watch.charge(bytes)
    }

    fn pay(&self, pixels: u64) -> Result<()> {
        let less = |left: u64| left.checked_sub(pixels);
        match self.pixels.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::invalid(format!(
                "frames of a video that take more than {} decoded pixels",
                limits::MAX_VIDEO_DECODED_PIXELS
            ))),
        }
    }

    /// Lets a decoder hold so many bytes, all in all. Comes before it does.
    ///
    /// # Errors
    /// Unavailable when that is too much.
    pub fn hold(&self, bytes: usize) -> Result<()> {
        match self.memory {
            Memory::Most(most) if bytes > most => Err(Error::new(
                ErrorKind::Unavailable,
                format!("a video's decoder needs {bytes} bytes of memory, and may take {most}"),
            )),
            Memory::Most(_) => Ok(()),
            Memory::Counted(counted) => counted.grow_to(bytes),
        }
    }

    /// Who waits.
    pub(super) fn watch(&self) -> &Watch<'w> {
        &self.watch
    }
}

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pixels", self.pixels.load(Ordering::Relaxed))
    }
}

/// What decoding takes, in nanoseconds of one core, for a pixel and for a byte of codes: a frame that is much like
/// others takes the first alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) pixel: f64,
    pub(super) byte: f64,
}

impl Cost {
    /// What a frame of `size` in so many bytes is expected to take.
    pub(super) fn of(self, [width, height]: [usize; 2], bytes: usize) -> Duration {
        let nanoseconds = self.pixel * width as f64 * height as f64 + self.byte * bytes as f64;
        Duration::from_nanos(nanoseconds as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decoder_may_hold_what_was_said() {
        let budget = Budget::of(1 << 20).within(1_000);
        assert!(budget.hold(1_000).is_ok());
        let error = budget.hold(1_001).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("needs 1001 bytes of memory, and may take 1000"), "{error}");
    }

    #[test]
    fn small_frames_cost_something_too() {
        let budget = Budget::of(3 * LEAST_PIXELS);
        for _ in 0..3 {
            budget.frame([1, 1], Duration::ZERO).unwrap();
        }
        assert!(budget.frame([1, 1], Duration::ZERO).is_err());
    }
}
