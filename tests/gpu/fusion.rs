//! A fused plan computes what the plan without fusion does, bit for bit.

use std::sync::Arc;

use triton_gesso::executor::{Executor, Keep};
use triton_gesso::graph::import::PipelineFile;
use triton_gesso::graph::{Graph, Plan};
use triton_gesso::ops::Preferences;
use triton_gesso::tensor::Device;

use crate::gpu;
use crate::promises::{PIPELINE, encoded, photos};

#[test]
fn resize_and_normalize_in_one_kernel_equal_the_two() {
    let Some(gpu) = gpu() else { return };
    let graph = || PipelineFile::parse(PIPELINE).unwrap().moved_to_device().graph(Device::Gpu).unwrap();
    let (fused, unfused) = (Plan::new(graph()).unwrap(), Plan::unfused(graph()).unwrap());
    let names = |plan: &Plan| plan.graph.nodes.iter().map(Graph::op_name).collect::<Vec<_>>();
    assert!(names(&fused).contains(&"Resize + CropMirrorNormalize"), "{:?}", names(&fused));
    assert!(names(&unfused).contains(&"CropMirrorNormalize"), "{:?}", names(&unfused));
    let photos = photos();
    let mut results = Vec::new();
    for plan in [fused, unfused] {
        let mut executor = Executor::new(Arc::new(plan), 4, Some(&gpu), &Preferences::default()).unwrap();
        let outcome = executor.run(photos.len(), vec![encoded(&photos)], &mut Keep).unwrap();
        let output = executor.to_host(&outcome.outputs[0]).unwrap();
        results.push((0..photos.len()).map(|i| output.view(i).bytes.to_vec()).collect::<Vec<_>>());
    }
    assert!(results[0][0].iter().any(|&byte| byte != 0));
    assert!(results[0] == results[1]);
}
