//! Sequences whose frames are decoded on a device's video engines, and stay in its memory. One decoder goes on from
//! sequence to sequence; what it shows beyond the sequence that was asked for is written to the next one. It must not
//! know who asks.
//!
//! ```text
//! packets -> Playback -> frame n -> sequence n / length, place n % length        made when its first frame comes
//! ```
//!
//! When the engines refuse anything, or find it damaged, the host decodes from the sequence at hand on, and has the
//! last word.

use std::collections::VecDeque;
use std::sync::Arc;

use super::host::OnHost;
use super::player::{CHANNELS, Player, PullContext, Sequence};
use crate::coded_video::{OpenedVideo, Takes, codec_of};
use crate::cpu::video::{Budget, Sequences, Video};
use crate::error::{Error, Result};
use crate::gpu::video::{Engines, Playback};
use crate::gpu::{DeviceBuffer, Stream};
use crate::memory::DeviceBytes;
use crate::tensor::{Sample, Shape};

/// A video that is decoded on engines.
pub(super) struct OnEngines {
    video: Arc<Video<'static>>,
    sequences: Sequences,
    /// `None` when all frames came.
    playback: Option<Playback<OpenedVideo<'static, Assembly>>>,
    /// The first frame of the next sequence.
    next: usize,
    /// Decodes the rest in place of the engines.
    host: Option<OnHost>,
}

/// Whether `engines` may decode `video` from its first frame to its last.
pub(super) fn takes(engines: &Engines, video: &Video<'_>) -> bool {
    let size = [video.width(), video.height()];
    video.coding().is_some_and(|coding| engines.takes(codec_of(coding), size)) && video.is_ascending()
}

impl OnEngines {
    /// `video` from its first frame on.
    ///
    /// # Errors
    /// When the engines do not decode it, or there are no memory and streams.
    pub(super) fn new(
        engines: &Arc<Engines>,
        video: &Arc<Video<'static>>,
        sequences: Sequences,
    ) -> Result<Self> {
        let all: Vec<usize> = (0..video.frames()).collect();
        let assembly = Assembly {
            shape: [video.height(), video.width(), CHANNELS],
            count: video.frames(),
            sequences,
            begun: VecDeque::new(),
            taken: 0,
            next: 0,
            budget: Budget::default(),
            stream: engines.gpu().stream()?,
        };
        let coded_video = OpenedVideo::new(video.coded(&all)?, assembly);
        let playback = Some(Playback::new(engines, coded_video)?);
        Ok(Self { video: Arc::clone(video), sequences, playback, next: 0, host: None })
    }
}

impl Player for OnEngines {
    fn has_more(&self) -> bool {
        self.host.as_ref().map_or_else(|| self.left() > 0, OnHost::has_more)
    }

    fn sequence(&mut self, asked: &PullContext<'_>) -> Result<Sequence> {
        if let Some(playback) = &mut self.playback {
            match play(playback, asked) {
                Ok(made) => {
                    self.next += self.sequences.length.min(self.left());
                    if self.left() == 0 {
                        self.end();
                    }
                    return Ok(Sequence { made: Some(made), damage: None });
                }
                Err(error) if asked.check().is_err() => return Err(error),
                Err(error) => {
                    tracing::info!("a video is decoded on the host from frame {} on: {error}", self.next);
                    self.playback = None;
                    self.host = Some(OnHost::at(&self.video, self.next, self.sequences));
                }
            }
        }
        let host =
            self.host.as_mut().ok_or_else(|| Error::internal("a video without frames that are left"))?;
        host.sequence(asked)
    }
}

impl OnEngines {
    /// Frames that the engines have left.
    fn left(&self) -> usize {
        self.video.frames().saturating_sub(self.next)
    }

    /// Leaves the decoder to the next video. All frames came, so that nothing of this one can fail any more.
    fn end(&mut self) {
        if let Some(Err(error)) = self.playback.take().map(Playback::end) {
            tracing::debug!("a decoder is not used again: {error}");
        }
    }
}

