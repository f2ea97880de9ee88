//! The sound of MP4 and QuickTime: AAC and ALAC, which packets are heard, and from which sample on. It must not know
//! how a packet is decoded.
//!
//! What an encoder puts in front is left out as FFmpeg does it: so much as the edit list says, or else the comment
//! `iTunSMPB` of Apple's encoders. Packets behind the edit's end are left out, but no part of one.

use std::ops::Range;

use super::aac;
use super::alac;
use super::coded::Coded;
use super::sound::{Coding, Header};
use crate::cpu::atoms::{atoms, find, head};
use crate::cpu::bytes::Bytes;
use crate::cpu::video::mp4::{edits, find_path, is_mp4, timescale, track_id};
use crate::cpu::video::mp4_samples::{self, Fragments, Samples};
use crate::cpu::video::mpeg4::elementary_stream;
use crate::error::{Error, Result};
use crate::limits;

/// Object types of AAC in an elementary stream (ISO/IEC 14496-1): MPEG-4, and the profile LC of MPEG-2.
const AAC: [u8; 2] = [0x40, 0x67];
/// Samples that the comment `iTunSMPB` may say are in front, as many as FFmpeg believes.
const MAX_PRIMING: i64 = 16_384;

/// What packets are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Codec<'a> {
    /// AAC.
    Aac(aac::Config),
    /// ALAC.
    Alac(alac::Config<'a>),
}

impl<'a> Codec<'a> {
    /// From the first description of a track's samples.
    fn read(stsd: &'a [u8]) -> Result<Self> {
        let entry = atoms(stsd.get(8..).unwrap_or_default()).next();
        let entry = entry.ok_or_else(|| Error::invalid("a track of sound without a description"))?;
        let mut fields = Bytes(entry.body);
        fields.skip(8)?;
        // QuickTime has more fields in later versions.
        let version = fields.u16()?;
        fields.skip(18)?;
        fields.skip(match version {
            1 => 16,
            2 => 36,
            _ => 0,
        })?;
        // It also has a box around the others.
        let boxes = find(fields.0, b"wave").unwrap_or(fields.0);
        let cut = || Error::invalid("a track of sound without the configuration of its codec");
        match &entry.name {
            b"alac" => {
                let config = find(boxes, b"alac").and_then(|config| config.get(4..)).ok_or_else(cut)?;
                Ok(Self::Alac(alac::Config::read(config)?))
            }
            b"mp4a" => {
                let (kind, config) = find(boxes, b"esds").and_then(elementary_stream).ok_or_else(cut)?;
                if !AAC.contains(&kind) {
                    return Err(Error::unsupported(format!(
                        "MP4 with sound of object type {kind:#x}, {EXPECTED}"
                    )));
                }
                Ok(Self::Aac(aac::Config::read(config)?))
            }
            name => Err(Error::unsupported(format!(
                "MP4 with sound of kind `{}`, {EXPECTED}",
                name.escape_ascii()
            ))),
        }
    }

    fn rate(self) -> u32 {
        match self {
            Self::Aac(config) => config.rate,
            Self::Alac(config) => config.rate,
        }
    }

    /// Samples of each channel of a packet.
    fn samples(self, packet: &[u8]) -> Result<usize> {
        match self {
            Self::Aac(_) => Ok(aac::SAMPLES),
            Self::Alac(config) => config.samples(packet),
        }
    }
}

const EXPECTED: &str = "expected AAC (`mp4a`) or ALAC (`alac`)";

/// Packets, in order.
#[derive(Debug, Clone, Default)]
struct Packets {
    places: Vec<Range<usize>>,
    bytes: usize,
}

impl Samples for Packets {
    fn push(&mut self, len: usize, range: Range<usize>, _time: i64, _key: bool) -> Result<()> {
        if range.end > len {
            return Err(Error::invalid("the audio ends before its last packet"));
        }
        self.bytes = self.bytes.saturating_add(range.len());
        if self.places.len() >= limits::MAX_SOUND_PACKETS {
            return Err(Error::unsupported(format!(
                "audio of more than {} packets, which is the limit",
                limits::MAX_SOUND_PACKETS
            )));
        }
        if self.bytes > len.saturating_mul(limits::MAX_VIDEO_OVERLAP) {
            return Err(Error::invalid("packets of audio with more bytes than their file has"));
        }
        self.places.push(range);
        Ok(())
    }
}

/// A file: its packets, and which of their samples are heard.
#[derive(Debug, Clone)]
pub(crate) struct M4a<'a> {
    file: &'a [u8],
    /// What packets are.
    pub(crate) codec: Codec<'a>,
    packets: Vec<Range<usize>>,
    /// Samples in front that are left out.
    skip: usize,
    frames: usize,
}

impl<'a> M4a<'a> {
    /// Opens a file that begins as these do, with its first track of sound.
    ///
    /// # Errors
    /// Invalid, for damaged tables and a file that is cut off; unsupported, for other codecs.
    pub(crate) fn open(file: &'a [u8]) -> Option<Result<Self>> {
        is_mp4(file).then(|| Self::read(file))
    }

