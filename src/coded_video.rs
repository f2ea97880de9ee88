//! Videos that were opened on the host, as the video engines of a device take them. It must not know who asks for
//! frames, nor where they go.

use crate::cpu::video::{self, Budget, Coded, Coding};
use crate::error::{Error, Result};
use crate::gpu::video::{Codec, CodedVideo, Factors, Signal};
use crate::memory::DeviceBytes;

/// From a picture to the next one, in the engines' unit of time, 10^-7 seconds: as at 25 pictures a second.
const BETWEEN: i64 = 400_000;

/// Where frames go, and what decoding them may cost.
pub trait Takes {
    /// What is left of it.
    fn budget(&self) -> &Budget<'_>;

    /// Where the frames go that a picture is: each nowhere, to one place or several.
    ///
    /// # Errors
    /// When others were expected; when there is no memory.
    fn targets(&mut self, frames: &[usize]) -> Result<Vec<DeviceBytes<'_>>>;
}

/// Frames that engines decode for somebody.
pub struct OpenedVideo<'v, T> {
    coded: Coded<'v>,
    /// Who takes them.
    pub takes: T,
    /// The error that is not the engines'.
    at_fault: Option<Error>,
}

impl<'v, T: Takes> OpenedVideo<'v, T> {
    /// The frames of `coded` for `takes`.
    pub fn new(coded: Coded<'v>, takes: T) -> Self {
        Self { coded, takes, at_fault: None }
    }

    /// The error that no decoder avoids: of the video, or of what it costs.
    pub fn at_fault(self) -> Option<Error> {
        self.at_fault
    }
}

impl<T: Takes> CodedVideo for OpenedVideo<'_, T> {
    fn codec(&self) -> Codec {
        codec_of(self.coded.coding())
    }

    fn size(&self) -> [usize; 2] {
        self.coded.size()
    }

    fn factors(&self, Signal { matrix, full_range }: Signal) -> Factors {
        factors_of(self.coded.factors(matrix, full_range))
    }

    fn packet(&mut self, into: &mut Vec<u8>) -> Result<Option<i64>> {
        let packet = self.coded.packet(self.takes.budget(), into);
        let place = packet.inspect_err(|error| self.at_fault = Some(error.clone()))?;
        Ok(place.map(|place| place as i64 * BETWEEN))
    }

    fn targets(&mut self, time: i64) -> Result<Vec<DeviceBytes<'_>>> {
        let place = usize::try_from(time / BETWEEN).ok().filter(|_| time % BETWEEN == 0);
        let frames = self.coded.frames(place.unwrap_or(usize::MAX))?;
        self.takes.targets(&frames)
    }

    fn is_done(&self) -> bool {
        self.coded.is_done()
    }
}

/// The host's factors as a device has them.
pub fn factors_of(factors: video::Factors) -> Factors {
    let video::Factors { black, luma, red_of_red, green_of_red, green_of_blue, blue_of_blue } = factors;
    Factors { black, luma, red_of_red, green_of_red, green_of_blue, blue_of_blue }
}

/// What engines call it.
pub fn codec_of(coding: Coding) -> Codec {
    match coding {
        Coding::H264 => Codec::H264,
        Coding::H265 => Codec::H265,
        Coding::Vp8 => Codec::Vp8,
        Coding::Vp9 => Codec::Vp9,
        Coding::Av1 => Codec::Av1,
        Coding::Mpeg4 => Codec::Mpeg4,
    }
}
