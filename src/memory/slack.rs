//! `Slack`: the allocator of what is delivered. Behind each allocation there are a few bytes that belong to it.
//!
//! `rusty_h265-accel` 0.6.2 loads whole vectors behind the last sample of a plane: up to 8 bytes, whose values it
//! drops (`fir_h_sse2_tail` in its `mc.rs`). Without slack such a load could touch a page that is not there, and the
//! process would end. Builds with sanitizers have `--cfg gesso_exact_allocations`: no slack, so that they see every
//! byte that is read too much, and H.265 without vectors.
#![allow(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes behind each allocation: the widest vector that decoders load.
const SLACK_BYTES: usize = 64;

/// The system's allocator, asked for 64 bytes more each time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slack;

/// The layout that the system is asked for, or `None` where there is no such size.
fn with_slack(layout: Layout) -> Option<Layout> {
    Layout::from_size_align(layout.size().checked_add(SLACK_BYTES)?, layout.align()).ok()
}

// SAFETY: each function hands on to `System`, which is a correct allocator, with a layout of the same alignment and a
// larger size. The same layout always becomes the same larger one, so what is given back is what was asked for.
unsafe impl GlobalAlloc for Slack {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the size is not 0.
        with_slack(layout).map_or(std::ptr::null_mut(), |layout| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the size is not 0.
        with_slack(layout).map_or(std::ptr::null_mut(), |layout| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if let Some(layout) = with_slack(layout) {
            // SAFETY: `ptr` was allocated with this larger layout, since it was allocated at all.
            unsafe { System.dealloc(ptr, layout) }
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (Some(old), Some(new)) = (with_slack(layout), new_size.checked_add(SLACK_BYTES)) else {
            return std::ptr::null_mut();
        };
        if Layout::from_size_align(new, layout.align()).is_err() {
            return std::ptr::null_mut();
        }
        // SAFETY: `ptr` was allocated with `old`, and `new` is a size that a layout may have.
        unsafe { System.realloc(ptr, old, new) }
    }
}

#[cfg(test)]
mod tests {
    use super::{GlobalAlloc, Layout, SLACK_BYTES, Slack};

    #[test]
    fn bytes_behind_an_allocation_belong_to_it() {
        let layout = Layout::from_size_align(4080, 16).unwrap();
        // SAFETY: the layout has a size.
        let first = unsafe { Slack.alloc_zeroed(layout) };
        // SAFETY: `first` was allocated with `layout`.
        let moved = unsafe { Slack.realloc(first, layout, 8176) };
        assert!(!moved.is_null());
        // SAFETY: so many bytes were allocated.
        let bytes = unsafe { std::slice::from_raw_parts_mut(moved, 8176 + SLACK_BYTES) };
        bytes[4080 + SLACK_BYTES..].fill(7);
        assert_eq!((bytes[0], bytes[8175 + SLACK_BYTES]), (0, 7));
        // SAFETY: `moved` has this layout since it was made larger.
        unsafe { Slack.dealloc(moved, Layout::from_size_align(8176, 16).unwrap()) };
    }

    #[test]
    fn sizes_that_nobody_has_are_refused() {
        let layout = Layout::from_size_align(isize::MAX as usize - 7, 8).unwrap();
        // SAFETY: the layout has a size.
        assert!(unsafe { Slack.alloc(layout) }.is_null());
    }
}
