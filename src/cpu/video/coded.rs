//! A run of frames, or several, as a decoder takes it that is not ours: packets as streams have them, which picture is
//! which frame, how colours are made. It must not know that decoder.

use std::sync::Arc;
use std::time::Duration;

use super::nal::{self, Framing};
use super::run::Wanted;
use super::track::Codec;
use super::{Budget, Video, av1, ffmpeg, mpeg4, vp8, vp9};
use crate::cpu::yuv::{Color, Factors, Matrix};
use crate::error::{Context, Error, Result};

/// How packets are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// H.264, in units with start codes.
    H264,
    /// H.265, likewise.
    H265,
    /// VP8, a frame a packet.
    Vp8,
    /// VP9, a frame a packet, or several of which one is shown.
    Vp9,
    /// AV1, a temporal unit a packet, of which one frame is shown.
    Av1,
    /// MPEG-4 Part 2, a frame a packet, with start codes. The host does not decode it.
    Mpeg4,
}

/// Frames of a video, packet after packet.
pub struct Coded<'v> {
    video: Arc<Video<'v>>,
    coding: Coding,
    /// The packet that it begins with.
    key: usize,
    /// The packet that comes next.
    next: usize,
    /// The packet behind the last one.
    end: usize,
    /// Whether a packet was given.
    has_begun: bool,
    /// The packets whose pictures are shown, in that order.
    order: Vec<usize>,
    /// As which picture each packet from the first one on is shown.
    places: Vec<usize>,
    /// How many pictures were shown.
    pictures: usize,
    /// Frames that did not come yet.
    left: Wanted,
    framing: Framing,
    /// Whether samples take the whole range, where that is not left to the stream.
    full_range: Option<bool>,
    /// How much each colour counts in luma, where that is not left to the stream.
    matrix: Option<u8>,
}

/// In ISO/IEC 23091-2: nothing is known.
const UNSPECIFIED: u8 = 2;

impl<'v> Video<'v> {
    /// How packets are compressed, if other decoders than ours may take them.
    pub fn coding(&self) -> Option<Coding> {
        match self.track.codec {
            Codec::H264 => Some(Coding::H264),
            Codec::H265 => Some(Coding::H265),
            Codec::Vp8 => Some(Coding::Vp8),
            Codec::Vp9 => Some(Coding::Vp9),
            Codec::Av1 => Some(Coding::Av1),
            // The engines' library takes one picture for another: see docs/explanation/video.md.
            Codec::Mjpeg => None,
            Codec::Mpeg4 => Some(Coding::Mpeg4),
        }
    }

    /// Whether the host has a decoder of its codec.
    pub fn is_for_hosts(&self) -> bool {
        self.track.codec != Codec::Mpeg4 || ffmpeg::decodes(self.track.codec)
    }

    /// One of the [`Video::runs`] for another decoder; or several of them together, from the first one's key frame on,
    /// of a video that [ascends](Video::is_ascending).
    ///
    /// # Errors
    /// A frame that there is not, a codec that is only ours, or parameters that make no sense.
    pub fn coded(self: &Arc<Self>, run: &[usize]) -> Result<Coded<'v>> {
        let coding = self.coding().ok_or_else(|| Error::unsupported("a codec without another decoder"))?;
        let first = *run.first().ok_or_else(|| Error::internal("a run of no frames"))?;
        let (key, mut left) = (self.key_of(first)?, Wanted::new());
        for &frame in run {
            let packet = self.shown.get(frame).map_or(usize::MAX, |shown| shown.packet);
            left.entry(packet).or_default().push(frame);
        }
        let last = left.last_key_value().map_or(key, |(&packet, _)| packet);
        let packet = self.packet(key).unwrap_or_default();
        let full_range = match coding {
            Coding::Vp8 => Some(vp8::is_full_range(packet)?),
            Coding::Vp9 => Some(vp9::is_full_range(packet)?),
            Coding::H264 | Coding::H265 | Coding::Av1 | Coding::Mpeg4 => None,
        };
        // Engines know another default than decoders on hosts have.
        let matrix =
            (coding == Coding::Mpeg4).then(|| mpeg4::matrix(&self.track.config).unwrap_or(UNSPECIFIED));
        let framing = match coding {
            Coding::H264 | Coding::H265 => nal::configuration(self.track.codec, &self.track.config)?.1,
            _ => Framing::StartCodes,
        };
        let (end, packets) = (self.end_of(key, last), &self.track.packets);
        let is_shown = |&number: &usize| {
            packets.get(number).is_some_and(|packet| !packet.hidden && !self.is_left_out(key, packet))
        };
        let mut order: Vec<usize> = (key..end).filter(is_shown).collect();
        if self.track.timed {
            order.sort_by_key(|&number| packets.get(number).map_or(0, |packet| packet.time));
        }
        let mut places = vec![order.len(); end - key];
        for (place, &number) in order.iter().enumerate() {
            places[number - key] = place;
        }
        Ok(Coded {
            video: Arc::clone(self),
            coding,
            key,
            next: key,
            end,
            has_begun: false,
            order,
            places,
            pictures: 0,
            left,
            framing,
            full_range,
            matrix,
        })
    }
}

