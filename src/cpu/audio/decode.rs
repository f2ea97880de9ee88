//! Sound files to samples: finds out what a file is, and has it decoded block by block. It must not know tensors.
//!
//! Containers are read by code of ours, and so are samples but those of MP3, AAC, ALAC and Opus: a header decides what
//! decoders hold, and none may ask for more than a bound says, or for memory that the file's samples do not need.

use std::time::Duration;

use super::aac::Adts;
use super::flac::{self, Flac};
use super::m4a::{Codec, M4a};
use super::matroska::Matroska;
use super::mp3::Mp3;
use super::ogg::{self, Page, Pages};
use super::opus::{self, Opus};
use super::sound::{Block, Coding, Header, Stream};
use super::stored::Sound;
use super::vorbis::{self, Vorbis};
use super::{aiff, au, caf, riff};
use crate::cpu::formats::Format;
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};

/// Bytes of the start of a tag of ID3.
const TAG: usize = 10;
/// Tags in front of a file.
const MAX_TAGS: usize = 16;
/// First pages of streams of an Ogg file that are looked at.
const MAX_STREAMS: usize = 64;

/// Nanoseconds of one core that a sample of each coding takes.
const STORED_SAMPLE: f64 = 0.5;
const ADPCM_SAMPLE: f64 = 4.0;
const FLAC_SAMPLE: f64 = 8.0;
const VORBIS_SAMPLE: f64 = 15.0;
const MP3_SAMPLE: f64 = 20.0;
const AAC_SAMPLE: f64 = 20.0;
const ALAC_SAMPLE: f64 = 15.0;
const OPUS_SAMPLE: f64 = 40.0;

