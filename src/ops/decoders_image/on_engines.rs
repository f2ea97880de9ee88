//! JPEGs of a batch for the engines, whose library looks at a file more than once: it gets copies of files that somebody else may
//! write to. It must not know the other paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::files::File;
use crate::error::Result;
use crate::gpu::Stream;
use crate::gpu::jpeg::{DevicePath, Engines, Picture, Task};
use crate::limits;
use crate::memory::copy_once;

/// What the engines read of the batch at hand where files may change, one behind the other.
#[derive(Default)]
pub(super) struct Copies {
    bytes: Vec<u8>,
}

impl Copies {
    /// Room for copies of those files of `tasks` that may change. If there are some, what was copied before goes: the engines must be done
    /// with it.
    pub(super) fn begin<'c>(&'c mut self, tasks: &'c [(Task<'_>, File<'_>)]) -> Copying<'c> {
        let foreign = || tasks.iter().map(|(_, file)| file).filter(|file| file.may_change());
        let total = foreign().map(|file| file.all.len()).sum();
        let mut jobs = Vec::new();
        // Without tasks the engines may still read what was copied before.
        if total > 0 {
            if self.bytes.len() > limits::MAX_RETAINED_ENGINE_BYTES.max(total) {
                self.bytes = Vec::new();
            }
            self.bytes.resize(self.bytes.len().max(total), 0);
            let mut rest = self.bytes.as_mut_slice();
            for file in foreign() {
                let (own, behind) = std::mem::take(&mut rest).split_at_mut(file.all.len());
                rest = behind;
                jobs.push(Mutex::new(Some((file.all, own))));
            }
        }
        Copying { jobs, next: AtomicUsize::new(0), done: AtomicUsize::new(0) }
    }
}

/// A file, and where its copy goes.
type Job<'c> = (&'c [u8], &'c mut [u8]);

/// Copies that any number of threads make together.
pub(super) struct Copying<'c> {
    jobs: Vec<Mutex<Option<Job<'c>>>>,
    next: AtomicUsize,
    done: AtomicUsize,
}

impl<'c> Copying<'c> {
    /// How many files there are to copy.
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Copies files until all are taken.
    pub(super) fn work(&self) {
        while let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if let Some((file, own)) = job.lock().as_mut() {
                copy_once(file, own);
            }
            self.done.fetch_add(1, Ordering::Release);
        }
    }

    /// Helps, waits for the others, and starts `engines` on `tasks`, those that this was begun for. The memory of the copies must stay until the
    /// batch is done. Returns the places of tasks that are refused, also because they are another picture by now.
    ///
    /// # Errors
    /// Those of [`DevicePath::start`].
    pub(super) fn start(
        &self,
        engines: &mut Engines,
        stream: &Arc<Stream>,
        tasks: &[(Task<'_>, File<'_>)],
    ) -> Result<Vec<usize>> {
        self.work();
        // Whoever still copies has one file left.
        while self.done.load(Ordering::Acquire) < self.jobs.len() {
            std::thread::yield_now();
        }
        let mut copies = self.jobs.iter().map(|job| job.lock().take());
        let (mut changed, mut started, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (Task { picture, target }, file)) in tasks.iter().enumerate() {
            let picture = match file.may_change() {
                false => Some(*picture),
                true => {
                    let copy: Option<&[u8]> = copies.next().flatten().map(|(_, own)| &*own);
                    copy.and_then(Picture::read).filter(|own| own.frame() == picture.frame())
                }
            };
            match picture {
                Some(picture) => {
                    started.push(Task { picture, target: target.clone() });
                    places.push(place);
                }
                None => changed.push(place),
            }
        }
        let refused = engines.start(stream, &started)?;
        Ok(refused.into_iter().filter_map(|place| places.get(place).copied()).chain(changed).collect())
    }
}
