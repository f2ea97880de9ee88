//! Which decoder a track needs, and what its packets say before one is decoded. It must not know containers.

use super::budget::{Budget, Cost};
use super::decoder::{VideoDecoder, check_size};
use super::track::{Codec, Packet, Track};
use super::{av1, ffmpeg, h264, h265, mjpeg, mpeg4, nal, vp8, vp9};
use crate::cpu::formats::Format;
use crate::error::{Error, Result};

/// A codec as formats are named.
pub(super) fn format(codec: Codec) -> Format {
    match codec {
        Codec::H264 => Format::H264,
        Codec::H265 => Format::H265,
        Codec::Vp8 => Format::Vp8,
        Codec::Vp9 => Format::Vp9,
        Codec::Av1 => Format::Av1,
        Codec::Mjpeg => Format::Mjpeg,
        Codec::Mpeg4 => Format::Mpeg4,
    }
}

/// A decoder for `track`, whose first packet is `first`. No picture that takes more memory than those of that packet is
/// decoded.
///
/// # Errors
/// When the container's configuration or the packet make no sense; of a codec that only devices decode; more than is
/// left of `budget`.
pub(super) fn decoder(track: &Track, first: &[u8], budget: &Budget<'_>) -> Result<Box<dyn VideoDecoder>> {
    if let Some(decoder) = ffmpeg::decoder(track, first, budget)? {
        return Ok(decoder);
    }
    Ok(match track.codec {
        Codec::H264 => Box::new(h264::Decoder::new(&track.config, first, budget)?),
        Codec::H265 => Box::new(h265::Decoder::new(&track.config, first, budget)?),
        Codec::Vp8 => Box::new(vp8::Decoder::new(first)?),
        Codec::Vp9 => Box::new(vp9::Decoder::new(first)?),
        Codec::Av1 => Box::new(av1::Decoder::new(&track.config, track.size)?),
        Codec::Mjpeg => Box::new(mjpeg::Decoder::new()),
        Codec::Mpeg4 => {
            return Err(Error::unsupported(
                "MPEG-4 Part 2 is decoded by an installed FFmpeg or by the video engines of a GPU alone: neither takes this video",
            ));
        }
    })
}

/// Bytes of memory that a decoder for `track`, whose first packet is `first`, takes at most. 0 where its parameters
/// make no sense, as decoding says.
pub(super) fn needs(track: &Track, first: &[u8]) -> usize {
    let by_ffmpeg = ffmpeg::needs(track, first).and_then(Result::ok).unwrap_or(0);
    let needs = match track.codec {
        Codec::H264 => h264::needs(&track.config, first),
        Codec::H265 => h265::needs(&track.config, first),
        Codec::Vp8 => vp8::needs(first),
        Codec::Vp9 => vp9::needs(first),
        Codec::Av1 => av1::needs(&track.config, track.size, first),
        // Of the frame at work, and one that waits.
        Codec::Mjpeg => mjpeg::needs(first).map(|needs| 2 * (needs + first.len())),
        Codec::Mpeg4 => Ok(0),
    };
    needs.unwrap_or(0).max(by_ffmpeg)
}

/// What decoding takes.
pub(super) fn cost(codec: Codec) -> Cost {
    if ffmpeg::decodes(codec) {
        return ffmpeg::COST;
    }
    match codec {
        Codec::H264 => h264::COST,
        Codec::H265 => h265::COST,
        Codec::Vp8 => vp8::COST,
        Codec::Vp9 => vp9::COST,
        Codec::Av1 => av1::COST,
        Codec::Mjpeg => mjpeg::COST,
        Codec::Mpeg4 => Cost { pixel: 0.0, byte: 0.0 },
    }
}

/// Columns and rows of the pictures of a track, of which `first` is the first packet.
///
/// # Errors
/// Parameters that are missing, damaged or ask for too large pictures.
pub(super) fn picture_size(track: &Track, first: &[u8]) -> Result<[usize; 2]> {
    let size = match track.codec {
        Codec::H264 => h264::size(&track.config, first)?,
        Codec::H265 => h265::size(&track.config, first)?,
        Codec::Vp8 => vp8::size(first)?,
        Codec::Vp9 => vp9::size(first)?,
        Codec::Av1 => track.size,
        Codec::Mjpeg => mjpeg::size(first)?,
        Codec::Mpeg4 => mpeg4::size(&track.config, first)?,
    };
    check_size(size)
}

/// Tells key frames from others by their bytes.
type IsKey = dyn Fn(&[u8]) -> bool + Send;

/// What is known of packets by their bytes.
pub(super) struct Marks {
    codec: Codec,
    /// `None` where the container is believed, or the packets were looked at when they were taken apart.
    is_key: Option<Box<IsKey>>,
}

impl Marks {
    /// Of packets of `track`.
    ///
    /// # Errors
    /// Those of [`nal::configuration`].
    pub(super) fn new(track: &Track) -> Result<Self> {
        let codec = track.codec;
        let is_key: Option<Box<IsKey>> = match codec {
            Codec::Mjpeg => Some(Box::new(|_| true)),
            Codec::Mpeg4 => Some(Box::new(mpeg4::is_key)),
            Codec::Vp8 => Some(Box::new(vp8::is_key)),
            Codec::Vp9 => Some(Box::new(vp9::is_key)),
            Codec::H264 | Codec::H265 if track.timed => {
                let (_, framing) = nal::configuration(codec, &track.config)?;
                Some(Box::new(move |packet| nal::is_key(codec, packet, framing)))
            }
            Codec::H264 | Codec::H265 | Codec::Av1 => None,
        };
        Ok(Self { codec, is_key })
    }

    /// Says of a packet of these bytes whether decoding may begin there and whether it is shown: containers are often
    /// wrong.
    pub(super) fn set(&self, packet: &mut Packet, bytes: &[u8]) {
        if let Some(is_key) = &self.is_key {
            packet.key = is_key(bytes);
        }
        packet.hidden = self.codec == Codec::Vp8 && !vp8::is_shown(bytes);
    }
}

/// [`Marks`] of all packets of a file, and the parameters that its container has not.
///
/// # Errors
/// Those of [`Marks::new`].
pub(super) fn mark_packets(file: &[u8], track: &mut Track) -> Result<()> {
    if let Some(first) =
        track.packets.first().filter(|_| track.codec == Codec::Mpeg4 && track.config.is_empty())
    {
        track.config = mpeg4::parameters(first.of(file)).to_vec();
    }
    let marks = Marks::new(track)?;
    for packet in &mut track.packets {
        let bytes = packet.of(file);
        marks.set(packet, bytes);
    }
    Ok(())
}
