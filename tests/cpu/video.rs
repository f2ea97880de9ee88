//! Videos against what FFmpeg decodes of them (`tests/data/video/make.py` wrote that down), frame by frame; and damaged
//! ones, which must end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Once;
use std::time::{Duration, Instant};

use gesso::cpu::video::{Budget, Cursor, Video};
use gesso::error::Result;

use crate::numbers::Numbers;

/// What `index.json` says of a clip.
#[derive(serde::Deserialize)]
pub(crate) struct Clip {
    size: [usize; 2],
    frames: usize,
    /// Of every frame's RGB values; none of Motion JPEG.
    sums: Option<Vec<String>>,
}

fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("tests/data/video")
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

pub(crate) fn clips() -> BTreeMap<String, Clip> {
    serde_json::from_slice(&bytes("index.json")).unwrap()
}

/// The frames `wanted`, which ascend.
fn decoded(file: &[u8], wanted: &[usize]) -> Result<Vec<Vec<u8>>> {
    let video = Video::open(file)?;
    let mut found = BTreeMap::new();
    let budget = Budget::default();
    for run in video.runs(wanted)? {
        video.decode(run, &budget, &mut |number, frame| {
            let mut pixels = vec![0; video.height() * video.width() * 3];
            frame.write(&mut pixels)?;
            assert!(found.insert(number, pixels).is_none(), "frame {number} comes twice");
            Ok(())
        })?;
    }
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), wanted);
    Ok(found.into_values().collect())
}

/// At most `most` frames, one after the other; and why there are no more, if there should be.
pub(crate) fn in_order(file: &[u8], most: usize) -> (Vec<Vec<u8>>, Result<()>) {
    let mut found = Vec::new();
    let mut read = || {
        let mut cursor = Cursor::new(Video::open(file.to_vec())?);
        let size = cursor.video().height() * cursor.video().width() * 3;
        while cursor.left() > 0 && found.len() < most {
            let mut pixels = vec![0; size];
            cursor.read(&Budget::default(), &mut pixels)?;
            found.push(pixels);
        }
        Ok(())
    };
    let read = read();
    (found, read)
}

fn sum(pixels: &[u8]) -> String {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    format!("{:016x}", pixels.iter().fold(0xCBF2_9CE4_8422_2325, step))
}

#[test]
fn frames_are_those_of_ffmpeg() {
    for (name, clip) in clips() {
        let file = bytes(&name);
        let video = Video::open(&file).unwrap();
        assert_eq!(([video.width(), video.height()], video.frames()), (clip.size, clip.frames), "{name}");
        let all: Vec<usize> = (0..clip.frames).collect();
        let found: Vec<String> = decoded(&file, &all).unwrap().iter().map(|frame| sum(frame)).collect();
        let expected = clip.sums.unwrap_or_else(|| found.clone());
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn motion_jpeg_is_the_same_in_all_containers() {
    let [first, rest @ ..] = ["mjpeg.mov", "mjpeg.mkv", "mjpeg.avi"];
    let frames = |name: &str| decoded(&bytes(name), &[0, 1, 2, 3, 4, 5]).unwrap();
    let expected = frames(first);
    assert!(expected.windows(2).all(|pair| pair[0] != pair[1]));
    for name in rest {
        assert!(frames(name) == expected, "{name}");
    }
}

#[test]
fn any_frames_are_those_of_the_whole() {
    for (name, clip) in clips() {
        let file = bytes(&name);
        let all = decoded(&file, &(0..clip.frames).collect::<Vec<_>>()).unwrap();
        for step in 1..clip.frames {
            for start in [0, 1, step / 2, clip.frames - 1] {
                let wanted: Vec<usize> = (start..clip.frames).step_by(step).collect();
                let expected: Vec<&Vec<u8>> = wanted.iter().map(|&frame| &all[frame]).collect();
                let found = decoded(&file, &wanted).unwrap();
                assert!(found.iter().eq(expected), "{name}: {wanted:?}");
            }
        }
        let error = decoded(&file, &[clip.frames]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("frame {} of a video of {} frames", clip.frames, clip.frames)),
            "{error}"
        );
    }
}

thread_local! {
    /// Where this thread panicked last.
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What `body` gives; nothing, where a library panics: that fails a sample, and is an error of it. A panic of our own
/// code fails the test.
pub(crate) fn unless_a_library_panics<T>(body: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICKED.set(info.location().map(ToString::to_string));
            before(info);
        }));
    });
    let ended = catch_unwind(AssertUnwindSafe(body)).ok();
    if ended.is_none() {
        let place = PANICKED.take().unwrap_or_default();
        assert!(
            PathBuf::from(&place).is_absolute(),
            "a panic in {place}: those of libraries have whole paths"
        );
    }
    ended
}

/// The file with one to four changes.
pub(crate) fn damage(numbers: &mut Numbers, file: &[u8]) -> Vec<u8> {
    let mut damaged = file.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(damaged.len());
        let rest = damaged.len() - at;
        match numbers.below(6) {
            0 => damaged[at] ^= 1 << numbers.below(8),
            1 => damaged[at] = numbers.below(256) as u8,
            2 => damaged[at..].iter_mut().take(4).for_each(|byte| *byte = 255),
            3 => drop(damaged.drain(at..at + numbers.below(16).min(rest))),
            4 => drop(damaged.splice(at..at, (0..numbers.below(16) as u8).collect::<Vec<_>>())),
            _ => damaged.truncate(at.max(16)),
        }
    }
    damaged
}

