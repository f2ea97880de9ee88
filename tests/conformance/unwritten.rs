//! No answer has a byte that nobody wrote. Every recorded pipeline runs in two processes whose memory is filled with
//! another byte each before anybody gets it, that of our pools and that of the C library: what differs between them is
//! what was in memory before, perhaps another client's. So do damaged files, which decoders of others may leave half
//! decoded, and those that the fuzzers keep.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gesso::gpu::{self, Gpu};
use gesso::memory::fill_with;
use gesso::pipeline::{Instance, JpegPath as Path, Keep, Pipeline, Preferences};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Sample, Shape};

use crate::recording::{Case, Recording, dtype, folder, recordings};
use crate::skips::{Needs, skip};

/// Names the variable that tells the process of its own what to fill memory with, and that which says where its answers
/// go.
const PATTERN: &str = "GESSO_TEST_PATTERN";
const ANSWERS: &str = "GESSO_TEST_ANSWERS";

/// Every bit differs, and no float is one that is common.
const PATTERNS: [u8; 2] = [0x5A, 0xA5];

/// In how many ways encoded files are damaged; every third one is cut off.
const WAYS: u64 = 12;

/// Files below are no encoded ones, and larger ones take long.
const ENCODED: std::ops::Range<usize> = 200..60_000;

/// A device, and what decodes JPEGs there: left to itself it chooses by load, and answers differ by a level.
type Place<'g> = Option<(&'g Arc<Gpu>, Path)>;

/// `file` with a few bytes changed, or cut off.
fn damaged(file: &[u8], seed: u64) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as usize % end.max(1)
    };
    let mut file = file.to_vec();
    if seed.is_multiple_of(3) {
        file.truncate(file.len() / 2 + below(file.len() / 2));
        return file;
    }
    for _ in 0..1 + below(4) {
        // Headers have little in which damage goes unnoticed.
        let at = file.len() / 8 + below(file.len() - file.len() / 8);
        file[at] ^= 1 << below(8);
    }
    file
}

/// The pipeline of a case, and an instance of it.
fn planned(recording: &Recording, case: &Case, place: Place<'_>) -> Option<(Pipeline, Instance)> {
    let gpu = place.map(|(gpu, _)| gpu);
    let bytes = recording.bytes(&case.pipeline);
    let pipeline = match gpu {
        None => Pipeline::load(bytes, Device::Cpu),
        Some(_) if case.name.ends_with("_made_for_gpu") => Pipeline::load(bytes, Device::Gpu),
        Some(_) => Pipeline::load_moved_to_device(bytes),
    };
    let pipeline = pipeline.ok()?;
    let preferences = Preferences { jpeg_path: place.map(|(_, path)| path), ..Preferences::default() };
    let instance = pipeline.instance_with(Some(2), gpu, &preferences).ok()?;
    Some((pipeline, instance))
}

/// What a case makes of its inputs, damaged by a seed: a number for each sample.
fn answer(
    (recording, case): (&Recording, &Case),
    (pipeline, instance): &mut (Pipeline, Instance),
    seed: Option<u64>,
) -> Option<String> {
    let mut encoded = 0;
    let mut inputs = Vec::new();
    let mut memory = Vec::new();
    for input in pipeline.inputs() {
        let samples = &case.inputs[&input.name];
        let mut shapes = Vec::new();
        for (i, sample) in samples.iter().enumerate() {
            let mut given = recording.bytes(sample).to_vec();
            if let Some(seed) = seed.filter(|_| {
                sample.dtype == "uint8" && sample.shape.len() == 1 && ENCODED.contains(&given.len())
            }) {
                encoded += 1;
                given = damaged(&given, seed + WAYS * i as u64);
            }
            let shape = if sample.shape.len() == 1 && sample.dtype == "uint8" {
                Shape::from([given.len()])
            } else {
                Shape::new(sample.shape.clone())
            };
            shapes.push(shape);
            memory.push((crate::align(&given), given.len()));
        }
        inputs.push(BatchDesc::new(dtype(&samples[0]), input.layout, shapes));
    }
    if seed.is_some() && encoded == 0 {
        return None;
    }
    let mut memory = memory.iter();
    let batches = inputs.into_iter().map(|desc| {
        let samples = memory.by_ref().take(desc.shapes.len());
        let samples = samples
            .map(|(words, length)| Sample::Borrowed(&bytemuck::cast_slice::<u64, u8>(words)[..*length]));
        Batch::new(desc, samples.collect()).unwrap()
    });
    let batches: Vec<Batch<'_>> = batches.collect();
    Some(ran(instance, case.outputs[0].len(), batches))
}

/// A number for each sample of each output, or why there is none.
fn ran(instance: &mut Instance, samples: usize, batches: Vec<Batch<'_>>) -> String {
    let mut line = String::new();
    match instance.run(samples, batches, &mut Keep) {
        Err(error) => write!(line, "{error}").unwrap(),
        Ok(outcome) => {
            for output in &outcome.outputs {
                let output = instance.to_host(output).unwrap();
                for i in 0..output.len() {
                    match outcome.failures.get(i) {
                        Some(error) => write!(line, " {error}").unwrap(),
                        None => {
                            let view = output.view(i);
                            let mut hasher = DefaultHasher::new();
                            (view.bytes, &view.shape[..]).hash(&mut hasher);
                            write!(line, " {:x}", hasher.finish()).unwrap();
                        }
                    }
                }
            }
        }
    }
    line.replace('\n', " ")
}

