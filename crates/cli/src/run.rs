//! `gesso run`: a pipeline on files, its outputs as `.npy` and PNG, and the time of each operator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use gesso::error::{Context, Error, Result};
use gesso::limits;
use gesso::pipeline::{Gpu, Instance, Pipeline, Preferences, StreamSettings};
use gesso::tensor::Batch;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::inputs::Samples;
use crate::preview::Normalization;
use crate::terminal::{BAD, BOLD, Table, WARN, clean, print, print_json, read_pipeline, styled, write_file};
use crate::work::{Made, Work, epoch};
use crate::{Exit, On, npy, preview};

/// Samples and operators that are listed one by one.
const LISTED: usize = 32;

/// Run a pipeline on files; writes what comes out as `.npy` and, where it looks like an image, as PNG.
#[derive(Args)]
pub(crate) struct Options {
    /// A file that DALI's `Pipeline.serialize` wrote.
    pipeline: PathBuf,
    /// Files for an input, one a sample: `NAME=a.jpg,b.jpg`, or without NAME where there is one input. A `.npy` is an array,
    /// any other file its bytes. One file for an input stands for every sample.
    #[arg(long, short, value_name = "NAME=FILE,...")]
    input: Vec<String>,
    /// Where the outputs go, as `OUTPUT.SAMPLE.npy` and `OUTPUT.SAMPLE.png`; made when it is not there. Absent: nowhere.
    #[arg(long, short)]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Samples of a pipeline that reads them by itself; absent: those of an epoch.
    #[arg(long, value_name = "COUNT")]
    samples: Option<usize>,
    /// Samples run at a time; absent: as many as the file was made for.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=limits::MAX_BATCH_SIZE as i64))]
    batch: Option<u32>,
    /// What was done, for scripts.
    #[arg(long)]
    json: bool,
}

/// Where and with how many threads a pipeline runs.
#[derive(Args)]
pub(crate) struct Place {
    /// Host threads, or a GPU.
    #[arg(long, value_enum, default_value = "cpu")]
    pub(crate) device: On,
    /// Which GPU.
    #[arg(long, default_value_t = 0)]
    pub(crate) gpu: usize,
    /// Worker threads; absent: as many as the file asks for.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=limits::MAX_THREADS as i64))]
    pub(crate) threads: Option<u32>,
}

impl Place {
    /// The pipeline of a file, planned for the place.
    pub(crate) fn load(&self, path: &Path) -> Result<(Vec<u8>, Pipeline)> {
        let bytes = read_pipeline(path)?;
        let pipeline =
            Pipeline::load(&bytes, self.device.into()).context(|| format!("`{}`", path.display()))?;
        Ok((bytes, pipeline))
    }

    /// The GPU, when the pipeline needs one.
    pub(crate) fn open(&self, pipeline: &Pipeline) -> Result<Option<Arc<Gpu>>> {
        pipeline.needs_gpu().then(|| Gpu::open(self.gpu)).transpose().map_err(|error| {
            Error::new(error.kind(), format!("{error}; `--device cpu` runs the pipeline on host threads"))
        })
    }

    /// An instance there.
    pub(crate) fn instance(&self, pipeline: &Pipeline) -> Result<Instance> {
        let gpu = self.open(pipeline)?;
        pipeline.instance_with(self.threads.map(|n| n as usize), gpu.as_ref(), &Preferences::default())
    }
}

/// A bar on the standard error where that is a terminal, for work that takes long.
pub(crate) fn progress(steps: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} {elapsed}");
    let bar = ProgressBar::new(steps as u64).with_message(what);
    style.map_or_else(|_| ProgressBar::hidden(), |style| bar.with_style(style.progress_chars("=> ")))
}

/// The same for work of which nobody knows how much it is.
fn counting(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {spinner} {pos} {elapsed}");
    let bar = ProgressBar::new_spinner().with_message(what);
    style.map_or_else(|_| ProgressBar::hidden(), |style| bar.with_style(style))
}

/// What became of the samples.
#[derive(Default)]
struct Done {
    written: Vec<Written>,
    failed: Vec<(usize, Error)>,
    /// Which of the files that were named each sample comes of.
    files: Vec<usize>,
    /// Time of each operator over all batches, and the wait for the device.
    operators: Vec<Duration>,
    device: Duration,
}

