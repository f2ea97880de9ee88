//! A loaded model: its pipeline, planned once for each kind of instance that it has, and the devices that they run on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use super::api::{InstanceKind, Model, Server};
use super::clients::Clients;
use super::folder::Folder;
use super::metrics::{Fetches, Labels, Metrics};
use super::record::Recorder;
use super::state::{self, Holds};
use crate::config::{
    DataType, Facts, ModelConfig, ModelFile, SerializedPipeline, Settings, TensorMap, written_max_batch_size,
};
use crate::fetch::{Bounds, Client, Counts, Pool, Rules, System};
use gesso::error::{Context, Error, Result};
use gesso::limits;
use gesso::pipeline::{Arithmetic, Gpu, Pipeline};
use gesso::tensor::{DType, Device};

/// What the instances of a model share. Freed when the model and all its instances are.
pub(super) struct ModelState {
    /// The model's name.
    pub(super) name: String,
    /// Which configured tensor is which of the pipeline.
    pub(super) tensors: TensorMap,
    /// The model's parameters, and for what they do not say, the backend's.
    pub(super) settings: Settings,
    /// What it counts.
    pub(super) metrics: Metrics,
    /// For each output: whether the log has it that its type is another than the configured one.
    told: Vec<Once>,
    version: String,
    plans: Plans,
    /// What its `sequence_batching` says, if it has one: how long a sequence may wait for its next request.
    sequences: Option<Option<Duration>>,
    /// Where files are that requests name, by the inputs that they name them in.
    pub(super) folders: BTreeMap<String, Folder>,
    /// Downloads files that requests name by address, if the model asks for it.
    pub(super) downloads: Option<Pool>,
    refused: Option<Fetches>,
    /// Who asks how much at a time, if that is limited.
    pub(super) clients: Option<Clients>,
    /// Batches that the server makes for each instance, before it is anybody's.
    pub(super) warm_ups: usize,
    /// Samples of a batch, of which requests are joined.
    pub(super) max_batch: usize,
    /// Records requests, if the model asks for it.
    pub(super) recorder: Option<Recorder>,
    /// How many instances there are.
    pub(super) instances: AtomicUsize,
    /// The devices in use, so that instances on one share its kernels and its memory.
    gpus: Mutex<BTreeMap<usize, Arc<Gpu>>>,
}

impl Holds for Model {
    type State = ModelState;
    const WHAT: &'static str = "the model";
}

impl ModelState {
    /// Loads the pipeline of a model, completes its configuration when Triton asks for it, and checks that the two
    /// agree.
    pub(super) fn load(model: &Model) -> Result<Self> {
        let name = model.name()?;
        let directory = model.directory()?;
        let options = state::find(&model.backend()?)?.unwrap_or_default();
        let written = written_max_batch_size(&directory);
        let mut config = ModelConfig::parse(&model.config()?)?.with_written_max_batch_size(written);
        let file = ModelFile::read(&directory, model.version()?, config.model_filename()?)?;
        let source = SerializedPipeline::new(&name, file, &options.python)?;
        if let Some(warning) = &source.warning {
            tracing::warn!(model = name, "{warning}");
        }
        let arithmetic = config.settings()?.arithmetic;
        let plans =
            Plans { name: name.clone(), source, arithmetic, host: OnceLock::new(), device: OnceLock::new() };
        // Types do not depend on the device; an instance of another kind plans when it comes.
        let first = match config.instance_kinds()?.first() {
            Some(InstanceKind::Gpu) => Device::Gpu,
            _ => Device::Cpu,
        };
        let pipeline = plans.get(first)?;
        let facts = Facts::from(&*pipeline);
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
        for warning in tensors.warnings(&settings) {
            tracing::warn!(model = name, "{warning}");
        }
        let version = model.version()?.to_string();
        let labels = Labels { model: &name, version: &version };
        let metrics = Metrics::new(model.server(), &labels);
        let outputs = tensors.outputs.iter().map(|output| output.name.clone()).collect();
        let recorder = Recorder::start(
            &settings.recording,
            options.record_folder.as_deref(),
            (&config, outputs),
            (model.server(), &labels),
        )?;
        let settings = settings.or(&options.defaults);
        let told = tensors.outputs.iter().map(|_| Once::new()).collect();
        let sequences = config.sequences()?;
        let folder = |(input, path): (&String, &String)| {
            let folder = Folder::open(Path::new(path)).context(|| format!("parameter `files.{input}`"))?;
            Ok((input.clone(), folder))
        };
        let folders = settings.files.iter().map(folder).collect::<Result<_>>()?;
        let clients = Clients::new(&settings.clients, model.server(), &labels)?;
        let (downloads, refused) = downloads(&settings, &config, (model.server(), &labels))?.unzip();
        Ok(Self {
            name,
            tensors,
            settings,
            metrics,
            told,
            version,
            plans,
            sequences,
            folders,
            downloads,
            refused,
            clients,
            warm_ups: config.warm_ups()?,
            max_batch: usize::try_from(config.max_batch_size()).unwrap_or(0).max(1),
            recorder,
            instances: AtomicUsize::new(0),
            gpus: Mutex::default(),
        })
    }