/// What kind of file it is.
enum File<'a> {
    Numbers(Sound<'a>),
    Flac(&'a [u8]),
    /// Streams of Ogg.
    OggFlac(&'a [u8], u32),
    OggVorbis(&'a [u8], u32),
    OggOpus(&'a [u8], u32),
    Mp3(Mp3<'a>),
    Adts(Adts<'a>),
    M4a(M4a<'a>),
    Matroska(Matroska<'a>),
}

/// What is behind tags of ID3.
fn without_tags(mut bytes: &[u8]) -> &[u8] {
    for _ in 0..MAX_TAGS {
        let Some(&[b'I', b'D', b'3', _, _, flags, a, b, c, d]) = bytes.first_chunk::<TAG>() else { break };
        let length = [a, b, c, d].iter().fold(0, |length, &byte| length << 7 | usize::from(byte & 0x7f));
        let footer = if flags & 0x10 != 0 { TAG } else { 0 };
        bytes = bytes.get(TAG + length + footer..).unwrap_or_default();
    }
    bytes
}

/// The first stream of sound in an Ogg file.
fn find_stream(bytes: &[u8]) -> Result<File<'_>> {
    let mut is_speex = false;
    for page in Pages::new(bytes).take_while(Page::is_first).take(MAX_STREAMS) {
        let start = page.start();
        if vorbis::is_vorbis(start) {
            return Ok(File::OggVorbis(bytes, page.serial));
        }
        if start.starts_with(flac::OGG_MARK) {
            return Ok(File::OggFlac(bytes, page.serial));
        }
        if start.starts_with(opus::MARK) {
            return Ok(File::OggOpus(bytes, page.serial));
        }
        is_speex |= start.starts_with(b"Speex");
    }
    Err(match is_speex {
        true => Error::unsupported("Ogg with Speex, expected Vorbis, Opus or FLAC"),
        false => Error::invalid("an Ogg file without a stream of Vorbis, Opus or FLAC"),
    })
}

impl<'a> File<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self> {
        let tagged = bytes.len();
        let bytes = without_tags(bytes);
        let is_tagged = bytes.len() < tagged;
        if bytes.starts_with(flac::MARK) {
            return Ok(Self::Flac(bytes));
        }
        if bytes.starts_with(ogg::MARK) {
            return find_stream(bytes);
        }
        let numbers = riff::open(bytes).or_else(|| aiff::open(bytes)).or_else(|| au::open(bytes));
        if let Some(sound) = numbers.or_else(|| caf::open(bytes)) {
            return sound.map(Self::Numbers);
        }
        if let Some(file) = M4a::open(bytes) {
            return file.map(Self::M4a);
        }
        if let Some(file) = Matroska::open(bytes) {
            return file.map(Self::Matroska);
        }
        let packets = Adts::open(bytes).map(Self::Adts);
        if let Some(file) = packets.or_else(|| Mp3::open(bytes, is_tagged).map(Self::Mp3)) {
            return Ok(file);
        }
        Err(match known(bytes) {
            Some(name) => Error::unsupported(format!("{name}, expected {EXPECTED}")),
            None => Error::invalid(format!("not an audio file, expected {EXPECTED}")),
        })
    }

    fn header(&self) -> Result<Header> {
        match *self {
            Self::Numbers(ref sound) => Ok(sound.header),
            Self::Flac(bytes) => flac::header(bytes),
            Self::OggFlac(bytes, serial) => flac::header_in_ogg(bytes, serial),
            Self::OggVorbis(bytes, serial) => vorbis::header(bytes, serial),
            Self::OggOpus(bytes, serial) => opus::header(bytes, serial),
            Self::Mp3(ref file) => file.header(),
            Self::Adts(file) => file.header(),
            Self::M4a(ref file) => Ok(file.header()),
            Self::Matroska(ref file) => file.header(),
        }
    }

    fn stream(self) -> Result<Box<dyn Stream + 'a>> {
        Ok(match self {
            Self::Numbers(sound) => sound.stream,
            Self::Flac(bytes) => Box::new(Flac::open(bytes)?),
            Self::OggFlac(bytes, serial) => Box::new(Flac::open_in_ogg(bytes, serial)?),
            Self::OggVorbis(bytes, serial) => Box::new(Vorbis::open(bytes, serial)?),
            Self::OggOpus(bytes, serial) => Box::new(Opus::open(bytes, serial)?),
            Self::Mp3(file) => Box::new(file.stream()?),
            Self::Adts(file) => Box::new(file.stream()?),
            Self::M4a(file) => Box::new(file.stream()?),
            Self::Matroska(file) => file.stream()?,
        })
    }
}

/// What is read.
const EXPECTED: &str = "WAV, W64, AIFF, AU, CAF, FLAC, Ogg Vorbis, Opus, MP3, AAC or ALAC in MP4, Matroska";

/// A kind of sound file that is not read.
fn known(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0xff, 0xe0..=0xff, ..] => "MPEG audio that is no MP3, or free of a bit rate",
        [b'A', b'D', b'I', b'F', ..] => "AAC in ADIF",
        [b'N', b'I', b'S', b'T', b'_', b'1', b'A', ..] => "a NIST file",
        [b'C', b'r', b'e', b'a', b't', b'i', b'v', b'e', b' ', b'V', ..] => "a VOC file",
        [b'F', b'O', b'R', b'M', _, _, _, _, b'8' | b'1', b'S' | b'6', b'V', ..] => "an IFF-8SVX file",
        [b'2', b'B', b'I', b'T', ..] => "an AVR file",
        [b'P', b'V', b'F', b'1', ..] => "a PVF file",
        [b' ', b'p', b'a', b'f', ..] | [b'f', b'a', b'p', b' ', ..] => "a PAF file",
        [0x64, 0xa3, ..] | [_, _, 0xa3, 0x64, ..] => "an IRCAM file",
        [b'M', b'A', b'T', b'L', b'A', b'B', ..] => "a file of MATLAB",
        [0x30, 0x26, 0xb2, 0x75, ..] => "Windows Media Audio",
        _ => return None,
    })
}

/// The format of a file, as its first bytes say; `None` where it is none that is decoded.
pub fn file_format(bytes: &[u8]) -> Option<Format> {
    let tagged = bytes.len();
    let bytes = without_tags(bytes);
    if bytes.starts_with(flac::MARK) {
        return Some(Format::Flac);
    }
    if bytes.starts_with(ogg::MARK) {
        return match find_stream(bytes).ok()? {
            File::OggVorbis(..) => Some(Format::Vorbis),
            File::OggOpus(..) => Some(Format::Opus),
            _ => Some(Format::Flac),
        };
    }
    if let Some(file) = M4a::open(bytes) {
        return Some(match file.ok()?.codec {
            Codec::Aac(_) => Format::Aac,
            Codec::Alac(_) => Format::Alac,
        });
    }
    if let Some(file) = Matroska::open(bytes) {
        return file.ok().map(|file| file.format());
    }
    let numbers = [
        (Format::Wav, riff::open(bytes).is_some()),
        (Format::Aiff, aiff::open(bytes).is_some()),
        (Format::Au, au::open(bytes).is_some()),
        (Format::Caf, caf::open(bytes).is_some()),
        (Format::Aac, Adts::open(bytes).is_some()),
        (Format::Mp3, Mp3::open(bytes, bytes.len() < tagged).is_some()),
    ];
    numbers.into_iter().find(|&(_, is_it)| is_it).map(|(format, _)| format)
}

/// Reads the header of a file.
///
/// # Errors
/// Invalid, for what is no audio file or a damaged one; unsupported, for kinds that are not read.
pub fn header(bytes: &[u8]) -> Result<Header> {
    File::of(bytes)?.header()
}

/// What decoding a file is expected to take.
pub fn effort(header: &Header) -> Effort {
    let sample = match header.coding {
        Coding::Stored => STORED_SAMPLE,
        Coding::Adpcm => ADPCM_SAMPLE,
        Coding::Flac => FLAC_SAMPLE,
        Coding::Vorbis => VORBIS_SAMPLE,
        Coding::Mp3 => MP3_SAMPLE,
        Coding::Aac => AAC_SAMPLE,
        Coding::Alac => ALAC_SAMPLE,
        Coding::Opus => OPUS_SAMPLE,
    };
    let samples = header.frames as f64 * header.channels as f64;
    Effort { time: Duration::from_nanos((samples * sample) as u64), scratch: header.scratch }
}

/// Decodes all of a file whose header is `header`, and gives its frames to `take`. `watch` is asked now and then.
///
/// # Errors
/// Invalid, for a damaged file and one that is not as long as it says; those of `watch` and `take`.
pub fn decode(
    bytes: &[u8],
    header: &Header,
    watch: &Watch<'_>,
    take: &mut dyn FnMut(Block<'_>) -> Result<()>,
) -> Result<()> {
    let mut stream = File::of(bytes)?.stream()?;
    let total = header.frames.checked_mul(header.channels);
    let mut left = total.ok_or_else(|| Error::invalid("the audio has too many samples"))?;
    while left > 0 {
        let Some((block, read)) = stream.next()? else {
            let found = header.frames - left / header.channels.max(1);
            return Err(Error::invalid(format!(
                "the audio ends after {found} of {} samples of a channel",
                header.frames
            )));
        };
        watch.charge(1 + read + block.len() * size_of::<f32>())?;
        let block = block.first(left);
        left -= block.len();
        take(block)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
