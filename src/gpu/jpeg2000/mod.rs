//! JPEG 2000 to pixels on a device, by nvJPEG2000 where it is installed. Files are dealt to lanes in turn: each has a
//! stream and a state of the library, which decodes one file at a time. It must not know operators, or where else
//! images are decoded.

mod sys;

use std::sync::Arc;

use super::jpeg::Format;
use super::{Event, Gpu, Recorder, Stream};
use crate::error::{Error, Result};
use crate::memory::DeviceBytes;
use sys::{Handle, State};

/// Files that are decoded at the same time.
const LANES: usize = 8;

/// One file to decode, to dense 8-bit pixels.
pub struct Task<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// Columns and rows.
    pub size: [usize; 2],
    /// Where its pixels go: rows without gaps.
    pub target: DeviceBytes<'a>,
}

/// The library, as one instance of an operator uses it.
pub struct Decoder {
    format: Format,
    handle: Arc<Handle>,
    /// Recorded into the stream in which destinations were allocated.
    ready: Arc<Event>,
    lanes: Vec<Lane>,
    /// How many of them the batch at hand uses.
    used: usize,
}

/// A state with its stream.
struct Lane {
    // Before the stream, which it uses.
    state: State,
    stream: Arc<Stream>,
    done: Arc<Event>,
}

impl Decoder {
    /// Opens the library for `gpu`, to decode to `format`.
    ///
    /// # Errors
    /// Unavailable, when the library is not there or too old, or writes no such format.
    pub fn open(gpu: &Arc<Gpu>, format: Format) -> Result<Self> {
        if format == Format::Bgr {
            return Err(Error::unsupported("nvJPEG2000 does not write blue before red"));
        }
        let (handle, ready) = (Handle::open(gpu)?, Arc::new(Event::new(gpu)?));
        Ok(Self { format, handle, ready, lanes: Vec::new(), used: 0 })
    }

    /// What it writes.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Gets ready for `images` of the batch of `recorder`, which from now on waits for everything that is started, even
    /// when it is given up half-way.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn prepare(&mut self, recorder: &mut Recorder, images: usize) -> Result<()> {
        self.used = images.min(LANES);
        while self.lanes.len() < self.used {
            let gpu = recorder.gpu();
            let (state, stream) = (State::new(&self.handle)?, gpu.stream()?);
            self.lanes.push(Lane { state, stream, done: Arc::new(Event::new(gpu)?) });
        }
        for lane in &self.lanes[..self.used] {
            recorder.work_in(&lane.stream);
        }
        Ok(())
    }

    /// Decodes `tasks`, for as many of which it is [prepared](Decoder::prepare), after what is in `stream` now, and
    /// returns those that it refused, as indices; their targets hold anything. Blocks until all is submitted, which may
    /// be until most is decoded. The caller keeps files and targets until the batch was waited for, and calls it again
    /// only then.
    ///
    /// # Errors
    /// Internal, when a target has not the size of its picture; what a broken device answers.
    pub fn start(&mut self, stream: &Arc<Stream>, tasks: &[Task<'_>]) -> Result<Vec<usize>> {
        self.ready.record(stream)?;
        let mut refused = Vec::new();
        for (i, Task { bytes, size, target }) in tasks.iter().enumerate() {
            let [width, height] = *size;
            if target.len() != width * height * self.format.channels() {
                return Err(Error::internal(format!(
                    "a picture of {width} x {height} is decoded to {} bytes",
                    target.len()
                )));
            }
            let lane = self.lanes.get_mut(i % LANES).ok_or_else(|| Error::internal("no lane is prepared"))?;
            match i < LANES {
                true => lane.stream.wait(&self.ready)?,
                // A state is for one file at a time.
                false => lane.stream.synchronize()?,
            }
            // SAFETY: the caller keeps file and target until the batch is done, for which the recorder waits in every
            // lane's stream; the target's size was checked. What the state did before is done: the last batch was
            // waited for, and so was this lane.
            let decoded =
                unsafe { lane.state.decode(bytes, *size, self.format, target.address(), &lane.stream) };
            if let Err(error) = decoded {
                tracing::debug!("nvJPEG2000 refuses a file: {error}");
                lane.stream.synchronize()?;
                refused.push(i);
            }
            lane.done.record(&lane.stream)?;
        }
        Ok(refused)
    }

    /// Lets what is recorded from here on run after the pictures of the last [`Decoder::start`].
    pub fn join(&self, recorder: &mut Recorder) {
        for lane in &self.lanes[..self.used] {
            recorder.wait_for(Arc::clone(&lane.done));
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // States must not go before what they do; after a panic that may still be under way.
        for lane in &self.lanes {
            let _ = lane.stream.synchronize();
        }
    }
}
