//! Where a batch of JPEGs is decoded soonest: the SMs, the engines and the CPU threads alone, what the decision
//! between them (`gpu/jpeg/share.rs`) expected of each, and what it chose, by batch, size, quality and subsampling.
//!
//! ```text
//! cargo bench --bench sweep [-- --seconds 300] [--json FILE] [--all yes]
//! ```
//!
//! One line per cell, microseconds: from the files in host memory to the pixels on the device. Qualities are swept at
//! 4:2:0 and samplings at quality 90; with `--all` every pair of them. Stops when the seconds are over.
//! `benches/peers/fit_share.py` fits the constants of `share.rs` to the JSON.
#![expect(clippy::unwrap_used, reason = "pictures of tests")]

#[expect(dead_code, reason = "tests use more of it")]
#[path = "../tests/gpu/pictures.rs"]
mod pictures;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use gesso::gpu::jpeg::sm::Coded;
use gesso::gpu::jpeg::{
    Candidate, Engines, Format, Path, Picture, Predicted, Settings, Size, SmNeed, Speeds, assign,
};
use gesso::gpu::{Gpu, devices};
use gesso::limits::SM_SCRATCH_PART;
use gesso::pipeline::{Decoded, Instance, Keep, Pipeline, Preferences};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};
use pictures::Recipe;
use rayon::prelude::*;
use serde_json::{Value, json};
use turbojpeg::Subsamp;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A decoder of device `mixed`, RGB, and nothing else.
const PIPELINE: &[u8] = include_bytes!("../tests/gpu/data/rgb.dali");

const SIZES: [(usize, usize); 5] = [(224, 224), (500, 375), (1280, 720), (1920, 1080), (4000, 3000)];
const QUALITIES: [i32; 4] = [50, 75, 90, 98];
const SAMPLINGS: [(&str, Subsamp); 4] =
    [("420", Subsamp::Sub2x2), ("444", Subsamp::None), ("422", Subsamp::Sub2x1), ("gray", Subsamp::Gray)];
const BATCHES: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// Pixels of a batch, so that every path takes all of it.
const MOST_PIXELS: usize = 240_000_000;

/// Different files of a cell; batches repeat them. Their pixels together.
const FILES: usize = 8;
const MADE_PIXELS: usize = 16_000_000;

/// Runs of a batch and how long they take together, at least and at most.
const RUNS: std::ops::Range<usize> = 3..40;
const LONG_ENOUGH: Duration = Duration::from_millis(25);

/// How much longer a path may take to count as being as good.
const NEAR: f64 = 1.1;

const PATHS: [(&str, Option<Path>); 4] = [
    ("sm", Some(Path::Sm)),
    ("engines", Some(Path::Engines)),
    ("threads", Some(Path::Threads)),
    ("auto", None),
];

/// Files of one kind.
#[derive(Clone, Copy)]
struct Kind {
    size: (usize, usize),
    quality: i32,
    sampling: (&'static str, Subsamp),
}

impl Kind {
    fn all(every_pair: bool) -> Vec<Self> {
        let pairs = SAMPLINGS.into_iter().flat_map(|sampling| QUALITIES.map(|quality| (quality, sampling)));
        let wanted = pairs.filter(|(quality, (name, _))| every_pair || *quality == 90 || *name == "420");
        let of_size = |size| move |(quality, sampling)| Self { size, quality, sampling };
        wanted.flat_map(|pair| SIZES.map(|size| of_size(size)(pair))).collect()
    }

    fn pixels(&self) -> usize {
        self.size.0 * self.size.1
    }

