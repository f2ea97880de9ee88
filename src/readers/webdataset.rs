//! `readers.Webdataset`: samples in tar archives. Files whose names are equal up to the first dot are the components of
//! one sample.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::file::strings;
use super::pieces::Pieces;
use super::tar::{self, BLOCK};
use super::tar_index::{self, Component};
use super::{Dataset, ReaderDef, Tensor, tensors};
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__Webdataset",
    aliases: &[],
    doc: "Samples of tar archives: files whose names are equal up to the first dot",
    args: &[
        ArgSpec::strings("paths", "archives").required(),
        ArgSpec::strings("ext", "for each output the extension of its file, or several with `;` between")
            .required(),
        ArgSpec::strings("index_paths", "an index for each archive").or_computed("the archives are searched"),
        ArgSpec::bool("case_sensitive_extensions", "whether case counts in extensions").or_bool(true),
        ArgSpec::string(
            "missing_component_behavior",
            "of a sample without a file for each output: `empty`, `skip` or `error`",
        )
        .or_string(""),
        ArgSpec::ints("dtypes", "a type for each output").or_computed("bytes"),
    ],
    outputs,
    open,
    undecoded: None,
    behind: None,
    shuffles_list: false,
};

/// What becomes of a sample that does not have a file for each output.
#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Empty,
    Skip,
    Error,
}

fn dtypes(args: &Args) -> Result<Vec<DType>> {
    let count = strings(args, "ext").unwrap_or_default().len();
    let Some(given) = args.given_ints("dtypes")?.filter(|given| !given.is_empty()) else {
        return Ok(vec![DType::U8; count]);
    };
    if given.len() != count {
        return Err(Error::invalid(format!(
            "Number of extensions does not match the number of provided types: {count} and {}",
            given.len()
        )));
    }
    let dtype = |id| {
        DType::in_file(id)
            .ok_or_else(|| Error::invalid(format!("`dtypes` has {id}, expected types from 0 to 11")))
    };
    given.into_iter().map(dtype).collect()
}

fn outputs(args: &Args) -> Result<Vec<ValueType>> {
    let known =
        |dtype| ValueType { dtype: Some(dtype), dims: Some(vec![None]), layout: Some(Default::default()) };
    Ok(dtypes(args)?.into_iter().map(known).collect())
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let (paths, indices) = (strings(args, "paths").unwrap_or_default(), strings(args, "index_paths"));
    let indices = indices.filter(|indices| !indices.is_empty());
    if let Some(indices) = indices.as_ref().filter(|indices| indices.len() != paths.len()) {
        let (found, expected) = (indices.len(), paths.len());
        return Err(Error::invalid(format!(
            "The number of index files, if any, must match the number of archives in the dataset: {found} and {expected}"
        )));
    }
    let is_case_sensitive = args.bool("case_sensitive_extensions")?;
    let missing = match args.string("missing_component_behavior")? {
        "" | "empty" => Missing::Empty,
        "skip" => Missing::Skip,
        "error" => Missing::Error,
        other => {
            return Err(Error::invalid(format!(
                "Invalid value for missing_component_behavior `{other}`, expected `empty`, `skip` or `error`"
            )));
        }
    };
    let mut wanted = Wanted { is_case_sensitive, outputs: BTreeMap::new(), missing };
    for (output, group) in strings(args, "ext").unwrap_or_default().iter().enumerate() {
        for extension in group.split(';').filter(|extension| !extension.is_empty()) {
            wanted.outputs.entry(wanted.folded(extension.as_bytes())).or_default().push(output);
        }
    }
    let mut archives = Archives {
        dtypes: dtypes(args)?,
        places: Vec::new(),
        groups: Vec::new(),
        files: Pieces::new(paths.clone()),
    };
    for (number, path) in paths.iter().enumerate() {
        let samples = match indices.as_ref().and_then(|indices| indices.get(number)) {
            Some(index) => tar_index::of_index(index)?,
            None => tar_index::of_archive(path)?,
        };
        archives.add(&samples, &wanted).context(|| format!("the archive `{path}`"))?;
    }
    Ok(Box::new(archives))
}