/// Decodes until the next sequence is there.
fn play(
    playback: &mut Playback<OpenedVideo<'static, Assembly>>,
    asked: &PullContext<'_>,
) -> Result<(Shape, Sample<'static>)> {
    playback.coded_video(|coded_video| coded_video.takes.budget = Budget::default());
    while !playback.coded_video(|coded_video| coded_video.takes.is_ready()) {
        asked.check()?;
        let has_more = playback.step()?;
        if !has_more && !playback.coded_video(|coded_video| coded_video.takes.is_ready()) {
            return Err(Error::invalid("frames that do not come out of the engines"));
        }
    }
    playback.settle()?;
    playback.coded_video(|coded_video| coded_video.takes.take())
}

/// Sequences that frames are written to.
struct Assembly {
    /// Of a frame.
    shape: [usize; 3],
    /// Frames of the video.
    count: usize,
    sequences: Sequences,
    /// Those that have frames, the oldest first.
    begun: VecDeque<Arc<DeviceBuffer>>,
    /// How many there were before.
    taken: usize,
    /// The frame that comes next.
    next: usize,
    /// Of the sequence that was asked for.
    budget: Budget<'static>,
    /// Where memory is allocated.
    stream: Arc<Stream>,
}

impl Assembly {
    /// Whether all frames of the oldest sequence have come.
    fn is_ready(&self) -> bool {
        let end = (self.taken + 1).saturating_mul(self.sequences.length);
        !self.begun.is_empty() && self.next >= end.min(self.count)
    }

    /// Frames of sequence `number`, and those that it has places for.
    fn frames(&self, number: usize) -> [usize; 2] {
        let Sequences { length, pads } = self.sequences;
        let there = length.min(self.count.saturating_sub(number.saturating_mul(length)));
        [there, if pads { length } else { there }]
    }

    fn shape(&self, number: usize) -> Shape {
        let [height, width, channels] = self.shape;
        Shape::from([self.frames(number)[1], height, width, channels])
    }

    /// The oldest sequence.
    fn take(&mut self) -> Result<(Shape, Sample<'static>)> {
        let shape = self.shape(self.taken);
        let buffer = self.begun.pop_front().ok_or_else(|| Error::internal("no sequence was begun"))?;
        self.taken += 1;
        let bytes = DeviceBytes::of(&buffer, 0, shape.bytes(1)?);
        Ok((shape, Sample::Device(bytes)))
    }

    /// Where frame `frame` goes, which must be the next one.
    fn place(&mut self, frame: usize) -> Result<DeviceBytes<'static>> {
        if frame != self.next {
            return Err(Error::unsupported(format!(
                "frame {frame} is shown in place of frame {}",
                self.next
            )));
        }
        let (number, bytes) = (frame / self.sequences.length, self.shape.iter().product::<usize>());
        let begun =
            number.checked_sub(self.taken).ok_or_else(|| Error::internal("a frame that was given"))?;
        if begun == self.begun.len() {
            let buffer = self.begin(number, bytes)?;
            self.begun.push_back(buffer);
        }
        let buffer = self.begun.get(begun).ok_or_else(|| Error::internal("a sequence that was left out"))?;
        self.next += 1;
        Ok(DeviceBytes::of(buffer, frame % self.sequences.length * bytes, bytes))
    }

    /// Memory for sequence `number`, in which frames have `bytes` bytes; what no frame is written to is zero.
    fn begin(&self, number: usize, bytes: usize) -> Result<Arc<DeviceBuffer>> {
        let [there, places] = self.frames(number);
        let size = self.shape(number).bytes(1)?;
        let buffer = Arc::new(DeviceBuffer::new(&self.stream, size)?);
        if places > there {
            self.stream.clear(&DeviceBytes::of(&buffer, there * bytes, (places - there) * bytes))?;
        }
        // It is used in streams that do not wait for this one.
        self.stream.synchronize()?;
        Ok(buffer)
    }
}

impl Takes for Assembly {
    fn budget(&self) -> &Budget<'_> {
        &self.budget
    }

    fn targets(&mut self, frames: &[usize]) -> Result<Vec<DeviceBytes<'_>>> {
        frames.iter().map(|&frame| self.place(frame)).collect()
    }
}
