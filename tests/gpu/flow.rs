//! `optical_flow` on the engine of a device: content that moves by known pixels, in every setting; sequences of several
//! sizes in a batch; what cannot be computed; what a batch costs. The pipelines are from data/make.py.

use std::sync::Arc;

use gesso::error::Result;
use gesso::gpu::Gpu;
use gesso::limits::MAX_FLOW_SESSIONS;
use gesso::pipeline::{Instance, Keep, Pipeline};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Sample, Shape};

use crate::gpu;
use crate::skips::{Needs, skip};

/// Pixels along the borders of which nobody knows where they were, or whose blocks reach there.
const BORDER: usize = 48;

/// Pixels by which a vector may be wrong; of content that moves by whole pixels.
const LARGEST: f64 = 1.0;

/// The part of the vectors that must not be wrong by more.
const RIGHT: f64 = 0.95;

/// Columns, rows.
const SIZES: [[usize; 2]; 3] = [[256, 192], [251, 173], [320, 240]];

/// A number from 0 to 1 for a place of a grid, which looks random.
fn grain(x: i64, y: i64) -> f64 {
    let mixed =
        (x as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (y as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ mixed >> 32) & 0xFFFF) as f64 / 65_535.0
}

/// Content without an end or a period: grains of several sizes, linear between their places.
fn content(x: i64, y: i64) -> f64 {
    let octave = |size: i64| {
        let (column, row) = (x.div_euclid(size), y.div_euclid(size));
        let [across, down] = [x, y].map(|at| at.rem_euclid(size) as f64 / size as f64);
        let line = |row: i64| grain(column, row) * (1.0 - across) + grain(column + 1, row) * across;
        line(row) * (1.0 - down) + line(row + 1) * down
    };
    0.4 * octave(23) + 0.35 * octave(9) + 0.25 * octave(4)
}

/// A sequence whose content moves by `step`, along x and y, from frame to frame.
struct Clip {
    size: [usize; 2],
    frames: usize,
    channels: usize,
    step: [i64; 2],
}

impl Clip {
    fn shape(&self) -> Shape {
        Shape::from([self.frames, self.size[1], self.size[0], self.channels])
    }

    fn pixels(&self) -> Vec<u8> {
        let [width, height] = self.size;
        let pixel = |i: usize| {
            let (channel, x, y) =
                (i % self.channels, i / self.channels % width, i / self.channels / width % height);
            let frame = (i / self.channels / width / height) as i64;
            let [x, y] = [x as i64 - frame * self.step[0], y as i64 - frame * self.step[1]];
            // Channels differ, so that each counts.
            (255.0 * content(x + 7 * channel as i64, y)) as u8
        };
        (0..self.frames * width * height * self.channels).map(pixel).collect()
    }
}

/// A pipeline on a device; `None` where there is none, or no engine, which must have been said.
fn instance(gpu: &Arc<Gpu>, name: &str) -> Option<Instance> {
    let file = std::fs::read(crate::file(&format!("tests/gpu/data/{name}.dali"))).unwrap();
    match Pipeline::load(&file, Device::Gpu).unwrap().instance(Some(2), Some(gpu)) {
        Ok(instance) => Some(instance),
        Err(error) => {
            let text = error.to_string();
            skip(Needs::Gpu, &text);
            assert!(
                text.contains("libnvidia-opticalflow.so.1") || text.contains("no optical flow engine"),
                "{text}"
            );
            None
        }
    }
}

type Field = Result<(Shape, Vec<f32>)>;

