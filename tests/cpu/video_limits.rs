//! Videos that take more memory or time than their first frame lets expect: they end, having held and done no more than
//! was allowed. The clips are those of `tests/data/video`; what is wrong with them is made here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gesso::cpu::video::{Budget, Growing, Video};
use gesso::deadline::{Deadline, Watch};
use gesso::error::{Error, ErrorKind, Result};

use crate::h264_maker::{Picture, Sequence};
use crate::video::{bytes, clips};

/// Somebody who does not wait any more when he was asked so many times.
struct Patient(AtomicUsize);

impl Deadline for Patient {
    fn check(&self, _sample: Option<usize>) -> Result<()> {
        let less = |left: usize| left.checked_sub(1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::Unavailable, "late")),
        }
    }
}

/// The packets of a clip as a stream has them.
fn packets(name: &str) -> Vec<Vec<u8>> {
    let file = bytes(name);
    let video = Arc::new(Video::open(&file).unwrap());
    let all: Vec<usize> = (0..video.frames()).collect();
    let (mut found, mut packet) = (Vec::new(), Vec::new());
    for run in video.runs(&all).unwrap() {
        let mut coded = video.coded(run).unwrap();
        while coded.packet(&Budget::default(), &mut packet).unwrap().is_some() {
            found.push(packet.clone());
        }
    }
    found
}

/// An IVF file of these packets.
fn ivf(codec: &[u8; 4], size: [u16; 2], packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"DKIF\0\0\x20\0".to_vec();
    file.extend(codec);
    size.iter().for_each(|side| file.extend(side.to_le_bytes()));
    file.extend([25, 0, 0, 0, 1, 0, 0, 0]);
    file.resize(32, 0);
    for (time, packet) in packets.iter().enumerate() {
        file.extend(u32::try_from(packet.len()).unwrap().to_le_bytes());
        file.extend((time as u64).to_le_bytes());
        file.extend(packet);
    }
    file
}

/// Decodes a video in pieces of 100 bytes: how many frames came, the most that it held, and why it ended.
fn grown(file: &[u8]) -> (usize, usize, Option<Error>) {
    let (mut growing, mut frames, mut held) = (Growing::default(), 0, 0);
    let budget = Budget::default();
    let mut run = || {
        for (number, piece) in file.chunks(100).enumerate() {
            growing.push(piece, (number + 1) * 100 >= file.len())?;
            while growing.prepare(&budget)? {
                held = held.max(growing.held());
                let mut pixels = vec![0; growing.size().iter().product::<usize>() * 3];
                growing.write(&budget, &mut pixels)?;
                frames += 1;
            }
            held = held.max(growing.held());
        }
        Ok(())
    };
    let error = run().err();
    (frames, held, error)
}

#[test]
fn pictures_that_are_larger_than_the_first_are_not_decoded() {
    let joined = |first: &str, then: &str| [packets(first), packets(then)].concat();
    let size = |name: &str| {
        let file = bytes(name);
        let video = Video::open(&file).unwrap();
        [video.width(), video.height()].map(|side| u16::try_from(side).unwrap())
    };
    let files = [
        ("H.264", packets("h264.mp4").concat(), joined("h264.mp4", "large_h264.mp4").concat()),
        ("H.265", packets("h265.mp4").concat(), joined("h265.mp4", "large_h265.mp4").concat()),
        (
            "VP8",
            ivf(b"VP80", size("vp8.webm"), &packets("vp8.webm")),
            ivf(b"VP80", size("vp8.webm"), &joined("vp8.webm", "large_vp8_odd.webm")),
        ),
        (
            "VP9",
            ivf(b"VP90", size("vp9.webm"), &packets("vp9.webm")),
            ivf(b"VP90", size("vp9.webm"), &joined("vp9.webm", "large_vp9.webm")),
        ),
        (
            "AV1",
            ivf(b"AV01", size("av1.mp4"), &packets("av1.mp4")),
            ivf(b"AV01", size("av1.mp4"), &joined("av1.mp4", "large_av1.mp4")),
        ),
    ];
    for (codec, small, both) in files {
        let (frames, held, error) = grown(&small);
        assert!(error.is_none(), "{codec}: {error:?}");
        let (found, most, error) = grown(&both);
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        // Those before it come.
        assert_eq!(found, frames, "{codec}: {error}");
        assert!(
            error.contains("pixels in a video of") || error.contains("larger than its video"),
            "{codec}: {error}"
        );
        // Beside what waits of the file.
        assert!(most <= held + both.len() + (1 << 20), "{codec}: {most} bytes, {held} of the small one");
    }
}

