//! `readers.TFRecord`: features of the `Example`s in TFRecord files.

use std::ops::Range;
use std::sync::Arc;

use super::features::{Feature, of_example};
use super::file::strings;
use super::records::{Records, index};
use super::{Dataset, ReaderDef, Tensor};
use crate::error::{Error, Result};
use crate::memory::HostPool;
use crate::operator::{ArgSpec, Args};
use crate::tensor::ValueType;

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers___TFRecord",
    aliases: &["readers__TFRecord", "TFRecordReader"],
    doc: "Features of the examples in TFRecord files",
    args: &[
        ArgSpec::strings("path", "TFRecord files").required(),
        ArgSpec::strings("index_path", "an index for each of them").required(),
        ArgSpec::strings("feature_names", "the features that are the outputs").required(),
        ArgSpec::strings("features", "what each of them is").required(),
        ArgSpec::bool("use_o_direct", "a hint for the system").or_bool(false).no_effect(),
    ],
    outputs,
    open,
    undecoded: None,
    behind: None,
    shuffles_list: false,
};

/// Bytes around an example: in front of it its length (8) and that number's sum (4), behind it its own (4). As in DALI,
/// sums are not checked.
const FRAME: usize = 16;
const FRONT: usize = 12;

fn features(args: &Args) -> Result<Vec<Feature>> {
    let names = strings(args, "feature_names").unwrap_or_default();
    let features = strings(args, "features").unwrap_or_default();
    if names.len() != features.len() || names.is_empty() {
        return Err(Error::invalid(format!(
            "{} `features` and {} `feature_names`, expected as many, and one at least",
            features.len(),
            names.len()
        )));
    }
    names.iter().zip(&features).map(|(name, feature)| Feature::new(name, feature)).collect()
}

fn outputs(args: &Args) -> Result<Vec<ValueType>> {
    Ok(features(args)?.iter().map(Feature::value_type).collect())
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let paths = strings(args, "path").unwrap_or_default();
    let indices = strings(args, "index_path").unwrap_or_default();
    if paths.len() != indices.len() {
        let (found, expected) = (indices.len(), paths.len());
        return Err(Error::invalid(format!("{found} `index_path` for {expected} `path`")));
    }
    let mut places = Vec::new();
    for (number, path) in indices.iter().enumerate() {
        places.extend(index(path)?.into_iter().map(|(at, length)| (number, at, length)));
    }
    Ok(Box::new(Examples { records: Records::new(paths, places), features: features(args)? }))
}

struct Examples {
    records: Records,
    features: Vec<Feature>,
}

impl Dataset for Examples {
    fn count(&self) -> usize {
        self.records.count()
    }

    fn groups(&self) -> Option<Vec<Range<usize>>> {
        Some(self.records.groups())
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let (tensors, source) = self.records.read(index, memory, |buffer, length| {
            let told = buffer.bytes().first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
            let expected = length.checked_sub(FRAME);
            match expected.filter(|&expected| told == Some(expected as u64)) {
                Some(own) => of_example(&self.features, buffer, FRONT..FRONT + own, memory),
                None => Err(Error::invalid(format!(
                    "no record of {length} bytes begins there, expected one: does the index belong to this file?"
                ))),
            }
        })?;
        Ok(tensors.into_iter().map(|tensor| Tensor { source: source.clone(), ..tensor }).collect())
    }
}

#[cfg(test)]
mod tests;
