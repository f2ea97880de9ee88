//! Sequences of a video that comes in pieces, decoded on the host: each is given as soon as all of its frames are
//! there. It must not know devices, nor who brings the pieces.

use std::sync::Arc;

use super::player::{CHANNELS, Player, PullContext, Sequence, is_of_waiting};
use crate::cpu::formats::Formats;
use crate::cpu::video::{Budget, Growing, Sequences};
use crate::error::{Error, Result};
use crate::memory::{Counted, HostBuffer};
use crate::tensor::{Sample, Shape};

/// A video of which not all came.
pub(super) struct OnPieces {
    growing: Growing,
    sequences: Sequences,
    /// The sequence at hand, and how many frames of it are there. From one piece to the next it is not of the batches'
    /// memory: videos that wait must not take it from other requests.
    begun: Option<(HostBuffer, usize)>,
    /// Memory of the decoder while it is at work.
    counted: Arc<Counted>,
    /// Frames that came before it.
    before: usize,
    is_over: bool,
}

impl OnPieces {
    pub(super) fn new(sequences: Sequences, formats: Formats) -> Self {
        Self {
            growing: Growing::of(formats),
            sequences,
            begun: None,
            counted: Arc::default(),
            before: 0,
            is_over: false,
        }
    }

    /// Decodes up to the next frame and adds it to the sequence at hand; `false` when that takes more bytes, or there
    /// are no more frames.
    fn frame(&mut self, budget: &Budget<'_>, asked: &PullContext<'_>) -> Result<bool> {
        if !self.growing.prepare(budget)? {
            return Ok(false);
        }
        let size = self.bytes(1)?;
        if self.begun.is_none() {
            self.begun = Some((asked.memory.take(self.bytes(self.sequences.length)?)?, 0));
        }
        let (buffer, read) = self.begun.as_mut().ok_or_else(|| Error::internal("no sequence was begun"))?;
        let target = buffer.bytes_mut().get_mut(*read * size..).and_then(|rest| rest.get_mut(..size));
        self.growing.write(budget, target.ok_or_else(|| Error::internal("a frame behind its sequence"))?)?;
        *read += 1;
        Ok(true)
    }

    fn shape(&self, frames: usize) -> Shape {
        let [width, height] = self.growing.size();
        Shape::from([frames, height, width, CHANNELS])
    }

    fn bytes(&self, frames: usize) -> Result<usize> {
        self.shape(frames).bytes(1)
    }

    fn is_full(&self) -> bool {
        self.begun.as_ref().is_some_and(|(_, read)| *read == self.sequences.length)
    }

    /// The sequence at hand, with the frames that it has.
    fn take(&mut self) -> Result<Option<(Shape, Sample<'static>)>> {
        let Some((mut buffer, read)) = self.begun.take().filter(|(_, read)| *read > 0) else {
            return Ok(None);
        };
        self.before += read;
        let frames = if self.sequences.pads { self.sequences.length } else { read };
        let (there, size) = (self.bytes(read)?, self.bytes(frames)?);
        // What was in the memory before.
        buffer.bytes_mut().get_mut(there..size).unwrap_or_default().fill(0);
        Ok(Some((self.shape(frames), Sample::Pooled(Arc::new(buffer), 0..size))))
    }
}

impl Player for OnPieces {
    fn has_more(&self) -> bool {
        !self.is_over
    }

    fn grow(&mut self, piece: &[u8], is_last: bool) -> Result<()> {
        self.growing.push(piece, is_last)
    }

    fn held(&self) -> usize {
        self.growing.held() + self.begun.as_ref().map_or(0, |(buffer, _)| buffer.held())
    }

    fn sequence(&mut self, asked: &PullContext<'_>) -> Result<Sequence> {
        let counted = Arc::clone(&self.counted);
        counted.join(asked.memory);
        counted.grow_to(self.growing.decoder_held())?;
        let budget = asked.budget(&counted);
        while !self.is_full() {
            asked.check()?;
            match self.frame(&budget, asked) {
                Ok(true) => {}
                Ok(false) if !self.growing.is_over() => {
                    // Streams that wait are counted by whoever keeps them.
                    counted.part();
                    if let Some((buffer, _)) = &mut self.begun {
                        buffer.part();
                    }
                    return Ok(Sequence { made: None, damage: None });
                }
                Ok(false) => {
                    self.is_over = true;
                    return Ok(Sequence { made: self.take()?, damage: None });
                }
                Err(error) if is_of_waiting(&error) => return Err(error),
                Err(error) => {
                    self.is_over = true;
                    let number = self.before + self.begun.as_ref().map_or(0, |(_, read)| *read);
                    let damage = Some(error.context(format!("frame {number}")));
                    return Ok(Sequence { made: self.take()?, damage });
                }
            }
        }
        Ok(Sequence { made: self.take()?, damage: None })
    }
}
