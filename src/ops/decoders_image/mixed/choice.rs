//! Which image of a batch is decoded where. It must not know how.

use super::super::Job;
use super::super::finish::Extent;
use super::{Image, Mixed};
use crate::gpu::jpeg::{Candidate, CoresNeed, DevicePath, Header, Path, Picture, Wish, assign};
use crate::limits;

impl Mixed {
    /// Where each image is decoded.
    pub(super) fn paths(&self, images: &[Image<'_>], threads: usize, wish: Option<Wish>) -> Vec<Path> {
        let candidate = |image: &Image<'_>| Candidate {
            size: image.size(),
            upload: image.target.len(),
            engines: image.picture.is_some(),
            cores: image.coded.as_ref().map(|coded| CoresNeed {
                scratch: self.cores.scratch_bytes(coded, &image.part(), self.may_leave_planes(&image.job)),
                mcu_bits: coded.mcu_bits(),
            }),
        };
        let candidates: Vec<Candidate> = images.iter().map(candidate).collect();
        assign(&candidates, threads, &self.speeds, wish)
    }

    /// The file as the engines take it.
    pub(super) fn picture<'a>(&self, job: &Job, header: &Header<'a>) -> Option<Picture<'a>> {
        let engines = self.engines.as_ref().filter(|_| job.options.shrink == 0)?;
        let picture = Picture::of(header)?;
        let frame = *picture.frame();
        // Both have read the same header.
        let same = (frame.width, frame.height) == job.info.stored_size();
        (same && engines.takes(&frame)).then_some(picture)
    }

    /// Takes images from engines and cores whose pixels, as these store them, would take too much memory.
    pub(super) fn limit(&self, images: &mut [Image<'_>]) {
        let mut room = limits::MAX_PICTURE_BYTES;
        for image in images {
            let [picture, window] =
                [Extent::Picture, Extent::Window].map(|extent| self.finish.scratch_bytes(&image.job, extent));
            image.picture = image.picture.filter(|_| picture <= room);
            image.coded = image.coded.take().filter(|_| window <= room);
            let taken = [image.picture.map(|_| picture), image.coded.as_ref().map(|_| window)];
            room -= taken.into_iter().flatten().max().unwrap_or_default();
        }
    }
}