    /// How long a stream may wait for its next piece.
    pub(super) fn stream_idle(&self) -> Duration {
        self.sequences.flatten().unwrap_or(Duration::from_millis(limits::STREAM_IDLE_MS))
    }

    /// Lets pieces of a stream be taken, if they come to one instance, in their order.
    ///
    /// # Errors
    /// Unsupported where they do not.
    pub(super) fn check_sequences(&self) -> Result<()> {
        let instances = self.instances.load(Ordering::Relaxed);
        if instances < 2 || self.sequences.is_some() {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "a video in pieces for a model of {instances} instances, which would take its pieces in any order: set \
             `sequence_batching {{ }}` in config.pbtxt, or one instance: the `count` of its `instance_group` to 1, and where there are several GPUs \
             `gpus: [ 0 ]`"
        )))
    }

    /// Counts a request with an address that is not allowed.
    pub(super) fn refused_address(&self) {
        if let Some(counts) = &self.refused {
            counts.ended("not_allowed", 0, Duration::ZERO);
        }
    }

    /// What tells the model's metrics from those of others.
    pub(super) fn labels(&self) -> Labels<'_> {
        Labels { model: &self.name, version: &self.version }
    }

    /// Notes that output `output`, of which the pipeline did not say the type, is of `found`, which is not the
    /// configured type. Requests get what it is, as from DALI.
    pub(super) fn tell_of_type(&self, output: usize, found: DType) {
        let (Some(told), Some(output)) = (self.told.get(output), self.tensors.outputs.get(output)) else {
            return;
        };
        told.call_once(|| {
            tracing::warn!(
                model = self.name,
                "output `{}` has data_type `{}` in the configuration, the pipeline makes `{}`, which is what requests get",
                output.name,
                output.data_type,
                DataType::Dense(found)
            );
        });
    }

    /// The pipeline, planned for `device`.
    ///
    /// # Errors
    /// What [`Pipeline::load`] fails with.
    pub(super) fn pipeline(&self, device: Device) -> Result<Arc<Pipeline>> {
        self.plans.get(device)
    }

    /// The GPU of this number; opened once.
    ///
    /// # Errors
    /// What [`Gpu::open`] fails with.
    pub(super) fn gpu(&self, ordinal: usize) -> Result<Arc<Gpu>> {
        let mut gpus = self.gpus.lock();
        if let Some(gpu) = gpus.get(&ordinal) {
            return Ok(Arc::clone(gpu));
        }
        let gpu = Gpu::open_within(ordinal, self.settings.allowance())?;
        tracing::info!(
            model = self.name,
            device = ordinal,
            name = gpu.name(),
            multiprocessors = gpu.multiprocessors(),
            "device is open"
        );
        gpus.insert(ordinal, Arc::clone(&gpu));
        Ok(gpu)
    }
}

/// What downloads for a model, if its parameters say so, and what counts beside it.
fn downloads(
    settings: &Settings,
    config: &ModelConfig,
    (server, labels): (&'static Server, &Labels<'_>),
) -> Result<Option<(Pool, Fetches)>> {
    let fetching = &settings.fetching;
    let Some(allow) = fetching.allow.clone() else { return Ok(None) };
    if config.is_decoupled() {
        let text = "models that take videos fetch no files: send the video, or name it by `files.NAME`";
        return Err(Error::unsupported(text)).context(|| "parameter `fetch_allow`".to_owned());
    }
    let rules = Rules {
        allow,
        networks: fetching.networks.clone(),
        max_bytes: fetching.max_bytes(),
        time: fetching.time(),
        redirects: fetching.redirects(),
    };
    let bounds = Bounds {
        at_once: fetching.at_once(),
        held: settings.quota.max_memory() / limits::NAMED_FILES_PART,
        cache: fetching.cache(),
    };
    let counts = Fetches::new(server, labels);
    let pool = Pool::new(Client::new(rules, Arc::new(System))?, bounds, Box::new(counts.clone()));
    Ok(Some((pool, counts)))
}

/// The pipeline, and the plans made from it so far.
struct Plans {
    name: String,
    source: SerializedPipeline,
    arithmetic: Option<Arithmetic>,
    host: OnceLock<Result<Arc<Pipeline>>>,
    device: OnceLock<Result<Arc<Pipeline>>>,
}

impl Plans {
    fn get(&self, device: Device) -> Result<Arc<Pipeline>> {
        let plan = match device {
            Device::Cpu => &self.host,
            Device::Gpu => &self.device,
        };
        plan.get_or_init(|| self.load(device).map(Arc::new)).clone()
    }

    fn load(&self, device: Device) -> Result<Pipeline> {
        let path = self.source.path.display();
        let pipeline = Pipeline::load_with_arithmetic(&self.source.bytes, device, self.arithmetic)
            .map_err(|error| error.context(format!("`{path}`")))?;
        for warning in pipeline.warnings() {
            tracing::warn!(model = self.name, "{warning}");
        }
        // The server prints a message as one line, so the table is a message a row.
        let kind = match device {
            Device::Cpu => InstanceKind::Cpu,
            Device::Gpu => InstanceKind::Gpu,
        };
        tracing::info!(model = self.name, "plan of `{path}` for instances of {kind}");
        for row in pipeline.to_string().lines() {
            tracing::info!("{row}");
        }
        Ok(pipeline)
    }
}
