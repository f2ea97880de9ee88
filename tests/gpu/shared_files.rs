//! Files in memory that somebody else may write to: decoded as others are, and whoever changes one spoils its own
//! answer.
#![expect(unsafe_code, reason = "memory that changes under a reader is no slice of safe code")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use gesso::gpu::Gpu;
use gesso::gpu::jpeg::Path;
use gesso::operator::Preferences;
use gesso::pipeline::{Instance, Keep, Pipeline};
use turbojpeg::Subsamp;

use crate::gpu;
use crate::pictures::Recipe;
use crate::promises::{PIPELINE, encoded, photos};

const PATHS: [Option<Path>; 4] = [None, Some(Path::Sm), Some(Path::Engines), Some(Path::Threads)];

fn instance(gpu: &Arc<Gpu>, jpeg_path: Option<Path>, inputs_may_change: bool) -> Instance {
    let pipeline = Pipeline::load_moved_to_device(PIPELINE).unwrap();
    let preferences = Preferences { jpeg_path, inputs_may_change, ..Preferences::default() };
    pipeline.instance_with(Some(4), Some(gpu), &preferences).unwrap()
}

/// Pixels, or what is wrong.
fn run(instance: &mut Instance, files: &[&[u8]]) -> Vec<Result<Vec<u8>, String>> {
    let batch = encoded(files.iter().copied());
    let outcome = match instance.run(files.len(), vec![batch], &mut Keep) {
        Ok(outcome) => outcome,
        Err(error) => return vec![Err(error.to_string()); files.len()],
    };
    let pixels = instance.to_host(&outcome.outputs[0]).unwrap();
    let answer = |i: usize| match outcome.failures.get(i) {
        Some(error) => Err(error.to_string()),
        None => Ok(pixels.view(i).bytes.to_vec()),
    };
    (0..files.len()).map(answer).collect()
}

/// A JPEG behind so many bytes of comments.
fn commented(jpeg: &[u8], bytes: usize) -> Vec<u8> {
    let mut file = jpeg[..2].to_vec();
    for _ in 0..bytes.div_ceil(60_000) {
        file.extend([0xFF, 0xFE]);
        file.extend(60_002_u16.to_be_bytes());
        file.resize(file.len() + 60_000, 0x20);
    }
    file.extend(&jpeg[2..]);
    file
}

#[test]
fn files_that_may_change_are_decoded_as_others_are() {
    let Some(gpu) = gpu() else { return };
    let mut files = photos();
    let photo = Recipe::new(640, 480, Subsamp::Sub2x2, 3);
    files.extend([photo.progressive(), photo.inks(), commented(&photo.jpeg(), 3_000)]);
    files.extend([commented(&photo.jpeg(), 70_000), commented(&photo.jpeg(), 300_000)]);
    let mut damaged = photo.jpeg();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 400].fill(0xFE);
    let truncated = photo.jpeg()[..middle].to_vec();
    files.extend([damaged, truncated, b"no image".to_vec(), vec![0xFF, 0xD8, 0xFF]]);
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    for path in PATHS {
        let [expected, found] = [false, true].map(|may_change| {
            let mut instance = instance(&gpu, path, may_change);
            // The second time with memory of the first.
            run(&mut instance, &files[..3]);
            run(&mut instance, &files)
        });
        for (i, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert!(
                found == expected,
                "file {i} on {path:?}: {:?}, {:?}",
                expected.as_ref().err(),
                found.as_ref().err()
            );
        }
        assert_eq!(found.iter().filter(|answer| answer.is_err()).count(), 3, "{path:?}");
        // One alone, whose data several threads read.
        let alone = [false, true].map(|may_change| run(&mut instance(&gpu, path, may_change), &files[3..4]));
        assert!(alone[0] == alone[1] && alone[0][0].is_ok(), "{path:?}");
    }
}

#[test]
fn a_file_that_changes_spoils_its_own_answer_alone() {
    let Some(gpu) = gpu() else { return };
    let good = Recipe::new(640, 480, Subsamp::Sub2x2, 1).jpeg();
    let bad: Vec<AtomicU8> =
        Recipe::new(1920, 1080, Subsamp::Sub2x2, 2).jpeg().into_iter().map(AtomicU8::new).collect();
    let frame = bad
        .windows(2)
        .position(|two| [0xFF, 0xC0].iter().zip(two).all(|(a, b)| *a == b.load(Ordering::Relaxed)));
    let frame = frame.unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Height, width, sampling, and the data.
            let places = [frame + 5, frame + 6, frame + 7, frame + 11, bad.len() / 2];
            for round in 0_usize.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let place = &bad[places[round % places.len()]];
                let byte = place.load(Ordering::Relaxed);
                place.store(round as u8 | 1, Ordering::Relaxed);
                std::hint::spin_loop();
                place.store(byte, Ordering::Relaxed);
            }
        });
        // SAFETY: the memory lives as long; that it changes is what is tested: a server gives such memory away, too.
        let shared = unsafe { std::slice::from_raw_parts(bad.as_ptr().cast::<u8>(), bad.len()) };
        for path in PATHS {
            let mut instance = instance(&gpu, path, true);
            let expected = run(&mut instance, &[&good])[0].clone().unwrap();
            let mut refused = 0;
            for _ in 0..150 {
                let found = run(&mut instance, &[&good, shared, &good]);
                refused += usize::from(found[1].is_err());
                assert!([0, 2].iter().all(|&i| found[i].as_ref() == Ok(&expected)), "{path:?}");
            }
            println!("{path:?}: {refused} of 150 refused");
        }
        stop.store(true, Ordering::Relaxed);
    });
}
