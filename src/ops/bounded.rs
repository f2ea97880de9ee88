//! Operators that say what they take: the worst of a small request, and that it stops in the middle. What bounds the
//! work of each operator, the lists of the families say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::find;
use super::table::{Bound, FAMILIES};
use crate::deadline::{Deadline, Effort};
use crate::error::{Error, Result};
use crate::operator::args::Value;
use crate::operator::{Args, CpuCx, Failures, Inputs, Io, OutputSamples, testing};
use crate::tensor::{Batch, BatchDesc, DType, Layout, Sample, Shape};
use crate::threads;

/// Names of the operators that say what they take.
fn told() -> impl Iterator<Item = &'static str> {
    let rows = FAMILIES.iter().flat_map(|(_, rows)| rows.iter());
    rows.filter(|(_, bound)| *bound == Bound::Told).map(|(op, _)| op.name)
}

#[test]
fn every_operator_that_says_what_it_takes_has_a_case() {
    let cases: Vec<&str> = cases().into_iter().map(|case| case.name).collect();
    for name in told() {
        assert!(cases.contains(&name), "`{name}` says what it takes, and has no case");
    }
    assert!(cases.iter().all(|name| told().any(|told| told == *name)));
}

/// Somebody who does not wait any more once he was asked so often.
struct Asked {
    most: usize,
    asked: AtomicUsize,
}

impl Deadline for Asked {
    fn check(&self, sample: Option<usize>) -> Result<()> {
        // Who asks for no sample asks before each.
        if sample.is_some() && self.asked.fetch_add(1, Ordering::Relaxed) >= self.most {
            return Err(Error::invalid("nobody waits"));
        }
        Ok(())
    }
}

