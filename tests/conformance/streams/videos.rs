//! Videos that are fed, in streams and in instances, by pipelines that DALI serialized (`tests/data/video/streams`).

use std::path::PathBuf;

use gesso::error::{Error, ErrorKind, Result};
use gesso::pipeline::{Keep, Outcome, Pipeline, StreamSettings};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};

fn file(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("tests/data/video");
    std::fs::read(folder.join(name)).unwrap()
}

fn pipeline(name: &str) -> Pipeline {
    Pipeline::load(&file(&format!("streams/{name}.dali")), Device::Cpu).unwrap()
}

/// A batch of samples of one dimension.
fn batch(dtype: DType, samples: &[&'static [u8]]) -> Batch<'static> {
    let shapes = samples.iter().map(|bytes| Shape::from([bytes.len() / dtype.size()])).collect();
    let samples = samples.iter().map(|bytes| Sample::Borrowed(bytes)).collect();
    Batch::new(BatchDesc::new(dtype, Layout::NONE, shapes), samples).unwrap()
}

fn video(name: &str) -> Batch<'static> {
    batch(DType::U8, &[file(name).leak()])
}

/// The frames of each sample, and the sum of their bytes.
fn frames(outcome: &Outcome<'_>) -> Vec<(usize, u64)> {
    let output = &outcome.outputs[0];
    let sum = |i| output.view(i).bytes.iter().map(|&byte| u64::from(byte)).sum();
    (0..output.len()).map(|i| (output.view(i).shape[0], sum(i))).collect()
}

fn counts(batches: &[Vec<(usize, u64)>]) -> Vec<Vec<usize>> {
    batches.iter().map(|batch| batch.iter().map(|&(count, _)| count).collect()).collect()
}

/// What a stream gives until it ends.
fn taken(stream: &mut gesso::pipeline::Stream) -> Result<Vec<Vec<(usize, u64)>>> {
    stream.map(|delivered| delivered.map(|delivered| frames(&delivered.outcome))).collect()
}

fn one_lane() -> StreamSettings {
    StreamSettings { num_threads: Some(1), to_host: true, ..StreamSettings::default() }
}

#[test]
fn a_stream_gives_the_sequences_of_one_video_after_the_other() {
    let mut stream = pipeline("partial").stream(&one_lane(), None).unwrap();
    stream.feed("VIDEO", &video("vp9.webm")).unwrap();
    let first = taken(&mut stream).unwrap();
    assert_eq!(counts(&first), [[7, 5]]);
    assert!(stream.next().is_none(), "a stream that has ended");
    stream.feed("VIDEO", &video("h264.mp4")).unwrap();
    stream.feed("VIDEO", &video("vp9.webm")).unwrap();
    let more = taken(&mut stream).unwrap();
    assert_eq!(counts(&more), [[7, 5], [7, 5]], "a batch has sequences of one video");
    assert_eq!(more[1], first[0]);
    assert!(stream.feed("OTHER", &video("vp9.webm")).is_err());
}

#[test]
fn what_stands_beside_a_video_comes_with_every_batch() {
    let pipeline = pipeline("beside");
    let names: Vec<(&str, Option<DType>, Option<usize>)> =
        pipeline.inputs().iter().map(|input| (input.name.as_str(), input.dtype, input.ndim)).collect();
    assert_eq!(names, [("VIDEO", Some(DType::U8), Some(1)), ("NUMBER", Some(DType::I32), Some(1))]);
    assert!(pipeline.takes_videos() && !pipeline.reads());
    let mut instance = pipeline.instance(Some(1), None).unwrap();
    for numbers in [&[&[7, 0, 0, 0][..]][..], &[&[7, 0, 0, 0], &[8, 0, 0, 0], &[9, 0, 0, 0]]] {
        let mut feeding = instance.feed(&[video("vp9.webm"), batch(DType::I32, numbers)]).unwrap();
        let (mut found, mut counted) = (Vec::new(), 0);
        while !feeding.is_over() {
            let (_, outcome) = instance.run_fed(&mut feeding, &|| true, |_| Keep).unwrap().unwrap();
            counted += instance.tally().decoded.frames;
            let number = |i| outcome.outputs[1].view(i).bytes[0];
            let made = frames(&outcome);
            found.push(made.iter().enumerate().map(|(i, frame)| (frame.0, number(i))).collect::<Vec<_>>());
        }
        // The shorter sequence is a batch of its own, as a response is one tensor.
        let expected: &[&[(usize, u8)]] = match numbers.len() {
            1 => &[&[(5, 7), (5, 7)], &[(2, 7)]],
            _ => &[&[(5, 7), (5, 8)], &[(2, 9)]],
        };
        assert_eq!(found, expected);
        assert_eq!(counted, 12);
        assert!(instance.run_fed(&mut feeding, &|| true, |_| Keep).unwrap().is_none());
    }
    let too_few = batch(DType::I32, &[&[7, 0, 0, 0], &[8, 0, 0, 0]]);
    let mut feeding = instance.feed(&[video("vp9.webm"), too_few]).unwrap();
    let error = instance.run_fed(&mut feeding, &|| true, |_| Keep).err().unwrap().to_string();
    assert!(error.contains("2 samples were fed for batches of 3"), "{error}");
    let plain = instance.run(1, vec![video("vp9.webm")], &mut Keep).err().unwrap().to_string();
    assert!(plain.contains("made of a video"), "{plain}");
}

#[test]
fn a_damaged_video_gives_what_is_before_the_damage_and_then_its_error() {
    let mut bytes = file("h264_open.mp4");
    let at = bytes.windows(4).position(|name| name == b"mdat").unwrap() + 2_400;
    bytes[at..at + 300].fill(255);
    let damaged = batch(DType::U8, &[bytes.leak()]);
    let mut stream = pipeline("partial").stream(&one_lane(), None).unwrap();
    stream.feed("VIDEO", &damaged).unwrap();
    let first = frames(&stream.next().unwrap().unwrap().outcome);
    assert!(!first.is_empty());
    let rest: Vec<Result<()>> = stream.by_ref().map(|delivered| delivered.map(drop)).collect();
    let errors: Vec<String> =
        rest.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    assert!(matches!(errors.as_slice(), [error] if error.contains("frame ")), "{errors:?}");
    // It goes on with the next one.
    stream.feed("VIDEO", &video("vp9.webm")).unwrap();
    assert_eq!(counts(&taken(&mut stream).unwrap()), [[7, 5]]);
}

#[test]
fn decoding_ends_when_nobody_waits() {
    let mut instance = pipeline("partial").instance(Some(1), None).unwrap();
    let mut feeding = instance.feed(&[video("vp9.webm")]).unwrap();
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let is_wanted = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 3;
    let error: Error = instance.run_fed(&mut feeding, &is_wanted, |_| Keep).err().unwrap();
    assert_eq!((error.kind(), asked.into_inner()), (ErrorKind::Cancelled, 4));
    assert!(feeding.is_over());
}
