//! An installed FFmpeg beside Gesso's own decoders: the same pixels of whole clips, and errors of damaged ones. Where
//! there is no FFmpeg, both are the same.

use gesso::cpu::video::{Budget, Cursor, Ffmpeg, Growing, Video};
use gesso::error::Result;

use crate::numbers::Numbers;
use crate::video::{bytes, cases, clips, damage, unless_a_library_panics};

/// Frames of a video one after the other, at most `most`; and why there are no more, if there should be.
fn in_order(file: &[u8], most: usize, budget: &Budget<'_>) -> (Vec<Vec<u8>>, Result<()>) {
    let mut found = Vec::new();
    let mut read = || {
        let mut cursor = Cursor::new(Video::open(file.to_vec())?);
        let size = cursor.video().height() * cursor.video().width() * 3;
        while cursor.left() > 0 && found.len() < most {
            let mut pixels = vec![0; size];
            cursor.read(budget, &mut pixels)?;
            found.push(pixels);
        }
        Ok(())
    };
    let read = read();
    (found, read)
}

/// Frames of a video that comes in pieces of 100 bytes.
fn grown(file: &[u8], budget: &Budget<'_>) -> Result<Vec<Vec<u8>>> {
    let (mut growing, mut found) = (Growing::default(), Vec::new());
    for (number, piece) in file.chunks(100).enumerate() {
        growing.push(piece, (number + 1) * 100 >= file.len())?;
        while growing.prepare(budget)? {
            let mut pixels = vec![0; growing.size().iter().product::<usize>() * 3];
            growing.write(budget, &mut pixels)?;
            found.push(pixels);
        }
    }
    Ok(found)
}

fn both() -> [Budget<'static>; 2] {
    [Budget::default(), Budget::default().by_own_decoders()]
}

#[test]
fn clips_have_the_same_pixels() {
    for (name, _) in clips() {
        let file = bytes(&name);
        let [any, own] = both().map(|budget| in_order(&file, usize::MAX, &budget));
        any.1.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(own.1.is_ok() && any.0 == own.0, "{name}");
    }
}

#[test]
fn clips_in_pieces_have_the_same_pixels() {
    for name in
        ["h264.h264", "h264_fragments.mp4", "h264_cropped.mkv", "h264_interlaced.mp4", "vp9.webm", "vp9.ivf"]
    {
        let file = bytes(name);
        let [any, own] = both().map(|budget| grown(&file, &budget));
        match (any, own) {
            (Ok(any), Ok(own)) => assert!(any == own && !any.is_empty(), "{name}"),
            // Its index stands behind its frames.
            (Err(any), Err(own)) => assert_eq!(any.to_string(), own.to_string(), "{name}"),
            (any, own) => panic!("{name}: {:?}, {:?}", any.err(), own.err()),
        }
    }
}

#[test]
fn any_frames_are_those_of_the_whole_by_ffmpeg_too() {
    for name in ["h264.mp4", "h264_open.mp4", "h264_edited.mp4", "vp9.webm"] {
        let file = bytes(name);
        let video = Video::open(&file).unwrap();
        let all: Vec<Option<usize>> = (0..video.frames()).map(Some).collect();
        let size = video.width() * video.height() * 3;
        let [any, own] = both();
        let mut whole = vec![0; all.len() * size];
        video.write_all(&all, [0; 3], &mut whole, &own, 1).unwrap();
        for step in [1, 2, 5] {
            let wanted: Vec<Option<usize>> = all.iter().copied().skip(step).step_by(step).collect();
            let mut found = vec![0; wanted.len() * size];
            video.write_all(&wanted, [0; 3], &mut found, &any, 2).unwrap();
            let expected: Vec<u8> =
                wanted.iter().flatten().flat_map(|&frame| whole[frame * size..][..size].to_vec()).collect();
            assert!(found == expected, "{name}, every {step}");
        }
    }
}

/// What our own decoder of H.264 refuses, FFmpeg refuses; and where both decode all of it, the pixels are the same.
#[test]
fn damage_in_h264_is_told_by_ffmpeg_too() {
    for name in ["h264.mp4", "h264.h264", "h264_cropped.mkv", "h264_10_bits.mp4"] {
        let (file, mut numbers) = (bytes(name), Numbers(11));
        let (mut told, mut whole) = (0, 0);
        for case in 0..cases() {
            let damaged = damage(&mut numbers, &file);
            let [any, own] = both().map(|budget| unless_a_library_panics(|| in_order(&damaged, 16, &budget)));
            let Some((own, own_end)) = own else { continue };
            let (any, any_end) = any.unwrap_or_else(|| panic!("{name}, case {case}: a panic"));
            assert!(any_end.is_err() || own_end.is_ok(), "{name}, case {case}: {own_end:?}");
            told += usize::from(any_end.is_err());
            if any_end.is_ok() {
                assert!(any == own, "{name}, case {case}: other pixels");
                whole += 1;
            }
        }
        assert!(told > 0 && whole > 0, "{name}: {told} errors, {whole} whole ones");
    }
}

#[test]
fn mpeg4_is_decoded_by_ffmpeg_alone() {
    let videos = ["mp4", "mkv", "avi"].map(|ending| bytes(&format!("mpeg4/mpeg4.{ending}")));
    let [any, own] = both();
    assert!(videos.iter().all(|file| in_order(file, 1, &own).1.is_err()));
    if !matches!(Ffmpeg::find(), Ffmpeg::Used(_)) {
        return;
    }
    let [first, rest @ ..] = videos.map(|file| {
        let (frames, end) = in_order(&file, usize::MAX, &any);
        end.unwrap();
        frames
    });
    assert_eq!(first.len(), 12);
    assert!(first.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(rest.iter().all(|frames| *frames == first));
}
