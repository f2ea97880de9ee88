//! One image of a batch on its way to a device, what each of the decoders there makes of its header, and where its
//! pixels go. It must not know which of them takes it.

use super::super::Job;
use super::super::files::File;
use super::super::finish::{ALIGNMENT, Extent, Finish, Stored};
use super::super::on_video_engines::OnVideoEngines;
use crate::error::Result;
use crate::gpu::jpeg::sm::Planned;
use crate::gpu::jpeg::{Picture, Size};
use crate::memory::DeviceBytes;

/// One image of a batch.
pub(super) struct Image<'a> {
    pub(super) index: usize,
    pub(super) job: Job,
    pub(super) file: File<'a>,
    /// The output; `None`: whoever reads it does so at once.
    pub(super) target: Option<DeviceBytes<'a>>,
    /// Bytes of the output.
    pub(super) bytes: usize,
    /// Set when the engines take it.
    pub(super) picture: Option<Picture<'a>>,
    /// Set when the SMs take it.
    pub(super) planned: Option<Planned<'a>>,
    /// Where the table is that makes sRGB of its colours.
    pub(super) colors: Option<u64>,
    /// What may take it that knows neither JPEGs nor windows.
    pub(super) library: Option<Library>,
}

/// What decodes whole pictures that are no JPEGs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    /// nvJPEG2000, JPEG 2000.
    NvJpeg2000,
    /// The video engines, HEIC.
    VideoEngines,
}

/// Where pixels of an image go.
#[derive(Clone)]
pub(super) struct Home<'a> {
    /// Those that are stored.
    pub(super) stored: DeviceBytes<'a>,
    /// Those that are asked for: the same, if they are what is stored.
    pub(super) output: DeviceBytes<'a>,
}

impl<'a> Image<'a> {
    pub(super) fn size(&self) -> Size {
        let (width, height) = self.job.info.stored_size();
        Size { bytes: self.file.all.len(), pixels: width * height }
    }

    /// Bytes of the batch's memory for its output.
    pub(super) fn own_bytes(&self, extent: Extent) -> usize {
        let is_planes = extent == Extent::Window && self.is_left_as_planes();
        if self.target.is_some() || is_planes { 0 } else { self.bytes.next_multiple_of(ALIGNMENT) }
    }

    /// Bytes of the batch's memory for its pixels, as stored and as asked for.
    pub(super) fn home_bytes(&self, finish: &Finish, extent: Extent) -> usize {
        self.own_bytes(extent) + self.stored_bytes(finish, extent)
    }

    /// Bytes of the batch's memory until a library has decoded it, beside its pixels.
    pub(super) fn library_bytes(&self) -> usize {
        match self.library {
            Some(Library::VideoEngines) => OnVideoEngines::scratch_bytes(&self.job),
            Some(Library::NvJpeg2000) | None => 0,
        }
    }

    /// Bytes of the batch's memory for its pixels as stored; 0 when they are stored where the output is.
    fn stored_bytes(&self, finish: &Finish, extent: Extent) -> usize {
        match finish.scratch_bytes(&self.job, extent) {
            0 if self.is_exposed(extent) => finish.bytes(&self.job, extent).next_multiple_of(ALIGNMENT),
            bytes => bytes,
        }
    }

    /// Whether somebody could look at the output before it is known to be right: engines and libraries, who store whole
    /// pictures, leave what was in memory where a file has nothing. In memory of a response, which a client may share,
    /// that would be seen.
    fn is_exposed(&self, extent: Extent) -> bool {
        extent == Extent::Picture && self.target.as_ref().is_some_and(|target| target.owner().is_none())
    }

    /// Bytes of its pixels that go up with the batch, if only the host decodes it and they are read there.
    pub(super) fn only_sent_bytes(&self) -> usize {
        let others = self.picture.is_some() || self.planned.is_some() || self.library.is_some();
        if others { 0 } else { self.own_bytes(Extent::Picture) }
    }

    /// Whether the SMs leave planes in place of pixels.
    fn is_left_as_planes(&self) -> bool {
        self.planned.as_ref().is_some_and(Planned::is_left_as_planes)
    }

    /// Where its pixels go, in as many bytes of the batch's memory from `start` on as [`Image::home_bytes`] says;
    /// `None`: it has none.
    ///
    /// # Errors
    /// Internal, when there are fewer.
    fn home(
        &self,
        finish: &Finish,
        extent: Extent,
        memory: Option<&DeviceBytes<'a>>,
        start: usize,
    ) -> Result<Option<Home<'a>>> {
        let own = self.own_bytes(extent);
        let part = |start, bytes| memory.map(|memory| memory.part(start, bytes)).transpose();
        let output = match &self.target {
            Some(target) => Some(target.clone()),
            None if own > 0 => part(start, self.bytes)?,
            None => None,
        };
        let stored = match self.stored_bytes(finish, extent) {
            0 => output.clone(),
            _ => part(start + own, finish.bytes(&self.job, extent))?,
        };
        Ok(stored.zip(output).map(|(stored, output)| Home { stored, output }))
    }

    /// Its pixels for [`Finish::record`].
    pub(super) fn stored<'s>(&'s self, extent: Extent, home: &'s Home<'s>) -> Stored<'s> {
        Stored { job: &self.job, extent, pixels: &home.stored, target: &home.output, colors: self.colors }
    }
}

/// Bytes of the batch's memory for the pixels of `images`.
pub(super) fn bytes_of(images: &[&Image<'_>], finish: &Finish, extent: Extent) -> usize {
    images.iter().map(|image| image.home_bytes(finish, extent)).sum()
}

/// Where the pixels of `images` go, in as much memory of the batch as [`bytes_of`] says.
///
/// # Errors
/// Internal, when there is less.
pub(super) fn homes<'a>(
    images: &[&Image<'a>],
    finish: &Finish,
    extent: Extent,
    memory: Option<&DeviceBytes<'a>>,
) -> Result<Vec<Option<Home<'a>>>> {
    let mut end = 0;
    let mut homes = Vec::with_capacity(images.len());
    for image in images {
        homes.push(image.home(finish, extent, memory, end)?);
        end += image.home_bytes(finish, extent);
    }
    Ok(homes)
}
