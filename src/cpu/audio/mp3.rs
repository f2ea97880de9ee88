//! MPEG audio, layer 3: which bytes are a frame each, and what the encoder says of its delay. It must not know how a
//! frame is decoded.

use symphonia_bundle_mp3::MpaDecoder;
use symphonia_core::codecs::audio::well_known::CODEC_ID_MP3;
use symphonia_core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};

use super::coded::Coded;
use super::sound::{Coding, Header};
use crate::error::{Error, Result};

/// Bytes behind tags in which the first frame is looked for.
const MAX_JUNK: usize = 64 << 10;
/// Frames by which every decoder of this layer is late.
const DECODER_DELAY: usize = 529;
/// What may stand behind the last frame: tags.
const TAGS: [&[u8]; 5] = [b"TAG", b"APETAGEX", b"LYRICSBEGIN", b"ID3", b"3DI"];
/// Bytes that a decoder holds: bits of frames before, overlaps, filters.
const DECODER_BYTES: usize = 64 << 10;
/// Kilobits a second, by their number in a frame's header; those of MPEG 1, and of 2 and 2.5.
const KILOBITS: [[usize; 14]; 2] = [
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// What a frame's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    /// Whether it is of MPEG 1, whose frames have twice as many samples.
    is_first: bool,
    rate: u32,
    channels: usize,
    /// Bytes, with the header.
    length: usize,
}

impl Frame {
    /// The frame at the start of `bytes`.
    fn read(bytes: &[u8]) -> Option<Self> {
        let [0xff, second @ 0xe0..=0xff, third, fourth] = *bytes.first_chunk::<4>()? else { return None };
        // Version 1 and layers 0, 1 and 2 are others; 0 kilobits are those of no list.
        let version = second >> 3 & 3;
        if version == 1 || second >> 1 & 3 != 1 || fourth & 3 == 2 {
            return None;
        }
        let is_first = version == 3;
        let kilobits = *KILOBITS[usize::from(!is_first)].get(usize::from(third >> 4).checked_sub(1)?)?;
        let full = *[44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
        let rate: u32 = match version {
            3 => full,
            2 => full / 2,
            _ => full / 4,
        };
        let slots = if is_first { 144_000 } else { 72_000 };
        let length = slots * kilobits / rate as usize + usize::from(third >> 1 & 1);
        Some(Self { is_first, rate, channels: if fourth >> 6 == 3 { 1 } else { 2 }, length })
    }

    /// Whether both are of one stream.
    fn goes_with(self, other: Self) -> bool {
        (self.is_first, self.rate) == (other.is_first, other.rate)
    }

    /// Samples of each channel.
    fn samples(self) -> usize {
        if self.is_first { 1_152 } else { 576 }
    }

    /// Where a frame that says what the encoder did says so.
    fn information(self) -> usize {
        4 + match (self.is_first, self.channels) {
            (true, 2) => 32,
            (true, _) | (false, 2) => 17,
            (false, _) => 9,
        }
    }
}

/// The first frame in `bytes`, and another behind it or nothing else.
fn begins(bytes: &[u8]) -> Option<Frame> {
    let frame = Frame::read(bytes)?;
    let behind = bytes.get(frame.length..)?;
    let goes_on = || Frame::read(behind).is_some_and(|next| next.goes_with(frame));
    (behind.is_empty() || is_tag(behind) || goes_on()).then_some(frame)
}

/// Whether `bytes` are what may follow the last frame.
fn is_tag(bytes: &[u8]) -> bool {
    TAGS.iter().any(|tag| bytes.starts_with(tag)) || bytes.iter().all(|&byte| byte == 0)
}

/// What an encoder says in a frame that has no sound.
#[derive(Debug, Clone, Copy, Default)]
struct Information {
    /// Frames behind it.
    frames: Option<usize>,
    /// Samples that it put in front and behind.
    delay: usize,
    padding: usize,
}

impl Information {
    /// What `frame`, whose header is `header`, says; `None` for one that is sound.
    fn read(frame: &[u8], header: Frame) -> Option<Self> {
        if frame.get(36..40) == Some(b"VBRI") {
            let frames = frame.get(50..54)?.first_chunk().map(|&bytes| u32::from_be_bytes(bytes) as usize);
            return Some(Self { frames, ..Self::default() });
        }
        let mut rest = frame.get(header.information()..)?;
        rest = rest.strip_prefix(b"Xing").or_else(|| rest.strip_prefix(b"Info"))?;
        let (flags, mut rest) = rest.split_first_chunk::<4>()?;
        let flags = u32::from_be_bytes(*flags);
        let mut information = Self::default();
        // Frames, bytes, a table of places, quality.
        for (flag, length) in [(1, 4), (2, 4), (4, 100), (8, 4)] {
            if flags & flag != 0 {
                let (field, behind) = rest.split_at_checked(length)?;
                if flag == 1 {
                    information.frames = field.first_chunk().map(|&bytes| u32::from_be_bytes(bytes) as usize);
                }
                rest = behind;
            }
        }
        // An extension of LAME's: behind its name and 12 bytes are two numbers of 12 bits.
        if let Some([a, b, c]) = rest.get(21..).and_then(<[u8]>::first_chunk::<3>) {
            let [a, b, c] = [a, b, c].map(|&byte| usize::from(byte));
            (information.delay, information.padding) = (a << 4 | b >> 4, (b & 15) << 8 | c);
        }
        Some(information)
    }
}

/// A file: its frames, and which of their samples are sound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mp3<'a> {
    first: Frame,
    /// From the first frame with sound on.
    frames: &'a [u8],
    information: Information,
}

