//! Files as messages: what is accepted, where copies are inserted, and that everything hostile is one clear error.

use proptest::prelude::*;

use super::*;
use crate::graph::Plan;
use crate::pipeline::{Dataset, Keep, Pipeline};

fn edge(name: &str, device: &str) -> InputOutput {
    InputOutput { name: Some(name.into()), device: Some(device.into()), ..Default::default() }
}

fn fed(name: &str, keyword: &str) -> InputOutput {
    InputOutput { is_argument_input: Some(true), arg_name: Some(keyword.into()), ..edge(name, "cpu") }
}

fn text(name: &str, value: &str) -> Argument {
    Argument {
        name: Some(name.into()),
        r#type: Some("string".into()),
        strings: vec![value.into()],
        ..Default::default()
    }
}

fn int(name: &str, value: i64) -> Argument {
    Argument {
        name: Some(name.into()),
        r#type: Some("int64".into()),
        ints: vec![value],
        ..Default::default()
    }
}

fn op(name: &str, instance: &str, inputs: &[InputOutput], output: InputOutput, args: &[Argument]) -> OpDef {
    OpDef {
        name: Some(name.into()),
        inst_name: Some(instance.into()),
        input: inputs.to_vec(),
        output: vec![output],
        args: args.to_vec(),
        logical_id: None,
    }
}

fn source(name: &str) -> OpDef {
    op("ExternalSource", name, &[], edge(name, "cpu"), &[int("dtype", 0), int("ndim", 3)])
}

fn flip(instance: &str, input: InputOutput, device: &str) -> OpDef {
    op("Flip", instance, &[input], edge(instance, device), &[text("device", device)])
}

fn pipeline(ops: &[OpDef], outputs: &[InputOutput]) -> PipelineDef {
    PipelineDef {
        batch_size: Some(4),
        op: ops.to_vec(),
        pipe_outputs: outputs.to_vec(),
        ..Default::default()
    }
}

fn graph(def: &PipelineDef, target: Device) -> Result<Graph> {
    PipelineFile::parse(&def.encode_to_vec())?.graph(target)
}

fn load_error(def: &PipelineDef) -> String {
    Pipeline::load(&def.encode_to_vec(), Device::Cpu).err().map(|e| e.to_string()).unwrap_or_default()
}

fn kinds(graph: &Graph) -> Vec<&'static str> {
    graph.nodes.iter().map(Graph::op_name).collect()
}

#[test]
fn one_copy_for_each_value_and_direction() {
    let ops = [
        source("X"),
        flip("A", edge("X", "gpu"), "gpu"),
        flip("B", edge("X", "gpu"), "gpu"),
        flip("C", edge("A", "gpu"), "gpu"),
    ];
    let def = pipeline(&ops, &[edge("B", "gpu"), edge("C", "cpu"), edge("C", "cpu"), edge("X", "cpu")]);
    let on_gpu = graph(&def, Device::Gpu).unwrap();
    assert_eq!(kinds(&on_gpu), ["transfer", "Flip", "Flip", "Flip"]);
    let devices: Vec<Device> = on_gpu.outputs.iter().map(|o| on_gpu.value(o.value).device).collect();
    // What is made on the device is an output from there, wherever the author wants it.
    assert_eq!(devices, [Device::Gpu, Device::Gpu, Device::Gpu, Device::Cpu]);
    let wanted: Vec<Device> = on_gpu.outputs.iter().map(|o| o.device).collect();
    assert_eq!(wanted, [Device::Gpu, Device::Cpu, Device::Cpu, Device::Cpu]);
    // The input itself is an output: the way back from its copy is not a copy.
    assert_eq!(on_gpu.outputs[3].value, on_gpu.inputs[0].value);
    let on_cpu = graph(&def, Device::Cpu).unwrap();
    assert_eq!(kinds(&on_cpu), ["Flip", "Flip", "Flip"]);
}

#[test]
fn data_that_goes_to_the_device_twice_is_warned_of() {
    let ops = [
        source("X"),
        flip("A", edge("X", "gpu"), "gpu"),
        flip("B", edge("A", "cpu"), "cpu"),
        flip("C", edge("B", "gpu"), "gpu"),
    ];
    let plan = Plan::new(graph(&pipeline(&ops, &[edge("C", "gpu")]), Device::Gpu).unwrap()).unwrap();
    assert_eq!(plan.graph.warnings.len(), 1);
    assert!(plan.graph.warnings[0].contains("`A.cpu`") && plan.graph.warnings[0].contains("`B.gpu`"));
    assert!(plan.needs_gpu());
    let direct = pipeline(&ops[..2], &[edge("A", "cpu")]);
    assert!(Plan::new(graph(&direct, Device::Gpu).unwrap()).unwrap().graph.warnings.is_empty());
}

