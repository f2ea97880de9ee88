//! What a caller brought once and an instance makes many batches of: a video, and what stands beside it. It must not
//! know what sources make.

use std::collections::VecDeque;
use std::sync::Arc;

use super::pull::Wires;
use crate::cpu::formats::Formats;
use crate::deadline::Deadline;
use crate::error::{Context, Error, Result, caught};
use crate::gpu::Gpu;
use crate::gpu::video::Engines;
use crate::graph::{Fed, Feed, Graph};
use crate::memory::HostPool;
use crate::operator::Failures;
use crate::source::Source;
use crate::tensor::{Batch, BatchDesc, Device, Sample};

/// All inputs of a batch, and which of its samples failed already.
type Inputs = (Failures, Vec<Batch<'static>>);

/// The batches to come of one feed: see [`super::Instance::feed`].
pub struct Feeding {
    sources: Vec<Box<dyn Source>>,
    /// Which of them the video was fed to.
    videos: Option<usize>,
    /// Which source each input of the pipeline is fed to, and what the input is called.
    inputs: Vec<(usize, String)>,
    wires: Wires,
    /// Parts of a batch whose samples are of several shapes.
    waiting: VecDeque<Inputs>,
    /// Nothing comes after an error.
    has_failed: bool,
}

impl Feeding {
    /// Nothing yet, for new sources.
    pub(super) fn new(graph: &Graph, engines: Option<&Arc<Engines>>, formats: Formats) -> Result<Self> {
        let sources = sources(graph, engines, formats)?;
        let fed = graph.inputs.iter().filter_map(|input| match input.feed {
            Feed::Source { source, .. } if graph.sources.get(source)?.fed != Fed::Nothing => {
                Some((source, input.name.clone()))
            }
            _ => None,
        });
        Ok(Self {
            sources,
            videos: graph.videos(),
            inputs: fed.collect(),
            wires: Wires::new(graph),
            waiting: VecDeque::new(),
            has_failed: false,
        })
    }

    /// Gives `inputs`, those of the pipeline in its order, to the sources, which copy them.
    pub(super) fn feed(&mut self, inputs: &[Batch<'_>]) -> Result<()> {
        self.feed_each(inputs, |source, input| source.feed(input))
    }

    /// The same, but the video is the next piece of one that comes in pieces, or the last one of it. What can be made
    /// of it is there at once; when [`super::Instance::run_fed`] has no more, the next piece is to come.
    ///
    /// # Errors
    /// What is wrong with an input.
    pub fn grow(&mut self, inputs: &[Batch<'_>], is_last: bool) -> Result<()> {
        self.feed_each(inputs, |source, input| source.feed_piece(input, is_last))
    }

    fn feed_each(
        &mut self,
        inputs: &[Batch<'_>],
        feed: impl Fn(&mut dyn Source, &Batch<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.inputs.len() != inputs.len() {
            return Err(Error::invalid(format!("{} inputs, expected {}", inputs.len(), self.inputs.len())));
        }
        for ((source, name), input) in self.inputs.iter().zip(inputs) {
            let source =
                self.sources.get_mut(*source).ok_or_else(|| Error::internal("an input without a source"))?;
            caught(|| feed(source.as_mut(), input)).context(|| format!("input `{name}`"))?;
        }
        Ok(())
    }

    /// Whether the last batch came.
    pub fn is_over(&self) -> bool {
        let videos = self.videos.and_then(|videos| self.sources.get(videos));
        self.has_failed || self.waiting.is_empty() && videos.is_none_or(|videos| videos.is_used_up())
    }

    /// About how many bytes of memory it takes until the next piece comes.
    pub fn held(&self) -> usize {
        self.sources.iter().fold(0, |sum, source| sum.saturating_add(source.held()))
    }

    /// The next batch of at most `most` samples, all of one shape; `None` when there are no more, or not before the
    /// next piece.
    pub(super) fn next(
        &mut self,
        most: usize,
        memory: &Arc<HostPool>,
        deadline: &dyn Deadline,
    ) -> Result<Option<Inputs>> {
        if self.waiting.is_empty() && !self.has_failed {
            let (sources, wires) = (&mut self.sources, &self.wires);
            let pulled = caught(|| wires.pull(sources, most, memory, deadline));
            self.has_failed = pulled.is_err();
            if let Some(ready) = pulled? {
                self.waiting = of_one_shape(ready.with(Vec::new())?)?;
            }
        }
        Ok(self.waiting.pop_front())
    }
}

/// New sources of `graph`, which decode `formats` alone, and on `engines` what is wanted on the device.
pub(super) fn sources(
    graph: &Graph,
    engines: Option<&Arc<Engines>>,
    formats: Formats,
) -> Result<Vec<Box<dyn Source>>> {
    let made = graph.sources.iter().map(|source| {
        let mut made = (source.make)()?;
        made.allow(formats);
        if let Some(engines) = engines.filter(|_| source.device == Device::Gpu) {
            made.decode_on(engines);
        }
        Ok(made)
    });
    made.collect()
}

/// The video engines of `gpu`, if a source may decode there and there are some; else the log says why not.
pub(super) fn engines(graph: &Graph, gpu: Option<&Arc<Gpu>>) -> Option<Arc<Engines>> {
    let gpu = gpu.filter(|_| graph.sources.iter().any(|source| source.device == Device::Gpu))?;
    let engines = Engines::open(gpu);
    engines
        .inspect_err(|error| tracing::info!("videos are decoded without video engines: {error}"))
        .ok()
        .map(Arc::new)
}

/// The batch in parts whose samples are of one shape each: an answer holds no others.
fn of_one_shape((failures, inputs): Inputs) -> Result<VecDeque<Inputs>> {
    let begins = |i: &usize| {
        *i > 0 && inputs.iter().any(|input| input.desc().shapes.get(*i) != input.desc().shapes.get(i - 1))
    };
    let mut borders: Vec<usize> = (0..failures.len()).filter(begins).collect();
    borders.insert(0, 0);
    borders.push(failures.len());
    let part = |pair: &[usize]| {
        let [from, to] = *pair else { return Err(Error::internal("a part without an end")) };
        let own = Failures::none(to - from);
        (from..to)
            .filter_map(|i| Some((i, failures.get(i)?)))
            .for_each(|(i, why)| own.fail(i - from, why.clone()));
        let inputs = inputs.iter().map(|input| {
            let desc = input.desc();
            let shapes = desc.shapes.get(from..to).unwrap_or_default().to_vec();
            let samples = (from..to).map(|i| input.sample(i).cloned().unwrap_or(Sample::Missing)).collect();
            Batch::new(BatchDesc::new(desc.dtype, desc.layout, shapes), samples)
        });
        Ok((own, inputs.collect::<Result<_>>()?))
    };
    borders.windows(2).map(part).collect()
}
