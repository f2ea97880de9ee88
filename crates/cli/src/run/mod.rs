//! `gesso run`: a pipeline on files, its outputs as `.npy` and PNG, and the time of each operator.

mod outputs;
mod record;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use gesso::cpu::formats::Formats;
use gesso::error::{Context, Error, Result};
use gesso::limits;
use gesso::pipeline::{Gpu, Instance, Pipeline, Preferences, StreamSettings};

use crate::inputs::Samples;
use crate::progress::Progress;
use crate::terminal::{print, print_json, read_pipeline};
use crate::work::{Made, Work, epoch};
use crate::{Exit, On};
use outputs::{Outputs, Written};
use record::{About, Line, Record};

/// Outputs and operators that are listed one by one.
const LISTED: usize = 32;

/// Run a pipeline on files; writes what comes out as `.npy` and, where it looks like an image, as PNG.
#[derive(Args)]
pub(crate) struct Options {
    /// A pipeline file, as `gesso serialize` or DALI's `Pipeline.serialize` writes it.
    pipeline: PathBuf,
    /// Files for an input, one a sample: `NAME=a.jpg,b.jpg`, or without NAME where there is one input. A folder stands
    /// for the images, sounds, videos and arrays in it and below, by the endings of their names; a pattern
    /// (`'photos/*.jpg'`) for the files that fit; `@FILE` for those of a list, one a line (`@-`: of the standard
    /// input). A `.npy` is an array, any other file its bytes. One file for an input stands for every sample.
    #[arg(value_name = "NAME=FILE,...")]
    files: Vec<String>,
    /// The same by an option.
    #[arg(long, short, value_name = "NAME=FILE,...")]
    input: Vec<String>,
    /// Where the outputs go, as `OUTPUT.SAMPLE.NAME.npy` and `OUTPUT.SAMPLE.NAME.png`, where NAME is that of the
    /// sample's file, and `samples.jsonl`, which says what files each sample is made of; made when it is not there.
    /// Absent: nowhere, what comes out is listed only.
    #[arg(long, short)]
    out: Option<PathBuf>,
    /// What outputs are written as.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "npy,png", requires = "out")]
    format: Vec<Format>,
    /// Go on behind an earlier run into the same folder: samples that it wrote are not run again, those that failed
    /// are.
    #[arg(long, requires = "out", conflicts_with = "overwrite")]
    resume: bool,
    /// Replace what an earlier run left in the folder.
    #[arg(long, requires = "out")]
    overwrite: bool,
    #[command(flatten)]
    place: Hardware,
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
pub(crate) struct Hardware {
    /// Host threads, or a GPU.
    #[arg(long, value_enum, default_value = "cpu")]
    pub(crate) device: On,
    /// Which GPU.
    #[arg(long, default_value_t = 0)]
    pub(crate) gpu: usize,
    /// Worker threads; absent: as many as the file asks for.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=limits::MAX_THREADS as i64))]
    pub(crate) threads: Option<u32>,
    /// Formats of files that are decoded: `jpeg,png` are these alone, `-avif,-av1` all but these.
    #[arg(long, value_parser = Formats::parse, allow_hyphen_values = true, value_name = "FORMAT,...")]
    pub(crate) formats: Option<Formats>,
}

impl Hardware {
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
        let preferences = Preferences { formats: self.formats.unwrap_or_default(), ..Preferences::default() };
        pipeline.instance_with(self.threads.map(|n| n as usize), gpu.as_ref(), &preferences)
    }
}

/// What became of the samples.
struct Done {
    /// Those that ran, and which of those that were named each comes of.
    samples: Vec<(usize, usize)>,
    failed: BTreeMap<usize, Error>,
    /// Which of those that were named an earlier run did, behind which this one goes on.
    before: Vec<bool>,
    /// Outputs, of which all are listed for scripts, and the first ones for people.
    outputs: usize,
    written: Vec<Written>,
    /// Time of each operator over all batches, and the wait for the device.
    operators: Vec<Duration>,
    device: Duration,
    running: Duration,
}

