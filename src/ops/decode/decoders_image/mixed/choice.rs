//! Which image of a batch is decoded where. It must not know how.

use super::super::Job;
use super::super::finish::{Extent, Finish};
use super::super::on_nvjpeg2000::Takes;
use super::super::on_sms::{OnSms, SIDES};
use super::super::on_video_engines::OnVideoEngines;
use super::DeviceDecoder;
use super::image::{Image, Library};
use crate::gpu::jpeg::sm::Planned;
use crate::gpu::jpeg::{
    Candidate, DevicePath, Engines, Header, Path, Picture, Sampling, SmNeed, Wish, assign,
};
use crate::limits;
use crate::memory::{Bounds, Size, bound};
use crate::operator::Inputs;

/// Progressive images of a batch, for each thread of the host, from more of which on the SMs have them. A warp reads a
/// scan from its beginning to its end, so a batch takes the SMs as long as its longest scan. On an H200 that is 7 ms
/// at 500 x 375 and 40 ms at 1080p; a thread of its host takes 3.3 and 28 ms for an image.
const PROGRESSIVE_OF_A_THREAD: usize = 3;

/// Whether the SMs have the progressive images of a batch.
fn are_enough(progressive: usize, threads: usize, wish: Option<Wish>) -> bool {
    wish.is_some() || progressive > PROGRESSIVE_OF_A_THREAD * threads
}

impl DeviceDecoder {
    /// Where each image is decoded.
    pub(super) fn paths(&self, images: &[Image<'_>], threads: usize, wish: Option<Wish>) -> Vec<Path> {
        let is_progressive = |planned: &&Planned<'_>| planned.coded.is_progressive();
        let progressive = images.iter().filter_map(|image| image.planned.as_ref()).filter(is_progressive);
        let with_progressive = are_enough(progressive.count(), threads, wish);
        let candidate = |image: &Image<'_>| {
            let planned =
                image.planned.as_ref().filter(|planned| with_progressive || !is_progressive(planned));
            Candidate {
                size: image.size(),
                upload: image.bytes,
                engines: image.picture.is_some(),
                sms: planned.map(|planned| SmNeed {
                    scratch: self.sm_bytes(image, planned),
                    mcu_bits: planned.coded.mcu_bits(),
                }),
            }
        };
        let candidates: Vec<Candidate> = images.iter().map(candidate).collect();
        assign(&candidates, threads, &self.speeds, wish)
    }

    /// Bytes on the device for an image until the SMs have decoded it, and until it is read if that is at once.
    pub(super) fn sm_bytes(&self, image: &Image<'_>, planned: &Planned<'_>) -> usize {
        let at_once = image.target.is_none();
        planned.scratch_bytes() + if at_once { image.home_bytes(&self.finish, Extent::Window) } else { 0 }
    }

    /// What says which decoders take an image.
    pub(super) fn takers(&self) -> Takers<'_> {
        Takers {
            samplings: self.engines.as_ref().map_or(&[], Engines::samplings),
            sms: &self.sms,
            nvjpeg2000: self.nvjpeg2000.takes(),
            video_engines: &self.video_engines,
            finish: &self.finish,
            leaves_planes: self.leaves_planes,
        }
    }

    /// Takes images from engines, SMs and libraries whose pixels would take too much memory of the batch.
    pub(super) fn limit(&self, images: &mut [Image<'_>]) {
        let mut room = limits::MAX_PICTURE_BYTES.max(self.memory / limits::PICTURE_PART);
        for image in images {
            let [picture, mut window] =
                [Extent::Picture, Extent::Window].map(|extent| image.home_bytes(&self.finish, extent));
            if image.target.is_none() {
                // The next group of them has the same memory.
                window = 0;
            }
            image.picture = image.picture.filter(|_| picture <= room);
            image.planned = image.planned.take().filter(|_| window <= room);
            let library = picture + image.library_bytes();
            image.library = image.library.filter(|_| library <= room);
            let taken = [
                image.picture.map(|_| picture),
                image.library.map(|_| library),
                image.planned.as_ref().map(|_| window),
            ];
            room -= taken.into_iter().flatten().max().unwrap_or_default();
        }
    }

    /// Bytes of the device that `images` take at least, wherever they are decoded: groups of the SMs, as many as
    /// there are at a time, and pixels that only the host makes, where these are read at once.
    pub(super) fn least_bytes(&self, images: &[Image<'_>]) -> usize {
        let (mut groups, mut sent) = (0, 0);
        for image in images {
            match &image.planned {
                Some(planned) => groups += self.sm_bytes(image, planned),
                None => sent += image.only_sent_bytes(),
            }
        }
        groups.min(SIDES * self.speeds.scratch()) + sent
    }
}

/// Fails, the largest first, those of `images` whose pixels the host cannot send to a reader, of whose value there may
/// be `most` bytes and `sent` are. Returns how many are then.
pub(super) fn bound_sent(
    images: &mut Vec<&Image<'_>>,
    inputs: Inputs<'_>,
    most: usize,
    sent: usize,
) -> usize {
    let sizes = images.iter().filter(|image| image.target.is_none());
    let sizes = sizes.map(|image| Size { bytes: image.bytes, scratch: 0, sample: image.index }).collect();
    let bounds = Bounds { value: most.saturating_sub(sent), all: usize::MAX };
    let taken = bound(sizes, 1, bounds, |index, error| inputs.fail(index, error));
    images.retain(|image| inputs.failures().get(image.index).is_none());
    sent + taken
}

/// Says which decoders take an image, to several threads at once.
#[derive(Clone, Copy)]
pub(super) struct Takers<'m> {
    samplings: &'m [Sampling],
    sms: &'m OnSms,
    nvjpeg2000: Takes,
    video_engines: &'m OnVideoEngines,
    finish: &'m Finish,
    leaves_planes: bool,
}

impl Takers<'_> {
    /// The file as the engines take it.
    pub(super) fn picture<'a>(&self, job: &Job, header: &Header<'a>) -> Option<Picture<'a>> {
        if job.options.shrink > 0 || self.samplings.is_empty() {
            return None;
        }
        let picture = Picture::of(header)?;
        let frame = *picture.frame();
        // Both have read the same header.
        let same = (frame.width, frame.height) == job.info.stored_size();
        (same && self.samplings.contains(&frame.sampling)).then_some(picture)
    }

    /// What takes it that knows no JPEGs.
    pub(super) fn library(&self, job: &Job, file: &[u8]) -> Option<Library> {
        if job.options.shrink == 0 && self.nvjpeg2000.may_take(job, file) {
            return Some(Library::NvJpeg2000);
        }
        self.video_engines.may_take(job).then_some(Library::VideoEngines)
    }

    /// How the SMs would decode it. Its pixels may be left to the reader of the output if the SMs would store just
    /// them.
    pub(super) fn planned<'a>(&self, job: &Job, header: &Header<'a>) -> Option<Planned<'a>> {
        let may_leave_planes = self.leaves_planes && self.finish.is_needless(job, Extent::Window);
        self.sms.plan(job, header, may_leave_planes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_progressive_images_are_for_the_host() {
        assert!(!are_enough(48, 16, None) && are_enough(49, 16, None) && !are_enough(0, 0, None));
        assert!(are_enough(1, 16, Some(Wish::Path(Path::Sm))));
    }
}
