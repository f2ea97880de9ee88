//! Image decoders of device `mixed`: their outputs against the CPU decoder, one bad image among good ones, and what a
//! batch costs. The pipelines are from data/make.py.

use std::sync::Arc;

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder, ImageInfo, Window, output_shape, probe};
use gesso::error::Result;
use gesso::executor::OutputSink;
use gesso::gpu::Gpu;
use gesso::gpu::jpeg::sm::Coded;
use gesso::gpu::jpeg::{Path, Picture};
use gesso::operator::Failures;
use gesso::pipeline::{Instance, Pipeline, Preferences};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};
use turbojpeg::Subsamp;

use crate::gpu;
use crate::pictures::{Recipe, SAMPLINGS, turned};
use crate::promises::{PIPELINE, photos};

/// Mean difference in levels of images that are decoded on the device.
const MEAN: f64 = 0.25;

fn instance(gpu: Option<&Arc<Gpu>>, name: &str) -> Instance {
    instance_on(gpu, name, None)
}

/// An instance whose JPEGs are decoded on `jpeg_path`, as far as they can be.
pub(crate) fn instance_on(gpu: Option<&Arc<Gpu>>, name: &str, jpeg_path: Option<Path>) -> Instance {
    let file = std::fs::read(crate::file(&format!("tests/gpu/data/{name}.dali"))).unwrap();
    let device = if gpu.is_some() { Device::Gpu } else { Device::Cpu };
    let preferences = Preferences { jpeg_path, ..Preferences::default() };
    Pipeline::load(&file, device).unwrap().instance_with(Some(4), gpu, &preferences).unwrap()
}

/// Host memory for outputs, which lives until the process ends.
struct Memory;

impl OutputSink<'static> for Memory {
    fn allocate(
        &mut self,
        _: usize,
        desc: &BatchDesc,
        _: &Failures,
    ) -> Result<Vec<Option<&'static mut [u8]>>> {
        let buffer = |shape: &Shape| {
            let bytes = shape.bytes(desc.dtype.size())?;
            // Of words, so that elements of every type can be read.
            let words: &'static mut [u64] = vec![0x5A5A_5A5A_5A5A_5A5A; bytes.div_ceil(8)].leak();
            Ok(Some(&mut bytemuck::cast_slice_mut(words)[..bytes]))
        };
        desc.shapes.iter().map(buffer).collect()
    }
}

/// What became of each image: its shape and elements, or its error.
pub(crate) fn run(instance: &mut Instance, files: &[Vec<u8>]) -> Vec<Result<(Shape, Vec<f64>)>> {
    let files: Vec<&'static [u8]> = files.iter().map(|file| &*file.clone().leak()).collect();
    let shapes = files.iter().map(|file| Shape::from([file.len()])).collect();
    let desc = BatchDesc::new(DType::U8, Layout::NONE, shapes);
    let batch = Batch::new(desc, files.iter().map(|file| Sample::Borrowed(file)).collect()).unwrap();
    let outcome = instance.run(files.len(), vec![batch], &mut Memory).unwrap();
    let result = |i: usize| match outcome.failures.get(i) {
        Some(error) => Err(error.clone()),
        None => {
            let view = outcome.outputs[0].view(i);
            Ok((view.shape.clone(), numbers(view.bytes, view.dtype)))
        }
    };
    (0..files.len()).map(result).collect()
}

fn numbers(bytes: &[u8], dtype: DType) -> Vec<f64> {
    match dtype {
        DType::U8 => bytes.iter().map(|&v| f64::from(v)).collect(),
        DType::I16 => bytemuck::cast_slice::<u8, i16>(bytes).iter().map(|&v| f64::from(v)).collect(),
        DType::F32 => bytemuck::cast_slice::<u8, f32>(bytes).iter().map(|&v| f64::from(v)).collect(),
        other => panic!("no test reads {other}"),
    }
}