    fn files(&self) -> Vec<Vec<u8>> {
        let count = (MADE_PIXELS / self.pixels()).clamp(1, FILES) as u32;
        let ((width, height), quality, sampling) = (self.size, self.quality, self.sampling.1);
        let file = |seed| Recipe { quality, ..Recipe::new(width, height, sampling, seed) }.jpeg();
        (0..count).into_par_iter().map(file).collect()
    }
}

fn main() -> Result<()> {
    if let Err(error) = devices() {
        println!("skipped: no GPU ({error})");
        return Ok(());
    }
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let options: HashMap<&str, &str> = arguments
        .chunks(2)
        .filter_map(|pair| Some((pair.first()?.as_str(), pair.get(1)?.as_str())))
        .collect();
    let seconds = options.get("--seconds").map_or(Ok(300), |text| text.parse())?;
    let begun = Instant::now();

    let gpu = Gpu::open(0)?;
    let engines = Engines::open(&gpu, Settings::new(Format::Rgb, false)).map_or(0, |engines| engines.count());
    let threads = std::thread::available_parallelism()?.get();
    let scratch = gpu.ceiling() / SM_SCRATCH_PART;
    let speeds = Speeds::new(engines, gpu.multiprocessors()).within(scratch);
    println!(
        "`{}`: {} multiprocessors, {engines} engines, {threads} threads",
        gpu.name(),
        gpu.multiprocessors()
    );
    println!(
        "{:>9} {:>3} {:>4} {:>5} {:>9} | {:>8} {:>8} {:>8} {:>8} | expected {:>8} {:>8} | {:7} {:7}",
        "size",
        "q",
        "s",
        "batch",
        "bytes",
        "sm",
        "engines",
        "threads",
        "auto",
        "sm",
        "engines",
        "best",
        "chosen"
    );

    let pipeline = Pipeline::load(PIPELINE, Device::Gpu)?;
    let instance = |jpeg_path| {
        pipeline.instance_with(
            Some(threads),
            Some(&gpu),
            &Preferences { jpeg_path, ..Preferences::default() },
        )
    };
    let mut instances =
        PATHS.iter().map(|(_, path)| instance(*path)).collect::<std::result::Result<Vec<_>, _>>()?;
    let mut cells = Vec::new();
    'kinds: for kind in Kind::all(options.contains_key("--all")) {
        let files = kind.files();
        for batch in BATCHES.into_iter().take_while(|batch| batch * kind.pixels() <= MOST_PIXELS) {
            if begun.elapsed() > Duration::from_secs(seconds) {
                println!("the {seconds} seconds are over: what follows is not measured");
                break 'kinds;
            }
            let files: Vec<&[u8]> = files.iter().cycle().take(batch).map(Vec::as_slice).collect();
            let cell = measure(&mut instances, &files, kind, &speeds, engines > 0, threads)?;
            cells.push(cell);
        }
    }
    summarize(&cells);
    if let Some(path) = options.get("--json") {
        let all = json!({
            "gpu": gpu.name(), "multiprocessors": gpu.multiprocessors(), "engines": engines, "threads": threads,
            "cells": cells,
        });
        std::fs::write(path, serde_json::to_string_pretty(&all)?)?;
    }
    Ok(())
}

/// Times of a batch on each path, and what was expected of them.
fn measure(
    instances: &mut [Instance],
    files: &[&[u8]],
    kind: Kind,
    speeds: &Speeds,
    has_engines: bool,
    threads: usize,
) -> Result<Value> {
    let mut measured = HashMap::new();
    for ((name, path), instance) in PATHS.iter().zip(instances) {
        let (time, decoded) = time(instance, files)?;
        let alone = match path {
            Some(Path::Sm) => decoded.sms,
            Some(Path::Engines) => decoded.engine,
            Some(Path::Threads) => decoded.cpu,
            None => files.len(),
        };
        if alone == files.len() {
            measured.insert(*name, time.as_secs_f64() * 1e6);
        }
    }
    let candidate = |file: &&[u8]| Candidate {
        size: Size { bytes: file.len(), pixels: kind.pixels() },
        upload: 3 * kind.pixels(),
        engines: has_engines && Picture::read(file).is_some(),
        sms: Coded::read(file).map(|coded| SmNeed { scratch: 0, mcu_bits: coded.mcu_bits() }),
    };
    let candidates: Vec<Candidate> = files.iter().map(candidate).collect();
    let Predicted { engines, sms, threads: by_threads } = speeds.predict(&candidates, threads);
    let paths = assign(&candidates, threads, speeds, None);
    let chosen = match paths.as_slice() {
        all if all.iter().all(|path| *path == Path::Sm) => "sm",
        all if all.iter().all(|path| *path == Path::Engines) => "engines",
        all if all.iter().all(|path| *path == Path::Threads) => "threads",
        _ => "mixed",
    };
    let alone = measured.iter().filter(|(name, _)| **name != "auto");
    let best = alone.min_by(|a, b| a.1.total_cmp(b.1)).map_or("none", |(name, _)| *name);
    let (bytes, largest): (usize, usize) = (
        files.iter().map(|file| file.len()).sum(),
        files.iter().map(|file| file.len()).max().unwrap_or_default(),
    );
    let shown = |name: &str| measured.get(name).map_or("-".to_owned(), |time| format!("{time:.0}"));
    println!(
        "{:>9} {:>3} {:>4} {:>5} {bytes:>9} | {:>8} {:>8} {:>8} {:>8} |          {:>8.0} {:>8.0} | {best:7} {chosen:7}",
        format!("{}x{}", kind.size.0, kind.size.1),
        kind.quality,
        kind.sampling.0,
        files.len(),
        shown("sm"),
        shown("engines"),
        shown("threads"),
        shown("auto"),
        sms * 1e6,
        engines * 1e6,
    );
    Ok(json!({
        "width": kind.size.0, "height": kind.size.1, "quality": kind.quality, "sampling": kind.sampling.0,
        "batch": files.len(), "bytes": bytes, "largest": largest, "pixels": files.len() * kind.pixels(),
        "piece_bits": Speeds::longest_piece(&candidates), "measured_us": measured, "best": best, "chosen": chosen,
        "expected_us": { "engines": engines * 1e6, "sm": sms * 1e6, "threads": by_threads * 1e6 },
    }))
}

