//! A run of frames as a decoder takes it that is not ours: packets as streams have them, which picture is which frame, how colours are made.
//! It must not know that decoder.

use super::color::{Color, Factors, Matrix};
use super::nal::{self, Framing};
use super::track::Codec;
use super::{Budget, Video, Wanted, vp8, vp9};
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
}

/// One of the [`Video::runs`], packet after packet.
pub struct Coded<'v> {
    video: &'v Video<'v>,
    coding: Coding,
    /// The packet that it begins with.
    key: usize,
    /// The packet that comes next.
    next: usize,
    /// The packet behind the last one.
    end: usize,
    /// Packets that were given.
    given: usize,
    /// Pictures that were shown.
    pictures: usize,
    /// Frames that did not come yet.
    left: Wanted,
    framing: Framing,
    /// Whether samples take the whole range, where that is not left to the stream.
    full_range: Option<bool>,
}

impl Video<'_> {
    /// How packets are compressed, if other decoders than ours may take them.
    pub fn coding(&self) -> Option<Coding> {
        match self.track.codec {
            Codec::H264 => Some(Coding::H264),
            Codec::H265 => Some(Coding::H265),
            Codec::Vp8 => Some(Coding::Vp8),
            Codec::Vp9 => Some(Coding::Vp9),
            Codec::Av1 | Codec::Mjpeg => None,
        }
    }

    /// One of the [`Video::runs`] for another decoder.
    ///
    /// # Errors
    /// A frame that there is not, a codec that is only ours, or parameters that make no sense.
    pub fn coded(&self, run: &[usize]) -> Result<Coded<'_>> {
        let coding = self.coding().ok_or_else(|| Error::unsupported("a codec without another decoder"))?;
        let first = *run.first().ok_or_else(|| Error::internal("a run of no frames"))?;
        let (key, mut left) = (self.key_of(first)?, Wanted::new());
        for &frame in run {
            let packet = self.shown.get(frame).map_or(usize::MAX, |shown| shown.packet);
            left.entry(packet).or_default().push(frame);
        }
        let last = left.last_key_value().map_or(key, |(&packet, _)| packet);
        let packet = self.track.packets.get(key).map_or(&[][..], |packet| packet.of(&self.file));
        let full_range = match coding {
            Coding::Vp8 => Some(vp8::is_full_range(packet)?),
            Coding::Vp9 => Some(vp9::is_full_range(packet)?),
            Coding::H264 | Coding::H265 => None,
        };
        let framing = match coding {
            Coding::Vp8 | Coding::Vp9 => Framing::StartCodes,
            Coding::H264 | Coding::H265 => nal::configuration(self.track.codec, &self.track.config)?.1,
        };
        let end = self.end_of(key, last);
        Ok(Coded {
            video: self,
            coding,
            key,
            next: key,
            end,
            given: 0,
            pictures: 0,
            left,
            framing,
            full_range,
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
            None => Color { matrix: Matrix::numbered(matrix), full_range },
        })
    }

    /// Replaces what `into` holds by the next packet, the first one behind the parameters that the container holds, and returns its number;
    /// `None` when there are no more.
    ///
    /// # Errors
    /// More packets than is left of `budget`.
    pub fn packet(&mut self, budget: &Budget, into: &mut Vec<u8>) -> Result<Option<usize>> {
        into.clear();
        let video = self.video;
        while let Some(packet) = video.track.packets.get(self.next).filter(|_| self.next < self.end) {
            self.next += 1;
            if video.is_left_out(self.key, packet) {
                continue;
            }
            budget.spend(video.size)?;
            let bytes = packet.of(&video.file);
            let number = self.next - 1;
            match (self.coding, self.framing) {
                (Coding::H264 | Coding::H265, Framing::Lengths(_)) => {
                    if self.given == 0 {
                        let (parameters, _) = nal::configuration(video.track.codec, &video.track.config)
                            .context(|| format!("packet {number} of the video"))?;
                        parameters.into_iter().for_each(|unit| push_unit(unit, into));
                    }
                    nal::units(bytes, self.framing).into_iter().for_each(|unit| push_unit(unit, into));
                }
                _ => into.extend_from_slice(bytes),
            }
            self.given += 1;
            return Ok(Some(number));
        }
        Ok(None)
    }

    /// The frames that the next picture that is shown is, which came of packet `number`; of a video whose container does not say when frames
    /// are shown, the order of pictures says it.
    pub fn frames(&mut self, number: usize) -> Vec<usize> {
        let place = if self.video.track.timed { number } else { self.key + self.pictures };
        self.pictures += 1;
        self.left.remove(&place).unwrap_or_default()
    }

    /// Whether all frames have come. Where their order says which is which, none must be missing.
    pub fn is_done(&self) -> bool {
        let is_whole = self.next >= self.end && self.pictures == self.given;
        self.left.is_empty() && (self.video.track.timed || is_whole)
    }
}

