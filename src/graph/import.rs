//! Reads a serialized pipeline into a [`Graph`] for one target device: checks it, coerces arguments, resolves edges and
//! inserts the copies between host and device that the file only implies. The one user of the wire format.
//!
//! For [`Device::Cpu`] the file's devices are ignored, so that a pipeline made for a GPU runs on a host without one. An
//! operator that has no form for a GPU runs on the host, wherever the file puts it.

mod arguments;
mod callbacks;
mod seeds;
mod sources;

use std::collections::{BTreeMap, HashMap, HashSet};

use prost::Message;

use super::proto::{Argument, InputOutput, OpDef, PipelineDef};
use super::{Feed, Graph, GraphInput, GraphOutput, Node, NodeKind, Placement, Value, ValueId};
use crate::cpu::exact::Arithmetic;
use crate::error::{Context, Error, Layer, Result};
use crate::limits;
use crate::operator::args::Value as ArgValue;
use crate::operator::{Args, CALLBACK, CALLBACK_SOURCE, Callbacks};
use crate::ops;
use crate::readers;
use crate::tensor::{DType, Device, Layout, ValueType};
use arguments::{argument, arguments, is_bookkeeping};
use seeds::Seeds;

/// A parsed file, before it is built for a device.
#[derive(Clone)]
pub struct PipelineFile(PipelineDef);

impl PipelineFile {
    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// Invalid when they are empty, too many, or not a pipeline.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::invalid("the pipeline file is empty"));
        }
        if bytes.len() > limits::MAX_PIPELINE_BYTES {
            return Err(Error::invalid(format!(
                "the pipeline file has {} bytes, more than the limit of {}",
                bytes.len(),
                limits::MAX_PIPELINE_BYTES
            )));
        }
        let def = PipelineDef::decode(bytes)
            .map_err(|error| Error::invalid(format!("not a serialized DALI pipeline: {error}")))?;
        if def.op.len() > limits::MAX_OPERATORS {
            return Err(Error::invalid(format!(
                "the pipeline has {} operators, more than the limit of {}",
                def.op.len(),
                limits::MAX_OPERATORS
            )));
        }
        let names = def.op.iter().map(|op| op.name.as_deref().unwrap_or_default());
        let sources = names.filter(|name| is_source(name) || readers::find(name).is_some()).count();
        let tensors = def.pipe_outputs.len() + def.external_inputs.len() + sources;
        if tensors > limits::MAX_PIPELINE_TENSORS {
            return Err(Error::invalid(format!(
                "the pipeline has {tensors} inputs and outputs, more than the limit of {}",
                limits::MAX_PIPELINE_TENSORS
            )));
        }
        if def.pipe_outputs.is_empty() {
            return Err(Error::invalid("the pipeline has no outputs"));
        }
        Ok(Self(def))
    }

    /// The pipeline as if its author had put every operator on the device that can run there.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn moved_to_device(mut self) -> Self {
        super::moved::move_to_device(&mut self.0);
        self
    }

    /// The pipeline as if its author had given `arithmetic` to every operator that has it and that the file gives none.
    #[must_use]
    pub fn with_arithmetic(mut self, arithmetic: Arithmetic) -> Self {
        super::arithmetic::give(&mut self.0, arithmetic);
        self
    }

    /// Builds the graph for `target`.
    ///
    /// # Errors
    /// The first thing that is wrong or not supported, with the operator and the instance it stands in.
    pub fn graph(&self, target: Device) -> Result<Graph> {
        self.graph_with(target, &Callbacks::new())
    }

    /// [`PipelineFile::graph`], with functions for the operators that call some.
    ///
    /// # Errors
    /// As there.
    pub fn graph_with(&self, target: Device, callbacks: &Callbacks) -> Result<Graph> {
        Importer::new(&self.0, target, callbacks)?.run()
    }
}

struct Importer<'d> {
    def: &'d PipelineDef,
    target: Device,
    callbacks: &'d Callbacks,
    graph: Graph,
    /// Edge name to the value as its producer writes it.
    produced: HashMap<&'d str, ValueId>,
    /// Copies made so far: the original and the device of the copy.
    copies: HashMap<(ValueId, Device), ValueId>,
    instances: HashSet<&'d str>,
    seeds: Option<Seeds>,
}

