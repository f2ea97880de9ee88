//! Conditionals: which samples are where, what a failure in a branch does, and which files make no sense.

use super::*;
use crate::tensor::{Batch, BatchDesc, DType, Sample, Shape};

/// `name` with one regular input for each of `inputs`, a predicate, and outputs.
fn routed(name: &str, instance: &str, inputs: &[&str], predicate: &str, outputs: &[&str]) -> OpDef {
    let mut edges: Vec<InputOutput> = inputs.iter().map(|input| edge(input, "cpu")).collect();
    edges.push(fed(predicate, "predicate"));
    let outputs = outputs.iter().map(|output| edge(output, "cpu")).collect();
    OpDef { output: outputs, ..op(name, instance, &edges, edge("", "cpu"), &[]) }
}

fn split(instance: &str, input: &str, predicate: &str, outputs: [&str; 2]) -> OpDef {
    routed("_conditional__Split", instance, &[input], predicate, &outputs)
}

fn merge(instance: &str, inputs: [&str; 2], predicate: &str) -> OpDef {
    routed("_conditional__Merge", instance, &inputs, predicate, &[instance])
}

fn flag(name: &str) -> OpDef {
    op("ExternalSource", name, &[], edge(name, "cpu"), &[int("dtype", 11), int("ndim", 0)])
}

fn error_of(ops: &[OpDef], output: &str) -> String {
    load_error(&pipeline(ops, &[edge(output, "cpu")]))
}

#[test]
fn values_of_different_branches_do_not_meet() {
    let base = [flag("P"), flag("Q"), source("X"), split("S", "X", "P", ["a", "b"])];
    let with = |more: &[OpDef]| [&base[..], more].concat();
    assert_eq!(error_of(&with(&[merge("M", ["a", "b"], "P")]), "M"), "");
    let found = error_of(&with(&[merge("M", ["b", "a"], "P")]), "M");
    assert!(found.contains("`b`") && found.contains("another branch"), "{found}");
    let found = error_of(&with(&[merge("M", ["a", "b"], "Q")]), "M");
    assert!(found.contains("(`M`)") && found.contains("another branch"), "{found}");
    let cat = op("Cat", "C", &[edge("a", "cpu"), edge("X", "cpu")], edge("C", "cpu"), &[]);
    let found = error_of(&with(&[cat]), "C");
    assert!(found.contains("(`C`)") && found.contains("`X`"), "{found}");
    let found = error_of(&with(&[]), "a");
    assert!(found.contains("`a`") && found.contains("only the samples of one branch"), "{found}");
    let fixed = op("_conditional__Split", "S", &[edge("X", "cpu")], edge("a", "cpu"), &[int("predicate", 1)]);
    let fixed = OpDef { output: vec![edge("a", "cpu"), edge("b", "cpu")], ..fixed };
    assert!(error_of(&[source("X"), fixed], "X").contains("`predicate`"));
}

#[test]
fn a_sample_that_fails_in_a_branch_fails_alone() {
    // Where P is true, a frame is taken that only some samples have.
    let frame =
        op("_TensorSubscript", "F", &[edge("a", "cpu")], edge("F", "cpu"), &[int("lo_0", 0), int("at_1", 2)]);
    let whole = op("_TensorSubscript", "W", &[edge("b", "cpu")], edge("W", "cpu"), &[int("at_1", 0)]);
    let after = flip("Z", edge("M", "cpu"), "cpu");
    let after = OpDef { name: Some("Copy".into()), ..after };
    let ops = [
        flag("P"),
        source("X"),
        split("S", "X", "P", ["a", "b"]),
        frame,
        whole,
        merge("M", ["F", "W"], "P"),
        after,
    ];
    let file = pipeline(&ops, &[edge("Z", "cpu")]).encode_to_vec();
    let mut instance = Pipeline::load(&file, Device::Cpu).unwrap().instance(Some(1), None).unwrap();
    let bytes: Vec<u8> = (0..6).collect();
    for (flags, failing) in
        [([1u8, 1, 0], vec![0]), ([1, 0, 0], vec![0]), ([0, 0, 1], vec![]), ([0, 1, 1], vec![])]
    {
        let shapes = vec![Shape::from([1, 2, 1]), Shape::from([1, 6, 1]), Shape::from([2, 3, 1])];
        let samples = vec![Sample::Borrowed(&bytes[..2]), Sample::Borrowed(&bytes), Sample::Borrowed(&bytes)];
        let x = Batch::new(BatchDesc::new(DType::U8, Layout::NONE, shapes), samples).unwrap();
        let p = BatchDesc::new(DType::Bool, Layout::NONE, vec![Shape::from([]); 3]);
        let p = Batch::new(p, flags.chunks(1).map(Sample::Borrowed).collect()).unwrap();
        let outcome = instance.run(3, vec![p, x], &mut Keep).unwrap();
        let failed: Vec<usize> = (0..3).filter(|&i| outcome.failures.get(i).is_some()).collect();
        assert_eq!(failed, failing, "{flags:?}");
        for i in (0..3).filter(|i| !failed.contains(i)) {
            let (rows, columns) = [(1, 2), (1, 6), (2, 3)][i];
            let at = if flags[i] == 1 { 2 } else { 0 };
            let expected: Vec<u8> = (0..rows).map(|row| row * columns + at).collect();
            assert_eq!(outcome.outputs[0].view(i).bytes, expected, "{flags:?} sample {i}");
        }
    }
}
