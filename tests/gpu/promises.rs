//! What ARCHITECTURE.md promises of a batch: few uploads, no download of what stays on the device, one wait; that a
//! fused operator computes what the two do; that memory stays for the next batch and comes back after the last.

use std::num::NonZeroUsize;
use std::sync::Arc;

use gesso::gpu::jpeg::Path;
use gesso::gpu::{Allowance, Counters, DeviceBuffer, Gpu, Recorder};
use gesso::pipeline::{Instance, Keep, Pipeline, Preferences};
use gesso::tensor::{Batch, BatchDesc, DType, Layout, Sample, Shape};

use crate::pictures::Recipe;
use crate::{gpu, gpu_alone};

/// JPEG, resize to 224 x 224, crop, mirror, normalize: the file of the benchmark.
pub(crate) const PIPELINE: &[u8] = include_bytes!("../../benches/pipeline.dali");

/// JPEGs of several sizes and subsamplings.
pub(crate) fn photos() -> Vec<Vec<u8>> {
    use turbojpeg::{Image, PixelFormat, Subsamp};
    let sizes = [(500, 375), (64, 48), (333, 500), (1920, 1080), (17, 31)];
    let subsampling = [Subsamp::Sub2x2, Subsamp::None, Subsamp::Sub2x1, Subsamp::Sub2x2, Subsamp::Gray];
    let photo = |((width, height), subsampling): ((usize, usize), Subsamp)| {
        let pixel = |i: usize| {
            let (x, y, c) = (i / 3 % width, i / 3 / width, i % 3);
            (128.0 + 90.0 * ((x * (c + 1)) as f64 * 0.021).sin() * ((y + 40 * c) as f64 * 0.013).cos()) as u8
        };
        let pixels: Vec<u8> = (0..width * height * 3).map(pixel).collect();
        let image = Image { pixels: &pixels[..], width, pitch: width * 3, height, format: PixelFormat::RGB };
        turbojpeg::compress(image, 90, subsampling).unwrap().to_vec()
    };
    sizes.into_iter().zip(subsampling).map(photo).collect()
}

