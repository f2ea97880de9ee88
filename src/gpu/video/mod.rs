//! The device's video engines (NVDEC), through the library that comes with the driver: packets of a stream in, RGB on
//! the device out. It must not know containers, operators, or how videos are decoded on the host.
//!
//! ```text
//! Video ── packet ──> Parser ── sequence ──> Engines: a Decoder of that format, kept from before or made
//!    ^                    │ decode ──────────> Decoder: an engine decodes to one of its surfaces
//!    └── targets <────────┘ show ────────────> Decoder: readable ──> kernel `video`: RGB to each target
//! ```
//!
//! Everything runs on the caller's thread, which waits for the engine, and in the decoder's stream. As many videos as
//! threads like are decoded at the same time. A [`Playback`] goes on where it was left, packet by packet; [`decode`] is
//! one from beginning to end. A still picture in tiles, as phones write them, is decoded by [`decode_tiles`].

mod coded_video;
mod convert;
mod decoder;
mod engines;
mod gray;
mod padded;
mod parser;
mod playback;
mod sys;
mod tiles;
mod wash;

use super::KernelSpec;

pub use coded_video::{Codec, CodedVideo, Factors, Signal};
pub use engines::Engines;
pub use playback::{Playback, decode};
pub use tiles::{Tiling, canvas_bytes, decode_tiles};

/// What converts pictures.
pub fn kernels() -> Vec<KernelSpec> {
    convert::kernels()
}