/// The median time of a batch, and where its images were decoded.
fn time(instance: &mut Instance, files: &[&[u8]]) -> Result<(Duration, Decoded)> {
    let mut once = || -> Result<(Duration, Decoded)> {
        let shapes = files.iter().map(|file| Shape::from([file.len()])).collect();
        let desc = BatchDesc::new(DType::U8, Layout::NONE, shapes);
        let input = Batch::new(desc, files.iter().map(|file| Sample::Borrowed(file)).collect())?;
        let start = Instant::now();
        let outcome = instance.run(files.len(), vec![input], &mut Keep)?;
        let elapsed = start.elapsed();
        match (0..files.len()).find_map(|i| outcome.failures.get(i)) {
            Some(error) => Err(error.to_string().into()),
            None => {
                drop(outcome);
                Ok((elapsed, instance.tally().decoded))
            }
        }
    };
    let (_, decoded) = once()?;
    let mut times = Vec::new();
    while times.len() < RUNS.start || times.len() < RUNS.end && times.iter().sum::<Duration>() < LONG_ENOUGH {
        times.push(once()?.0);
    }
    times.sort();
    Ok((times[times.len() / 2], decoded))
}

/// How far expectations are off, how often the best path was chosen, and what that costs.
fn summarize(cells: &[Value]) {
    let number = |cell: &Value, group: &str, name: &str| cell[group][name].as_f64();
    for name in ["sm", "engines", "threads"] {
        let off = |cell: &Value| {
            let (found, expected) = (number(cell, "measured_us", name)?, number(cell, "expected_us", name)?);
            Some((expected / found - 1.0) * 100.0)
        };
        let mut off: Vec<f64> = cells.iter().filter_map(off).collect();
        off.sort_by(f64::total_cmp);
        let at = |share: f64| {
            off.get((off.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
        };
        println!(
            "{name}: expected {:+.0} % of the time measured in the median, {:+.0} to {:+.0} % in nine cells of ten",
            at(0.5),
            at(0.05),
            at(0.95)
        );
    }
    let chosen = |cell: &Value| {
        let time = |which: &str| number(cell, "measured_us", cell[which].as_str()?);
        Some(time("chosen")? / time("best")?)
    };
    let near = cells.iter().filter_map(chosen).filter(|&times| times <= NEAR).count();
    let right = cells.iter().filter(|cell| cell["best"] == cell["chosen"]).count();
    let mut cost: Vec<f64> = cells
        .iter()
        .filter_map(|cell| {
            Some(number(cell, "measured_us", "auto")? / number(cell, "measured_us", cell["best"].as_str()?)?)
        })
        .collect();
    cost.sort_by(f64::total_cmp);
    let at = |share: f64| {
        cost.get((cost.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
    };
    println!(
        "{right} of {} cells chose the best single path, {near} it or one that takes at most {NEAR} times as long; a batch takes {:.2} times as long as on it in the median, {:.2} in the worst \
         tenth",
        cells.len(),
        at(0.5),
        at(0.9)
    );
}
