//! FLAC, bare, in Ogg and in Matroska: its headers, and frames one after the other. It must not know how a frame is
//! coded.

mod frame;
mod subframe;

use super::ogg;
use super::packets::Packets;
use super::sound::{Block, Coding, Header, Stream};
use crate::error::{Error, Result};
use frame::{Decoder, FrameHeader, SHORTEST};

/// What a file begins with.
pub(crate) const MARK: &[u8] = b"fLaC";
/// What the first packet in Ogg begins with, and bytes up to [`MARK`]: a version, and how many headers follow.
pub(crate) const OGG_MARK: &[u8] = b"\x7fFLAC";
const OGG_HEAD: usize = 4;
/// Bytes of the first block, which says what the stream is.
const STREAM_INFO: usize = 34;
/// Bytes at a file's end in which its last frame begins, where no header says how long it is; and places there that
/// look like one, which are tried.
const LAST_FRAME: usize = 1 << 20;
const MAX_TRIES: usize = 64;

fn damaged(what: &str) -> Error {
    Error::invalid(format!("the FLAC audio is damaged: {what}"))
}

/// What the first block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Info {
    /// Samples of a frame.
    longest: usize,
    rate: u32,
    channels: usize,
    bits: u32,
    /// Samples of each channel, 0 if that was not known.
    frames: u64,
}

impl Info {
    fn read(block: &[u8]) -> Result<Self> {
        let (Some(sizes), Some(rest)) =
            (block.first_chunk::<4>(), block.get(10..).and_then(<[u8]>::first_chunk::<8>))
        else {
            return Err(damaged("its first header is cut off"));
        };
        let [_, _, longest @ ..] = *sizes;
        let rest = u64::from_be_bytes(*rest);
        let info = Self {
            longest: usize::from(u16::from_be_bytes(longest)),
            rate: (rest >> 44) as u32,
            channels: (rest >> 41 & 7) as usize + 1,
            bits: (rest >> 36 & 31) as u32 + 1,
            frames: rest & 0xf_ffff_ffff,
        };
        if info.rate == 0 || info.bits < 4 {
            return Err(damaged("its first header has no rate or no bits"));
        }
        Ok(info)
    }

    /// For as many bytes of frames as `bytes`.
    fn header(self, frames: u64, bytes: usize) -> Result<Header> {
        // No frame is shorter than this, or longer than the longest that there may be.
        let most = (bytes / SHORTEST) as u64 * u64::from(u16::MAX);
        if frames > most {
            return Err(Error::invalid(format!(
                "the audio ends after at most {most} of {frames} samples of a channel"
            )));
        }
        let Self { channels, rate, .. } = self;
        let frames = usize::try_from(frames).map_err(|_| damaged("it is too long"))?;
        let scratch = usize::from(u16::MAX) * channels * (size_of::<i64>() + size_of::<i32>());
        Ok(Header { frames, channels, rate, coding: Coding::Flac, scratch })
    }
}

/// What a file is, and its frames.
fn begin(bytes: &[u8]) -> Result<(Info, &[u8])> {
    let cut = || damaged("its headers are cut off");
    let mut rest = bytes.strip_prefix(MARK).ok_or_else(cut)?;
    let mut info = None;
    loop {
        let ([kind, length @ ..], body) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let [a, b, c] = *length;
        let (body, behind) =
            body.split_at_checked(u32::from_be_bytes([0, a, b, c]) as usize).ok_or_else(cut)?;
        // Others hold text, pictures, places: nothing that decides about samples.
        if kind & 0x7f == 0 && info.is_none() {
            info = Some(Info::read(body)?);
        }
        rest = behind;
        if kind & 0x80 != 0 {
            break;
        }
    }
    Ok((info.ok_or_else(cut)?, rest))
}

/// What a file says of itself.
///
/// # Errors
/// Invalid, for a damaged file.
pub(crate) fn header(bytes: &[u8]) -> Result<Header> {
    let (info, rest) = begin(bytes)?;
    let frames = match info.frames {
        0 => last_frame(&info, rest).ok_or_else(|| {
            Error::invalid(
                "the audio's header does not say its length, and no frame ends where the file does",
            )
        })?,
        frames => frames,
    };
    info.header(frames, rest.len())
}

/// Where the frame ends that a file ends with, of a stream whose frames are `frames`.
fn last_frame(info: &Info, frames: &[u8]) -> Option<u64> {
    let tail = frames.get(frames.len().saturating_sub(LAST_FRAME)..)?;
    memchr::memrchr_iter(0xff, tail)
        .filter_map(|place| {
            let frame = tail.get(place..)?;
            Some((frame, FrameHeader::read(frame)?))
        })
        .take(MAX_TRIES)
        .find(|(frame, _)| frame::has_right_sum(frame))
        .and_then(|(_, header)| header.end(info.longest))
}

