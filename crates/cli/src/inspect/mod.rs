//! `gesso inspect`: a serialized pipeline as a person reads it, also one that cannot be run here.

mod draw;
mod outline;

use std::path::PathBuf;

use clap::Args;
use gesso::error::{Error, Result};
use gesso::pipeline::{ArgumentValue, Description, OperatorDescription, Output, Pipeline};
use gesso::readers;
use gesso::tensor::{DType, Device, ValueType};
use serde_json::json;

use crate::terminal::{BAD, BOLD, DIM, GOOD, Table, WARN, clean, print, print_json, read_pipeline, styled};
use crate::{Exit, On};
use outline::{Choice, Item, counts, short_name};

/// From so many operators on, conditionals are told as choices.
const MANY: usize = 40;
/// Characters of a column.
const EDGES: usize = 44;
const ARGUMENTS: usize = 72;
/// Characters of the arguments where there are not many operators.
const ARGUMENTS_OF_FEW: usize = 200;
/// Names of operators that a line lists.
const LISTED: usize = 12;

/// Show a pipeline: inputs, operators with their arguments, outputs, and whether Gesso runs it.
#[derive(Args)]
pub(crate) struct Options {
    /// A pipeline file, as `gesso serialize` or DALI's `Pipeline.serialize` writes it.
    pipeline: PathBuf,
    /// The plan instead: steps in order, copies between host and device, what is freed when. The pipeline must be one
    /// that Gesso runs.
    #[arg(long, conflicts_with_all = ["dot", "svg", "json"])]
    plan: bool,
    /// Where the plan is for.
    #[arg(long, value_enum, requires = "plan", default_value = "cpu")]
    device: On,
    /// Graphviz's text instead.
    #[arg(long, conflicts_with_all = ["svg", "json"])]
    dot: bool,
    /// A drawing instead.
    #[arg(long, conflicts_with = "json")]
    svg: bool,
    /// Everything, for scripts.
    #[arg(long)]
    json: bool,
    /// Every operator, where conditionals of a large pipeline are else told as choices.
    #[arg(long)]
    all: bool,
}

/// Runs the command.
pub(crate) fn inspect(options: &Options) -> Result<Exit> {
    let bytes = read_pipeline(&options.pipeline)?;
    let in_file = |error: Error| error.context(format!("`{}`", options.pipeline.display()));
    if options.plan {
        let pipeline = Pipeline::load(&bytes, options.device.into()).map_err(in_file)?;
        print(&clean_lines(&pipeline.to_string()));
        for warning in pipeline.warnings() {
            print(&format!("{}\n", styled(WARN, clean(warning, usize::MAX))));
        }
        return Ok(Exit::Success);
    }
    let description = Pipeline::describe(&bytes).map_err(in_file)?;
    let loads = [Device::Cpu, Device::Gpu].map(|device| (device, Pipeline::load(&bytes, device)));
    if options.json {
        print_json(&as_json(&description, &loads));
        return Ok(Exit::Success);
    }
    let told = if options.all || description.operators.len() < MANY {
        outline::flat(&description)
    } else {
        outline::outline(&description)
    };
    if options.dot {
        print(&draw::dot(&description, &told));
    } else if options.svg {
        print(&draw::svg(&description, &told));
    } else {
        let name = options.pipeline.file_name().unwrap_or_default().to_string_lossy();
        print(&text(&name, &description, &told, &loads));
    }
    Ok(Exit::Success)
}

type Loads = [(Device, Result<Pipeline>); 2];

fn as_json(description: &Description, loads: &Loads) -> serde_json::Value {
    let load = |(device, load): &(Device, Result<Pipeline>)| {
        let outputs = load.as_ref().ok().map(|pipeline| {
            let outputs = pipeline.outputs().iter();
            outputs
                .map(|output| json!({"name": output.name, "type": shown_type(&output.ty)}))
                .collect::<Vec<_>>()
        });
        json!({
            "device": device.to_string(), "loads": load.is_ok(), "outputs": outputs,
            "error": load.as_ref().err().map(ToString::to_string),
            "warnings": load.as_ref().ok().map(Pipeline::warnings).unwrap_or_default(),
        })
    };
    json!({ "pipeline": description, "gesso": loads.iter().map(load).collect::<Vec<_>>() })
}

