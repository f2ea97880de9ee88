//! An operator that is a function of the program which runs the pipeline: it is called once for a batch, and its answer
//! says what the outputs are. A source may be such a function, too ([`crate::source::Called`]). It must not know how a
//! program gives a function (`capi` does).

use std::collections::HashMap;
use std::sync::Arc;

use super::{CpuCx, Inputs, Io, Operator};
use crate::error::{Error, Result};
use crate::tensor::{Batch, BatchDesc, Layout, Origins, ValueType};

/// What such an operator is called in files.
pub const CALLBACK: &str = "Callback";

/// What a source that calls a function is called in files.
pub const CALLBACK_SOURCE: &str = "CallbackSource";

/// A function of the program.
pub trait Callback: Send + Sync {
    /// Calls it with a batch, in the thread that runs the batch. Samples that failed before have no bytes. `layouts`
    /// has the layout of each output, as far as they are known.
    ///
    /// # Errors
    /// Why the whole batch fails.
    fn call(&self, inputs: &Inputs<'_>, layouts: &[Option<Layout>]) -> Result<Box<dyn Answer>>;

    /// Calls it for the next batch of a source, in the thread that asks the sources of a stream; `None` when there are
    /// no more.
    ///
    /// # Errors
    /// Why this batch cannot be had. It is called for the next one all the same.
    fn next(&self, samples: usize, layouts: &[Option<Layout>]) -> Result<Option<Box<dyn Answer>>>;
}

/// The functions that a pipeline may call, by the names of operators in it.
pub type Callbacks = HashMap<String, Arc<dyn Callback>>;

/// What a function gave. Its memory stays as it is until this is dropped.
pub trait Answer: Send + Sync {
    /// A batch for each output, in host memory, of as many samples as the inputs have. Those of samples that failed
    /// before are not looked at.
    fn outputs(&self) -> &[Batch<'_>];
}

/// What is known of outputs before the function is called: their layouts, as far as they are.
pub(crate) fn types(layouts: &[Option<Layout>]) -> Vec<ValueType> {
    let of = |&layout: &Option<Layout>| {
        let named = layout.filter(|layout| !layout.is_none());
        let dims = named.map(|layout| vec![None; layout.letters().len()]);
        ValueType { dtype: None, dims, layout }
    };
    layouts.iter().map(of).collect()
}

/// The operator: its function, and the layouts of its outputs that are known before it is called.
pub(crate) struct Calls {
    callback: Arc<dyn Callback>,
    layouts: Vec<Option<Layout>>,
    /// Between `setup` and `run_cpu`.
    answer: Option<Box<dyn Answer>>,
    origins: Vec<Option<Origins>>,
}

impl Calls {
    pub(crate) fn new(callback: Arc<dyn Callback>, layouts: Vec<Option<Layout>>) -> Self {
        Self { callback, layouts, answer: None, origins: Vec::new() }
    }
}

impl Operator for Calls {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(types(&self.layouts))
    }

    /// Calls the function: nothing else tells what it makes.
    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.answer = None;
        let answer = self.callback.call(inputs, &self.layouts)?;
        let (found, expected) = (answer.outputs().len(), self.layouts.len());
        if found != expected {
            return Err(Error::invalid(format!("{found} outputs, expected {expected}")));
        }
        for (output, batch) in answer.outputs().iter().enumerate() {
            let (found, expected) = (batch.len(), inputs.batch_size());
            if found != expected {
                let text = format!("output {output} has {found} samples, expected {expected}");
                return Err(Error::invalid(text));
            }
        }
        let descs = answer.outputs().iter().map(|batch| batch.desc().clone()).collect();
        self.origins = answer.outputs().iter().map(|batch| batch.origins().cloned()).collect();
        self.answer = Some(answer);
        Ok(descs)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let answer = self.answer.take().ok_or_else(|| Error::internal("a function that was not called"))?;
        let outputs = answer.outputs();
        io.for_each_sample(cx, |sample| {
            for (i, batch) in outputs.iter().enumerate() {
                let from = batch.view(sample.index()).bytes;
                let to = &mut *sample.output(i)?.bytes;
                if to.len() != from.len() {
                    return Err(Error::internal("a sample without bytes"));
                }
                to.copy_from_slice(from);
            }
            Ok(())
        })
    }

    fn origins(&self, _inputs: &Inputs<'_>, output: usize) -> Option<Origins> {
        self.origins.get(output).cloned().flatten()
    }
}
