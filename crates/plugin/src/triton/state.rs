//! How states of ours are attached to handles of Triton's, read and freed. It must not know which; each says so beside
//! its state.

use std::sync::Arc;

use super::api::Slot;
use gesso::error::{Error, Result};

/// A handle of Triton's to which exactly one type of ours is attached.
pub(super) trait Holds: Slot {
    /// The type. Other threads read it through Triton's pointer.
    type State: Send + Sync;
    /// What errors call the handle.
    const WHAT: &'static str;
}

/// Attaches `state`; [`detach`] frees it.
pub(super) fn attach<H: Holds>(handle: &H, state: Arc<H::State>) -> Result<()> {
    let raw = Arc::into_raw(state);
    handle.set_state(raw.cast_mut().cast()).inspect_err(|_| {
        // SAFETY: `raw` is from `into_raw` above, and Triton did not keep it.
        drop(unsafe { Arc::from_raw(raw) });
    })
}

/// The attached state.
///
/// # Errors
/// `Internal` when nothing is attached: the handle was not initialized.
pub(super) fn attached<H: Holds>(handle: &H) -> Result<Arc<H::State>> {
    find(handle)?.ok_or_else(|| Error::internal(format!("{} has no state: it was not initialized", H::WHAT)))
}

/// The attached state, or `None` when nothing is attached.
pub(super) fn find<H: Holds>(handle: &H) -> Result<Option<Arc<H::State>>> {
    let raw = handle.state()?.cast::<H::State>().cast_const();
    if raw.is_null() {
        return Ok(None);
    }
    // SAFETY: only `attach` sets states, so `raw` is from `Arc::into_raw` of this handle's type, and it was not
    // detached: Triton does not finalize a handle while it uses it. The count is for the `Arc` made below.
    unsafe { Arc::increment_strong_count(raw) };
    // SAFETY: as above.
    Ok(Some(unsafe { Arc::from_raw(raw) }))
}

/// Frees the attached state. Nothing attached is fine: Triton finalizes what it could not initialize.
pub(super) fn detach<H: Holds>(handle: &H) -> Result<()> {
    let raw = handle.state()?.cast::<H::State>().cast_const();
    if raw.is_null() {
        return Ok(());
    }
    handle.set_state(std::ptr::null_mut())?;
    // SAFETY: only `attach` sets states, so `raw` is from `Arc::into_raw` of this handle's type; it was just taken off
    // the handle, so this happens once.
    drop(unsafe { Arc::from_raw(raw) });
    Ok(())
}
