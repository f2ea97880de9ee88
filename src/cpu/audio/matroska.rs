//! The sound of Matroska and WebM: its first track, which packets it has, and which of their samples are heard. It must
//! not know how a packet is decoded.
//!
//! What an encoder puts in front and behind is left out as the file says: by the track's delay, and by what blocks say
//! is to be discarded.

use super::coded::Coded;
use super::flac::{self, Flac};
use super::lacing;
use super::opus::{self, Opus};
use super::sound::{Coding, Header, Stream};
use super::vorbis::{self, Vorbis};
use super::{aac, alac, mp3};
use crate::cpu::bytes::Bytes;
use crate::cpu::formats::Format;
use crate::cpu::matroska::{Element, Walk, id, is_matroska, number};
use crate::error::{Error, Result};
use crate::limits;

/// The type of a track of sound.
const SOUND: u64 = 2;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// The rate that Opus counts at.
const OPUS_RATE: u32 = 48_000;

/// What packets are.
#[derive(Debug, Clone, Copy)]
enum Codec<'a> {
    /// Behind this header.
    Opus(&'a [u8]),
    /// Behind the first and the third header.
    Vorbis([&'a [u8]; 2]),
    /// Behind these headers.
    Flac(&'a [u8]),
    Aac(aac::Config),
    Alac(alac::Config<'a>),
    Mp3,
}

impl<'a> Codec<'a> {
    fn read(name: &[u8], private: &'a [u8]) -> Result<Self> {
        Ok(match name {
            b"A_OPUS" => Self::Opus(private),
            b"A_VORBIS" => match *lacing::headers(private)? {
                [first, _, third] => Self::Vorbis([first, third]),
                _ => return Err(Error::invalid("a track of Vorbis without its three headers")),
            },
            b"A_FLAC" => Self::Flac(private),
            b"A_AAC" => Self::Aac(aac::Config::read(private)?),
            b"A_ALAC" => Self::Alac(alac::Config::read(private)?),
            b"A_MPEG/L3" => Self::Mp3,
            name => {
                let name = name.escape_ascii();
                return Err(Error::unsupported(format!("Matroska with sound of kind `{name}`, {EXPECTED}")));
            }
        })
    }

    fn format(self) -> Format {
        match self {
            Self::Opus(_) => Format::Opus,
            Self::Vorbis(_) => Format::Vorbis,
            Self::Flac(_) => Format::Flac,
            Self::Aac(_) => Format::Aac,
            Self::Alac(_) => Format::Alac,
            Self::Mp3 => Format::Mp3,
        }
    }
}

const EXPECTED: &str = "expected Opus, Vorbis, FLAC, AAC, ALAC or MP3";

/// A file: its packets, and which of their samples are heard.
#[derive(Debug, Clone)]
pub(crate) struct Matroska<'a> {
    codec: Codec<'a>,
    packets: Vec<&'a [u8]>,
    /// Nanoseconds in front and behind that are left out.
    delay: u64,
    discarded: u64,
}

/// The track that is read.
struct Track<'a> {
    number: u64,
    codec: Codec<'a>,
    delay: u64,
}

impl<'a> Matroska<'a> {
    /// Opens a file that begins as these do, with its first track of sound.
    ///
    /// # Errors
    /// Invalid, for damaged elements, a file that is cut off or has no sound; unsupported, for other codecs.
    pub(crate) fn open(file: &'a [u8]) -> Option<Result<Self>> {
        is_matroska(file).then(|| Self::read(file))
    }

    fn read(file: &'a [u8]) -> Result<Self> {
        let mut walk = Walk::new(file);
        let segment = segment(&mut walk)?;
        let (mut found, mut at): (Option<(u64, Self)>, usize) = (None, segment.start);
        while let Some(element) = walk.element(at, segment.end)? {
            at = element.end;
            match (element.id, &mut found) {
                (id::TRACKS, None) => {
                    found = track(&mut walk, element)?.map(|Track { number, codec, delay }| {
                        (number, Self { codec, packets: Vec::new(), delay, discarded: 0 })
                    });
                }
                (id::CLUSTER, Some((number, sound))) => at = sound.cluster(&mut walk, element, *number)?,
                _ => {}
            }
        }
        let (_, sound) = found.ok_or_else(|| Error::invalid("a Matroska file without a track of sound"))?;
        if let Codec::Aac(_) = sound.codec {
            aac::check_efficiency(sound.packets.iter().copied())?;
        }
        Ok(sound)
    }

    /// Adds the packets of a cluster; where it ends. One of unknown size ends where the next one begins.
    fn cluster(&mut self, walk: &mut Walk<'a>, cluster: Element, number: u64) -> Result<usize> {
        let mut at = cluster.start;
        while let Some(element) = walk.element(at, cluster.end)? {
            match element.id {
                id::SIMPLE_BLOCK => self.block(walk, element, number)?,
                id::BLOCK_GROUP => {
                    let parts = walk.children(element)?;
                    let before = self.packets.len();
                    for part in parts.iter().filter(|part| part.id == id::BLOCK) {
                        self.block(walk, *part, number)?;
                    }
                    let padding = parts.iter().find(|part| part.id == id::DISCARD_PADDING);
                    if let Some(padding) = padding.filter(|_| self.packets.len() > before) {
                        self.discard(walk.content(*padding))?;
                    }
                }
                id::CLUSTER => return Ok(at),
                _ => {}
            }
            at = element.end;
        }
        Ok(cluster.end)
    }

    /// Adds the packets of a block, if it is one of track `number`.
    fn block(&mut self, walk: &Walk<'a>, block: Element, track: u64) -> Result<()> {
        let mut bytes = Bytes(walk.content(block));
        if number(&mut bytes)? != Some(track) {
            return Ok(());
        }
        if block.missing > 0 {
            return Err(Error::invalid("the audio ends within a block of Matroska"));
        }
        // When it is heard.
        bytes.skip(2)?;
        let flags = bytes.u8()?;
        let packets = lacing::packets(flags, bytes.0)?;
        if self.packets.len() + packets.len() > limits::MAX_SOUND_PACKETS {
            return Err(Error::unsupported(format!(
                "audio of more than {} packets, which is the limit",
                limits::MAX_SOUND_PACKETS
            )));
        }
        self.packets.extend(packets);
        Ok(())
    }

    /// Leaves out so many nanoseconds at the end, a signed number.
    fn discard(&mut self, told: &[u8]) -> Result<()> {
        let bytes = told.get(..8).unwrap_or(told);
        if bytes.first().is_some_and(|first| first & 0x80 != 0) {
            return Err(Error::unsupported(
                "Matroska with sound of which the beginning of a packet is left out",
            ));
        }
        let padding = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        self.discarded = self.discarded.saturating_add(padding);
        Ok(())
    }

    /// The format of its packets.
    pub(crate) fn format(&self) -> Format {
        self.codec.format()
    }

    /// Samples in front that are left out, of packets of rate `rate`.
    fn skip(&self, rate: u32) -> usize {
        match self.codec {
            Codec::Aac(_) if self.delay == 0 => aac::delay(self.packets.iter().copied()),
            _ => samples(self.delay, rate),
        }
    }

    /// What the file says of itself.
    ///
    /// # Errors
    /// Those of its codec.
    pub(crate) fn header(&self) -> Result<Header> {
        let packets = &self.packets;
        let mut last = usize::MAX;
        let header = match self.codec {
            // Its own header says what is left out in front.
            Codec::Opus(head) => opus::header_of(head, packets, samples(self.discarded, OPUS_RATE))?,
            Codec::Vorbis(heads) => {
                let (header, last_frames) = vorbis::header_of(heads, packets)?;
                last = last_frames;
                header
            }
            Codec::Flac(head) => flac::header_of(head, packets)?,
            Codec::Mp3 => mp3::header_of(packets)?,
            Codec::Aac(config) => config.header(packets.len(), 0),
            Codec::Alac(config) => {
                let mut frames = 0_usize;
                for packet in packets {
                    frames = frames.saturating_add(config.samples(packet)?);
                }
                let alac::Config { channels, rate, .. } = config;
                Header { frames, channels, rate, coding: Coding::Alac, scratch: config.scratch() }
            }
        };
        let behind = |rate| Some(samples(self.discarded, rate)).filter(|&behind| behind <= last).unwrap_or(0);
        let left_out = match self.codec {
            Codec::Opus(_) => 0,
            // FFmpeg writes more than the last packet of Vorbis has, and then leaves out nothing.
            _ => self.skip(header.rate).saturating_add(behind(header.rate)),
        };
        let scratch = header.scratch + packets.len() * size_of::<&[u8]>();
        Ok(Header { frames: header.frames.saturating_sub(left_out), scratch, ..header })
    }

    /// What decodes it.
    ///
    /// # Errors
    /// Those of its codec.
    pub(crate) fn stream(self) -> Result<Box<dyn Stream + 'a>> {
        let Header { channels, rate, .. } = self.header()?;
        let skip = self.skip(rate);
        let (name, decoder) = match self.codec {
            Codec::Opus(head) => return Ok(Box::new(Opus::of(head, self.packets)?)),
            Codec::Vorbis(heads) if skip == 0 => return Ok(Box::new(Vorbis::of(heads, self.packets)?)),
            Codec::Flac(head) if skip == 0 => return Ok(Box::new(Flac::of(head, self.packets)?)),
            Codec::Vorbis(_) | Codec::Flac(_) => {
                return Err(Error::unsupported("Matroska with sound of FLAC or Vorbis that has a delay"));
            }
            Codec::Aac(config) => ("AAC", config.decoder()?),
            Codec::Alac(config) => ("ALAC", config.decoder()?),
            Codec::Mp3 => ("MP3", mp3::decoder()?),
        };
        Ok(Box::new(Coded::new(name, decoder, self.packets.into_iter(), channels, skip)))
    }
}

/// Samples of so many nanoseconds, rounded.
fn samples(nanoseconds: u64, rate: u32) -> usize {
    let samples = (u128::from(nanoseconds) * u128::from(rate) + u128::from(SECOND / 2)) / u128::from(SECOND);
    usize::try_from(samples).unwrap_or(usize::MAX)
}

fn segment(walk: &mut Walk<'_>) -> Result<Element> {
    let mut at = 0;
    while let Some(top) = walk.element(at, walk.file.len())? {
        if top.id == id::SEGMENT && top.missing > 0 {
            return Err(Error::invalid(format!(
                "the audio ends {} bytes before its segment of Matroska does",
                top.missing
            )));
        }
        if top.id == id::SEGMENT {
            return Ok(top);
        }
        at = top.end;
    }
    Err(Error::invalid("a Matroska file without a segment"))
}

/// The first track of sound of those that are described.
fn track<'a>(walk: &mut Walk<'a>, all: Element) -> Result<Option<Track<'a>>> {
    for entry in walk.children(all)?.into_iter().filter(|entry| entry.id == id::TRACK_ENTRY) {
        let fields = walk.children(entry)?;
        let field = |id: u32| fields.iter().copied().find(|field| field.id == id);
        let unsigned = |id: u32| field(id).map_or(0, |field| walk.unsigned(field));
        if unsigned(id::TRACK_TYPE) != SOUND {
            continue;
        }
        if field(id::CONTENT_ENCODINGS).is_some() {
            return Err(Error::unsupported(
                "a track of sound whose packets are compressed or encrypted once more",
            ));
        }
        let content = |id: u32| field(id).map(|field| walk.content(field)).unwrap_or_default();
        let codec = Codec::read(content(id::CODEC_ID), content(id::CODEC_PRIVATE))?;
        return Ok(Some(Track {
            number: unsigned(id::TRACK_NUMBER),
            codec,
            delay: unsigned(id::CODEC_DELAY),
        }));
    }
    Ok(None)
}
