//! Files of many samples: opened when they are first read, and the bytes at a place of one. It must not know what the
//! bytes are.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::stored::Stored;
use crate::error::{Error, Layer, Result};
use crate::limits;
use crate::memory::{HostBuffer, HostPool};

/// A file and its size when it was opened.
#[derive(Clone)]
pub(super) struct Opened {
    content: Content,
    pub(super) size: u64,
}

#[derive(Clone)]
enum Content {
    File(Arc<File>),
    Stored(Stored),
}

/// Files by their numbers.
pub(super) struct Pieces {
    paths: Vec<String>,
    /// Those that are open, the ones that were opened last at the end.
    open: Mutex<VecDeque<(usize, Opened)>>,
}

impl Opened {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Not found, which names the file.
    pub(super) fn new(path: &str) -> Result<Self> {
        if let Some(stored) = Stored::at(Path::new(path))? {
            return Ok(Self { size: stored.size()?, content: Content::Stored(stored) });
        }
        let failed = |error| unread(path, &error);
        let file = open_file(Path::new(path)).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        Ok(Self { content: Content::File(Arc::new(file)), size })
    }

    /// Fills `to` with what is there from byte `at` on.
    ///
    /// # Errors
    /// Not found for what cannot be read.
    pub(super) fn read(&self, at: u64, to: &mut [u8]) -> Result<()> {
        match &self.content {
            Content::File(file) => read(file, at, to),
            Content::Stored(stored) => stored.read(at, to),
        }
    }

    /// The same of a small piece, behind which the next one will be.
    ///
    /// # Errors
    /// As there.
    pub(super) fn read_near(&self, at: u64, to: &mut [u8]) -> Result<()> {
        match &self.content {
            Content::File(file) => read(file, at, to),
            Content::Stored(stored) => stored.read_near(self.size, at, to),
        }
    }
}

/// Opens a file. Not a pipe, which would wait for somebody to write.
pub(super) fn open_file(path: &Path) -> std::io::Result<std::fs::File> {
    if std::fs::metadata(path)?.is_file() {
        return std::fs::File::open(path);
    }
    Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"))
}

fn read(file: &File, at: u64, to: &mut [u8]) -> Result<()> {
    file.read_exact_at(to, at).map_err(|error| Error::not_found(error.to_string()))
}

impl Pieces {
    /// The files at `paths`, none of which is opened yet.
    pub(super) fn new(paths: Vec<String>) -> Self {
        Self { paths, open: Mutex::default() }
    }

    /// The path of file `number`, as it was given.
    pub(super) fn path(&self, number: usize) -> &str {
        self.paths.get(number).map_or("", String::as_str)
    }

    fn opened(&self, number: usize) -> Result<Opened> {
        if let Some((_, opened)) = self.open.lock().iter().find(|(open, _)| *open == number) {
            return Ok(opened.clone());
        }
        // Two threads may open it: one of the two is closed soon.
        let opened = Opened::new(self.path(number))?;
        let mut open = self.open.lock();
        if open.len() >= limits::MAX_OPEN_PIECES {
            open.pop_front();
        }
        open.push_back((number, opened.clone()));
        Ok(opened)
    }

    /// `length` bytes of file `number` from `at` on.
    ///
    /// # Errors
    /// A place that is not in the file, more bytes than a sample may have, a file that cannot be read.
    pub(super) fn read(
        &self,
        number: usize,
        at: u64,
        length: u64,
        memory: &Arc<HostPool>,
    ) -> Result<Arc<HostBuffer>> {
        let path = self.path(number);
        let opened = self.opened(number)?;
        let size = opened.size;
        if at.checked_add(length).is_none_or(|end| end > size) {
            return Err(Error::invalid(format!(
                "the file `{path}` has {size} bytes, expected {length} from byte {at} on"
            )));
        }
        let length = usize::try_from(length).ok().filter(|&length| length <= limits::MAX_SAMPLE_BYTES);
        let length = length.ok_or_else(|| {
            let most = limits::MAX_SAMPLE_BYTES;
            Error::invalid(format!("a sample at byte {at} of the file `{path}` has more than {most} bytes"))
        })?;
        let mut buffer = memory.take(length)?;
        let read = opened.read(at, buffer.bytes_mut().get_mut(..length).unwrap_or_default());
        read.map_err(|error| named(path, error))?;
        Ok(Arc::new(buffer))
    }
}

/// Why the file at `path` cannot be read.
fn unread(path: &str, error: &std::io::Error) -> Error {
    named(path, Error::not_found(error.to_string()))
}

/// The error, which names the file.
fn named(path: &str, error: Error) -> Error {
    if error.file().is_some() { error } else { error.context(Layer::File(path.to_owned())) }
}

/// The text of a file, such as an index.
///
/// # Errors
/// A file that cannot be read, is no text or has more than [`limits::MAX_READER_TEXT_BYTES`].
pub(super) fn text(path: &str) -> Result<String> {
    let opened = Opened::new(path)?;
    if usize::try_from(opened.size).map_or(true, |size| size > limits::MAX_READER_TEXT_BYTES) {
        let (size, most) = (opened.size, limits::MAX_READER_TEXT_BYTES);
        return Err(Error::invalid(format!("the file `{path}` has {size} bytes, expected at most {most}")));
    }
    let mut bytes = vec![0; opened.size as usize];
    opened.read(0, &mut bytes).map_err(|error| named(path, error))?;
    String::from_utf8(bytes).map_err(|_| named(path, Error::invalid("it is no text, expected UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_not_in_a_file_are_errors() {
        let path = std::env::temp_dir().join(format!("gesso-pieces-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let pieces = Pieces::new(vec![path.display().to_string(), "/nowhere".to_owned()]);
        let memory = Arc::default();
        assert_eq!(&pieces.read(0, 3, 4, &memory).unwrap().bytes()[..4], b"3456");
        assert!(pieces.read(0, 10, 0, &memory).is_ok());
        for (at, length) in [(8, 3), (11, 0), (u64::MAX, 1), (1, u64::MAX), (1 << 63, 1 << 63)] {
            let error = pieces.read(0, at, length, &memory).err().unwrap().to_string();
            assert!(error.contains("has 10 bytes, expected"), "{error}");
        }
        assert!(pieces.read(1, 0, 1, &memory).is_err() && pieces.read(2, 0, 1, &memory).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(text("/dev/zero").is_err() && text("/tmp").is_err());
    }

    #[test]
    fn few_files_stay_open() {
        let folder = std::env::temp_dir().join(format!("gesso-open-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let count = 2 * limits::MAX_OPEN_PIECES;
        let paths: Vec<String> =
            (0..count).map(|i| folder.join(i.to_string()).display().to_string()).collect();
        paths.iter().enumerate().for_each(|(i, path)| std::fs::write(path, [i as u8]).unwrap());
        let pieces = Pieces::new(paths);
        for i in (0..count).chain(0..count) {
            assert_eq!(pieces.read(i, 0, 1, &Arc::default()).unwrap().bytes()[0], i as u8);
            assert!(pieces.open.lock().len() <= limits::MAX_OPEN_PIECES);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
