//! Operators of a file that feed the pipeline: readers, and inputs that take videos. It must not know how sources work.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::proto::OpDef as FileOp;
use super::super::{Fed, Feed, GraphInput, GraphSource, Node, NodeKind, Placement, ValueId};
use super::{Importer, PipelineFile, arguments, is_bookkeeping, seeds, shortened};
use crate::error::{Error, Result};
use crate::operator::args::Value as ArgValue;
use crate::operator::{Args, OpDef, SEED};
use crate::ops;
use crate::readers::{self, ReaderDef, Step};
use crate::source::{MakeSource, Source, Videos};
use crate::tensor::{Device, Layout, ValueType};

/// What a reader gives in place of an output that it leaves to operators: the ends of the names of its inputs.
const LEFT: [&str; 2] = ["files", "frames"];

/// The end of the name of what a reader gives to an operator behind it.
const READ: [&str; 1] = ["read"];

impl PipelineFile {
    /// The reader of a file that has no other operators, with its arguments.
    ///
    /// # Errors
    /// Invalid for a file of something else; an argument that there is not, or whose value is wrong.
    pub fn reader(&self) -> Result<(&'static ReaderDef, Args)> {
        let [op] = self.0.op.as_slice() else {
            return Err(Error::invalid(format!("{} operators, expected one reader", self.0.op.len())));
        };
        let name = op.name.as_deref().unwrap_or_default();
        let reader = readers::find(name)
            .ok_or_else(|| Error::invalid(format!("operator `{}`, expected a reader", shortened(name))))?;
        let values = arguments(&op.args)?.into_iter().filter(|(keyword, _)| !is_bookkeeping(keyword));
        let args = reader.arguments(values.collect());
        reader.source(&args, None)?;
        Ok((reader, args))
    }
}

impl<'d> Importer<'d> {
    /// A reader is a source, and its outputs are inputs that it feeds. What it would decode for a device is decoded
    /// there.
    pub(super) fn reader(
        &mut self,
        op: &'d FileOp,
        reader: &'static ReaderDef,
        values: BTreeMap<String, ArgValue>,
        placement: Placement,
    ) -> Result<()> {
        if let Some(input) = op.input.first() {
            let name = input.name.as_deref().unwrap_or_default();
            return Err(Error::unsupported(format!("it reads `{}`, expected no inputs", shortened(name))));
        }
        let mut values = values.into_iter().filter(|(keyword, _)| !is_bookkeeping(keyword)).collect();
        seeds::give(&mut self.seeds, true, op.logical_id, &mut values);
        let args = reader.arguments(values);
        let mut types = (reader.outputs)(&args)?;
        if op.output.len() != types.len() {
            return Err(Error::invalid(format!("{} outputs, expected {}", op.output.len(), types.len())));
        }
        let undecoded = reader.undecoded.filter(|_| placement.device() == Device::Gpu);
        let mut steps = reader.steps_behind(&args);
        let mut parts: &[&str] = if steps.is_empty() { &[] } else { &READ };
        if let Some(undecoded) = undecoded {
            types = (undecoded.outputs)(&args)?;
            steps.splice(..0, (undecoded.steps)(&args)?);
            parts = &LEFT;
        }
        let mut edges = op.output.as_slice();
        let mut left: Vec<ValueId> = Vec::new();
        if let (false, Some((first, rest))) = (parts.is_empty(), edges.split_first()) {
            edges = rest;
            let name = first.name.as_deref().unwrap_or_default();
            for (output, (part, ty)) in parts.iter().zip(&types).enumerate() {
                let name = format!("{name}.{part}");
                let value = self.add_value(&name, Device::Cpu);
                self.fed_by_source(name, value, ty.clone(), output);
                left.push(value);
            }
        }
        for (edge, (output, ty)) in edges.iter().zip(types.into_iter().enumerate().skip(left.len())) {
            let name = edge.name.as_deref().unwrap_or_default();
            let value = self.produce(name, Device::Cpu)?;
            self.fed_by_source(name.to_owned(), value, ty, output);
        }
        if let Some((&input, arguments)) = left.split_first() {
            self.steps(op, steps, input, arguments.first().copied(), placement.device())?;
        }
        let name = op.inst_name.clone().unwrap_or_default();
        self.graph.sources.push(GraphSource {
            name,
            fed: Fed::Nothing,
            device: Device::Cpu,
            make: reader.source(&args, undecoded)?,
        });
        Ok(())
    }

