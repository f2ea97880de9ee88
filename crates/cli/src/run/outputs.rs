//! Files of outputs: their names, what is in them, and which of them an earlier run left. It must not know how samples
//! are made.

use std::path::{Path, PathBuf};

use gesso::cpu::decode::{self, Format as ImageFormat};
use gesso::cpu::npy;
use gesso::error::{Error, Result};
use gesso::pipeline::Pipeline;
use gesso::tensor::{Batch, DType, View};

use super::{Format, Options};
use crate::preview;
use crate::preview::Normalization;
use crate::terminal::write_file;

/// Characters of a sample's name in the names of its outputs.
const MAX_NAME_CHARS: usize = 40;

/// Endings of pictures.
const ENDINGS: [&str; 3] = ["png", "jpg", "webp"];

/// One output of one sample.
pub(super) struct Written {
    pub(super) output: String,
    pub(super) sample: usize,
    pub(super) dtype: &'static str,
    pub(super) shape: String,
    pub(super) file: Option<PathBuf>,
    /// The picture, and how values became pixels.
    pub(super) picture: Option<(PathBuf, &'static str)>,
}

/// An output's name as the beginning of a file's.
fn stem(output: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    output.chars().map(plain).collect()
}

/// The name of the file of an output of a sample, but for its ending: `OUTPUT.SAMPLE.NAME`, where NAME has no dot, so
/// that no other output or sample has it.
fn file_name(output: &str, sample: usize, name: Option<&str>) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '_' };
    let name: String = name.unwrap_or_default().chars().take(MAX_NAME_CHARS).map(plain).collect();
    let dot = if name.is_empty() { "" } else { "." };
    format!("{}.{sample}{dot}{name}", stem(output))
}

/// How the name of a file ends that a sample is, as encoders make it.
fn encoded(view: &View<'_>) -> Option<&'static str> {
    if view.dtype != DType::U8 || view.shape.len() != 1 {
        return None;
    }
    match decode::file_format(view.bytes)? {
        ImageFormat::Jpeg => Some("jpg"),
        ImageFormat::Png => Some("png"),
        ImageFormat::WebP => Some("webp"),
        _ => None,
    }
}

/// Where outputs go, and as what.
pub(super) struct Outputs {
    pub(super) folder: Option<PathBuf>,
    formats: Vec<Format>,
    /// The name of each output in the names of files, and how its pictures were normalized.
    pub(super) named: Vec<(String, Option<Normalization>)>,
    pub(super) lists_all: bool,
}

impl Outputs {
    pub(super) fn new(options: &Options, bytes: &[u8], pipeline: &Pipeline) -> Result<Self> {
        if let Some(folder) = &options.out {
            std::fs::create_dir_all(folder)
                .map_err(|error| Error::invalid(format!("cannot make `{}`: {error}", folder.display())))?;
        }
        let description = Pipeline::describe(bytes)?;
        let outputs = pipeline.outputs();
        let named = outputs.iter().enumerate().map(|(at, output)| {
            // Two outputs may have one name.
            let twice = outputs.iter().take(at).any(|other| other.name == output.name);
            let name = if twice { format!("{}-{at}", output.name) } else { output.name.clone() };
            (name, Normalization::of(&description, &output.name))
        });
        let (folder, formats) = (options.out.clone(), options.format.clone());
        Ok(Self { folder, formats, named: named.collect(), lists_all: options.json })
    }

    /// Whether all outputs of a sample are there, of a file of that `name`; which of them look like pictures is not
    /// known.
    pub(super) fn are_there(&self, sample: usize, name: Option<&str>) -> bool {
        let is_there = |(output, _): &(String, Option<Normalization>)| {
            let file = format!("{}.npy", file_name(output, sample, name));
            let path = self.folder.as_ref().map(|folder| folder.join(file));
            path.is_some_and(|path| path.metadata().is_ok_and(|metadata| metadata.len() > 0))
        };
        !self.formats.contains(&Format::Npy) || self.named.iter().all(is_there)
    }

    /// Removes what an earlier run left in `folder`.
    pub(super) fn clear(&self, folder: &Path) -> Result<()> {
        let failed =
            |error| Error::invalid(format!("cannot clear the folder `{}`: {error}", folder.display()));
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_output = |(output, _): &(String, Option<Normalization>)| {
                let rest = name.strip_prefix(&stem(output)).and_then(|rest| rest.strip_prefix('.'));
                let rest = rest.and_then(|rest| rest.rsplit_once('.'));
                let rest = rest.filter(|(_, ending)| *ending == "npy" || ENDINGS.contains(ending));
                rest.is_some_and(|(rest, _)| {
                    let (number, name) = rest.split_once('.').unwrap_or((rest, ""));
                    number.parse::<usize>().is_ok() && !name.contains('.')
                })
            };
            if self.named.iter().any(is_output) {
                std::fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Writes output `output` of a sample, which has that number and name, and is number `i` of `batch`.
    pub(super) fn write(
        &self,
        output: usize,
        (sample, file): (usize, Option<String>),
        batch: &Batch<'_>,
        i: usize,
    ) -> Result<Written> {
        let view = batch.view(i);
        let (name, normalization) = match self.named.get(output) {
            Some((name, normalization)) => (name.clone(), normalization.as_ref()),
            None => (String::new(), None),
        };
        let mut written = Written {
            sample,
            dtype: view.dtype.name(),
            shape: view.shape.to_string(),
            file: None,
            picture: None,
            output: name,
        };
        let Some(folder) = &self.folder else { return Ok(written) };
        let stem = file_name(&written.output, sample, file.as_deref());
        if self.formats.contains(&Format::Npy) {
            let path = folder.join(format!("{stem}.npy"));
            let mut bytes = npy::header(view.dtype, view.shape);
            bytes.extend_from_slice(view.bytes);
            write_file(&path, &bytes)?;
            written.file = Some(path);
        }
        if self.formats.contains(&Format::Png) {
            written.picture = match encoded(&view) {
                Some(ending) => {
                    let path = folder.join(format!("{stem}.{ending}"));
                    write_file(&path, view.bytes)?;
                    Some((path, "the file itself"))
                }
                None => {
                    let path = folder.join(format!("{stem}.png"));
                    preview::write(&view, normalization, &path)?.map(|how| (path, how))
                }
            };
        }
        Ok(written)
    }
}
