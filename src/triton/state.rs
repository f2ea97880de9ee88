//! What we attach to Triton's models and instances, and how it is attached, read and freed.

use std::path::PathBuf;
use std::sync::Arc;

use super::api::{Instance, InstanceKind, Model, Slot};
use crate::error::{Error, Result};

/// What the instances of a model share. Freed when the model and all its instances are.
pub(super) struct ModelState {
    /// The model's name.
    pub(super) name: String,
    /// The number of the version's directory.
    pub(super) version: u64,
    /// The model's directory.
    pub(super) directory: PathBuf,
    /// The configuration as JSON.
    pub(super) config: String,
}

impl ModelState {
    /// Reads what Triton knows of a model.
    pub(super) fn load(model: &Model) -> Result<Self> {
        Ok(Self {
            name: model.name()?,
            version: model.version()?,
            directory: model.directory()?,
            config: model.config()?,
        })
    }
}

/// What one instance needs to execute requests.
pub(super) struct InstanceState {
    /// What it shares with its siblings.
    pub(super) model: Arc<ModelState>,
    /// Name of the instance.
    pub(super) name: String,
    /// What it runs on.
    pub(super) kind: InstanceKind,
    /// The number of its GPU.
    pub(super) device: i32,
}

impl InstanceState {
    /// Makes an instance of a loaded model.
    pub(super) fn new(instance: &Instance, model: Arc<ModelState>) -> Result<Self> {
        Ok(Self { model, name: instance.name()?, kind: instance.kind()?, device: instance.device()? })
    }
}

/// A handle of Triton's to which exactly one type of ours is attached.
pub(super) trait Holds: Slot {
    /// The type. Other threads read it through Triton's pointer.
    type State: Send + Sync;
    /// What errors call the handle.
    const WHAT: &'static str;
}

impl Holds for Model {
    type State = ModelState;
    const WHAT: &'static str = "the model";
}

impl Holds for Instance {
    type State = InstanceState;
    const WHAT: &'static str = "the model instance";
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
    let raw = handle.state()?.cast::<H::State>().cast_const();
    if raw.is_null() {
        return Err(Error::internal(format!("{} has no state: it was not initialized", H::WHAT)));
    }
    // SAFETY: only `attach` sets states, so `raw` is from `Arc::into_raw` of this handle's type, and it was not
    // detached: Triton does not finalize a handle while it uses it. The count is for the `Arc` made below.
    unsafe { Arc::increment_strong_count(raw) };
    // SAFETY: as above.
    Ok(unsafe { Arc::from_raw(raw) })
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
