//! What all codecs share: a decoder takes packets and gives pictures in the order in which they are shown. And what a stream says of
//! its pictures before one is decoded. It must not know containers.

use super::track::{Codec, Track};
use super::{av1, h264, h265, mjpeg, nal, vp9};
use crate::error::{Error, Result};
use crate::limits;

/// A decoder of one codec. It begins with a key frame and is used up when its packets have ended.
pub(super) trait VideoDecoder {
    /// Takes the bytes of one frame; `place` comes back with its picture.
    ///
    /// # Errors
    /// Bytes that are damaged, or a way of coding that the decoder does not know.
    fn send(&mut self, packet: &[u8], place: usize) -> Result<()>;

    /// Says that there are no more packets: all pictures come.
    ///
    /// # Errors
    /// Those of [`VideoDecoder::send`].
    fn finish(&mut self) -> Result<()>;

    /// The next picture in the order in which they are shown, if there is one yet.
    fn next(&mut self) -> Option<Box<dyn Picture>>;
}

/// A decoded picture, or one that can be decoded without others.
pub(super) trait Picture {
    /// What was given with its packet.
    fn place(&self) -> usize;

    /// Columns and rows.
    fn size(&self) -> [usize; 2];

    /// Writes it as RGB, 8 bits each, in rows without gaps.
    ///
    /// # Errors
    /// Bytes that are damaged.
    fn write_rgb(&self, out: &mut [u8]) -> Result<()>;
}

/// A decoder for `track`.
///
/// # Errors
/// When the container's configuration makes no sense.
pub(super) fn decoder(track: &Track<'_>) -> Result<Box<dyn VideoDecoder>> {
    Ok(match track.codec {
        Codec::H264 => Box::new(h264::Decoder::new(track.config)?),
        Codec::H265 => Box::new(h265::Decoder::new(track.config)?),
        Codec::Vp9 => Box::new(vp9::Decoder::new()),
        Codec::Av1 => Box::new(av1::Decoder::new()?),
        Codec::Mjpeg => Box::new(mjpeg::Decoder::new()),
    })
}

/// Columns and rows of the pictures of a track, of which `first` is the first packet.
///
/// # Errors
/// Parameters that are missing, damaged or ask for too large pictures.
pub(super) fn picture_size(track: &Track<'_>, first: &[u8]) -> Result<[usize; 2]> {
    let size = match track.codec {
        Codec::H264 => h264::size(track.config, first)?,
        Codec::H265 => h265::size(track.config, first)?,
        Codec::Vp9 => vp9::size(first)?,
        Codec::Av1 => track.size,
        Codec::Mjpeg => mjpeg::size(first)?,
    };
    check_size(size)
}

/// Lets sizes pass that decoders may allocate memory for.
///
/// # Errors
/// A side of 0, or more pixels than [`limits::MAX_VIDEO_PIXELS`].
pub(super) fn check_size(size: [usize; 2]) -> Result<[usize; 2]> {
    let [width, height] = size;
    if width == 0 || height == 0 {
        return Err(Error::invalid(format!("frames of {width} x {height} pixels, expected at least one")));
    }
    if width.checked_mul(height).is_none_or(|pixels| pixels > limits::MAX_VIDEO_PIXELS) {
        return Err(Error::invalid(format!(
            "frames of {width} x {height} pixels are larger than the limit of {} pixels",
            limits::MAX_VIDEO_PIXELS
        )));
    }
    Ok(size)
}

/// Says of every packet whether decoding may begin there, as far as its bytes tell: containers are often wrong.
///
/// # Errors
/// Those of [`nal::configuration`].
pub(super) fn mark_keys(file: &[u8], track: &mut Track<'_>) -> Result<()> {
    let codec = track.codec;
    let framing = match codec {
        Codec::H264 | Codec::H265 if track.timed => nal::configuration(codec, track.config)?.1,
        Codec::Vp9 | Codec::Mjpeg => nal::Framing::StartCodes,
        _ => return Ok(()),
    };
    for packet in &mut track.packets {
        let bytes = packet.of(file);
        packet.key = match codec {
            Codec::Mjpeg => true,
            Codec::Vp9 => vp9::is_key(bytes),
            _ => nal::units(bytes, framing).into_iter().any(
                |unit| matches!(nal::kind(codec, unit), nal::Kind::Slice { key, .. } if key != nal::Key::No),
            ),
        };
    }
    Ok(())
}

/// The error of a decoder that found bytes damaged.
pub(super) fn damaged(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("a frame cannot be decoded: {what}"))
}