/// Where damaged files of the fuzzers lie, and a recorded pipeline that decodes such.
const CORPORA: [(&str, &str, &str); 4] = [
    ("image", "decoders_image", "colours"),
    ("device_jpeg", "decoders_image", "colours"),
    ("sound", "decoders_audio", "w64_pcm_16_file"),
    ("video", "decoders_video", "all_of_vp9"),
];

/// What is made of the files of the fuzzers, a line for each.
fn of_corpora(place: Place<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (corpus, recording, name) in CORPORA {
        let recording = Recording::open(&folder(&format!("conformance/data/{recording}.zip")));
        let case = recording.index.cases.iter().find(|case| case.name == name).unwrap();
        let Some((pipeline, mut instance)) = planned(&recording, case, place) else { continue };
        let input = pipeline.inputs().first().unwrap();
        let mut paths: Vec<_> =
            std::fs::read_dir(folder(&format!("fuzz/corpus/{corpus}"))).unwrap().collect();
        paths.sort_by_key(|entry| entry.as_ref().unwrap().path());
        for path in paths {
            let path = path.unwrap().path();
            let file = std::fs::read(&path).unwrap();
            let desc = BatchDesc::new(DType::U8, input.layout, vec![Shape::from([file.len()])]);
            let batch = Batch::new(desc, vec![Sample::Borrowed(&file)]).unwrap();
            let line = ran(&mut instance, 1, vec![batch]);
            lines.push(format!("{corpus} {}:{line}", path.file_name().unwrap().display()));
        }
    }
    lines
}

/// What all cases make of whole and damaged inputs, a line for each.
fn answers(place: Place<'_>) -> Vec<String> {
    let recordings: Vec<_> = recordings().into_iter().map(|file| (Recording::open(&file), file)).collect();
    let cases = recordings.iter().flat_map(|(recording, file)| {
        let name = file.file_stem().unwrap().to_string_lossy();
        recording.index.cases.iter().map(move |case| (recording, name.clone(), case))
    });
    let cases: Vec<_> = cases.collect();
    // Threads take the next case when they are done with one: on a device, most of the time goes into compiling
    // kernels.
    let (next, answers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((recording, name, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let seeds = [None].into_iter().chain((0..WAYS).map(Some));
                    let Some(mut planned) = planned(recording, case, place) else { continue };
                    let lines = seeds.filter_map(|seed| {
                        let line = answer((recording, case), &mut planned, seed)?;
                        Some(format!("{name}.{}, damage {seed:?}:{line}", case.name))
                    });
                    let lines: Vec<String> = lines.collect();
                    answers.lock().unwrap().extend(lines);
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap();
    answers.sort();
    answers.extend(of_corpora(place));
    answers
}

/// Runs as a process of its own; else there is nothing to do.
#[test]
fn in_a_process_of_its_own() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(pattern), Some(path)) = (variable(PATTERN), variable(ANSWERS)) else { return };
    fill_with(Some(pattern.parse().unwrap()));
    std::env::set_current_dir(std::env::temp_dir()).unwrap();
    std::fs::write(path, answers(None).join("\n")).unwrap();
}

fn assert_equal([one, other]: [Vec<String>; 2]) {
    assert_eq!(one.len(), other.len());
    let differing: Vec<&String> = one.iter().zip(&other).filter(|(a, b)| a != b).map(|(a, _)| a).collect();
    println!("{} answers in two kinds of memory, {} differ", one.len(), differing.len());
    assert!(one.len() > 1_000, "{} answers", one.len());
    let shown: Vec<&str> = differing.iter().take(20).map(|line| line.as_str()).collect();
    assert!(differing.is_empty(), "{} of {} differ:\n{}", differing.len(), one.len(), shown.join("\n"));
}

#[test]
fn no_answer_holds_what_was_in_memory_before() {
    // Two processes, so that what the C library gives away is filled as well, with the bits turned.
    assert_equal(PATTERNS.map(|pattern| {
        let name = format!("gesso-unwritten-{}-{pattern}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "unwritten::in_a_process_of_its_own", "--nocapture"]);
        command.env(PATTERN, pattern.to_string()).env(ANSWERS, &path);
        command.env("MALLOC_PERTURB_", pattern.to_string());
        let ended = command.output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let answers = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        answers.lines().map(str::to_owned).collect()
    }));
}

/// Fills the memory of everybody in the process: it must run alone.
#[test]
fn no_answer_holds_what_was_in_the_memory_of_a_device_before() {
    if let Err(error) = gpu::devices() {
        return skip(Needs::Gpu, format_args!("no GPU: {error}"));
    }
    // One device for all, so that its kernels are compiled once.
    let gpu = Gpu::open(0).unwrap();
    let answers = PATTERNS.map(|pattern| {
        fill_with(Some(pattern));
        [Path::Engines, Path::Sm].into_iter().flat_map(|path| answers(Some((&gpu, path)))).collect()
    });
    fill_with(None);
    assert_equal(answers);
}