/// The headers of stream `serial` of an Ogg file, and the packets behind them.
fn begin_ogg<'a>(mut packets: ogg::Packets<'a>) -> Result<(Info, ogg::Packets<'a>)> {
    let cut = || damaged("its headers are cut off");
    let first = packets.next()?.ok_or_else(cut)?.bytes;
    let rest = first.strip_prefix(OGG_MARK).and_then(|rest| rest.get(OGG_HEAD..)).ok_or_else(cut)?;
    let block = rest.strip_prefix(MARK).and_then(|rest| rest.get(..4 + STREAM_INFO)).ok_or_else(cut)?;
    let (mut is_last, info) =
        (block.first().is_some_and(|kind| kind & 0x80 != 0), Info::read(block.get(4..).unwrap_or_default())?);
    while !is_last {
        let packet = packets.next()?.ok_or_else(cut)?;
        is_last = packet.bytes.first().is_some_and(|kind| kind & 0x80 != 0);
    }
    Ok((info, packets))
}

/// What stream `serial` of an Ogg file says of itself.
///
/// # Errors
/// Invalid, for a damaged file.
pub(crate) fn header_in_ogg(bytes: &[u8], serial: u32) -> Result<Header> {
    let (info, mut packets) = begin_ogg(ogg::Packets::new(bytes, serial))?;
    let (mut end, mut length) = (0, 0);
    while let Some(packet) = packets.next()? {
        length += packet.bytes.len();
        end = packet.position.map_or(end, i64::unsigned_abs);
    }
    info.header(if info.frames == 0 { end } else { info.frames }, length)
}

/// What `head`, a file's headers, says of packets that are a frame each.
///
/// # Errors
/// Invalid, for a damaged header, and a packet that is no frame.
pub(crate) fn header_of(head: &[u8], packets: &[&[u8]]) -> Result<Header> {
    let (info, _) = begin(head)?;
    let (mut frames, mut length) = (0, 0);
    for packet in packets {
        let frame = FrameHeader::read(packet).ok_or_else(|| damaged("a packet is no frame"))?;
        frames += frame.size as u64;
        length += packet.len();
    }
    info.header(frames, length)
}

/// Where frames come from.
enum Container<'a> {
    Bare(&'a [u8]),
    Packets(Packets<'a>),
}

/// A file that is decoded.
pub(crate) struct Flac<'a> {
    source: Container<'a>,
    decoder: Decoder,
}

impl<'a> Flac<'a> {
    /// A bare file.
    ///
    /// # Errors
    /// As [`header`].
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let (info, rest) = begin(bytes)?;
        Ok(Self { source: Container::Bare(rest), decoder: Decoder::new(info.channels, info.bits) })
    }

    /// Stream `serial` of an Ogg file whose header was read, so that sums of pages need no second look.
    ///
    /// # Errors
    /// As [`header_in_ogg`].
    pub(crate) fn open_in_ogg(bytes: &'a [u8], serial: u32) -> Result<Self> {
        let (info, packets) = begin_ogg(ogg::Packets::unchecked(bytes, serial))?;
        let source = Container::Packets(Packets::Ogg(packets));
        Ok(Self { source, decoder: Decoder::new(info.channels, info.bits) })
    }

    /// Packets that are a frame each, behind a file's headers `head`.
    ///
    /// # Errors
    /// As [`header_of`].
    pub(crate) fn of(head: &[u8], packets: Vec<&'a [u8]>) -> Result<Self> {
        let (info, _) = begin(head)?;
        let source = Container::Packets(Packets::told(packets));
        Ok(Self { source, decoder: Decoder::new(info.channels, info.bits) })
    }
}

impl Stream for Flac<'_> {
    fn next(&mut self) -> Result<Option<(Block<'_>, usize)>> {
        let length = match &mut self.source {
            Container::Bare([]) => return Ok(None),
            Container::Bare(rest) => {
                let length = self.decoder.decode(rest)?;
                *rest = rest.get(length..).unwrap_or_default();
                length
            }
            Container::Packets(packets) => match packets.next()? {
                Some(packet) if packet.bytes.is_empty() => return Ok(Some((Block::Integers(&[]), 0))),
                Some(packet) => self.decoder.decode(packet.bytes)?,
                None => return Ok(None),
            },
        };
        Ok(Some((Block::Integers(self.decoder.samples()), length)))
    }
}
