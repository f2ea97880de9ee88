//! JPEGs of a batch for the engines, whose library looks at a file more than once: it gets copies of files that
//! somebody else may write to. It must not know the other paths.
//!
//! Engines write what a file has, and leave in memory what was there before, another client's picture perhaps, where it
//! has less than its header promises. A cleared target would not help: the library fills it from memory of its own. So
//! their answer counts only for files that are proven whole, code by code. That takes a thread no longer than it takes
//! an engine to decode them, and is done meanwhile, so whole files are answered as soon as without it; the answer to
//! all others is the host's. Until then nobody but us sees what the engines wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::files::File;
use crate::error::Result;
use crate::gpu::Stream;
use crate::gpu::jpeg::{DevicePath, Engines, Picture, Task, is_whole};
use crate::limits;
use crate::memory::copy_once;

/// What the engines read of the batch at hand where files may change, one behind the other.
#[derive(Default)]
pub(super) struct Copies {
    bytes: Vec<u8>,
}

impl Copies {
    /// Room for copies of those files of `tasks` that may change. If there are some, what was copied before goes: the
    /// engines must be done with it.
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

    /// Helps, waits for the others, and starts `engines` on `tasks`, those that this was begun for. The memory of the
    /// copies must stay until the batch is done. Tells which tasks are refused, also because they are another picture
    /// by now.
    ///
    /// # Errors
    /// Those of [`DevicePath::start`].
    pub(super) fn start(
        &self,
        engines: &mut Engines,
        stream: &Arc<Stream>,
        tasks: &'c [(Task<'_>, File<'_>)],
    ) -> Result<Proving<'c>> {
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
                    let copy: Option<&'c [u8]> = copies.next().flatten().map(|(_, own)| &*own);
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
        let refused = refused.into_iter().filter_map(|place| places.get(place).copied());
        let refused: Vec<usize> = refused.chain(changed).collect();
        let files = places.into_iter().zip(started.iter().map(|task| task.picture.bytes()));
        let files: Vec<_> = files.filter(|(place, _)| !refused.contains(place)).collect();
        Ok(Proving { files, next: AtomicUsize::new(0), refused: Mutex::new(refused) })
    }
}

/// Files that the engines have, which any number of threads look at together.
pub(super) struct Proving<'c> {
    /// Those that they have not refused: which task each is.
    files: Vec<(usize, &'c [u8])>,
    next: AtomicUsize,
    refused: Mutex<Vec<usize>>,
}

impl Proving<'_> {
    /// How many threads have something to look at.
    pub(super) fn threads(&self) -> usize {
        let bytes: usize = self.files.iter().map(|(_, file)| file.len()).sum();
        if bytes < SPREAD_BYTES { 1 } else { self.files.len() }
    }

    /// Looks at files until all are taken.
    pub(super) fn work(&self) {
        while let Some(&(place, file)) = self.files.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if !is_whole(file) {
                self.refused.lock().push(place);
            }
        }
    }

    /// The places of tasks whose answer is not the engines', once all threads are done.
    pub(super) fn into_refused(self) -> Vec<usize> {
        self.refused.into_inner()
    }
}

/// Bytes of files that one thread looks through before others have begun.
const SPREAD_BYTES: usize = 32 << 10;
