//! Files that are not whole, whoever decodes them: the proof that one is, which needs no device, and answers in which
//! nothing is of another picture.

use std::sync::Arc;

use gesso::cpu::decode::{ColorSpace, probe};
use gesso::error::Result;
use gesso::gpu::Gpu;
use gesso::gpu::jpeg::sm::Coded;
use gesso::gpu::jpeg::{Path, Picture, is_whole};
use gesso::tensor::Shape;
use rayon::prelude::*;
use turbojpeg::{Decompressor, Image, PixelFormat, Subsamp};

use crate::coded::expected;
use crate::coder::{Coding, Recipe, damaged};
use crate::decoders::{instance_on, run};
use crate::{gpu, pictures};

/// Files that a test without a device makes.
const FILES: u64 = 2_000;

/// Of files that are damaged, those on a device; `$GESSO_DAMAGED` says how many else.
const DAMAGED: usize = 300;

/// Levels that a whole picture of the engines may be off somewhere: they round otherwise.
const LEVELS: f64 = 8.0;

/// Where the height stands in a file, behind which there is the width.
fn height_at(file: &[u8]) -> usize {
    file.windows(2).position(|pair| matches!(pair, [0xFF, 0xC0 | 0xC1])).unwrap() + 5
}

/// `file` with a header that promises `height` rows.
fn promising(file: &[u8], height: u16) -> Vec<u8> {
    let at = height_at(file);
    let mut file = file.to_vec();
    file[at..at + 2].copy_from_slice(&height.to_be_bytes());
    file
}

/// Whether libjpeg-turbo decodes a file and has nothing to say to it.
fn has_no_warning(file: &[u8]) -> bool {
    let mut decompressor = Decompressor::new().unwrap();
    let Ok(header) = decompressor.read_header(file) else { return false };
    let format = if header.subsamp == Subsamp::Gray { PixelFormat::GRAY } else { PixelFormat::RGB };
    let (width, height, pitch) = (header.width, header.height, header.width * format.size());
    let mut pixels = vec![0; pitch * height];
    let image = Image { pixels: pixels.as_mut_slice(), width, pitch, height, format };
    decompressor.decompress(file, image).is_ok()
}

#[test]
fn what_an_encoder_writes_is_whole() {
    let mut taken = 0;
    for seed in 0..FILES {
        let recipe = Recipe::random(seed, 150);
        let file = recipe.encode().file;
        // Odd tables have symbols without a meaning, too.
        if Picture::read(&file).is_some() && recipe.coding != Coding::Odd {
            taken += 1;
            assert!(is_whole(&file), "{recipe:?}");
        }
    }
    assert!(taken > FILES / 50, "{taken} of {FILES}");
    for sampling in pictures::SAMPLINGS {
        let file = pictures::Recipe { quality: 75, ..pictures::Recipe::new(640, 480, sampling, 1) }.jpeg();
        assert!(is_whole(&file) && is_whole(&[file.as_slice(), &[0; 300]].concat()), "{sampling:?}");
    }
}

#[test]
fn a_header_that_promises_more_than_there_is_proves_nothing() {
    for (seed, sampling) in (0..).zip(pictures::SAMPLINGS) {
        let file = pictures::Recipe::new(64, 48, sampling, seed).jpeg();
        for rows in 0..48_u16 {
            // Of an MCU only the rows that there are.
            let mcu = if matches!(sampling, Subsamp::Sub2x2 | Subsamp::Sub1x2) { 16 } else { 8 };
            assert_eq!(is_whole(&promising(&file, rows)), rows > 48 - mcu, "{sampling:?}, {rows} rows");
        }
        for rows in [49, 56, 57, 64, 400, 16_000] {
            assert!(!is_whole(&promising(&file, rows)), "{sampling:?}, {rows} rows");
        }
        for length in (0..file.len()).step_by(7) {
            assert!(!is_whole(&file[..length]), "{sampling:?}, {length} bytes");
        }
    }
}

