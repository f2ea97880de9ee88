//! Operators: the bytes choose one of the table, its arguments and its inputs. So what is tried is nearly always a
//! pipeline, which any bytes would hardly be.

use gesso::operator::{ArgKind, DefaultValue, OpDef};
use gesso::ops::OPS;
use gesso::pipeline::{
    ArgumentType, ArgumentValue, Description, Input, InputDescription, Keep, OperatorDescription,
    OutputDescription, Pipeline, StoredArgument,
};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Sample, Shape};

use crate::bytes::Bytes;

/// A value, its type in the file, whether it is a list there.
type Argument = (ArgumentValue, ArgumentType, bool);

const SAMPLES: usize = 2;
const MAX_OUTPUTS: usize = 3;
/// Bytes of one sample.
const MAX_SAMPLE_BYTES: usize = 1 << 14;
const DTYPES: [DType; 12] = [
    DType::U8,
    DType::F32,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::F16,
    DType::F64,
    DType::Bool,
];
const TEXTS: [&str; 16] = [
    "HWC",
    "CHW",
    "",
    "HW",
    "FHWC",
    "X",
    "xyXY",
    "a",
    "0",
    "-1",
    "constant",
    "&0",
    "add(&0 &1)",
    "edge",
    "\u{e9}",
    "FCHW",
];

/// Operators that write files or read some.
pub(crate) fn is_left_out(name: &str) -> bool {
    ["DumpImage", "dump_image", "io__file__Read"].contains(&name) || name.starts_with("readers__")
}

pub(crate) fn run(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let ops: Vec<&OpDef> = OPS.iter().copied().filter(|op| !op.is_input && !is_left_out(op.name)).collect();
    let Some(op) = bytes.pick(&ops) else { return };
    let mut description = description(op, &mut bytes);
    // How many outputs there are follows from the arguments, in ways of the operator's own.
    for count in 1..=MAX_OUTPUTS {
        set_outputs(&mut description, count);
        let Ok(file) = Pipeline::author(&description) else { return };
        if let Ok(pipeline) = Pipeline::load(&file, Device::Cpu) {
            run_on(&pipeline, &mut bytes);
            return;
        }
    }
}

/// Gives a pipeline's operators, and the pipeline, so many outputs.
pub(crate) fn set_outputs(description: &mut Description, count: usize) {
    let edges: Vec<String> = (0..count).map(|i| format!("out{i}")).collect();
    let output = |edge: &String| OutputDescription {
        name: edge.clone(),
        device: "cpu".to_owned(),
        dtype: None,
        ndim: None,
        layout: String::new(),
    };
    description.outputs = edges.iter().map(output).collect();
    for operator in &mut description.operators {
        operator.outputs.clone_from(&edges);
    }
}

/// A pipeline of one operator with arguments as the bytes say.
fn description(op: &OpDef, bytes: &mut Bytes<'_>) -> Description {
    let (least, most) = op.inputs;
    let count = least + bytes.below(most.min(least + 3) - least + 1);
    let mut inputs: Vec<InputDescription> = (0..count).map(|i| fed(i, bytes)).collect();
    let mut operator = called(op.name, &inputs);
    for spec in op.all_args().filter(|spec| spec.read) {
        let required = matches!(spec.default, DefaultValue::Required);
        if !required && !bytes.once_in(4) {
            continue;
        }
        if spec.tensor && bytes.once_in(4) {
            let input = fed(inputs.len(), bytes);
            operator.argument_inputs.insert(spec.name.to_owned(), input.edge.clone());
            inputs.push(input);
            continue;
        }
        set_argument(&mut operator, spec.name, value(spec.kind, bytes));
    }
    pipeline_of(operator, inputs)
}

/// An operator that takes these inputs, without arguments and outputs.
pub(crate) fn called(name: &str, inputs: &[InputDescription]) -> OperatorDescription {
    OperatorDescription {
        name: name.to_owned(),
        instance: "tried".to_owned(),
        device: "cpu".to_owned(),
        inputs: inputs.iter().map(|input| input.edge.clone()).collect(),
        argument_inputs: Default::default(),
        outputs: Vec::new(),
        arguments: Default::default(),
        unsupported: None,
        input_devices: Vec::new(),
        output_devices: Vec::new(),
        argument_input_devices: Default::default(),
        logical_id: Some(0),
        bookkeeping: Default::default(),
        stored: Vec::new(),
        unreadable: Vec::new(),
    }
}

/// Gives an operator an argument: a value, its type in the file, whether it is a list there.
pub(crate) fn set_argument(operator: &mut OperatorDescription, name: &str, argument: Argument) {
    let (value, kind, list) = argument;
    operator.stored.push(StoredArgument { name: name.to_owned(), kind, list });
    operator.arguments.insert(name.to_owned(), value);
}

/// A pipeline of one operator, without outputs.
pub(crate) fn pipeline_of(operator: OperatorDescription, inputs: Vec<InputDescription>) -> Description {
    Description {
        format: "",
        max_batch_size: Some(SAMPLES as i32),
        num_threads: Some(1),
        device_id: None,
        seed: Some(1),
        enable_checkpointing: None,
        executor_type: None,
        executor_flags: None,
        prefetch_queue_depth_cpu: None,
        prefetch_queue_depth_gpu: None,
        bytes_per_sample_hint: None,
        outputs: Vec::new(),
        inputs,
        operators: vec![operator],
    }
}

