//! Files of many samples: opened when they are first read, and the bytes at a place of one. It must not know what the
//! bytes are.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::file::open_file;
use crate::error::{Error, Layer, Result};
use crate::limits;
use crate::memory::{HostBuffer, HostPool};

/// A file and its size when it was opened.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) file: Arc<File>,
    pub(super) size: u64,
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
        let failed = |error| unread(path, &error);
        let file = open_file(Path::new(path)).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        Ok(Self { file: Arc::new(file), size })
    }
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
        let Opened { file, size } = self.opened(number)?;
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
        file.read_exact_at(buffer.bytes_mut().get_mut(..length).unwrap_or_default(), at)
            .map_err(|error| unread(path, &error))?;
        Ok(Arc::new(buffer))
    }
}

/// Why the file at `path` cannot be read.
fn unread(path: &str, error: &std::io::Error) -> Error {
    Error::not_found(error.to_string()).context(Layer::File(path.to_owned()))
}

/// The text of a file, such as an index.
///
/// # Errors
/// A file that cannot be read, is no text or has more than [`limits::MAX_READER_TEXT_BYTES`].
pub(super) fn text(path: &str) -> Result<String> {
    let failed = |error| unread(path, &error);
    let opened = Opened::new(path)?;
    if usize::try_from(opened.size).map_or(true, |size| size > limits::MAX_READER_TEXT_BYTES) {
        let (size, most) = (opened.size, limits::MAX_READER_TEXT_BYTES);
        return Err(Error::invalid(format!("the file `{path}` has {size} bytes, expected at most {most}")));
    }
    let mut text = String::new();
    opened.file.take(opened.size).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
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
