//! `readers.File`: files as they are, with labels.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::list::{self, Labelled};
use super::pattern::Filter;
use super::pieces::open_file;
use super::stored::{Stored, joined};
use super::{Dataset, ReaderDef, Tensor, tensors};
use crate::error::{Error, Layer, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::operator::args::Value;
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__File",
    aliases: &["FileReader"],
    doc: "Files of folders, of a list or as they are given, with labels",
    args: &[
        ArgSpec::string("file_root", "folder with a folder for each label, or where other paths begin"),
        ArgSpec::string("file_list", "text file with a path and a label in each line"),
        ArgSpec::strings("files", "paths"),
        ArgSpec::ints("labels", "a label for each of `files`").or_computed("their numbers"),
        ArgSpec::strings("file_filters", "which files of the folders")
            .or_computed("images and sound, by their names"),
        ArgSpec::strings("dir_filters", "which folders").or_computed("all"),
        ArgSpec::bool("case_sensitive_filter", "whether case counts in filters").or_bool(false),
    ],
    outputs,
    open,
    undecoded: None,
    behind: None,
    shuffles_list: true,
};

/// Files that are wanted when nothing is said.
const IMAGES_AND_SOUND: &str =
    "*.jpg *.jpeg *.png *.bmp *.tif *.tiff *.pnm *.ppm *.pgm *.pbm *.jp2 *.webp *.flac *.ogg *.wav";

fn outputs(_: &Args) -> Result<Vec<ValueType>> {
    let known = |dtype, extent| ValueType {
        dtype: Some(dtype),
        dims: Some(vec![extent]),
        layout: Some(Default::default()),
    };
    Ok(vec![known(DType::U8, None), known(DType::I32, Some(1))])
}

/// A list of texts.
pub(super) fn strings(args: &Args, name: &str) -> Option<Vec<String>> {
    match args.values().find(|(keyword, _)| *keyword == name) {
        Some((_, Value::Strings(texts))) => Some(texts.clone()),
        _ => None,
    }
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let root = args.given_string("file_root")?.map(Path::new);
    let (listed, given) = (args.given_string("file_list")?, strings(args, "files"));
    let labels = args.given_ints("labels")?;
    if given.is_none() && labels.is_some() {
        return Err(Error::invalid(
            "The argument `labels` is valid only when file paths are provided as `files` argument",
        ));
    }
    for name in ["file_filters", "dir_filters"] {
        if strings(args, name).is_some_and(|patterns| patterns.is_empty()) {
            return Err(Error::invalid(format!("`{name}` list cannot be empty")));
        }
    }
    let mut base = root;
    let found = match (root, listed, given) {
        (_, Some(_), Some(_)) => {
            return Err(Error::invalid(
                "File paths can be provided through `files` or `file_list` but not both",
            ));
        }
        (_, _, Some(files)) => of_paths(files, labels)?,
        (_, Some(listed), _) => {
            // Without a root, paths are relative to the list's own folder.
            base = root.or(Path::new(listed).parent());
            list::of_list(Path::new(listed))?
        }
        (Some(root), ..) => {
            let is_case_sensitive = args.bool("case_sensitive_filter")?;
            let usual = || IMAGES_AND_SOUND.split(' ').map(str::to_owned).collect();
            let filter = |patterns| Filter::new(patterns, is_case_sensitive);
            let files = filter(strings(args, "file_filters").unwrap_or_else(usual))?;
            let folders = strings(args, "dir_filters").map(filter).transpose()?;
            let found = list::in_folders(root, &files, folders.as_ref())?;
            if found.is_empty() {
                return Err(Error::not_found(format!(
                    "the reader found no samples: expected in `{}` a folder for each label, with files that match in it",
                    root.display()
                )));
            }
            found
        }
        _ => return Err(Error::invalid("Either `file_root`, `files` or `file_list` must be specified")),
    };
    Ok(Box::new(Files { found, base: base.unwrap_or(Path::new("")).to_owned() }))
}

fn of_paths(files: Vec<String>, labels: Option<Vec<i64>>) -> Result<Vec<Labelled>> {
    let count = files.len();
    let labels = labels.unwrap_or_else(|| (0..count as i64).collect());
    if labels.len() != count {
        return Err(Error::invalid(format!(
            "Provided {} labels for {count} files. When the `labels` argument is specified, it must have the same length as `files`",
            labels.len()
        )));
    }
    Ok(files.into_iter().map(PathBuf::from).zip(labels.into_iter().map(|label| label as i32)).collect())
}

struct Files {
    /// Paths as they were given or found; those that are not absolute begin at `base`.
    found: Vec<Labelled>,
    base: PathBuf,
}

impl Dataset for Files {
    fn count(&self) -> usize {
        self.found.len()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let (path, label) =
            self.found.get(index).ok_or_else(|| Error::internal("a sample that is not there"))?;
        let source = path.display().to_string();
        let file = read_file(&joined(&self.base, path), memory)?;
        Ok(vec![Tensor { source, ..file }, tensors::list(&[*label], memory)?])
    }
}

/// A file's bytes. One that grows or shrinks meanwhile has as many as it had at first, or is an error.
pub(super) fn read_file(path: &Path, memory: &Arc<HostPool>) -> Result<Tensor> {
    if let Some(stored) = Stored::at(path)? {
        let (buffer, size) = stored.get(memory)?;
        return Ok(tensors::part(&Arc::new(buffer), 0..size, DType::U8));
    }
    let failed = |error: std::io::Error| {
        Error::not_found(error.to_string()).context(Layer::File(path.display().to_string()))
    };
    let mut file = open_file(path).map_err(failed)?;
    let size = usize::try_from(file.metadata().map_err(failed)?.len()).unwrap_or(usize::MAX);
    if size > limits::MAX_SAMPLE_BYTES {
        return Err(Error::invalid(format!(
            "the file `{}` has {size} bytes, more than the limit of {}",
            path.display(),
            limits::MAX_SAMPLE_BYTES
        )));
    }
    let mut buffer = memory.take(size)?;
    file.read_exact(buffer.bytes_mut().get_mut(..size).unwrap_or_default()).map_err(failed)?;
    Ok(tensors::part(&Arc::new(buffer), 0..size, DType::U8))
}
