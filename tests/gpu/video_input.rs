//! `inputs.video` of device `mixed`: its sequences against those of the host's decoders, for every clip; damaged clips,
//! requests that are left, memory. The pipelines are from data/make.py.

use std::sync::Arc;
use std::time::Instant;

use gesso::error::ErrorKind;
use gesso::gpu::Gpu;
use gesso::pipeline::{Instance, Keep, StreamSettings};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};

use crate::decoders::instance_on;
use crate::numbers::Numbers;
use crate::video::{clips, damage, engines, is_for_engines};
use crate::{gpu, gpu_alone};

const PIPELINES: [&str; 3] = ["sequences", "sequences_pad", "sequences_one"];

/// Levels by which a sample may differ.
const LARGEST: u8 = 2;

/// Device memory that may be gone after many videos: pools and kept decoders.
const ROOM: usize = 96 << 20;

fn batch(file: &[u8]) -> Batch<'_> {
    let desc = BatchDesc::new(DType::U8, Layout::NONE, vec![Shape::from([file.len()])]);
    Batch::new(desc, vec![Sample::Borrowed(file)]).unwrap()
}

/// What a video becomes: the batches, each with its sequences; the error behind them; frames decoded by engines and by
/// the host.
struct Answers {
    batches: Vec<Vec<(Shape, Vec<u8>)>>,
    error: Option<String>,
    frames: [usize; 2],
}

fn answers(instance: &mut Instance, file: &[u8]) -> Answers {
    let mut answers = Answers { batches: Vec::new(), error: None, frames: [0; 2] };
    let mut feeding = match instance.feed(&[batch(file)]) {
        Ok(feeding) => feeding,
        Err(error) => return Answers { error: Some(error.to_string()), ..answers },
    };
    while !feeding.is_over() {
        match instance.run_fed(&mut feeding, &|| true, |_| Keep) {
            Err(error) => answers.error = Some(error.to_string()),
            Ok(None) => break,
            Ok(Some((_, outcome))) => {
                let decoded = instance.tally().decoded;
                answers.frames[0] += decoded.engine_frames;
                answers.frames[1] += decoded.frames;
                let output = instance.to_host(&outcome.outputs[0]).unwrap();
                let sequence = |i| (output.view(i).shape.clone(), output.view(i).bytes.to_vec());
                answers.batches.push((0..output.len()).map(sequence).collect());
            }
        }
    }
    answers
}

/// In what two answers differ, if they do.
fn difference(found: &Answers, wanted: &Answers) -> Option<String> {
    let shapes = |answers: &Answers| {
        let of = |batch: &Vec<(Shape, Vec<u8>)>| batch.iter().map(|(shape, _)| shape.to_string()).collect();
        answers.batches.iter().map(of).collect::<Vec<Vec<String>>>()
    };
    if (shapes(found), &found.error) != (shapes(wanted), &wanted.error) {
        return Some(format!(
            "{:?} {:?}, expected {:?} {:?}",
            shapes(found),
            found.error,
            shapes(wanted),
            wanted.error
        ));
    }
    let bytes = |answers: &Answers| -> Vec<u8> {
        answers.batches.iter().flatten().flat_map(|(_, bytes)| bytes.clone()).collect()
    };
    let largest = bytes(found).into_iter().zip(bytes(wanted)).map(|(a, b)| a.abs_diff(b)).max();
    largest.filter(|&largest| largest > LARGEST).map(|largest| format!("largest difference {largest}"))
}

