//! Files whose names, numbers and counts are none that a pipeline has, and readers where there should be one.

use super::*;

fn named(name: &str) -> PipelineDef {
    pipeline(&[source("X")], &[edge(name, "cpu")])
}

fn mirrored(flip: OpDef) -> PipelineDef {
    let outputs: Vec<_> = flip.output.iter().take(1).cloned().collect();
    pipeline(&[source("X"), flip], &outputs)
}

#[test]
fn names_and_numbers_have_limits() {
    let good = flip("A", edge("X", "cpu"), "cpu");
    let long = "x".repeat(limits::MAX_NAME_BYTES + 1);
    let from = |argument| OpDef { args: vec![argument], ..source("X") };
    let output = |output: InputOutput| pipeline(&[source("X"), good.clone()], &[output]);
    let fed_twice =
        op("Rotate", "A", &[edge("X", "cpu"), fed("Y", "angle"), fed("Y", "angle")], edge("A", "cpu"), &[]);
    let many = vec![edge("X", "cpu"); limits::MAX_EDGES_PER_OPERATOR + 1];
    let list = Argument {
        is_vector: Some(true),
        extra_args: vec![Argument::default(); limits::MAX_LIST_ARGUMENT + 1],
        ..text("vertical", "")
    };
    let cases: Vec<(PipelineDef, &str)> = vec![
        (mirrored(OpDef { name: None, ..good.clone() }), "an operator has no name"),
        (mirrored(flip(&long, edge("X", "cpu"), "cpu")), "a name of"),
        (mirrored(OpDef { input: many, ..good.clone() }), "inputs and outputs, more than the limit"),
        (mirrored(OpDef { args: vec![list], ..good.clone() }), "elements, more than the limit"),
        (pipeline(&[source("X"), source("Y"), fed_twice], &[edge("A", "cpu")]), "`angle` is fed twice"),
        (pipeline(&[from(int("ndim", 99))], &[edge("X", "cpu")]), "`ndim` is 99"),
        (pipeline(&[from(text("layout", "HW"))], &[edge("X", "cpu")]), ""),
        (
            pipeline(
                &[OpDef { args: vec![text("layout", "HW"), int("ndim", 3)], ..source("X") }],
                &[edge("X", "cpu")],
            ),
            "layout `HW` does not have `ndim` 3",
        ),
        (output(InputOutput { dtype: Some(99), ..edge("A", "cpu") }), "`dtype` is 99"),
        (output(InputOutput { ndim: Some(99), ..edge("A", "cpu") }), "`ndim` is 99"),
        (mirrored(OpDef { output: vec![edge("", "cpu")], ..good.clone() }), "an output's name has 0 bytes"),
        (mirrored(OpDef { output: vec![edge(&long, "cpu")], ..good.clone() }), "an output's name has"),
        (mirrored(OpDef { output: vec![edge("X", "cpu")], ..good.clone() }), "edge `X` is produced twice"),
        (
            PipelineDef { pipe_outputs: vec![edge("X", "cpu"); limits::MAX_PIPELINE_TENSORS], ..named("X") },
            "inputs and outputs, more than the limit",
        ),
    ];
    for (i, (def, words)) in cases.iter().enumerate() {
        let error = load_error(def);
        assert!(error.contains(words) && words.is_empty() == error.is_empty(), "case {i}: `{error}`");
    }
}

#[test]
fn an_operator_for_devices_alone_is_refused_on_the_host() {
    let flow = op("OpticalFlow", "A", &[edge("X", "cpu")], edge("A", "cpu"), &[text("device", "cpu")]);
    let def = pipeline(&[source("X"), flow], &[edge("A", "cpu")]);
    for (device, words) in
        [(Device::Cpu, "an instance on the host"), (Device::Gpu, "the pipeline puts it on the host")]
    {
        let error = graph(&def, device).err().unwrap().to_string();
        assert!(error.contains("runs on a GPU only") && error.contains(words), "{error}");
    }
}

#[test]
fn a_data_set_is_one_reader() {
    let open = |ops: &[OpDef]| {
        let bytes = pipeline(ops, &[edge("A", "cpu")]).encode_to_vec();
        Dataset::open(&bytes).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let reader = |args: &[Argument]| op("readers__File", "A", &[], edge("A", "cpu"), args);
    assert!(open(&[source("X"), reader(&[])]).contains("2 operators, expected one reader"));
    assert!(open(&[source("X")]).contains("`ExternalSource`, expected a reader"));
    assert!(open(&[reader(&[text("sideways", "")])]).contains("`sideways`"));
    assert!(open(&[reader(&[])]).contains("`file_root`, `files` or `file_list`"));
    // As a part of a pipeline it has no inputs, and all of its outputs.
    let fed = OpDef { input: vec![edge("X", "cpu")], ..reader(&[text("file_root", "/")]) };
    assert!(load_error(&pipeline(&[source("X"), fed], &[edge("A", "cpu")])).contains("it reads `X`"));
    assert!(
        load_error(&pipeline(&[reader(&[text("file_root", "/")])], &[edge("A", "cpu")]))
            .contains("1 outputs, expected 2")
    );
}

#[test]
fn videos_come_in_by_one_input_without_others() {
    let videos = |instance: &str| {
        op("experimental__inputs__Video", instance, &[], edge(instance, "cpu"), &[int("sequence_length", 2)])
    };
    let fed = OpDef { input: vec![edge("X", "cpu")], ..videos("A") };
    assert!(
        load_error(&pipeline(&[source("X"), fed], &[edge("A", "cpu")])).contains("1 inputs and 1 outputs")
    );
    let two = pipeline(&[videos("A"), videos("B")], &[edge("A", "cpu"), edge("B", "cpu")]);
    assert!(load_error(&two).contains("a second input of videos"));
}

#[test]
fn inputs_of_very_old_files_are_described() {
    let old = PipelineDef { external_inputs: vec!["raw".into()], ..named("raw") };
    let told = PipelineFile::parse(&old.encode_to_vec()).unwrap().describe();
    let raw = told.inputs.iter().find(|input| input.name == "raw").unwrap();
    assert_eq!((raw.edge.as_str(), raw.dtype, raw.ndim, raw.operator.as_deref()), ("raw", None, None, None));
}
