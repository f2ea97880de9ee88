//! A client that rewrites his request while it is worked on spoils his own answer at most.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use gesso::pipeline::Pipeline;
use gesso::tensor::Device;

use crate::host::request::{Chunk, UINT8};
use crate::host::{Host, book};
use crate::library::Plugin;
use crate::recorded::{Folder, Recording};

/// Batches that are decoded. Without a copy of the file two of three runs of 150 end the process.
const BATCHES: usize = 500;

/// Rows that the header says in turns: a picture of the one has no room for the other.
const ROWS: [u16; 2] = [16, 4_000];

/// Tables behind the frame header, all the same. They make it take a millisecond to read a header, and so likely that
/// it changes between two looks at it.
const TABLES: usize = 4_000;

/// Where a segment of a JPEG begins whose marker is among `wanted`, and where it ends.
fn segment(jpeg: &[u8], wanted: RangeInclusive<u8>) -> (usize, usize) {
    let mut at = 2;
    loop {
        let end = at + 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
        if wanted.contains(&jpeg[at + 1]) {
            return (at, end);
        }
        at = end;
    }
}

/// Writes the numbers of rows in turns until it is told to end.
fn rewrite(rows: &[AtomicU8], ends: &AtomicBool) {
    for turn in (0..).take_while(|_| !ends.load(Ordering::Relaxed)) {
        for (place, byte) in rows.iter().zip(ROWS[turn % 2].to_be_bytes()) {
            place.store(byte, Ordering::Relaxed);
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros([300, 900, 2_000, 600, 1_400][turn % 5]) {
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

    let (frame, behind) = segment(picture, 0xC0..=0xC2);
    let (start, end) = segment(picture, 0xC4..=0xC4);
    let tables = picture[start..end].repeat(TABLES);
    let long = [&picture[..behind], &tables, &picture[behind..]].concat();
    let shared: &'static [AtomicU8] = long.iter().map(|&byte| AtomicU8::new(byte)).collect::<Vec<_>>().leak();
    // Behind the marker, the length and the precision.
    let rows = &shared[frame + 5..frame + 7];
    let file = |chunk: Chunk, bytes: usize| host.input_in("IMAGE", UINT8, &[1, bytes as i64], vec![chunk]);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| rewrite(rows, &ends));
        for _ in 0..BATCHES {
            let hostile = vec![file(Chunk::Shared(shared), shared.len())];
            let good = vec![file(Chunk::Kept(0, picture.clone()), picture.len())];
            let hostile = host.request_of("hostile", hostile, &[&output]);
            let good = host.request_of("good", good, &[&output]);
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
