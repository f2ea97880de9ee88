//! The SMs' share of a batch in groups: the host reads one while the device has another, and what reads the images
//! does so group by group, in memory that the next has again. It must not know the other paths.

use super::image::{Home, Image, bytes_of, homes};
use super::shared::{Shares, Work};
use super::{DeviceDecoder, memory_of};
use crate::error::Result;
use crate::gpu::Report;
use crate::gpu::jpeg::EngineLock;
use crate::gpu::jpeg::sm::Scratch;
use crate::memory::DeviceBytes;
use crate::operator::{GpuCx, Source};
use crate::ops::decode::decoders_image::files::missing_sample;
use crate::ops::decode::decoders_image::finish::{ALIGNMENT, Extent};
use crate::ops::decode::decoders_image::on_sms::{EARLY_BYTES, MOST_BESIDE, SIDES, groups};
use crate::ops::decode::decoders_image::reading::Unread;

/// What became of a batch.
pub(super) struct Grouped<'s, 'a> {
    /// Places in the engines' share.
    pub(super) refused: Vec<usize>,
    /// What may turn out to be damaged: reports of the groups, and sample and bytes of the output for each image in
    /// them.
    pub(super) doubts: (Vec<Report>, Vec<(usize, usize)>),
    /// Images of the SMs that they cannot decode.
    pub(super) again: Vec<&'s Image<'a>>,
}

impl DeviceDecoder {
    /// Records what decodes `on_sms`, and `others` with the first group of them.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory.
    pub(super) fn groups<'s, 'a>(
        &mut self,
        work: Work<'_>,
        cx: &mut GpuCx<'_>,
        on_sms: &[&'s Image<'a>],
        others: Shares<'_, 'a>,
        mut turn: Option<EngineLock>,
        mut unread: Option<&mut Unread<'_>>,
    ) -> Result<Grouped<'s, 'a>> {
        let bytes = on_sms.iter().map(|image| image.file.all.len()).sum();
        // Of a large batch the device has a group's data while tables are made, and works on it while the next group is
        // read.
        let early = bytes >= EARLY_BYTES;
        let has_room = cx.recorder.gpu().in_flight() <= MOST_BESIDE;
        let sides = if has_room { SIDES } else { 1 };
        let need =
            |image: &&Image<'_>| image.planned.as_ref().map_or(0, |planned| self.sm_bytes(image, planned));
        let groups = groups(on_sms, bytes, has_room, need, self.speeds.scratch());
        let (several, mut memory) = (groups.len() > 1, Scratch::default());
        if several {
            let most = |bytes: &dyn Fn(&[&Image<'_>]) -> usize| groups.iter().map(|group| bytes(group)).max();
            let own = most(&|group| {
                group.iter().filter_map(|image| Some(image.planned.as_ref()?.scratch_bytes())).sum()
            });
            let pixels = most(&|group| bytes_of(group, &self.finish, Extent::Window));
            memory = Scratch::reserve(cx.recorder, sides, own.unwrap_or(0), pixels.unwrap_or(0))?;
            // In one piece, also for the first batch of its size.
            let planned = on_sms.iter().filter_map(|image| image.planned.as_ref());
            let own = planned.map(|planned| planned.coded.room() + ALIGNMENT + planned.table_bytes());
            let decoded = others.threads.iter().map(|image| image.bytes + ALIGNMENT);
            cx.recorder.make_room(own.chain(decoded).sum())?;
        }
        let mut all = Grouped { refused: Vec::new(), doubts: Default::default(), again: Vec::new() };
        let mut others = Some(others);
        for (number, images) in groups.into_iter().enumerate() {
            let side = number % sides;
            let bytes = bytes_of(images, &self.finish, Extent::Window);
            let pixels = memory_of(bytes, |bytes| memory.pixels(cx.recorder, side, bytes))?;
            let homes = homes(images, &self.finish, Extent::Window, pixels.as_ref())?;
            let images: Vec<_> = images.iter().copied().zip(homes).collect();
            // Engines and threads have theirs with the first.
            let shares = Shares { sms: &images, ..others.take().unwrap_or_default() };
            let made = self.decode(work, cx, shares, turn.take(), unread.as_deref_mut())?;
            all.refused.extend(made.refused);
            if early {
                cx.recorder.start()?;
            }
            if has_room && several {
                cx.recorder.fork(side)?;
            }
            let recorded = self.sms.record(cx.recorder, (&mut memory, side), made.prepared, &made.scans)?;
            let (whole, broken): (Vec<_>, Vec<_>) =
                images.iter().zip(&made.scans).partition(|(_, (_, scan))| scan.is_some());
            all.again.extend(broken.iter().map(|((image, _), _)| *image));
            self.decoded.sms += whole.len();
            let homes = whole.iter().filter_map(|((image, home), _)| Some((image, home.as_ref()?)));
            let stored: Vec<_> = homes.map(|(image, home)| image.stored(Extent::Window, home)).collect();
            self.finish.record(cx, &stored)?;
            if let Some(recorded) = recorded {
                all.doubts.0.push(recorded.report);
                all.doubts.1.extend(whole.iter().map(|((image, _), _)| (image.index, image.bytes)));
                if let Some(unread) = &mut unread {
                    for (((image, home), _), planes) in whole.iter().zip(&recorded.planes) {
                        unread.add(image.index, source(home.as_ref(), planes.as_ref())?);
                    }
                    if several {
                        unread.read(cx)?;
                    }
                }
            }
            if early {
                cx.recorder.start()?;
            }
        }
        cx.recorder.join();
        Ok(all)
    }
}

/// Where a reader finds what the SMs made of an image.
fn source(home: Option<&Home<'_>>, planes: Option<&DeviceBytes<'_>>) -> Result<Source> {
    match (planes, home) {
        (Some(planes), _) => Ok(Source::Planes(planes.address())),
        (None, Some(home)) => Ok(Source::Elements(home.output.address())),
        (None, None) => Err(missing_sample()),
    }
}
