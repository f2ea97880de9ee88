//! What a pipeline's inputs may come from other than a caller: readers, a video that becomes many batches, a function
//! of the program. It must not know who runs the batches; that is [`crate::pipeline::Stream`].
//!
//! What those that come will find here:
//!
//! - **Readers** ([`crate::readers`]): [`Source::next`] fills a batch, one epoch behind the other without an end;
//!   [`Source::facts`] says how long one is. A file that cannot be read fails its sample ([`Pulled::failures`]), not
//!   the batch. A stream asks ahead; so a checkpoint is not what the source knows now. It is how many samples were
//!   delivered ([`crate::pipeline::Delivered::first`]), and a reader that goes on there skips as many
//!   ([`Source::skip`]).
//! - **Videos** ([`Videos`]): [`Source::feed`] takes the file that a request brought, each `next` decodes the next
//!   sequences, and `None` says that the video is over: the request's last answer is sent. What comes with it stands
//!   beside all of its batches ([`Repeated`]).
//! - **Functions of the program** (`called.rs`), for data that it alone can read: `next` calls one, and copies what it
//!   gives.
//! - **Batches of any size**: the first source of a pipeline decides, with at most as many samples as it is asked for.

mod called;
mod repeated;
mod video;

use std::sync::Arc;

use crate::cpu::formats::Formats;
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::gpu::video::Engines;
use crate::memory::HostPool;
use crate::tensor::{Batch, ValueType};

pub(crate) use called::Called;
pub use repeated::Repeated;
pub use video::Videos;

/// Gives batches to some inputs of a pipeline, one after the other, in one thread.
pub trait Source: Send {
    /// What is known of each output before there is a batch. What is said must hold for every batch.
    ///
    /// # Errors
    /// Why there will be none: they fail the load of the pipeline.
    fn infer(&self) -> Result<Vec<ValueType>>;

    /// Takes what a caller brings for the batches to come, a request's video, and copies what it keeps of it. A source
    /// that has used up what it was fed with returns `None` from [`Source::next`]; it does not wait there.
    ///
    /// # Errors
    /// What is wrong with it; unsupported for a source that is not fed.
    fn feed(&mut self, _input: &Batch<'_>) -> Result<()> {
        Err(Error::unsupported("this source takes nothing from a caller"))
    }

    /// [`Source::feed`] of memory that stays as it is until the source has used it up, which is when [`Source::next`]
    /// says that there is no more, or is dropped: it need not be copied.
    ///
    /// # Errors
    /// As there.
    fn feed_kept(&mut self, input: &Batch<'static>) -> Result<()> {
        self.feed(input)
    }

    /// Takes a piece of what comes in pieces, the `is_last` one or another; and copies it. [`Source::next`] returns
    /// `None` when it takes more pieces to go on. What stands beside is fed anew with each piece.
    ///
    /// # Errors
    /// What is wrong with it.
    fn feed_piece(&mut self, input: &Batch<'_>, _is_last: bool) -> Result<()> {
        self.feed(input)
    }

    /// Of a source that decodes: which formats it may. Comes before the first batch; all are allowed until then.
    fn allow(&mut self, _formats: Formats) {}

    /// Of a source whose outputs a device wants: what may decode there. Comes before the first [`Source::feed`].
    /// Samples may then be in the device's memory; nothing is under way there any more.
    fn decode_on(&mut self, _engines: &Arc<Engines>) {}

