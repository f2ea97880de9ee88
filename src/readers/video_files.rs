//! Video files that are open: the last ones stay in memory, as sequences of one file often follow each other. It must not know sequences.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cpu::video::Video;
use crate::error::{Error, Result};
use crate::limits;

/// The files of a data set.
pub(super) struct Files {
    paths: Vec<PathBuf>,
    /// The last ones that were read, the newest at the end, with their sizes.
    open: Mutex<VecDeque<Open>>,
}

struct Open {
    file: usize,
    bytes: usize,
    video: Arc<Video<'static>>,
}

impl Files {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, open: Mutex::default() }
    }

    pub(super) fn path(&self, file: usize) -> &Path {
        self.paths.get(file).map_or(Path::new(""), PathBuf::as_path)
    }

    /// The video of file `file`.
    pub(super) fn open(&self, file: usize) -> Result<Arc<Video<'static>>> {
        let found = |open: &VecDeque<Open>| {
            open.iter().find(|one| one.file == file).map(|one| Arc::clone(&one.video))
        };
        if let Some(video) = found(&self.open.lock()) {
            return Ok(video);
        }
        let bytes = bytes(self.path(file))?;
        let size = bytes.len();
        let video = Arc::new(Video::open(bytes)?);
        let mut open = self.open.lock();
        open.push_back(Open { file, bytes: size, video: Arc::clone(&video) });
        while open.len() > 1
            && open.iter().map(|one| one.bytes).sum::<usize>() > limits::MAX_READER_VIDEO_BYTES
        {
            open.pop_front();
        }
        Ok(video)
    }

    /// The video of the file at `path`.
    pub(super) fn read(path: &Path) -> Result<Video<'static>> {
        Video::open(bytes(path)?).map_err(|error| error.context(format!("the video `{}`", path.display())))
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| Error::not_found(format!("the video `{}`: {error}", path.display()));
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if usize::try_from(size).map_or(true, |size| size > limits::MAX_SAMPLE_BYTES) {
        return Err(Error::invalid(format!(
            "the video `{}` has {size} bytes, more than the limit of {}",
            path.display(),
            limits::MAX_SAMPLE_BYTES
        )));
    }
    std::fs::read(path).map_err(failed)
}
