//! Opus in Ogg (RFC 7845): headers, which samples are sound, and packets to frames. It must not know how a packet is
//! decoded.
//!
//! As in libsndfile, samples have the lowest rate that Opus has and the encoder's input needs, and the gain of the
//! header is applied, the one of comments not.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ruopus::MultistreamDecoder;

use super::ogg::{self, Packet};
use super::packets::Packets;
use super::sound::{Block, Coding, Header, Stream};
use crate::error::{Error, Result};

/// What the first packet begins with.
pub(crate) const MARK: &[u8] = b"OpusHead";
/// Rates that Opus is decoded at, and that of its positions.
const RATES: [u32; 4] = [8_000, 12_000, 16_000, 24_000];
const FULL_RATE: u32 = 48_000;
/// Channels of a file, and streams that are decoded for them: as many as RFC 7845 has arrangements for.
const MAX_CHANNELS: usize = 8;
/// Samples of a packet at the full rate: 120 ms.
const MAX_SAMPLES: usize = 5_760;
/// Bytes that the decoder of a stream holds, as measured, and what it makes of a packet.
const STREAM_BYTES: usize = 128 << 10;
/// In the table of channels: one that is silent.
const SILENT: u8 = 255;

fn damaged(what: &str) -> Error {
    Error::invalid(format!("the Opus audio is damaged: {what}"))
}

/// What the first packet says.
#[derive(Debug, Clone, PartialEq)]
struct Head {
    /// Samples in front, at the full rate, that are left out.
    skip: usize,
    /// Samples are decoded at.
    rate: u32,
    gain: f32,
    /// Streams, and how many of them have two channels.
    streams: [usize; 2],
    /// Which of their channels each channel is.
    mapping: Vec<u8>,
}

impl Head {
    fn read(packet: &[u8]) -> Result<Self> {
        let cut = || damaged("its header is cut off");
        let rest = packet.strip_prefix(MARK).ok_or_else(cut)?;
        let (head, rest) = rest.split_first_chunk::<11>().ok_or_else(cut)?;
        let [version, channels, skip @ .., family] = *head;
        let [a, b, c, d, e, f, g, h] = skip;
        let (skip, input, gain) =
            (u16::from_le_bytes([a, b]), u32::from_le_bytes([c, d, e, f]), i16::from_le_bytes([g, h]));
        if version >> 4 != 0 {
            return Err(Error::unsupported(format!("Opus of version {version}, expected below 16")));
        }
        let count = usize::from(channels);
        let most = if family == 0 { 2 } else { MAX_CHANNELS };
        if !matches!(family, 0 | 1 | 255) || !(1..=most).contains(&count) {
            return Err(Error::unsupported(format!(
                "Opus of {count} channels of family {family}, expected 1 or 2 of family 0, or up to {MAX_CHANNELS} of 1 or 255"
            )));
        }
        let (streams, mapping) = if family == 0 {
            ([1, count - 1], (0..channels).collect())
        } else {
            let (&[streams, coupled], rest) = rest.split_first_chunk().ok_or_else(cut)?;
            ([usize::from(streams), usize::from(coupled)], rest.get(..count).ok_or_else(cut)?.to_vec())
        };
        let decoded = streams[0] + streams[1];
        let is_known = |&channel: &u8| channel == SILENT || usize::from(channel) < decoded;
        if !(1..=MAX_CHANNELS).contains(&streams[0])
            || streams[1] > streams[0]
            || !mapping.iter().all(is_known)
        {
            return Err(damaged("its header names channels that no stream has"));
        }
        // 0: the encoder did not know.
        let rate = RATES.into_iter().find(|&rate| input != 0 && rate >= input).unwrap_or(FULL_RATE);
        let gain = 10_f32.powf(f32::from(gain) / (20.0 * 256.0));
        Ok(Self { skip: usize::from(skip), rate, gain, streams, mapping })
    }

    /// Of so many samples at the full rate.
    fn header(&self, full: usize) -> Header {
        let (frames, channels) = (self.samples(full), self.mapping.len());
        let scratch = self.streams[0] * STREAM_BYTES + MAX_SAMPLES * (channels + 2) * size_of::<f32>();
        Header { frames, channels, rate: self.rate, coding: Coding::Opus, scratch }
    }