impl Coded<'_> {
    /// How packets are compressed.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Columns and rows of every picture.
    pub fn size(&self) -> [usize; 2] {
        self.video.size
    }

    /// How samples become colours, of a stream that says so of itself: `matrix` is a number of ISO/IEC 23091-2.
    pub fn factors(&self, matrix: u8, full_range: bool) -> Factors {
        Factors::new(match self.full_range {
            Some(full_range) => Color { matrix: Matrix::BT601, full_range },
            None => Color { matrix: Matrix::numbered(self.matrix.unwrap_or(matrix)), full_range },
        })
    }

    /// Replaces what `into` holds by the next packet, the first one behind the parameters that the container holds, and
    /// returns as which picture it is shown; `None` when there are no more.
    ///
    /// # Errors
    /// More packets than is left of `budget`.
    pub fn packet(&mut self, budget: &Budget<'_>, into: &mut Vec<u8>) -> Result<Option<usize>> {
        into.clear();
        let video = &*self.video;
        while let Some(packet) = video.track.packets.get(self.next).filter(|_| self.next < self.end) {
            self.next += 1;
            let bytes = packet.of(&video.file);
            budget.look(bytes.len() + size_of_val(packet))?;
            if video.is_left_out(self.key, packet) {
                continue;
            }
            budget.frame(video.size, Duration::ZERO)?;
            let number = self.next - 1;
            match (self.coding, self.framing) {
                (Coding::H264 | Coding::H265, Framing::Lengths(_)) => {
                    if !self.has_begun {
                        let (parameters, _) = nal::configuration(video.track.codec, &video.track.config)
                            .context(|| format!("packet {number} of the video"))?;
                        parameters.into_iter().for_each(|unit| push_unit(unit, into));
                    }
                    nal::units(bytes, self.framing).for_each(|unit| push_unit(unit, into));
                }
                (Coding::Av1, _) if !self.has_begun => {
                    into.extend_from_slice(av1::parameters(&video.track.config));
                    into.extend_from_slice(bytes);
                }
                (Coding::Mpeg4, _) if !self.has_begun => {
                    into.extend_from_slice(&video.track.config);
                    into.extend_from_slice(bytes);
                }
                _ => into.extend_from_slice(bytes),
            }
            self.has_begun = true;
            return Ok(Some(self.places.get(number - self.key).copied().unwrap_or(self.order.len())));
        }
        Ok(None)
    }

    /// The frames that the next picture that is shown is. Pictures are counted; `place` is what came with the picture's
    /// packet, and must say the same where pictures may be shown in another order than they are decoded.
    ///
    /// # Errors
    /// When it does not.
    pub fn frames(&mut self, place: usize) -> Result<Vec<usize>> {
        let is_reordered = !matches!(self.coding, Coding::Vp8 | Coding::Vp9);
        let picture = self.pictures;
        self.pictures += 1;
        if is_reordered && self.video.track.timed && place != picture {
            return Err(Error::unsupported(format!(
                "the picture that is shown as number {picture} of its group should be number {place}"
            )));
        }
        let packet = self.order.get(picture);
        Ok(packet.and_then(|packet| self.left.remove(packet)).unwrap_or_default())
    }

    /// Whether all pictures have come, and with them all frames.
    pub fn is_done(&self) -> bool {
        self.left.is_empty() && self.next >= self.end && self.pictures == self.order.len()
    }
}

/// Adds a unit behind a start code.
pub(super) fn push_unit(unit: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(&[0, 0, 0, 1]);
    into.extend_from_slice(unit);
}
