//! JPEGs to pixels on a device: which path takes which image, and the paths that decode there. It must not know
//! operators, nor how the host decodes.
//!
//! ```text
//! file -> Header  --> Picture (what the engines take)  -->  Engines: files to lanes, pixels straight to device memory;
//!                                                           meanwhile `is_whole` looks whether no pixel is missing
//!                 --> Coded (what the SMs take)        -->  Cores: data in the staging slab, launches in the recorder
//!                                                           Threads: the caller decodes on the host and uploads
//! ```
//!
//! Engines are a [`DevicePath`]: they work while the batch is recorded. The SMs work when it runs, see [`sm`].

mod engine_lock;
mod engines;
mod header;
mod huffman;
mod picture;
mod sample;
mod share;
pub mod sm;
mod sys;
mod watch;
mod whole;

use std::sync::Arc;

use super::{Event, Recorder, Stream};
use crate::error::{Error, Result};
use crate::memory::DeviceBytes;

pub use engine_lock::EngineLock;
pub use engines::{Engines, Settings};
pub use header::{Header, Quantisation, Scan};
pub use huffman::{Class, Huffman};
pub use picture::{Frame, Picture, Sampling};
pub use share::{Candidate, Path, Predicted, Size, SmNeed, Speeds, Wish, assign};
pub use sys::Format;
pub(super) use sys::check;
pub use watch::Watch;
pub use whole::is_whole;

/// One picture to decode, as stored and whole, to dense 8-bit pixels.
pub struct Task<'a> {
    /// The file.
    pub picture: Picture<'a>,
    /// Where its pixels go: rows without gaps.
    pub target: DeviceBytes<'a>,
}

impl Task<'_> {
    fn check(&self, channels: usize) -> Result<()> {
        let Frame { width, height, .. } = *self.picture.frame();
        let (expected, found) = (width * height * channels, self.target.len());
        if expected == found {
            return Ok(());
        }
        Err(Error::internal(format!(
            "a picture of {width} x {height} x {channels} is decoded to {found} bytes"
        )))
    }
}

/// A way to decode pictures into device memory.
pub trait DevicePath {
    /// What it writes.
    fn format(&self) -> Format;

    /// The samplings of pictures that it decodes.
    fn samplings(&self) -> &[Sampling];

    /// Gets ready for `images` of the batch of `recorder`, which from now on waits for everything that is started, even
    /// when it is given up half-way. Returns the points in streams at which the images are done.
    ///
    /// # Errors
    /// When there is no memory.
    fn prepare(&mut self, recorder: &mut Recorder, images: usize) -> Result<Vec<Arc<Event>>>;

    /// Decodes `tasks` after what is in `stream` now, and returns those that it refused, as indices; their targets hold
    /// anything, and so do those of files that are not whole ([`is_whole`]): what was in memory before. Blocks until
    /// all is submitted, which may be until most is decoded. The caller keeps files and targets until the batch was
    /// waited for, and calls it again only then.
    ///
    /// # Errors
    /// Internal, when a target has not the size of its picture; what a broken device answers. Then nothing is under
    /// way.
    fn start(&mut self, stream: &Arc<Stream>, tasks: &[Task<'_>]) -> Result<Vec<usize>>;

    /// Lets what is recorded from here on run after the pictures of the last [`DevicePath::start`].
    fn join(&self, recorder: &mut Recorder);
}