/// One output of one sample.
struct Written {
    output: String,
    sample: usize,
    dtype: &'static str,
    shape: String,
    file: Option<PathBuf>,
    /// The picture, and how values became pixels.
    picture: Option<(PathBuf, &'static str)>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<Exit> {
    let (bytes, pipeline) = options.place.load(&options.pipeline)?;
    let mut work = work(options, &pipeline)?;
    let samples = match &work {
        Work::Fed(_) | Work::Videos(..) => Samples::read(pipeline.inputs(), &options.input)?,
        Work::Read(stream) => Samples::counted(options.samples.unwrap_or_else(|| epoch(stream))),
    };
    let description = Pipeline::describe(&bytes)?;
    let normalizations: Vec<Option<Normalization>> =
        pipeline.outputs().iter().map(|output| Normalization::of(&description, &output.name)).collect();
    if let Some(folder) = &options.out {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::invalid(format!("cannot make `{}`: {error}", folder.display())))?;
    }
    let batch = options.batch.map_or(pipeline.max_batch_size(), |n| n as usize);
    let mut done = Done { operators: vec![Duration::ZERO; pipeline.operators().len()], ..Done::default() };
    let bar = match work.batches(&samples, batch) {
        Some(batches) => progress(batches, "batches"),
        None => counting("batches"),
    };
    let begun = Instant::now();
    let mut running = Duration::ZERO;
    let mut next = 0;
    loop {
        let (first, started) = (done.files.len(), Instant::now());
        let Some(Made { files, outcome, tally }) = work.batch(&samples, first, batch, &mut next)? else {
            break;
        };
        running += started.elapsed();
        let count = files.len();
        done.files.extend(files);
        for (total, time) in done.operators.iter_mut().zip(&tally.operators) {
            *total += *time;
        }
        done.device += tally.device;
        bar.inc(1);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                done.failed.push((first, error));
                continue;
            }
        };
        let failed = (0..count).filter_map(|i| Some((first + i, outcome.failures.get(i)?.clone())));
        done.failed.extend(failed);
        for (output, made) in outcome.outputs.iter().enumerate() {
            let made = work.downloaded(made)?;
            for i in (0..count).filter(|&i| outcome.failures.get(i).is_none()) {
                let name = pipeline.outputs().get(output).map_or("", |output| &output.name);
                // Two outputs may have one name.
                let twice = pipeline.outputs().iter().take(output).any(|other| other.name == name);
                let name = if twice { format!("{name}-{output}") } else { name.to_owned() };
                let normalization = normalizations.get(output).and_then(Option::as_ref);
                done.written.push(write(options.out.as_deref(), name, first + i, &made, i, normalization)?);
            }
        }
    }
    bar.finish_and_clear();
    if options.json {
        print_json(&as_json(&done, &samples, &pipeline, running));
    } else {
        print(&text(&done, &samples, &pipeline, running, begun.elapsed()));
    }
    Ok(if done.failed.is_empty() { Exit::Success } else { Exit::Failure })
}

/// What gives the pipeline's batches.
fn work(options: &Options, pipeline: &Pipeline) -> Result<Work> {
    if pipeline.takes_videos() {
        return Ok(Work::Videos(Box::new(options.place.instance(pipeline)?), None));
    }
    if !pipeline.reads() {
        return Ok(Work::Fed(Box::new(options.place.instance(pipeline)?)));
    }
    let settings = StreamSettings {
        batch_size: options.batch.map(|n| n as usize),
        num_threads: options.place.threads.map(|n| n as usize),
        to_host: true,
        ..StreamSettings::default()
    };
    let gpu = options.place.open(pipeline)?;
    Ok(Work::Read(Box::new(pipeline.stream(&settings, gpu.as_ref())?)))
}