    fn read(file: &'a [u8]) -> Result<Self> {
        let moov = moov(file)?;
        let mut tracks = atoms(moov).filter(|atom| atom.name == *b"trak").map(|atom| atom.body);
        let is_sound = |trak: &&[u8]| {
            find_path(trak, &[b"mdia", b"hdlr"]).and_then(|hdlr| hdlr.get(8..12)) == Some(b"soun".as_slice())
        };
        let trak = tracks.find(is_sound).ok_or_else(|| Error::invalid("an MP4 without a track of sound"))?;
        let table = find_path(trak, &[b"mdia", b"minf", b"stbl"])
            .ok_or_else(|| Error::invalid("a track of sound without tables"))?;
        let codec = Codec::read(find(table, b"stsd").unwrap_or_default())?;
        let packets = packets(file, moov, trak, table)?;
        let mut found = Self { file, codec, packets, skip: 0, frames: 0 };
        if matches!(codec, Codec::Aac(_)) {
            aac::check_efficiency(found.bytes())?;
        }
        let scale = timescale(find_path(trak, &[b"mdia", b"mdhd"]))?;
        let heard = heard(moov, trak)?;
        found.cut(heard.start, heard.end, scale)?;
        Ok(found)
    }

    fn bytes(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let file = self.file;
        self.packets.clone().into_iter().filter_map(move |place| file.get(place))
    }

    /// Leaves out what is not between `start` and `end`, in parts of a second.
    fn cut(&mut self, start: i64, end: i64, scale: u32) -> Result<()> {
        let samples = |time: i64| {
            let samples = i128::from(time) * i128::from(self.codec.rate()) / i128::from(scale);
            usize::try_from(samples.max(0)).unwrap_or(usize::MAX)
        };
        let (mut skip, end) = (samples(start), samples(end));
        if skip == 0 && matches!(self.codec, Codec::Aac(_)) {
            skip = aac::delay(self.bytes());
        }
        let (mut total, mut heard) = (0_usize, 0);
        for packet in self.bytes() {
            if total >= end {
                break;
            }
            total = total.saturating_add(self.codec.samples(packet)?);
            heard += 1;
        }
        self.packets.truncate(heard);
        (self.skip, self.frames) = (skip.min(total), total.saturating_sub(skip));
        Ok(())
    }

    /// What the file says of itself.
    pub(crate) fn header(&self) -> Header {
        let frames = self.frames;
        let packets = self.packets.len() * size_of::<Range<usize>>();
        match self.codec {
            Codec::Aac(aac::Config { channels, rate }) => {
                let scratch = packets + aac::DECODER_BYTES;
                Header { frames, channels, rate, coding: Coding::Aac, scratch }
            }
            Codec::Alac(config) => {
                let alac::Config { channels, rate, .. } = config;
                let scratch = packets + config.scratch();
                Header { frames, channels, rate, coding: Coding::Alac, scratch }
            }
        }
    }

    /// What decodes it.
    ///
    /// # Errors
    /// Unsupported, when the decoder refuses the configuration.
    pub(crate) fn stream(&self) -> Result<Coded<'a>> {
        let (name, decoder, channels) = match self.codec {
            Codec::Aac(config) => ("AAC", config.decoder()?, config.channels),
            Codec::Alac(config) => ("ALAC", config.decoder()?, config.channels),
        };
        Ok(Coded::new(name, decoder, self.bytes(), channels, self.skip))
    }
}

/// The box that says what is where. What is behind tables in it may say how much of the sound is heard.
fn moov(file: &[u8]) -> Result<&[u8]> {
    let moov = atoms(file).find(|atom| atom.name == *b"moov");
    let moov = moov.ok_or_else(|| Error::invalid("no `moov` box, which says what is where"))?;
    let told = file.get(moov.at..).and_then(head);
    if told.and_then(|head| head.size).is_some_and(|size| size > file.len() - moov.at) {
        return Err(Error::invalid("the audio ends within its box `moov`, which says what is where"));
    }
    Ok(moov.body)
}

/// Where the packets of a track are, in tables and in fragments.
fn packets(file: &[u8], moov: &[u8], trak: &[u8], table: &[u8]) -> Result<Vec<Range<usize>>> {
    let mut packets = Packets::default();
    mp4_samples::read(file.len(), table, &mut packets)?;
    let mut sizes = Bytes(find(table, b"stsz").unwrap_or_default());
    sizes.skip(8)?;
    if packets.places.len() < sizes.u32()? as usize {
        return Err(Error::invalid("the audio ends before its last packet"));
    }
    if let Some(extends) = find(moov, b"mvex") {
        let mut fragments = Fragments::new(extends, track_id(trak)?);
        for moof in atoms(file).filter(|atom| atom.name == *b"moof") {
            fragments.read(file.len(), moof, &mut packets)?;
        }
    }
    Ok(packets.places)
}

/// Which part of a track's time is heard.
fn heard(moov: &[u8], trak: &[u8]) -> Result<Range<i64>> {
    match edits(moov, trak)?.as_slice() {
        [] => Ok(priming(moov).unwrap_or(0)..i64::MAX),
        [edit] => Ok(edit.clone()),
        edits => {
            Err(Error::unsupported(format!("sound with an edit list of {} parts, expected one", edits.len())))
        }
    }
}

/// What the comment `iTunSMPB` says is in front: its second number.
fn priming(moov: &[u8]) -> Option<i64> {
    let place = memchr::memmem::find(moov, b"iTunSMPB")?;
    let rest = moov.get(place..)?;
    let text = rest.get(memchr::memmem::find(rest, b" 0000")?..)?;
    let number = text.split(|&byte| byte == b' ').nth(2)?;
    let number = i64::from_str_radix(str::from_utf8(number).ok()?, 16).ok()?;
    (0..MAX_PRIMING).contains(&number).then_some(number)
}
