//! The JPEG engines alone: images per second by batch size and number of lanes, and how long the call holds its thread.
//!
//! ```text
//! cargo bench --bench engines [-- WIDTH HEIGHT [MILLISECONDS]]
//! ```
//!
//! Prints one line per batch size and setting: medians in microseconds.
#![expect(clippy::unwrap_used, reason = "pictures of tests")]

#[expect(dead_code, reason = "tests use more of it")]
#[path = "../tests/gpu/pictures.rs"]
mod pictures;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gesso::gpu::jpeg::{DevicePath, Engines, Format, Picture, Settings, Task};
use gesso::gpu::{DeviceBytes, Gpu, Recorder, devices};
use pictures::Recipe;
use turbojpeg::Subsamp;

const BATCHES: [usize; 11] = [1, 2, 4, 7, 8, 14, 28, 32, 64, 128, 256];
const LANES: [usize; 4] = [1, 2, 4, 7];
/// Different files; larger batches repeat them.
const FILES: u32 = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Err(error) = devices() {
        println!("skipped: no GPU ({error})");
        return Ok(());
    }
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let number = |i: usize, default: usize| arguments.get(i).map_or(Ok(default), |text| text.parse());
    let (width, height, millis) = (number(0, 500)?, number(1, 375)?, number(2, 300)?);
    let gpu = Gpu::open(0)?;
    let files: Vec<Vec<u8>> =
        (0..FILES).map(|seed| Recipe::new(width, height, Subsamp::Sub2x2, seed).jpeg()).collect();
    let mean = files.iter().map(Vec::len).sum::<usize>() / files.len();
    println!("{width} x {height}, {mean} bytes a file, `{}`", gpu.name());
    println!("setting lanes batch | call us, total us | img/s MB/s");
    let plain = Settings::new(Format::Rgb, false);
    let settings = [
        ("plain", plain),
        ("interpolate", Settings { interpolate: true, ..plain }),
        ("no pipeline", Settings { pipeline: false, ..plain }),
        ("preallocate", Settings { preallocate: true, ..plain }),
    ];
    for (label, setting) in settings {
        for lanes in LANES {
            let settings = Settings { lanes: Some(lanes), ..setting };
            let opened = Instant::now();
            let mut engines = Engines::open(&gpu, settings)?;
            let opened = opened.elapsed();
            let mut recorder = Recorder::new(&gpu)?;
            for batch in BATCHES.into_iter().filter(|batch| *batch >= lanes) {
                let (call, total, first) = measure(&mut engines, &mut recorder, &files, batch, millis)?;
                let rate = batch as f64 / total.as_secs_f64();
                println!(
                    "{label:11} {lanes} {batch:3} | {:7.0} {:7.0} | {rate:7.0} {:6.0} (first {:.1} ms, opened in {:.0} ms)",
                    call.as_secs_f64() * 1e6,
                    total.as_secs_f64() * 1e6,
                    rate * mean as f64 / 1e6,
                    first.as_secs_f64() * 1e3,
                    opened.as_secs_f64() * 1e3,
                );
            }
        }
    }
    Ok(())
}

/// Medians of the time that the call takes and of that until all pixels are there, and the first batch's time.
fn measure(
    engines: &mut Engines,
    recorder: &mut Recorder,
    files: &[Vec<u8>],
    batch: usize,
    millis: usize,
) -> Result<(Duration, Duration, Duration), Box<dyn std::error::Error>> {
    let mut tasks = Vec::new();
    for file in files.iter().cycle().take(batch) {
        let picture = Picture::read(file).ok_or("not for the engines")?;
        let bytes = picture.frame().width * picture.frame().height * 3;
        let buffer = recorder.allocate(bytes)?;
        tasks.push(Task { picture, target: DeviceBytes::of(&buffer, 0, bytes) });
    }
    let stream = Arc::clone(recorder.stream());
    let (mut calls, mut totals) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while totals.len() < 4 || begun.elapsed() < Duration::from_millis(millis as u64) {
        let start = Instant::now();
        let refused = engines.start(&stream, &tasks)?;
        calls.push(start.elapsed());
        engines.join(recorder);
        recorder.submit()?;
        recorder.wait()?;
        totals.push(start.elapsed());
        if !refused.is_empty() {
            return Err(format!("{} of {batch} images are refused", refused.len()).into());
        }
    }
    recorder.clear();
    let first = totals.first().copied().unwrap_or_default();
    Ok((median(calls), median(totals), first))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
