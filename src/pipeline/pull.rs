//! A batch of every source, held to what the source said of it. It must not know what becomes of the batch.

use std::sync::Arc;

use crate::deadline::Deadline;
use crate::error::{Context, Error, Layer, Result};
use crate::graph::{Feed, Graph, GraphInput};
use crate::memory::HostPool;
use crate::operator::Failures;
use crate::source::{Pulled, Source, Upcoming};
use crate::tensor::{Batch, Sample, ValueType};

/// Where the inputs of a pipeline come from, in their order.
pub(super) struct Wires {
    inputs: Vec<Wire>,
    /// The readers' names in the file, where they have some.
    names: Vec<String>,
}

/// What sources gave for a batch: which of its samples failed already, and a batch for each input that a source feeds.
pub(super) struct Ready {
    pub(super) failures: Failures,
    inputs: Vec<Option<Batch<'static>>>,
}

impl Ready {
    /// With the inputs that a caller `given`, in their order: all inputs of the pipeline.
    ///
    /// # Errors
    /// Invalid when there are fewer or more than sources leave to the caller.
    pub(super) fn with<'r>(self, given: Vec<Batch<'r>>) -> Result<(Failures, Vec<Batch<'r>>)> {
        let (expected, found) = (self.inputs.iter().filter(|input| input.is_none()).count(), given.len());
        if found != expected {
            return Err(Error::invalid(format!("{found} inputs, expected {expected}")));
        }
        let mut given = given.into_iter();
        let inputs = self.inputs.into_iter().filter_map(|input| input.or_else(|| given.next()));
        Ok((self.failures, inputs.collect()))
    }
}

/// What was asked of the sources for one batch.
pub(super) struct Begun {
    /// How many samples there may be, and are.
    most: usize,
    pub(super) samples: usize,
    all: Vec<Result<Upcoming>>,
}

impl Begun {
    /// Whether something is still to be read, and nothing has failed.
    pub(super) fn is_read_later(&self) -> bool {
        let is_later = |upcoming| matches!(upcoming, &Ok(Upcoming::Later(..)));
        self.all.iter().all(Result::is_ok) && self.all.iter().any(is_later)
    }
}

/// What an input of the pipeline comes from.
struct Wire {
    name: String,
    feed: Feed,
    /// What the source says of it.
    ty: ValueType,
}

impl Wires {
    /// Those of `graph`.
    pub(super) fn new(graph: &Graph) -> Self {
        let inputs = graph.inputs.iter().map(|input| Wire::new(graph, input)).collect();
        Self { inputs, names: graph.sources.iter().map(|source| source.name.clone()).collect() }
    }

    /// What a source is called in messages: by its own name, else by the input that it feeds.
    fn named(&self, number: usize) -> Layer {
        let feeds = |wire: &&Wire| matches!(wire.feed, Feed::Source { source, .. } if source == number);
        let own = self.names.get(number).filter(|name| !name.is_empty());
        let name = own.or_else(|| self.inputs.iter().find(feeds).map(|wire| &wire.name));
        Layer::Source { number, name: name.cloned().unwrap_or_default() }
    }

    /// The next batch of every source: which samples failed already, and the inputs. The first source says how many
    /// samples there are.
    ///
    /// # Errors
    /// What a source says, or what is wrong with what it gave.
    pub(super) fn pull(
        &self,
        sources: &mut [Box<dyn Source>],
        most: usize,
        memory: &Arc<HostPool>,
        deadline: &dyn Deadline,
    ) -> Result<Option<Ready>> {
        self.begin(sources, most, memory, deadline).map(|begun| self.finish(begun)).transpose()
    }

    /// Asks every source for its next batch; `None`: one has no more.
    pub(super) fn begin(
        &self,
        sources: &mut [Box<dyn Source>],
        most: usize,
        memory: &Arc<HostPool>,
        deadline: &dyn Deadline,
    ) -> Option<Begun> {
        let mut begun = Begun { most, samples: most, all: Vec::new() };
        for (number, source) in sources.iter_mut().enumerate() {
            // When one source fails, the others skip a batch: they keep step.
            let upcoming = source.begin(begun.samples, memory, deadline).transpose()?;
            if let (0, Ok(upcoming)) = (number, &upcoming) {
                begun.samples = upcoming.samples();
            }
            begun.all.push(upcoming);
        }
        Some(begun)
    }

