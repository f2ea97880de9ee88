//! `gesso check`: loads the models of a repository as the server would, runs a sample through, and says of each that it
//! works, or why not and where that comes from.

mod ensemble;
mod repository;
mod sample;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use gesso::error::{Context, Error, Result};
use gesso::pipeline::{Gpu, Pipeline, Preferences, devices};
use gesso::tensor::Device;
use serde_json::{Value, json};
use triton_gesso::config::{
    DataType, Facts, InstanceKind, ModelConfig, ModelFile, SerializedPipeline, pbtxt, written_max_batch_size,
};

use crate::Exit;
use crate::progress;
use crate::server::{Server, Tensor};
use crate::terminal::{BAD, DIM, GOOD, WARN, clean, print, print_json, styled};
use repository::{Kind, Model};
use sample::{Given, Ran};

/// Load every Gesso or DALI model of a repository as the server would, and run a sample through; check that ensembles
/// fit together. The exit status is 1 if a model does not load, if its sample fails, or if a parameter is misspelt.
#[derive(Args)]
pub(crate) struct Options {
    /// Model repositories, as for `tritonserver --model-repository`.
    #[arg(required = true)]
    repository: Vec<PathBuf>,
    /// A file for an input, which every model with such an input is to run: an image, or a `.npy`. May be given for
    /// several inputs. Absent: a picture or a sound that is made, where the input goes into a decoder of such.
    #[arg(long, value_name = "NAME=FILE")]
    sample: Vec<String>,
    /// A running server, too: each version of a model must answer the sample there, which tells more than that it is
    /// ready.
    #[arg(long, value_name = "HOST:PORT", value_parser = Server::parse)]
    server: Option<Server>,
    /// The completed configurations, too.
    #[arg(long)]
    config: bool,
    /// As the server with `--disable-auto-complete-config`.
    #[arg(long)]
    disable_auto_complete_config: bool,
    /// The interpreter for models in Python, as the backend option `python`.
    #[arg(long, env = "GESSO_PYTHON", default_value = "python3")]
    python: String,
    /// For scripts.
    #[arg(long)]
    json: bool,
}

/// What became of one version of a model.
struct Report {
    model: String,
    version: Option<u64>,
    outcome: Outcome,
}

enum Outcome {
    Loads(Loaded),
    Fails {
        error: Error,
        line: Option<usize>,
    },
    /// An ensemble of these models.
    FitsTogether(Vec<String>),
    /// Of another backend.
    Skipped(String),
}

struct Loaded {
    source: PathBuf,
    operators: usize,
    kinds: Vec<InstanceKind>,
    config: Value,
    warnings: Vec<String>,
}

