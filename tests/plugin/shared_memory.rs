//! A client that rewrites his request while it is worked on spoils his own answer at most.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use gesso::pipeline::Pipeline;
use gesso::tensor::Device;

use crate::host::request::{Chunk, Input, UINT8};
use crate::host::{Host, book};
use crate::library::Plugin;
use crate::recorded::{Folder, Recording};

/// Batches that are decoded. Without a copy of the file the process ends within the first few.
const BATCHES: usize = 400;

/// Rows that the header says in turns: a picture of the one has no room for the other.
const ROWS: [u16; 2] = [16, 4_000];

/// Where the frame header of a JPEG has its number of rows.
fn place_of_rows(jpeg: &[u8]) -> usize {
    let mut at = 2;
    while !matches!(jpeg[at + 1], 0xC0..=0xC2) {
        at += 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
    }
    at + 5
}

/// Writes the numbers of rows in turns until it is told to end.
fn rewrite(rows: &[AtomicU8], ends: &AtomicBool) {
    for turn in (0..).take_while(|_| !ends.load(Ordering::Relaxed)) {
        for (place, byte) in rows.iter().zip(ROWS[turn % 2].to_be_bytes()) {
            place.store(byte, Ordering::Relaxed);
        }
        // As long as it takes to look at a header or a little of the data, in turns.
        let pause = Duration::from_micros([3, 20, 60, 150][turn % 4]);
        let begun = Instant::now();
        while begun.elapsed() < pause {
            std::hint::spin_loop();
        }
    }
}

#[test]
fn a_jpeg_whose_header_changes_while_it_is_decoded_harms_nobody() {
    let case = Recording::open("decoders_image").case("under_its_old_name");
    let picture = &case.inputs["IMAGE"][0].bytes;
    let expected = &case.outputs[0][0];
    let folder = Folder::new("shared memory");
    folder.write("1/model.dali", &case.pipeline);

    let (host, plugin) = (Host::start(), Plugin::load());
    let model = host.model_in(&folder.path("").display().to_string(), "decode", "{}");
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    let output = Pipeline::load(&case.pipeline, Device::Cpu).unwrap().outputs()[0].name.clone();

    let shared: &'static [AtomicU8] =
        picture.iter().map(|&byte| AtomicU8::new(byte)).collect::<Vec<_>>().leak();
    let at = place_of_rows(picture);
    let file = |chunk: Chunk| -> *mut Input {
        host.input_in("IMAGE", UINT8, &[1, picture.len() as i64], vec![chunk])
    };
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| rewrite(&shared[at..at + 2], &ends));
        for _ in 0..BATCHES {
            let hostile = host.request_of("hostile", vec![file(Chunk::Shared(shared))], &output);
            let good = host.request_of("good", vec![file(Chunk::Kept(0, picture.clone()))], &output);
            plugin.execute(instance, &mut [hostile, good]).unwrap();
        }
        ends.store(true, Ordering::Relaxed);
    });
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();

    let book = book();
    assert_eq!(book.answers.len(), 2 * BATCHES);
    for answer in &book.answers {
        if answer.request == "good" {
            assert_eq!(answer.failure, None);
            assert!(expected.farthest(&answer.outputs[0].bytes) <= case.tol);
        } else if answer.failure.is_none() {
            let output = &answer.outputs[0];
            assert_eq!(output.shape.iter().product::<i64>(), output.bytes.len() as i64);
        }
    }
    drop(book);
    host.assert_clean();
}