    /// `value` is what output `output` of the source that comes next feeds.
    pub(super) fn fed_by_source(&mut self, name: String, value: ValueId, ty: ValueType, output: usize) {
        let source = self.graph.sources.len();
        let layout = ty.layout.unwrap_or(Layout::NONE);
        let (dtype, ndim, feed) = (ty.dtype, ty.ndim(), Feed::Source { source, output });
        self.graph.values[value.0].ty = ty;
        self.graph.inputs.push(GraphInput { name, value, dtype, ndim, layout, feed });
    }

    /// The operators that make what a reader leaves to them: its first output.
    fn steps(
        &mut self,
        op: &'d FileOp,
        steps: Vec<Step>,
        input: ValueId,
        argument: Option<ValueId>,
        device: Device,
    ) -> Result<()> {
        let edge = op.output.first().and_then(|edge| edge.name.as_deref()).unwrap_or_default();
        let (count, mut input) = (steps.len(), input);
        for (i, Step { operator, values, argument: keyword }) in steps.into_iter().enumerate() {
            let def = ops::find(operator)
                .ok_or_else(|| Error::internal(format!("no operator `{operator}` for a reader")))?;
            let output =
                if i + 1 == count { self.produce(edge, device)? } else { self.add_value(edge, device) };
            let tensors = keyword.map(|keyword| (keyword.to_owned(), 0)).into_iter().collect();
            self.graph.nodes.push(Node {
                instance: op.inst_name.clone().unwrap_or_default(),
                kind: NodeKind::Operator(def, Args::new(values, tensors).with_defaults(def.arg_table())),
                placement: match device {
                    Device::Cpu => Placement::Cpu,
                    Device::Gpu if def.is_mixed() => Placement::Mixed,
                    Device::Gpu => Placement::Gpu,
                },
                inputs: vec![input],
                arguments: keyword.and(argument).into_iter().collect(),
                outputs: vec![output],
            });
            input = output;
        }
        Ok(())
    }

    /// An input that takes videos: a source that a caller feeds, and its sequences are what the pipeline gets.
    pub(super) fn videos(
        &mut self,
        op: &'d FileOp,
        def: &OpDef,
        values: BTreeMap<String, ArgValue>,
        placement: Placement,
    ) -> Result<()> {
        let ([], [output]) = (op.input.as_slice(), op.output.as_slice()) else {
            return Err(Error::invalid(format!(
                "{} inputs and {} outputs, expected none and 1",
                op.input.len(),
                op.output.len()
            )));
        };
        let given = |keyword: &str| !is_bookkeeping(keyword) && keyword != SEED;
        let values = values.into_iter().filter(|(keyword, _)| given(keyword)).collect();
        let make = videos(def, &Args::new(values, BTreeMap::new()))?;
        let (name, edge) =
            (op.inst_name.clone().unwrap_or_default(), output.name.as_deref().unwrap_or_default());
        let name = if name.is_empty() { edge.to_owned() } else { name };
        if self.graph.sources.iter().any(|source| source.fed == Fed::Videos) {
            return Err(Error::unsupported("a second input of videos, expected one in a pipeline"));
        }
        let source = self.graph.sources.len();
        let value = self.produce(edge, Device::Cpu)?;
        let ty = make()?.infer()?.into_iter().next().unwrap_or_default();
        let (dtype, ndim, layout) = (ty.dtype, ty.ndim(), ty.layout.unwrap_or(Layout::NONE));
        self.graph.values[value.0].ty = ty;
        let feed = Feed::Source { source, output: 0 };
        self.graph.inputs.push(GraphInput { name: name.clone(), value, dtype, ndim, layout, feed });
        self.graph.sources.push(GraphSource { name, fed: Fed::Videos, device: placement.device(), make });
        if placement.device() == Device::Gpu {
            let copy = self.copy_to(value, Device::Gpu);
            self.produced.insert(edge, copy);
        }
        Ok(())
    }
}

/// What makes the source of an input of videos.
///
/// # Errors
/// An argument that there is not, or whose value is wrong.
pub(super) fn videos(def: &OpDef, args: &Args) -> Result<MakeSource> {
    def.check(args)?;
    let of_videos = def.videos.ok_or_else(|| Error::internal("an input that takes no videos"))?;
    let sequences = of_videos(&args.with_defaults(def.arg_table()))?;
    Ok(Arc::new(move || Ok(Box::new(Videos::new(sequences)) as Box<dyn Source>)))
}
