//! JPEG 2000 of a batch on nvJPEG2000, where it is installed: pixels as stored, of the whole picture. It must not know
//! the other paths.

use std::sync::Arc;

use super::Job;
use super::files::File;
use crate::cpu::decode::Format as FileFormat;
use crate::error::Result;
use crate::gpu::jpeg::Format;
use crate::gpu::jpeg2000::{Decoder, Task};
use crate::gpu::{Gpu, Recorder};
use crate::memory::DeviceBytes;

/// What ends a codestream. A file without it is cut off, which the host shall judge: the library shows as much as there
/// is.
const END: [u8; 2] = [0xFF, 0xD9];

/// The library, from the first file on that it may take.
pub(super) struct OnNvJpeg2000 {
    gpu: Arc<Gpu>,
    format: Format,
    state: State,
}

enum State {
    Unknown,
    Opened(Box<Decoder>),
    /// It is not there.
    Absent,
}

/// Says which files it may decode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Takes {
    /// Channels that are stored; `None`: it decodes nothing.
    channels: Option<usize>,
}

impl Takes {
    /// Whether it may decode a file, as far as its header tells: 8 bits, as many channels as are stored.
    pub(super) fn may_take(self, job: &Job, file: &[u8]) -> bool {
        job.info.format == FileFormat::Jpeg2000
            && job.info.bit_depth == 8
            && self.channels == Some(job.info.channels)
            && file.ends_with(&END)
    }
}

impl OnNvJpeg2000 {
    /// One that decodes to `format`, if the library writes that.
    pub(super) fn new(gpu: &Arc<Gpu>, format: Format) -> Self {
        // No blue before red.
        let state = if format == Format::Bgr { State::Absent } else { State::Unknown };
        Self { gpu: Arc::clone(gpu), format, state }
    }

    /// What it may decode.
    pub(super) fn takes(&self) -> Takes {
        let is_absent = matches!(self.state, State::Absent);
        Takes { channels: (!is_absent).then(|| self.format.channels()) }
    }

    /// The library, opened when it is first asked for; `None`, said once in the log: it is not there.
    fn decoder(&mut self) -> Option<&mut Decoder> {
        if matches!(self.state, State::Unknown) {
            self.state = match Decoder::open(&self.gpu, self.format) {
                Ok(decoder) => State::Opened(Box::new(decoder)),
                Err(error) => {
                    tracing::info!("JPEG 2000 is decoded on the host: {error}");
                    State::Absent
                }
            };
        }
        match &mut self.state {
            State::Opened(decoder) => Some(decoder),
            State::Unknown | State::Absent => None,
        }
    }

    /// Decodes `files` to `targets`, before what is recorded from here on; returns the places of those that it refuses,
    /// all where it is not there.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory.
    pub(super) fn decode<'a>(
        &mut self,
        recorder: &mut Recorder,
        files: impl Iterator<Item = (&'a Job, File<'a>)>,
        targets: &[DeviceBytes<'a>],
    ) -> Result<Vec<usize>> {
        let Some(decoder) = self.decoder() else { return Ok((0..targets.len()).collect()) };
        let task = |((job, file), target): ((&Job, File<'a>), &DeviceBytes<'a>)| {
            let (width, height) = job.info.stored_size();
            Task { bytes: file.all, size: [width, height], target: target.clone() }
        };
        let tasks: Vec<Task<'_>> = files.zip(targets).map(task).collect();
        decoder.prepare(recorder, tasks.len())?;
        let stream = Arc::clone(recorder.stream());
        let refused = decoder.start(&stream, &tasks)?;
        decoder.join(recorder);
        Ok(refused)
    }
}
