//! What is known of a sound file, and what decoders give. It must not know formats.

use crate::error::Result;

/// What the header of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Samples of each channel.
    pub frames: usize,
    /// Channels.
    pub channels: usize,
    /// Frames a second.
    pub rate: u32,
    /// How samples are coded.
    pub coding: Coding,
    /// Bytes that a decoder holds while it is at work.
    pub scratch: usize,
}

/// How samples are coded, as far as it says what decoding takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// A number of bytes for each.
    Stored,
    /// Four bits for each, of a difference.
    Adpcm,
    /// FLAC.
    Flac,
    /// Vorbis.
    Vorbis,
    /// MPEG audio, layer 3.
    Mp3,
    /// AAC.
    Aac,
    /// ALAC.
    Alac,
    /// Opus.
    Opus,
}

/// Some frames, with interleaved channels.
#[derive(Debug, Clone, Copy)]
pub enum Block<'b> {
    /// Of a file of integers, scaled to 32 bits.
    Integers(&'b [i32]),
    /// Of a file of floats.
    Floats(&'b [f32]),
}

impl<'b> Block<'b> {
    /// Samples of all channels.
    pub fn len(self) -> usize {
        match self {
            Self::Integers(samples) => samples.len(),
            Self::Floats(samples) => samples.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The first `len` samples, as far as there are so many.
    #[must_use]
    pub fn first(self, len: usize) -> Block<'b> {
        match self {
            Self::Integers(samples) => Self::Integers(samples.get(..len).unwrap_or(samples)),
            Self::Floats(samples) => Self::Floats(samples.get(..len).unwrap_or(samples)),
        }
    }
}

/// Gives a file's frames one block after the other.
pub trait Stream {
    /// The next frames, none of them from a packet that has none, and the bytes that were read for them; `None` at the
    /// end.
    ///
    /// # Errors
    /// Invalid, for a damaged file.
    fn next(&mut self) -> Result<Option<(Block<'_>, usize)>>;
}
