//! Every operator against the recorded answers of real DALI: see `record.py` for how they were made. One test body for
//! all operators; a case is a pipeline, its inputs and DALI's outputs.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod author;
mod batches;
mod changing;
mod recording;
#[path = "../common/skips.rs"]
mod skips;
mod streams;
mod tolerance;
mod unwritten;
mod upsampled;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use gesso::cpu::convert::ConvertSat;
use gesso::gpu::{self, Gpu};
use gesso::pipeline::{Keep, Pipeline};
use gesso::tensor::{Batch, BatchDesc, Device, Element, Sample, Shape, View};
use gesso::{dispatch, operator, ops};
use recording::{ANSWERED_THERE, Case, Recording, dtype, folder, recordings, recordings_in};
use skips::{Needs, skip};
use tolerance::Tolerance;

/// Largest and mean difference of the outputs of a case.
#[derive(Debug, Default, Clone, Copy)]
struct Difference {
    largest: f64,
    mean: f64,
    /// Seconds to load the pipeline, and to run the batch.
    load: f64,
    run: f64,
}

/// Runs a case and returns what is wrong with it, if anything, and how it differs.
fn run(
    recording: &Recording,
    module: &str,
    case: &Case,
    gpu: Option<&Arc<Gpu>>,
) -> Result<Difference, String> {
    let bytes = recording.bytes(&case.pipeline);
    let begun = Instant::now();
    let pipeline = match gpu {
        None => Pipeline::load(bytes, Device::Cpu),
        Some(_) if case.name.ends_with("_made_for_gpu") => Pipeline::load(bytes, Device::Gpu),
        Some(_) => Pipeline::load_moved_to_device(bytes),
    }
    .map_err(|e| e.to_string())?;
    let load = begun.elapsed().as_secs_f64();
    let mut instance = pipeline.instance(Some(2), gpu).map_err(|e| e.to_string())?;
    // A vector of bytes may lie at an odd address: copy it to where every element type may be read.
    let aligned: BTreeMap<&str, Vec<Vec<u64>>> = case
        .inputs
        .iter()
        .map(|(name, samples)| (name.as_str(), samples.iter().map(|s| align(recording.bytes(s))).collect()))
        .collect();
    let batch_size = case.outputs[0].len();
    let inputs = pipeline
        .inputs()
        .iter()
        .map(|input| {
            let samples = &case.inputs[&input.name];
            let desc = BatchDesc::new(
                dtype(&samples[0]),
                input.layout,
                samples.iter().map(|s| Shape::new(s.shape.clone())).collect(),
            );
            let bytes = samples
                .iter()
                .zip(&aligned[input.name.as_str()])
                .map(|(s, words)| {
                    Sample::Borrowed(&bytemuck::cast_slice::<u64, u8>(words)[..recording.bytes(s).len()])
                })
                .collect();
            Batch::new(desc, bytes).unwrap()
        })
        .collect();
    let begun = Instant::now();
    let outcome = instance.run(batch_size, inputs, &mut Keep).map_err(|e| e.to_string())?;
    let run = begun.elapsed().as_secs_f64();
    if let Some(error) = (0..outcome.failures.len()).find_map(|i| outcome.failures.get(i)) {
        return Err(error.to_string());
    }
    let outputs: Vec<Batch<'_>> = outcome
        .outputs
        .iter()
        .map(|o| instance.to_host(o))
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    let mut total = Difference { load, run, ..Difference::default() };
    let samples = case.outputs.iter().map(Vec::len).sum::<usize>().max(1);
    for (k, expected) in case.outputs.iter().enumerate() {
        for (i, array) in expected.iter().enumerate() {
            let place = format!("output {k} sample {i}");
            let found = outputs[k].view(i);
            check_inferred(&pipeline.outputs()[k].ty, &found).map_err(|e| format!("{place}: {e}"))?;
            if found.dtype.name() != array.dtype || found.shape[..] != array.shape[..] {
                return Err(format!(
                    "{place}: {} {}, expected {} {:?}",
                    found.dtype, found.shape, array.dtype, array.shape
                ));
            }
            let expected = align(recording.bytes(array));
            let expected: &[u8] = &bytemuck::cast_slice(&expected)[..recording.bytes(array).len()];
            let expected = View { bytes: expected, ..found };
            let tolerance = match gpu {
                None => Tolerance::on_cpu(case),
                Some(_) => match module.strip_prefix(ANSWERED_THERE) {
                    Some(module) => Tolerance::of_devices(module, case, found.dtype),
                    None => Tolerance::on_device(module, case, found.dtype, peak(&expected)),
                },
            };
            let (max, mean) = difference(&found, &expected, tolerance.relative);
            if max > tolerance.largest || tolerance.mean.is_some_and(|limit| mean > limit) {
                return Err(format!("{place}: differs by at most {max}, on average {mean}"));
            }
            total.largest = total.largest.max(max);
            total.mean += mean / samples as f64;
        }
    }
    Ok(total)
}