/// The fields of clips, with hints of one vector for all blocks if there are some.
fn run(instance: &mut Instance, clips: &[Clip], hints: Option<[f32; 2]>) -> Vec<Field> {
    const HINT_GRID: usize = 4;
    let pixels: Vec<Vec<u8>> = clips.iter().map(Clip::pixels).collect();
    let layout = gesso::tensor::Layout::from_letters(b"FHWC");
    let desc = BatchDesc::new(DType::U8, layout, clips.iter().map(Clip::shape).collect());
    let mut inputs =
        vec![Batch::new(desc, pixels.iter().map(|clip| Sample::Borrowed(clip)).collect()).unwrap()];
    let shapes: Vec<Shape> = clips
        .iter()
        .map(|clip| {
            let [columns, rows] = clip.size.map(|side| side.div_ceil(HINT_GRID));
            Shape::from([clip.frames - 1, rows, columns, 2])
        })
        .collect();
    let vectors: Vec<Vec<f32>> =
        shapes.iter().map(|shape| hints.unwrap_or_default().repeat(shape.volume().unwrap() / 2)).collect();
    if hints.is_some() {
        let samples = vectors.iter().map(|field| Sample::Borrowed(bytemuck::cast_slice(field))).collect();
        inputs.push(Batch::new(BatchDesc::new(DType::F32, layout, shapes), samples).unwrap());
    }
    let outcome = instance.run(clips.len(), inputs, &mut Keep).unwrap();
    let output = instance.to_host(&outcome.outputs[0]).unwrap();
    let field = |i: usize| match outcome.failures.get(i) {
        Some(error) => Err(error.clone()),
        None => {
            let view = output.view(i);
            assert_eq!(view.dtype, DType::F32);
            Ok((view.shape.clone(), bytemuck::cast_slice(view.bytes).to_vec()))
        }
    };
    (0..clips.len()).map(field).collect()
}

/// Says what is wrong with a field of blocks of `grid` pixels, if anything is. As in DALI, vectors lead from a frame to
/// the one before.
fn judge(label: &str, clip: &Clip, grid: usize, field: &Field) -> Option<String> {
    let (shape, vectors) = match field {
        Ok(field) => field,
        Err(error) => return Some(format!("{label}: {error}")),
    };
    let [columns, rows] = clip.size.map(|side| side.div_ceil(grid));
    let expected = Shape::from([clip.frames - 1, rows, columns, 2]);
    if *shape != expected {
        return Some(format!("{label}: shape {shape}, expected {expected}"));
    }
    let inside = |place: usize, blocks: usize| (BORDER / grid..blocks - BORDER / grid).contains(&place);
    let mut errors = Vec::new();
    for (i, vector) in vectors.chunks_exact(2).enumerate() {
        let (x, y) = (i % columns, i / columns % rows);
        if inside(x, columns) && inside(y, rows) {
            let [along_x, along_y] = [0, 1].map(|axis| f64::from(vector[axis]) + clip.step[axis] as f64);
            errors.push(along_x.hypot(along_y));
        }
    }
    let right = errors.iter().filter(|&&error| error <= LARGEST).count() as f64 / errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let verdict = if right < RIGHT { "WRONG " } else { "" };
    let middle = (rows / 2 * columns + columns / 2) * 2;
    let seen = &vectors[middle..middle + 2];
    println!(
        "{label}: {verdict}{right:.3} right, mean error {mean:.3}; in the middle {seen:?}, moved by {:?}",
        clip.step
    );
    (right < RIGHT)
        .then(|| format!("{label}: {right:.3} right, mean error {mean:.3}, in the middle {seen:?}"))
}

