//! `decoders.video` of device `mixed`: its frames against those of the host's decoders, for every clip and way of
//! asking for frames; damaged clips; memory. The pipelines are from data/make.py. `GESSO_VIDEO=clip.mp4` measures a
//! clip of one's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gesso::error::Result;
use gesso::gpu::Gpu;
use gesso::gpu::video::{Codec, Engines};
use gesso::pipeline::Instance;
use gesso::tensor::Shape;

use crate::decoders::{instance_on, run};
use crate::numbers::Numbers;
use crate::{gpu, gpu_alone};

/// Levels by which a sample may differ: engines decode exactly, and colours are made in the same integers.
const LARGEST: f64 = 2.0;

/// Whole videos, and every way of asking for a part.
const PIPELINES: [&str; 5] = ["video", "video_strided", "video_edge", "video_end", "video_frames"];

/// Every clip of the CPU tests by its name. Those that begin with `large` are large enough for the engines whatever the
/// codec.
pub(crate) fn clips() -> BTreeMap<String, Vec<u8>> {
    let folder = crate::file("tests/data/video");
    let is_clip = |name: &str| name.contains('.') && !name.ends_with(".py") && !name.ends_with(".json");
    let names =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| is_clip(name))
        .map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap()))
        .collect()
}

/// Whether a clip must be decoded by the engines, where there are some as in an H200.
pub(crate) fn is_for_engines(name: &str) -> bool {
    let other = ["10_bits", "422"].iter().any(|part| name.contains(part));
    // The engines of an H200 refuse VP8 of odd sizes, and have no AV1; Motion JPEG is never sent to them.
    let refused = ["vp8_odd", "av1", "mjpeg"].iter().any(|part| name.contains(part));
    name.starts_with("h264") && !other || name.starts_with("large_") && !refused
}

const CODECS: [Codec; 6] = [Codec::H264, Codec::H265, Codec::Vp8, Codec::Vp9, Codec::Av1, Codec::Mpeg4];

type Outcome = Result<(Shape, Vec<f64>)>;

/// Says in what two outcomes differ, if they do; and prints how much.
fn compare(label: &str, found: &Outcome, wanted: &Outcome) -> Option<String> {
    let text = |outcome: &Outcome| match outcome {
        Ok((shape, _)) => shape.to_string(),
        Err(error) => error.to_string(),
    };
    let (found, wanted) = match (found, wanted) {
        (Ok(found), Ok(wanted)) if found.0 == wanted.0 => (&found.1, &wanted.1),
        (Err(found), Err(wanted)) if found.to_string() == wanted.to_string() => {
            println!("{label}: an error on both: {found}");
            return None;
        }
        _ => {
            println!("{label}: WRONG {}, expected {}", text(found), text(wanted));
            return Some(format!("{label}: {}, expected {}", text(found), text(wanted)));
        }
    };
    let differences = || found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    let largest = differences().fold(0.0, f64::max);
    let mean = differences().sum::<f64>() / found.len().max(1) as f64;
    let verdict = if largest > LARGEST { "WRONG " } else { "" };
    println!("{label}: {verdict}largest {largest}, mean {mean:.5}");
    (largest > LARGEST).then(|| format!("{label}: largest difference {largest}, mean {mean:.5}"))
}

pub(crate) fn engines(gpu: &Arc<Gpu>) -> Option<Engines> {
    match Engines::open(gpu) {
        Ok(engines) => {
            println!("{} engines", engines.count().unwrap());
            for codec in CODECS {
                let takes = |size| if engines.takes(codec, size) { "yes" } else { "no" };
                println!(
                    "{codec:?}: 48 x 32 {}, 160 x 144 {}, 4096 x 2160 {}",
                    takes([48, 32]),
                    takes([160, 144]),
                    takes([4096, 2160])
                );
            }
            Some(engines)
        }
        Err(error) => {
            println!("no video engines: everything is decoded on the host ({error})");
            None
        }
    }
}

/// What a clip becomes, and how many frames engines and host decoded of it.
fn decoded(instance: &mut Instance, file: &[u8]) -> (Outcome, [usize; 2]) {
    let outcome = run(instance, &[file.to_vec()]).remove(0);
    let decoded = instance.tally().decoded;
    (outcome, [decoded.engine_frames, decoded.frames])
}