/// The bytes where elements of any type may lie.
fn align(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// What was inferred at load must hold for every batch.
fn check_inferred(ty: &gesso::tensor::ValueType, found: &View<'_>) -> Result<(), String> {
    if ty.dtype.is_some_and(|dtype| dtype != found.dtype) {
        return Err(format!("inferred {:?}, found {}", ty.dtype, found.dtype));
    }
    if let Some(dims) = &ty.dims {
        let fits = dims.len() == found.shape.len()
            && dims.iter().zip(found.shape.iter()).all(|(d, &extent)| d.is_none_or(|d| d == extent));
        if !fits {
            return Err(format!("inferred {dims:?}, found {}", found.shape));
        }
    }
    Ok(())
}

/// The largest absolute value; infinite ones do not count.
fn peak(view: &View<'_>) -> f64 {
    fn of<T: Element + ConvertSat<f64>>(values: &[T]) -> f64 {
        let values = values.iter().map(|&value| value.convert_sat().abs());
        values.filter(|value| value.is_finite()).fold(0.0, f64::max)
    }
    dispatch!(view.dtype, T => of::<T>(view.as_slice().unwrap()))
}

/// Largest and mean absolute difference, less `relative` of the expected value; equal infinities and two NaN are no
/// difference.
fn difference(a: &View<'_>, b: &View<'_>, relative: f64) -> (f64, f64) {
    fn compare<T: Element + ConvertSat<f64>>(a: &[T], b: &[T], relative: f64) -> (f64, f64) {
        let mut max = 0.0f64;
        let mut sum = 0.0;
        for (a, b) in a.iter().zip(b).filter(|(a, b)| a != b) {
            let (a, b): (f64, f64) = (a.convert_sat(), b.convert_sat());
            // Integers that differ may be one number as float64.
            let d = if a.is_nan() && b.is_nan() { 0.0 } else { (a - b).abs().max(f64::MIN_POSITIVE) };
            let d = if relative > 0.0 { (d - relative * b.abs()).max(0.0) } else { d };
            max = if d.is_nan() { f64::INFINITY } else { max.max(d) };
            sum += d;
        }
        (max, sum / a.len().max(1) as f64)
    }
    dispatch!(a.dtype, T => compare::<T>(a.as_slice().unwrap(), b.as_slice().unwrap(), relative))
}

#[test]
fn every_recorded_case_agrees_with_dali() {
    compare_all(None);
}

#[test]
fn every_recorded_case_agrees_on_the_device() {
    if let Err(error) = gpu::devices() {
        return skip(Needs::Gpu, format_args!("no GPU: {error}"));
    }
    compare_all(Some(&Gpu::open(0).unwrap()));
}

/// The end of the names of cases to which DALI's operators on a device have another answer.
const ON_THE_HOST: &str = "_on_the_host";

/// Files made for a device, and others as if they were, can be planned for one where there is none.
#[test]
fn every_recorded_case_can_be_planned_for_a_device() {
    let mut wrong = Vec::new();
    for path in recordings() {
        let recording = Recording::open(&path);
        for case in &recording.index.cases {
            let bytes = recording.bytes(&case.pipeline);
            let made_for_it =
                case.name.ends_with("_made_for_gpu").then(|| Pipeline::load(bytes, Device::Gpu));
            for error in
                made_for_it.into_iter().chain([Pipeline::load_moved_to_device(bytes)]).filter_map(Result::err)
            {
                wrong.push(format!("{}: {error}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Hundreds of small operators, of which those on the device and those on the host take turns.
#[test]
fn automatic_augmentation_brings_nothing_back_from_a_device() {
    let path = recordings().into_iter().find(|path| path.ends_with("automatic.zip"));
    let Some(recording) = path.map(|path| Recording::open(&path)) else { return };
    let case = recording.index.cases.iter().find(|case| case.name == "of_photos_made_for_gpu").unwrap();
    let pipeline = Pipeline::load(recording.bytes(&case.pipeline), Device::Gpu).unwrap();
    assert_eq!(pipeline.warnings(), [""; 0]);
    assert_eq!(pipeline.output_device(0), Device::Gpu);
}

type Compared<'a> = (&'a str, &'a Case, Result<Difference, String>);

/// Runs all cases; results are in their order. A core takes the next when it is done with one: some cases compile many
/// kernels.
fn run_all<'a>(cases: &[(&'a str, &'a Recording, &'a Case)], gpu: Option<&Arc<Gpu>>) -> Vec<Compared<'a>> {
    let waiting = Mutex::new(cases.iter().enumerate());
    let next = || waiting.lock().unwrap().next();
    let work = || {
        let results = std::iter::from_fn(next);
        results
            .map(|(i, &(name, recording, case))| (i, (name, case, run(recording, name, case, gpu))))
            .collect()
    };
    // Not on rayon's threads: one that waits for an instance's threads would begin the next case on the same stack.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<(usize, Compared<'a>)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| -> Vec<_> { thread.join().unwrap() }).collect()
    });
    results.sort_by_key(|&(i, _)| i);
    results.into_iter().map(|(_, result)| result).collect()
}

fn compare_all(gpu: Option<&Arc<Gpu>>) {
    let open = |prefix: &str, paths: Vec<PathBuf>| -> Vec<(String, Recording)> {
        let name = |path: &Path| format!("{prefix}{}", path.file_stem().unwrap().to_string_lossy());
        paths.iter().map(|path| (name(path), Recording::open(path))).collect()
    };
    let mut recordings = open("", recordings());
    if gpu.is_some() && std::env::var_os("GESSO_RECORDINGS").is_none() {
        recordings.extend(open(ANSWERED_THERE, recordings_in(&folder("conformance/gpu"))));
    }
    // `DumpImage` writes where the process stands; everything else here is found by its whole path.
    std::env::set_current_dir(std::env::temp_dir()).unwrap();
    let cases: Vec<(&str, &Recording, &Case)> = recordings
        .iter()
        .flat_map(|(name, recording)| {
            recording.index.cases.iter().map(move |case| (name.as_str(), recording, case))
        })
        .filter(|(_, _, case)| gpu.is_none() || !case.name.ends_with(ON_THE_HOST))
        .collect();
    let results = run_all(&cases, gpu);
    for (name, recording) in &recordings {
        let of_name = results.iter().filter(|(of, _, _)| of == name);
        let largest =
            of_name.filter_map(|(_, _, result)| result.as_ref().ok()).fold(0.0f64, |a, b| a.max(b.largest));
        println!("{name}: {} cases, largest difference {largest}", recording.index.cases.len());
    }
    let wrong: Vec<String> = results
        .iter()
        .filter_map(|(name, case, result)| Some(format!("{name}.{}: {}", case.name, result.as_ref().err()?)))
        .collect();
    if let Some(path) = std::env::var_os("GESSO_REPORT") {
        let line = |(_, case, result): &Compared<'_>| {
            let found = result.as_ref().copied().unwrap_or_default();
            let line = serde_json::json!({
                "case": case.name,
                "error": result.as_ref().err(),
                "largest": found.largest.min(f64::MAX),
                "mean": found.mean.min(f64::MAX),
                "load": found.load,
                "run": found.run,
            });
            format!("{line}\n")
        };
        std::fs::write(path, results.iter().map(line).collect::<String>()).unwrap();
    }
    assert!(!results.is_empty());
    assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{}", wrong.len(), results.len(), wrong.join("\n"));
}

