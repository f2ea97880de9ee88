//! AAC of the profile LC: what its configuration says, and ADTS, which has it in front of each packet. It must not know
//! how a packet is decoded.
//!
//! High-efficiency AAC (SBR, PS) has a packet of LC with half of the rate, which decoders that know no SBR play without
//! its upper octave. That would be wrong in silence, so it is refused, also where only the packets tell of it.

use std::collections::HashSet;

use symphonia_codec_aac::AacDecoder;
use symphonia_core::audio::layouts::{CHANNEL_LAYOUT_MONO, CHANNEL_LAYOUT_STEREO};
use symphonia_core::codecs::audio::well_known::CODEC_ID_AAC;
use symphonia_core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};

use super::coded::Coded;
use super::sound::{Coding, Header};
use crate::cpu::bytes::Bits;
use crate::error::{Error, Result};

/// Samples of each channel in a packet.
pub(crate) const SAMPLES: usize = 1_024;
/// Bytes that a decoder holds: windows, overlaps, a packet's samples.
pub(crate) const DECODER_BYTES: usize = 128 << 10;
/// Object types: the profile LC; SBR; PS.
const LC: u32 = 2;
const SBR: u32 = 5;
const PS: u32 = 29;
/// What is in front of an extension of a configuration.
const EXTENSION: u32 = 0x2b7;
/// Rates by their number; number 15 has the rate itself behind it.
const RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];
/// Packets that are looked at for SBR.
const MAX_LOOKED_AT: usize = 64;

/// Rate and channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Config {
    /// Frames a second.
    pub(crate) rate: u32,
    /// Channels, 1 or 2.
    pub(crate) channels: usize,
}

fn high_efficiency() -> Error {
    Error::unsupported("high-efficiency AAC (SBR), expected AAC of the profile LC")
}

impl Config {
    fn new(object: u32, rate: Option<u32>, channels: u32) -> Result<Self> {
        if object == SBR || object == PS {
            return Err(high_efficiency());
        }
        if object != LC {
            return Err(Error::unsupported(format!(
                "AAC of object type {object}, expected {LC}, the profile LC"
            )));
        }
        if !matches!(channels, 1 | 2) {
            return Err(Error::unsupported(format!(
                "AAC with channels of configuration {channels}, expected 1 (mono) or 2 (stereo)"
            )));
        }
        let rate = rate.filter(|rate| (RATES[RATES.len() - 1]..=RATES[0]).contains(rate));
        let rate = rate.ok_or_else(|| Error::invalid("AAC with an unknown sampling rate"))?;
        Ok(Self { rate, channels: channels as usize })
    }

    /// What the configuration in an MP4 says (`AudioSpecificConfig` of ISO/IEC 14496-3).
    ///
    /// # Errors
    /// Invalid, when it is cut off; unsupported, for other profiles and more channels.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let mut bits = Bits::behind(bytes, 0);
        let object = match bits.read(5)? {
            31 => 32 + bits.read(6)?,
            object => object,
        };
        let rate = match bits.read(4)? {
            15 => Some(bits.read(24)?),
            number => RATES.get(number as usize).copied(),
        };
        let config = Self::new(object, rate, bits.read(4)?)?;
        if bits.flag()? {
            return Err(Error::unsupported("AAC with 960 samples in a packet, expected 1024"));
        }
        // Whether another coder goes in front, and whether more follows.
        bits.skip(2);
        let extends =
            bits.read(11).is_ok_and(|mark| mark == EXTENSION) && bits.read(5).is_ok_and(|kind| kind == SBR);
        if extends && bits.flag().unwrap_or(false) {
            return Err(high_efficiency());
        }
        Ok(config)
    }

    /// The header of so many packets, of whose samples the first `skip` are left out.
    pub(crate) fn header(self, packets: usize, skip: usize) -> Header {
        let frames = packets.saturating_mul(SAMPLES).saturating_sub(skip);
        let Self { channels, rate } = self;
        Header { frames, channels, rate, coding: Coding::Aac, scratch: DECODER_BYTES }
    }

    /// A decoder of its packets.
    ///
    /// # Errors
    /// Unsupported, when it refuses them.
    pub(crate) fn decoder(self) -> Result<Box<dyn AudioDecoder>> {
        let mut parameters = AudioCodecParameters::new();
        let layout = if self.channels == 1 { CHANNEL_LAYOUT_MONO } else { CHANNEL_LAYOUT_STEREO };
        parameters.for_codec(CODEC_ID_AAC).with_sample_rate(self.rate).with_channels(layout);
        let decoder = AacDecoder::try_new(&parameters, &AudioDecoderOptions::default());
        Ok(Box::new(decoder.map_err(|error| Error::unsupported(format!("the AAC audio: {error}")))?))
    }
}

