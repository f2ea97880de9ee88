//! The SMs' share of a batch in groups: the host reads one while the device has another, and what reads the images
//! does so group by group, in memory that the next has again. It must not know the other paths.

use super::batch::{Batch, memory_of};
use super::group::{Group, Shares};
use super::image::{Home, Image, bytes_of, homes};
use crate::error::Result;
use crate::gpu::jpeg::sm::{self, Scratch};
use crate::memory::DeviceBytes;
use crate::operator::{GpuCx, Source};
use crate::ops::decode::decoders_image::files::missing_sample;
use crate::ops::decode::decoders_image::finish::{ALIGNMENT, Extent};
use crate::ops::decode::decoders_image::on_sms::{EARLY_BYTES, MOST_BESIDE, SIDES, groups};

impl Batch<'_, '_, '_> {
    /// Decodes what is for the SMs, and with the first group of that what is for engines and threads.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory.
    pub(super) fn decode_groups(&mut self, cx: &mut GpuCx<'_>) -> Result<()> {
        let mut on_sms = std::mem::take(&mut self.sms);
        let file_bytes = |images: &[&Image<'_>]| images.iter().map(|image| image.file.all.len()).sum();
        let bytes: usize = file_bytes(&on_sms);
        // Of a large batch the device has a group's data while tables are made, and works on it while the next group is
        // read.
        let early = bytes >= EARLY_BYTES;
        let has_room = cx.recorder.gpu().in_flight() <= MOST_BESIDE;
        let sides = if has_room { SIDES } else { 1 };
        let device = &*self.device;
        let need =
            |image: &&Image<'_>| image.planned.as_ref().map_or(0, |planned| device.sm_bytes(image, planned));
        // Of several groups the last are those of progressive files. They take as long as their longest scan, many as
        // long as few, so only memory parts them.
        on_sms.sort_by_key(|image| is_progressive(image));
        let (others, progressive) = on_sms.split_at(on_sms.partition_point(|image| !is_progressive(image)));
        let most = device.speeds.scratch();
        let grouped = |images, bytes| groups(images, bytes, has_room, need, most);
        let mut groups = grouped(&on_sms, bytes);
        if groups.len() > 1 && !progressive.is_empty() {
            groups = if others.is_empty() { Vec::new() } else { grouped(others, file_bytes(others)) };
            groups.extend(grouped(progressive, 0));
        }
        let several = groups.len() > 1;
        let mut memory = Scratch::default();
        if several {
            memory = self.scratch(cx, &groups, sides)?;
        }
        let mut others = Some((std::mem::take(&mut self.tasks), std::mem::take(&mut self.threads)));
        for (number, images) in groups.into_iter().enumerate() {
            let side = number % sides;
            let bytes = bytes_of(images, &self.device.finish, Extent::Window);
            let pixels = memory_of(bytes, |bytes| memory.pixels(cx.recorder, side, bytes))?;
            let homes = homes(images, &self.device.finish, Extent::Window, pixels.as_ref())?;
            let images: Vec<_> = images.iter().copied().zip(homes).collect();
            // Engines and threads have theirs with the first.
            let (engines, threads) = others.take().unwrap_or_default();
            let group = Group::new(Shares { engines: &engines, sms: &images, threads: &threads })?;
            let made = group.decode(self.device, self.host, cx, self.unread.as_mut())?;
            self.refused_by_engines.extend(made.refused);
            if early {
                cx.recorder.start()?;
            }
            if has_room && several {
                cx.recorder.fork(side)?;
            }
            let scratch = (&mut memory, side);
            let recorded = self.device.sms.record(
                cx.recorder,
                scratch,
                (made.prepared, progressive.len()),
                &made.scans,
            )?;
            let (whole, broken): (Vec<_>, Vec<_>) =
                images.iter().zip(&made.scans).partition(|(_, (_, scan))| scan.is_some());
            self.again.extend(broken.iter().map(|((image, _), _)| *image));
            self.device.decoded.sms += whole.len();
            let homes = whole.iter().filter_map(|((image, home), _)| Some((image, home.as_ref()?)));
            let stored: Vec<_> = homes.map(|(image, home)| image.stored(Extent::Window, home)).collect();
            self.device.finish.record(cx, &stored)?;
            if let Some(recorded) = recorded {
                self.reports.push(recorded.report);
                self.doubtful.extend(whole.iter().map(|((image, _), _)| (image.index, image.bytes)));
                if let Some(unread) = &mut self.unread {
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
        Ok(())
    }

    /// Memory of several groups, in one piece, as much as the largest needs in each of `sides` side streams; and room
    /// in the slab for all of them, also for the first batch of its size.
    fn scratch(&self, cx: &mut GpuCx<'_>, groups: &[&[&Image<'_>]], sides: usize) -> Result<Scratch> {
        let most = |bytes: &dyn Fn(&[&Image<'_>]) -> usize| groups.iter().map(|group| bytes(group)).max();
        let own = most(&|group| {
            group.iter().filter_map(|image| Some(image.planned.as_ref()?.scratch_bytes())).sum()
        });
        let pixels = most(&|group| bytes_of(group, &self.device.finish, Extent::Window));
        let memory = Scratch::reserve(cx.recorder, sides, own.unwrap_or(0), pixels.unwrap_or(0))?;
        let planned = groups.iter().copied().flatten().filter_map(|image| image.planned.as_ref());
        let own = planned.map(|planned| planned.coded.room() + ALIGNMENT + planned.table_bytes());
        let decoded = self.threads.iter().map(|image| image.bytes + ALIGNMENT);
        let dealt = groups.len() * sm::extra_table_bytes(cx.recorder.gpu().multiprocessors());
        cx.recorder.make_room(own.chain(decoded).sum::<usize>() + dealt)?;
        Ok(memory)
    }
}

fn is_progressive(image: &Image<'_>) -> bool {
    image.planned.as_ref().is_some_and(|planned| planned.coded.is_progressive())
}

/// Where a reader finds what the SMs made of an image.
fn source(home: Option<&Home<'_>>, planes: Option<&DeviceBytes<'_>>) -> Result<Source> {
    match (planes, home) {
        (Some(planes), _) => Ok(Source::Planes(planes.address())),
        (None, Some(home)) => Ok(Source::Elements(home.output.address())),
        (None, None) => Err(missing_sample()),
    }
}