/// Adds a unit behind a start code.
fn push_unit(unit: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(&[0, 0, 0, 1]);
    into.extend_from_slice(unit);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/video/");
        std::fs::read(format!("{folder}{name}")).unwrap()
    }

    fn packets(coded: &mut Coded<'_>) -> Vec<(usize, Vec<u8>)> {
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        while let Some(number) = coded.packet(&Budget::default(), &mut bytes).unwrap() {
            found.push((number, bytes.clone()));
        }
        found
    }

    #[test]
    fn units_get_start_codes_and_the_first_packet_the_parameters() {
        let (file, stream) = (file("h264.mp4"), file("h264.h264"));
        let video = Video::open(&file).unwrap();
        let mut coded = video.coded(&[0, 1, 2, 3, 4]).unwrap();
        let found = packets(&mut coded);
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let kinds = |bytes: &[u8]| {
            let units = nal::units(bytes, Framing::StartCodes);
            units.into_iter().map(|unit| unit[0] & 0x1F).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&found[0].1)[..2], [7, 8]);
        assert!(kinds(&found[0].1).contains(&5));
        assert_eq!(kinds(&found[1].1), [1]);
        // What a stream without a container has, but for how often it repeats parameters.
        let slices = |bytes: &[u8]| {
            let units = nal::units(bytes, Framing::StartCodes).into_iter().map(<[u8]>::to_vec);
            units.filter(|unit| [1, 5].contains(&(unit[0] & 0x1F))).collect::<Vec<_>>()
        };
        let all: Vec<u8> = found.into_iter().flat_map(|(_, bytes)| bytes).collect();
        assert_eq!(slices(&all), slices(&stream)[..5]);
    }

    #[test]
    fn frames_come_in_any_order_and_are_all_awaited() {
        let file = file("h264.mp4");
        let video = Video::open(&file).unwrap();
        let mut coded = video.coded(&[2, 4]).unwrap();
        let shown: Vec<usize> = packets(&mut coded).into_iter().map(|(number, _)| number).collect();
        assert!(!coded.is_done());
        let mut frames: Vec<usize> = shown.into_iter().flat_map(|number| coded.frames(number)).collect();
        frames.sort_unstable();
        assert_eq!(frames, [2, 4]);
        assert!(coded.is_done());
    }

    #[test]
    fn without_times_every_picture_counts() {
        let file = file("h265.hevc");
        let video = Video::open(&file).unwrap();
        let mut coded = video.coded(&[1]).unwrap();
        let count = packets(&mut coded).len();
        for picture in 0..count {
            assert!(!coded.is_done());
            assert_eq!(coded.frames(0), if picture == 1 { vec![1] } else { vec![] });
        }
        assert!(coded.is_done());
    }

    #[test]
    fn only_vp8_and_vp9_are_bt601_whatever_they_say() {
        for (name, limited, followed) in [
            ("vp8.ivf", true, false),
            ("vp8_full_range.ivf", false, false),
            ("vp9.ivf", true, false),
            ("h264.mp4", true, true),
        ] {
            let file = file(name);
            let video = Video::open(&file).unwrap();
            let coded = video.coded(&[0]).unwrap();
            let bt709 = coded.factors(1, false);
            assert_eq!(bt709.black > 0, limited, "{name}");
            assert_eq!(bt709.red_of_red != coded.factors(6, false).red_of_red, followed, "{name}");
        }
    }
}
