//! Fills what a configuration leaves out from what the pipeline fixes. It never overrules a configured value: where the
//! two differ, validation says so.

use super::data_type::DataType;
use super::tensors::{Fact, Facts, TensorConfig, VARIABLE};
use super::validate::is_split;
use super::{ModelConfig, Settings, validate};
use gesso::error::Result;

impl ModelConfig {
    /// Completes the configuration; the result is valid.
    ///
    /// - Inputs: those in the configuration keep their order, missing ones follow in lexicographic order. Outputs: by
    ///   position, configured names rename the pipeline's.
    /// - An input that is missing, and that the server adds to the requests of a sequence, is `optional`: no client
    ///   sends it.
    /// - `data_type` and `dims` where absent; a variable extent becomes concrete where the pipeline fixes it. In a
    ///   batched model a sample of rank 0 becomes `dims: [1]` with an empty `reshape`, as `dims` must not be empty.
    /// - An input whose requests name files (`files.NAME`) is of `TYPE_STRING`.
    /// - `allow_ragged_batch` for every input of a batched model whose shape is variable, listed or not: requests whose
    ///   images differ in size are merged. `TYPE_STRING` needs it not: there a shape only counts elements.
    /// - `dynamic_batching` with its defaults when the model is batched and has no scheduler.
    /// - `max_batch_size`: see below.
    /// - A pipeline that takes videos: `decoupled` and `max_batch_size` 0, as each request gets several responses.
    ///
    /// # Absent or 0
    /// The server writes `max_batch_size: 0` when the author wrote 0 and when he wrote nothing. A 0 that stands in
    /// `config.pbtxt` stays. Where there is none, as the configuration may have come over the network, what the author
    /// wrote for the shapes decides. Without batching by the server `dims` begin with the number of samples, so an
    /// entry whose rank is the pipeline's plus one says 0, and an entry of the pipeline's own rank says that nothing
    /// was written:
    /// - at least one entry says 0, and none the opposite: 0 was meant and stays;
    /// - else, also when there is no entry with a shape at all, it becomes the batch size of the pipeline's file.
    ///
    /// # Errors
    /// What [`ModelConfig::validate`] finds, also a type or rank that neither side knows.
    pub fn complete(&mut self, facts: &Facts<'_>) -> Result<()> {
        let settings = self.settings()?;
        if facts.takes_videos && !self.is_decoupled() {
            self.decouple();
        }
        if self.max_batch_size == 0
            && !facts.takes_videos
            && !self.zero_is_written
            && !self.lists_batch_dimension(facts, &settings)
        {
            self.max_batch_size = i64::try_from(facts.max_batch_size).unwrap_or(i64::MAX);
        }
        let batched = self.is_batched();
        let controls = self.control_inputs()?;
        self.complete_inputs(facts, batched, &controls, &|name| settings.files.contains_key(name));
        for (i, output) in facts.outputs.iter().enumerate() {
            if self.outputs.len() == i {
                self.outputs.push(TensorConfig::named(&output.name));
            }
            if let Some(tensor) = self.outputs.get_mut(i) {
                let fact = Fact::output(output, is_split(&settings, tensor, output));
                fill(tensor, &fact, batched);
            }
        }
        if batched && !self.has_scheduler() {
            self.add_dynamic_batching();
        }
        self.validate(facts).map(drop)
    }

    fn complete_inputs(
        &mut self,
        facts: &Facts<'_>,
        batched: bool,
        controls: &[String],
        names_files: &dyn Fn(&str) -> bool,
    ) {
        let mut missing: Vec<&str> = Vec::new();
        for input in facts.inputs {
            if !self.inputs.iter().any(|tensor| tensor.name == input.name) {
                missing.push(&input.name);
            }
        }
        missing.sort_unstable();
        self.inputs.extend(missing.into_iter().map(|name| {
            let mut tensor = TensorConfig::named(name);
            tensor.optional = controls.iter().any(|control| control == name);
            tensor
        }));
        for input in facts.inputs {
            let fact = Fact::input(input);
            for tensor in self.inputs.iter_mut().filter(|tensor| tensor.name == input.name) {
                if names_files(&tensor.name) && tensor.data_type.is_none() {
                    tensor.data_type = Some(DataType::Bytes);
                }
                fill(tensor, &fact, batched);
                let variable = tensor.backend_dims().is_some_and(|dims| dims.contains(&VARIABLE));
                if batched && variable && tensor.data_type != Some(DataType::Bytes) {
                    tensor.allow_ragged_batch = true;
                }
            }
        }
    }

    /// Whether the listed shapes have a first dimension for the samples: see [`ModelConfig::complete`].
    fn lists_batch_dimension(&self, facts: &Facts<'_>, settings: &Settings) -> bool {
        let inputs = facts.inputs.iter().filter_map(|input| {
            let tensor = self.inputs.iter().find(|tensor| tensor.name == input.name)?;
            has_batch_dimension(tensor, &Fact::input(input))
        });
        let outputs = self.outputs.iter().zip(facts.outputs);
        let outputs = outputs.filter_map(|(tensor, output)| {
            has_batch_dimension(tensor, &Fact::output(output, is_split(settings, tensor, output)))
        });
        let votes: Vec<bool> = inputs.chain(outputs).collect();
        !votes.is_empty() && votes.iter().all(|&vote| vote)
    }
}

/// Whether the shape of `tensor` begins with the number of samples; `None` when it does not tell.
fn has_batch_dimension(tensor: &TensorConfig, fact: &Fact) -> Option<bool> {
    let dims = tensor.backend_dims()?;
    let ndim = fact.ndim()?;
    // One element per file: `[1]` is one for each of the server's samples, `[-1]` may be any number of samples.
    if tensor.data_type == Some(DataType::Bytes) && fact.takes_strings() {
        return None;
    }
    // `dims` must not be empty, so `[1]` is how a scalar is written too.
    if ndim == 0 && dims == [1] {
        return None;
    }
    match dims.len() {
        n if n == ndim => Some(false),
        n if n == ndim + 1 => Some(true),
        _ => None,
    }
}

fn fill(tensor: &mut TensorConfig, fact: &Fact, batched: bool) {
    if tensor.data_type.is_none() {
        tensor.data_type = fact.dtype.map(DataType::Dense);
    }
    if tensor.data_type == Some(DataType::Bytes) && fact.takes_strings() {
        if tensor.dims.is_empty() {
            tensor.dims = vec![if batched { 1 } else { VARIABLE }];
        }
        return;
    }
    let Some(known) = fact.dims(batched) else { return };
    if known.is_empty() {
        if tensor.dims.is_empty() {
            tensor.dims = vec![1];
        }
        if tensor.dims == [1] && tensor.reshape.is_none() {
            tensor.reshape = Some(Vec::new());
        }
    } else if tensor.dims.is_empty() {
        tensor.dims = known;
    } else if tensor.reshape.is_none() && tensor.dims.len() == known.len() {
        for (extent, known) in tensor.dims.iter_mut().zip(known) {
            *extent = validate::merge(*extent, known);
        }
    }
}