/// Files of DALI 1.23 to 2.0 load, and those of 2.4 are all others.
#[test]
fn files_of_older_versions_load() {
    let mut count = 0;
    for version in std::fs::read_dir(folder("data/versions")).unwrap() {
        for file in std::fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if let Err(error) = Pipeline::load(&std::fs::read(&path).unwrap(), Device::Cpu) {
                panic!("{}: {error}", path.display());
            }
            count += 1;
        }
    }
    assert_eq!(count, 14);
}

/// What draws numbers was recorded with a seed, or the answers could not be compared.
#[test]
fn pipelines_that_draw_numbers_from_a_seed_say_so() {
    let mut seen = [0, 0];
    for path in recordings() {
        let recording = Recording::open(&path);
        for case in &recording.index.cases {
            let Ok(pipeline) = Pipeline::load(recording.bytes(&case.pipeline), Device::Cpu) else { continue };
            let draws = |name: &String| {
                [
                    "random__",
                    "noise__",
                    "Random",
                    "ROIRandomCrop",
                    "segmentation__Random",
                    "BatchPermutation",
                    "SSDRandomCrop",
                    "Jitter",
                ]
                .iter()
                .any(|start| name.starts_with(start))
            };
            let draws =
                pipeline.operators().iter().any(|name| draws(name) || name == "decoders__ImageRandomCrop");
            assert_eq!(pipeline.is_seeded(), draws, "{}", case.name);
            seen[usize::from(draws)] += 1;
        }
    }
    assert!(seen[0] > 100 && seen[1] > 10, "{seen:?}");
}

