//! Videos that come in pieces: the frames are those of the whole, whatever the pieces, and come as soon as they can.

use gesso::cpu::video::{Budget, Growing};
use gesso::error::Result;

use crate::numbers::Numbers;
use crate::video::{bytes, clips, damage, in_order, unless_a_library_panics};

/// Frames that pieces of these lengths give, each with how many bytes had come by then.
fn grown(file: &[u8], mut length: impl FnMut() -> usize) -> Result<Vec<(usize, Vec<u8>)>> {
    let (mut growing, mut found, mut at) = (Growing::default(), Vec::new(), 0);
    while at < file.len() || file.is_empty() {
        let piece = &file[at..(at + length()).min(file.len())];
        at += piece.len();
        growing.push(piece, at == file.len())?;
        while growing.prepare(&Budget::default())? {
            let mut pixels = vec![0; growing.size().iter().product::<usize>() * 3];
            growing.write(&Budget::default(), &mut pixels)?;
            found.push((at, pixels));
        }
        assert_eq!(growing.is_over(), at == file.len());
    }
    Ok(found)
}

/// An MP4 whose index stood at the end, with the index before the frames.
fn index_in_front(file: &[u8]) -> Vec<u8> {
    let at = |name: &[u8; 4]| file.windows(4).rposition(|found| found == name).unwrap() - 4;
    let number = |file: &[u8], at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    let (moov, mdat) = (at(b"moov"), at(b"mdat"));
    let end = moov + number(file, moov) as usize;
    let mut index = file[moov..end].to_vec();
    let size = u32::try_from(index.len()).unwrap();
    let places: Vec<usize> =
        (4..index.len() - 8).filter(|&at| &index[at..at + 4] == b"stco").map(|at| at + 12).collect();
    for list in places {
        for entry in 0..number(&index, list - 4) as usize {
            let place = list + 4 * entry;
            let moved = number(&index, place) + size;
            index[place..place + 4].copy_from_slice(&moved.to_be_bytes());
        }
    }
    [&file[..mdat], &index, &file[mdat..moov], &file[end..]].concat()
}

/// The clips that can come in pieces.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for name in clips().into_keys().filter(|name| !name.ends_with(".avi")) {
        let file = bytes(&name);
        let has_index_behind =
            [".mp4", ".mov"].iter().any(|ending| name.ends_with(ending)) && name != "h264_fragments.mp4";
        let file = if has_index_behind { index_in_front(&file) } else { file };
        found.push((name, file));
    }
    found
}

#[test]
fn frames_in_pieces_are_those_of_the_whole() {
    let mut numbers = Numbers(11);
    for (name, file) in files() {
        let (whole, read) = in_order(&file, usize::MAX);
        read.unwrap();
        for longest in [1, 40, 700, file.len()] {
            let found =
                grown(&file, || 1 + numbers.below(longest)).unwrap_or_else(|error| panic!("{name}: {error}"));
            let same = found.iter().map(|(_, pixels)| pixels).eq(whole.iter());
            assert!(
                same,
                "{name} in pieces of up to {longest} bytes: {} of {} frames",
                found.len(),
                whole.len()
            );
        }
    }
}

/// A frame comes with the bytes of the frames that it is made of, and of those that the decoder waits for to know the
/// order.
#[test]
fn frames_do_not_wait_for_the_end() {
    for (name, file) in files() {
        let found = grown(&file, || 16).unwrap();
        let first = found[0].0;
        // Half of a clip of twelve frames: the largest is the first one.
        let most = if name.starts_with("h264") || name.starts_with("large_h26") {
            file.len()
        } else {
            file.len() * 9 / 10
        };
        assert!(
            first <= most,
            "{name}: the first of {} frames after {first} of {} bytes",
            found.len(),
            file.len()
        );
        let before = found.iter().filter(|(at, _)| *at < file.len()).count();
        println!(
            "{name}: first after {first} of {} bytes, {before} of {} before the last piece",
            file.len(),
            found.len()
        );
    }
}

#[test]
fn what_cannot_come_in_pieces_says_so() {
    let behind = bytes("h264.mp4");
    for (file, expected) in [
        (behind, "stands behind its frames does not come in pieces"),
        (bytes("mjpeg.avi"), "AVI does not come in pieces"),
        (vec![7; 100], "not a video of a kind that comes in pieces"),
        (Vec::new(), "a video of no bytes"),
        (bytes("vp9.ivf")[..40].to_vec(), "a video without a frame"),
    ] {
        let mut growing = Growing::default();
        growing.push(&file, true).unwrap();
        let error = growing.prepare(&Budget::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut growing = Growing::default();
    growing.push(&bytes("vp9.ivf"), true).unwrap();
    assert!(growing.push(&[1], true).unwrap_err().to_string().contains("behind its last one"));
}

/// A size of gigabytes, told by a few bytes.
#[test]
fn what_never_comes_does_not_fill_memory() {
    let mut growing = Growing::default();
    let file = bytes("vp9.webm");
    let cluster = file.windows(4).position(|found| found == [0x1F, 0x43, 0xB6, 0x75]).unwrap();
    growing.push(&file[..cluster], false).unwrap();
    // A simple block of 2^32 bytes.
    growing.push(&[0xA3, 0x09, 0, 0, 0, 0], false).unwrap();
    let piece = vec![0; 8 << 20];
    let error = (0..20).find_map(|_| {
        growing.push(&piece, false).unwrap();
        growing.prepare(&Budget::default()).err()
    });
    assert!(error.unwrap().to_string().contains("more than 67108864 bytes"));
}

fn atom(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len() + 8).unwrap().to_be_bytes()[..], name, body].concat()
}