/// Fails for packets that have SBR, which no header needs to tell.
///
/// It is in an element of its own at a packet's end: `110`, its length in bytes, `1101` or `1110`. Nothing but the
/// decoder knows where that begins, so every place from which it reaches the end exactly is taken for one. By chance
/// that happens in one of 60 packets.
///
/// # Errors
/// Unsupported, when most of the first packets end so.
pub(crate) fn check_efficiency<'a>(packets: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    let packets: HashSet<&[u8]> = packets.take(MAX_LOOKED_AT).collect();
    let with = packets.iter().filter(|packet| ends_with_sbr(packet)).count();
    if with * 2 > packets.len() { Err(high_efficiency()) } else { Ok(()) }
}

/// The number of an element that fills a packet.
const FILL: u32 = 6;
/// What libfaac writes into one at the start of its first packet, and the samples that it puts in front.
const FAAC: &[u8] = b"libfaac ";
const FAAC_DELAY: usize = 1_024;

/// Samples in front that an encoder added that says so by its name alone, as FFmpeg leaves them out.
pub(crate) fn delay<'a>(mut packets: impl Iterator<Item = &'a [u8]>) -> usize {
    match packets.next() {
        Some(first) if is_of_faac(first).unwrap_or(false) => FAAC_DELAY,
        _ => 0,
    }
}

