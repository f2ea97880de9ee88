//! Flow between frames of one size: the library's session, its memory, its stream. It must not know where frames come
//! from.

use std::sync::Arc;

use parking_lot::Mutex;

use super::handle::{Handle, Plane};
use super::settings::Settings;
use super::sys::{Format, Functions, Usage};
use crate::error::{Error, Result};
use crate::gpu::Stream;

/// Numbers of the buffers, in the order in which they are made: the two frames, the field and the hints.
const FRAMES: [usize; 2] = [0, 1];
const FIELD: usize = 2;
const HINTS: usize = 3;

/// Computes flow between frames of one size.
pub struct Session {
    size: [u32; 2],
    frames: [Plane; 2],
    field: Plane,
    hints: Option<Plane>,
    made: Mutex<Handle>,
    /// The stream that it was made for. Last, so that it outlives what uses it.
    stream: Arc<Stream>,
}

impl Session {
    /// A session for frames of `size`, columns and rows, whose work goes into `stream`.
    pub(super) fn new(
        functions: &Arc<Functions>,
        settings: &Settings,
        size: [u32; 2],
        stream: &Arc<Stream>,
    ) -> Result<Self> {
        let _bound = stream.gpu().bind()?;
        let mut made = Handle::new(functions, stream.gpu())?;
        made.work_in(stream)?;
        made.begin(settings, size)?;
        let pixel = if settings.is_gray { (Format::Gray, 1) } else { (Format::Color, 4) };
        let vector = (Format::Vectors, 4);
        let blocks = |grid: u32| size.map(|side| side.div_ceil(grid));
        let frames = [made.buffer(Usage::Input, size, pixel)?, made.buffer(Usage::Input, size, pixel)?];
        let field = made.buffer(Usage::Output, blocks(settings.output_grid), vector)?;
        let hints =
            settings.hint_grid.map(|grid| made.buffer(Usage::Hint, blocks(grid), vector)).transpose()?;
        Ok(Self { size, frames, field, hints, made: Mutex::new(made), stream: Arc::clone(stream) })
    }

    /// Whether it is for frames of `size` in `stream`.
    pub(super) fn is_for(&self, size: [u32; 2], stream: &Arc<Stream>) -> bool {
        self.size == size && Arc::ptr_eq(&self.stream, stream)
    }

    /// Where frame `number` of a sequence is written: two places take turns. Gray, or red, green, blue and 255 for each
    /// pixel.
    pub fn frame(&self, number: usize) -> Plane {
        self.frames[number % self.frames.len()]
    }

    /// Where the field is read: int16 along x and along y for each block, in pixels / 32.
    pub fn field(&self) -> Plane {
        self.field
    }

    /// Where hints are written, in the form of the field.
    pub fn hints(&self) -> Option<Plane> {
        self.hints
    }

    /// Puts the flow of frame `number`, from 1 on, into the session's stream: for each of its blocks, how far away it
    /// is in the frame before. Both frames are where [`Session::frame`] says, and hints, if it takes some. `forgets`:
    /// the flow before this one says nothing of this.
    ///
    /// # Errors
    /// What the library says; internal for another stream.
    pub fn execute(&self, stream: &Stream, number: usize, forgets: bool) -> Result<()> {
        if !std::ptr::eq(stream, &raw const *self.stream) {
            return Err(Error::internal("optical flow in a stream that it was not made for"));
        }
        let of = |frame: usize| FRAMES[frame % FRAMES.len()];
        let _bound = self.stream.gpu().bind()?;
        // In the library's terms the flow is that from the later frame to the one before.
        let frames = [of(number), of(number + FRAMES.len() - 1)];
        self.made.lock().execute(frames, self.hints.map(|_| HINTS), FIELD, forgets)
    }
}