    /// The next 1 to `most` samples, in memory of its own or of `memory`; `None` when there are no more. It may be
    /// asked again after that, for another epoch or for what it was fed with since.
    ///
    /// # Errors
    /// Why this batch cannot be had. The next one is asked for all the same: a source that is at its end then says so.
    fn next(&mut self, most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>>;

    /// [`Source::next`] for somebody who may stop waiting meanwhile: sources that take long ask `waiting` now and then.
    ///
    /// # Errors
    /// As there; why nobody waits any more.
    fn next_while(
        &mut self,
        most: usize,
        memory: &Arc<HostPool>,
        _deadline: &dyn Deadline,
    ) -> Result<Option<Pulled>> {
        self.next(most, memory)
    }

    /// [`Source::next_while`] in two steps, for a source that knows which samples come next before it has them: several
    /// batches are then read at once.
    ///
    /// # Errors
    /// As there; those of a sample and of reading come with the second step.
    fn begin(
        &mut self,
        most: usize,
        memory: &Arc<HostPool>,
        deadline: &dyn Deadline,
    ) -> Result<Option<Upcoming>> {
        Ok(self.next_while(most, memory, deadline)?.map(Upcoming::Here))
    }

    /// Of a source that is fed: whether [`Source::next`] would say that there is no more.
    fn is_used_up(&self) -> bool {
        false
    }

    /// Of a source that takes pieces: about how many bytes of memory it takes until the next one comes.
    fn held(&self) -> usize {
        0
    }

    /// Goes on behind `samples` samples, of which `most` would have been asked for at a time. Comes before the first
    /// [`Source::next`]. Does nothing in sources that a program brings to where they go on.
    ///
    /// # Errors
    /// Why it cannot.
    fn skip(&mut self, _samples: u64, _most: usize) -> Result<()> {
        Ok(())
    }

    /// Leaves out what is left of the epoch; at the start of one it does nothing, and in sources without epochs. Comes
    /// behind [`Source::skip`].
    fn next_epoch(&mut self) {}

    /// How much there is to read, for sources that read a data set over and over.
    fn facts(&self) -> Option<Facts> {
        None
    }

    /// For a source that may wait long: how another thread ends that. Once it was called, `next` returns soon, whatever
    /// it returns, also when it is only called afterwards.
    fn interrupter(&self) -> Option<Interrupt> {
        None
    }
}

/// What a reader knows of its data set: what a training loop counts epochs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Facts {
    /// Samples of the whole data set.
    #[serde(rename = "epoch_size")]
    pub size: usize,
    /// Parts that it is read in, each by another process.
    #[serde(rename = "number_of_shards")]
    pub shards: usize,
    /// The part that is read first.
    #[serde(rename = "shard_id")]
    pub shard: usize,
    /// Whether the last sample is repeated until all parts are of the same size.
    #[serde(rename = "pad_last_batch")]
    pub pads: bool,
    /// Whether every epoch is of the same part.
    #[serde(rename = "stick_to_shard")]
    pub sticks: bool,
}

/// Makes a waiting [`Source::next`] return.
pub type Interrupt = Box<dyn Fn() + Send + Sync>;

/// Makes a source: one for each stream.
pub type MakeSource = Arc<dyn Fn() -> Result<Box<dyn Source>> + Send + Sync>;

/// What a source gives at once.
pub struct Pulled {
    /// A batch for each output, all of as many samples.
    pub batches: Vec<Batch<'static>>,
    /// Samples that could not be had, and why. They are [`crate::tensor::Sample::Missing`], with a shape of the right
    /// rank.
    pub failures: Vec<(usize, Error)>,
    /// Where each sample comes from, for messages of what is computed with it; empty where those say it, or for all.
    pub origins: Vec<String>,
}

/// A batch that was asked for.
pub enum Upcoming {
    /// It is here.
    Here(Pulled),
    /// It has so many samples, and this reads them, in any thread.
    Later(usize, Read),
}

/// Reads what comes later.
pub type Read = Box<dyn FnOnce() -> Result<Pulled> + Send>;

impl Upcoming {
    /// How many samples it has.
    #[must_use]
    pub fn samples(&self) -> usize {
        match self {
            Self::Here(pulled) => pulled.batches.first().map_or(0, Batch::len),
            Self::Later(samples, _) => *samples,
        }
    }

    /// Waits for it.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn read(self) -> Result<Pulled> {
        match self {
            Self::Here(pulled) => Ok(pulled),
            Self::Later(_, read) => read(),
        }
    }
}

impl From<Vec<Batch<'static>>> for Pulled {
    fn from(batches: Vec<Batch<'static>>) -> Self {
        Self { batches, failures: Vec::new(), origins: Vec::new() }
    }
}
