//! Videos that are fed, as batches of sequences. No more of a video is decoded than was asked for, however long it is.
//! It must not know who feeds it.
//!
//! ```text
//! player.rs   makes the sequences of one video      host.rs   with the host's decoders      engines.rs   on a device
//!                                                   pieces.rs likewise, of a video that comes in pieces
//! ```

mod engines;
mod host;
mod pieces;
mod player;

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Pulled, Source};
use crate::cpu::formats::Formats;
use crate::cpu::video::{File, Sequences, Video};
use crate::deadline::{Deadline, NoDeadline};
use crate::error::{Context, Error, Result};
use crate::gpu::video::Engines;
use crate::limits;
use crate::memory::{HostBuffer, HostPool, copied_once};
use crate::tensor::{Batch, BatchDesc, DType, Layout, Sample, ValueType};
use engines::OnEngines;
use host::OnHost;
use pieces::OnPieces;
use player::{CHANNELS, Player, PullContext, Sequence};

/// Gives the sequences of one video after the other; a batch has those of one. A video that is damaged ends with the
/// frame before, and the error comes in place of the batch behind that.
pub struct Videos {
    sequences: Sequences,
    /// Of the device that wants the sequences.
    engines: Option<Arc<Engines>>,
    formats: Formats,
    waiting: VecDeque<File<'static>>,
    player: Option<Box<dyn Player>>,
    /// Why the frames of `player` have come to an end.
    damage: Option<Error>,
}

impl Videos {
    /// A source of such sequences.
    pub fn new(sequences: Sequences) -> Self {
        let formats = Formats::ALL;
        Self { sequences, engines: None, formats, waiting: VecDeque::new(), player: None, damage: None }
    }

    /// The video that has frames left; `None` when there is none.
    fn current(&mut self) -> Result<Option<&mut dyn Player>> {
        if let Some(damage) = self.damage.take() {
            self.player = None;
            return Err(damage);
        }
        while self.player.as_ref().is_none_or(|player| !player.has_more()) {
            self.player = None;
            let Some(file) = self.waiting.pop_front() else { return Ok(None) };
            self.player = Some(self.play(file)?);
        }
        Ok(self.player.as_deref_mut().map(|player| player as &mut dyn Player))
    }

    fn play(&self, file: File<'static>) -> Result<Box<dyn Player>> {
        let video = Arc::new(Video::open(file)?);
        self.formats.check(video.format()).context(|| "video".to_owned())?;
        if let Some(engines) = self.engines.as_ref().filter(|engines| engines::takes(engines, &video)) {
            match OnEngines::new(engines, &video, self.sequences) {
                Ok(player) => return Ok(Box::new(player)),
                Err(error) => tracing::info!("a video is decoded on the host: {error}"),
            }
        }
        Ok(Box::new(OnHost::at(&video, 0, self.sequences)))
    }
}

impl Source for Videos {
    fn infer(&self) -> Result<Vec<ValueType>> {
        let length = self.sequences.pads.then_some(self.sequences.length);
        let dims = Some(vec![length, None, None, Some(CHANNELS)]);
        Ok(vec![ValueType { dtype: Some(DType::U8), dims, layout: Some(layout()) }])
    }

    fn feed(&mut self, input: &Batch<'_>) -> Result<()> {
        let bytes = bytes_of(input)?;
        self.waiting.push_back(match input.sample(0) {
            // Nobody writes to what was pooled.
            Some(Sample::Pooled(buffer, range)) => {
                File::Shared(Arc::new(Part(Arc::clone(buffer), range.clone())))
            }
            _ => copied_once(bytes).into(),
        });
        Ok(())
    }

    fn feed_kept(&mut self, input: &Batch<'static>) -> Result<()> {
        match input.sample(0) {
            Some(&Sample::Borrowed(bytes)) => {
                bytes_of(input)?;
                self.waiting.push_back(bytes.into());
                Ok(())
            }
            _ => self.feed(input),
        }
    }

    fn feed_piece(&mut self, input: &Batch<'_>, is_last: bool) -> Result<()> {
        let bytes = bytes_of(input)?;
        let (sequences, formats) = (self.sequences, self.formats);
        let player = self.player.get_or_insert_with(|| Box::new(OnPieces::new(sequences, formats)));
        player.grow(bytes, is_last)
    }

    fn allow(&mut self, formats: Formats) {
        self.formats = formats;
    }

    fn decode_on(&mut self, engines: &Arc<Engines>) {
        self.engines = Some(Arc::clone(engines));
    }

    fn next(&mut self, most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
        self.next_while(most, memory, &NoDeadline)
    }

    fn next_while(
        &mut self,
        most: usize,
        memory: &Arc<HostPool>,
        deadline: &dyn Deadline,
    ) -> Result<Option<Pulled>> {
        let asked = PullContext { memory, deadline };
        let Some(player) = self.current()? else { return Ok(None) };
        let (mut shapes, mut samples, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
        let mut damage = None;
        while damage.is_none() && shapes.len() < most && player.has_more() {
            let Sequence { made, damage: error } = player.sequence(&asked)?;
            damage = error;
            let Some((shape, sample)) = made else { break };
            bytes = bytes.saturating_add(shape.bytes(1)?);
            shapes.push(shape);
            samples.push(sample);
            // Room for another one.
            if bytes.saturating_add(bytes / shapes.len()) > limits::MAX_BATCH_BYTES {
                break;
            }
        }
        self.damage = damage;
        if shapes.is_empty() {
            // It is damaged, or its next piece did not come yet.
            return self.damage.take().map_or(Ok(None), |damage| {
                self.player = None;
                Err(damage)
            });
        }
        Ok(Some(vec![Batch::new(BatchDesc::new(DType::U8, layout(), shapes), samples)?].into()))
    }

    fn held(&self) -> usize {
        self.player.as_ref().map_or(0, |player| player.held())
    }

    fn is_used_up(&self) -> bool {
        let has_ended = self.player.as_ref().is_none_or(|player| !player.has_more());
        has_ended && self.damage.is_none() && self.waiting.is_empty()
    }
}

/// The bytes of the one video in a batch, whatever its shape: the file is all of them, one behind the other.
fn bytes_of<'b>(input: &'b Batch<'_>) -> Result<&'b [u8]> {
    let desc = input.desc();
    let ([_], DType::U8) = (desc.shapes.as_slice(), desc.dtype) else {
        return Err(Error::invalid(format!(
            "expected one video at a time, as uint8, found {} of type {}",
            desc.shapes.len(),
            desc.dtype
        )));
    };
    Ok(input.view(0).bytes)
}

/// A part of a buffer.
struct Part(Arc<HostBuffer>, std::ops::Range<usize>);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes().get(self.1.clone()).unwrap_or_default()
    }
}

fn layout() -> Layout {
    Layout::from_letters(b"FHWC")
}
