//! What is asked of the engines: packets of a stream, and where its pictures go. It must not know engines.

use crate::error::Result;
use crate::gpu::layout::device_struct;
use crate::memory::DeviceBytes;

/// How frames are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Codec {
    /// MPEG-4 Part 2, a frame a packet, with start codes.
    Mpeg4 = 2,
    /// H.264, in units with start codes.
    H264 = 4,
    /// H.265, likewise.
    H265 = 8,
    /// VP8, a frame a packet.
    Vp8 = 9,
    /// VP9, a frame a packet, or several of which one is shown.
    Vp9 = 10,
    /// AV1, a temporal unit a packet, of which one frame is shown.
    Av1 = 11,
}

/// What a stream says of its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// How much each colour counts in luma: a number of ISO/IEC 23091-2.
    pub matrix: u8,
    /// Whether samples take the whole range of their bits.
    pub full_range: bool,
}

device_struct! {
    /// From luma and the distances of chroma from gray to RGB: factors of 2^-13, for differences of 2^-9 of a level.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Factors as Factors {
        /// Luma of black.
        pub black: i32,
        /// What luma adds to each colour.
        pub luma: i32,
        /// What red chroma adds to red.
        pub red_of_red: i32,
        /// What red chroma adds to green.
        pub green_of_red: i32,
        /// What blue chroma adds to green.
        pub green_of_blue: i32,
        /// What blue chroma adds to blue.
        pub blue_of_blue: i32,
    }
}

/// A part of a video that begins with a key frame.
pub trait CodedVideo {
    /// Its codec.
    fn codec(&self) -> Codec;

    /// Columns and rows of every picture.
    fn size(&self) -> [usize; 2];

    /// How its samples become colours; `signal` is what the stream says.
    fn factors(&self, signal: Signal) -> Factors;

    /// Replaces what `into` holds by the next packet, and returns the time that comes back with its picture; `None`
    /// when there are no more. Times ascend in the order in which pictures are shown: the library's parser exchanges
    /// others.
    ///
    /// # Errors
    /// When the video is to blame.
    fn packet(&mut self, into: &mut Vec<u8>) -> Result<Option<i64>>;

    /// Where the next picture that is shown goes, which came with `time`: nowhere, or to one place or several.
    ///
    /// # Errors
    /// When it is another one than it should be.
    fn targets(&mut self, time: i64) -> Result<Vec<DeviceBytes<'_>>>;

    /// Whether everything has come.
    fn is_done(&self) -> bool;
}

impl<F: CodedVideo + ?Sized> CodedVideo for &mut F {
    fn codec(&self) -> Codec {
        (**self).codec()
    }

    fn size(&self) -> [usize; 2] {
        (**self).size()
    }

    fn factors(&self, signal: Signal) -> Factors {
        (**self).factors(signal)
    }

    fn packet(&mut self, into: &mut Vec<u8>) -> Result<Option<i64>> {
        (**self).packet(into)
    }

    fn targets(&mut self, time: i64) -> Result<Vec<DeviceBytes<'_>>> {
        (**self).targets(time)
    }

    fn is_done(&self) -> bool {
        (**self).is_done()
    }
}
