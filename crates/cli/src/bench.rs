//! `gesso bench`: how long batches take and how many images a second come out, for batch sizes and numbers of threads.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use gesso::error::{Error, Result};
use gesso::limits;
use gesso::pipeline::{Instance, Keep, Pipeline, Preferences};
use serde_json::json;

use crate::Exit;
use crate::inputs::{Loaded, Samples};
use crate::progress;
use crate::run::Hardware;
use crate::terminal::{DIM, Table, print, print_json, styled};

/// Batches that are run before time is taken.
const WARM_UP: usize = 3;

/// Batches that are timed at least, however long they take, and at most.
const FEWEST: usize = 5;
const MOST: usize = 1_000_000;

/// Measure a pipeline: latency of a batch and images a second, for batch sizes and numbers of threads.
#[derive(Args)]
pub(crate) struct Options {
    /// A pipeline file, as `gesso serialize` or DALI's `Pipeline.serialize` writes it.
    pipeline: PathBuf,
    /// Files for an input, as for `gesso run`; batches go round them.
    #[arg(value_name = "NAME=FILE,...")]
    files: Vec<String>,
    /// The same by an option.
    #[arg(long, short, value_name = "NAME=FILE,...")]
    input: Vec<String>,
    /// Sizes of batches.
    #[arg(long, value_delimiter = ',', default_value = "1,8,64", value_name = "N,...",
          value_parser = clap::value_parser!(u32).range(1..=limits::MAX_BATCH_SIZE as i64))]
    batch: Vec<u32>,
    /// Numbers of worker threads; absent: as many as the file asks for.
    #[arg(long, value_delimiter = ',', value_name = "N,...",
          value_parser = clap::value_parser!(u32).range(1..=limits::MAX_THREADS as i64))]
    threads: Vec<u32>,
    /// Host threads, or a GPU.
    #[arg(long, value_enum, default_value = "cpu")]
    device: crate::On,
    /// Which GPU.
    #[arg(long, default_value_t = 0)]
    gpu: usize,
    /// Seconds for each figure.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// For scripts.
    #[arg(long)]
    json: bool,
}

/// What one setting took.
struct Figure {
    threads: Option<usize>,
    batch: usize,
    /// Of each batch, shortest first.
    times: Vec<Duration>,
}

impl Figure {
    fn rate(&self) -> f64 {
        let seconds: f64 = self.times.iter().map(Duration::as_secs_f64).sum();
        (self.times.len() * self.batch) as f64 / seconds.max(f64::MIN_POSITIVE)
    }

    /// Milliseconds that so many of a hundred batches stayed below.
    fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.times.len() * percent).div_ceil(100).max(1) - 1;
        self.times.get(rank).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }

    fn slowest(&self) -> f64 {
        self.percentile(100)
    }
}

/// Runs the command.
pub(crate) fn bench(options: &Options) -> Result<Exit> {
    if !(0.0..=3600.0).contains(&options.seconds) {
        return Err(Error::invalid(format!("`--seconds {}`, expected 0 to 3600", options.seconds)));
    }
    let place = Hardware { device: options.device, gpu: options.gpu, threads: None, formats: None };
    let (_, pipeline) = place.load(&options.pipeline)?;
    let samples =
        Samples::named(pipeline.inputs(), &[options.files.as_slice(), &options.input].concat(), None)?
            .load_all()?;
    let gpu = place.open(&pipeline)?;
    let threads: Vec<Option<usize>> = match options.threads.as_slice() {
        [] => vec![pipeline.num_threads()],
        given => given.iter().map(|&n| Some(n as usize)).collect(),
    };
    let mut figures = Vec::new();
    let bar = progress::bar(threads.len() * options.batch.len(), "figures");
    for &threads in &threads {
        let mut instance = pipeline.instance_with(threads, gpu.as_ref(), &Preferences::default())?;
        for &batch in &options.batch {
            let times = measure(&mut instance, &samples, batch as usize, options.seconds)?;
            figures.push(Figure { threads, batch: batch as usize, times });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if options.json {
        print_json(&as_json(&figures));
    } else {
        print(&text(&figures, &pipeline, &samples));
    }
    Ok(Exit::Success)
}

fn measure(instance: &mut Instance, samples: &Loaded, batch: usize, seconds: f64) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut next = 0;
    let limit = Duration::from_secs_f64(seconds);
    let mut spent = Duration::ZERO;
    for round in 0..MOST {
        let inputs = samples.chosen(next, batch)?;
        next = (next + batch) % samples.numbers.len().max(1);
        let begun = Instant::now();
        let outcome = instance.run(batch, inputs, &mut Keep)?;
        let elapsed = begun.elapsed();
        // What fails takes another time than what does not.
        if let Some(error) = (0..batch).find_map(|i| outcome.failures.get(i)) {
            return Err(error.clone().context("a sample failed, which would distort the figures"));
        }
        if round < WARM_UP {
            continue;
        }
        times.push(elapsed);
        spent += elapsed;
        if spent >= limit && times.len() >= FEWEST {
            break;
        }
    }
    times.sort_unstable();
    Ok(times)
}

fn text(figures: &[Figure], pipeline: &Pipeline, samples: &Loaded) -> String {
    let headings =
        [">threads", ">batch", ">samples/s", ">p50 ms", ">p90 ms", ">p99 ms", ">slowest ms", ">batches"];
    let mut table = Table::new(&headings);
    for figure in figures {
        table.row([
            figure.threads.map_or("-".to_owned(), |n| n.to_string()),
            figure.batch.to_string(),
            format!("{:.0}", figure.rate()),
            format!("{:.3}", figure.percentile(50)),
            format!("{:.3}", figure.percentile(90)),
            format!("{:.3}", figure.percentile(99)),
            format!("{:.3}", figure.slowest()),
            figure.times.len().to_string(),
        ]);
    }
    let on = if pipeline.needs_gpu() { "a GPU" } else { "host threads" };
    let note = format!("one batch at a time on {on}, {} files, outputs not copied", samples.numbers.len());
    format!("{}{}\n", table.lines(), styled(DIM, format!("  {note}")))
}

fn as_json(figures: &[Figure]) -> serde_json::Value {
    let figure = |figure: &Figure| {
        json!({
            "threads": figure.threads, "batch": figure.batch, "batches": figure.times.len(),
            "samples_per_second": figure.rate(), "p50_ms": figure.percentile(50), "p90_ms": figure.percentile(90),
            "p99_ms": figure.percentile(99), "slowest_ms": figure.slowest(),
        })
    };
    json!(figures.iter().map(figure).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let figure =
            Figure { threads: None, batch: 2, times: (1..=100).map(Duration::from_millis).collect() };
        assert_eq!((figure.percentile(50), figure.percentile(99), figure.slowest()), (50.0, 99.0, 100.0));
        assert!((figure.rate() - 200.0 / 5.05).abs() < 1e-9);
        let one = Figure { threads: None, batch: 1, times: vec![Duration::from_millis(3)] };
        assert_eq!((one.percentile(50), one.slowest()), (3.0, 3.0));
    }
}