/// A pipeline and what it asks for.
struct Case {
    name: &'static str,
    options: DecodeOptions,
    window: fn(&ImageInfo) -> Option<Window>,
    /// One level in units of the output.
    level: f64,
    /// Whether no image is decoded by the engines.
    exact: bool,
}

fn cases() -> Vec<Case> {
    let plain = DecodeOptions { smooth_chroma: false, ..DecodeOptions::default() };
    let case = |name, options| Case { name, options, window: |_| None, level: 1.0, exact: false };
    let color = |color| DecodeOptions { color, ..plain };
    vec![
        case("rgb", plain),
        case("rgb_smooth", DecodeOptions::default()),
        case("rgb_as_stored", DecodeOptions { adjust_orientation: false, ..plain }),
        case("bgr_load", color(ColorSpace::Bgr)),
        case("gray", color(ColorSpace::Gray)),
        case("ycbcr", color(ColorSpace::YCbCr)),
        case("any", color(ColorSpace::Any)),
        Case { level: 1.0 / 255.0, ..case("rgb_float", DecodeOptions { dtype: DType::F32, ..plain }) },
        Case {
            level: 32767.0 / 255.0,
            ..case("gray_int16", DecodeOptions { dtype: DType::I16, ..color(ColorSpace::Gray) })
        },
        Case {
            window: |info| {
                let place = |at: f32, whole: usize, part: usize| {
                    (f64::from(at) * (whole as f64 - part as f64)).round() as usize
                };
                let (x, y) = (place(0.3, info.width, 61), place(0.9, info.height, 50));
                Some(Window { x, y, width: 61, height: 50 })
            },
            ..case("crop", plain)
        },
        Case {
            window: |info| {
                let end = |at: f32, whole: usize| f64::from(at * whole as f32).round() as usize;
                let (y, x) = (end(0.25, info.height), end(0.1, info.width));
                let (bottom, right) = (end(0.8, info.height), end(0.95, info.width));
                Some(Window { x, y, width: right - x, height: bottom - y })
            },
            ..case("slice_bgr", color(ColorSpace::Bgr))
        },
    ]
}

/// What the CPU decoder makes of `file`.
fn expected(case: &Case, file: &[u8]) -> Result<(Shape, Vec<f64>)> {
    let info = probe(file, case.options.adjust_orientation)?;
    let options = DecodeOptions { window: (case.window)(&info), ..case.options };
    let shape = Shape::from(output_shape(&info, &options));
    let bytes = shape.bytes(options.dtype.size())?;
    let mut words = vec![0u64; bytes.div_ceil(8)];
    let out = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes];
    Decoder::new().decode_into(file, &options, out)?;
    Ok((shape, numbers(out, options.dtype)))
}

fn check(case: &Case, label: &str, file: &[u8], found: &Result<(Shape, Vec<f64>)>, wrong: &mut Vec<String>) {
    let (found, wanted) = match (found, expected(case, file)) {
        (Ok(found), Ok(wanted)) => (found, wanted),
        (Err(found), Err(wanted)) if found.to_string().ends_with(&wanted.to_string()) => return,
        (found, wanted) => {
            let text = |result: &Result<(Shape, Vec<f64>)>| match result {
                Ok((shape, _)) => shape.to_string(),
                Err(error) => error.to_string(),
            };
            return wrong.push(format!("{} {label}: {}, expected {}", case.name, text(found), text(&wanted)));
        }
    };
    if found.0 != wanted.0 {
        return wrong.push(format!("{} {label}: shape {}, expected {}", case.name, found.0, wanted.0));
    }
    let sum: f64 = found.1.iter().zip(&wanted.1).map(|(a, b)| (a - b).abs()).sum();
    let mean = sum / found.1.len() as f64 / case.level;
    let on_device = Picture::read(file).is_some() || Coded::read(file).is_some();
    let limit = if case.exact || !on_device { 0.0 } else { MEAN };
    if mean.is_nan() || mean > limit {
        wrong.push(format!("{} {label}: mean difference {mean:.3} levels", case.name));
    }
}

