//! What decoders of others do not write is what was decoded before: so damaged videos and JPEG 2000 files are decoded
//! in two orders, each behind other ones, and must become the same, or be refused, in both.

use std::sync::Arc;

use gesso::gpu::{Gpu, Library};

use crate::decoders::{instance_on, run};
use crate::gpu;
use crate::numbers::Numbers;
use crate::video::{clips, damage, is_for_engines};

/// Damaged files of each whole one; `$GESSO_DAMAGED` says how many else.
const DAMAGED: usize = 24;

fn damaged_of_each() -> usize {
    std::env::var("GESSO_DAMAGED").ok().and_then(|number| number.parse().ok()).unwrap_or(DAMAGED)
}

/// `file` damaged: a few bytes changed, cut off, or a part left out, as when packets are lost.
fn harmed(numbers: &mut Numbers, file: &[u8]) -> Vec<u8> {
    if numbers.below(2) == 0 {
        return damage(numbers, file);
    }
    let header = file.len() / 10;
    let at = header + numbers.below(file.len() - header);
    let end = file.len().min(at + 1 + numbers.below(file.len() / 3));
    [&file[..at], &file[end..]].concat()
}

/// Decodes `files` one by one from first to last and from last to first, each time by a new instance, and names those
/// of which the answers differ. Says how many had one.
fn differing(gpu: &Arc<Gpu>, pipeline: &str, label: &str, files: &[Vec<u8>]) -> Vec<String> {
    let answers = |order: &mut dyn Iterator<Item = &Vec<u8>>| {
        let mut instance = instance_on(Some(gpu), pipeline, None);
        let answers = order.map(|file| run(&mut instance, std::slice::from_ref(file)).remove(0).ok());
        answers.collect::<Vec<_>>()
    };
    let forth = answers(&mut files.iter());
    let again = answers(&mut files.iter());
    let unsure: Vec<usize> = (0..files.len()).filter(|&i| forth[i] != again[i]).collect();
    println!("{label}: the same order twice: {unsure:?}");
    let mut back = answers(&mut files.iter().rev());
    back.reverse();
    let decoded = forth.iter().flatten().count();
    let apart: Vec<usize> = (0..files.len()).filter(|&i| forth[i] != back[i]).collect();
    println!("{label}: of {} files {decoded} are decoded, {} differ: {apart:?}", files.len(), apart.len());
    apart.iter().map(|i| format!("{label}, file {i}")).collect()
}

#[test]
fn a_damaged_video_shows_nothing_of_others() {
    let Some(gpu) = gpu() else { return };
    let mut wrong = Vec::new();
    let mut numbers = Numbers(23);
    let mpeg4 = std::fs::read(crate::file("tests/data/video/mpeg4/mpeg4.mp4")).unwrap();
    let clips = clips().into_iter().filter(|(clip, _)| is_for_engines(clip));
    for (clip, file) in clips.chain([("mpeg4.mp4".to_owned(), mpeg4)]) {
        let mut files: Vec<_> = (0..damaged_of_each()).map(|_| harmed(&mut numbers, &file)).collect();
        files.insert(files.len() / 2, file);
        wrong.extend(differing(&gpu, "video", &clip, &files));
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:?}", wrong.len());
}

#[test]
fn a_damaged_jpeg_2000_shows_nothing_of_others() {
    let Some(gpu) = gpu() else { return };
    if let Err(error) = Library::NVJPEG2000.open() {
        println!("the host decodes: {error}");
    }
    let mut wrong = Vec::new();
    let mut numbers = Numbers(29);
    for name in ["lossless.jp2", "lossy.jp2"] {
        let file = std::fs::read(crate::file(&format!("tests/gpu/data/jpeg2000/{name}"))).unwrap();
        // What is cut off is for the host; damage that stays within the coefficients is not.
        let mut files: Vec<_> = (0..4 * damaged_of_each())
            .map(|_| {
                let mut file = file.clone();
                let first = file.len() / 5;
                for _ in 0..=numbers.below(4) {
                    let at = first + numbers.below(file.len() - first - 2);
                    file[at] = numbers.below(0x80) as u8;
                }
                file
            })
            .collect();
        files.insert(files.len() / 2, file);
        wrong.extend(differing(&gpu, "rgb", name, &files));
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:?}", wrong.len());
}
