//! What an instance of a pipeline took comes back when it goes.

use gesso::pipeline::{Keep, Pipeline};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Sample, Shape};

use crate::{counting, files};

/// Pools and tables fill in the first rounds.
const WARM_UP: usize = 4;
const ROUNDS: usize = 12;
/// Of so many instances a fraction of a megabyte each would be more.
const MOST: usize = 256 << 10;
const IMAGES: usize = 8;

#[test]
fn memory_comes_back_when_instances_go() {
    let _turn = counting::nobody_counts();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plugin/models/classify/1/model.dali");
    let model = std::fs::read(model).unwrap();
    let jpegs: Vec<_> = files::recorded()
        .into_iter()
        .filter(|file| file.bytes.starts_with(&[0xff, 0xd8]))
        .take(IMAGES)
        .collect();
    assert_eq!(jpegs.len(), IMAGES);
    let mut after = Vec::new();
    for _ in 0..ROUNDS {
        run(&model, &jpegs);
        after.push(counting::live());
    }
    let lost = after[ROUNDS - 1].saturating_sub(after[WARM_UP - 1]);
    assert!(lost < MOST, "{lost} bytes did not come back; in use after each round: {after:?}");
}

/// Loads the pipeline and runs an instance of it, both of which are gone then.
fn run(model: &[u8], jpegs: &[crate::File]) {
    let pipeline = Pipeline::load(model, Device::Cpu).unwrap();
    let mut instance = pipeline.instance(None, None).unwrap();
    let shapes = jpegs.iter().map(|file| Shape::from([file.bytes.len()])).collect();
    let samples = jpegs.iter().map(|file| Sample::Borrowed(&file.bytes)).collect();
    let desc = BatchDesc::new(DType::U8, pipeline.inputs()[0].layout, shapes);
    let batch = Batch::new(desc, samples).unwrap();
    instance.run(jpegs.len(), vec![batch], &mut Keep).unwrap();
}
