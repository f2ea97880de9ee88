//! A batch of images while it is decoded: which image is decoded where, memory for their pixels, and what becomes of
//! those that engines, SMs and libraries refuse. It must not know how a group of them is decoded.
//!
//! ```text
//! classify -> reserve -> decode_groups -> decode_others -> record -> decode_again -> account
//!             engines'   engines, SMs     JPEG 2000, HEIC             by threads what
//!             pixels     and threads                                  others refused
//! ```

use super::DeviceDecoder;
use super::choice::bound_sent;
use super::group::{Group, Shares};
use super::image::{Home, Image, Library, bytes_of, homes};
use super::threads::Host;
use crate::deadline::Watch;
use crate::error::Result;
use crate::gpu::Report;
use crate::gpu::jpeg::{DevicePath, Path, Task};
use crate::memory::DeviceBytes;
use crate::operator::{GpuCx, Source};
use crate::ops::decode::decoders_image::files::{File, missing_sample};
use crate::ops::decode::decoders_image::finish::Extent;
use crate::ops::decode::decoders_image::on_sms::Doubts;
use crate::ops::decode::decoders_image::on_video_engines::Still;
use crate::ops::decode::decoders_image::reading::{Read, Unread};

/// See the module.
pub(super) struct Batch<'b, 'a, 'r> {
    pub(super) device: &'b mut DeviceDecoder,
    pub(super) host: Host<'b>,
    /// Images in all.
    count: usize,
    /// What each of the paths decodes.
    engines: Vec<&'b Image<'a>>,
    pub(super) sms: Vec<&'b Image<'a>>,
    pub(super) threads: Vec<&'b Image<'a>>,
    others: Vec<&'b Image<'a>>,
    /// What has been refused, for the threads.
    pub(super) again: Vec<&'b Image<'a>>,
    /// Where the pixels of engines and libraries go.
    engine_homes: Vec<Home<'a>>,
    other_homes: Vec<Home<'a>>,
    pub(super) tasks: Vec<(Task<'a>, File<'a>)>,
    /// What the reader has not read yet, where there is one.
    pub(super) unread: Option<Unread<'r>>,
    /// Bytes of pixels that the host sends to a reader.
    sent: usize,
    /// Places among the tasks, and among the others.
    pub(super) refused_by_engines: Vec<usize>,
    refused_by_libraries: Vec<usize>,
    /// What may turn out to be damaged: reports of the groups, and sample and bytes of the output for each image in
    /// them.
    pub(super) reports: Vec<Report>,
    pub(super) doubtful: Vec<(usize, usize)>,
}