/// A small picture of any sampling that the engines take.
fn small(seed: u32) -> Vec<u8> {
    let sampling = pictures::SAMPLINGS[seed as usize % pictures::SAMPLINGS.len()];
    let (width, height) = (64 + seed as usize % 30, 64 + seed as usize * 7 % 30);
    pictures::Recipe { quality: 20 + 2 * seed as i32, ..pictures::Recipe::new(width, height, sampling, seed) }
        .jpeg()
}

/// A file that is damaged and proven whole none the less is another picture, of which all is there.
#[test]
fn of_a_file_that_is_proven_whole_nothing_is_missing() {
    let whole: Vec<Vec<u8>> = (0..40).map(small).collect();
    let outcome = |seed: u64| {
        let file = damaged(&whole[seed as usize * 7 % whole.len()], seed);
        Picture::read(&file)?;
        let proven = is_whole(&file);
        assert!(
            !proven || has_no_warning(&file),
            "file {seed} is proven whole, and libjpeg-turbo misses something"
        );
        Some(proven)
    };
    let outcomes: Vec<bool> = (0..2 * FILES).into_par_iter().filter_map(outcome).collect();
    let proven = outcomes.iter().filter(|proven| **proven).count();
    println!("{proven} of {} damaged files are proven whole", outcomes.len());
    assert!(proven > 0 && proven < outcomes.len() / 2, "{proven} of {}", outcomes.len());
}

/// Whole, but of coefficients that overflow here and are cut off there.
#[test]
fn coefficients_beyond_those_of_any_picture_are_no_proof() {
    let mut file =
        pictures::Recipe { quality: 100, ..pictures::Recipe::new(200, 100, Subsamp::Gray, 1) }.jpeg();
    assert!(is_whole(&file));
    let steps = file.windows(2).position(|pair| pair == [0xFF, 0xDB]).unwrap() + 5;
    file[steps..steps + 64].fill(255);
    assert!(has_no_warning(&file) && Picture::read(&file).is_some() && !is_whole(&file));
}

/// Shape and levels, or the error.
type Answer = Result<(Shape, Vec<f64>)>;

/// How many files the tests on a device damage.
fn count() -> usize {
    let count = std::env::var("GESSO_DAMAGED").ok().and_then(|text| text.parse().ok());
    count.unwrap_or(DAMAGED)
}

/// `file` with a fill byte in front of a stuffed zero of its data, in the middle; `None`: it has no such zero.
fn filled(file: &[u8]) -> Option<Vec<u8>> {
    let at = (file.len() / 2..file.len() - 2).find(|&at| file[at..at + 2] == [0xFF, 0])?;
    Some([&file[..at], &[0xFF], &file[at..]].concat())
}

/// Files with one fault or several, each of another picture; and whole ones in between.
fn files() -> Vec<Vec<u8>> {
    let file = |seed: usize| {
        let side = |salt: usize| 64 + (seed * salt) % 250;
        let sampling = pictures::SAMPLINGS[seed % pictures::SAMPLINGS.len()];
        let plain = pictures::Recipe {
            quality: 30 + (seed * 7 % 70) as i32,
            ..pictures::Recipe::new(side(31), side(47), sampling, seed as u32)
        };
        // With restarts, too, and whatever tables there are.
        let odd =
            || Recipe { width: side(31), height: side(47), wide: false, ..Recipe::random(seed as u64, 90) };
        let file = if seed.is_multiple_of(3) { odd().encode().file } else { plain.jpeg() };
        match seed % 8 {
            0 => file,
            1 => promising(&file, 400),
            2 => promising(&file, 65 + (seed % 200) as u16),
            3 => {
                file[..file.len() - 2 - seed % (file.len() / 2)].iter().copied().chain([0xFF, 0xD9]).collect()
            }
            4 => filled(&file).unwrap_or(file),
            _ => {
                let damaged = damaged(&file, seed as u64);
                let pixels = probe(&damaged, true).map_or(0, |info| info.width * info.height);
                if pixels < 1 << 22 { damaged } else { file }
            }
        }
    };
    (0..count()).into_par_iter().map(file).collect()
}