/// Runs the command.
pub(crate) fn check(options: &Options) -> Result<Exit> {
    let mut directories = Vec::new();
    for repository in &options.repository {
        directories.extend(repository::directories(repository)?);
    }
    let given = sample::given(&options.sample)?;
    let mut inputs = BTreeSet::new();
    let bar = progress::bar(directories.len(), "models");
    let (mut reports, mut models) = (Vec::new(), Vec::new());
    for directory in &directories {
        match Model::read(directory) {
            Ok(model) => {
                reports.extend(reports_of(&model, options, &given, &mut inputs));
                models.push(model);
            }
            Err(error) => {
                let model = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
                reports.push(Report { model, version: None, outcome: Outcome::Fails { error, line: None } });
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let without_ours = reports.iter().all(|report| matches!(report.outcome, Outcome::Skipped(_)));
    for model in models.iter().filter(|model| matches!(model.kind(), Kind::Ensemble)) {
        let outcome = ensemble::check(model, &models, &reports).map_or_else(
            |error| Outcome::Fails { line: model.line(&error.to_string()), error },
            Outcome::FitsTogether,
        );
        reports.push(Report { model: model.name.clone(), version: None, outcome });
    }
    if options.json {
        print_json(&json!(reports.iter().map(as_json).collect::<Vec<_>>()));
    } else {
        print(&text(&reports, options.config));
    }
    if without_ours {
        let places: Vec<String> =
            options.repository.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Error::not_found(format!("there is no model of Gesso or DALI in {}", places.join(", "))));
    }
    if let Some((name, _)) = given.iter().find(|(name, _)| !inputs.contains(name)) {
        return Err(Error::not_found(format!(
            "`--sample {name}=`: no model that loads has an input `{name}`"
        )));
    }
    let failed = reports.iter().any(|report| matches!(report.outcome, Outcome::Fails { .. }));
    Ok(if failed { Exit::Failure } else { Exit::Success })
}

/// What becomes of each version of a model; nothing of an ensemble, which is checked when all others are.
fn reports_of(
    model: &Model,
    options: &Options,
    given: &[(String, String)],
    inputs: &mut BTreeSet<String>,
) -> Vec<Report> {
    let report = |version, outcome| Report { model: model.name.clone(), version, outcome };
    match model.kind() {
        Kind::Ours => {}
        Kind::Ensemble => return Vec::new(),
        Kind::Other(other) => return vec![report(None, Outcome::Skipped(other))],
    }
    let versions = match model.versions() {
        Ok(versions) => versions,
        Err(error) => return vec![report(None, Outcome::Fails { error, line: None })],
    };
    let mut load = |version| match load(model, version, options, given, inputs) {
        Ok(loaded) => Outcome::Loads(loaded),
        Err(Failed { error, of_config }) => {
            let line = if of_config { model.line(&error.to_string()) } else { None };
            Outcome::Fails { error, line }
        }
    };
    versions.into_iter().map(|version| report(Some(version), load(version))).collect()
}

/// An error, and whether the configuration is what is wrong.
struct Failed {
    error: Error,
    of_config: bool,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, of_config: false }
    }
}

fn in_config(error: Error) -> Failed {
    Failed { error, of_config: true }
}