fn text(name: &str, description: &Description, told: &[Item], loads: &Loads) -> String {
    let pieces = [
        heading(name, description),
        inputs(description),
        operators(description, told),
        outputs(description, loads),
        verdict(description, loads),
    ];
    pieces.join("\n")
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn heading(name: &str, description: &Description) -> String {
    let mut made = vec![format!("in the format of {}", description.format)];
    if let Some(size) = description.max_batch_size {
        made.push(format!("batches of up to {size}"));
    }
    if let Some(threads) = description.num_threads.and_then(|threads| usize::try_from(threads).ok()) {
        made.push(plural(threads, "thread"));
    }
    made.push(match description.device_id {
        None => "made without a GPU".to_owned(),
        Some(id) => format!("made on GPU {id}"),
    });
    if let Some(seed) = description.seed {
        made.push(format!("seed {seed}"));
    }
    let counts = [
        plural(description.inputs.len(), "input"),
        plural(description.operators.len(), "operator"),
        plural(description.outputs.len(), "output"),
    ];
    format!("{}: {}\n{}\n", styled(BOLD, clean(name, 80)), counts.join(", "), made.join(", "))
}

fn inputs(description: &Description) -> String {
    let mut table = Table::new(&["name", "type", "rank", "layout", "on"]);
    for input in &description.inputs {
        table.row([
            clean(&input.name, EDGES),
            input.dtype.map_or("any", DType::name).to_owned(),
            input.ndim.map_or("any".to_owned(), |ndim| ndim.to_string()),
            clean(&input.layout, 16),
            clean(&input.device, 8),
        ]);
    }
    format!("{}\n{}", styled(BOLD, "inputs"), table.lines())
}

fn operators(description: &Description, told: &[Item]) -> String {
    let mut table = Table::new(&[">", "operator", "on", "reads", "makes", "arguments"]);
    let mut after = Vec::new();
    let width = if description.operators.len() < MANY { ARGUMENTS_OF_FEW } else { ARGUMENTS };
    for item in told {
        match item {
            Item::Operator(number) => {
                if let Some(op) = description.operators.get(*number) {
                    table.row(operator(*number, op, width));
                }
            }
            Item::Choice(choice) => {
                after.push(choice);
                table.row(choice_row(description, choice, after.len()));
            }
        }
    }
    let mut text = format!("{}\n{}", styled(BOLD, "operators"), table.lines());
    // Augmentations that are applied several times give choices that read the same.
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for (number, choice) in after.into_iter().enumerate() {
        let (number, lines) = ((number + 1).to_string(), alternatives(description, choice));
        match told.iter_mut().find(|(known, _)| *known == lines) {
            Some((_, numbers)) => numbers.push(number),
            None => told.push((lines, vec![number])),
        }
    }
    for (lines, numbers) in told {
        let heading = match numbers.as_slice() {
            [one] => format!("choice {one}"),
            many => format!("choices {}, each", many.join(", ")),
        };
        text += &format!("\n{}\n{lines}", styled(BOLD, heading));
    }
    text
}

fn operator(number: usize, op: &OperatorDescription, width: usize) -> Vec<String> {
    let mut arguments: Vec<String> =
        op.arguments.iter().map(|(name, value)| format!("{name}={}", meaning(name, value))).collect();
    if op.unsupported.is_some() {
        arguments.insert(0, "[not supported]".to_owned());
    }
    let mut reads: Vec<String> = op.inputs.clone();
    reads.extend(op.argument_inputs.iter().map(|(keyword, edge)| format!("{keyword}: {edge}")));
    vec![
        number.to_string(),
        clean(&short_name(op), EDGES),
        clean(&op.device, 8),
        clean(&reads.join(", "), EDGES),
        clean(&op.outputs.join(", "), EDGES),
        clean(&arguments.join(" "), width),
    ]
}

/// The value of an argument; numbers that stand for something by its name.
fn meaning(argument: &str, value: &ArgumentValue) -> String {
    let names: &[&str] = match argument {
        "output_type" | "image_type" => &["RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA"],
        "interp_type" | "min_filter" | "mag_filter" => {
            &["NN", "LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "GAUSSIAN"]
        }
        _ => &[],
    };
    let ArgumentValue::Ints(numbers) = value else { return value.to_string() };
    let [number] = numbers.as_slice() else { return value.to_string() };
    let name = match argument {
        "dtype" | "output_dtype" => DType::from_dali(*number).map(DType::name),
        _ => usize::try_from(*number).ok().and_then(|number| names.get(number).copied()),
    };
    name.map_or_else(|| value.to_string(), str::to_owned)
}

fn choice_row(description: &Description, choice: &Choice, number: usize) -> Vec<String> {
    let mut members = choice.operators();
    members.sort_unstable();
    let first = members.first().copied().unwrap_or_default();
    let made = members.last().and_then(|&last| description.operators.get(last));
    vec![
        first.to_string(),
        format!("choice {number}, see below"),
        String::new(),
        clean(&choice.predicate, EDGES),
        clean(&made.map(|op| op.outputs.join(", ")).unwrap_or_default(), EDGES),
        format!(
            "{}, {}, {} in all",
            plural(choice.alternatives.len(), "alternative"),
            plural(choice.conditions, "condition"),
            plural(members.len(), "operator")
        ),
    ]
}

fn alternatives(description: &Description, choice: &Choice) -> String {
    let mut text = String::new();
    for (number, items) in choice.alternatives.iter().enumerate() {
        let chain = chain(description, items);
        text += &format!("  {:>3}  {chain}\n", number + 1);
    }
    let plumbing = counts(description, choice.plumbing.iter().copied());
    text + &format!("  {}\n", styled(DIM, format!("not shown: {}", counted(&plumbing))))
}

/// What one alternative does, in one line.
fn chain(description: &Description, items: &[Item]) -> String {
    if items.is_empty() {
        return "(unchanged)".to_owned();
    }
    let mut names: Vec<(String, usize)> = Vec::new();
    for item in items {
        let name = match item {
            Item::Operator(number) => description.operators.get(*number).map(short_name).unwrap_or_default(),
            Item::Choice(choice) => {
                let inner: Vec<String> =
                    choice.alternatives.iter().map(|items| chain(description, items)).collect();
                format!("({})", inner.join(" | "))
            }
        };
        match names.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => names.push((name, 1)),
        }
    }
    let name =
        |(name, count): &(String, usize)| if *count == 1 { name.clone() } else { format!("{name} x{count}") };
    clean(&names.iter().map(name).collect::<Vec<_>>().join(", "), 160)
}

fn counted(counts: &[(String, usize)]) -> String {
    let mut shown: Vec<String> =
        counts.iter().take(LISTED).map(|(name, count)| format!("{name} ({count})")).collect();
    if counts.len() > LISTED {
        shown.push(format!("{} more", counts.len() - LISTED));
    }
    clean(&shown.join(", "), 400)
}

fn outputs(description: &Description, loads: &Loads) -> String {
    let inferred: &[Output] =
        loads.iter().find_map(|(_, load)| load.as_ref().ok()).map(Pipeline::outputs).unwrap_or_default();
    let mut table = Table::new(&["name", "type and shape of a sample", "on"]);
    for (i, output) in description.outputs.iter().enumerate() {
        let declared = || {
            let rank = output.ndim.map_or(String::new(), |ndim| format!(" of {ndim} dimensions"));
            format!("{}{rank} (declared)", output.dtype.map_or("any type", DType::name))
        };
        let ty = inferred.get(i).map_or_else(declared, |output| shown_type(&output.ty));
        table.row([clean(&output.name, EDGES), ty, clean(&output.device, 8)]);
    }
    format!("{}\n{}", styled(BOLD, "outputs"), table.lines())
}

/// `float32 [3, 224, ?] CHW`, as far as it is known.
fn shown_type(ty: &ValueType) -> String {
    let dtype = ty.dtype.map_or("any type", DType::name);
    let dims = ty.dims.as_ref().map_or("[...]".to_owned(), |dims| {
        let dims: Vec<String> = dims.iter().map(|d| d.map_or("?".to_owned(), |d| d.to_string())).collect();
        format!("[{}]", dims.join(", "))
    });
    let layout =
        ty.layout.filter(|layout| !layout.is_none()).map_or(String::new(), |layout| format!(" {layout}"));
    format!("{dtype} {dims}{layout}")
}

fn verdict(description: &Description, loads: &Loads) -> String {
    let mut text = format!("{}\n", styled(BOLD, "Gesso"));
    for (device, load) in loads {
        let place = if *device == Device::Cpu { "the CPU" } else { "a GPU" };
        text += &match load {
            Ok(pipeline) => {
                let needs = *device == Device::Gpu && !pipeline.needs_gpu();
                let note = if needs { ", where nothing of it uses the GPU" } else { "" };
                format!("  {} on {place}{note}\n", styled(GOOD, "runs"))
            }
            Err(error) => {
                format!("  {} on {place}: {}\n", styled(BAD, "does not load"), clean(&error.to_string(), 400))
            }
        };
        for warning in load.as_ref().ok().map(Pipeline::warnings).unwrap_or_default() {
            text += &format!("  {}: {}\n", styled(WARN, "note"), clean(warning, 400));
        }
    }
    if let Some(op) = description.operators.iter().find(|op| readers::find(&op.name).is_some()) {
        let why = "it finds its samples itself, and a model of a server gets them from requests";
        let elsewhere = "Such pipelines run in Python, from C and by `gesso run`";
        text += &format!(
            "  {} in Triton, for `{}`: {why}. {elsewhere}\n",
            styled(BAD, "does not run"),
            short_name(op)
        );
    }
    let missing = description.operators.iter().enumerate().filter(|(_, op)| op.unsupported.is_some());
    let missing = counts(description, missing.map(|(number, _)| number));
    if !missing.is_empty() {
        text += &format!("  not supported, or not with these arguments: {}\n", counted(&missing));
    }
    text
}

fn clean_lines(text: &str) -> String {
    text.lines().map(|line| clean(line, usize::MAX) + "\n").collect()
}
