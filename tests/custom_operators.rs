//! Operators from a library: the example in C, built and loaded as a user does it. Pipelines with such operators cannot
//! be recorded, so recorded ones are given the operator's name in the place of another that is as long.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "common/recorded.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod recorded;
#[path = "common/skips.rs"]
mod skips;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use gesso::capi::library;
use gesso::gpu::Gpu;
use gesso::pipeline::{Keep, Pipeline};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Sample, Shape};
use recorded::{Array, Case, Folder, Recording};
use skips::{Needs, skip};

/// The example, built here, or where `GESSO_VIGNETTE` says; `None` without a compiler. It is loaded once.
fn is_loaded() -> bool {
    static LOADED: OnceLock<Option<Folder>> = OnceLock::new();
    let load = || {
        let folder = Folder::new("operators");
        let named = std::env::var_os("GESSO_VIGNETTE").map(PathBuf::from);
        let path = named.or_else(|| build(&folder))?;
        assert_eq!(library::load(&path).unwrap(), ["Vignette"]);
        assert_eq!(library::load(&path).unwrap(), ["Vignette"], "the second time");
        let copy = folder.path("libcopy.so");
        std::fs::copy(&path, &copy).unwrap();
        let error = library::load(&copy).unwrap_err().to_string();
        assert!(error.contains("there is an operator called `Vignette` already"), "{error}");
        Some(folder)
    };
    LOADED.get_or_init(load).is_some()
}

fn build(folder: &Folder) -> Option<PathBuf> {
    let root = recorded::root();
    let path = folder.path("libvignette.so");
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.arg("-I").arg(root.join("include")).arg(root.join("examples/c/vignette_operator.c"));
    command.arg("-o").arg(&path).args(["-ldl", "-lpthread"]);
    let Ok(output) = command.output() else {
        skip(Needs::Tool, "no cc here");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(path)
}

/// The recorded pipeline `name` with `Vignette` in the place of `Contrast`.
fn vignette(name: &str) -> Case {
    let mut case = Recording::open("brightness_contrast").case(name);
    for (from, to) in [(b"Contrast", b"Vignette"), (b"contrast", b"strength")] {
        // Not the end of `BrightnessContrast`.
        let is_word = |w: &[u8]| w[1..] == from[..] && !w[0].is_ascii_alphabetic();
        let places: Vec<usize> =
            case.pipeline.windows(9).enumerate().filter(|(_, w)| is_word(w)).map(|(i, _)| i + 1).collect();
        for place in places {
            case.pipeline[place..place + 8].copy_from_slice(to);
        }
    }
    case
}

fn load_error(pipeline: &[u8]) -> String {
    Pipeline::load(pipeline, Device::Cpu).err().map(|error| error.to_string()).unwrap_or_default()
}

/// What the pipeline answers: for each output the samples, or what failed; on the host's memory.
fn run(case: &Case, gpu: Option<&Arc<Gpu>>) -> Vec<Vec<Result<Vec<u8>, String>>> {
    let pipeline = match gpu {
        Some(_) => Pipeline::load_moved_to_device(&case.pipeline).unwrap(),
        None => Pipeline::load(&case.pipeline, Device::Cpu).unwrap(),
    };
    let mut instance = pipeline.instance(Some(2), gpu).unwrap();
    let inputs = pipeline.inputs().iter().map(|input| {
        let samples = &case.inputs[&input.name];
        let dtype = if samples[0].dtype == "uint8" { DType::U8 } else { DType::F32 };
        let shapes = samples.iter().map(|sample| Shape::new(sample.shape.clone())).collect();
        let parts = samples.iter().map(|sample| Sample::Borrowed(&sample.bytes)).collect();
        Batch::new(BatchDesc::new(dtype, input.layout, shapes), parts).unwrap()
    });
    let inputs = inputs.collect();
    let outcome = instance.run(case.inputs["X"].len(), inputs, &mut Keep).unwrap();
    let made = outcome.outputs.iter().map(|output| {
        let output = instance.to_host(output).unwrap();
        let sample = |i| match outcome.failures.get(i) {
            Some(error) => Err(error.to_string()),
            None => Ok(output.view(i).bytes.to_vec()),
        };
        (0..output.len()).map(sample).collect()
    });
    made.collect()
}

/// What the operator's formula says.
fn darkened(image: &Array, strength: f32) -> Vec<u8> {
    let [.., height, width, channels] = image.shape.as_slice() else { return Vec::new() };
    let (half_height, half_width) = (*height as f32 / 2.0, *width as f32 / 2.0);
    let corner = half_height * half_height + half_width * half_width;
    let pixel = |(i, &value): (usize, &u8)| {
        let (y, x) = (i / channels / width % height, i / channels % width);
        let (dy, dx) = (y as f32 + 0.5 - half_height, x as f32 + 0.5 - half_width);
        (f32::from(value) * (1.0 - strength * (dy * dy + dx * dx) / corner) + 0.5) as u8
    };
    image.bytes.iter().enumerate().map(pixel).collect()
}

fn is_near(found: &[u8], expected: &[u8]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= 1)
}