/// So many changes of each clip; more by `GESSO_VIDEO_CASES=5000`.
pub(crate) fn cases() -> usize {
    std::env::var("GESSO_VIDEO_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
}

#[test]
fn damaged_files_end() {
    let others = ["mp4", "mkv", "avi"].map(|ending| format!("mpeg4/mpeg4.{ending}"));
    for name in clips().into_keys().chain(others) {
        let (file, mut numbers) = (bytes(&name), Numbers(7));
        for case in 0..cases() {
            let damaged = damage(&mut numbers, &file);
            let begun = Instant::now();
            let _ = unless_a_library_panics(|| drop(in_order(&damaged, 16)));
            let _ = unless_a_library_panics(|| {
                let frames = Video::open(&damaged)?.frames().min(16);
                decoded(&damaged, &(0..frames).collect::<Vec<_>>()).map(drop)
            });
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(60), "{name}, case {case} took {took:?}");
        }
    }
}

#[test]
fn frames_one_after_the_other_are_those_of_the_whole() {
    for (name, clip) in clips() {
        let file = bytes(&name);
        let all = decoded(&file, &(0..clip.frames).collect::<Vec<_>>()).unwrap();
        let (found, read) = in_order(&file, usize::MAX);
        read.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(found == all, "{name}");
    }
}

#[test]
fn a_video_that_is_damaged_in_the_middle_has_the_frames_before() {
    let file = bytes("h264_open.mp4");
    let all = in_order(&file, usize::MAX).0;
    let mut damaged = file.clone();
    let at = file.windows(4).position(|name| name == b"mdat").unwrap() + 2_400;
    damaged[at..at + 300].fill(255);
    let (found, read) = in_order(&damaged, usize::MAX);
    assert!(
        read.is_err() && !found.is_empty() && found.len() < all.len(),
        "{} of {}",
        found.len(),
        all.len()
    );
    assert!(found == all[..found.len()]);
}

#[test]
fn frames_have_times() {
    for (name, expected) in
        [("vp9.webm", 0.04), ("vp9.ivf", 0.04), ("mjpeg.avi", 0.04), ("mjpeg.mov", 0.04), ("h264.h264", 0.04)]
    {
        let file = bytes(name);
        let video = Video::open(&file).unwrap();
        for frame in 0..video.frames() {
            let (found, expected) = (video.seconds(frame), frame as f64 * expected);
            assert!((found - expected).abs() < 1e-6, "{name}: frame {frame} at {found}, expected {expected}");
        }
    }
}

/// The clip in IVF again and again, until it has `count` frames: a header, then each frame behind its length and time.
fn repeated(count: usize) -> Vec<u8> {
    let clip = bytes("vp9.ivf");
    let (mut packets, mut rest) = (Vec::new(), &clip[32..]);
    while !rest.is_empty() {
        let (packet, after) = rest[12..].split_at(u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize);
        packets.push(packet);
        rest = after;
    }
    let mut file = clip[..32].to_vec();
    for (time, packet) in packets.iter().cycle().take(count).enumerate() {
        file.extend((packet.len() as u32).to_le_bytes());
        file.extend((time as u64).to_le_bytes());
        file.extend(*packet);
    }
    file
}

#[test]
fn videos_of_no_frame_of_one_and_of_many() {
    let clip = decoded(&bytes("vp9.ivf"), &(0..12).collect::<Vec<_>>()).unwrap();
    assert!(Video::open(repeated(0)).unwrap_err().to_string().contains("without a frame"));
    assert!(decoded(&repeated(1), &[0]).unwrap() == clip[..1]);
    let (file, begun) = (repeated(100_000), Instant::now());
    assert_eq!(Video::open(&file).unwrap().frames(), 100_000);
    let wanted = [0, 50_003, 99_999];
    let found = decoded(&file, &wanted).unwrap();
    assert!(found.iter().zip(wanted).all(|(frame, number)| *frame == clip[number % 12]));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn files_that_are_no_videos_say_so() {
    for (file, expected) in [
        (Vec::new(), "no bytes"),
        (b"\x89PNG\r\n\x1a\n".to_vec(), "not a video of a known kind"),
        (b"\0\0\0\x08moov".to_vec(), "no video track"),
        (b"\x1A\x45\xDF\xA3\x80".to_vec(), "without a segment"),
        (b"RIFF\x04\0\0\0AVI ".to_vec(), "without a frame"),
    ] {
        let error = Video::open(&file).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_table_that_tells_of_billions_of_frames_costs_nothing() {
    let mut file = bytes("h264.mp4");
    let at = file.windows(4).position(|name| name == b"stsz").unwrap();
    // All samples have one byte, and there are four billion of them.
    file[at + 8..at + 16].copy_from_slice(&[0, 0, 0, 1, 255, 255, 255, 255]);
    let begun = Instant::now();
    assert!(decoded(&file, &[0]).is_err());
    // To look at each of them would take many minutes.
    assert!(begun.elapsed() < Duration::from_secs(60));
}