/// Input `number`, of some type and rank.
pub(crate) fn fed(number: usize, bytes: &mut Bytes<'_>) -> InputDescription {
    let layout = if bytes.once_in(2) { bytes.pick(&["HWC", "CHW", "HW", "FHWC", "X"]) } else { None };
    let layout = layout.unwrap_or_default();
    let ndim = if layout.is_empty() { bytes.below(5) } else { layout.len() };
    let name = format!("in{number}");
    InputDescription {
        edge: name.clone(),
        name,
        device: "cpu".to_owned(),
        dtype: bytes.pick(&DTYPES),
        ndim: Some(ndim as i64),
        layout: layout.to_owned(),
        operator: Some("ExternalSource".to_owned()),
        place: Some(number),
        logical_id: None,
        arguments: Default::default(),
        bookkeeping: Default::default(),
        stored: Vec::new(),
        unreadable: Vec::new(),
    }
}

fn value(kind: ArgKind, bytes: &mut Bytes<'_>) -> Argument {
    let text = |bytes: &mut Bytes<'_>| bytes.pick(&TEXTS).unwrap_or_default().to_owned();
    let count = match kind {
        ArgKind::Ints | ArgKind::Floats | ArgKind::Strings => bytes.below(5),
        _ => 1,
    };
    let list = count != 1 || matches!(kind, ArgKind::Ints | ArgKind::Floats | ArgKind::Strings);
    match kind {
        ArgKind::Bool => (ArgumentValue::Bools(vec![bytes.once_in(2)]), ArgumentType::Bool, list),
        ArgKind::Float | ArgKind::Floats => {
            let all = (0..count).map(|_| bytes.float()).collect();
            (ArgumentValue::Floats(all), ArgumentType::Float, list)
        }
        ArgKind::String | ArgKind::Strings | ArgKind::Layout => {
            let all = (0..count).map(|_| text(bytes)).collect();
            (ArgumentValue::Strings(all), ArgumentType::String, list)
        }
        ArgKind::Dtype | ArgKind::ImageType | ArgKind::InterpType => {
            let number = i64::from(bytes.byte() % 16) - 1;
            (ArgumentValue::Ints(vec![number]), ArgumentType::Int64, list)
        }
        _ => {
            let all = (0..count).map(|_| bytes.int()).collect();
            (ArgumentValue::Ints(all), ArgumentType::Int64, list)
        }
    }
}

/// Runs a pipeline twice on samples of small shapes, whose contents come from `bytes`, too.
pub(crate) fn run_on(pipeline: &Pipeline, bytes: &mut Bytes<'_>) {
    let Ok(mut instance) = pipeline.instance(Some(1), None) else { return };
    for _ in 0..2 {
        let made: Vec<Made> = pipeline.inputs().iter().map(|input| Made::new(input, bytes)).collect();
        let batches: Result<Vec<_>, _> = made.iter().map(Made::batch).collect();
        if let Ok(batches) = batches {
            let _ = instance.run(SAMPLES, batches, &mut Keep);
        }
    }
}

/// Samples for one input.
struct Made {
    desc: BatchDesc,
    /// In words, so that every element type is aligned.
    samples: Vec<(Vec<u64>, usize)>,
}

impl Made {
    fn new(input: &Input, bytes: &mut Bytes<'_>) -> Self {
        let dtype = input.dtype.or_else(|| bytes.pick(&DTYPES)).unwrap_or(DType::U8);
        let ndim = input.ndim.unwrap_or_else(|| bytes.below(5));
        let shapes = (0..SAMPLES).map(|_| {
            let mut volume = dtype.size();
            let dims: Vec<usize> = (0..ndim)
                .map(|_| {
                    let most = (MAX_SAMPLE_BYTES / volume.max(1)).max(1);
                    let extent = usize::from(bytes.byte() % 64).min(most);
                    volume *= extent;
                    extent
                })
                .collect();
            Shape::new(dims)
        });
        let shapes: Vec<Shape> = shapes.collect();
        let samples = shapes.iter().map(|shape| {
            let length = shape.bytes(dtype.size()).unwrap_or_default();
            let content = bytes.some(64.min(length));
            let mut words = vec![0_u64; length.div_ceil(8)];
            let all = bytemuck::cast_slice_mut::<u64, u8>(&mut words);
            for (to, from) in all.iter_mut().zip(content.iter().cycle()) {
                // A truth value is 0 or 1, which who feeds it sees to.
                *to = if dtype == DType::Bool { from & 1 } else { *from };
            }
            (words, length)
        });
        let samples = samples.collect();
        Self { desc: BatchDesc::new(dtype, input.layout, shapes), samples }
    }

    fn batch(&self) -> gesso::error::Result<Batch<'_>> {
        let samples = self.samples.iter();
        let samples =
            samples.map(|(words, length)| Sample::Borrowed(&bytemuck::cast_slice(words)[..*length]));
        Batch::new(self.desc.clone(), samples.collect())
    }
}