/// Images of all kinds: those of the engines, turned ones, and those that are for the CPU decoder.
fn kinds() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (i, sampling) in SAMPLINGS.into_iter().enumerate() {
        let recipe = Recipe::new(131 + 20 * i, 97 + 10 * i, sampling, i as u32);
        files.push((format!("{sampling:?}"), recipe.jpeg()));
        files.push((format!("{sampling:?} turned"), turned(&recipe.jpeg(), 5 + i as u8 % 4)));
    }
    for orientation in 1..=8 {
        let file = Recipe::new(140, 90, Subsamp::Sub2x2, 40 + u32::from(orientation)).jpeg();
        files.push((format!("orientation {orientation}"), turned(&file, orientation)));
    }
    let recipe = Recipe::new(150, 110, Subsamp::Sub2x2, 77);
    files.push(("progressive".to_owned(), recipe.progressive()));
    files.push(("4:1:1".to_owned(), Recipe::new(150, 110, Subsamp::Sub4x1, 78).jpeg()));
    files.push(("progressive turned".to_owned(), turned(&recipe.progressive(), 6)));
    files.push(("inks".to_owned(), recipe.inks()));
    files.push(("small".to_owned(), Recipe::new(62, 80, Subsamp::Sub2x2, 1).jpeg()));
    let mut cut = recipe.jpeg();
    cut.truncate(cut.len() / 2);
    files.push(("truncated".to_owned(), cut));
    let mut bitmap = b"P6 100 70 255\n".to_vec();
    bitmap.extend(Recipe::new(100, 70, Subsamp::None, 9).pixels());
    files.push(("bitmap".to_owned(), bitmap));
    files.push(("no image".to_owned(), b"nothing that is an image".to_vec()));
    files
}