/// What the host makes of a file when it decodes in place of a device.
fn on_host(file: &[u8], like: &Answer) -> Option<Vec<f64>> {
    let length = like.as_ref().ok()?.1.len();
    let pixels = expected(file, ColorSpace::Rgb, length).ok()?;
    Some(pixels.into_iter().map(f64::from).collect())
}

/// Whether `found` is the answer to a file: the host's when not all of it is there, else that of whoever decoded it.
fn check(label: &str, file: &[u8], host: &Option<Vec<f64>>, found: &Answer, wrong: &mut Vec<String>) {
    match (host, found) {
        (None, Err(_)) => {}
        (Some(host), Ok((_, found))) => {
            let is_engines = Picture::read(file).is_some() && is_whole(file);
            let most = host.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let differing = host.iter().zip(found).filter(|(a, b)| a != b).count();
            if host.len() != found.len() || most > if is_engines { LEVELS } else { 0.0 } {
                wrong.push(format!(
                    "{label}: {differing} of {} differ, by {most} levels, whole: {is_engines}",
                    host.len()
                ));
            }
        }
        (host, found) => {
            wrong.push(format!("{label}: on the host {}, here {:?}", host.is_some(), found.as_ref().err()));
        }
    }
}

/// All of `files`, so many at a time.
fn in_batches(gpu: &Arc<Gpu>, path: Option<Path>, files: &[Vec<u8>], size: usize) -> Vec<Answer> {
    let mut instance = instance_on(Some(gpu), "rgb", path);
    files.chunks(size).flat_map(|files| run(&mut instance, files)).collect()
}

#[test]
fn a_damaged_file_has_one_answer_alone_and_beside_others() {
    let Some(gpu) = gpu() else { return };
    let files = files();
    let mut hosts: Option<Vec<Option<Vec<f64>>>> = None;
    let mut wrong = Vec::new();
    for path in [None, Some(Path::Engines), Some(Path::Sm)] {
        for size in [1, 64, 512] {
            for round in 0..2 {
                let found = in_batches(&gpu, path, &files, size);
                let hosts = hosts.get_or_insert_with(|| {
                    let both = files.par_iter().zip(&found);
                    both.map(|(file, found)| on_host(file, found)).collect()
                });
                for (i, ((file, host), found)) in files.iter().zip(hosts.iter()).zip(&found).enumerate() {
                    check(
                        &format!("file {i} on {path:?} by {size}, round {round}"),
                        file,
                        host,
                        found,
                        &mut wrong,
                    );
                }
            }
        }
    }
    let whole = files.iter().filter(|file| is_whole(file)).count();
    let taken = files.iter().filter(|file| Picture::read(file).is_some()).count();
    let on_sms = files.iter().filter(|file| Coded::read(file).is_some()).count();
    println!(
        "{} files, {taken} for the engines, {on_sms} for the SMs, {whole} whole, {} wrong",
        files.len(),
        wrong.len()
    );
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rows that a file promises and has not are no rows of pictures that were decoded before.
#[test]
fn rows_that_a_file_has_not_are_no_earlier_picture() {
    let Some(gpu) = gpu() else { return };
    let mut wrong = Vec::new();
    for path in [None, Some(Path::Engines), Some(Path::Sm), Some(Path::Threads)] {
        for batch in [1, 3, 8] {
            let mut instance = instance_on(Some(&gpu), "rgb", path);
            for (round, sampling) in pictures::SAMPLINGS.into_iter().chain(pictures::SAMPLINGS).enumerate() {
                let before = pictures::Recipe::new(64, 400, sampling, 90 + round as u32).jpeg();
                for _ in 0..10 {
                    run(&mut instance, &vec![before.clone(); batch]);
                }
                let tall = promising(&pictures::Recipe::new(64, 48, sampling, 1).jpeg(), 400);
                for (i, found) in run(&mut instance, &vec![tall.clone(); batch]).iter().enumerate() {
                    let host = on_host(&tall, found);
                    check(
                        &format!("{sampling:?} on {path:?}, {i} of {batch}"),
                        &tall,
                        &host,
                        found,
                        &mut wrong,
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
