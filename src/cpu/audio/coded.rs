//! Packets of MP3, AAC and ALAC to frames, by the decoders of symphonia. It must not know containers.
//!
//! These decoders know no bounds of ours. Who makes a [`Coded`] has checked what they are told: channels, rate, frames
//! of a packet. What they panic at is a damaged file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use symphonia_core::audio::GenericAudioBufferRef;
use symphonia_core::codecs::audio::AudioDecoder;
use symphonia_core::packet::PacketRef;
use symphonia_core::units::{Duration, Timestamp};

use super::sound::{Block, Stream};
use crate::error::{Error, Result};

/// Packets that are decoded one after the other.
pub(crate) struct Coded<'a> {
    /// Of the codec, for messages.
    name: &'static str,
    decoder: Box<dyn AudioDecoder>,
    packets: Box<dyn Iterator<Item = &'a [u8]> + 'a>,
    channels: usize,
    /// Frames in front that are left out.
    skip: usize,
    floats: Vec<f32>,
    integers: Vec<i32>,
}

impl<'a> Coded<'a> {
    /// `packets` of codec `name`, without the first `skip` frames of what they become.
    pub(crate) fn new(
        name: &'static str,
        decoder: Box<dyn AudioDecoder>,
        packets: impl Iterator<Item = &'a [u8]> + 'a,
        channels: usize,
        skip: usize,
    ) -> Self {
        let packets = Box::new(packets);
        Self { name, decoder, packets, channels, skip, floats: Vec::new(), integers: Vec::new() }
    }

    /// Decodes a packet into `floats`, or `integers` where the codec has those; whether it has.
    fn decode(&mut self, packet: &[u8]) -> Result<bool> {
        let Self { name, decoder, floats, integers, channels, .. } = self;
        let damaged = |what: &str| Error::invalid(format!("the {name} audio is damaged: {what}"));
        let decode = AssertUnwindSafe(|| {
            let packet = PacketRef::new(0, Timestamp::ZERO, Duration::ZERO, packet);
            let frames = decoder.decode_ref(&packet).map_err(|error| damaged(&error.to_string()))?;
            if frames.num_planes() != *channels {
                return Err(damaged("a packet has another number of channels"));
            }
            let are_integers = matches!(frames, GenericAudioBufferRef::S32(_));
            if are_integers {
                frames.copy_to_vec_interleaved(integers);
            } else {
                frames.copy_to_vec_interleaved(floats);
            }
            Ok(are_integers)
        });
        catch_unwind(decode).unwrap_or_else(|_| Err(damaged("its decoder gave up")))
    }
}

impl Stream for Coded<'_> {
    fn next(&mut self) -> Result<Option<(Block<'_>, usize)>> {
        let Some(packet) = self.packets.next() else { return Ok(None) };
        let are_integers = self.decode(packet)?;
        let samples = if are_integers { self.integers.len() } else { self.floats.len() };
        let skipped = self.skip.min(samples / self.channels.max(1));
        self.skip -= skipped;
        let from = skipped * self.channels;
        let block = if are_integers {
            Block::Integers(self.integers.get(from..).unwrap_or_default())
        } else {
            Block::Floats(self.floats.get(from..).unwrap_or_default())
        };
        Ok(Some((block, packet.len())))
    }
}