#[test]
fn nobody_decodes_for_somebody_who_has_left() {
    for (name, _) in clips().into_iter().filter(|(name, _)| !name.starts_with("large")) {
        let file = bytes(&name);
        let video = Video::open(&file).unwrap();
        let all: Vec<usize> = (0..video.frames()).collect();
        for patience in [0, 1, 4] {
            let patient = Patient(AtomicUsize::new(patience));
            let budget = Budget::while_waiting(Watch::new(&patient, None));
            let mut taken = 0;
            let result = video.runs(&all).unwrap().into_iter().try_for_each(|run| {
                video.decode(run, &budget, &mut |_, _| {
                    taken += 1;
                    Ok(())
                })
            });
            let Err(error) = result else { panic!("{name}: all of it is decoded for {patience} questions") };
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
            // Each frame asks once or more, before it is decoded.
            assert!(taken <= patience, "{name}: {taken} frames for {patience} questions");
        }
    }
}

#[test]
fn a_decoder_holds_no_more_than_it_may() {
    for (name, _) in clips() {
        let file = bytes(&name);
        let video = Video::open(&file).unwrap();
        let all: Vec<Option<usize>> = (0..video.frames()).map(Some).collect();
        let efforts = video.effort(&all);
        assert!(efforts.decoder > 1_000, "{name}: {efforts:?}");
        let mut out = vec![0; video.frames() * video.width() * video.height() * 3];
        let enough = Budget::default().within(efforts.decoder);
        video.write_all(&all, [0; 3], &mut out, &enough, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
        let little = Budget::default().within(1_000);
        let error = video.write_all(&all, [0; 3], &mut out, &little, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
    }
}

fn atom(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len() + 8).unwrap().to_be_bytes()[..], name, body].concat()
}

/// A table of these numbers.
fn table(name: &[u8; 4], numbers: &[u32]) -> Vec<u8> {
    atom(name, &numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>())
}

/// An MP4 of Motion JPEG with `count` frames, all of them the same `size` bytes.
fn mp4_of_one_place(count: u32, size: u32) -> Vec<u8> {
    let data = atom(b"mdat", &vec![7; size as usize]);
    let entry = atom(b"jpeg", &[&[0; 24][..], &[0, 16, 0, 16], &[0; 50]].concat());
    let tables = [
        atom(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1][..], &entry].concat()),
        table(b"stsz", &[0, size, count]),
        table(b"stco", &[&[0, count][..], &vec![8; count as usize]].concat()),
        table(b"stsc", &[0, 1, 1, 1, 1]),
        table(b"stts", &[0, 1, count, 1]),
    ];
    let kind = atom(b"hdlr", &[&[0; 8][..], b"vide", &[0; 13]].concat());
    let media = [kind, atom(b"minf", &atom(b"stbl", &tables.concat()))].concat();
    [data, atom(b"moov", &atom(b"trak", &atom(b"mdia", &media)))].concat()
}

#[test]
fn frames_that_all_lie_at_one_place_are_bounded() {
    let error = Video::open(mp4_of_one_place(20_000, 40_000)).unwrap_err().to_string();
    assert!(error.contains("more than 4 times as many bytes as their file has"), "{error}");
    // A few may.
    let error = Video::open(mp4_of_one_place(3, 40_000)).unwrap_err().to_string();
    assert!(!error.contains("times as many bytes"), "{error}");
}

