//! A fused plan computes what the plan without fusion does, bit for bit.

use std::num::NonZeroUsize;
use std::sync::Arc;

use gesso::executor::{Executor, Keep};
use gesso::gpu::jpeg::Path;
use gesso::gpu::{Allowance, Gpu};
use gesso::graph::import::PipelineFile;
use gesso::graph::{Graph, Plan};
use gesso::operator::{Failures, Preferences};
use gesso::tensor::Device;

use crate::coder::{Recipe, damaged};
use crate::gpu;
use crate::promises::{PIPELINE, encoded, photos};

/// What a plan makes of files: bytes of each, or why there are none.
type Made = Vec<Result<Vec<u8>, String>>;

fn graph() -> Graph {
    PipelineFile::parse(PIPELINE).unwrap().moved_to_device().graph(Device::Gpu).unwrap()
}

/// Decoders whose images are resized, with what the three or two are called: smooth chroma, a part of each image, a
/// random part.
const RESIZED: [(&str, &str, &[u8]); 3] = [
    ("resized_smooth", "decoders__Image + Resize", include_bytes!("data/resized_smooth.dali")),
    ("resized_crop", "decoders__ImageCrop + Resize", include_bytes!("data/resized_crop.dali")),
    (
        "resized_random",
        "decoders__ImageRandomCrop + Resize + CropMirrorNormalize",
        include_bytes!("data/resized_random.dali"),
    ),
];

/// What `plan` makes of `files`.
fn run(gpu: &Arc<Gpu>, plan: Plan, files: &[Vec<u8>], jpeg_path: Option<Path>) -> Made {
    let preferences = Preferences { jpeg_path, ..Preferences::default() };
    let mut executor = Executor::new(Arc::new(plan), 4, Some(gpu), &preferences).unwrap();
    let outcome = executor.run(0, Failures::none(files.len()), vec![encoded(files)], &mut Keep).unwrap();
    let output = executor.to_host(&outcome.outputs[0]).unwrap();
    let sample = |i| match outcome.failures.get(i) {
        Some(error) => Err(error.to_string()),
        None => Ok(output.view(i).bytes.to_vec()),
    };
    (0..files.len()).map(sample).collect()
}

/// What the plans with and without fusion make of `files`.
fn both(gpu: &Arc<Gpu>, files: &[Vec<u8>], jpeg_path: Option<Path>) -> [Made; 2] {
    let (fused, unfused) = (Plan::new(graph()).unwrap(), Plan::unfused(graph()).unwrap());
    let names = |plan: &Plan| plan.graph.nodes.iter().map(Graph::op_name).collect::<Vec<_>>();
    assert!(names(&fused).contains(&"decoders__Image + Resize + CropMirrorNormalize"), "{:?}", names(&fused));
    assert!(names(&unfused).contains(&"CropMirrorNormalize"), "{:?}", names(&unfused));
    [fused, unfused].map(|plan| run(gpu, plan, files, jpeg_path))
}

fn random_files(side: usize, count: u64) -> Vec<Vec<u8>> {
    let file = |seed: u64| {
        let file = Recipe::random(seed, side).encode().file;
        if seed.is_multiple_of(5) { damaged(&file, seed) } else { file }
    };
    (0..count).map(file).collect()
}

#[test]
fn resize_and_normalize_in_one_kernel_equal_the_two() {
    let Some(gpu) = gpu() else { return };
    let [fused, unfused] = both(&gpu, &photos(), None);
    assert!(fused[0].as_ref().unwrap().iter().any(|&byte| byte != 0));
    assert!(fused == unfused);
}

/// Fused, the SMs leave samples and the resize makes pixels of them; unfused, the SMs make pixels.
#[test]
fn a_resize_reads_planes_as_it_reads_pixels() {
    let Some(gpu) = gpu() else { return };
    for (side, count) in [(60, 300), (700, 60)] {
        let files = random_files(side, count);
        let [fused, unfused] = both(&gpu, &files, Some(Path::Sm));
        let failed = fused.iter().filter(|sample| sample.is_err()).count();
        println!("{failed} of {count} files of up to {side} pixels fail");
        assert!(failed < files.len() / 5);
        for (i, (fused, unfused)) in fused.iter().zip(&unfused).enumerate() {
            assert!(
                fused == unfused,
                "file {i} of up to {side} pixels: {:?}, {:?}",
                fused.as_ref().err(),
                unfused.as_ref().err()
            );
        }
    }
}

