//! What descriptions say of files made by hand, and that a description comes back whole from its JSON.

use super::*;
use crate::graph::proto::Argument;

fn op(name: &str, inputs: &[&str], output: &str, args: &[(&str, i64)]) -> OpDef {
    let edge = |name: &str| InputOutput { name: Some(name.to_owned()), ..Default::default() };
    let argument = |&(name, value): &(&str, i64)| Argument {
        name: Some(name.to_owned()),
        r#type: Some("int64".to_owned()),
        ints: vec![value],
        ..Default::default()
    };
    let (name, inst_name) = (Some(name.to_owned()), Some(output.to_owned()));
    let args = args.iter().map(argument).collect();
    let mut op = OpDef { name, inst_name, args, ..Default::default() };
    op.input = inputs.iter().map(|name| edge(name)).collect();
    op.output = vec![edge(output)];
    op
}

fn described(ops: Vec<OpDef>, executor_type: Option<i32>) -> Description {
    PipelineFile(PipelineDef {
        op: ops,
        executor_type,
        seed: Some(-1),
        device_id: Some(NO_DEVICE),
        ..Default::default()
    })
    .describe()
}

#[test]
fn what_cannot_run_is_described_with_the_reason() {
    let told = described(
        vec![
            op("ExternalSource", &[], "X", &[("dtype", 9), ("ndim", 2)]),
            op("Flip", &["X"], "a", &[("horizontal", 1), ("preserve", 1)]),
            op("Flip", &["X"], "b", &[("sideways", 1)]),
            op("NoSuchThing", &["X"], "c", &[]),
        ],
        None,
    );
    let [input] = told.inputs.as_slice() else { panic!("{told:?}") };
    assert_eq!((input.name.as_str(), input.dtype, input.ndim), ("X", Some(DType::F32), Some(2)));
    assert_eq!((told.seed, told.device_id), (None, None));
    let reasons: Vec<Option<&str>> = told.operators.iter().map(|op| op.unsupported.as_deref()).collect();
    assert!(reasons[1].is_some_and(|reason| reason.contains("`sideways`")), "{reasons:?}");
    assert!(reasons[2].is_some_and(|reason| reason.contains("not known")), "{reasons:?}");
    assert!(!told.operators[0].arguments.contains_key("preserve"));
    assert_eq!(told.operators[0].arguments["horizontal"], Value::Ints(vec![1]));
}

#[test]
fn versions_are_told_by_their_marks() {
    let version = |name: &str, executor| described(vec![op(name, &["x"], "y", &[])], executor).format;
    assert_eq!(version("_ArithmeticGenericOp", Some(11)), "DALI 2.0 or newer");
    assert_eq!(version("ArithmeticGenericOp", Some(11)), "DALI 1.34 to 1.x");
    assert_eq!(version("ArithmeticGenericOp", None), "DALI 1.33 or older");
    assert_eq!(version("Resize", Some(11)), "DALI 1.34 or newer");
    assert_eq!(version("_conditional__Split", None), "DALI 1.33 or older");
}

#[test]
fn operators_that_read_files_are_refused_for_it() {
    for name in ["readers__File", "readers___TFRecord", "FileReader", "io__file__Read"] {
        assert!(unknown(name).to_string().contains("files of the server"), "{name}");
    }
    assert!(unknown("Sideways").to_string().contains("not known"));
}
