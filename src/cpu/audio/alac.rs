//! ALAC: what its configuration says, and how many samples a packet has. It must not know how a packet is decoded.

use symphonia_codec_alac::AlacDecoder;
use symphonia_core::codecs::audio::well_known::CODEC_ID_ALAC;
use symphonia_core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};

use crate::cpu::bytes::{Bits, Bytes};
use crate::error::{Error, Result};

/// Bytes of a configuration without the places of loudspeakers.
const CONFIG: usize = 24;
/// Samples of a packet (encoders write 4,096). Stops a header of some bytes from making buffers of gigabytes.
const MAX_SAMPLES: usize = 1 << 16;
/// Channels, as many as there are arrangements for.
const MAX_CHANNELS: u8 = 8;
/// Bits of an element in front of its flags, and the tags of those that have samples: one channel, two, the deepest.
const ELEMENT: usize = 3 + 4 + 12;
const WITH_SAMPLES: [u32; 3] = [0, 1, 3];

/// What a configuration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Config<'a> {
    bytes: &'a [u8],
    /// Samples of each channel in a packet that says nothing else.
    samples: usize,
    /// Channels.
    pub(crate) channels: usize,
    /// Frames a second.
    pub(crate) rate: u32,
}

impl<'a> Config<'a> {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Invalid, when it is cut off or no packet could be as it says; unsupported, beyond [`MAX_SAMPLES`].
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self> {
        let bytes = bytes.get(..CONFIG + 24).or_else(|| bytes.get(..CONFIG)).unwrap_or(bytes);
        let mut fields = Bytes(bytes);
        let samples = fields.u32()? as usize;
        let (_version, bits) = (fields.u8()?, fields.u8()?);
        fields.skip(3)?;
        let channels = fields.u8()?;
        fields.skip(10)?;
        let rate = fields.u32()?;
        if samples > MAX_SAMPLES {
            return Err(Error::unsupported(format!(
                "ALAC with {samples} samples in a packet, expected at most {MAX_SAMPLES}"
            )));
        }
        if samples == 0
            || !matches!(bits, 16 | 20 | 24 | 32)
            || !(1..=MAX_CHANNELS).contains(&channels)
            || rate == 0
        {
            return Err(Error::invalid(format!(
                "ALAC of {samples} samples in a packet, {bits} bits, {channels} channels and rate {rate}, expected 16, 20, 24 or 32 bits and 1 to {MAX_CHANNELS} channels"
            )));
        }
        Ok(Self { bytes, samples, channels: usize::from(channels), rate })
    }

    /// Samples of each channel of a packet.
    ///
    /// # Errors
    /// Invalid, when its first element has none, or more than others.
    pub(crate) fn samples(self, packet: &[u8]) -> Result<usize> {
        let mut bits = Bits::behind(packet, 0);
        let tag = bits.read(3)?;
        bits.skip(ELEMENT - 3);
        let tells = bits.flag()?;
        // How many bytes are apart, and whether samples are stored as they are.
        bits.skip(3);
        let samples = if tells { bits.read(32)? as usize } else { self.samples };
        if !WITH_SAMPLES.contains(&tag) || samples > self.samples {
            return Err(Error::invalid("the ALAC audio is damaged: a packet does not begin with samples"));
        }
        Ok(samples)
    }

    /// Bytes that a decoder holds: samples, and their lowest bits.
    pub(crate) fn scratch(self) -> usize {
        self.samples * self.channels * 2 * size_of::<i32>() + self.samples * 2 * size_of::<u16>()
    }

    /// A decoder of its packets.
    ///
    /// # Errors
    /// Unsupported, when it refuses them.
    pub(crate) fn decoder(self) -> Result<Box<dyn AudioDecoder>> {
        let mut parameters = AudioCodecParameters::new();
        parameters.for_codec(CODEC_ID_ALAC).with_extra_data(self.bytes.into());
        let decoder = AlacDecoder::try_new(&parameters, &AudioDecoderOptions::default());
        Ok(Box::new(decoder.map_err(|error| Error::unsupported(format!("the ALAC audio: {error}")))?))
    }
}
