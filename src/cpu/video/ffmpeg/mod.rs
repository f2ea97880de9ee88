//! Videos by the FFmpeg that is installed, where there is one: H.264, VP9 and MPEG-4 Part 2. Its libraries are loaded
//! when the first video is decoded; nothing of them is part of this one. It must not know containers.
//!
//! ```text
//! packet -> streams: what headers say, what it costs, which units FFmpeg gets -> Decoder -> sys -> libavcodec
//!                                                                                   |
//!                                                                                   v  Picture, without errors
//! ```
//!
//! FFmpeg fills up what is missing or damaged, and says so here and there. So `streams` follows which pictures are
//! there to make others from, and FFmpeg is told to fail; a picture that it made up in part is an error.
//!
//! - Of H.265 and VP8 it does not tell damage that our own decoders find, so these stay with them.
//! - With several threads it gives pictures away before it knows whether they are damaged, so a decoder has one.

mod decoder;
mod library;
mod stored;
mod streams;
mod sys;

use super::budget::{Budget, Cost};
use super::decoder::VideoDecoder;
use super::track::{Codec, Track};
use crate::error::Result;
use decoder::Decoder;
use library::Found;
use streams::Stream;

/// What decoding takes: see [`Cost`].
pub(super) const COST: Cost = Cost { pixel: 2.0, byte: 20.0 };

/// The names of decoders.
const H264: &str = "h264";
const VP9: &str = "vp9";
const MPEG4: &str = "mpeg4";

/// Which FFmpeg decodes videos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ffmpeg {
    /// This one.
    Used(String),
    /// None, as there is none, or nobody wants it.
    Absent(String),
    /// None: what is there cannot be used.
    Refused(String),
}

impl Ffmpeg {
    /// Looks for it, as decoders do.
    pub fn find() -> Self {
        match library::found() {
            Found::Used(api, path) => {
                let (release, version) = (api.version.release, &api.text);
                Self::Used(format!("version {release}, libavcodec {version} of {}", path.display()))
            }
            Found::Absent(why) => Self::Absent(why.clone()),
            Found::Refused(why) => Self::Refused(why.clone()),
        }
    }
}

/// The stream of `track` with the first packet `first`, if FFmpeg is there and decodes it as it should.
fn stream(track: &Track, first: &[u8]) -> Option<Result<Box<dyn Stream>>> {
    if decodes(track.codec) { streams::of(track, first).transpose() } else { None }
}

/// A decoder for `track`, whose first packet is `first`; `None` where Gesso's own should be used.
///
/// # Errors
/// Parameters that make no sense; no memory or threads for it.
pub(super) fn decoder(
    track: &Track,
    first: &[u8],
    budget: &Budget<'_>,
) -> Result<Option<Box<dyn VideoDecoder>>> {
    if budget.is_by_own() {
        return Ok(None);
    }
    let (Found::Used(api, _), Some(stream)) = (library::found(), stream(track, first)) else {
        return Ok(None);
    };
    Ok(Some(Box::new(Decoder::new(api, stream?)?)))
}

/// Bytes of memory that such a decoder takes at most; `None` where Gesso's own should be used.
pub(super) fn needs(track: &Track, first: &[u8]) -> Option<Result<usize>> {
    stream(track, first).map(|stream| stream.map(|stream| stream.needs()))
}

/// Whether it decodes videos of this codec, but for rare ones.
pub(super) fn decodes(codec: Codec) -> bool {
    matches!(codec, Codec::H264 | Codec::Vp9 | Codec::Mpeg4) && matches!(library::found(), Found::Used(..))
}

/// How a decoder called `name` is set up, for pictures of so many pixels at most.
fn options(name: &str, pixels: usize) -> Vec<(&'static str, String)> {
    // All pictures come, also those that are marked as damaged; cropped to the pixel.
    let flags =
        if name == MPEG4 { "+output_corrupt+unaligned+bitexact" } else { "+output_corrupt+unaligned" };
    let mut options = vec![
        ("threads", "1".to_owned()),
        ("max_pixels", pixels.to_string()),
        ("err_detect", "+bitstream+buffer+explode".to_owned()),
        ("flags", flags.to_owned()),
    ];
    if name == H264 {
        // Else the order of pictures is guessed where a stream does not say how far they may be apart.
        options.push(("strict", "1".to_owned()));
    }
    options
}