#[test]
fn an_operator_without_a_form_for_a_gpu_runs_on_the_host() {
    let combine =
        op("transforms__Combine", "B", &[edge("A", "gpu")], edge("B", "gpu"), &[text("device", "gpu")]);
    let ops = [
        source("X"),
        flip("A", edge("X", "gpu"), "gpu"),
        combine.clone(),
        flip("C", edge("B", "gpu"), "gpu"),
    ];
    let on_gpu = graph(&pipeline(&ops, &[edge("C", "gpu"), edge("B", "gpu")]), Device::Gpu).unwrap();
    let kinds = kinds(&on_gpu);
    assert_eq!(kinds, ["transfer", "Flip", "transfer", "transforms__Combine", "transfer", "Flip"]);
    assert_eq!(on_gpu.nodes[3].placement, Placement::Cpu);
    assert_eq!(on_gpu.warnings.len(), 1);
    assert!(on_gpu.warnings[0].contains("`transforms__Combine` (`B`)"), "{}", on_gpu.warnings[0]);
    // The author's wish for the output stands.
    assert_eq!(on_gpu.outputs[1].device, Device::Gpu);
    // What is said to be on the host stays there without a word.
    let host = OpDef { args: vec![text("device", "cpu")], ..combine };
    let ops = [source("A"), OpDef { input: vec![edge("A", "cpu")], output: vec![edge("B", "cpu")], ..host }];
    let on_host = graph(&pipeline(&ops, &[edge("B", "cpu")]), Device::Gpu).unwrap();
    assert!(on_host.warnings.is_empty());
}

#[test]
fn the_plan_frees_at_the_last_use_and_prints_itself() {
    let ops = [source("X"), flip("A", edge("X", "cpu"), "cpu"), flip("B", edge("A", "cpu"), "cpu")];
    let plan = Plan::new(graph(&pipeline(&ops, &[edge("B", "cpu")]), Device::Cpu).unwrap()).unwrap();
    let names = |ids: &[ValueId]| ids.iter().map(|&id| plan.graph.value(id).name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&plan.steps[0].frees), ["X"]);
    assert_eq!(names(&plan.steps[1].frees), ["A"]);
    assert_eq!(plan.steps[1].writes, [Some(0)]);
    let table = plan.to_string();
    assert!(table.contains("B uint8 [?, ?, ?] HWC -> response"), "{table}");
    assert_eq!(table.lines().count(), 3);
}

#[test]
fn old_and_new_spellings_are_the_same_operator() {
    for name in ["ExternalSource", "_ExternalSource"] {
        let input = op(name, "X", &[], edge("X", "cpu"), &[]);
        assert!(graph(&pipeline(&[input], &[edge("X", "cpu")]), Device::Cpu).is_ok());
    }
    let def = PipelineDef { external_inputs: vec!["X".into()], ..pipeline(&[], &[edge("X", "cpu")]) };
    assert_eq!(graph(&def, Device::Cpu).unwrap().inputs[0].name, "X");
}

