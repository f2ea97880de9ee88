//! What all decoders are: they take packets and give pictures in the order in which they are shown. It must not know
//! codecs.

use super::budget::Budget;
use crate::cpu::yuv::TakeRow;
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::limits;

/// A decoder of one codec. It begins with a key frame and is used up when its packets have ended.
pub(super) trait VideoDecoder: Send {
    /// Takes the bytes of one frame; `place` comes back with its picture. Each frame in them is paid for before it is
    /// decoded, and the memory that it takes.
    ///
    /// # Errors
    /// Bytes that are damaged, or a way of coding that the decoder does not know; more than is left of `budget`.
    fn send(&mut self, packet: &[u8], place: usize, budget: &Budget<'_>) -> Result<()>;

    /// Whether nothing is made of the picture of a packet but itself, as far as headers say. Then it is not sent, and
    /// [`VideoDecoder::send`] of a picture that is made of it is an error.
    fn passes_over(&mut self, _packet: &[u8]) -> bool {
        false
    }

    /// Says that there are no more packets: all pictures come.
    ///
    /// # Errors
    /// Those of [`VideoDecoder::send`].
    fn finish(&mut self) -> Result<()>;

    /// The next picture in the order in which they are shown, if there is one yet.
    fn next(&mut self) -> Option<Box<dyn Picture>>;

    /// Bytes of memory that it takes, with its pictures that are to come.
    fn held(&self) -> usize;
}

/// A decoded picture, or one that can be decoded without others.
pub(super) trait Picture: Send {
    /// What was given with its packet.
    fn place(&self) -> usize;

    /// Columns and rows.
    fn size(&self) -> [usize; 2];

    /// Writes it as RGB, 8 bits each, in rows without gaps, for as long as somebody waits.
    ///
    /// # Errors
    /// Bytes that are damaged; why nobody waits any more.
    fn write_rgb(&self, out: &mut [u8], watch: &Watch<'_>) -> Result<()>;

    /// Hands its rows to `take`, as [`Picture::write_rgb`] writes them; false, and none of them, where they do not come
    /// one by one.
    ///
    /// # Errors
    /// As there.
    fn write_rows(&self, _take: &mut TakeRow<'_>) -> Result<bool> {
        Ok(false)
    }
}

/// A picture that takes more memory than those that the video began with: it is not decoded, and an error if it is
/// shown.
pub(super) struct Larger {
    pub(super) place: usize,
    pub(super) size: [usize; 2],
}

impl Picture for Larger {
    fn place(&self) -> usize {
        self.place
    }

    fn size(&self) -> [usize; 2] {
        self.size
    }

    fn write_rgb(&self, _out: &mut [u8], _watch: &Watch<'_>) -> Result<()> {
        Err(Error::unsupported(
            "a frame with more samples, or more bits of each, than the first one of its video",
        ))
    }
}

/// Lets sizes pass that decoders may allocate memory for.
///
/// # Errors
/// A side of 0, or more pixels than [`limits::MAX_VIDEO_PIXELS`].
pub(super) fn check_size(size: [usize; 2]) -> Result<[usize; 2]> {
    let [width, height] = size;
    if width == 0 || height == 0 {
        return Err(Error::invalid(format!("frames of {width} x {height} pixels, expected at least one")));
    }
    if width.checked_mul(height).is_none_or(|pixels| pixels > limits::MAX_VIDEO_PIXELS) {
        return Err(Error::invalid(format!(
            "frames of {width} x {height} pixels are larger than the limit of {} pixels",
            limits::MAX_VIDEO_PIXELS
        )));
    }
    Ok(size)
}

/// The error of a decoder that found bytes damaged.
pub(super) fn damaged(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("a frame cannot be decoded: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_memory_is_allocated_for() {
        let error = |size| check_size(size).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error([3, 2]), "");
        assert!(error([0, 2]).contains("0 x 2 pixels, expected at least one"));
        assert!(error([1, limits::MAX_VIDEO_PIXELS + 1]).contains("larger than the limit"));
        assert!(error([usize::MAX, 2]).contains("larger than the limit"));
    }
}