impl<'d> Importer<'d> {
    fn new(def: &'d PipelineDef, target: Device, callbacks: &'d Callbacks) -> Result<Self> {
        let batch_size = def.batch_size.ok_or_else(|| Error::invalid("the pipeline has no `batch_size`"))?;
        let max_batch_size = usize::try_from(batch_size)
            .ok()
            .filter(|n| (1..=limits::MAX_BATCH_SIZE).contains(n))
            .ok_or_else(|| {
                Error::invalid(format!(
                    "`batch_size` is {batch_size}, expected 1 to {}",
                    limits::MAX_BATCH_SIZE
                ))
            })?;
        let num_threads = def
            .num_threads
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| (1..=limits::MAX_THREADS).contains(n));
        let graph = Graph {
            nodes: Vec::with_capacity(def.op.len()),
            values: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            max_batch_size,
            num_threads,
            warnings: Vec::new(),
            sources: Vec::new(),
        };
        Ok(Self {
            def,
            target,
            callbacks,
            graph,
            produced: HashMap::new(),
            copies: HashMap::new(),
            instances: HashSet::new(),
            seeds: Seeds::new(def),
        })
    }

    fn run(mut self) -> Result<Graph> {
        for name in &self.def.external_inputs {
            self.add_input(name, name, Device::Cpu, &BTreeMap::new())?;
        }
        for op in &self.def.op {
            let name = op.name.as_deref().unwrap_or_default();
            let instance = op.inst_name.as_deref().unwrap_or_default();
            self.operator(op, name, instance)
                .context(|| Layer::operator(shortened(name), shortened(instance)))?;
        }
        self.graph.feed_beside_videos();
        for (i, output) in self.def.pipe_outputs.iter().enumerate() {
            self.output(output).context(|| format!("pipeline output {i}"))?;
        }
        Ok(self.graph)
    }

    fn operator(&mut self, op: &'d OpDef, name: &'d str, instance: &'d str) -> Result<()> {
        if name.is_empty() {
            return Err(Error::invalid("an operator has no name"));
        }
        if instance.len() > limits::MAX_NAME_BYTES {
            return Err(Error::invalid(format!(
                "a name of {} bytes, expected at most {}",
                instance.len(),
                limits::MAX_NAME_BYTES
            )));
        }
        if !instance.is_empty() && !self.instances.insert(instance) {
            return Err(Error::invalid("the instance name is used twice"));
        }
        let edges = op.input.len() + op.output.len();
        if edges > limits::MAX_EDGES_PER_OPERATOR {
            return Err(Error::invalid(format!(
                "{edges} inputs and outputs, more than the limit of {}",
                limits::MAX_EDGES_PER_OPERATOR
            )));
        }
        let values = arguments(&op.args)?;
        let placement = self.placement(&op.args)?;
        if let Some(def) = ops::find(name).filter(|def| def.videos.is_some()) {
            return self.videos(op, def, values, placement);
        }
        if is_source(name) {
            let [output] = op.output.as_slice() else {
                return Err(Error::invalid(format!("{} outputs, expected 1", op.output.len())));
            };
            let device = if placement == Placement::Gpu { Device::Gpu } else { Device::Cpu };
            let edge = output.name.as_deref().unwrap_or_default();
            return self.add_input(if instance.is_empty() { edge } else { instance }, edge, device, &values);
        }
        if let Some(reader) = readers::find(name) {
            return self.reader(op, reader, values, placement);
        }
        if let Some(callback) = self.callbacks.get(instance) {
            match name {
                CALLBACK => return self.callback(op, callback, values),
                CALLBACK_SOURCE => return self.callback_source(op, callback, values),
                _ => {}
            }
        }
        let Some(def) = ops::find(name) else {
            return Err(describe::unknown(name));
        };
        if placement.device() == Device::Cpu && !def.devices.contains(&Device::Cpu) {
            return Err(Error::unsupported(match self.target {
                Device::Cpu => "it runs on a GPU only, and this is an instance on the host",
                Device::Gpu => "it runs on a GPU only, and the pipeline puts it on the host",
            }));
        }
        let falls_back = placement.device() == Device::Gpu && !def.runs_on_gpu();
        let placement = if falls_back { Placement::Cpu } else { placement };
        if falls_back {
            self.graph.warnings.push(format!(
                "operator `{name}` (`{}`) has no form for a GPU and runs on the host, with a copy each way",
                shortened(instance)
            ));
        }

        let (mut inputs, mut arguments, mut tensors) = (Vec::new(), Vec::new(), BTreeMap::new());
        for input in &op.input {
            let is_parameter = def.reads_on_host(inputs.len());
            let device = self.device(input)?;
            let wanted = if is_parameter || falls_back { Device::Cpu } else { device };
            let value = self.resolve(input.name.as_deref().unwrap_or_default(), wanted)?;
            if input.is_argument_input.unwrap_or(false) {
                let keyword = input.arg_name.clone().unwrap_or_default();
                if tensors.insert(keyword.clone(), arguments.len()).is_some() {
                    return Err(Error::invalid(format!("argument `{keyword}` is fed twice")));
                }
                arguments.push(value);
            } else {
                inputs.push(value);
            }
        }
        let mut values = values.into_iter().filter(|(keyword, _)| !is_bookkeeping(keyword)).collect();
        seeds::give(&mut self.seeds, def.is_random(), op.logical_id, &mut values);
        let args = Args::new(values, tensors).with_defaults(def.arg_table());
        let expected = def.output_count(&args, inputs.len())?;
        if op.output.len() != expected {
            return Err(Error::invalid(format!("{} outputs, expected {expected}", op.output.len())));
        }
        let mut outputs = Vec::with_capacity(expected);
        for output in &op.output {
            let device = self.device(output)?;
            let device = if falls_back { Device::Cpu } else { device };
            outputs.push(self.produce(output.name.as_deref().unwrap_or_default(), device)?);
        }
        self.graph.nodes.push(Node {
            instance: instance.to_owned(),
            kind: NodeKind::Operator(def, args),
            placement,
            inputs,
            arguments,
            outputs,
        });
        Ok(())
    }

    fn add_input(
        &mut self,
        name: &'d str,
        edge: &'d str,
        device: Device,
        args: &BTreeMap<String, ArgValue>,
    ) -> Result<()> {
        let args = Args::new(args.clone(), BTreeMap::new());
        let dtype = match args.given_int("dtype")? {
            None | Some(-1) => None,
            Some(_) => args.given_dtype("dtype")?,
        };
        let layout = args.given_string("layout")?.map(Layout::new).transpose()?.unwrap_or(Layout::NONE);
        let ndim = match args.given_int("ndim")? {
            Some(n) => Some(usize::try_from(n).ok().filter(|&n| n <= limits::MAX_NDIM).ok_or_else(|| {
                Error::invalid(format!("`ndim` is {n}, expected 0 to {}", limits::MAX_NDIM))
            })?),
            None if layout.is_none() => None,
            None => Some(layout.letters().len()),
        };
        if let Some(ndim) = ndim.filter(|&n| !layout.is_none() && n != layout.letters().len()) {
            return Err(Error::invalid(format!("layout `{layout}` does not have `ndim` {ndim} dimensions")));
        }
        // A layout that is not declared may still come with the data in DALI; a request cannot carry one.
        let ty = ValueType { dtype, dims: ndim.map(|n| vec![None; n]), layout: Some(layout) };
        let value = self.produce(edge, Device::Cpu)?;
        self.graph.values[value.0].ty = ty;
        let (name, feed) = (name.to_owned(), Feed::Caller);
        self.graph.inputs.push(GraphInput { name, value, dtype, ndim, layout, feed });
        if device == Device::Gpu && self.target == Device::Gpu {
            // Requests arrive in host memory: the value that operators see is the copy.
            let copy = self.copy_to(value, Device::Gpu);
            self.produced.insert(edge, copy);
        }
        Ok(())
    }

    fn output(&mut self, output: &'d InputOutput) -> Result<()> {
        let name = output.name.as_deref().unwrap_or_default();
        let device = self.device(output)?;
        // What is made on the device goes from there to where the response wants it: no copy of ours is in between.
        let only_on_device = self.produced.get(name).is_some_and(|&value| {
            self.graph.value(value).device == Device::Gpu && !self.copies.contains_key(&(value, Device::Cpu))
        });
        let value = self.resolve(name, if only_on_device { Device::Gpu } else { device })?;
        let dtype = output.dtype.filter(|&d| d != -1);
        let dtype = dtype
            .map(|d| {
                DType::in_file(i64::from(d)).ok_or_else(|| {
                    Error::invalid(format!("`dtype` is {d}, expected a tensor type from 0 to 11"))
                })
            })
            .transpose()?;
        let ndim = output.ndim.filter(|&n| n >= 0);
        let ndim = ndim
            .map(|n| {
                usize::try_from(n).ok().filter(|&n| n <= limits::MAX_NDIM).ok_or_else(|| {
                    Error::invalid(format!("`ndim` is {n}, expected 0 to {}", limits::MAX_NDIM))
                })
            })
            .transpose()?;
        self.graph.outputs.push(GraphOutput { name: name.to_owned(), value, device, dtype, ndim });
        Ok(())
    }

    fn produce(&mut self, name: &'d str, device: Device) -> Result<ValueId> {
        if name.is_empty() || name.len() > limits::MAX_NAME_BYTES {
            return Err(Error::invalid(format!(
                "an output's name has {} bytes, expected 1 to {}",
                name.len(),
                limits::MAX_NAME_BYTES
            )));
        }
        let id = self.add_value(name, device);
        if self.produced.insert(name, id).is_some() {
            return Err(Error::invalid(format!("edge `{name}` is produced twice")));
        }
        Ok(id)
    }

    fn add_value(&mut self, name: &str, device: Device) -> ValueId {
        let id = ValueId(self.graph.values.len());
        self.graph.values.push(Value { name: name.to_owned(), device, ty: ValueType::default() });
        id
    }

    /// The value of edge `name` on the device where its consumer wants it.
    fn resolve(&mut self, name: &str, wanted: Device) -> Result<ValueId> {
        let Some(&value) = self.produced.get(name) else {
            let later =
                self.def.op.iter().any(|op| op.output.iter().any(|o| o.name.as_deref() == Some(name)));
            return Err(Error::invalid(if later {
                format!(
                    "input `{name}` is produced by this operator or a later one: the pipeline has a cycle"
                )
            } else {
                format!("input `{name}` is produced by no operator")
            }));
        };
        if self.graph.value(value).device == wanted {
            return Ok(value);
        }
        if let Some(&copy) = self.copies.get(&(value, wanted)) {
            return Ok(copy);
        }
        Ok(self.copy_to(value, wanted))
    }

    fn copy_to(&mut self, value: ValueId, device: Device) -> ValueId {
        let name = self.graph.value(value).name.clone();
        let copy = self.add_value(&name, device);
        self.graph.nodes.push(Node {
            instance: format!("{name}.{device}"),
            kind: NodeKind::Transfer,
            placement: Placement::Gpu,
            inputs: vec![value],
            arguments: Vec::new(),
            outputs: vec![copy],
        });
        self.copies.insert((value, device), copy);
        // The way back is the original.
        let original = self.graph.value(value).device;
        self.copies.insert((copy, original), value);
        copy
    }

    fn device(&self, edge: &InputOutput) -> Result<Device> {
        match (self.target, edge.device.as_deref().unwrap_or("cpu")) {
            (_, "cpu") | (Device::Cpu, "gpu") => Ok(Device::Cpu),
            (Device::Gpu, "gpu") => Ok(Device::Gpu),
            (_, other) => Err(Error::invalid(format!("device is `{other}`, expected `cpu` or `gpu`"))),
        }
    }

    fn placement(&self, args: &[Argument]) -> Result<Placement> {
        let device = args.iter().find(|arg| arg.name.as_deref() == Some("device"));
        let text = device.and_then(|arg| arg.strings.first()).map_or("cpu", String::as_str);
        match (self.target, text) {
            (_, "cpu" | "support") | (Device::Cpu, "gpu" | "mixed") => Ok(Placement::Cpu),
            (Device::Gpu, "gpu") => Ok(Placement::Gpu),
            (Device::Gpu, "mixed") => Ok(Placement::Mixed),
            (_, other) => {
                Err(Error::invalid(format!("`device` is `{other}`, expected `cpu`, `gpu` or `mixed`")))
            }
        }
    }
}

/// A name from the file, short enough for a message.
fn shortened(name: &str) -> &str {
    name.get(..limits::MAX_NAME_BYTES).unwrap_or(name)
}

fn is_source(name: &str) -> bool {
    ops::find(name).is_some_and(|op| op.is_input)
}

pub mod describe;
#[cfg(test)]
mod tests;