fn is_of_faac(packet: &[u8]) -> Result<bool> {
    let mut bits = Bits::behind(packet, 0);
    if bits.read(3)? != FILL {
        return Ok(false);
    }
    let bytes = match bits.read(4)? {
        15 => 14 + bits.read(8)?,
        bytes => bytes,
    };
    // What fills: 0, nothing of meaning. The name stands behind 13 bits more.
    let kind = bits.read(4)?;
    bits.skip(13);
    if kind != 0 || (bytes as usize) < FAAC.len() + 3 {
        return Ok(false);
    }
    for &letter in FAAC {
        if bits.read(8)? != u32::from(letter) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn ends_with_sbr(packet: &[u8]) -> bool {
    // `111` and up to seven zeros are behind it.
    let Some(&last) = packet.last() else { return false };
    let zeros = last.trailing_zeros() as usize;
    let ends = packet.len() * 8 - zeros.min(7);
    let Some(end) = ends.checked_sub(3).filter(|&end| read(packet, end, 3) == Some(7)) else { return false };
    (1..=14 + 255).any(|length| {
        let (head, escape) = if length < 15 { (7, None) } else { (15, Some(length - 14)) };
        let Some(start) = end.checked_sub(length * 8 + head) else { return false };
        let told = match escape {
            None => read(packet, start + 3, 4) == Some(length as u32),
            Some(rest) => read(packet, start + 3, 12) == Some(15 << 8 | rest as u32),
        };
        told && read(packet, start, 3) == Some(6) && matches!(read(packet, start + head, 4), Some(13 | 14))
    })
}

fn read(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    Bits::behind(bytes, at).read(count).ok()
}

/// Bytes of a header of ADTS, without its sum.
const ADTS_HEADER: usize = 7;
/// Bytes of the sum.
const ADTS_SUM: usize = 2;

/// The packet at the start of `bytes`: profile, number of the rate and channels, where it begins and ends; `None` for
/// what is none.
fn adts(bytes: &[u8]) -> Option<([u32; 3], [usize; 2])> {
    let bit = |at, count| read(bytes.get(..ADTS_HEADER)?, at, count);
    if bit(0, 12)? != 0xfff || bit(13, 2)? != 0 {
        return None;
    }
    let begin = ADTS_HEADER + if bit(15, 1)? == 1 { 0 } else { ADTS_SUM };
    let end = bit(30, 13)? as usize;
    // Several packets under one header are not written by anybody.
    (end >= begin && bit(54, 2)? == 0).then_some(([bit(16, 2)? + 1, bit(18, 4)?, bit(23, 3)?], [begin, end]))
}

/// A file of packets with headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adts<'a> {
    bytes: &'a [u8],
    kind: [u32; 3],
}

impl<'a> Adts<'a> {
    /// Opens a file that begins as these do.
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        let (kind, [_, end]) = adts(bytes)?;
        let behind = bytes.get(end..)?;
        (behind.is_empty() || adts(behind).is_some_and(|(next, _)| next == kind))
            .then_some(Self { bytes, kind })
    }

    fn config(self) -> Result<Config> {
        let [object, number, channels] = self.kind;
        Config::new(object, RATES.get(number as usize).copied(), channels)
    }

    /// The packets, one after the other: those that are whole. An error is in front of what is none.
    fn packets(self) -> impl Iterator<Item = Result<&'a [u8]>> + 'a {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            // A tag may be behind them.
            if rest.is_empty() || rest.starts_with(b"TAG") || rest.starts_with(b"APETAGEX") {
                return None;
            }
            let Some((_, [begin, end])) = adts(rest).filter(|&(kind, _)| kind == self.kind) else {
                let is_cut = rest.len() < ADTS_HEADER;
                rest = &[];
                return (!is_cut).then(|| {
                    Err(Error::invalid("the AAC audio is damaged: no packet where one is expected"))
                });
            };
            let (packet, behind) = rest.split_at_checked(end)?;
            rest = behind;
            packet.get(begin..).map(Ok)
        })
    }

    /// Samples in front that the encoder added.
    fn skip(self) -> usize {
        delay(self.packets().map_while(Result::ok))
    }

    /// What a file says of itself.
    ///
    /// # Errors
    /// Invalid, for a damaged file; unsupported, for other profiles and more channels.
    pub(crate) fn header(self) -> Result<Header> {
        let config = self.config()?;
        let count = self.packets().try_fold(0, |count, packet| packet.map(|_| count + 1))?;
        check_efficiency(self.packets().map_while(Result::ok))?;
        Ok(config.header(count, self.skip()))
    }

    /// What decodes it.
    ///
    /// # Errors
    /// As [`Adts::header`].
    pub(crate) fn stream(self) -> Result<Coded<'a>> {
        let config = self.config()?;
        let packets = self.packets().map_while(Result::ok);
        Ok(Coded::new("AAC", config.decoder()?, packets, config.channels, self.skip()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits, the highest of a byte first, with zeros behind them.
    fn bytes(bits: &str) -> Vec<u8> {
        let bits: Vec<u8> = bits.bytes().filter(|bit| *bit != b' ').map(|bit| bit - b'0').collect();
        bits.chunks(8)
            .map(|byte| byte.iter().enumerate().fold(0, |sum, (i, bit)| sum | bit << (7 - i)))
            .collect()
    }

    #[test]
    fn configurations_are_of_the_profile_lc() {
        let read = |bits: &str| Config::read(&bytes(bits));
        assert_eq!(read("00010 0100 0010 000").unwrap(), Config { rate: 44_100, channels: 2 });
        assert_eq!(
            read("00010 1111 000000000011111010000000 0001 000").unwrap(),
            Config { rate: 16_000, channels: 1 }
        );
        // An extension that says that there is no SBR.
        assert!(read("00010 0100 0010 000 01010110111 00101 0").is_ok());
        for (bits, said) in [
            ("00101 0111 0010 0100 00010 000", "high-efficiency"),
            ("11101 0111 0010 0100 00010 000", "high-efficiency"),
            ("00010 0111 0010 000 01010110111 00101 1 0100", "high-efficiency"),
            ("00001 0100 0010 000", "object type 1"),
            ("11111 001010 0100 0010 000", "object type 42"),
            ("00010 0100 0110 000", "configuration 6"),
            ("00010 0100 0000 000", "configuration 0"),
            ("00010 1101 0010 000", "sampling rate"),
            ("00010 0100 0010 100", "960 samples"),
            ("00010", "cut off"),
        ] {
            let error = read(bits).unwrap_err().to_string();
            assert!(error.contains(said), "{bits}: {error}");
        }
    }

    #[test]
    fn packets_with_sbr_are_found() {
        // Some of a packet, the element of three bytes or of 20, the end.
        let short = bytes(&format!("001 0000 1011 1 110 0011 1101 {} 111", "01".repeat(10)));
        let long = bytes(&format!("001 0000 1 110 1111 00000110 1110 {} 111", "10".repeat(78)));
        let other = bytes(&format!("001 0000 1011 1 110 0011 0000 {} 111", "01".repeat(10)));
        assert!(
            ends_with_sbr(&short) && ends_with_sbr(&long) && !ends_with_sbr(&other) && !ends_with_sbr(&[])
        );
        assert!(check_efficiency([&short[..], &long, &other].into_iter()).is_err());
        assert!(check_efficiency([&short[..], &other, &other[..3], &[]].into_iter()).is_ok());
    }

    #[test]
    fn an_encoder_that_writes_its_name_has_a_delay() {
        let of = |name: &[u8], head: &str, kind: &str| {
            let name: String = name.iter().map(|byte| format!("{byte:08b}")).collect();
            bytes(&format!("110 {head} {kind} 0000000000000 {name} 001 0000"))
        };
        let name = b"libfaac 1.28";
        let [long, short] = ["1111 00000010", "1110"].map(|head| of(name, head, "0000"));
        for first in [&long, &short] {
            assert_eq!(delay([&first[..], &[1]].into_iter()), 1_024);
        }
        for other in [
            of(b"libfbbc 1.28", "1110", "0000"),
            of(name, "0110", "0000"),
            of(name, "1110", "0001"),
            bytes("001 0000"),
            long[..9].to_vec(),
            Vec::new(),
        ] {
            assert_eq!(delay([&other[..], &long].into_iter()), 0, "{other:x?}");
        }
        assert_eq!(delay(std::iter::empty()), 0);
        // In a file: two packets of 1,024 samples, of which the first is left out.
        let of = |body: &[u8]| {
            let length = ADTS_HEADER + body.len();
            let head = [0xff, 0xf1, 0x50, 0x80, (length >> 3) as u8, (length << 5) as u8 | 0x1f, 0xfc];
            [&head[..], body].concat()
        };
        let file = [of(&long), of(&[33, 0, 3])].concat();
        assert_eq!(Adts::open(&file).unwrap().header().unwrap().frames, 1_024);
    }

    #[test]
    fn headers_of_packets_are_checked() {
        let packet = [0xff, 0xf1, 0x50, 0x80, 0x01, 0x5f, 0xfc, 1, 2, 3];
        assert_eq!(adts(&packet), Some(([2, 4, 2], [7, 10])));
        let file = [packet, packet].concat();
        assert_eq!(
            Adts::open(&file).unwrap().packets().map(Result::unwrap).collect::<Vec<_>>(),
            [[1, 2, 3]; 2]
        );
        // Junk between two; a packet that is cut off.
        let junk = [&packet[..], &[7; 9], &packet].concat();
        assert!(Adts::open(&junk).is_none());
        let junk = [&file[..], &[7; 9], &packet].concat();
        assert!(Adts::open(&junk).unwrap().header().unwrap_err().to_string().contains("no packet"));
        assert_eq!(Adts::open(&file[..18]).map(|file| file.packets().count()), Some(1));
    }
}
