//! Pictures that a device decodes, beside a host that upsamples chroma as the device does: DALI's recorded answers are
//! compared on average only, so beside those a picture may be off by a pixel and nobody sees it. Files that are moved
//! to a device upsample smoothly there, as on a host. For files made for a device, which do not, its own threads decode
//! in place of the SMs.

use std::sync::Arc;

use gesso::gpu::{self, Gpu};
use gesso::pipeline::{Instance, JpegPath, Keep, Pipeline, Preferences};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape, View};

use crate::recording::{ANSWERED_THERE, Case, Recording, dtype, recordings};
use crate::skips::{Needs, skip};
use crate::tolerance::Tolerance;
use crate::{align, difference};

/// An output of a sample.
struct Made {
    dtype: DType,
    shape: Shape,
    words: Vec<u64>,
    bytes: usize,
}

impl Made {
    fn of(view: &View<'_>) -> Self {
        let (shape, words) = (Shape::new(view.shape.to_vec()), align(view.bytes));
        Self { dtype: view.dtype, shape, words, bytes: view.bytes.len() }
    }

    fn view(&self) -> View<'_> {
        let bytes = &bytemuck::cast_slice(&self.words)[..self.bytes];
        View { dtype: self.dtype, layout: Layout::NONE, shape: &self.shape, bytes }
    }
}

/// All outputs of all samples of a case.
fn run(
    recording: &Recording,
    case: &Case,
    pipeline: &Pipeline,
    mut instance: Instance,
) -> Result<Vec<Made>, String> {
    let words = |sample| align(recording.bytes(sample));
    let memory: Vec<Vec<Vec<u64>>> =
        pipeline.inputs().iter().map(|input| case.inputs[&input.name].iter().map(words).collect()).collect();
    let mut inputs = Vec::new();
    for (input, words) in pipeline.inputs().iter().zip(&memory) {
        let samples = &case.inputs[&input.name];
        let shapes = samples.iter().map(|sample| Shape::new(sample.shape.clone())).collect();
        let bytes = samples.iter().zip(words).map(|(sample, words)| {
            Sample::Borrowed(&bytemuck::cast_slice::<u64, u8>(words)[..recording.bytes(sample).len()])
        });
        let desc = BatchDesc::new(dtype(&samples[0]), input.layout, shapes);
        inputs.push(Batch::new(desc, bytes.collect()).unwrap());
    }
    let outcome =
        instance.run(case.outputs[0].len(), inputs, &mut Keep).map_err(|error| error.to_string())?;
    if let Some(error) = (0..outcome.failures.len()).find_map(|i| outcome.failures.get(i)) {
        return Err(error.to_string());
    }
    let mut made = Vec::new();
    for output in &outcome.outputs {
        let output = instance.to_host(output).map_err(|error| error.to_string())?;
        made.extend((0..output.len()).map(|i| Made::of(&output.view(i))));
    }
    Ok(made)
}

/// What is wrong with a case's answers on a device.
fn compare(recording: &Recording, case: &Case, gpu: &Arc<Gpu>) -> Result<(), String> {
    let bytes = recording.bytes(&case.pipeline);
    let open = |device: Result<Pipeline, gesso::error::Error>, gpu, preferences: &Preferences| {
        let pipeline = device.map_err(|error| error.to_string())?;
        let instance =
            pipeline.instance_with(Some(2), gpu, preferences).map_err(|error| error.to_string())?;
        run(recording, case, &pipeline, instance)
    };
    let made_for_gpu = case.name.ends_with("_made_for_gpu");
    let there = match made_for_gpu {
        true => Pipeline::load(bytes, Device::Gpu),
        false => Pipeline::load_moved_to_device(bytes),
    };
    // Engines differ by a level.
    let found =
        open(there, Some(gpu), &Preferences { jpeg_path: Some(JpegPath::Sm), ..Preferences::default() })?;
    let expected = match made_for_gpu {
        true => {
            let preferences = Preferences { jpeg_path: Some(JpegPath::Threads), ..Preferences::default() };
            open(Pipeline::load(bytes, Device::Gpu), Some(gpu), &preferences)?
        }
        false => open(Pipeline::load(bytes, Device::Cpu), None, &Preferences::default())?,
    };
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if (found.dtype, &found.shape) != (expected.dtype, &expected.shape) {
            return Err(format!(
                "answer {i}: {} {}, on the host {}",
                found.dtype, found.shape, expected.shape
            ));
        }
        let tolerance = Tolerance::beside_host(case, found.dtype);
        let (largest, mean) = difference(&found.view(), &expected.view(), tolerance.relative);
        if largest > tolerance.largest {
            return Err(format!(
                "answer {i} differs from the host's by at most {largest}, on average {mean}"
            ));
        }
    }
    Ok(())
}

#[test]
fn what_a_device_decodes_agrees_with_the_host_to_a_level() {
    if let Err(error) = gpu::devices() {
        return skip(Needs::Gpu, format_args!("no GPU: {error}"));
    }
    let gpu = Gpu::open(0).unwrap();
    let (mut compared, mut wrong) = (0, Vec::new());
    for path in recordings() {
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if module.starts_with(ANSWERED_THERE) {
            continue;
        }
        let recording = Recording::open(&path);
        for case in recording.index.cases.iter().filter(|case| Tolerance::is_of_decoder(&module, case)) {
            compared += 1;
            if let Err(error) = compare(&recording, case, &gpu) {
                wrong.push(format!("{module}: {}: {error}", case.name));
            }
        }
    }
    println!("{compared} cases");
    assert!(wrong.is_empty() && compared > 0, "{}", wrong.join("\n"));
}