impl<'a> Mp3<'a> {
    /// Opens a file that begins, behind `tagged` tags, as these do.
    pub(crate) fn open(bytes: &'a [u8], is_tagged: bool) -> Option<Self> {
        let places = if is_tagged { MAX_JUNK } else { 1 };
        let mut starts = memchr::memchr_iter(0xff, bytes).take_while(|&start| start < places);
        let (start, first) = starts.find_map(|start| Some((start, begins(bytes.get(start..)?)?)))?;
        let frames = bytes.get(start..)?;
        let (frame, behind) = frames.split_at_checked(first.length)?;
        let information = Information::read(frame, first);
        Some(Self {
            first,
            frames: if information.is_some() { behind } else { frames },
            information: information.unwrap_or_default(),
        })
    }

    /// The frames, one after the other: those that are whole. An error is in front of what is no frame, though frames
    /// follow it.
    fn frames(self) -> impl Iterator<Item = Result<&'a [u8]>> + 'a {
        let mut rest = self.frames;
        std::iter::from_fn(move || {
            let Some(frame) = Frame::read(rest).filter(|frame| frame.goes_with(self.first)) else {
                let left = std::mem::take(&mut rest);
                let places = || memchr::memchr_iter(0xff, left).filter_map(|place| left.get(place..));
                let is_damaged = !is_tag(left)
                    && places().any(|behind| begins(behind).is_some_and(|next| next.goes_with(self.first)));
                return is_damaged.then(|| {
                    Err(Error::invalid("the MP3 audio is damaged: no frame where one is expected"))
                });
            };
            if frame.channels != self.first.channels {
                rest = &[];
                return Some(Err(Error::unsupported("an MP3 whose number of channels changes")));
            }
            let (frame, behind) = rest.split_at_checked(frame.length)?;
            rest = behind;
            Some(Ok(frame))
        })
    }

    /// Samples in front that the encoder and the decoder added.
    fn skip(&self) -> usize {
        match self.information {
            Information { delay: 0, padding: 0, .. } => 0,
            Information { delay, .. } => delay + DECODER_DELAY,
        }
    }

    /// What a file says of itself. All headers of frames are read, as nothing else says how many there are.
    ///
    /// # Errors
    /// Invalid, for a damaged file; unsupported, for one whose channels change.
    pub(crate) fn header(&self) -> Result<Header> {
        let found = self.frames().try_fold(0, |count, frame| frame.map(|_| count + 1))?;
        let samples = self.first.samples();
        if let Some(claimed) = self.information.frames.filter(|&claimed| claimed > found) {
            let [found, claimed] = [found, claimed].map(|frames| frames.saturating_mul(samples));
            return Err(Error::invalid(format!(
                "the audio ends after {found} of {claimed} samples of a channel"
            )));
        }
        let behind = self.information.padding.saturating_sub(DECODER_DELAY);
        let frames = (found * samples).saturating_sub(self.skip() + behind);
        let Frame { channels, rate, .. } = self.first;
        Ok(Header { frames, channels, rate, coding: Coding::Mp3, scratch: DECODER_BYTES })
    }

    /// What decodes it.
    ///
    /// # Errors
    /// Internal, when the decoder cannot be made.
    pub(crate) fn stream(self) -> Result<Coded<'a>> {
        // The header was read, and with it every frame.
        let frames = self.frames().map_while(Result::ok);
        Ok(Coded::new("MP3", decoder()?, frames, self.first.channels, self.skip()))
    }
}

/// A decoder of frames.
///
/// # Errors
/// Internal, when it cannot be made.
pub(crate) fn decoder() -> Result<Box<dyn AudioDecoder>> {
    let mut parameters = AudioCodecParameters::new();
    parameters.for_codec(CODEC_ID_MP3);
    let decoder = MpaDecoder::try_new(&parameters, &AudioDecoderOptions::default().gapless(false));
    Ok(Box::new(decoder.map_err(|error| Error::internal(format!("no decoder of MP3: {error}")))?))
}

