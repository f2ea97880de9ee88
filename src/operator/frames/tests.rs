//! Operators of several families, frame by frame.

use super::*;
use crate::operator::args::Value;
use crate::operator::testing;
use crate::ops::find;

fn frames<'a>(samples: &[(&[usize], &'a [f32])], layout: &[u8]) -> Batch<'a> {
    let batch = testing::batch::<f32>(samples);
    let samples = (0..batch.len()).map(|i| batch.sample(i).unwrap().clone()).collect();
    let desc = BatchDesc::new(batch.desc().dtype, Layout::from_letters(layout), batch.desc().shapes.clone());
    Batch::new(desc, samples).unwrap()
}

#[test]
fn a_wrong_number_of_values_fails_its_sample() {
    let pixels = [1.0, 2.0];
    let input = frames(&[(&[2, 1, 1, 1], &pixels), (&[2, 1, 1, 1], &pixels)], b"FHWC");
    let values = [10.0, 20.0, 30.0];
    let argument = frames(&[(&[2], &values[..2]), (&[3], &values)], b"F");
    let args = testing::args(&[], &["brightness"]);
    let done = testing::run(find("Brightness").unwrap(), &args, &[input], &[argument]).unwrap();
    assert_eq!(done.values::<f32>(0), [10.0, 40.0]);
    assert_eq!(done.desc.layout.as_str(), "FHWC");
    assert!(done.error(1).contains("frames"), "{}", done.error(1));
}

#[test]
fn a_sample_that_fails_while_it_is_set_up_leaves_the_others() {
    let pixels = [1.0; 12];
    let input = frames(&[(&[2, 2, 3, 1], &pixels), (&[2, 2, 3, 1], &pixels)], b"FHWC");
    let sigmas = [f32::NAN, 1.0];
    for (first, second) in [(0, 1), (1, 0)] {
        let of = |i: usize| (&[1usize][..], &sigmas[i..=i]);
        let argument = frames(&[of(first), of(second)], b"F");
        let args = testing::args(&[], &["sigma"]);
        let done =
            testing::run(find("GaussianBlur").unwrap(), &args, std::slice::from_ref(&input), &[argument])
                .unwrap();
        assert!(done.error(first).contains("frame 0"), "{}", done.error(first));
        assert!(done.values::<f32>(second).iter().all(|&pixel| (pixel - 1.0).abs() < 1e-5));
    }
}

#[test]
fn images_of_sequences_are_pasted_frame_by_frame() {
    let (below, above) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]);
    let inputs = || {
        let below = frames(&[(&[2, 1, 2, 1], &below), (&[1, 1, 2, 1], &below[..2])], b"FHWC");
        [below, frames(&[(&[2, 1, 1, 1], &above), (&[1, 1, 1, 1], &above[..1])], b"FHWC")]
    };
    let def = find("MultiPaste").unwrap();
    let size = ("output_size", Value::Ints(vec![1, 2]));
    let done = testing::run(def, &testing::args(std::slice::from_ref(&size), &[]), &inputs(), &[]).unwrap();
    assert_eq!((done.values::<f32>(0), done.values::<f32>(1)), (vec![5.0, 2.0, 6.0, 4.0], vec![5.0, 2.0]));

    let named = testing::args(&[size, ("in_ids", Value::Ints(vec![0]))], &[]);
    let refused = testing::run(def, &named, &inputs()[..1], &[]).err().unwrap();
    assert!(refused.to_string().contains("several frames"), "{refused}");
}

#[test]
fn more_frames_than_a_batch_may_have_fail_alone() {
    let pixels = [1.0; 2];
    let many = limits::MAX_FRAMES;
    let input = frames(&[(&[many, 0, 1, 1], &[]), (&[2, 1, 1, 1], &pixels)], b"FHWC");
    let values = [10.0, 20.0];
    let argument = frames(&[(&[1], &values[..1]), (&[2], &values)], b"F");
    let args = testing::args(&[], &["brightness"]);
    let done = testing::run(find("Brightness").unwrap(), &args, &[input], &[argument]).unwrap();
    assert!(done.error(0).contains("do not fit"), "{}", done.error(0));
    assert_eq!(done.values::<f32>(1), [10.0, 20.0]);
}

#[test]
fn operators_say_what_may_differ_from_frame_to_frame() {
    for (name, argument) in [("GaussianBlur", "sigma"), ("Rotate", "angle"), ("transforms__Scale", "scale")] {
        let spec = find(name).unwrap().all_args().find(|spec| spec.name == argument).unwrap();
        assert!(spec.per_frame && spec.tensor, "{name}");
    }
}