#[test]
fn bookkeeping_is_ignored_and_arguments_are_coerced() {
    let args = [
        text("device", "gpu"),
        int("preserve_name", 1),
        text("_module", "nvidia.dali.fn"),
        text("_origin_stack_filename", "x.py"),
        Argument { floats: vec![0.0], ints: vec![], r#type: Some("float".into()), ..int("horizontal", 0) },
    ];
    let flip = op("Flip", "A", &[edge("X", "gpu")], edge("A", "gpu"), &args);
    assert_eq!(load_error(&pipeline(&[source("X"), flip], &[edge("A", "gpu")])), "");
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    let good = flip("A", edge("X", "cpu"), "cpu");
    let out = edge("A", "cpu");
    let outs = [out.clone()];
    let wrong_list =
        Argument { is_vector: Some(true), extra_args: vec![text("element 0", "1")], ..int("vertical", 0) };
    let nested = Argument {
        is_vector: Some(true),
        extra_args: vec![Argument { is_vector: Some(true), ..int("element 0", 1) }],
        ..int("vertical", 0)
    };
    let with = |args: &[Argument]| op("Flip", "A", &[edge("X", "cpu")], out.clone(), args);
    let cases: Vec<(PipelineDef, &[&str])> = vec![
        (
            pipeline(
                &[source("X"), flip("A", edge("B", "cpu"), "cpu"), flip("B", edge("A", "cpu"), "cpu")],
                &outs,
            ),
            &["`Flip` (`A`)", "`B`", "cycle"],
        ),
        (pipeline(&[source("X"), flip("A", edge("A", "cpu"), "cpu")], &outs), &["`A`", "cycle"]),
        (pipeline(std::slice::from_ref(&good), &outs), &["`Flip` (`A`)", "`X`", "no operator"]),
        (pipeline(&[source("X")], &outs), &["pipeline output 0", "`A`"]),
        (pipeline(&[source("X")], &[]), &["no outputs"]),
        (pipeline(&[source("X"), source("X")], &[edge("X", "cpu")]), &["twice"]),
        (PipelineDef { batch_size: None, ..pipeline(&[source("X")], &[edge("X", "cpu")]) }, &["batch_size"]),
        (
            PipelineDef { batch_size: Some(i32::MAX), ..pipeline(&[source("X")], &[edge("X", "cpu")]) },
            &["batch_size", "2147483647", "65536"],
        ),
        (PipelineDef { batch_size: Some(-1), ..pipeline(&[source("X")], &[edge("X", "cpu")]) }, &["-1"]),
        (
            pipeline(&[source("X"), op("Flop", "A", &[], out.clone(), &[])], &outs),
            &["`Flop` (`A`)", "not known"],
        ),
        (pipeline(&[source("X"), with(&[int("angle", 3)])], &outs), &["`Flip` (`A`)", "`angle`"]),
        (
            pipeline(&[source("X"), with(&[text("vertical", "yes")])], &outs),
            &["`vertical`", "yes", "numbers"],
        ),
        (pipeline(&[source("X"), with(&[wrong_list])], &outs), &["`vertical`", "expected 1"]),
        (pipeline(&[source("X"), with(&[nested])], &outs), &["`vertical`", "list"]),
        (pipeline(&[source("X"), with(&[int("vertical", 0), int("vertical", 1)])], &outs), &["twice"]),
        (pipeline(&[source("X"), flip("A", edge("X", "cpu"), "tpu")], &outs), &["`tpu`"]),
        (pipeline(&[source("X"), op("Flip", "A", &[], out.clone(), &[])], &outs), &["0", "inputs"]),
        (
            pipeline(
                &[source("X"), op("Flip", "A", &[edge("X", "cpu"), fed("X", "angle")], out.clone(), &[])],
                &outs,
            ),
            &["`angle`"],
        ),
        (pipeline(&[OpDef { output: vec![], ..source("X") }], &outs), &["`X`", "0 outputs"]),
        (
            pipeline(&[source("X"), good.clone()], &[InputOutput { dtype: Some(9), ..out.clone() }]),
            &["float32", "uint8"],
        ),
        (pipeline(&[source("X"), good], &[InputOutput { ndim: Some(2), ..out }]), &["`A`", "2", "3"]),
    ];
    for (i, (def, words)) in cases.iter().enumerate() {
        let error = load_error(def);
        for word in *words {
            assert!(error.contains(word), "case {i}: `{word}` is not in `{error}`");
        }
    }
}

#[test]
fn an_input_of_an_image_decoder_is_the_bytes_of_a_file_unless_it_says_otherwise() {
    let source = |args: &[Argument]| op("ExternalSource", "X", &[], edge("X", "cpu"), args);
    let loaded = |args: &[Argument], reader: &str, device: Device| {
        let placed = if reader == "Flip" { "cpu" } else { "mixed" };
        let reader = op(reader, "A", &[edge("X", "cpu")], edge("A", "gpu"), &[text("device", placed)]);
        let output = edge("A", if placed == "cpu" { "cpu" } else { "gpu" });
        let reader = OpDef { output: vec![output.clone()], ..reader };
        let def = pipeline(&[source(args), reader], &[output]);
        let pipeline = Pipeline::load(&def.encode_to_vec(), device)?;
        Ok::<_, Error>((pipeline.inputs()[0].dtype, pipeline.inputs()[0].ndim))
    };
    for device in [Device::Cpu, Device::Gpu] {
        for args in [&[][..], &[int("dtype", 0)], &[int("ndim", 1)]] {
            let bytes = (Some(DType::U8), Some(1));
            assert_eq!(loaded(args, "decoders__Image", device).unwrap(), bytes, "{args:?}");
        }
        assert!(loaded(&[int("dtype", 9)], "decoders__Image", device).is_err());
        assert_eq!(loaded(&[], "Flip", device).unwrap(), (None, None));
    }
}

#[test]
fn bytes_that_are_no_pipeline_are_refused() {
    let error = |bytes: &[u8]| PipelineFile::parse(bytes).err().unwrap().to_string();
    assert!(error(&[]).contains("empty"));
    assert!(error(b"def pipeline():\n    pass\n").contains("not a serialized DALI pipeline"));
    assert!(error(&vec![0; limits::MAX_PIPELINE_BYTES + 1]).contains("limit"));
    let many = PipelineDef { op: vec![OpDef::default(); limits::MAX_OPERATORS + 1], ..Default::default() };
    assert!(error(&many.encode_to_vec()).contains("16385 operators"));
    assert!(error(&nested_bytes(5_000)).contains("recursion limit"));
}

/// An argument nested `depth` times inside an operator, as bytes: encoding such a message would overflow the stack.
fn nested_bytes(depth: usize) -> Vec<u8> {
    let mut inner = Vec::new();
    for _ in 0..depth {
        let mut outer = vec![0x3a];
        prost::encoding::encode_varint(inner.len() as u64, &mut outer);
        outer.extend_from_slice(&inner);
        inner = outer;
    }
    for tag in [0x22, 0x2a] {
        let mut outer = vec![tag];
        prost::encoding::encode_varint(inner.len() as u64, &mut outer);
        outer.extend_from_slice(&inner);
        inner = outer;
    }
    inner
}

mod bounds;
mod branches;

proptest! {
    #[test]
    fn damaged_files_never_panic(at in 0usize..4096, value: u8, cut in 0usize..4096) {
        let ops = [source("X"), flip("A", edge("X", "gpu"), "gpu"), op("Cast", "B", &[edge("A", "gpu")], edge("B", "gpu"), &[int("dtype", 9)])];
        let mut bytes = pipeline(&ops, &[edge("B", "gpu")]).encode_to_vec();
        let length = bytes.len();
        bytes[at % length] = value;
        bytes.truncate(length - cut % (length / 2));
        for device in [Device::Cpu, Device::Gpu] {
            let _ = Pipeline::load(&bytes, device);
        }
    }
}

/// A reader of videos that the file puts on `device`, and a flip behind it.
fn video_reader(device: &str, args: &[Argument]) -> PipelineDef {
    let texts = |name: &str, value: &str| Argument {
        strings: vec![value.into()],
        is_vector: Some(true),
        ..text(name, value)
    };
    let args =
        [&[texts("filenames", "a.mp4"), int("sequence_length", 4), text("device", device)], args].concat();
    let mut reader = op("readers__Video", "R", &[], edge("frames", device), &args);
    reader.output.push(edge("numbers", device));
    let flip = op("Flip", "F", &[edge("frames", device)], edge("flipped", device), &[text("device", device)]);
    pipeline(&[reader, flip], &[edge("flipped", device), edge("numbers", device)])
}

#[test]
fn videos_of_a_reader_on_a_device_are_decoded_there() {
    let numbers = text("enable_frame_num", "sequence");
    let def = video_reader("gpu", std::slice::from_ref(&numbers));
    let plan = Plan::new(graph(&def, Device::Gpu).unwrap()).unwrap();
    let graph_of = &plan.graph;
    assert_eq!(kinds(graph_of), ["decoders__Video", "Flip", "transfer"]);
    assert_eq!(graph_of.nodes[0].placement, crate::graph::Placement::Mixed);
    let names: Vec<&str> = graph_of.inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(names, ["frames.files", "frames.frames", "numbers"]);
    let frames = graph_of.value(graph_of.nodes[0].outputs[0]);
    assert_eq!((frames.device, frames.name.as_str()), (Device::Gpu, "frames"));
    assert_eq!(frames.ty.dims, Some(vec![Some(4), None, None, Some(3)]));
    assert!(graph_of.warnings.is_empty(), "{:?}", graph_of.warnings);
    // As float32 there is one more operator.
    let def = video_reader("gpu", &[numbers.clone(), int("dtype", 9), int("normalized", 1)]);
    let plan = Plan::new(graph(&def, Device::Gpu).unwrap()).unwrap();
    assert_eq!(kinds(&plan.graph)[..3], ["decoders__Video", "ArithmeticGenericOp", "Flip"]);
    // On the host the reader decodes.
    let on_host = graph(&def, Device::Cpu).unwrap();
    assert_eq!((kinds(&on_host), on_host.inputs.len()), (vec!["Flip"], 2));
    let left = graph(&video_reader("cpu", &[numbers]), Device::Gpu).unwrap();
    assert_eq!((kinds(&left), left.inputs.len()), (vec!["Flip"], 2));
}