#[test]
fn content_that_moves_is_found() {
    let Some(gpu) = gpu() else { return };
    let mut wrong = Vec::new();
    for (name, grid, channels) in [
        ("flow_1", 1, 3),
        ("flow_2", 2, 3),
        ("flow_4", 4, 3),
        ("flow_fast", 4, 3),
        ("flow_bgr", 4, 3),
        ("flow_gray", 2, 1),
        ("flow_temporal", 4, 3),
    ] {
        let Some(mut instance) = instance(&gpu, name) else { return };
        for size in SIZES {
            for step in [[3, 2], [-5, 4], [0, -7], [12, 0]] {
                let clip = Clip { size, frames: 4, channels, step };
                let label = format!("{name} {size:?} {step:?}");
                let field = run(&mut instance, std::slice::from_ref(&clip), None).remove(0);
                wrong.extend(judge(&label, &clip, grid, &field));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn hints_lead_the_search() {
    let Some(gpu) = gpu() else { return };
    let Some(mut instance) = instance(&gpu, "flow_hints") else { return };
    let mut wrong = Vec::new();
    for size in SIZES {
        for step in [[3_i64, 2], [-20, 9]] {
            let clip = Clip { size, frames: 3, channels: 3, step };
            let hint = step.map(|pixels| -pixels as f32);
            let field = run(&mut instance, std::slice::from_ref(&clip), Some(hint)).remove(0);
            wrong.extend(judge(&format!("hints {size:?} {step:?}"), &clip, 2, &field));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Elements of both fields, or both errors.
fn same(found: &Field, wanted: &Field) -> bool {
    match (found, wanted) {
        (Ok(found), Ok(wanted)) => found == wanted,
        (Err(found), Err(wanted)) => found.to_string() == wanted.to_string(),
        _ => false,
    }
}

fn mixed() -> Vec<Clip> {
    let clip = |(i, frames): (usize, usize)| Clip {
        size: SIZES[i % SIZES.len()],
        frames,
        channels: 3,
        step: [i as i64 - 3, 2 * (i as i64 % 3)],
    };
    [4, 2, 3, 5, 2, 6].into_iter().enumerate().map(clip).collect()
}

#[test]
fn a_batch_of_several_sizes_is_as_each_alone() {
    let Some(gpu) = gpu() else { return };
    for name in ["flow_2", "flow_temporal"] {
        let Some(mut alone) = instance(&gpu, name) else { return };
        let wanted: Vec<Field> =
            mixed().iter().map(|clip| run(&mut alone, std::slice::from_ref(clip), None).remove(0)).collect();
        let mut together = instance(&gpu, name).unwrap();
        for round in 0..3 {
            let found = run(&mut together, &mixed(), None);
            for (i, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert!(wanted.is_ok(), "{name}, clip {i}: {wanted:?}");
                assert!(same(found, wanted), "{name}, round {round}, clip {i} differs from what it is alone");
            }
            let counters = together.counters();
            println!("{name}, round {round}: {counters:?}");
            // The engine works in the stream: nobody waits but for the batch.
            assert_eq!(counters.waits, 1, "{counters:?}");
        }
    }
}

#[test]
fn a_sequence_without_flow_fails_alone() {
    let Some(gpu) = gpu() else { return };
    let Some(mut instance) = instance(&gpu, "flow_4") else { return };
    let clip =
        |size: [usize; 2], frames: usize, channels: usize| Clip { size, frames, channels, step: [2, 1] };
    let good = || clip([256, 192], 3, 3);
    let clips = [good(), clip([256, 192], 1, 3), clip([4, 3], 2, 3), clip([256, 192], 2, 1), good()];
    let found = run(&mut instance, &clips, None);
    let text = |i: usize| found[i].as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(text(1).contains("a sequence of 1 frames, expected 2 or more"), "{}", text(1));
    assert!(text(2).contains("frames of 4 x 3 pixels, expected"), "{}", text(2));
    assert!(text(3).contains("1 channels, expected 3"), "{}", text(3));
    for i in [0, 4] {
        assert_eq!(judge(&format!("clip {i}"), &clips[i], 4, &found[i]), None);
    }
    assert!(same(&found[0], &found[4]));
}

#[test]
fn sessions_are_bounded() {
    let Some(gpu) = gpu() else { return };
    let Some(mut instance) = instance(&gpu, "flow_4") else { return };
    let clip = |i: usize| Clip { size: [192 + 8 * i, 160], frames: 2, channels: 3, step: [3, -2] };
    let clips: Vec<Clip> = (0..=MAX_FLOW_SESSIONS).map(clip).collect();
    let found = run(&mut instance, &clips, None);
    for (i, (clip, field)) in clips.iter().zip(&found).enumerate() {
        if i < MAX_FLOW_SESSIONS {
            assert_eq!(judge(&format!("size {i}"), clip, 4, field), None);
        } else {
            let text = field.as_ref().err().map(ToString::to_string).unwrap_or_default();
            assert!(text.contains("more than 16 sizes in one batch"), "{text}");
        }
    }
    // One after the other they all have their turn, twice, so that sessions go and are made anew.
    for round in 0..2 {
        for (i, clip) in clips.iter().enumerate() {
            let field = run(&mut instance, std::slice::from_ref(clip), None).remove(0);
            assert_eq!(judge(&format!("round {round}, size {i}"), clip, 4, &field), None);
        }
    }
}

/// Needs no device.
#[test]
fn on_the_host_it_does_not_load() {
    let file = std::fs::read(crate::file("tests/gpu/data/flow_4.dali")).unwrap();
    let error = Pipeline::load(&file, Device::Cpu).err().unwrap().to_string();
    assert!(error.contains("`OpticalFlow`") && error.contains("it runs on a GPU only"), "{error}");
    let pipeline = Pipeline::load(&file, Device::Gpu).unwrap();
    assert_eq!(pipeline.warnings(), [""; 0]);
    let output = &pipeline.outputs()[0].ty;
    assert_eq!((output.dtype, output.ndim()), (Some(DType::F32), Some(4)));
}