/// A fragment of a few bytes that tells of so many frames of a byte each.
fn fragment_of(frames: u32) -> Vec<u8> {
    let numbers =
        |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
    let header = atom(b"tfhd", &numbers(&[0x10, 1, 1]));
    let run = atom(b"trun", &numbers(&[0, frames]));
    atom(b"moof", &atom(b"traf", &[header, run].concat()))
}

/// What stands before the first frame of an MP4 in fragments.
fn begun_in_fragments() -> Growing {
    let (mut growing, file) = (Growing::default(), bytes("h264_fragments.mp4"));
    let moof = file.windows(4).position(|name| name == b"moof").unwrap() - 4;
    growing.push(&file[..moof], false).unwrap();
    assert!(!growing.prepare(&Budget::default()).unwrap());
    growing
}

#[test]
fn frames_that_are_told_of_do_not_fill_memory() {
    for (frames, fragments) in [(u32::MAX, 0), (1 << 17, 2), (1_000, 262)] {
        let mut growing = begun_in_fragments();
        let mut tell = || {
            growing.push(&fragment_of(frames), false).unwrap();
            growing.prepare(&Budget::default())
        };
        for _ in 0..fragments {
            assert!(!tell().unwrap());
        }
        let error = tell().unwrap_err().to_string();
        assert!(error.contains("a table of more than 262144 frames"), "{error}");
        assert!(growing.held() < 64 << 20, "{} bytes", growing.held());
    }
}

#[test]
fn bytes_that_were_used_are_not_kept() {
    let mut growing = begun_in_fragments();
    let before = growing.held();
    growing.push(&atom(b"free", &vec![0; 8 << 20]), false).unwrap();
    assert!(growing.held() > 8 << 20);
    assert!(!growing.prepare(&Budget::default()).unwrap());
    assert_eq!(growing.held(), before);
    // What is not there as a whole stays.
    growing.push(&atom(b"moof", &vec![0; 8 << 20])[..4 << 20], false).unwrap();
    assert!(!growing.prepare(&Budget::default()).unwrap());
    assert!((4 << 20..=before + (9 << 20)).contains(&growing.held()));
}

/// The MP4 in fragments with these edits, of which each has a duration and a beginning.
fn with_edits(edits: &[[u32; 2]]) -> Vec<u8> {
    let mut file = bytes("h264_fragments.mp4");
    let mut list = [0, u32::try_from(edits.len()).unwrap()].to_vec();
    list.extend(edits.iter().flat_map(|&[duration, start]| [duration, start, 1 << 16]));
    let list: Vec<u8> = list.into_iter().flat_map(u32::to_be_bytes).collect();
    let edits = atom(b"edts", &atom(b"elst", &list));
    if let Some(old) = file.windows(4).position(|name| name == b"edts") {
        file[old..old + 4].copy_from_slice(b"free");
    }
    let mut end = 0;
    for name in [b"moov", b"trak"] {
        let at = file.windows(4).position(|found| found == name).unwrap() - 4;
        let size = u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
        end = at + size as usize;
        file[at..at + 4].copy_from_slice(&(size + u32::try_from(edits.len()).unwrap()).to_be_bytes());
    }
    file.splice(end..end, edits);
    file
}

#[test]
fn edits_that_are_not_in_order_do_not_come_in_pieces() {
    for edits in
        [[[40, 400], [40, 0]], [[100, 0], [100, 100]], [[100, 0], [100, 0]], [[0, 0], [100, 9_000_000]]]
    {
        let error = grown(&with_edits(&edits), || 100).unwrap_err().to_string();
        assert!(error.contains("edits are not in order does not come in pieces"), "{edits:?}: {error}");
    }
    let file = with_edits(&[[40, 0], [40, 100_000]]);
    let error = grown(&file, || 100).err().map_or_else(String::new, |error| error.to_string());
    assert!(!error.contains("edits"), "{error}");
}

#[test]
fn damaged_pieces_end() {
    let mut numbers = Numbers(5);
    for (_, file) in files() {
        for _ in 0..crate::video::cases() {
            let damaged = damage(&mut numbers, &file);
            let longest = [1, 64, 4_096][numbers.below(3)];
            let begun = std::time::Instant::now();
            let _ = unless_a_library_panics(|| grown(&damaged, || 1 + numbers.below(longest)).map(drop));
            assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        }
    }
}