/// Images that cannot be left as planes have memory of a group; so do those that are turned, and beside them are some
/// that the host decodes.
#[test]
fn what_is_read_as_it_is_decoded_is_read_right() {
    let Some(gpu) = gpu() else { return };
    // The largest of the files is one group there.
    let small =
        Gpu::open_within(0, Allowance { memory: NonZeroUsize::new(1 << 30), ..Default::default() }).unwrap();
    let mut files = random_files(400, 150);
    files.extend(photos());
    files.push(b"no image".to_vec());
    // Engines make of damaged data what they had in memory.
    let whole: Vec<_> = (0..files.len()).filter(|i| i % 5 != 0).map(|i| files[i].clone()).collect();
    for (name, fusion, file) in RESIZED {
        let graph = || PipelineFile::parse(file).unwrap().graph(Device::Gpu).unwrap();
        let plan = Plan::new(graph()).unwrap();
        let names: Vec<_> = plan.graph.nodes.iter().map(Graph::op_name).collect();
        assert!(names.contains(&fusion), "{name}: {names:?}");
        for (path, files) in [(Path::Sm, &files), (Path::Engines, &whole), (Path::Threads, &files)] {
            let path = Some(path);
            let expected = run(&gpu, Plan::unfused(graph()).unwrap(), files, path);
            assert!(expected.iter().filter(|sample| sample.is_ok()).count() > files.len() / 2, "{name}");
            for gpu in [&gpu, &small] {
                let found = run(gpu, Plan::new(graph()).unwrap(), files, path);
                for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let same = match (found, expected) {
                        (Ok(found), Ok(expected)) => found == expected,
                        (Err(found), Err(expected)) => {
                            let cause = |text: &str| text.rsplit(": ").next().map(str::to_owned);
                            cause(found) == cause(expected)
                        }
                        _ => false,
                    };
                    let errors = (found.as_ref().err(), expected.as_ref().err());
                    assert!(same, "{name} {path:?}: file {i}, {errors:?}");
                }
            }
        }
    }
}

#[test]
fn a_part_of_the_multiprocessors_makes_what_all_make() {
    let Some(gpu) = gpu() else { return };
    let few = Allowance { multiprocessors: NonZeroUsize::new(8), ..Default::default() };
    let part = Gpu::open_within(0, few).unwrap();
    assert!((8..gpu.multiprocessors()).contains(&part.multiprocessors()), "{}", part.multiprocessors());
    let mut files = random_files(400, 100);
    files.extend(photos());
    // Engines make of damaged data what they had in memory.
    let whole: Vec<_> = (0..files.len()).filter(|i| i % 5 != 0).map(|i| files[i].clone()).collect();
    for (path, files) in [(Path::Sm, &files), (Path::Engines, &whole), (Path::Threads, &files)] {
        let [all, few] = [&gpu, &part].map(|gpu| run(gpu, Plan::new(graph()).unwrap(), files, Some(path)));
        assert!(all == few, "{path:?}");
    }
}

/// The SMs' memory has room for a few of the files at a time.
#[test]
fn a_batch_that_a_device_has_no_memory_for_at_once_is_decoded_in_groups() {
    let Some(gpu) = gpu() else { return };
    let files = random_files(700, 200);
    let on = |gpu: &Arc<Gpu>| run(gpu, Plan::new(graph()).unwrap(), &files, Some(Path::Sm));
    let expected = on(&gpu);
    for most in [384 << 20, 640 << 20] {
        let small =
            Gpu::open_within(0, Allowance { memory: NonZeroUsize::new(most), ..Default::default() }).unwrap();
        for (i, (found, expected)) in on(&small).iter().zip(&expected).enumerate() {
            assert!(found == expected, "file {i} within {most} bytes: {:?}", found.as_ref().err());
        }
    }
}
