//! Spectra of windows that do not fit into the memory that the threads of a block share, beside those of the host.

use gesso::gpu::Gpu;
use gesso::pipeline::{Keep, Pipeline};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};
use std::sync::Arc;

use crate::gpu;
use crate::numbers::Numbers;

/// Samples of the signals: the last is shorter than the windows, and mirrored more than once.
const SIGNALS: [usize; 3] = [300_000, 131_073, 100_001];

/// Differences, as a part of the largest number of a spectrum: of sums in float32 of as many samples.
const TOLERANCE: f32 = 2e-5;

fn signals() -> Vec<Vec<f32>> {
    let mut numbers = Numbers(7);
    // Tones under noise, so that spectra have peaks.
    let sample = |i: usize, numbers: &mut Numbers| {
        (i as f32 * 0.37).sin() + (i as f32 * 0.011).cos() + numbers.below(2_001) as f32 / 1_000.0 - 1.0
    };
    SIGNALS.map(|count| (0..count).map(|i| sample(i, &mut numbers)).collect()).to_vec()
}

/// For each output and signal, its shape and its numbers.
fn spectra(gpu: Option<&Arc<Gpu>>, signals: &[Vec<f32>]) -> Vec<Vec<(Shape, Vec<f32>)>> {
    let file = std::fs::read(crate::file("tests/gpu/data/spectra.dali")).unwrap();
    let device = if gpu.is_some() { Device::Gpu } else { Device::Cpu };
    let mut instance = Pipeline::load(&file, device).unwrap().instance(Some(2), gpu).unwrap();
    let shapes = signals.iter().map(|signal| Shape::from([signal.len()])).collect();
    let samples = signals.iter().map(|signal| Sample::Borrowed(bytemuck::cast_slice(signal))).collect();
    let batch = Batch::new(BatchDesc::new(DType::F32, Layout::NONE, shapes), samples).unwrap();
    let outcome = instance.run(signals.len(), vec![batch], &mut Keep).unwrap();
    let mut all = Vec::new();
    for output in &outcome.outputs {
        let output = instance.to_host(output).unwrap();
        let numbers = |i: usize| bytemuck::pod_collect_to_vec::<u8, f32>(output.view(i).bytes);
        all.push((0..signals.len()).map(|i| (output.view(i).shape.clone(), numbers(i))).collect());
    }
    for i in 0..signals.len() {
        assert!(outcome.failures.get(i).is_none(), "{:?}", outcome.failures.get(i));
    }
    all
}

#[test]
fn large_transforms_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    let signals = signals();
    let (expected, found) = (spectra(None, &signals), spectra(Some(&gpu), &signals));
    for (o, (expected, found)) in expected.iter().zip(&found).enumerate() {
        for (i, ((shape, expected), (found_shape, found))) in expected.iter().zip(found).enumerate() {
            assert_eq!(shape, found_shape, "output {o}, signal {i}");
            let largest = expected.iter().copied().fold(0.0, f32::max);
            let worst = expected.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            println!("output {o}, signal {i}, {shape}: {} of {largest}", worst / largest);
            assert!(
                largest > 1.0 && worst <= TOLERANCE * largest,
                "output {o}, signal {i}: {worst} of {largest}"
            );
        }
    }
}
