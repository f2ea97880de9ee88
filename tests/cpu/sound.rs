//! MP3, AAC, ALAC and Opus, and sounds in Matroska, against samples of libsndfile and FFmpeg
//! (tests/data/sound/make_coded.py and make_matroska.py say how), and what becomes of damaged files.

use std::path::Path;

use gesso::cpu::audio::decode::{decode, effort, file_format, header};
use gesso::cpu::audio::sound::{Block, Header};
use gesso::cpu::formats::Format;
use gesso::deadline::Watch;
use gesso::error::Result;

use crate::npz::Npz;

/// How far a sample of what is lossy may be off, of 1: a third of the least step of 16 bits. Floats are added in
/// another order.
const MOST: f64 = 1e-5;

/// Files of Matroska have a name that begins so.
const MATROSKA: &str = "mkv_";

fn archive(name: &str) -> Npz {
    Npz::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sound").join(name))
}

/// The archives, and what names of their files begin with here.
fn archives() -> [(Npz, &'static str); 2] {
    [(archive("coded.npz"), ""), (archive("matroska.npz"), MATROSKA)]
}

fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (mut archive, prefix) in archives() {
        let names = archive.names().into_iter();
        for name in names.filter(|name| !name.ends_with("_samples") && !name.ends_with("_rate")) {
            files.push((format!("{prefix}{name}"), archive.array::<u8>(&name).1));
        }
    }
    files
}

/// Integers as they are, floats between -1 and 1 as they are.
fn samples(file: &[u8]) -> Result<(Header, Vec<f64>)> {
    let (head, mut found) = (header(file)?, Vec::new());
    decode(file, &head, &Watch::forever(), &mut |block| {
        match block {
            Block::Integers(samples) => found.extend(samples.iter().map(|&sample| f64::from(sample))),
            Block::Floats(samples) => found.extend(samples.iter().map(|&sample| f64::from(sample))),
        }
        Ok(())
    })?;
    Ok((head, found))
}

#[test]
fn samples_are_those_of_other_decoders() {
    let [(mut coded, _), (mut matroska, _)] = archives();
    for (name, file) in files() {
        let (archive, name) = match name.strip_prefix(MATROSKA) {
            Some(name) => (&mut matroska, name),
            None => (&mut coded, name.as_str()),
        };
        let (head, found) = samples(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let samples = format!("{name}_samples");
        let is_lossless = name.starts_with("alac") || name.starts_with("flac");
        let (shape, expected): (_, Vec<f64>) = if is_lossless {
            let (shape, samples) = archive.array::<i32>(&samples);
            (shape, samples.into_iter().map(f64::from).collect())
        } else {
            let (shape, samples) = archive.array::<f32>(&samples);
            (shape, samples.into_iter().map(f64::from).collect())
        };
        let rate = archive.array::<f64>(&format!("{name}_rate")).1[0];
        assert_eq!(
            ([head.frames, head.channels], f64::from(head.rate)),
            ([shape[0], shape[1]], rate),
            "{name}"
        );
        assert_eq!(found.len(), expected.len(), "{name}");
        let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("{name}: {off:e}");
        assert!(off <= if is_lossless { 0.0 } else { MOST }, "{name} is off by {off:e}");
    }
}

#[test]
fn formats_are_told() {
    for (name, file) in files() {
        let kind = name.strip_prefix(MATROSKA).unwrap_or(&name);
        let format = match kind.split('_').next().unwrap() {
            "vorbis" => Format::Vorbis,
            "flac" => Format::Flac,
            "mp3" => Format::Mp3,
            "aac" | "m4a" | "mov" => Format::Aac,
            "alac" => Format::Alac,
            _ => Format::Opus,
        };
        assert_eq!(file_format(&file), Some(format), "{name}");
    }
}

/// What the file becomes, if it becomes anything: no more than its header says.
fn try_file(file: &[u8], name: &str) -> bool {
    let Ok(head) = header(file) else { return false };
    let _ = effort(&head);
    let most = head.frames.saturating_mul(head.channels);
    let mut given = 0;
    let done = decode(file, &head, &Watch::forever(), &mut |block| {
        given += block.len();
        Ok(())
    });
    assert!(given <= most && (done.is_err() || given == most), "{name}: {given} of {most}");
    done.is_ok()
}

#[test]
fn files_that_are_cut_off_are_errors_or_shorter() {
    for (name, file) in files() {
        let whole = header(&file).unwrap().frames;
        for cut in (0..file.len()).step_by(41) {
            let cut = &file[..cut];
            if !try_file(cut, &name) {
                continue;
            }
            let found = header(cut).unwrap().frames;
            // Nothing tells how many packets these have. Others lack what decides about no sample.
            let may_be_shorter = ["aac_", "mp3_plain", "m4a_pieces", "opus_", MATROSKA]
                .iter()
                .any(|kind| name.starts_with(kind));
            assert!(
                found == whole || may_be_shorter && found < whole,
                "{name}: {} bytes, {found} samples",
                cut.len()
            );
        }
    }
}

#[test]
fn damaged_files_are_errors_or_other_sounds() {
    for (name, file) in files() {
        for place in (0..file.len()).step_by(13) {
            for bits in [0xff, 0x10] {
                let mut damaged = file.clone();
                damaged[place] ^= bits;
                try_file(&damaged, &name);
            }
        }
    }
}

#[test]
fn wild_numbers_ask_for_no_memory() {
    for (name, file) in files() {
        for place in (0..file.len().min(2_000)).step_by(4) {
            let mut wild = file.clone();
            let end = (place + 4).min(file.len());
            wild[place..end].fill(0xff);
            if let Ok(head) = header(&wild) {
                assert!(head.scratch < 64 << 20, "{name}: {} bytes at {place}", head.scratch);
            }
        }
    }
}