    /// What was begun, read.
    ///
    /// # Errors
    /// What a source says, or what is wrong with what it gave.
    pub(super) fn finish(&self, begun: Begun) -> Result<Ready> {
        let Begun { most, samples: size, all } = begun;
        let mut all: Vec<_> = all.into_iter().map(|upcoming| upcoming.and_then(Upcoming::read)).collect();
        let named = all.iter_mut().flatten().find(|pulled: &&mut Pulled| !pulled.origins.is_empty());
        let origins = named.map(|pulled| std::mem::take(&mut pulled.origins)).unwrap_or_default();
        let failures = Failures::of(size, origins);
        let mut batches = Vec::with_capacity(all.len());
        for (number, pulled) in all.into_iter().enumerate() {
            let checked = pulled.and_then(|pulled| match size {
                0 => {
                    Err(Error::invalid("gives a batch without samples, expected none when there are no more"))
                }
                _ if size > most => {
                    Err(Error::invalid(format!("gives {size} samples, expected at most {most}")))
                }
                _ => self.checked(number, pulled, &failures),
            });
            batches.push(checked.context(|| self.named(number))?);
        }
        let input = |wire: &Wire| {
            let Feed::Source { source, output } = wire.feed else { return Ok(None) };
            let found = batches.get(source).and_then(|outputs| outputs.get(output)).cloned().map(Some);
            found.ok_or_else(|| Error::internal(format!("input `{}` has no batch", wire.name)))
        };
        let inputs = self.inputs.iter().map(input).collect::<Result<_>>()?;
        Ok(Ready { failures, inputs })
    }

    /// What source `number` gave, held to what it said; notes the samples that it could not have.
    fn checked(&self, number: usize, pulled: Pulled, failures: &Failures) -> Result<Vec<Batch<'static>>> {
        let outputs = self.inputs.iter().filter_map(|wire| match wire.feed {
            Feed::Source { source, output } if source == number => Some((output, wire)),
            _ => None,
        });
        for (sample, error) in pulled.failures {
            failures.fail(sample, error.context(self.named(number)));
        }
        let (mut expected, found) = (0, pulled.batches.len());
        for (output, wire) in outputs {
            expected += 1;
            let batch = pulled.batches.get(output);
            let batch =
                batch.ok_or_else(|| Error::invalid(format!("has no batch for input `{}`", wire.name)))?;
            wire.check(batch, failures).context(|| format!("input `{}`", wire.name))?;
        }
        if found != expected {
            return Err(Error::invalid(format!("gives {found} batches, expected {expected}")));
        }
        Ok(pulled.batches)
    }
}

impl Wire {
    /// Of an input of `graph`.
    fn new(graph: &Graph, input: &GraphInput) -> Self {
        Self { name: input.name.clone(), feed: input.feed, ty: graph.value(input.value).ty.clone() }
    }

    /// Whether a batch is what the source said of all; a sample without bytes that is not known to have failed does so
    /// now.
    fn check(&self, batch: &Batch<'_>, failures: &Failures) -> Result<()> {
        let (desc, expected) = (batch.desc(), failures.len());
        if batch.len() != expected {
            return Err(Error::invalid(format!("{} samples, expected {expected}", batch.len())));
        }
        if let Some(dtype) = self.ty.dtype.filter(|&dtype| dtype != desc.dtype) {
            return Err(Error::invalid(format!("elements of type {}, expected {dtype}", desc.dtype)));
        }
        if let Some(layout) = self.ty.layout.filter(|&layout| layout != desc.layout) {
            return Err(Error::invalid(format!("layout `{}`, expected `{layout}`", desc.layout)));
        }
        for (i, shape) in desc.shapes.iter().enumerate() {
            if matches!(batch.sample(i), Some(Sample::Missing)) {
                failures
                    .fail(i, Error::internal(format!("the source of `{}` left it without bytes", self.name)));
            }
            let Some(dims) = &self.ty.dims else { continue };
            let fits = |(known, &found): (&Option<usize>, &usize)| known.is_none_or(|known| known == found);
            let fits = failures.get(i).is_some() || dims.iter().zip(shape.iter()).all(fits);
            if shape.len() != dims.len() || !fits {
                return Err(Error::invalid(format!("a sample of shape {shape}, expected {dims:?}")));
            }
        }
        Ok(())
    }
}