pub(crate) fn encoded<'r, F: AsRef<[u8]> + ?Sized + 'r>(files: impl IntoIterator<Item = &'r F>) -> Batch<'r> {
    let files: Vec<&[u8]> = files.into_iter().map(AsRef::as_ref).collect();
    let shapes = files.iter().map(|file| Shape::from([file.len()])).collect();
    Batch::new(
        BatchDesc::new(DType::U8, Layout::NONE, shapes),
        files.into_iter().map(Sample::Borrowed).collect(),
    )
    .unwrap()
}

fn instance(gpu: &Arc<Gpu>, jpeg_path: Option<Path>) -> Instance {
    let pipeline = Pipeline::load_moved_to_device(PIPELINE).unwrap();
    pipeline.instance_with(Some(4), Some(gpu), &Preferences { jpeg_path, ..Preferences::default() }).unwrap()
}

#[test]
fn a_batch_is_few_uploads_and_one_wait() {
    let Some(gpu) = gpu() else { return };
    let photos = photos();
    // Resize and normalize are one launch, behind that of their weights; images that the host decoded are one more,
    // those to be turned another, and those of the SMs seven.
    for (path, most) in
        [(None, 11), (Some(Path::Sm), 11), (Some(Path::Engines), 11), (Some(Path::Threads), 3)]
    {
        let mut instance = instance(&gpu, path);
        let mut counters = Counters::default();
        for _ in 0..3 {
            let batch: Vec<&Vec<u8>> = photos.iter().cycle().take(20).collect();
            let outcome = instance.run(20, vec![encoded(batch)], &mut Keep).unwrap();
            for i in 0..20 {
                assert!(outcome.failures.get(i).is_none(), "{}", outcome.failures.get(i).unwrap());
            }
            counters = instance.counters();
        }
        // Of a megabyte of files for the SMs the beginning goes up early: files, tables, and what is recorded behind
        // the decoder.
        assert!((1..=3).contains(&counters.uploads), "{path:?}: {counters:?}");
        let others = (counters.downloads, counters.waits);
        assert!(others == (0, 1) && counters.launches <= most, "{path:?}: {counters:?}");
    }
}

/// Below a megabyte nothing goes up early.
#[test]
fn a_small_batch_is_one_upload() {
    let Some(gpu) = gpu() else { return };
    let small = &photos()[1];
    for path in [None, Some(Path::Sm), Some(Path::Engines), Some(Path::Threads)] {
        let mut instance = instance(&gpu, path);
        let mut counters = Counters::default();
        for _ in 0..3 {
            instance.run(2, vec![encoded([small, small])], &mut Keep).unwrap();
            counters = instance.counters();
        }
        assert_eq!((counters.uploads, counters.downloads, counters.waits), (1, 0, 1), "{path:?}");
    }
}

/// Pinning a megabyte takes as long as decoding many small files.
#[test]
fn batches_like_the_last_pin_no_memory() {
    let Some(gpu) = gpu() else { return };
    let recipe =
        |seed| Recipe { quality: 50, ..Recipe::new(224, 224, turbojpeg::Subsamp::Sub2x2, seed) }.jpeg();
    let files: Vec<Vec<u8>> = (0..8).map(recipe).collect();
    for path in [Path::Sm, Path::Engines, Path::Threads] {
        let mut instance = instance(&gpu, Some(path));
        for count in [1, 16, 32, 64, 128] {
            let mut counters = Counters::default();
            // What is left after the first is enough.
            for _ in 0..3 {
                let outcome =
                    instance.run(count, vec![encoded(files.iter().cycle().take(count))], &mut Keep).unwrap();
                assert!((0..count).all(|i| outcome.failures.get(i).is_none()));
                counters = instance.counters();
            }
            assert_eq!(counters.pinned, 0, "{count} files on {path:?}: {counters:?}");
        }
    }
}

#[test]
fn memory_comes_back_when_instances_go() {
    let Some(gpu) = gpu_alone() else { return };
    let photos = photos();
    let mut after = Vec::new();
    for round in 0..12 {
        let mut instance = instance(&gpu, None);
        instance.run(photos.len(), vec![encoded(&photos)], &mut Keep).unwrap();
        drop(instance);
        if round % 4 == 3 {
            after.push(gpu.memory().unwrap().0);
        }
    }
    let lost = after[0].saturating_sub(after[2]);
    // Eight instances went meanwhile: half a megabyte of each would be too much.
    assert!(lost < 4 << 20, "{lost} bytes of the device were not given back");
}

#[test]
fn a_ceiling_for_memory_is_kept() {
    if gpu().is_none() {
        return;
    }
    const MOST: usize = 64 << 20;
    let gpu =
        Gpu::open_within(0, Allowance { memory: NonZeroUsize::new(MOST), ..Default::default() }).unwrap();
    let stream = gpu.stream().unwrap();
    let half = DeviceBuffer::new(&stream, MOST / 2).unwrap();
    let error = DeviceBuffer::new(&stream, MOST).err().unwrap().to_string();
    assert!(error.contains("within a limit of 67108864 in all"), "{error}");
    drop(half);
    DeviceBuffer::new(&stream, MOST / 2).unwrap();
}

#[test]
fn what_landed_in_the_middle_of_a_batch_is_there_at_its_end() {
    let Some(gpu) = gpu() else { return };
    let mut recorder = Recorder::new(&gpu).unwrap();
    let first = recorder.stage(&[7; 100]).unwrap();
    let early = recorder.download(&first);
    assert_eq!(recorder.flush(&[first]).unwrap(), [[7; 100]]);
    // More than there was room for until now.
    let large = recorder.stage(&[9; 1 << 20]).unwrap();
    let late = recorder.download(&large);
    recorder.submit().unwrap();
    recorder.wait().unwrap();
    assert_eq!(recorder.downloaded(early), [7; 100]);
    assert!(recorder.downloaded(late).iter().all(|&byte| byte == 9));
}
