//! What threads of the host do for a group of images, each taking the next one that is left. It must not know devices.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use parking_lot::Mutex;
use rayon::ThreadPool;

use super::image::Image;
use crate::cpu::decode::{self, Decoder};
use crate::gpu::demote;
use crate::gpu::jpeg::Watch;
use crate::gpu::jpeg::sm::{self, Scan};
use crate::operator::Inputs;
use crate::ops::decode::decoders_image::files::Files;
use crate::ops::decode::decoders_image::on_engines::Proving;
use crate::ops::decode::decoders_image::on_host::decode_on_host;

/// What decodes files on the host, and takes the errors of images.
#[derive(Clone, Copy)]
pub(super) struct Host<'w> {
    pub(super) decoder: &'w Decoder,
    pub(super) files: &'w Files,
    pub(super) inputs: Inputs<'w>,
}

/// An image whose data goes to the SMs: where it is written, and what is found in it.
type Reading<'t> = (&'t Image<'t>, &'t mut [u8], &'t mut Option<Scan>);

/// What is left to do for a group, and what was found.
pub(super) struct Together<'t> {
    host: Host<'t>,
    data: Mutex<IntoIter<Reading<'t>>>,
    images: Mutex<IntoIter<(&'t Image<'t>, &'t mut [u8])>>,
    /// Threads of the batch, where some of them have nothing to do.
    idle: Option<&'t ThreadPool>,
    /// Whether the device waits for the data, so that it should leave the caches.
    is_awaited: bool,
    /// Looks at the engines now and then.
    pub(super) watch: Watch,
    decoded: AtomicUsize,
    /// Of JPEGs that were decoded: how long it takes to refuse a file, or to inflate one, says nothing about the
    /// engines' work.
    busy: AtomicU64,
    expected: AtomicU64,
    /// What the engines have, once they have started.
    proving: OnceLock<Option<Proving<'t>>>,
}

impl<'t> Together<'t> {
    pub(super) fn new(
        host: Host<'t>,
        data: Vec<Reading<'t>>,
        images: Vec<(&'t Image<'t>, &'t mut [u8])>,
        watch: Watch,
        idle: Option<&'t ThreadPool>,
        is_awaited: bool,
    ) -> Self {
        let (data, images) = (Mutex::new(data.into_iter()), Mutex::new(images.into_iter()));
        let [busy, expected] = [const { AtomicU64::new(0) }; 2];
        let decoded = AtomicUsize::new(0);
        let proving = OnceLock::new();
        Self { host, data, images, idle, is_awaited, watch, decoded, busy, expected, proving }
    }

    /// Reads data and decodes images until all are taken.
    pub(super) fn fill(&self) {
        // What the SMs wait for first.
        while let Some((image, out, scan)) = next_of(&self.data) {
            *scan = self.read(image, out);
        }
        while let Some((image, out)) = next_of(&self.images) {
            self.decode(image, out);
        }
    }

    fn read(&self, image: &Image<'_>, out: &mut [u8]) -> Option<Scan> {
        let coded = &image.planned.as_ref()?.coded;
        let scan = sm::read_file(coded, image.file.may_change(), out, self.idle);
        if self.is_awaited {
            demote(out);
        }
        scan
    }

    fn decode(&self, image: &Image<'_>, out: &mut [u8]) {
        let Host { decoder, files, inputs } = self.host;
        let begun = Instant::now();
        let done = decode_on_host(decoder, files, inputs, (image.index, Some(&image.job)), out);
        self.decoded.fetch_add(usize::from(done), Ordering::Relaxed);
        if done && image.job.info.format == decode::Format::Jpeg {
            let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            self.busy.fetch_add(nanos(begun.elapsed()), Ordering::Relaxed);
            self.expected.fetch_add(nanos(image.size().on_a_thread()), Ordering::Relaxed);
        }
        self.watch.look();
    }

    /// The engines have `started`, or have nothing to do.
    pub(super) fn proves(&self, started: Option<Proving<'t>>) {
        self.proving.get_or_init(|| started);
    }

    /// Looks at the engines' files until all are taken, if they have some.
    pub(super) fn prove(&self) {
        if let Some(Some(proving)) = self.proving.get() {
            proving.work();
            self.watch.look();
        }
    }

    /// The watch, places of what the engines refused, how many images threads decoded, how long this was expected to
    /// take, and how long it took.
    pub(super) fn into_found(self) -> (Watch, Vec<usize>, usize, [Duration; 2]) {
        let refused = self.proving.into_inner().flatten().map_or_else(Vec::new, Proving::into_refused);
        let took = [self.expected, self.busy].map(|nanos| Duration::from_nanos(nanos.into_inner()));
        (self.watch, refused, self.decoded.into_inner(), took)
    }
}

/// The next of items that threads take in turn.
fn next_of<I: Iterator>(items: &Mutex<I>) -> Option<I::Item> {
    items.lock().next()
}
