//! An allocator that counts, and fails single requests above a budget where a test gives one.
#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static IS_ON: AtomicBool = AtomicBool::new(false);
static BUDGET: AtomicUsize = AtomicUsize::new(usize::MAX);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);
/// Requests of at least so many bytes count as large; how many large ones are still let through; whether one was not.
static LEAST: AtomicUsize = AtomicUsize::new(usize::MAX);
static LEFT: AtomicUsize = AtomicUsize::new(0);
static HAS_FAILED: AtomicBool = AtomicBool::new(false);
/// One at a time is counted.
static TURN: Mutex<()> = Mutex::new(());

/// What some work took.
pub(crate) struct Counted {
    /// Bytes at the same time, beside those before.
    pub(crate) peak: usize,
    /// Bytes of the largest request.
    pub(crate) largest: usize,
}

/// Whether a request may be made; counts it.
fn takes(size: usize) -> bool {
    if !IS_ON.load(Ordering::Relaxed) {
        LIVE.fetch_add(size, Ordering::Relaxed);
        return true;
    }
    LARGEST.fetch_max(size, Ordering::Relaxed);
    if size >= LEAST.load(Ordering::Relaxed) && LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
        HAS_FAILED.store(true, Ordering::Relaxed);
        return false;
    }
    if size > BUDGET.load(Ordering::Relaxed) {
        return false;
    }
    let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
    PEAK.fetch_max(live, Ordering::Relaxed);
    true
}

// SAFETY: all memory is that of the system's allocator, which gets what the caller promises; a null pointer says that
// there is none.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if takes(layout.size()) { unsafe { System.alloc(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if takes(layout.size()) { unsafe { System.alloc_zeroed(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !takes(size) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Bytes in use.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Nobody counts until this is dropped.
pub(crate) fn nobody_counts() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Does `work`, in which request number `request` of those of at least `least` bytes fails, and says whether there was
/// one. For a process of its own.
pub(crate) fn without<T>(least: usize, request: usize, work: impl FnOnce() -> T) -> (T, bool) {
    LEAST.store(least, Ordering::Relaxed);
    LEFT.store(request, Ordering::Relaxed);
    IS_ON.store(true, Ordering::Relaxed);
    let done = work();
    IS_ON.store(false, Ordering::Relaxed);
    (done, HAS_FAILED.load(Ordering::Relaxed))
}

/// Does `work`, in which single requests of more than `budget` bytes fail, and says what it took. Other tests must not
/// work meanwhile.
pub(crate) fn counted<T>(budget: usize, work: impl FnOnce() -> T) -> (T, Counted) {
    let _turn = nobody_counts();
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    LARGEST.store(0, Ordering::Relaxed);
    BUDGET.store(budget, Ordering::Relaxed);
    IS_ON.store(true, Ordering::Relaxed);
    let done = work();
    IS_ON.store(false, Ordering::Relaxed);
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (done, Counted { peak, largest: LARGEST.load(Ordering::Relaxed) })
}
