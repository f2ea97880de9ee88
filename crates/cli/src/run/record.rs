//! What a folder of outputs holds beside them, so that a run that was cut off can go on: `pipeline.dali` and `run.json`
//! say what ran, and `samples.jsonl` has a line for each sample, which is written behind its outputs.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gesso::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::inputs::Samples;
use crate::names::shown;
use crate::terminal::{read_pipeline, write_file};

const LINES: &str = "samples.jsonl";
/// While lines are sorted.
const SORTED: &str = "samples.jsonl.part";
const ABOUT: &str = "run.json";
const PIPELINE: &str = "pipeline.dali";

/// What makes outputs what they are, beside the pipeline.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct About {
    /// Samples of a batch, by which random numbers are drawn.
    pub(super) batch: usize,
    /// What outputs are written as.
    pub(super) format: Vec<String>,
}

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
    samples.files(row).into_iter().map(|(input, path)| (input.to_owned(), shown(path))).collect()
}

/// Whether an earlier run wrote to `folder`.
pub(super) fn is_in(folder: &Path) -> bool {
    folder.join(LINES).exists()
}

pub(super) struct Record {
    folder: PathBuf,
    file: File,
}

impl Record {
    /// A new one in `folder`, of a pipeline's file.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn begin(folder: &Path, pipeline: &[u8], about: &About) -> Result<Self> {
        write_file(&folder.join(PIPELINE), pipeline)?;
        let text = serde_json::to_vec(about).map_err(|error| Error::internal(error.to_string()))?;
        write_file(&folder.join(ABOUT), &text)?;
        let path = folder.join(LINES);
        let file = File::create(&path).map_err(|error| failed("make", &path, &error))?;
        Ok(Self { folder: folder.to_owned(), file })
    }

    /// That in `folder`, and which of `samples` are done: those without an error whose outputs `are_there`.
    ///
    /// # Errors
    /// What the system says; invalid when it is of another pipeline, of other settings or of other files.
    pub(super) fn resume(
        folder: &Path,
        (pipeline, about): (&[u8], &About),
        samples: &Samples,
        are_there: impl Fn(usize) -> bool,
    ) -> Result<(Self, Vec<bool>)> {
        if read_pipeline(&folder.join(PIPELINE))? != pipeline {
            return Err(Error::invalid(format!(
                "the outputs in `{}` are of another pipeline, expected that of its `{PIPELINE}`",
                folder.display()
            )));
        }
        let path = folder.join(ABOUT);
        let text = std::fs::read(&path).map_err(|error| failed("read", &path, &error))?;
        let then: About = serde_json::from_slice(&text).map_err(|error| {
            Error::invalid(format!("`{}` is no record of a run: {error}", path.display()))
        })?;
        if then != *about {
            return Err(Error::invalid(format!(
                "the outputs in `{}` were made with {then:?}, expected the same, found {about:?}",
                folder.display()
            )));
        }
        let path = folder.join(LINES);
        let opened = OpenOptions::new().read(true).write(true).open(&path);
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
            let line = parsed(&text, &path)?;
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
            *done = line.error.is_none() && are_there(line.sample);
        }
        file.set_len(whole)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(|error| failed("write", &path, &error))?;
        Ok((Self { folder: folder.to_owned(), file }, done))
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
        self.file.write_all(&text).map_err(|error| failed("write", &self.folder.join(LINES), &error))
    }

    /// Leaves the last line of each sample, in their order.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn finish(self) -> Result<()> {
        let path = self.folder.join(LINES);
        let text = std::fs::read(&path).map_err(|error| failed("read", &path, &error))?;
        let mut lines = BTreeMap::new();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            lines.insert(parsed(line, &path)?.sample, line);
        }
        let sorted = lines.into_values().collect::<Vec<_>>().concat();
        if sorted == text {
            return Ok(());
        }
        let part = self.folder.join(SORTED);
        write_file(&part, &sorted)?;
        std::fs::rename(&part, &path).map_err(|error| failed("write", &path, &error))
    }
}

fn parsed(text: &[u8], path: &Path) -> Result<Line> {
    serde_json::from_slice(text)
        .map_err(|error| Error::invalid(format!("`{}` holds another line: {error}", path.display())))
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::invalid(format!("cannot {what} `{}`: {error}", path.display()))
}
