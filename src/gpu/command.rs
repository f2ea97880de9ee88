//! One command of a batch: a launch, a copy within the device, a wait for another stream, a call of others, a side
//! stream that begins or ends. It must not know the order of commands.

use std::sync::Arc;

use cudarc::driver::result;

use super::context::driver_error;
use super::counters::Counters;
use super::device::{Event, Stream};
use super::kernel::Launch;
use super::side_streams::Side;
use crate::error::{Error, Result};
use crate::memory::DeviceBytes;

/// A command.
pub(super) enum Command {
    /// In a side stream, or in the batch's own.
    Launch(Launch, Option<Arc<Side>>),
    Copy(Move),
    Wait(Arc<Event>),
    Call(Call),
    /// A side stream goes on behind all that the batch's stream has so far.
    Fork(Arc<Side>),
    /// The batch's stream goes on behind all that a side stream has so far.
    Join(Arc<Side>),
    /// What was recorded for this place when everything had run once.
    Slot(Vec<Command>),
}

impl Command {
    /// Puts it into `stream`, whose context is bound.
    pub(super) fn enqueue(&mut self, stream: &Stream, counters: &mut Counters) -> Result<()> {
        match self {
            Command::Launch(launch, side) => {
                let stream = side.as_ref().map_or(stream, |side| &side.stream);
                // SAFETY: the stream is valid; the recorder keeps the table and what the batch allocates until it was
                // waited for, and who records a launch the rest of what its rows name.
                unsafe { launch.enqueue(stream.raw()) }?;
                counters.launches += 1;
            }
            &mut Command::Copy(Move { to, from, bytes }) if bytes > 0 => {
                // SAFETY: both ranges are of values that the batch keeps, or of buffers that outlive it.
                unsafe { result::memcpy_dtod_async(to, from, bytes, stream.raw()) }
                    .map_err(|error| driver_error("copying on the device", error))?;
                counters.copies += 1;
            }
            Command::Copy(_) => {}
            Command::Wait(event) => stream.wait(event)?,
            Command::Call(call) => call(stream)?,
            Command::Fork(side) => side.follow(stream)?,
            Command::Join(side) => side.lead(stream)?,
            Command::Slot(commands) => {
                commands.iter_mut().try_for_each(|command| command.enqueue(stream, counters))?;
            }
        }
        Ok(())
    }
}

/// Enqueues work of third parties; called again if the batch is replayed.
pub type Call = Box<dyn FnMut(&Stream) -> Result<()> + Send + Sync>;

/// A copy within the device.
#[derive(Clone, Copy)]
pub(super) struct Move {
    to: u64,
    from: u64,
    bytes: usize,
}

impl Move {
    /// From `from` to the address `to`, which has so many bytes.
    ///
    /// # Errors
    /// Internal, when the two are not equally long.
    pub(super) fn new((to, bytes): (u64, usize), from: &DeviceBytes<'_>) -> Result<Self> {
        if bytes != from.len() {
            return Err(Error::internal(format!("a copy of {} bytes to {bytes}", from.len())));
        }
        Ok(Self { to, from: from.address(), bytes })
    }
}
