//! The JPEG engines against the CPU decoder.

use std::sync::Arc;

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder};
use gesso::gpu::jpeg::{DevicePath, Engines, Format, Picture, Settings, Task};
use gesso::gpu::{Gpu, Recorder};
use gesso::memory::DeviceBytes;
use turbojpeg::Subsamp;

use crate::gpu;
use crate::pictures::{Recipe, SAMPLINGS};
use crate::skips::{Needs, skip};

/// Mean difference in levels between two decoders that do the same up to the rounding of their transforms.
const MEAN: f64 = 0.2;

fn open(gpu: &Arc<Gpu>, settings: Settings) -> Option<Engines> {
    Engines::open(gpu, settings).inspect_err(|error| skip(Needs::Gpu, error)).ok()
}

/// Decodes on the engines; `None` for a file that they refused.
fn decode(engines: &mut Engines, recorder: &mut Recorder, files: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    let pictures: Vec<Picture<'_>> = files.iter().map(|file| Picture::read(file).unwrap()).collect();
    let channels = engines.format().channels();
    let tasks: Vec<Task<'_>> = pictures
        .into_iter()
        .map(|picture| {
            let bytes = picture.frame().width * picture.frame().height * channels;
            let buffer = recorder.allocate(bytes).unwrap();
            Task { picture, target: DeviceBytes::of(&buffer, 0, bytes) }
        })
        .collect();
    let stream = Arc::clone(recorder.stream());
    let refused = engines.start(&stream, &tasks).unwrap();
    engines.join(recorder);
    let downloads: Vec<_> = tasks.iter().map(|task| recorder.download(&task.target)).collect();
    recorder.submit().unwrap();
    recorder.wait().unwrap();
    let pixels = downloads
        .into_iter()
        .enumerate()
        .map(|(i, download)| (!refused.contains(&i)).then(|| recorder.downloaded(download).to_vec()))
        .collect();
    recorder.clear();
    pixels
}

fn expected(file: &[u8], format: Format, smooth_chroma: bool) -> Vec<u8> {
    let color = match format {
        Format::Gray => ColorSpace::Gray,
        Format::Rgb => ColorSpace::Rgb,
        Format::Bgr => ColorSpace::Bgr,
    };
    let frame = *Picture::read(file).unwrap().frame();
    let mut pixels = vec![0; frame.width * frame.height * format.channels()];
    let options = DecodeOptions { color, smooth_chroma, ..DecodeOptions::default() };
    Decoder::new().decode_into(file, &options, &mut pixels).unwrap();
    pixels
}

/// Mean and largest difference.
fn difference(a: &[u8], b: &[u8]) -> (f64, u8) {
    assert_eq!(a.len(), b.len());
    let differences = || a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    let sum: u64 = differences().map(u64::from).sum();
    (sum as f64 / a.len() as f64, differences().max().unwrap_or_default())
}

#[test]
fn engines_and_cpu_agree_for_every_sampling() {
    let Some(gpu) = gpu() else { return };
    let mut recorder = Recorder::new(&gpu).unwrap();
    let mut wrong = Vec::new();
    for format in [Format::Rgb, Format::Bgr, Format::Gray] {
        for interpolate in [false, true] {
            let Some(mut engines) = open(&gpu, Settings::new(format, interpolate)) else { return };
            println!("{} engines", engines.count());
            for sampling in SAMPLINGS {
                for (width, height) in [(64, 64), (317, 211), (640, 480), (1921, 1081)] {
                    let files = [Recipe::new(width, height, sampling, 3).jpeg()];
                    let label =
                        format!("{format:?} {sampling:?} {width} x {height} interpolate {interpolate}");
                    let Some(found) = decode(&mut engines, &mut recorder, &files).remove(0) else {
                        wrong.push(format!("{label}: refused"));
                        continue;
                    };
                    let (mean, largest) = difference(&found, &expected(&files[0], format, interpolate));
                    println!("{label}: mean {mean:.3}, largest {largest}");
                    if mean > MEAN {
                        wrong.push(format!("{label}: mean {mean:.3}, largest {largest}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_ragged_batch_of_128_is_decoded_on_any_number_of_lanes() {
    let Some(gpu) = gpu() else { return };
    let files: Vec<Vec<u8>> = (0..128)
        .map(|i: u32| {
            let sampling = SAMPLINGS[i as usize % SAMPLINGS.len()];
            Recipe::new(64 + (i as usize * 37) % 400, 64 + (i as usize * 53) % 300, sampling, i).jpeg()
        })
        .collect();
    let wanted: Vec<Vec<u8>> = files.iter().map(|file| expected(file, Format::Rgb, false)).collect();
    let mut recorder = Recorder::new(&gpu).unwrap();
    for lanes in [1, 2, 4, 7] {
        let settings = Settings { lanes: Some(lanes), ..Settings::new(Format::Rgb, false) };
        let Some(mut engines) = open(&gpu, settings) else { return };
        // Sizes change between batches, so states are initialised again.
        for size in [128, 1, 5, 128, 127] {
            let found = decode(&mut engines, &mut recorder, &files[..size]);
            for (i, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                let found = found.as_ref().unwrap_or_else(|| panic!("image {i} of {size} is refused"));
                let (mean, largest) = difference(found, wanted);
                assert!(mean <= MEAN, "{lanes} lanes, image {i} of {size}: mean {mean}, largest {largest}");
            }
        }
    }
}

#[test]
fn damage_behind_a_good_header_stays_with_its_image() {
    let Some(gpu) = gpu() else { return };
    let mut recorder = Recorder::new(&gpu).unwrap();
    let good: Vec<Vec<u8>> = (0..9).map(|seed| Recipe::new(200, 150, Subsamp::Sub2x2, seed).jpeg()).collect();
    for lanes in [1, 3] {
        let settings = Settings { lanes: Some(lanes), ..Settings::new(Format::Rgb, false) };
        let Some(mut engines) = open(&gpu, settings) else { return };
        let mut files = good.clone();
        let scan = files[4].windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap() + 14;
        let end = files[4].len() - 2;
        // Codes that no table has, as long as a marker is not made by chance.
        files[4][scan + 40..end].fill(0xFE);
        for round in 0..3 {
            let found = decode(&mut engines, &mut recorder, &files);
            for (i, found) in found.iter().enumerate() {
                let Some(found) = found else {
                    println!("{lanes} lanes, round {round}: image {i} is refused");
                    assert_eq!(i, 4);
                    continue;
                };
                if i != 4 {
                    let (mean, _) = difference(found, &expected(&files[i], Format::Rgb, false));
                    assert!(mean <= MEAN, "{lanes} lanes, round {round}, image {i}: mean {mean}");
                }
            }
        }
    }
}