    /// So many samples at the full rate, at that of the output.
    fn samples(&self, full: usize) -> usize {
        full / (FULL_RATE / self.rate) as usize
    }
}

/// Samples of a packet at the full rate (RFC 6716, 3.1).
fn samples(packet: &[u8]) -> Result<usize> {
    let &first = packet.first().ok_or_else(|| damaged("a packet is empty"))?;
    let kind = first >> 3;
    let one = match kind {
        0..12 => [480, 960, 1_920, 2_880][usize::from(kind & 3)],
        12..16 => [480, 960][usize::from(kind & 1)],
        _ => [120, 240, 480, 960][usize::from(kind & 3)],
    };
    let count = match first & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => packet.get(1).map_or(0, |count| usize::from(count & 63)),
    };
    match one * count {
        samples @ 1..=MAX_SAMPLES => Ok(samples),
        samples => Err(damaged(&format!("a packet of {samples} samples, expected 1 to {MAX_SAMPLES}"))),
    }
}

/// The header of a stream, and the packets behind the comments.
fn begin(mut packets: ogg::Packets<'_>) -> Result<(ogg::Packets<'_>, Head)> {
    let cut = || damaged("its headers are cut off");
    let head = Head::read(packets.next()?.ok_or_else(cut)?.bytes)?;
    packets.next()?.ok_or_else(cut)?;
    Ok((packets, head))
}

/// What stream `serial` of a file says of itself.
///
/// # Errors
/// Invalid, for a damaged file; unsupported, for more than [`MAX_CHANNELS`].
pub(crate) fn header(bytes: &[u8], serial: u32) -> Result<Header> {
    let (mut packets, head) = begin(ogg::Packets::new(bytes, serial))?;
    let (mut found, mut start, mut end) = (0_usize, None, 0);
    while let Some(Packet { bytes, position }) = packets.next()? {
        found = found.saturating_add(samples(bytes)?);
        if let Some(position) = position {
            // A stream that was cut from another one begins elsewhere than at 0.
            start.get_or_insert(position.saturating_sub_unsigned(found as u64).max(0));
            end = position;
        }
    }
    let claimed = end - start.ok_or_else(|| damaged("it has no audio"))?;
    let claimed = usize::try_from(claimed).ok().filter(|&claimed| claimed <= found).ok_or_else(|| {
        Error::invalid(format!("the audio ends after {found} of {claimed} samples of a channel"))
    })?;
    Ok(head.header(claimed.saturating_sub(head.skip)))
}

/// What the first packet `head` of a stream says of packets behind it, of whose last samples so many at the full rate
/// are left out.
///
/// # Errors
/// As [`header`].
pub(crate) fn header_of(head: &[u8], packets: &[&[u8]], behind: usize) -> Result<Header> {
    let head = Head::read(head)?;
    let mut found = 0_usize;
    for packet in packets {
        found = found.saturating_add(samples(packet)?);
    }
    Ok(head.header(found.saturating_sub(head.skip).saturating_sub(behind)))
}

/// A stream that is decoded.
pub(crate) struct Opus<'a> {
    packets: Packets<'a>,
    decoder: MultistreamDecoder,
    head: Head,
    /// Frames in front that are left out.
    skip: usize,
    samples: Vec<f32>,
}

impl<'a> Opus<'a> {
    /// Stream `serial` of a file whose header was read, so that sums of pages need no second look.
    ///
    /// # Errors
    /// As [`header`].
    pub(crate) fn open(bytes: &'a [u8], serial: u32) -> Result<Self> {
        let (packets, head) = begin(ogg::Packets::unchecked(bytes, serial))?;
        Ok(Self::new(Packets::Ogg(packets), head))
    }

    /// Packets behind the first one, `head`.
    ///
    /// # Errors
    /// As [`header_of`].
    pub(crate) fn of(head: &[u8], packets: Vec<&'a [u8]>) -> Result<Self> {
        Ok(Self::new(Packets::told(packets), Head::read(head)?))
    }