/// Without a device the same files run on the CPU, whose chroma is always smooth.
#[test]
fn the_same_pipelines_run_without_a_device() {
    let kinds = kinds();
    let files: Vec<Vec<u8>> = kinds.iter().map(|(_, file)| file.clone()).collect();
    let mut wrong = Vec::new();
    for case in cases() {
        let options = DecodeOptions { smooth_chroma: true, ..case.options };
        let case = Case { options, exact: true, ..case };
        let found = run(&mut instance(None, case.name), &files);
        for ((label, file), found) in kinds.iter().zip(&found) {
            check(&case, label, file, found, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kind_of_image_is_decoded_as_on_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let kinds = kinds();
    let files: Vec<Vec<u8>> = kinds.iter().map(|(_, file)| file.clone()).collect();
    let mut wrong = Vec::new();
    for case in cases() {
        let mut instance = instance(Some(&gpu), case.name);
        for round in 0..2 {
            let found = run(&mut instance, &files);
            for ((label, file), found) in kinds.iter().zip(&found) {
                check(&case, &format!("{label}, round {round}"), file, found, &mut wrong);
            }
        }
        let found = run(&mut instance_on(Some(&gpu), case.name, Some(Path::Sm)), &files);
        for ((label, file), found) in kinds.iter().zip(&found) {
            check(&case, &format!("{label} on the SMs"), file, found, &mut wrong);
        }
        for (label, file) in &kinds {
            let found = run(&mut instance, std::slice::from_ref(file)).remove(0);
            check(&case, &format!("{label} alone"), file, &found, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a resize behind the decoder makes smaller anyway may be decoded smaller, on either device.
#[test]
fn jpegs_are_decoded_smaller_for_a_resize_when_the_author_allows_it() {
    let mut files = photos();
    files.push(turned(&files[3], 6));
    let gpu = gpu();
    for gpu in std::iter::once(None).chain(gpu.as_ref().map(Some)) {
        let pipeline = match gpu {
            Some(_) => Pipeline::load_moved_to_device(PIPELINE),
            None => Pipeline::load(PIPELINE, Device::Cpu),
        };
        let pipeline = pipeline.unwrap();
        let [whole, scaled] = [false, true].map(|jpeg_scaled_decode| {
            let preferences =
                Preferences { jpeg_path: Some(Path::Sm), jpeg_scaled_decode, ..Preferences::default() };
            run(&mut pipeline.instance_with(Some(2), gpu, &preferences).unwrap(), &files)
        });
        for (i, (whole, scaled)) in whole.iter().zip(&scaled).enumerate() {
            let ((shape, whole), (other, scaled)) = (whole.as_ref().unwrap(), scaled.as_ref().unwrap());
            assert_eq!(shape, other);
            let sum: f64 = whole.iter().zip(scaled).map(|(a, b)| (a - b).abs()).sum();
            let mean = sum / whole.len() as f64;
            println!("file {i}, on a device: {}: mean difference {mean:.4}", gpu.is_some());
            // Those of 1920 x 1080 are four times as large as they must be.
            assert!(
                if [3, 5].contains(&i) { mean > 0.0 && mean < 0.05 } else { mean == 0.0 },
                "file {i}: {mean}"
            );
        }
    }
}

/// `jpeg` with a megabyte of comments in front.
fn with_comments(jpeg: &[u8]) -> Vec<u8> {
    let mut longer = jpeg[..2].to_vec();
    for _ in 0..16 {
        longer.extend([0xFF, 0xFE, 0xFF, 0xFF]);
        longer.extend([b' '; 0xFFFF - 2]);
    }
    longer.extend(&jpeg[2..]);
    longer
}

#[test]
fn groups_of_a_large_batch_are_decoded_as_one_is() {
    let Some(gpu) = gpu() else { return };
    let file = |i: u32| {
        let sampling = SAMPLINGS[i as usize % SAMPLINGS.len()];
        let mut file = with_comments(&Recipe::new(90 + (i as usize * 7) % 40, 75, sampling, i).jpeg());
        if i % 30 == 7 {
            file.truncate(file.len() - 300);
        }
        file
    };
    let files: Vec<Vec<u8>> = (0..100).map(file).collect();
    let mut wrong = Vec::new();
    for case in cases().into_iter().filter(|case| ["rgb", "rgb_smooth", "crop"].contains(&case.name)) {
        let mut on_sms = instance_on(Some(&gpu), case.name, Some(Path::Sm));
        for round in 0..3 {
            let found = run(&mut on_sms, &files);
            let counters = on_sms.counters();
            for (i, (file, found)) in files.iter().zip(&found).enumerate() {
                check(&case, &format!("{i}, round {round}"), file, found, &mut wrong);
            }
            // More than those of one group.
            assert!(counters.launches > 9, "{counters:?}");
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_ragged_batch_of_128_costs_three_uploads_and_one_wait() {
    let Some(gpu) = gpu() else { return };
    let files: Vec<Vec<u8>> = (0..128)
        .map(|i: u32| {
            let sampling = SAMPLINGS[i as usize % SAMPLINGS.len()];
            Recipe::new(100 + (i as usize * 31) % 500, 80 + (i as usize * 47) % 400, sampling, i).jpeg()
        })
        .collect();
    let mut wrong = Vec::new();
    for case in cases().into_iter().filter(|case| ["rgb", "bgr_load", "rgb_float"].contains(&case.name)) {
        let mut instance = instance(Some(&gpu), case.name);
        for round in 0..4 {
            let found = run(&mut instance, &files);
            for (i, (file, found)) in files.iter().zip(&found).enumerate() {
                check(&case, &format!("{i}, round {round}"), file, found, &mut wrong);
            }
            let counters = instance.counters();
            println!("{} round {round}: {counters:?}", case.name);
            // Also when the slab grows: files, tables, and what is recorded behind the decoder.
            assert!((1..=3).contains(&counters.uploads), "{counters:?}");
            assert_eq!(counters.waits, 1, "{counters:?}");
            assert!(counters.launches <= 9, "{counters:?}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
