//! With `deterministic`, a file becomes the same pixels alone, in a batch of any size, and while others keep the device
//! busy.

use std::sync::Arc;

use gesso::gpu::Gpu;
use gesso::pipeline::{Instance, Keep, Pipeline, Preferences};

use crate::gpu;
use crate::promises::{PIPELINE, encoded, photos};

fn instance(gpu: &Arc<Gpu>) -> Instance {
    let pipeline = Pipeline::load_moved_to_device(PIPELINE).unwrap();
    let preferences = Preferences { deterministic: true, ..Preferences::default() };
    pipeline.instance_with(Some(4), Some(gpu), &preferences).unwrap()
}

/// What becomes of `count` of the files, counted around.
fn answers(instance: &mut Instance, files: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
    let outcome = instance.run(count, vec![encoded(files.iter().cycle().take(count))], &mut Keep).unwrap();
    let output = instance.to_host(&outcome.outputs[0]).unwrap();
    (0..count).map(|i| output.view(i).bytes.to_vec()).collect()
}

#[test]
fn a_file_becomes_the_same_pixels_in_any_company() {
    let Some(gpu) = gpu() else { return };
    let files = photos();
    let mut alone = instance(&gpu);
    let expected: Vec<Vec<u8>> =
        files.iter().map(|file| answers(&mut alone, std::slice::from_ref(file), 1).remove(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut instance = instance(&gpu);
                for count in [1, 2, 5, 16, 64, 200, 3, 1].repeat(4) {
                    for (i, answer) in answers(&mut instance, &files, count).iter().enumerate() {
                        assert!(*answer == expected[i % files.len()], "file {i} of {count}");
                    }
                    assert_eq!(instance.tally().decoded.engine, 0);
                }
            });
        }
    });
}
