//! The decoder on the device's SMs against libjpeg-turbo: files of every kind that it takes, and damaged ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder, probe};
use gesso::error::Result;
use gesso::gpu::jpeg::sm::{Coded, Cut, MAX_SHRINK, Part, Planned, Scan, Scratch, Sm};
use gesso::gpu::jpeg::{Format, Path};
use gesso::gpu::{Gpu, Recorder};
use gesso::memory::DeviceBytes;
use gesso::pipeline::{Keep, Pipeline, Preferences};
use gesso::tensor::Device;
use rayon::prelude::*;
use turbojpeg::{Decompressor, Image, PixelFormat, ScalingFactor, Subsamp};

use crate::coded::expected;
use crate::coder::{Recipe, damaged};
use crate::decoders::{instance_on, run};
use crate::promises::{PIPELINE, encoded};
use crate::{fewer, gpu, pictures};

/// Generated files, and the largest of their sides.
const FILES: u64 = 10_000;
const SIDE: usize = 150;

/// Files that are damaged.
const DAMAGED: u64 = 100_000;

/// Images of a batch.
const BATCH: usize = 250;

/// How files are decoded.
#[derive(Debug, Clone, Copy)]
struct Way {
    format: Format,
    cut: Cut,
    smooth: bool,
    part: fn(&Coded<'_>) -> Part,
}

impl Way {
    fn plain(format: Format, cut: Cut) -> Self {
        Self { format, cut, smooth: false, part: |coded| Part::whole([coded.width, coded.height], 0) }
    }

