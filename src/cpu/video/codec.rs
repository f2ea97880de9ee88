//! Which decoder a track needs, and what its packets say before one is decoded. It must not know containers.

use super::decoder::{VideoDecoder, check_size};
use super::nal::{Key, Kind};
use super::track::{Codec, Track};
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
        Codec::Av1 => Box::new(av1::Decoder::new()?),
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
type IsKey = dyn Fn(&[u8]) -> bool;

/// Says of every packet whether decoding may begin there and whether it is shown, as far as its bytes tell: containers are often wrong.
///
/// # Errors
/// Those of [`nal::configuration`].
pub(super) fn mark_packets(file: &[u8], track: &mut Track) -> Result<()> {
    let codec = track.codec;
    let is_key: Box<IsKey> = match codec {
        Codec::Mjpeg => Box::new(|_| true),
        Codec::Mpeg4 => {
            if let Some(first) = track.packets.first().filter(|_| track.config.is_empty()) {
                track.config = mpeg4::parameters(first.of(file)).to_vec();
            }
            Box::new(mpeg4::is_key)
        }
        Codec::Vp8 => Box::new(vp8::is_key),
        Codec::Vp9 => Box::new(vp9::is_key),
        Codec::H264 | Codec::H265 if track.timed => {
            let (_, framing) = nal::configuration(codec, &track.config)?;
            let begins = move |unit: &[u8]| matches!(nal::kind(codec, unit), Kind::Slice { key, .. } if key != Key::No);
            Box::new(move |packet| nal::units(packet, framing).into_iter().any(begins))
        }
        // Those without a container were looked at when they were taken apart; of AV1 the container is believed.
        Codec::H264 | Codec::H265 | Codec::Av1 => return Ok(()),
    };
    for packet in &mut track.packets {
        let bytes = packet.of(file);
        packet.key = is_key(bytes);
        packet.hidden = codec == Codec::Vp8 && !vp8::is_shown(bytes);
    }
    Ok(())
}