/// Which files are wanted.
struct Wanted {
    is_case_sensitive: bool,
    /// Outputs by extension.
    outputs: BTreeMap<Vec<u8>, Vec<usize>>,
    missing: Missing,
}

impl Wanted {
    fn folded(&self, extension: &[u8]) -> Vec<u8> {
        match self.is_case_sensitive {
            true => extension.to_vec(),
            false => String::from_utf8_lossy(extension).to_lowercase().into_bytes(),
        }
    }
}

/// Where a file begins and how many bytes it has.
type Span = (u64, u64);

struct Archives {
    files: Pieces,
    dtypes: Vec<DType>,
    /// One for each output of each sample.
    places: Vec<Option<Span>>,
    /// The samples of each archive.
    groups: Vec<Range<usize>>,
}

impl Archives {
    /// Adds the samples of the next archive.
    fn add(&mut self, samples: &[Vec<Component>], wanted: &Wanted) -> Result<()> {
        let (first, outputs) = (self.count(), self.dtypes.len());
        for sample in samples {
            let begin = self.places.len();
            self.places.resize(begin + outputs, None);
            let own = self.places.get_mut(begin..).unwrap_or_default();
            for part in sample {
                for &output in wanted.outputs.get(&wanted.folded(&part.extension)).into_iter().flatten() {
                    if let Some(place) = own.get_mut(output) {
                        place.get_or_insert((part.at, part.size));
                    }
                }
            }
            if let Some(output) = own.iter().position(Option::is_none) {
                match wanted.missing {
                    Missing::Empty => {}
                    Missing::Skip => self.places.truncate(begin),
                    Missing::Error => {
                        let at = sample.first().map_or(0, |part| part.at);
                        return Err(Error::invalid(format!(
                            "Underful sample detected at byte {at}: it has no file for output {output}"
                        )));
                    }
                }
            }
            if self.count() > limits::MAX_DATASET_SAMPLES {
                return Err(Error::invalid(format!("more than {} samples", limits::MAX_DATASET_SAMPLES)));
            }
        }
        self.groups.push(first..self.count());
        Ok(())
    }

    fn component(&self, number: usize, place: Span, dtype: DType, memory: &Arc<HostPool>) -> Result<Tensor> {
        let (at, size) = place;
        let path = self.files.path(number);
        if size % dtype.size() as u64 != 0 {
            return Err(Error::invalid(format!(
                "component size and dtype incompatible: the file at byte {at} of `{path}` has {size} bytes, expected a multiple of the {} of {dtype}",
                dtype.size()
            )));
        }
        // The header in front of it says how long it is.
        let length = size.saturating_add(BLOCK);
        let buffer = self.files.read(number, at.saturating_sub(BLOCK), length, memory)?;
        let (header, _) = buffer.bytes().split_at_checked(BLOCK as usize).unwrap_or_default();
        if tar::number(header.get(124..136).unwrap_or_default()) != Some(size) {
            return Err(Error::invalid(format!(
                "no file of {size} bytes begins at byte {at} of `{path}`, expected one: does the index belong to it?"
            )));
        }
        let source = format!("{path}:{at}:{}", String::from_utf8_lossy(&tar::name(header)));
        let (begin, size) = (BLOCK as usize, size as usize);
        Ok(Tensor { source, ..tensors::part(&buffer, begin..begin + size, dtype) })
    }
}

impl Dataset for Archives {
    fn count(&self) -> usize {
        self.places.len() / self.dtypes.len().max(1)
    }

    fn groups(&self) -> Option<Vec<Range<usize>>> {
        Some(self.groups.clone())
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let outputs = self.dtypes.len();
        let places = self.places.chunks_exact(outputs.max(1)).nth(index);
        let places = places.ok_or_else(|| Error::internal("a sample that is not there"))?;
        let number = self.groups.partition_point(|group| group.end <= index);
        let read = |(place, &dtype): (&Option<Span>, &DType)| match *place {
            Some(place) => self.component(number, place, dtype, memory),
            None => Ok(tensors::part(&Arc::new(memory.take(0)?), 0..0, dtype)),
        };
        places.iter().zip(&self.dtypes).map(read).collect()
    }
}

#[cfg(test)]
mod tests;
