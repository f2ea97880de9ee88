//! Video files that are open: the last ones stay in memory, as sequences of one file often follow each other. It must
//! not know sequences.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Tensor;
use super::file::read_file;
use crate::cpu::video::Video;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::tensor::{DType, Sample, Shape};

/// The files of a data set.
pub(super) struct Files {
    paths: Vec<PathBuf>,
    videos: Last<Arc<Video<'static>>>,
    encoded: Last<(Shape, Sample<'static>)>,
}

/// What was made of the last files that were read, the newest at the end: number and bytes of each file.
struct Last<T>(Mutex<VecDeque<(usize, usize, T)>>);

impl<T: Clone> Last<T> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// What `make` makes of file `file`, with the file's bytes, unless it is there.
    fn get(&self, file: usize, make: impl FnOnce() -> Result<(usize, T)>) -> Result<T> {
        if let Some((.., found)) = self.0.lock().iter().find(|(other, ..)| *other == file) {
            return Ok(found.clone());
        }
        let (bytes, made) = make()?;
        let mut last = self.0.lock();
        last.push_back((file, bytes, made.clone()));
        while last.len() > 1
            && last.iter().map(|(_, bytes, _)| bytes).sum::<usize>() > limits::MAX_READER_VIDEO_BYTES
        {
            last.pop_front();
        }
        Ok(made)
    }
}

impl Files {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, videos: Last::new(), encoded: Last::new() }
    }

    pub(super) fn path(&self, file: usize) -> &Path {
        self.paths.get(file).map_or(Path::new(""), PathBuf::as_path)
    }

    /// The video of file `file`.
    pub(super) fn open(&self, file: usize) -> Result<Arc<Video<'static>>> {
        self.videos.get(file, || {
            let bytes = bytes(self.path(file))?;
            Ok((bytes.len(), Arc::new(Video::open(bytes)?)))
        })
    }

    /// The bytes of file `file`, which all that ask for it share.
    pub(super) fn encoded(&self, file: usize, memory: &Arc<HostPool>) -> Result<Tensor> {
        let (shape, bytes) = self.encoded.get(file, || {
            let Tensor { shape, bytes, .. } = read_file(self.path(file), memory)?;
            Ok((bytes.bytes().len(), (shape, bytes)))
        })?;
        Ok(Tensor { dtype: DType::U8, shape, bytes, source: String::new() })
    }

    /// The video of the file at `path`.
    pub(super) fn read(path: &Path) -> Result<Video<'static>> {
        Video::open(bytes(path)?).map_err(|error| error.context(format!("the video `{}`", path.display())))
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| Error::not_found(format!("the video `{}`: {error}", path.display()));
    let metadata = std::fs::metadata(path).map_err(failed)?;
    // A pipe would wait for somebody to write.
    if !metadata.is_file() {
        return Err(Error::invalid(format!("the video `{}` is not a regular file", path.display())));
    }
    let size = metadata.len();
    if usize::try_from(size).map_or(true, |size| size > limits::MAX_SAMPLE_BYTES) {
        return Err(Error::invalid(format!(
            "the video `{}` has {size} bytes, more than the limit of {}",
            path.display(),
            limits::MAX_SAMPLE_BYTES
        )));
    }
    std::fs::read(path).map_err(failed)
}
