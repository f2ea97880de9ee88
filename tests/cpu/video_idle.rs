//! Decoders that are kept from one video to the next decode as new ones do, whatever came before: also what is damaged,
//! and what lacks parameters that the video before had.

use std::sync::Arc;

use gesso::cpu::video::{Budget, Idle, Video};
use gesso::error;

use crate::numbers::Numbers;
use crate::video::{bytes, cases, damage, unless_a_library_panics};

const CLIPS: [&str; 6] = [
    "h265.mp4",
    "h265.hevc",
    "h265_10_bits.mkv",
    "large_h265.mp4",
    "large_h265.hevc",
    "large_h265_10_bits.mkv",
];

/// All frames, by a decoder that `idle` keeps, or by new ones; the text of an error.
fn all(file: &[u8], idle: Option<&Arc<Idle>>) -> Result<Vec<u8>, String> {
    let read = || -> error::Result<Vec<u8>> {
        let video = Video::open(file)?;
        let frames: Vec<_> = (0..video.frames().min(64)).map(Some).collect();
        let mut pixels = vec![0; frames.len() * video.height() * video.width() * 3];
        let budget = Budget::default().by_own_decoders();
        let budget = idle.map_or(budget, |idle| Budget::default().by_own_decoders().keeping(idle));
        video.write_all(&frames, [0; 3], &mut pixels, &budget, 1)?;
        Ok(pixels)
    };
    read().map_err(|error| error.to_string())
}

/// Where units of these types are in a stream with start codes.
fn units(stream: &[u8], kinds: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut starts: Vec<usize> =
        (0..stream.len().saturating_sub(3)).filter(|&at| stream[at..at + 3] == [0, 0, 1]).collect();
    starts.push(stream.len());
    let ranges = starts.windows(2).map(|pair| pair[0]..pair[1]);
    ranges.filter(|range| kinds.contains(&(stream[range.start + 3] >> 1 & 0x3F))).collect()
}

#[test]
fn videos_one_after_the_other_have_their_pixels() {
    let idle = Arc::new(Idle::default());
    for round in 0..2 {
        for name in CLIPS {
            let file = bytes(name);
            assert!(all(&file, Some(&idle)) == all(&file, None), "{name}, round {round}");
        }
    }
}

#[test]
fn a_decoder_is_used_again_by_videos_of_its_size() {
    let idle = Arc::new(Idle::default());
    let held = |name| {
        all(&bytes(name), Some(&idle)).unwrap();
        idle.held()
    };
    let small = held("h265.mp4");
    assert!(small > 0);
    assert_eq!(held("h265.mp4"), small);
    let both = held("large_h265.mp4");
    assert!(both > small);
    assert_eq!((held("large_h265.mp4"), held("h265.mp4")), (both, both));
}

#[test]
fn none_is_kept_where_there_is_no_room() {
    let file = bytes("h265.mp4");
    let idle = Arc::new(Idle::within(1_000));
    assert!(all(&file, Some(&idle)) == all(&file, None));
    assert_eq!(idle.held(), 0);
}

#[test]
fn damage_is_found_as_by_a_new_decoder() {
    for name in CLIPS {
        let (file, mut numbers, idle) = (bytes(name), Numbers(11), Arc::new(Idle::default()));
        for case in 0..cases() {
            let damaged = damage(&mut numbers, &file);
            all(&file, Some(&idle)).unwrap();
            let [kept, new] = [Some(&idle), None].map(|idle| unless_a_library_panics(|| all(&damaged, idle)));
            assert!(kept == new, "{name}, case {case}: {:?}", (kept.map(Result::err), new.map(Result::err)));
        }
    }
}

#[test]
fn parameters_of_the_video_before_are_not_those_of_the_next() {
    // Parameters of sequences and of pictures.
    const KINDS: [u8; 2] = [33, 34];
    let (file, idle) = (bytes("large_h265.hevc"), Arc::new(Idle::default()));
    let found = units(&file, &KINDS);
    assert!(found.len() >= 2);
    for unit in found {
        let mut without = file.clone();
        without.drain(unit);
        all(&file, Some(&idle)).unwrap();
        assert!(all(&without, Some(&idle)) == all(&without, None));
    }
}
