//! Operators of a file that feed the pipeline: readers, and inputs that take videos. It must not know how sources work.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::proto::OpDef as FileOp;
use super::super::{Fed, Feed, GraphInput, GraphSource, Placement};
use super::{Importer, PipelineFile, arguments, is_bookkeeping, seeds, shortened};
use crate::error::{Error, Result};
use crate::ops::args::Value as ArgValue;
use crate::ops::{Args, OpDef, SEED};
use crate::readers::{self, ReaderDef};
use crate::source::{MakeSource, Source, Videos};
use crate::tensor::{Device, Layout};

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
        let args = Args::new(values.collect(), BTreeMap::new());
        reader.source(&args)?;
        Ok((reader, args))
    }
}

impl<'d> Importer<'d> {
    /// A reader is a source, and its outputs are inputs that it feeds.
    pub(super) fn reader(
        &mut self,
        op: &'d FileOp,
        reader: &'static ReaderDef,
        values: BTreeMap<String, ArgValue>,
    ) -> Result<()> {
        if let Some(input) = op.input.first() {
            let name = input.name.as_deref().unwrap_or_default();
            return Err(Error::unsupported(format!("it reads `{}`, expected no inputs", shortened(name))));
        }
        let mut values = values.into_iter().filter(|(keyword, _)| !is_bookkeeping(keyword)).collect();
        seeds::give(&mut self.seeds, true, op.logical_id, &mut values);
        let args = Args::new(values, BTreeMap::new());
        let types = (reader.outputs)(&args)?;
        if op.output.len() != types.len() {
            return Err(Error::invalid(format!("{} outputs, expected {}", op.output.len(), types.len())));
        }
        let source = self.graph.sources.len();
        for (output, (edge, ty)) in op.output.iter().zip(types).enumerate() {
            let name = edge.name.as_deref().unwrap_or_default();
            let value = self.produce(name, Device::Cpu)?;
            let layout = ty.layout.unwrap_or(Layout::NONE);
            let (dtype, ndim, feed) = (ty.dtype, ty.ndim(), Feed::Source { source, output });
            self.graph.values[value.0].ty = ty;
            self.graph.inputs.push(GraphInput { name: name.to_owned(), value, dtype, ndim, layout, feed });
        }
        let name = op.inst_name.clone().unwrap_or_default();
        self.graph.sources.push(GraphSource { name, fed: Fed::Nothing, make: reader.source(&args)? });
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
        self.graph.sources.push(GraphSource { name, fed: Fed::Videos, make });
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
    let sequences = def.videos.ok_or_else(|| Error::internal("an input that takes no videos"))?(args)?;
    Ok(Arc::new(move || Ok(Box::new(Videos::new(sequences)) as Box<dyn Source>)))
}