/// Both outputs of a pipeline of which the first is DALI's.
fn check_frames(gpu: Option<&Arc<Gpu>>) {
    let case = vignette("frames");
    let made = run(&case, gpu);
    for (i, image) in case.inputs["X"].iter().enumerate() {
        assert!(
            is_near(made[0][i].as_ref().unwrap(), &case.outputs[0][i].bytes),
            "the other operator's answer"
        );
        let expected = darkened(image, 0.3);
        assert!(expected != image.bytes && is_near(made[1][i].as_ref().unwrap(), &expected), "sample {i}");
    }
}

#[test]
fn an_operator_of_a_library_runs_among_ours() {
    if is_loaded() {
        check_frames(None);
    }
}

#[test]
fn it_runs_on_a_gpu() {
    if !is_loaded() {
        return;
    }
    match Gpu::open(0) {
        Ok(gpu) => check_frames(Some(&gpu)),
        Err(error) => skip(Needs::Gpu, format_args!("no GPU ({error})")),
    }
}

#[test]
fn a_tensor_feeds_its_argument_and_a_wrong_one_fails_its_sample() {
    if !is_loaded() {
        return;
    }
    let case = vignette("contrast_per_sample");
    let made = run(&case, None);
    for (i, strength) in [0.5, 1.0].into_iter().enumerate() {
        assert!(
            is_near(made[0][i].as_ref().unwrap(), &darkened(&case.inputs["X"][i], strength)),
            "sample {i}"
        );
    }
    let error = made[0][2].as_ref().unwrap_err();
    assert!(error.contains("Vignette") && error.contains("`strength` is outside of 0 to 1"), "{error}");
}

#[test]
fn what_it_refuses_fails_the_load() {
    if !is_loaded() {
        return;
    }
    let error = load_error(&vignette("each_alone").pipeline);
    assert!(error.contains("operator `Vignette`") && error.contains("outside of 0 to 1"), "{error}");
    // The argument that the operator does not have: the only value within its range.
    let mut case = vignette("each_alone");
    let place = case.pipeline.windows(4).position(|w| w == 2.5f32.to_le_bytes()).unwrap();
    case.pipeline[place..place + 4].copy_from_slice(&0.5f32.to_le_bytes());
    let error = load_error(&case.pipeline);
    assert!(error.contains("argument `strength_center` is not supported by operator `Vignette`"), "{error}");
}

#[test]
fn a_file_that_is_no_such_library_is_refused() {
    let folder = Folder::new("no_operators");
    let error = |path: &Path| library::load(path).unwrap_err().to_string();
    let missing = error(&folder.path("missing.so"));
    assert!(missing.contains("missing.so") && missing.contains("cannot open"), "{missing}");
    folder.write("text.so", b"no library");
    assert!(error(&folder.path("text.so")).contains("text.so"));
    let other = error(Path::new("libm.so.6"));
    assert!(other.contains("exports no `gesso_operators`"), "{other}");
}