/// What the plugin does when the server loads a model, and for each kind of its instances, one instance.
fn load(
    model: &Model,
    version: u64,
    options: &Options,
    given: &[(String, String)],
    inputs: &mut BTreeSet<String>,
) -> Result<Loaded, Failed> {
    if model.fields.is_none() && options.disable_auto_complete_config {
        return Err(Error::not_found(
            "there is no config.pbtxt, which the server needs without auto-completion",
        )
        .into());
    }
    let config = model.config().map_err(in_config)?;
    let written = written_max_batch_size(&model.directory);
    let mut config = ModelConfig::parse(&config).map_err(in_config)?.with_written_max_batch_size(written);
    config.check_as_written().map_err(in_config)?;
    let file = config.model_filename().map_err(in_config)?;
    let names_a_field = |error: &Error| error.to_string().starts_with("`default_model_filename`");
    let file = ModelFile::read(&model.directory, version, file)
        .map_err(|error| Failed { of_config: names_a_field(&error), error })?;
    let source = SerializedPipeline::new(&model.name, file, &options.python)?;
    let kinds = config.instance_kinds().map_err(in_config)?;
    let mut warnings: Vec<String> = source.warning.iter().cloned().collect();

    let settings = config.settings().map_err(in_config)?;
    let mut first = None;
    let mut planned: Vec<(Device, Pipeline)> = Vec::new();
    for kind in &kinds {
        let device = if *kind == InstanceKind::Gpu { Device::Gpu } else { Device::Cpu };
        first = first.or(Some(device));
        if planned.iter().all(|(other, _)| *other != device) {
            let in_file = || format!("`{}`", source.path.display());
            let pipeline =
                Pipeline::load_with_arithmetic(&source.bytes, device, settings.arithmetic).context(in_file);
            planned.push((device, pipeline?));
        }
    }
    let (_, pipeline) = planned.first().ok_or_else(|| Error::internal("a model without an instance"))?;
    inputs.extend(pipeline.inputs().iter().map(|input| input.name.clone()));
    let facts = Facts::from(pipeline);
    if !options.disable_auto_complete_config {
        config.complete(&facts).map_err(in_config)?;
    }
    let tensors = config.validate(&facts).map_err(in_config)?;
    if let Some((name, meant)) = settings.misspelt() {
        return Err(in_config(Error::invalid(format!(
            "parameter `{}` is not known and has no effect in a server; did you mean `{meant}`?",
            name.escape_debug()
        ))));
    }
    warnings.extend(settings.warning());
    warnings.extend(tensors.warnings(&settings));
    if kinds.contains(&InstanceKind::Gpu) && devices().is_err() {
        warnings.push(
            "instances of `KIND_GPU` are planned, but not made: there is no GPU here; a server on this host refuses the model \
             before Gesso sees it, where `KIND_AUTO` or `KIND_CPU` would run on the host"
                .to_owned(),
        );
    }
    let preferences = Preferences {
        jpeg_path: settings.jpeg_path,
        deterministic: settings.deterministic,
        formats: settings.formats.unwrap_or_default(),
        jpeg_decoder: settings.jpeg_decoder.unwrap_or_default(),
        jpeg_scaled_decode: settings.jpeg_scaled_decode,
        ..Preferences::default()
    };
    let mut ran = Ran::No(Vec::new());
    for (_, pipeline) in &planned {
        warnings.extend(pipeline.warnings().iter().cloned());
        let gpu = match (pipeline.needs_gpu(), devices()) {
            (true, Err(_)) => continue,
            (needed, _) => needed.then(|| Gpu::open_within(0, settings.allowance())).transpose()?,
        };
        let mut instance = pipeline.instance_with(settings.num_threads, gpu.as_ref(), &preferences)?;
        ran = sample::run((&source.bytes, pipeline, &mut instance), given)?;
    }
    if let Ran::No(inputs) = &ran {
        warnings.push(not_run(inputs));
    }
    if let Some(server) = &options.server {
        match ran {
            Ran::Yes(sample) => {
                let tensors = tensors_of(&config, sample);
                let tensors: Vec<_> = tensors.iter().map(Tensor::borrowed).collect();
                server.infer((&model.name, Some(version)), &tensors, &[])?;
            }
            Ran::No(_) => server.must_be_ready(&model.name, version)?,
        }
    }
    let operators = pipeline.operator_count();
    let config = serde_json::from_str(&config.to_json())
        .map_err(|error| Error::internal(format!("a completed configuration is no JSON: {error}")))?;
    Ok(Loaded { source: source.path, operators, kinds, config, warnings })
}

/// A sample as a request of one.
fn tensors_of(config: &ModelConfig, sample: Vec<(String, Given)>) -> Vec<Tensor<Vec<u8>>> {
    let tensor = |(name, Given { dtype, shape, bytes }): (String, Given)| {
        let configured = config.inputs().iter().find(|input| input.name == name);
        let batch = std::iter::once(1);
        if configured.is_some_and(|input| input.data_type == Some(DataType::Bytes)) {
            // An element is a file behind its length.
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
            let shape = batch.chain(config.is_batched().then_some(1)).collect();
            let bytes = [&length[..], &bytes].concat();
            return Tensor { name, datatype: "BYTES".to_owned(), shape, bytes };
        }
        let datatype = DataType::Dense(dtype).config_name().trim_start_matches("TYPE_").to_owned();
        Tensor { name, datatype, shape: batch.chain(shape).collect(), bytes }
    };
    sample.into_iter().map(tensor).collect()
}