    fn new(packets: Packets<'a>, head: Head) -> Self {
        let decoder =
            MultistreamDecoder::with_rate(head.rate, head.streams[0], head.streams[1], &head.mapping);
        let skip = head.samples(head.skip);
        Self { packets, decoder, head, skip, samples: Vec::new() }
    }
}

impl Stream for Opus<'_> {
    fn next(&mut self) -> Result<Option<(Block<'_>, usize)>> {
        let Some(Packet { bytes, .. }) = self.packets.next()? else { return Ok(None) };
        let expected = self.head.samples(samples(bytes)?) * self.head.mapping.len();
        let decoder = &mut self.decoder;
        let decoded = catch_unwind(AssertUnwindSafe(|| decoder.decode_packet(bytes)));
        let decoded = decoded.map_err(|_| damaged("its decoder gave up"))?;
        self.samples = decoded.map_err(|error| damaged(&error.to_string()))?;
        if self.samples.len() != expected {
            return Err(damaged("a packet is not as long as it says"));
        }
        if self.head.gain != 1.0 {
            self.samples.iter_mut().for_each(|sample| *sample *= self.head.gain);
        }
        let channels = self.head.mapping.len();
        let skipped = self.skip.min(self.samples.len() / channels.max(1));
        self.skip -= skipped;
        let rest = self.samples.get(skipped * channels..).unwrap_or_default();
        Ok(Some((Block::Floats(rest), bytes.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(channels: u8, rate: u32, family: u8, mapping: &[u8]) -> Result<Head> {
        let rate = rate.to_le_bytes();
        Head::read(&[MARK, &[1, channels, 0x38, 1], &rate, &[0, 0xfa, family], mapping].concat())
    }

    #[test]
    fn headers_are_checked() {
        let stereo = head(2, 48_000, 0, &[]).unwrap();
        assert_eq!(
            (stereo.skip, stereo.rate, stereo.streams, &stereo.mapping[..]),
            (312, 48_000, [1, 1], &[0, 1][..])
        );
        assert!((stereo.gain - 0.501_187).abs() < 1e-6);
        for (rate, expected) in [
            (8_000, 8_000),
            (11_025, 12_000),
            (22_050, 24_000),
            (44_100, 48_000),
            (0, 48_000),
            (96_000, 48_000),
        ] {
            assert_eq!(head(1, rate, 0, &[]).unwrap().rate, expected);
        }
        assert_eq!(head(3, 48_000, 1, &[2, 1, 0, 255, 1]).unwrap().mapping, [0, 255, 1]);
        for (channels, family, mapping, said) in [
            (3, 0, &[][..], "3 channels of family 0"),
            (0, 0, &[], "0 channels"),
            (9, 1, &[9, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8], "9 channels"),
            (4, 3, &[4, 0], "family 3"),
            (2, 1, &[1, 1, 0, 2], "no stream has"),
            (2, 1, &[1, 2, 0, 1], "no stream has"),
            (2, 1, &[0, 0, 255, 255], "no stream has"),
            (2, 1, &[255, 0, 0, 1], "no stream has"),
            (2, 1, &[1, 1, 0], "cut off"),
        ] {
            let error = head(channels, 48_000, family, mapping).unwrap_err().to_string();
            assert!(error.contains(said), "{said}: {error}");
        }
    }

    #[test]
    fn packets_tell_how_long_they_are() {
        for (packet, expected) in [
            (&[0 << 3][..], 480),
            (&[3 << 3], 2_880),
            (&[13 << 3], 960),
            (&[16 << 3], 120),
            (&[31 << 3 | 1], 1_920),
            (&[31 << 3 | 3, 6], 5_760),
        ] {
            assert_eq!(samples(packet).unwrap(), expected, "{packet:?}");
        }
        for packet in [&[][..], &[3], &[3, 0], &[31 << 3 | 3, 7], &[3 << 3 | 3, 3]] {
            assert!(samples(packet).is_err(), "{packet:?}");
        }
    }
}
