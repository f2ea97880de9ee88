//! Which image of a batch is decoded where. It must not know how.

use super::super::Job;
use super::super::finish::{Extent, Finish};
use super::super::on_cores::OnCores;
use super::super::on_nvjpeg2000::Takes;
use super::Mixed;
use super::image::Image;
use crate::gpu::jpeg::cores::Planned;
use crate::gpu::jpeg::{
    Candidate, CoresNeed, DevicePath, Engines, Header, Path, Picture, Sampling, Wish, assign,
};
use crate::limits;

impl Mixed {
    /// Where each image is decoded.
    pub(super) fn paths(&self, images: &[Image<'_>], threads: usize, wish: Option<Wish>) -> Vec<Path> {
        let candidate = |image: &Image<'_>| Candidate {
            size: image.size(),
            upload: image.target.len(),
            engines: image.picture.is_some(),
            cores: image.planned.as_ref().map(|planned| CoresNeed {
                scratch: planned.scratch_bytes(),
                mcu_bits: planned.coded.mcu_bits(),
            }),
        };
        let candidates: Vec<Candidate> = images.iter().map(candidate).collect();
        assign(&candidates, threads, &self.speeds, wish)
    }

    /// What says which decoders take an image.
    pub(super) fn takers(&self) -> Takers<'_> {
        Takers {
            samplings: self.engines.as_ref().map_or(&[], Engines::samplings),
            cores: &self.cores,
            nvjpeg2000: self.nvjpeg2000.takes(),
            finish: &self.finish,
            leaves_planes: self.leaves_planes,
        }
    }

    /// Takes images from engines, cores and libraries whose pixels, as these store them, would take too much memory, and from the cores the
    /// leave to make planes of those that have no room. Returns the bytes of planes at most.
    pub(super) fn limit(&self, images: &mut [Image<'_>]) -> usize {
        let mut room = limits::MAX_PICTURE_BYTES.max(self.memory / limits::PICTURE_PART);
        let all_planes = self.memory / limits::PLANES_PART;
        let mut for_planes = all_planes;
        for image in images {
            let [picture, window] =
                [Extent::Picture, Extent::Window].map(|extent| self.finish.scratch_bytes(&image.job, extent));
            image.picture = image.picture.filter(|_| picture <= room);
            image.planned = image.planned.take().filter(|_| window <= room);
            image.is_wavelets &= picture <= room;
            let is_whole = image.picture.is_some() || image.is_wavelets;
            let taken = [is_whole.then_some(picture), image.planned.as_ref().map(|_| window)];
            room -= taken.into_iter().flatten().max().unwrap_or_default();
            if let Some(planned) = &mut image.planned {
                match for_planes.checked_sub(planned.planes_bytes()) {
                    Some(left) => for_planes = left,
                    None => planned.leave_no_planes(),
                }
            }
        }
        all_planes - for_planes
    }
}

/// Says which decoders take an image, to several threads at once.
#[derive(Clone, Copy)]
pub(super) struct Takers<'m> {
    samplings: &'m [Sampling],
    cores: &'m OnCores,
    nvjpeg2000: Takes,
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

    /// Whether nvJPEG2000 may take it.
    pub(super) fn wavelets(&self, job: &Job, file: &[u8]) -> bool {
        job.options.shrink == 0 && self.nvjpeg2000.may_take(job, file)
    }

    /// How the cores would decode it. Its pixels may be left to the reader of the output if the cores would store just them.
    pub(super) fn planned<'a>(&self, job: &Job, header: &Header<'a>) -> Option<Planned<'a>> {
        let may_leave_planes = self.leaves_planes && self.finish.is_needless(job, Extent::Window);
        self.cores.plan(job, header, may_leave_planes)
    }
}