/// Why no sample was run.
fn not_run(inputs: &[String]) -> String {
    match inputs {
        [] => "no sample was run: there is no GPU here, no input, or inputs are videos".to_owned(),
        [first, ..] => format!(
            "no sample was run, as nothing is known of what {} take: `--sample {first}=FILE` gives one",
            inputs.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}

fn text(reports: &[Report], with_config: bool) -> String {
    let mut text = String::new();
    for report in reports {
        let version = report.version.map_or(String::new(), |version| format!(", version {version}"));
        let name = format!("{}{version}", clean(&report.model, 80));
        match &report.outcome {
            Outcome::Skipped(why) => {
                text += &format!("{}  {name}: {}\n", styled(DIM, "skipped"), styled(DIM, clean(why, 80)));
            }
            Outcome::FitsTogether(steps) => {
                let steps = clean(&steps.join(", "), 400);
                text += &format!("{}       {name}: ensemble of {steps}\n", styled(GOOD, "ok"));
            }
            Outcome::Fails { error, line } => {
                let place = line.map_or(String::new(), |line| format!("config.pbtxt, line {line}: "));
                let error = clean(&error.to_string(), usize::MAX);
                text += &format!("{}   {name}: {place}{error}\n", styled(BAD, "failed"));
            }
            Outcome::Loads(loaded) => {
                text += &format!("{}       {name}: {}\n", styled(GOOD, "ok"), loaded.summary());
                for warning in &loaded.warnings {
                    text += &format!("         {}: {}\n", styled(WARN, "note"), clean(warning, 400));
                }
                if let (true, Value::Object(config)) = (with_config, &loaded.config) {
                    text += &pbtxt::print(config)
                        .lines()
                        .map(|line| format!("         {line}\n"))
                        .collect::<String>();
                }
            }
        }
    }
    let count =
        |wanted: fn(&Outcome) -> bool| reports.iter().filter(|report| wanted(&report.outcome)).count();
    text + &format!(
        "{} ok, {} failed, {} of other backends\n",
        count(|outcome| matches!(outcome, Outcome::Loads(_) | Outcome::FitsTogether(_))),
        count(|outcome| matches!(outcome, Outcome::Fails { .. })),
        count(|outcome| matches!(outcome, Outcome::Skipped(_)))
    )
}

impl Loaded {
    /// `3 operators, IMAGE TYPE_UINT8 [-1] -> PIXELS TYPE_FP32 [3, 224, 224], batches of up to 8, KIND_CPU`
    fn summary(&self) -> String {
        let tensors = |key: &str| {
            let list = self.config.get(key).and_then(Value::as_array);
            let tensor = |tensor: &Value| {
                let text = |key: &str| tensor.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                let dims = tensor.get("dims").map(ToString::to_string).unwrap_or_default().replace(',', ", ");
                format!("{} {} {dims}", text("name"), text("data_type"))
            };
            list.map(|list| list.iter().map(tensor).collect::<Vec<_>>().join(", ")).unwrap_or_default()
        };
        let batch = match self.config.get("max_batch_size").and_then(Value::as_i64) {
            Some(size @ 1..) => format!("batches of up to {size}"),
            _ => "not batched by the server".to_owned(),
        };
        let kinds: Vec<String> = self.kinds.iter().map(ToString::to_string).collect();
        let text = format!(
            "{} operators, {} -> {}, {batch}, {}",
            self.operators,
            tensors("input"),
            tensors("output"),
            kinds.join(", ")
        );
        clean(&text, 400)
    }
}

fn as_json(report: &Report) -> Value {
    let mut json = json!({ "model": report.model, "version": report.version });
    let more = match &report.outcome {
        Outcome::Skipped(why) => json!({ "status": "skipped", "why": why }),
        Outcome::FitsTogether(steps) => json!({ "status": "ok", "steps": steps, "warnings": [] }),
        Outcome::Fails { error, line } => {
            json!({ "status": "failed", "error": error.to_string(), "config_pbtxt_line": line })
        }
        Outcome::Loads(loaded) => json!({
            "status": "ok", "file": loaded.source, "operators": loaded.operators, "config": loaded.config,
            "warnings": loaded.warnings,
        }),
    };
    if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
        json.extend(more);
    }
    json
}