fn write(
    folder: Option<&Path>,
    output: String,
    sample: usize,
    batch: &Batch<'_>,
    i: usize,
    normalization: Option<&Normalization>,
) -> Result<Written> {
    let view = batch.view(i);
    let mut written = Written {
        sample,
        dtype: view.dtype.name(),
        shape: view.shape.to_string(),
        file: None,
        picture: None,
        output,
    };
    if let Some(folder) = folder {
        let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let stem: String = written.output.chars().map(plain).collect();
        let path = folder.join(format!("{stem}.{sample}.npy"));
        let mut bytes = npy::header(view.dtype, view.shape);
        bytes.extend_from_slice(view.bytes);
        write_file(&path, &bytes)?;
        written.file = Some(path);
        let path = folder.join(format!("{stem}.{sample}.png"));
        written.picture = preview::write(&view, normalization, &path)?.map(|how| (path, how));
    }
    Ok(written)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn text(done: &Done, samples: &Samples, pipeline: &Pipeline, running: Duration, all: Duration) -> String {
    let mut outputs = Table::new(&["output", ">sample", "type", "shape", "file", "picture"]);
    let shown = |path: &Path| clean(&path.display().to_string(), 80);
    for written in done.written.iter().take(LISTED) {
        outputs.row([
            clean(&written.output, 40),
            written.sample.to_string(),
            written.dtype.to_owned(),
            written.shape.clone(),
            written.file.as_deref().map_or("-".to_owned(), shown),
            written.picture.as_ref().map_or("-".to_owned(), |(path, how)| format!("{} ({how})", shown(path))),
        ]);
    }
    let mut text = format!("{}\n{}", styled(BOLD, "outputs"), outputs.lines());
    if done.written.len() > LISTED {
        text += &format!("  and {} more\n", done.written.len() - LISTED);
    }
    let mut operators = Table::new(&["operator", ">ms", ">share"]);
    let total: Duration = done.operators.iter().sum::<Duration>() + done.device;
    for (name, time) in times(done, pipeline) {
        let share = 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        operators.row([name, format!("{:.3}", milliseconds(time)), format!("{share:.0} %")]);
    }
    text += &format!("\n{}\n{}", styled(BOLD, "operators"), operators.lines());
    let ran = done.files.len() - done.failed.len();
    text += &format!(
        "\n{ran} of {} samples in {:.1} ms, the first batch included, {:.1} ms with files\n",
        done.files.len(),
        milliseconds(running),
        milliseconds(all)
    );
    for warning in pipeline.warnings() {
        text += &format!("{}: {}\n", styled(WARN, "note"), clean(warning, 400));
    }
    for (sample, error) in &done.failed {
        let files: Vec<String> = samples
            .files(done.files.get(*sample).copied().unwrap_or(*sample))
            .iter()
            .map(|(_, path)| format!("`{}`", path.display()))
            .collect();
        let error = clean(&format!("sample {sample} ({}): {error}", files.join(", ")), usize::MAX);
        text += &format!("{}: {error}\n", styled(BAD, "failed"));
    }
    text
}

/// What took which time: every operator in order, or of many, those of one name together, the longest first.
fn times(done: &Done, pipeline: &Pipeline) -> Vec<(String, Duration)> {
    let names = pipeline.operators();
    let mut times: Vec<(String, Duration)> =
        names.iter().cloned().zip(done.operators.iter().copied()).collect();
    if times.len() > LISTED {
        let mut by_name: BTreeMap<String, (usize, Duration)> = BTreeMap::new();
        for (name, time) in times {
            let (count, total) = by_name.entry(name).or_default();
            *count += 1;
            *total += time;
        }
        let named =
            |(name, (count, time))| (if count == 1 { name } else { format!("{name} x{count}") }, time);
        times = by_name.into_iter().map(named).collect();
        times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    }
    if !done.device.is_zero() {
        times.push(("waiting for the device".to_owned(), done.device));
    }
    times
}

fn as_json(done: &Done, samples: &Samples, pipeline: &Pipeline, running: Duration) -> Value {
    let outputs: Vec<Value> = done
        .written
        .iter()
        .map(|written| {
            json!({
                "output": written.output, "sample": written.sample, "dtype": written.dtype, "shape": written.shape,
                "file": written.file, "picture": written.picture.as_ref().map(|(path, _)| path),
                "pixels": written.picture.as_ref().map(|(_, how)| how),
            })
        })
        .collect();
    let inputs: Vec<Value> = (0..done.files.len())
        .map(|i| {
            let failed =
                done.failed.iter().find(|(sample, _)| *sample == i).map(|(_, error)| error.to_string());
            let files: serde_json::Map<String, Value> = samples
                .files(done.files.get(i).copied().unwrap_or(i))
                .iter()
                .map(|(name, path)| ((*name).to_owned(), json!(path)))
                .collect();
            json!({ "sample": i, "files": files, "error": failed })
        })
        .collect();
    let names = pipeline.operators();
    let operators: Vec<Value> = names
        .iter()
        .zip(&done.operators)
        .map(|(name, &time)| json!({ "operator": name, "milliseconds": milliseconds(time) }))
        .collect();
    json!({
        "outputs": outputs, "samples": inputs, "operators": operators, "milliseconds": milliseconds(running),
        "device_milliseconds": milliseconds(done.device), "warnings": pipeline.warnings(),
    })
}
