//! Containers in containers, deeper than any file has them: nothing calls itself for each, so no stack ends.

use gesso::cpu::audio;
use gesso::cpu::decode::{DecodeOptions, Decoder, output_shape, probe};
use gesso::cpu::video::Video;

/// Levels, each in the one before.
const DEPTH: usize = 50_000;
/// A stack that a call for each level would not fit into.
const STACK: usize = 1 << 20;

/// Boxes of ISO BMFF, or `head` bytes longer ones, each in the one before: the names in turn.
fn boxes(names: &[&[u8; 4]], more: usize) -> Vec<u8> {
    let size = 8 + more;
    let mut file = Vec::new();
    for level in 0..DEPTH {
        file.extend(((size * (DEPTH - level)) as u32).to_be_bytes());
        file.extend(names[level % names.len()]);
        file.extend(vec![0; more]);
    }
    file
}

/// A file in RIFF, whose lists lie in each other.
fn riff(kind: &[u8; 4]) -> Vec<u8> {
    let mut file = Vec::new();
    for level in 0..DEPTH {
        file.extend(if level == 0 { b"RIFF" } else { b"LIST" });
        file.extend(((12 * (DEPTH - level) - 8) as u32).to_le_bytes());
        file.extend(if level == 0 { kind } else { b"hdrl" });
    }
    file
}

/// Elements of Matroska, which say of no size and so go on to the end.
fn matroska(ids: &[[u8; 4]]) -> Vec<u8> {
    let mut file = vec![0x1A, 0x45, 0xDF, 0xA3, 0x87, 0x42, 0x82, 0x84];
    file.extend(b"webm");
    for level in 0..DEPTH {
        file.extend(ids[level % ids.len()]);
        file.extend([0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    }
    file
}

/// A TIFF whose directories each point to the next: as the next one, as one inside (330), or as that of EXIF (34665).
/// The last points to the first.
fn directories(tag: Option<u16>) -> Vec<u8> {
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    let bytes = if tag.is_some() { 18 } else { 6 };
    for level in 0..DEPTH {
        let next = if level + 1 == DEPTH { 8 } else { (file.len() + bytes) as u32 };
        match tag {
            Some(tag) => {
                file.extend(1_u16.to_le_bytes());
                file.extend([tag.to_le_bytes(), 4_u16.to_le_bytes()].concat());
                file.extend([1_u32.to_le_bytes(), next.to_le_bytes(), 0_u32.to_le_bytes()].concat());
            }
            None => file.extend([&0_u16.to_le_bytes()[..], &next.to_le_bytes()].concat()),
        }
    }
    file
}

/// A JPEG with such directories for EXIF, as far as a segment has room.
fn jpeg(tag: u16) -> Vec<u8> {
    let mut exif = [b"Exif\0\0".to_vec(), directories(Some(tag))].concat();
    exif.truncate(60_000);
    let length = (exif.len() + 2) as u16;
    [&[0xFF, 0xD8, 0xFF, 0xE1][..], &length.to_be_bytes(), &exif, &[0xFF, 0xD9]].concat()
}

/// Lets everything look at a file that may be asked to. What it says does not matter.
fn look(file: &[u8]) {
    if let Ok(info) = probe(file, true) {
        let options = DecodeOptions::default();
        let bytes: usize = output_shape(&info, &options).iter().product();
        if bytes < 1 << 24 {
            let _ = Decoder::new().decode_into(file, &options, &mut vec![0; bytes]);
        }
    }
    let _ = Video::open(file).map(|video| video.frames());
    let _ = audio::decode::header(file);
}

#[test]
fn no_depth_of_containers_ends_the_stack() {
    let with = |start: &[u8], rest: Vec<u8>| [start, &rest].concat();
    let files = [
        with(b"\0\0\0\x18ftypavif\0\0\0\0mif1avif", boxes(&[b"meta"], 4)),
        with(b"\0\0\0\x18ftypavif\0\0\0\0mif1avif", boxes(&[b"meta", b"iprp", b"ipco"], 4)),
        with(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", boxes(&[b"meta", b"iref"], 4)),
        with(b"\0\0\0\x18ftypisom\0\0\0\0isommp42", boxes(&[b"moov", b"trak", b"mdia", b"minf", b"stbl"], 0)),
        with(b"\0\0\0\x18ftypisom\0\0\0\0isommp42", boxes(&[b"moof", b"traf"], 0)),
        with(b"\0\0\0\x0CjP  \r\n\x87\n", boxes(&[b"jp2h"], 0)),
        with(b"\0\0\0\x0CJXL \r\n\x87\n", boxes(&[b"jxlp", b"jxlc"], 4)),
        riff(b"AVI "),
        riff(b"WAVE"),
        riff(b"WEBP"),
        matroska(&[[0x18, 0x53, 0x80, 0x67]]),
        matroska(&[[0x18, 0x53, 0x80, 0x67], [0x16, 0x54, 0xAE, 0x6B], [0x1F, 0x43, 0xB6, 0x75]]),
        directories(None),
        directories(Some(330)),
        directories(Some(34_665)),
        jpeg(330),
        jpeg(34_665),
        with(b"FORM\0\x09\0\0AIFF", boxes(&[b"FORM"], 4)),
    ];
    for (number, file) in files.into_iter().enumerate() {
        let thread = std::thread::Builder::new().stack_size(STACK).name(format!("file {number}"));
        thread.spawn(move || look(&file)).unwrap().join().unwrap();
    }
}