#[test]
fn sequences_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    let has_engines = engines(&gpu).is_some();
    let mut wrong = Vec::new();
    for name in PIPELINES {
        let mut on_device = instance_on(Some(&gpu), name, None);
        let mut on_host = instance_on(None, name, None);
        for (clip, file) in clips() {
            let (found, wanted) = (answers(&mut on_device, &file), answers(&mut on_host, &file));
            let label = format!("{name} {clip}: {:?} frames by engines and host", found.frames);
            let differs = difference(&found, &wanted);
            println!("{label}: {}", differs.as_deref().unwrap_or("equal"));
            wrong.extend(differs.map(|text| format!("{label}: {text}")));
            // An edit list may have gaps, over which the host's decoders need not go; it ascends in these clips.
            if has_engines && is_for_engines(&clip) && found.frames[1] > 0 {
                wrong.push(format!("{label}: expected all from the engines"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The frames of `large_h264.mp4`'s codec over and over: an Annex B stream many times as long.
fn long(times: usize) -> Vec<u8> {
    std::fs::read(crate::file("tests/data/video/h264.h264")).unwrap().repeat(times)
}

#[test]
fn a_long_video_is_decoded_once_in_little_memory() {
    let Some(gpu) = gpu_alone() else { return };
    if engines(&gpu).is_none() {
        return;
    }
    let (times, mut instance) = (2_000, instance_on(Some(&gpu), "sequences", None));
    let short = answers(&mut instance, &long(1));
    assert!(short.error.is_none(), "{:?}", short.error);
    let frames: Vec<u8> = short.batches.iter().flatten().flat_map(|(_, bytes)| bytes.clone()).collect();
    let file = long(times);
    let mut feeding = instance.feed(&[batch(&file)]).unwrap();
    let (begun, mut first, mut at, mut least) = (Instant::now(), None, 0, usize::MAX);
    let (before, _) = gpu.memory().unwrap();
    while let Some((_, outcome)) = instance.run_fed(&mut feeding, &|| true, |_| Keep).unwrap() {
        first.get_or_insert_with(|| begun.elapsed());
        let decoded = instance.tally().decoded;
        assert_eq!(decoded.frames, 0, "the host decoded from byte {at} on");
        let output = instance.to_host(&outcome.outputs[0]).unwrap();
        for i in 0..output.len() {
            for frame in output.view(i).bytes.chunks(frames.len() / 12) {
                let from = at % frames.len();
                assert!(frame == &frames[from..from + frame.len()], "frame {}", at / frame.len());
                at += frame.len();
            }
        }
        least = least.min(gpu.memory().unwrap().0);
        if feeding.is_over() {
            break;
        }
    }
    let (all, first) = (begun.elapsed(), first.unwrap());
    println!("{} frames in {all:?}, the first batch after {first:?}; {} bytes", 12 * times, before - least);
    assert_eq!(at, times * frames.len());
    assert!(first < all / 20, "the first batch took {first:?} of {all:?}");
    assert!(before.saturating_sub(least) < ROOM);
}

#[test]
fn a_damaged_video_has_the_frames_before_and_then_the_hosts_error() {
    let Some(gpu) = gpu() else { return };
    let mut wrong = Vec::new();
    for name in PIPELINES {
        let mut on_device = instance_on(Some(&gpu), name, None);
        let mut on_host = instance_on(None, name, None);
        for clip in ["h264.mp4", "h264_open.mp4", "h264_interlaced.mp4"] {
            let mut file = std::fs::read(crate::file("tests/data/video").join(clip)).unwrap();
            let data = file.windows(4).position(|name| name == b"mdat").unwrap();
            let at = data + (file.len() - data) / 2;
            file[at..at + 300].fill(255);
            let (found, wanted) = (answers(&mut on_device, &file), answers(&mut on_host, &file));
            let label = format!("{name} {clip}: {:?} frames by engines and host", found.frames);
            println!("{label}, then {:?}", found.error);
            assert!(wanted.error.is_some(), "{label}: the host finds no damage");
            wrong.extend(difference(&found, &wanted).map(|text| format!("{label}: {text}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn videos_with_random_damage_end_and_the_next_one_is_right() {
    let Some(gpu) = gpu() else { return };
    let mut numbers = Numbers(13);
    let mut instance = instance_on(Some(&gpu), "sequences", None);
    let mut wrong = Vec::new();
    for (clip, file) in clips().into_iter().filter(|(clip, _)| is_for_engines(clip)) {
        let wanted = answers(&mut instance, &file);
        for case in 0..8 {
            let found = answers(&mut instance, &damage(&mut numbers, &file));
            println!("{clip}, case {case}: {:?} frames by engines and host, {:?}", found.frames, found.error);
            let again = difference(&answers(&mut instance, &file), &wanted);
            wrong.extend(again.map(|text| format!("{clip} behind case {case}: {text}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn free(gpu: &Arc<Gpu>) -> usize {
    gpu.memory().unwrap().0
}

#[test]
fn who_goes_away_frees_the_decoder() {
    let Some(gpu) = gpu_alone() else { return };
    let mut instance = instance_on(Some(&gpu), "sequences_one", None);
    let file = std::fs::read(crate::file("tests/data/video/large_h264.mp4")).unwrap();
    let mut seen = Vec::new();
    for round in 0..60 {
        let mut feeding = instance.feed(&[batch(&file)]).unwrap();
        instance.run_fed(&mut feeding, &|| true, |_| Keep).unwrap().unwrap();
        if round % 2 == 0 {
            // In the middle of a batch.
            let error = instance.run_fed(&mut feeding, &|| false, |_| Keep).err();
            assert!(error.is_none_or(|error| error.kind() == ErrorKind::Cancelled));
        }
        drop(feeding);
        seen.push(free(&gpu));
    }
    println!("bytes free after 20 and after 60 videos that were left: {} and {}", seen[19], seen[59]);
    assert!(seen[19].saturating_sub(seen[59]) < ROOM);
    assert!(answers(&mut instance, &file).error.is_none());
}

#[test]
fn a_stream_of_videos_is_that_of_the_host() {
    let Some(gpu) = gpu() else { return };
    let file = std::fs::read(crate::file("tests/gpu/data/sequences.dali")).unwrap();
    let settings = StreamSettings { to_host: true, prefetch: 2, ..StreamSettings::default() };
    let clips = ["large_h264.mp4", "vp9.webm", "large_vp9.webm", "large_h264.mp4"];
    let sums = |device, gpu: Option<&Arc<Gpu>>| -> Vec<Vec<(Shape, u64)>> {
        let pipeline = gesso::pipeline::Pipeline::load(&file, device).unwrap();
        let mut stream = pipeline.stream(&settings, gpu).unwrap();
        for clip in clips {
            stream
                .feed("VIDEO", &batch(&std::fs::read(crate::file("tests/data/video").join(clip)).unwrap()))
                .unwrap();
        }
        let of = |output: &Batch<'_>| {
            let sum = |i| output.view(i).bytes.iter().map(|&byte| u64::from(byte)).sum();
            (0..output.len()).map(|i| (output.view(i).shape.clone(), sum(i))).collect()
        };
        stream.map(|delivered| of(&delivered.unwrap().outcome.outputs[0])).collect()
    };
    assert_eq!(sums(Device::Gpu, Some(&gpu)), sums(Device::Cpu, None));
}