impl<'b, 'a, 'r> Batch<'b, 'a, 'r> {
    /// Decides where each of `images` is decoded; the other ones are for libraries and video engines.
    pub(super) fn classify(
        device: &'b mut DeviceDecoder,
        host: Host<'b>,
        [images, others]: [&'b [Image<'a>]; 2],
        cx: &GpuCx<'_>,
        read: Option<Read<'r>>,
    ) -> Self {
        let paths = device.paths(images, cx.cpu.pool.current_num_threads(), device.wish);
        let on = |wanted: Path| {
            let images = images.iter().zip(&paths).filter(move |(_, path)| **path == wanted);
            images.map(|(image, _)| image).collect::<Vec<_>>()
        };
        let (engines, sms, mut threads) = (on(Path::Engines), on(Path::Sm), on(Path::Threads));
        let most = cx.recorder.gpu().most_of_a_value();
        let sent = bound_sent(&mut threads, host.inputs, most, 0);
        // The longest first, so that no thread is left with one at the end.
        threads.sort_by_key(|image| std::cmp::Reverse(image.file.all.len()));
        Self {
            device,
            host,
            count: images.len() + others.len(),
            engines,
            sms,
            threads,
            others: others.iter().collect(),
            again: Vec::new(),
            engine_homes: Vec::new(),
            other_homes: Vec::new(),
            tasks: Vec::new(),
            unread: read.map(|read| Unread::new(read, host.inputs.batch_size())),
            sent,
            refused_by_engines: Vec::new(),
            refused_by_libraries: Vec::new(),
            reports: Vec::new(),
            doubtful: Vec::new(),
        }
    }

    /// Memory for pixels that are there when all of the batch is.
    pub(super) fn reserve(&mut self, cx: &mut GpuCx<'_>) -> Result<()> {
        let whole = [&self.engines, &self.others]
            .map(|images| bytes_of(images, &self.device.finish, Extent::Picture));
        let threads = self.threads.iter();
        let more = threads.map(|image| image.own_bytes(Extent::Picture) - image.only_sent_bytes());
        let canvases = self.others.iter().map(|image| image.library_bytes());
        cx.recorder.wait_for_room(whole.into_iter().chain(more).chain(canvases).sum());
        self.engine_homes = self.homes(cx, &self.engines)?;
        self.other_homes = self.homes(cx, &self.others)?;
        for (image, home) in self.engines.iter().zip(&self.engine_homes) {
            let (picture, target) = (image.picture.ok_or_else(missing_sample)?, home.stored.clone());
            self.tasks.push((Task { picture, target }, image.file));
        }
        if self.tasks.is_empty() {
            self.device.speeds.engines_rested();
        }
        Ok(())
    }

    /// Where whole pictures of `images` go.
    fn homes(&self, cx: &mut GpuCx<'_>, images: &[&Image<'a>]) -> Result<Vec<Home<'a>>> {
        let bytes = bytes_of(images, &self.device.finish, Extent::Picture);
        let memory = memory_of(bytes, |bytes| Ok(DeviceBytes::of(&cx.recorder.allocate(bytes)?, 0, bytes)))?;
        let homes = homes(images, &self.device.finish, Extent::Picture, memory.as_ref())?;
        homes.into_iter().map(|home| home.ok_or_else(missing_sample)).collect()
    }

    /// Decodes what is no JPEG behind the groups, and lets what follows wait for the engines.
    pub(super) fn decode_others(&mut self, cx: &mut GpuCx<'_>) -> Result<()> {
        // Not before the SMs have begun: they need not wait for the engines.
        if let Some(engines) = &self.device.engines {
            engines.join(cx.recorder);
        }
        let others = self.others.iter().zip(&self.other_homes).enumerate();
        let (wavelets, stills): (Vec<_>, Vec<_>) =
            others.partition(|(_, (image, _))| image.library == Some(Library::NvJpeg2000));
        let files = wavelets.iter().map(|(_, (image, _))| (&image.job, image.file));
        let targets: Vec<_> = wavelets.iter().map(|(_, (_, home))| home.stored.clone()).collect();
        let refused = self.device.nvjpeg2000.decode(cx.recorder, files, &targets)?;
        self.device.decoded.sms += wavelets.len() - refused.len();
        let places = |refused: Vec<usize>, all: &[(usize, _)]| {
            refused.into_iter().filter_map(|i| all.get(i).map(|(place, _)| *place)).collect::<Vec<_>>()
        };
        self.refused_by_libraries = places(refused, &wavelets);
        // Behind the library, which works on its own: this waits for its pictures.
        let (deadline, failures) = (cx.cpu.deadline, self.host.inputs.failures());
        let files = stills.iter().map(|(_, (image, home))| Still {
            job: &image.job,
            file: image.file,
            target: home.stored.clone(),
            watch: Watch::new(deadline, failures.member(image.index)),
        });
        let refused = self.device.video_engines.decode(cx, &files.collect::<Vec<_>>())?;
        self.device.decoded.engine += stills.len() - refused.len();
        self.refused_by_libraries.extend(places(refused, &stills));
        Ok(())
    }

    /// Records what makes outputs of whole pictures, and notes those that are refused.
    pub(super) fn record(&mut self, cx: &mut GpuCx<'_>) -> Result<()> {
        let mut made = Vec::new();
        for (images, homes, refused) in [
            (&self.engines, &self.engine_homes, &self.refused_by_engines),
            (&self.others, &self.other_homes, &self.refused_by_libraries),
        ] {
            for (i, (image, home)) in images.iter().zip(homes).enumerate() {
                if refused.contains(&i) {
                    self.again.push(*image);
                    continue;
                }
                made.push(image.stored(Extent::Picture, home));
                if let Some(unread) = &mut self.unread {
                    unread.add(image.index, Source::Elements(home.output.address()));
                }
            }
        }
        self.device.finish.record(cx, &made)
    }

    /// Decodes on threads what was refused, and lets the reader read what it has not.
    pub(super) fn decode_again(&mut self, cx: &mut GpuCx<'_>) -> Result<()> {
        if !self.again.is_empty() {
            tracing::debug!(
                "engines, SMs and libraries refuse {} of {} images",
                self.again.len(),
                self.count
            );
            let most = cx.recorder.gpu().most_of_a_value();
            bound_sent(&mut self.again, self.host.inputs, most, self.sent);
            let group = Group::new(Shares { threads: &self.again, ..Shares::default() })?;
            group.decode(self.device, self.host, cx, self.unread.as_mut())?;
        }
        if let Some(unread) = &mut self.unread {
            unread.read(cx)?;
        }
        Ok(())
    }

    /// Keeps what may turn out to be damaged.
    pub(super) fn account(self, cx: &mut GpuCx<'_>) {
        let Self { device, reports, doubtful: images, .. } = self;
        let doubts = (!reports.is_empty()).then(|| Doubts { reports, images, slot: cx.recorder.slot() });
        device.sms.doubt(doubts);
    }
}

/// So many bytes of memory that `allocate` gives; `None` of none.
pub(super) fn memory_of<'a>(
    bytes: usize,
    allocate: impl FnOnce(usize) -> Result<DeviceBytes<'a>>,
) -> Result<Option<DeviceBytes<'a>>> {
    if bytes == 0 { Ok(None) } else { allocate(bytes).map(Some) }
}
