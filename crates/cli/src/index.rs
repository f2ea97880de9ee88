//! `gesso index`: where the samples are in files of many, as readers want to know it.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gesso::error::{Error, Result};

use crate::Exit;
use crate::progress;
use crate::terminal::print;

/// Make the index of a data set for a reader.
#[derive(Subcommand)]
pub(crate) enum Kind {
    /// Of TFRecord files: each line where a record begins and how many bytes it has.
    Tfrecord(Files),
    /// Of MXNet's RecordIO files: each line a number and where that record begins.
    Recordio(Files),
    /// Of tar archives, whose samples are the files with the same name up to the first dot.
    Webdataset(Files),
}

/// What is read and written.
#[derive(Args)]
pub(crate) struct Files {
    /// Files to read; the index of `a.tar` is written to `a.idx` beside it.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where the index goes, for one file; or the folder for those of several.
    #[arg(long, short)]
    out: Option<PathBuf>,
}

/// How a file holds its samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TFRecord.
    Tfrecord,
    /// MXNet's RecordIO.
    Recordio,
    /// A tar archive.
    Webdataset,
}

/// A file that is read from its beginning.
struct Progressing<'p, R> {
    file: BufReader<R>,
    at: u64,
    size: u64,
    /// Is told how far it got.
    progress: &'p dyn Fn(u64),
}

/// Runs the command.
pub(crate) fn index(kind: &Kind) -> Result<Exit> {
    let (files, format) = match kind {
        Kind::Tfrecord(files) => (files, Format::Tfrecord),
        Kind::Recordio(files) => (files, Format::Recordio),
        Kind::Webdataset(files) => (files, Format::Webdataset),
    };
    for path in &files.files {
        let failed =
            |path: &Path, error: std::io::Error| Error::invalid(format!("`{}`: {error}", path.display()));
        let lines = lines_of(path, format).map_err(|error| failed(path, error))?;
        let target = files.target(path);
        let samples = lines.len() - usize::from(format == Format::Webdataset);
        write(&target, &lines).map_err(|error| failed(&target, error))?;
        print(&format!("{}: {samples} samples\n", target.display()));
    }
    Ok(Exit::Success)
}

fn lines_of(path: &Path, format: Format) -> std::io::Result<Vec<String>> {
    // Opening a pipe would wait for somebody to write, and none can be read again.
    let metadata = path.metadata()?;
    if !metadata.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let (file, size) = (File::open(path)?, metadata.len());
    let bar = progress::bar(usize::try_from(size).unwrap_or(usize::MAX), "bytes");
    lines(format, file, size, &|at| bar.set_position(at))
}

/// The lines of the index of a file of `size` bytes. `progress` is told how many of them were read.
///
/// # Errors
/// A file that cannot be read or is no such file.
pub fn lines(
    format: Format,
    file: impl Read + Seek,
    size: u64,
    progress: &dyn Fn(u64),
) -> std::io::Result<Vec<String>> {
    let source = Progressing { file: BufReader::new(file), at: 0, size, progress };
    match format {
        Format::Tfrecord => tfrecord(source),
        Format::Recordio => recordio(source),
        Format::Webdataset => webdataset(source),
    }
}

impl Files {
    fn target(&self, path: &Path) -> PathBuf {
        let beside = path.with_extension("idx");
        match &self.out {
            Some(folder) if folder.is_dir() || self.files.len() > 1 => {
                folder.join(beside.file_name().unwrap_or_default())
            }
            Some(file) => file.clone(),
            None => beside,
        }
    }
}

/// Writes an index, whole or not at all: a reader could not tell that one is cut off.
fn write(path: &Path, lines: &[String]) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = write_lines(&part, lines).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // It may not even be there.
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn write_lines(path: &Path, lines: &[String]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for line in lines {
        writeln!(file, "{line}")?;
    }
    file.flush()?;
    file.into_inner()?.sync_all()
}

fn wrong(message: String) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, message)
}

impl<R: Read + Seek> Progressing<'_, R> {
    /// The next bytes.
    fn take<const N: usize>(&mut self) -> std::io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file
            .read_exact(&mut bytes)
            .map_err(|_| wrong(format!("it ends within a record, at byte {}", self.at)))?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// Goes to where the next record begins.
    fn go(&mut self, to: u64) -> std::io::Result<()> {
        if to > self.size {
            return Err(wrong(format!("it has {} bytes, but its last record ends at {to}", self.size)));
        }
        let by = to.saturating_sub(self.at);
        self.file.seek_relative(i64::try_from(by).map_err(|_| wrong("a record is too long".to_owned()))?)?;
        self.at = to;
        (self.progress)(to);
        Ok(())
    }
}

/// A record is its length (8 bytes), that number's checksum (4), its bytes, their checksum (4).
fn tfrecord(mut source: Progressing<'_, impl Read + Seek>) -> std::io::Result<Vec<String>> {
    let mut lines = Vec::new();
    while source.at < source.size {
        let begin = source.at;
        let length = u64::from_le_bytes(source.take()?);
        let bytes = length
            .checked_add(16)
            .ok_or_else(|| wrong(format!("the record at {begin} has {length} bytes")))?;
        source.go(begin.saturating_add(bytes))?;
        lines.push(format!("{begin} {bytes}"));
    }
    Ok(lines)
}

const RECORDIO_MAGIC: u32 = 0xCED7_230A;

/// A record is a magic number (4 bytes), its length with three bits that say which part of one it is, its bytes, filled
/// up to a multiple of 4.
fn recordio(mut source: Progressing<'_, impl Read + Seek>) -> std::io::Result<Vec<String>> {
    let mut lines = Vec::new();
    while source.at < source.size {
        let begin = source.at;
        let magic = u32::from_le_bytes(source.take()?);
        if magic != RECORDIO_MAGIC {
            return Err(wrong(format!(
                "no record begins at byte {begin}: {magic:#x}, expected {RECORDIO_MAGIC:#x}"
            )));
        }
        let word = u32::from_le_bytes(source.take()?);
        source.go(begin + 8 + u64::from(word & 0x1FFF_FFFF).next_multiple_of(4))?;
        if matches!(word >> 29, 0 | 1) {
            lines.push(format!("{}\t{begin}", lines.len()));
        }
    }
    Ok(lines)
}

/// A line with the version and the number of samples; then for each sample the extension, the place, the size and the
/// name of each file.
fn webdataset(mut source: Progressing<'_, impl Read + Seek>) -> std::io::Result<Vec<String>> {
    let (mut samples, mut last): (Vec<Vec<String>>, Option<String>) = (Vec::new(), None);
    source.file.seek(SeekFrom::Start(0))?;
    let mut archive = tar::Archive::new(&mut source.file);
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let (at, size) = (entry.raw_file_position(), entry.size());
        (source.progress)(at);
        let name = path.rfind('/').map_or(0, |slash| slash + 1);
        let Some(dot) = path[name..].find('.').map(|dot| name + dot).filter(|&dot| dot > name) else {
            continue;
        };
        if path.contains(char::is_whitespace) {
            return Err(wrong(format!("the name `{path}` has spaces, which an index cannot hold")));
        }
        if last.as_deref() != Some(&path[..dot]) {
            samples.push(Vec::new());
            last = Some(path[..dot].to_owned());
        }
        if let Some(parts) = samples.last_mut() {
            parts.push(format!("{} {at} {size} {path}", &path[dot + 1..]));
        }
    }
    let head = format!("v1.2 {}", samples.len());
    Ok(std::iter::once(head).chain(samples.iter().map(|parts| parts.join(" "))).collect())
}