/// A kind of file that an output becomes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// An array of numpy, with the bytes that a server would answer.
    Npy,
    /// A picture, of an output that looks like one; of an encoder's output the file itself.
    Png,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<Exit> {
    let (bytes, pipeline) = options.place.load(&options.pipeline)?;
    let mut work = work(options, &pipeline)?;
    let out = options.out.as_deref();
    let samples = match &work {
        Work::Fed(_) | Work::Videos(..) => {
            Samples::named(pipeline.inputs(), &[options.files.as_slice(), &options.input].concat(), out)?
        }
        Work::Read(stream) => Samples::counted(options.samples.unwrap_or_else(|| epoch(stream))),
    };
    let outputs = Outputs::new(options, &bytes, &pipeline)?;
    let most = options.batch.map_or(pipeline.max_batch_size(), |n| n as usize);
    let (mut record, before) = record_of(options, (&bytes, most), &work, &samples, &outputs)?;
    let expected = (!matches!(work, Work::Videos(..))).then_some(samples.len());
    let mut done = Done {
        samples: Vec::new(),
        failed: BTreeMap::new(),
        before,
        outputs: 0,
        written: Vec::new(),
        operators: vec![Duration::ZERO; pipeline.operators().len()],
        device: Duration::ZERO,
        running: Duration::ZERO,
    };
    let mut progress = Progress::new(expected.map(|all| all - done.count_before()), "samples");
    let (begun, mut next) = (Instant::now(), 0);
    loop {
        let batch = next..(next + work.wants(most)).min(samples.len());
        next = batch.end;
        if batch.is_empty() && !work.has_more() {
            break;
        }
        // A batch runs as a whole if anything of it is missing, so that its random numbers are those of a run that was
        // not cut off.
        if !batch.is_empty() && batch.clone().all(|row| done.is_before(row)) {
            continue;
        }
        let (loaded, unreadable) = samples.load(batch);
        let mut lines = Vec::new();
        for (row, error) in unreadable {
            let sample = if expected.is_some() { row } else { done.samples.len() };
            done.fails(sample, row, error, &samples, &mut lines);
        }
        if !loaded.numbers.is_empty() || work.has_more() {
            let started = Instant::now();
            let made = work.batch(&loaded)?;
            done.running += started.elapsed();
            if let Some(made) = made {
                let first = expected.is_none().then_some(done.samples.len());
                done.add(made, first, &mut work, &outputs, &samples, &mut lines)?;
            }
        }
        progress.add(lines.len());
        if let Some(record) = &mut record {
            record.add(&lines)?;
        }
    }
    record.map_or(Ok(()), Record::finish)?;
    done.samples.sort_unstable();
    progress.finish();
    if options.json {
        print_json(&report::as_json(&done, &samples, &pipeline));
    } else {
        print(&report::text(&done, &samples, &pipeline, begun.elapsed()));
    }
    Ok(if done.failed.is_empty() { Exit::Success } else { Exit::Failure })
}

/// The record of the run where there is a folder for it, and which samples an earlier run did.
fn record_of(
    options: &Options,
    (pipeline, batch): (&[u8], usize),
    work: &Work,
    samples: &Samples,
    outputs: &Outputs,
) -> Result<(Option<Record>, Vec<bool>)> {
    let Some(folder) = &options.out else { return Ok((None, Vec::new())) };
    let format = options.format.iter().filter_map(ValueEnum::to_possible_value);
    let about = About { batch, format: format.map(|format| format.get_name().to_owned()).collect() };
    match (record::is_in(folder), options.resume) {
        (true, true) if matches!(work, Work::Fed(_)) => {
            let are_there = |sample| outputs.are_there(sample, samples.name(sample).as_deref());
            let (record, before) = Record::resume(folder, (pipeline, &about), samples, are_there)?;
            return Ok((Some(record), before));
        }
        (true, true) => {
            return Err(Error::invalid(
                "`--resume` is for inputs that are named, a sample a file: readers and videos begin anew",
            ));
        }
        (true, false) if !options.overwrite => {
            return Err(Error::invalid(format!(
                "`{}` holds the outputs of an earlier run: `--resume` goes on behind it, `--overwrite` replaces them",
                folder.display()
            )));
        }
        (true, false) => outputs.clear(folder)?,
        (false, _) => {}
    }
    Ok((Some(Record::begin(folder, pipeline, &about)?), Vec::new()))
}

impl Done {
    /// Whether an earlier run did what comes of `row`.
    fn is_before(&self, row: usize) -> bool {
        self.before.get(row).copied().unwrap_or_default()
    }

    fn count_before(&self) -> usize {
        self.before.iter().filter(|&&done| done).count()
    }

    /// Takes a sample that failed.
    fn fails(&mut self, sample: usize, row: usize, error: Error, samples: &Samples, lines: &mut Vec<Line>) {
        if self.is_before(row) {
            return;
        }
        lines.push(Line::new(sample, row, samples, Some(&error)));
        self.samples.push((sample, row));
        self.failed.insert(sample, error);
    }

    /// Takes a batch, whose samples have the numbers of those that were named, or those from `first` on.
    fn add(
        &mut self,
        made: Made<'_>,
        first: Option<usize>,
        work: &mut Work,
        outputs: &Outputs,
        samples: &Samples,
        lines: &mut Vec<Line>,
    ) -> Result<()> {
        for (total, time) in self.operators.iter_mut().zip(&made.tally.operators) {
            *total += *time;
        }
        self.device += made.tally.device;
        let number = |i: usize, row: usize| first.map_or(row, |first| first + i);
        let outcome = match made.outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                for (i, &row) in made.of.iter().enumerate() {
                    self.fails(number(i, row), row, error.clone(), samples, lines);
                }
                return Ok(());
            }
        };
        for (output, batch) in outcome.outputs.iter().enumerate() {
            let batch = work.downloaded(batch)?;
            for (i, &row) in made.of.iter().enumerate() {
                if outcome.failures.get(i).is_none() && !self.is_before(row) {
                    let sample = (number(i, row), samples.name(row));
                    let written = outputs.write(output, sample, &batch, i)?;
                    self.outputs += 1;
                    if outputs.lists_all || self.written.len() < LISTED {
                        self.written.push(written);
                    }
                }
            }
        }
        for (i, &row) in made.of.iter().enumerate() {
            if let Some(error) = outcome.failures.get(i) {
                self.fails(number(i, row), row, error.clone(), samples, lines);
            } else if !self.is_before(row) {
                lines.push(Line::new(number(i, row), row, samples, None));
                self.samples.push((number(i, row), row));
            }
        }
        Ok(())
    }
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
        preferences: Preferences {
            formats: options.place.formats.unwrap_or_default(),
            ..Preferences::default()
        },
        ..StreamSettings::default()
    };
    let gpu = options.place.open(pipeline)?;
    Ok(Work::Read(Box::new(pipeline.stream(&settings, gpu.as_ref())?)))
}
