//! Which decoder a track needs, and what its packets say before one is decoded. It must not know containers.

use super::decoder::{VideoDecoder, check_size};
use super::track::{Codec, Packet, Track};
use super::{av1, h264, h265, mjpeg, mpeg4, nal, vp8, vp9};
use crate::error::{Error, Result};

/// A decoder for `track`.
///
/// # Errors
/// When the container's configuration makes no sense; of a codec that only devices decode.
pub(super) fn decoder(track: &Track) -> Result<Box<dyn VideoDecoder>> {
    Ok(match track.codec {
        Codec::H264 => Box::new(h264::Decoder::new(&track.config)?),
        Codec::H265 => Box::new(h265::Decoder::new(&track.config)?),
        Codec::Vp8 => Box::new(vp8::Decoder::new()),
        Codec::Vp9 => Box::new(vp9::Decoder::new()),
        Codec::Av1 => Box::new(av1::Decoder::new(&track.config)?),
        Codec::Mjpeg => Box::new(mjpeg::Decoder::new()),
        Codec::Mpeg4 => {
            return Err(Error::unsupported(
                "MPEG-4 Part 2 is decoded by the video engines of a GPU alone, which are not there or do not decode this video",
            ));
        }
    })
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

    /// Says of a packet of these bytes whether decoding may begin there and whether it is shown: containers are often wrong.
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
