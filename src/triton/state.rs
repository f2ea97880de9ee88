//! What we attach to Triton's models and instances, and how it is attached, read and freed.

use std::sync::Arc;

use parking_lot::Mutex;

use super::api::{Instance, InstanceKind, Model, Slot};
use super::config::{Facts, ModelConfig, ModelFile, TensorMap};
use crate::error::{Error, Result};
use crate::pipeline::{self, Pipeline};
use crate::tensor::Device;

/// What the instances of a model share. Freed when the model and all its instances are.
pub(super) struct ModelState {
    /// The model's name.
    pub(super) name: String,
    /// The pipeline, planned.
    pub(super) pipeline: Pipeline,
    /// Which configured tensor is which of the pipeline.
    pub(super) tensors: TensorMap,
    /// Worker threads of an instance; `None`: as many as the pipeline's file asks for.
    num_threads: Option<usize>,
}

impl ModelState {
    /// Loads the pipeline of a model, completes its configuration when Triton asks for it, and checks that the two agree.
    pub(super) fn load(model: &Model) -> Result<Self> {
        let name = model.name()?;
        let mut config = ModelConfig::parse(&model.config()?)?;
        let file = ModelFile::read(&model.directory()?, model.version()?, config.model_filename()?)?;
        let pipeline = Pipeline::load(&file.bytes, Device::Cpu)
            .map_err(|error| error.context(format!("`{}`", file.path.display())))?;
        for warning in pipeline.warnings() {
            tracing::warn!(model = name, "{warning}");
        }
        // The server prints a message as one line, so the table is a message a row.
        tracing::info!(model = name, "plan of `{}`", file.path.display());
        for row in pipeline.to_string().lines() {
            tracing::info!("{row}");
        }
        let facts = Facts::from(&pipeline);
        if model.wants_auto_complete()? {
            config.complete(&facts)?;
            let json = config.to_json();
            tracing::debug!(model = name, config = json, "completed configuration");
            model.set_config(&json)?;
        }
        let tensors = config.validate(&facts)?;
        let settings = config.settings()?;
        if let Some(warning) = settings.warning() {
            tracing::warn!(model = name, "{warning}");
        }
        Ok(Self { name, pipeline, tensors, num_threads: settings.num_threads })
    }
}

/// What one instance needs to execute requests.
pub(super) struct InstanceState {
    /// What it shares with its siblings.
    pub(super) model: Arc<ModelState>,
    /// Name of the instance.
    pub(super) name: String,
    /// Runs the batches. Triton executes one at a time, so nobody ever waits for this lock.
    pub(super) instance: Mutex<pipeline::Instance>,
}

impl InstanceState {
    /// Makes an instance of a loaded model.
    ///
    /// # Errors
    /// Unsupported for an instance on a GPU.
    pub(super) fn new(instance: &Instance, model: Arc<ModelState>) -> Result<Self> {
        let name = instance.name()?;
        let kind = instance.kind()?;
        if kind == InstanceKind::Gpu {
            return Err(Error::unsupported(format!(
                "instance `{name}` is of kind {kind}, but this version of Gesso runs on host threads only: set \
                 `instance_group {{ kind: KIND_CPU }}` in config.pbtxt"
            )));
        }
        let instance = Mutex::new(model.pipeline.instance(model.num_threads, None)?);
        Ok(Self { model, name, instance })
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
