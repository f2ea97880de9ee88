//! `samples.jsonl` beside the outputs: which files each sample is made of, and what became of it, a line for each. It is written behind the
//! outputs, so a run that was cut off can go on behind its last line.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gesso::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::inputs::Samples;

const NAME: &str = "samples.jsonl";

/// A line.
#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) sample: usize,
    /// The inputs and their files.
    pub(super) files: BTreeMap<String, String>,
    /// Why there are no outputs.
    pub(super) error: Option<String>,
}

impl Line {
    /// Of `sample`, which comes of the files of `row`.
    pub(super) fn new(sample: usize, row: usize, samples: &Samples, error: Option<&Error>) -> Self {
        Self { sample, files: named(samples, row), error: error.map(ToString::to_string) }
    }
}

fn named(samples: &Samples, row: usize) -> BTreeMap<String, String> {
    let files = samples.files(row).into_iter();
    files.map(|(input, path)| (input.to_owned(), path.display().to_string())).collect()
}

pub(super) struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// A new one in `folder`.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn begin(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        let file = File::create(&path).map_err(|error| failed("make", &path, &error))?;
        Ok(Self { file, path })
    }

    /// That in `folder`, if there is one; and which of `samples` are done. Those that failed are to be tried again.
    ///
    /// # Errors
    /// What the system says; invalid when the lines speak of other files.
    pub(super) fn resume(folder: &Path, samples: &Samples) -> Result<(Self, Vec<bool>)> {
        let path = folder.join(NAME);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(|error| failed("open", &path, &error))?;
        let (mut done, mut whole) = (vec![false; samples.len()], 0);
        let mut reader = BufReader::new(&file);
        let mut text = Vec::new();
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text).map_err(|error| failed("read", &path, &error))?;
            // A line without an end was cut off.
            if text.last() != Some(&b'\n') {
                break;
            }
            whole += read as u64;
            let line: Line = serde_json::from_slice(&text).map_err(|error| {
                Error::invalid(format!("`{}` holds another line: {error}", path.display()))
            })?;
            let expected = named(samples, line.sample);
            let Some(done) = done.get_mut(line.sample).filter(|_| line.files == expected) else {
                return Err(Error::invalid(format!(
                    "sample {} of `{}` is made of {:?}, expected {expected:?} of this command: resume with the same inputs, or write to \
                     another folder",
                    line.sample,
                    path.display(),
                    line.files
                )));
            };
            *done = line.error.is_none();
        }
        file.set_len(whole)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(|error| failed("write", &path, &error))?;
        Ok((Self { file, path }, done))
    }

    /// Adds lines.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn add(&mut self, lines: &[Line]) -> Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)
                .map_err(|error| Error::internal(format!("a line is no JSON: {error}")))?;
            text.push(b'\n');
        }
        self.file.write_all(&text).map_err(|error| failed("write", &self.path, &error))
    }
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::invalid(format!("cannot {what} `{}`: {error}", path.display()))
}