/// The worst of a small request.
struct Case {
    name: &'static str,
    args: Vec<(&'static str, Value)>,
    layout: &'static str,
    dtype: DType,
    shape: Vec<usize>,
    /// What the first input begins with; the rest is zeros.
    begin: Vec<u8>,
    /// Further inputs, of 32-bit numbers.
    further: Vec<Vec<usize>>,
    /// What it takes at least, in milliseconds.
    least: u64,
    /// So often it is told that somebody waits.
    patience: usize,
}

fn cases() -> Vec<Case> {
    let ints = |values: &[i64]| Value::Ints(values.to_vec());
    let case = |name, args, shape: &[usize], least| Case {
        name,
        args,
        layout: "HWC",
        dtype: DType::U8,
        shape: shape.to_vec(),
        begin: Vec::new(),
        further: Vec::new(),
        least,
        patience: 3,
    };
    let squares = |count: usize| vec![256_i64; 2 * count];
    let floats = |values: &[f32]| Value::Floats(values.to_vec());
    // A region far beyond the image: thousands of weights for each pixel.
    let far = || {
        vec![
            ("resize_x", floats(&[20.0])),
            ("resize_y", floats(&[20.0])),
            ("roi_start", floats(&[0.0, 0.0])),
            ("roi_end", floats(&[20_000.0, 20_000.0])),
        ]
    };
    let larger = |sides: &[f32]| vec![("resize_x", floats(&sides[..1])), ("resize_y", floats(&sides[1..]))];
    let image = [400, 400, 3];
    let signal = |name, layout, args, shape: &[usize], least| Case {
        layout,
        dtype: DType::F32,
        ..case(name, args, shape, least)
    };
    vec![
        case("random__Uniform", vec![], &image, 1),
        case("random__CoinFlip", vec![], &image, 1),
        case("random__Normal", vec![], &image, 5),
        case("random__Beta", vec![], &image, 20),
        case("noise__Gaussian", vec![], &image, 5),
        case("noise__Shot", vec![], &image, 15),
        case("noise__SaltAndPepper", vec![], &image, 1),
        case("Resize", far(), &[64, 64, 3], 5),
        Case {
            layout: "DHWC",
            ..case(
                "Resize",
                vec![
                    ("resize_x", floats(&[90.0])),
                    ("resize_y", floats(&[90.0])),
                    ("resize_z", floats(&[90.0])),
                ],
                &[60, 60, 60, 1],
                5,
            )
        },
        case("TensorResize", vec![("sizes", floats(&[900.0, 900.0, 3.0]))], &image, 2),
        case("ResizeCropMirror", larger(&[900.0, 900.0]), &image, 2),
        case("FastResizeCropMirror", larger(&[900.0, 900.0]), &image, 2),
        case("RandomResizedCrop", vec![("size", ints(&[900, 900]))], &image, 2),
        case("Rotate", vec![("angle", floats(&[33.0]))], &image, 5),
        case("WarpAffine", vec![("matrix", floats(&[1.1, 0.2, 3.0, 0.1, 1.0, 5.0]))], &image, 5),
        case(
            "experimental__WarpPerspective",
            vec![("matrix", floats(&[1.1, 0.2, 3.0, 0.1, 1.0, 5.0, 0.0, 0.0, 1.0]))],
            &image,
            5,
        ),
        Case { further: vec![vec![400, 400]; 2], ..case("experimental__Remap", vec![], &image, 5) },
        Case {
            further: vec![vec![400, 400]; 2],
            ..case("experimental__Remap", vec![("interp", ints(&[3]))], &image, 50)
        },
        case("Sphere", vec![], &image, 2),
        case("Water", vec![], &image, 2),
        case("Jitter", vec![], &image, 5),
        signal(
            "Spectrogram",
            "",
            vec![("window_length", ints(&[2_048])), ("window_step", ints(&[4]))],
            &[40_000],
            100,
        ),
        signal("gesso__SeamlessFeatures", "", vec![("nfilter", ints(&[4_096]))], &[400_000], 20),
        signal(
            "gesso__LogMel",
            "",
            vec![("nfft", ints(&[2_048])), ("window_step", ints(&[4])), ("samples", ints(&[0]))],
            &[40_000],
            100,
        ),
        signal("MelFilterBank", "ft", vec![], &[1_025, 2_000], 5),
        signal("MFCC", "ft", vec![("n_mfcc", ints(&[128]))], &[128, 5_000], 20),
        signal("AudioResample", "", vec![("scale", floats(&[8.0]))], &[400_000], 5),
        case("GaussianBlur", vec![("sigma", floats(&[1_000.0]))], &[300, 300, 1], 300),
        case("Laplacian", vec![("window_size", ints(&[31]))], &[400, 400, 3], 10),
        Case { further: vec![vec![101, 101]], ..case("Filter", vec![], &[200, 200, 3], 50) },
        Case {
            dtype: DType::F32,
            ..case("experimental__MedianBlur", vec![("window_size", ints(&[101]))], &[30, 30, 1], 5)
        },
        case("experimental__MedianBlur", vec![("window_size", ints(&[255]))], &[400, 400, 1], 20),
        // They ask behind each of two dimensions.
        Case {
            patience: 1,
            ..case("experimental__Dilate", vec![("mask_size", ints(&[255]))], &[1_000, 1_000, 1], 1)
        },
        Case {
            patience: 1,
            ..case("experimental__Erode", vec![("mask_size", ints(&[255]))], &[1_000, 1_000, 1], 1)
        },
        case(
            "Erase",
            vec![("anchor", floats(&[0.0; 400])), ("shape", floats(&[256.0; 400]))],
            &[256, 256, 3],
            20,
        ),
        case(
            "MultiPaste",
            vec![("in_ids", ints(&[0; 100])), ("shapes", ints(&squares(100)))],
            &[256, 256, 3],
            5,
        ),
        Case {
            layout: "",
            // LZ4: one run of so many bytes as they are, whose number is 15 and some bytes more.
            begin: [vec![0xF0], vec![255; 390], vec![143]].concat(),
            ..case(
                "decoders__Inflate",
                vec![
                    ("shape", ints(&[100_000])),
                    ("chunk_offsets", ints(&[0; 400])),
                    ("chunk_sizes", ints(&[100_000; 400])),
                ],
                &[100_000],
                5,
            )
        },
    ]
}

/// What the operator expects of the case, how often it asked, and why it failed.
fn run(case: &Case) -> (Effort, usize, Option<String>) {
    let bytes = case.shape.iter().product::<usize>() * case.dtype.size();
    let mut words = vec![0_u32; bytes.div_ceil(4)];
    bytemuck::cast_slice_mut::<u32, u8>(&mut words)[..case.begin.len()].copy_from_slice(&case.begin);
    let ones = vec![1.0_f32; case.further.iter().map(|shape| shape.iter().product()).max().unwrap_or(0)];
    let first = BatchDesc::new(
        case.dtype,
        Layout::from_letters(case.layout.as_bytes()),
        vec![Shape::from(case.shape.clone())],
    );
    let mut inputs =
        vec![Batch::new(first, vec![Sample::Borrowed(&bytemuck::cast_slice(&words)[..bytes])]).unwrap()];
    for shape in &case.further {
        let numbers = &ones[..shape.iter().product()];
        let desc = BatchDesc::new(DType::F32, Layout::NONE, vec![Shape::from(shape.clone())]);
        inputs.push(Batch::new(desc, vec![Sample::Borrowed(bytemuck::cast_slice(numbers))]).unwrap());
    }
    let args: Args = testing::args(&case.args, &[]);
    let mut operator = find(case.name).unwrap().instantiate(&args, inputs.len()).unwrap();
    let (regular, failures): (Vec<_>, _) = (inputs.iter().collect(), Failures::none(1));
    let name = case.name.into();
    let inputs = Inputs::new(&name, &regular, &[], &failures);
    let desc = operator.setup(&inputs).unwrap().remove(0);
    assert!(failures.get(0).is_none(), "{}: {:?}", case.name, failures.get(0));
    let effort = operator.effort(0);
    let mut out = vec![0_u32; desc.shapes[0].bytes(desc.dtype.size()).unwrap().div_ceil(4)];
    let length = desc.shapes[0].bytes(desc.dtype.size()).unwrap();
    let buffers = vec![Some(&mut bytemuck::cast_slice_mut(&mut out)[..length])];
    let outputs = vec![OutputSamples { desc: &desc, buffers }];
    let deadline = Asked { most: case.patience, asked: AtomicUsize::new(0) };
    let pool = threads::start(1).unwrap();
    operator.run_cpu(&CpuCx { pool: &pool, deadline: &deadline }, &mut Io::new(inputs, outputs)).unwrap();
    (effort, deadline.asked.into_inner(), failures.get(0).map(ToString::to_string))
}

#[test]
fn what_a_request_may_ask_for_is_told_and_can_be_stopped() {
    for case in &cases() {
        let (effort, asked, error) = run(case);
        let least = Duration::from_millis(case.least);
        assert!(effort.time >= least, "`{}` tells of {:?}, expected {least:?}", case.name, effort.time);
        assert_eq!(asked, case.patience + 1, "`{}` goes on when nobody waits: {error:?}", case.name);
        assert!(error.unwrap_or_default().ends_with("nobody waits"), "`{}`", case.name);
    }
}

#[test]
fn frames_are_told_for_their_sequence_and_asked_for_as_its_sample() {
    let failures = Failures::none(2);
    let frames = failures.of_frames([0, 0, 1].into_iter());
    assert_eq!([0, 1, 2, 3].map(|frame| frames.waited_for(frame)), [Some(0), Some(0), Some(1), None]);
    assert_eq!(failures.waited_for(1), Some(1));
    assert_eq!(frames.len(), 3);
}