    /// What libjpeg-turbo makes of a file.
    fn expected(&self, file: &[u8]) -> Vec<u8> {
        let coded = Coded::read(file).unwrap();
        let (part, channels) = ((self.part)(&coded), self.format.channels());
        if part.shrink > 0 {
            return reduced(file, self.format, self.smooth, part.shrink);
        }
        let mut pixels = vec![0; coded.width * coded.height * channels];
        let options = DecodeOptions {
            color: color(self.format),
            smooth_chroma: self.smooth,
            adjust_orientation: false,
            ..DecodeOptions::default()
        };
        Decoder::new().decode_into(file, &options, &mut pixels).unwrap();
        let rows = pixels.chunks_exact(coded.width * channels).skip(part.top).take(part.height);
        rows.flat_map(|row| &row[part.left * channels..][..part.width * channels]).copied().collect()
    }
}

/// A picture that libjpeg-turbo reduces.
fn reduced(file: &[u8], format: Format, smooth: bool, shrink: u32) -> Vec<u8> {
    let mut decompressor = Decompressor::new().unwrap();
    decompressor.set_scaling_factor(ScalingFactor::new(1, 1 << shrink)).unwrap();
    decompressor.set_fast_upsample(!smooth).unwrap();
    let header = decompressor.read_header(file).unwrap().scaled(decompressor.scaling_factor());
    let format = match format {
        Format::Gray => PixelFormat::GRAY,
        Format::Rgb => PixelFormat::RGB,
        Format::Bgr => PixelFormat::BGR,
    };
    let (width, height, pitch) = (header.width, header.height, header.width * format.size());
    let mut pixels = vec![0; pitch * height];
    let image = Image { pixels: pixels.as_mut_slice(), width, pitch, height, format };
    decompressor.decompress(file, image).unwrap();
    pixels
}

/// Decodes a batch: pixels, or `None` for an image that the device or the look at its data calls damaged.
fn decode(gpu: &Arc<Gpu>, recorder: &mut Recorder, way: Way, files: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    let Way { format, cut, smooth, part } = way;
    let sms = Sm::open(gpu, format, smooth).unwrap();
    let plan = |file| {
        let coded = Coded::read(file).filter(|coded| sms.takes(coded))?;
        let part = part(&coded);
        Some(sms.plan(coded, part, false))
    };
    let planned: Vec<Option<Planned<'_>>> = files.iter().map(|file| plan(file)).collect();
    let taken: Vec<&Planned<'_>> = planned.iter().flatten().collect();
    let rooms: Vec<usize> = taken.iter().map(|planned| planned.coded.room()).collect();
    let places = recorder.reserve_all(&rooms).unwrap();
    let buffers = recorder.fill(&places).unwrap();
    let read =
        |(planned, out): (&&Planned<'_>, _)| Scan::read(planned.coded.data, &planned.coded.layout(), out);
    let scans: Vec<Option<Scan>> = taken.iter().zip(buffers).map(read).collect();
    let bytes = |planned: &&Planned<'_>| planned.part.width * planned.part.height * format.channels();
    let target = |planned| {
        let buffer = recorder.allocate(bytes(planned)).unwrap();
        DeviceBytes::of(&buffer, 0, bytes(planned))
    };
    let targets: Vec<DeviceBytes<'_>> = taken.iter().map(target).collect();
    let batch = sms.prepare(taken.iter().copied().zip(targets.iter().map(Some)), cut).unwrap();
    let placed = places.into_iter().zip(&scans);
    let placed: Vec<_> =
        placed.map(|(place, scan)| (recorder.staged(place).unwrap(), scan.as_ref())).collect();
    let report = sms.record(recorder, (&mut Scratch::default(), 0), (batch, 0), &placed).unwrap().report;
    // Only pictures with a scan have a place in the report.
    let mut decoded = 0..;
    let mut downloads = scans.iter().zip(&targets).map(|(scan, target)| {
        scan.as_ref().and_then(|_| decoded.next()).map(|place| (place, recorder.download(target)))
    });
    let downloads: Vec<_> =
        planned.iter().map(|planned| planned.as_ref().and_then(|_| downloads.next().flatten())).collect();
    recorder.submit().unwrap();
    recorder.wait().unwrap();
    let status = recorder.reported(report);
    let pixels = downloads
        .into_iter()
        .map(|download| {
            let (job, download) = download?;
            (status[job] == 0).then(|| recorder.downloaded(download).to_vec())
        })
        .collect();
    recorder.clear();
    pixels
}

/// Those of `files` whose pieces find their beginnings, with their pixels.
fn resolved(gpu: &Arc<Gpu>, recorder: &mut Recorder, files: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let pixels = decode(gpu, recorder, Way::plain(Format::Rgb, Cut::ALL[0]), &files);
    let found: (Vec<_>, Vec<_>) =
        files.into_iter().zip(pixels).filter_map(|(file, pixels)| Some((file, pixels?))).unzip();
    assert!(found.0.len() > 50);
    found
}

fn color(format: Format) -> ColorSpace {
    match format {
        Format::Gray => ColorSpace::Gray,
        Format::Rgb => ColorSpace::Rgb,
        Format::Bgr => ColorSpace::Bgr,
    }
}

/// Sum of differences, and the largest.
fn difference(a: &[u8], b: &[u8]) -> (u64, u8) {
    assert_eq!(a.len(), b.len());
    let differences = || a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    (differences().map(u64::from).sum(), differences().max().unwrap_or_default())
}

/// Decodes what `recipe` makes of numbers, and holds it to libjpeg-turbo. No more than `unresolved_part` of the files,
/// which are harder than any photo, may be left to the host.
fn check(way: Way, count: u64, unresolved_part: f64, recipe: impl Fn(u64) -> Recipe + Sync) {
    let Some(gpu) = gpu() else { return };
    let Way { format, cut, .. } = way;
    // Of a few files chance may choose hard ones.
    let (count, chance) = (fewer(count), if fewer(count) < count { 5.0 } else { 0.0 });
    let mut recorder = Recorder::new(&gpu).unwrap();
    let mut found: BTreeMap<String, (u64, usize, u8)> = BTreeMap::new();
    let (mut wrong, mut unresolved) = (Vec::new(), Vec::new());
    for start in (0..count).step_by(BATCH) {
        let recipes: Vec<Recipe> = (start..count.min(start + BATCH as u64)).map(&recipe).collect();
        let files: Vec<Vec<u8>> = recipes.par_iter().map(|recipe| recipe.encode().file).collect();
        let pixels = decode(&gpu, &mut recorder, way, &files);
        for ((recipe, file), pixels) in recipes.into_iter().zip(&files).zip(pixels) {
            let Some(pixels) = pixels else {
                let takes = Coded::read(file)
                    .is_some_and(|coded| Sm::open(&gpu, format, false).unwrap().takes(&coded));
                if takes {
                    unresolved.push(recipe);
                }
                continue;
            };
            let (sum, largest) = difference(&pixels, &way.expected(file));
            let kind = format!("{:?} {:?}", recipe.colour, recipe.factors);
            let total = found.entry(kind).or_default();
            *total = (total.0 + sum, total.1 + pixels.len(), total.2.max(largest));
            if largest > 1 {
                wrong.push(format!("{largest} levels off: {recipe:?}"));
            }
        }
    }
    for (kind, (sum, count, largest)) in found {
        let mean = sum as f64 / count as f64;
        println!("{format:?} from {kind}: mean {mean:.4}, largest {largest}");
        if mean >= 0.05 {
            wrong.push(format!("{kind}: mean {mean}"));
        }
    }
    println!("{format:?}, {cut:?}: {} of {count} files are not resolved", unresolved.len());
    if unresolved.len() as f64 > unresolved_part * count as f64 + chance {
        wrong.extend(unresolved.iter().map(|recipe| format!("not resolved: {recipe:?}")));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn files_of_every_kind_are_decoded_as_on_the_cpu() {
    for (cut, part) in Cut::ALL.into_iter().zip(0..) {
        let seeds = FILES / Cut::ALL.len() as u64;
        let way = Way::plain(Format::Rgb, cut);
        check(way, seeds, 0.02, |seed| Recipe::random(part * seeds + seed, SIDE));
    }
}

#[test]
fn other_outputs_are_those_of_the_cpu() {
    let [bgr, gray] =
        [(Format::Bgr, Cut::ALL[0]), (Format::Gray, Cut::ALL[1])].map(|(f, cut)| Way::plain(f, cut));
    check(bgr, FILES / 10, 0.02, |seed| Recipe::random(1 << 20 | seed, SIDE));
    check(gray, FILES / 10, 0.02, |seed| Recipe::random(1 << 21 | seed, SIDE));
}

#[test]
fn smooth_chroma_is_that_of_the_cpu() {
    for format in [Format::Rgb, Format::Bgr, Format::Gray] {
        let way = Way { smooth: true, ..Way::plain(format, Cut::ALL[0]) };
        check(way, FILES / 5, 0.02, |seed| Recipe::random(1 << 23 | seed, SIDE));
    }
}

/// A window that depends on the size of the picture.
fn window(coded: &Coded<'_>) -> Part {
    let (left, top) = (coded.width * 3 / 10, coded.height * 2 / 10);
    let (width, height) = ((coded.width / 2).max(1), (coded.height * 7 / 10).max(1));
    Part { left, top, width, height, shrink: 0 }
}

#[test]
fn a_window_is_that_part_of_the_picture() {
    for smooth in [false, true] {
        let way = Way { smooth, part: window, ..Way::plain(Format::Rgb, Cut::ALL[0]) };
        check(way, FILES / 5, 0.02, |seed| Recipe::random(1 << 24 | seed, SIDE));
    }
}

#[test]
fn reduced_pictures_are_those_of_libjpeg() {
    let parts: [fn(&Coded<'_>) -> Part; MAX_SHRINK as usize] = [
        |coded| Part::whole([coded.width, coded.height], 1),
        |coded| Part::whole([coded.width, coded.height], 2),
        |coded| Part::whole([coded.width, coded.height], 3),
    ];
    for part in parts {
        for (smooth, format) in [(false, Format::Rgb), (true, Format::Rgb), (true, Format::Gray)] {
            let way = Way { smooth, part, ..Way::plain(format, Cut::ALL[0]) };
            check(way, FILES / 10, 0.02, |seed| Recipe::random(1 << 25 | seed, SIDE));
        }
    }
}

/// Segments of many pieces, and rows of many blocks.
#[test]
fn large_files_are_decoded_as_on_the_cpu() {
    for cut in Cut::ALL {
        check(Way::plain(Format::Rgb, cut), 100, 0.15, |seed| {
            let recipe = Recipe::random(1 << 22 | seed, 1_000);
            let restart = recipe.restart.map(|interval| interval * (1 + seed as usize % 90));
            Recipe { width: recipe.width + 300, height: recipe.height + 200, restart, ..recipe }
        });
    }
}

/// Whatever is damaged, the device goes on, and what it calls right is what libjpeg makes of it; whole images beside it
/// are right. Some data stays a right code for values that no encoder makes: where they do not fit into 16 bits,
/// libjpeg's vector code wraps around or saturates between its steps, and the device only in the end.
#[test]
fn damage_stays_with_its_image() {
    let Some(gpu) = gpu() else { return };
    let mut recorder = Recorder::new(&gpu).unwrap();
    let whole: Vec<Vec<u8>> = (0..400).map(|seed| Recipe::random(seed, 90).encode().file).collect();
    let (whole, wanted) = resolved(&gpu, &mut recorder, whole);
    let (mut right, mut overflown, mut refused) = (0, 0, BTreeMap::<String, u64>::new());
    let count = fewer(DAMAGED);
    for start in (0..count).step_by(BATCH) {
        let seeds = start..count.min(start + BATCH as u64);
        let number = |seed: u64| seed as usize * 7 % whole.len();
        let is_whole = |seed: u64| seed.is_multiple_of(10);
        let files: Vec<Vec<u8>> = seeds
            .clone()
            .into_par_iter()
            .map(|seed| {
                let file = &whole[number(seed)];
                if is_whole(seed) { file.clone() } else { damaged(file, seed) }
            })
            .collect();
        let found = decode(&gpu, &mut recorder, Way::plain(Format::Rgb, Cut::ALL[0]), &files);
        for ((seed, file), pixels) in seeds.zip(&files).zip(found) {
            if is_whole(seed) {
                assert!(pixels.as_ref() == Some(&wanted[number(seed)]), "the neighbour of seed {seed}");
                continue;
            }
            let Some(pixels) = pixels else { continue };
            match expected(file, ColorSpace::Rgb, pixels.len()) {
                Ok(wanted) if difference(&pixels, &wanted).1 <= 1 => right += 1,
                Ok(_) => overflown += 1,
                Err(error) => *refused.entry(error.to_string()).or_default() += 1,
            }
        }
    }
    println!(
        "{count} files, damaged but for a tenth: {right} decoded as by libjpeg, {overflown} with other pixels; it refuses \
         {refused:#?}"
    );
    let refused: u64 = refused.values().sum();
    assert!(refused * 50 < right, "{refused} are decoded that libjpeg refuses, and {right} as it does");
    assert!(
        overflown * 10 < right,
        "{overflown} are decoded to other pixels than by libjpeg, {right} to the same"
    );
}

/// What the CPU decoder makes of a file.
fn on_cpu(file: &[u8]) -> Result<Vec<f64>> {
    let info = probe(file, true)?;
    let pixels = expected(file, ColorSpace::Rgb, info.width * info.height * 3)?;
    Ok(pixels.into_iter().map(f64::from).collect())
}

/// In a pipeline: what the SMs cannot decode is made once more on the host, and a batch without damage costs one
/// wait.
#[test]
fn a_pipeline_answers_damage_as_the_cpu_does() {
    let Some(gpu) = gpu() else { return };
    let mut recorder = Recorder::new(&gpu).unwrap();
    let mut on_device = instance_on(Some(&gpu), "rgb", Some(Path::Sm));
    let whole: Vec<Vec<u8>> = (0..60).map(|seed| Recipe::random(seed, 200).encode().file).collect();
    let (whole, _) = resolved(&gpu, &mut recorder, whole);
    let mut mended = 0;
    for round in 0..30 {
        let file = |(i, file): (usize, &Vec<u8>)| {
            let harm = round > 0 && i % 3 == 0;
            if harm { damaged(file, round << 8 | i as u64) } else { file.clone() }
        };
        let files: Vec<Vec<u8>> = whole.iter().enumerate().map(file).collect();
        // So many files are cut like this in the pipeline too.
        let on_sms = decode(&gpu, &mut recorder, Way::plain(Format::Rgb, Cut::ALL[0]), &files);
        let found = run(&mut on_device, &files);
        let counters = on_device.counters();
        println!("round {round}: {counters:?}");
        assert!(round > 0 || (counters.uploads, counters.waits) == (1, 1), "{counters:?}");
        for (i, ((file, found), on_sms)) in files.iter().zip(&found).zip(&on_sms).enumerate() {
            let label = format!("file {i} of round {round}");
            match (found, on_cpu(file), on_sms) {
                (Ok((_, found)), _, Some(pixels)) => {
                    assert!(found.iter().zip(pixels).all(|(a, b)| *a == f64::from(*b)), "{label}");
                }
                (Ok((_, found)), Ok(wanted), None) => {
                    assert!(*found == wanted, "{label} is not what the CPU decodes");
                    mended += 1;
                }
                (Err(found), Err(wanted), None) => {
                    assert!(
                        found.to_string().ends_with(&wanted.to_string()),
                        "{label}: {found}, not {wanted}"
                    );
                }
                (found, wanted, _) => panic!("{label}: {:?}, not {:?}", found.as_ref().err(), wanted.err()),
            }
        }
    }
    println!("{mended} files are decoded in spite of damage");
    assert!(mended > 10);
}

/// What is made once more goes through everything behind the decoder.
#[test]
fn operators_behind_see_what_was_mended() {
    let Some(gpu) = gpu() else { return };
    let photo = |seed| pictures::Recipe::new(300, 200, Subsamp::None, seed).jpeg();
    let mut files: Vec<Vec<u8>> = (0..6).map(photo).collect();
    let scan = files[2].windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap() + 14;
    // Codes that no table has, as long as a marker is not made by chance.
    files[2][scan + 2_000..scan + 2_400].fill(0xFE);
    let mut answers = Vec::new();
    for gpu in [None, Some(&gpu)] {
        let device = if gpu.is_some() { Device::Gpu } else { Device::Cpu };
        let pipeline = match device {
            Device::Gpu => Pipeline::load_moved_to_device(PIPELINE),
            Device::Cpu => Pipeline::load(PIPELINE, device),
        };
        let preferences = Preferences { jpeg_path: Some(Path::Sm), ..Preferences::default() };
        let mut instance = pipeline.unwrap().instance_with(Some(2), gpu, &preferences).unwrap();
        let outcome = instance.run(files.len(), vec![encoded(&files)], &mut Keep).unwrap();
        let batch = instance.to_host(&outcome.outputs[0]).unwrap();
        let floats = |i: usize| bytemuck::pod_collect_to_vec::<u8, f32>(batch.view(i).bytes);
        answers.push((0..files.len()).map(floats).collect::<Vec<_>>());
        println!("{device:?}: {:?}", instance.counters());
        assert_eq!(instance.counters().waits, if gpu.is_some() { 2 } else { 0 });
    }
    for (i, (a, b)) in answers[0].iter().zip(&answers[1]).enumerate() {
        let sum: f32 = a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum();
        let mean = sum / a.len() as f32;
        assert!(a.len() == b.len() && mean < 0.01, "file {i}: mean difference {mean}");
    }
}