#[test]
fn frames_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    let has_engines = engines(&gpu).is_some();
    let mut wrong = Vec::new();
    for name in PIPELINES {
        let mut on_device = instance_on(Some(&gpu), name, None);
        let mut on_host = instance_on(None, name, None);
        for (clip, file) in clips() {
            let (found, [on_engines, elsewhere]) = decoded(&mut on_device, &file);
            let (wanted, _) = decoded(&mut on_host, &file);
            let label = format!("{name} {clip}: {on_engines} frames by engines, {elsewhere} by the host");
            wrong.extend(compare(&label, &found, &wanted));
            if has_engines && wanted.is_ok() && is_for_engines(&clip) && on_engines == 0 {
                println!("{label}: WRONG expected from the engines");
                wrong.push(format!("{label}: expected from the engines"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the file `index.json` says of a clip.
#[derive(serde::Deserialize)]
struct Clip {
    /// Of every frame's RGB values.
    sums: Vec<String>,
}

/// No decoder of the host takes these; so their frames are those of FFmpeg, which `tests/data/video/make.py` wrote
/// down.
#[test]
fn what_only_engines_decode_is_as_ffmpeg_has_it() {
    let Some(gpu) = gpu() else { return };
    if engines(&gpu).is_none() {
        return;
    }
    let folder = crate::file("tests/data/video/engines");
    let index = std::fs::read(folder.join("index.json")).unwrap();
    let clips: BTreeMap<String, Clip> = serde_json::from_slice(&index).unwrap();
    let mut instance = instance_on(Some(&gpu), "video", None);
    let mut wrong = Vec::new();
    for (name, clip) in clips {
        let (outcome, [on_engines, _]) = decoded(&mut instance, &std::fs::read(folder.join(&name)).unwrap());
        let found: Vec<String> = match outcome {
            Ok((_, pixels)) => pixels.chunks(pixels.len() / clip.sums.len()).map(sum).collect(),
            Err(error) => vec![error.to_string()],
        };
        let verdict = if found == clip.sums { "equal" } else { "WRONG" };
        println!("{name}: {on_engines} frames by engines: {verdict}");
        if found != clip.sums {
            wrong.push(format!("{name}: {found:?}, expected {:?}", clip.sums));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What `blocks.json` says of a clip.
#[derive(serde::Deserialize)]
struct Blocks {
    size: [usize; 2],
    /// Of the 16 x 16 pixels of each block of each frame, in hundredths of a level.
    means: Vec<Vec<i64>>,
}

/// Rows and columns of a block.
const BLOCK: usize = 16;

/// Levels by which the mean of a block may differ: decoders of MPEG-4 Part 2 have transforms of their own.
const LARGEST_MEAN: f64 = 2.0;

/// The means of the blocks of a frame.
fn means(pixels: &[f64], width: usize) -> Vec<f64> {
    let rows: Vec<&[f64]> = pixels.chunks(width * 3).collect();
    let mut means = Vec::new();
    for band in rows.chunks(BLOCK) {
        for left in (0..width).step_by(BLOCK) {
            for channel in 0..3 {
                let of = |row: &&[f64]| (left..left + BLOCK).map(|x| row[x * 3 + channel]).sum::<f64>();
                means.push(band.iter().map(of).sum::<f64>() / (BLOCK * BLOCK) as f64);
            }
        }
    }
    means
}

#[test]
fn mpeg4_part_2_is_nearly_as_ffmpeg_has_it() {
    let Some(gpu) = gpu() else { return };
    let Some(engines) = engines(&gpu) else { return };
    if !engines.takes(Codec::Mpeg4, [176, 144]) {
        return println!("the engines do not decode MPEG-4 Part 2");
    }
    let folder = crate::file("tests/data/video/mpeg4");
    let wanted: Blocks = serde_json::from_slice(&std::fs::read(folder.join("blocks.json")).unwrap()).unwrap();
    let mut instance = instance_on(Some(&gpu), "video", None);
    let mut wrong = Vec::new();
    for ending in ["mp4", "mkv", "avi"] {
        let file = std::fs::read(folder.join(format!("mpeg4.{ending}"))).unwrap();
        let (outcome, [on_engines, _]) = decoded(&mut instance, &file);
        let (shape, pixels) = match outcome {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("{ending}: {error}"));
                continue;
            }
        };
        let [width, height] = wanted.size;
        assert_eq!(shape, Shape::from([wanted.means.len(), height, width, 3]), "{ending}");
        let apart = |frame: &[f64], wanted: &[i64]| -> f64 {
            let found = means(frame, width).into_iter().zip(wanted);
            found.map(|(a, &b)| (a - b as f64 / 100.0).abs()).fold(0.0, f64::max)
        };
        let frames = pixels.chunks(width * height * 3).zip(&wanted.means);
        let largest: Vec<f64> = frames.map(|(frame, wanted)| apart(frame, wanted)).collect();
        println!("{ending}: {on_engines} frames by engines, means of blocks differ by {largest:.2?}");
        let largest = largest.into_iter().fold(0.0, f64::max);
        if largest > LARGEST_MEAN {
            wrong.push(format!("{ending}: the mean of a block differs by {largest}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn sum(pixels: &[f64]) -> String {
    let step = |sum: u64, level: &f64| (sum ^ *level as u64).wrapping_mul(0x0100_0000_01B3);
    format!("{:016x}", pixels.iter().fold(0xCBF2_9CE4_8422_2325, step))
}

#[test]
fn a_batch_of_many_kinds_is_as_each_alone() {
    let Some(gpu) = gpu() else { return };
    let mut wrong = Vec::new();
    let clips = clips();
    let files: Vec<Vec<u8>> = clips.values().chain(clips.values()).cloned().collect();
    for name in ["video", "video_strided"] {
        let wanted = run(&mut instance_on(None, name, None), &files);
        let mut instance = instance_on(Some(&gpu), name, None);
        for round in 0..3 {
            let begun = Instant::now();
            let found = run(&mut instance, &files);
            println!(
                "{name}, round {round}: {} clips in {:?}, {:?}",
                files.len(),
                begun.elapsed(),
                instance.tally().decoded
            );
            for ((clip, found), wanted) in clips.keys().chain(clips.keys()).zip(&found).zip(&wanted) {
                wrong.extend(compare(&format!("{name} {clip}, round {round}"), found, wanted));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The file with one to four changes.
pub(crate) fn damage(numbers: &mut Numbers, file: &[u8]) -> Vec<u8> {
    let mut damaged = file.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(damaged.len());
        match numbers.below(4) {
            0 => damaged[at] ^= 1 << numbers.below(8),
            1 => damaged[at] = numbers.below(256) as u8,
            2 => damaged[at..].iter_mut().take(8).for_each(|byte| *byte = 255),
            _ => damaged.truncate(at.max(16)),
        }
    }
    damaged
}

#[test]
fn damaged_clips_end_and_leave_the_others_alone() {
    let Some(gpu) = gpu() else { return };
    let mut wrong = Vec::new();
    let mut numbers = Numbers(11);
    let mut on_device = instance_on(Some(&gpu), "video", None);
    let mut on_host = instance_on(None, "video", None);
    for (clip, file) in clips().into_iter().filter(|(clip, _)| is_for_engines(clip)) {
        let wanted = decoded(&mut on_host, &file).0;
        let [mut fine, mut failed] = [0, 0];
        for case in 0..12 {
            let files = [damage(&mut numbers, &file), file.clone()];
            let begun = Instant::now();
            let found = run(&mut on_device, &files);
            match &found[0] {
                Ok(_) => fine += 1,
                Err(_) => failed += 1,
            }
            wrong.extend(compare(&format!("{clip} beside damage {case}"), &found[1], &wanted));
            if begun.elapsed() > Duration::from_secs(60) {
                wrong.push(format!("{clip}, case {case} took {:?}", begun.elapsed()));
            }
        }
        println!("{clip}: of 12 damaged ones {fine} are decoded, {failed} fail");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Bytes of the process's own memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn memory_does_not_grow() {
    let Some(gpu) = gpu_alone() else { return };
    let files: Vec<Vec<u8>> =
        clips().into_iter().filter(|(clip, _)| is_for_engines(clip)).map(|(_, file)| file).collect();
    let mut instance = instance_on(Some(&gpu), "video_edge", None);
    let mut seen = Vec::new();
    // Until the middle every clip comes several times: decoders are kept for the formats that were seen, as many as
    // were in use at once.
    let rounds = 8 * files.len();
    for round in 0..rounds {
        // Any order of formats, as decoders are used again.
        let part: Vec<Vec<u8>> = files.iter().cycle().skip(round).take(5).cloned().collect();
        // The outputs of `run` stay, so that it is called with few clips.
        run(&mut instance, &part);
        let (free, _) = gpu.memory().unwrap();
        seen.push((free, resident()));
        if round % files.len() == 0 {
            println!("round {round}: {free} bytes free on the device");
        }
    }
    let ((first_free, first_resident), (free, resident)) = (seen[rounds / 2], seen[rounds - 1]);
    println!(
        "on the device: {first_free} bytes free, then {free}; on the host {first_resident} bytes, then {resident}"
    );
    assert!(first_free.saturating_sub(free) < 64 << 20);
    assert!(resident.saturating_sub(first_resident) < 512 << 20);
}

#[test]
fn speed_of_a_clip_of_ones_own() {
    let Some(path) = std::env::var_os("GESSO_VIDEO") else { return println!("skipped: no GESSO_VIDEO") };
    let Some(gpu) = gpu() else { return };
    let file = std::fs::read(path).unwrap();
    for (place, gpu) in [("device", Some(&gpu)), ("host", None)] {
        let mut instance = instance_on(gpu, "video_strided", None);
        for copies in [1, 8, 32] {
            let files = vec![file.clone(); copies];
            for round in 0..3 {
                let begun = Instant::now();
                let outcomes = run(&mut instance, &files);
                let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
                println!(
                    "{place}: {copies} clips, round {round}: {:?}, {failed} failed, {:?}",
                    begun.elapsed(),
                    instance.tally().decoded
                );
            }
        }
    }
}