/// The number of macroblocks of the streams that are made, and the bytes of one of their frames with its motion.
const MACROBLOCKS: [u32; 2] = [8, 6];
const FRAME: usize = 8 * 6 * (384 + 288);

/// A key frame, and pictures of H.264 behind it, of which each may keep so many `references`.
fn h264(references: u32, pictures: impl Iterator<Item = Picture>) -> Vec<u8> {
    let sequence = Sequence { macroblocks: MACROBLOCKS, references, has_fields: false };
    let key = Picture { is_key: true, is_reference: true, ..Picture::default() };
    let slices = [key].into_iter().chain(pictures).flat_map(|picture| sequence.slice(&picture));
    sequence.parameters().into_iter().chain(slices).collect()
}

fn reference(number: u32) -> Picture {
    Picture { is_reference: true, number: number % 16, ..Picture::default() }
}

#[test]
fn frames_of_h264_that_are_never_given_up_are_bounded() {
    let (frames, ordinary, error) = grown(&h264(4, (1..200).map(reference)));
    assert!(error.is_none() && frames == 200, "{frames} frames: {error:?}");
    // 4 to make others from, and those whose order is not known yet.
    assert!(ordinary < 44 * FRAME, "{ordinary} bytes");
    let same = h264(4, (0..2_000).map(|_| reference(1)));
    // Commands that give nothing up, in place of the window.
    let nothing = |number| Picture { commands: vec![(2, vec![9])], ..reference(number) };
    let commands = h264(4, (1..2_000).map(nothing));
    for (what, file) in
        [("numbers", same), ("commands", commands), ("none", h264(0, (1..2_000).map(reference)))]
    {
        let (frames, held, error) = grown(&file);
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        // An installed FFmpeg finds other faults in such streams, and earlier.
        let is_told = error.contains("more than 16 frames, which none of them gives up");
        assert!(is_told || error.contains("a frame cannot be decoded: FFmpeg: "), "{what}: {error}");
        assert!(frames <= 17 && held < 60 * FRAME, "{what}: {frames} frames, {held} bytes");
    }
    let (_, _, error) = grown(&h264(17, (1..4).map(reference)));
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("the number of reference frames is 17, expected less than 17"), "{error}");
}

#[test]
fn slices_of_h264_that_contradict_their_picture_are_left_out() {
    let of_none = |number| Picture { number, ..Picture::default() };
    // The crate would believe the second one, and keep each picture.
    let rest = |number| Picture { first: 9, commands: vec![(2, vec![9])], ..reference(number) };
    let pictures = (0..300).flat_map(|_| [of_none(1), rest(1)]);
    let (frames, held, error) = grown(&h264(4, pictures));
    assert!(error.is_none() && frames == 301, "{frames} frames: {error:?}");
    assert!(held < 44 * FRAME, "{held} bytes");
}

#[test]
fn the_reserved_matrix_of_av1_is_no_panic() {
    let mut file = bytes("large_av1.mp4");
    // A sequence header, and the byte with the lowest bits but one of its matrix: 3 in place of 1.
    let header = [10, 14, 0, 0, 0, 3, 0xBC, 0xFC, 0x78, 0xD5, 0xF3, 0x20, 0x40, 0x40, 0x20, 0x80];
    let places = file.windows(header.len()).enumerate().filter(|(_, bytes)| *bytes == header);
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|place| file[place + 14] |= 0x40);
    let video = Video::open(&file).unwrap();
    let all: Vec<Option<usize>> = (0..video.frames()).map(Some).collect();
    let mut out = vec![0; video.frames() * video.width() * video.height() * 3];
    // As of a stream that does not say.
    video.write_all(&all, [0; 3], &mut out, &Budget::default(), 1).unwrap();
}