/// An operator without a case is an operator that nobody compared.
#[test]
fn every_operator_has_cases() {
    let used: Vec<String> = recordings()
        .iter()
        .flat_map(|path| {
            let recording = Recording::open(path);
            let pipelines: Vec<Vec<u8>> =
                recording.index.cases.iter().map(|case| recording.bytes(&case.pipeline).to_vec()).collect();
            pipelines
        })
        .flat_map(|bytes| Pipeline::load(&bytes, Device::Cpu).map(|p| p.operators()).unwrap_or_default())
        .collect();
    // What runs on a GPU only is compared in `tests/gpu`, augmentations that DALI does not have with torchvision
    // (`tests/python/test_convert_training.py`), animations and encoders with Pillow (`test_animations.py` and
    // `test_encoders.py` there).
    let elsewhere = [
        "gesso__Augment",
        "gesso__Blur",
        "gesso__DecodeAnimation",
        "gesso__EncodeJpeg",
        "gesso__EncodePng",
        "gesso__EncodeWebp",
    ];
    let on_host = |op: &&&operator::OpDef| {
        !op.is_input && op.devices.contains(&Device::Cpu) && !elsewhere.contains(&op.name)
    };
    let operators = ops::OPS.iter().filter(on_host).map(|op| op.name);
    let missing: Vec<&str> = operators.filter(|name| !used.iter().any(|used| used == name)).collect();
    assert!(missing.is_empty(), "operators without a conformance case: {missing:?}");
}