/// What packets that are a frame each say of themselves.
///
/// # Errors
/// Invalid, for what is no frame; unsupported, for layers 1 and 2, free bit rates, and channels or a rate that change.
pub(crate) fn header_of(packets: &[&[u8]]) -> Result<Header> {
    let none = || Error::invalid("the MP3 audio is damaged: a packet is no frame of layer 3 with a bit rate");
    let first = Frame::read(packets.first().ok_or_else(none)?).ok_or_else(none)?;
    for packet in packets {
        let frame = Frame::read(packet).filter(|frame| frame.length <= packet.len()).ok_or_else(none)?;
        if !frame.goes_with(first) || frame.channels != first.channels {
            return Err(Error::unsupported("an MP3 whose channels or rate change"));
        }
    }
    let Frame { channels, rate, .. } = first;
    let frames = packets.len().saturating_mul(first.samples());
    Ok(Header { frames, channels, rate, coding: Coding::Mp3, scratch: DECODER_BYTES })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of 144 bytes with zeros: 48 kHz, 48 kb/s, mono.
    fn frame(inside: &[(usize, &[u8])]) -> Vec<u8> {
        let mut frame = vec![0xff, 0xfb, 0x34, 0xc0];
        frame.resize(144, 0);
        for (place, bytes) in inside {
            frame[*place..][..bytes.len()].copy_from_slice(bytes);
        }
        frame
    }

    fn frames(file: &[u8], is_tagged: bool) -> Result<usize> {
        let samples = Mp3::open(file, is_tagged).map(|file| file.header()).unwrap()?.frames;
        Ok(samples)
    }

    #[test]
    fn frames_are_counted_without_what_an_encoder_added() {
        let plain = frame(&[]);
        assert_eq!(frames(&plain.repeat(3), false).unwrap(), 3 * 1_152);
        // 576 samples in front and 1,000 behind, of four frames.
        let told = frame(&[(21, b"Info\0\0\0\x01\0\0\0\x04"), (21 + 12 + 21, &[0x24, 0x03, 0xe8])]);
        let file = [&told[..], &plain.repeat(4)].concat();
        assert_eq!(frames(&file, false).unwrap(), 4 * 1_152 - 576 - 1_000);
        let error = frames(&file[..file.len() - 1], false).unwrap_err().to_string();
        assert_eq!(error, "the audio ends after 3456 of 4608 samples of a channel");
        let vbri = frame(&[(36, b"VBRI"), (50, &[0, 0, 0, 2])]);
        assert_eq!(frames(&[&vbri[..], &plain.repeat(2)].concat(), false).unwrap(), 2 * 1_152);
    }

    #[test]
    fn what_is_between_frames_is_damage_and_what_is_behind_them_is_not() {
        let plain = frame(&[]).repeat(3);
        // Lyrics between two tags; frames in a tag are none.
        let lyrics = b"APETAGEX\xd0\x07\0\0LYRICSBEGININD0000200EAL00012A song    000027LYRICS200TAGA song";
        let inside = [&lyrics[..], &plain].concat();
        let tags = [&b"TAG and text"[..], b"APETAGEX", lyrics, &lyrics[12..], &inside];
        for behind in tags.into_iter().chain([&[0; 500][..], &[7; 500], &[0xff, 0xfb, 0x34, 0xc0, 0]]) {
            assert_eq!(frames(&[&plain[..], behind].concat(), false).unwrap(), 3 * 1_152, "{behind:?}");
        }
        let error = frames(&[&plain[..], &[7; 50], &plain].concat(), false).unwrap_err().to_string();
        assert!(error.contains("no frame where one is expected"), "{error}");
        let mut other = plain.clone();
        other[144 + 3] = 0;
        assert!(frames(&other, false).unwrap_err().to_string().contains("channels changes"));
        // In front only behind a tag.
        let late = [&[0; 100][..], &plain].concat();
        assert!(Mp3::open(&late, false).is_none());
        assert_eq!(frames(&late, true).unwrap(), 3 * 1_152);
    }

    #[test]
    fn headers_that_are_none_are_told() {
        for bytes in [
            [0xff, 0xeb, 0x34, 0xc0],
            [0xff, 0xfd, 0x34, 0xc0],
            [0xff, 0xfb, 0x04, 0xc0],
            [0xff, 0xfb, 0xf4, 0xc0],
            [0xff, 0xfb, 0x3c, 0xc0],
            [0xff, 0xfb, 0x34, 0xc2],
        ] {
            assert_eq!(Frame::read(&bytes), None, "{bytes:x?}");
        }
        let lowest = Frame::read(&[0xff, 0xe3, 0x18, 0xc0]).unwrap();
        assert_eq!((lowest.rate, lowest.channels, lowest.samples(), lowest.length), (8_000, 1, 576, 72));
    }
}
