//! Videos that are fed, as batches of sequences. No more of a video is decoded than was asked for, however long it is. It must not know who
//! feeds it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Pulled, Source};
use crate::cpu::video::{Budget, Cursor, Sequences, Video};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::memory::{HostPool, copied_once};
use crate::tensor::{Batch, BatchDesc, DType, Layout, Sample, Shape, ValueType};

/// Red, green, blue.
const CHANNELS: usize = 3;

/// Gives the sequences of one video after the other; a batch has those of one. A video that is damaged ends with the frame before, and the
/// error comes in place of the batch behind that.
pub struct Videos {
    sequences: Sequences,
    waiting: VecDeque<Vec<u8>>,
    cursor: Option<Cursor>,
    /// Why the frames of `cursor` have come to an end.
    damage: Option<Error>,
}

/// A sequence in memory of its own.
type Made = (Shape, Sample<'static>);

impl Videos {
    /// A source of such sequences.
    pub fn new(sequences: Sequences) -> Self {
        Self { sequences, waiting: VecDeque::new(), cursor: None, damage: None }
    }

    /// The video that has frames left; `None` when there is none.
    fn current(&mut self) -> Result<Option<&mut Cursor>> {
        if let Some(damage) = self.damage.take() {
            self.cursor = None;
            return Err(damage);
        }
        while self.cursor.as_ref().is_none_or(|cursor| cursor.left() == 0) {
            self.cursor = None;
            let Some(file) = self.waiting.pop_front() else { return Ok(None) };
            self.cursor = Some(Cursor::new(Video::open(file)?));
        }
        Ok(self.cursor.as_mut())
    }

    /// The next sequence of the video, which has frames left, and why it is the last one if not all of its frames can be had.
    fn sequence(
        cursor: &mut Cursor,
        Sequences { length, pads }: Sequences,
        memory: &Arc<HostPool>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<(Option<Made>, Option<Error>)> {
        let (height, width) = (cursor.video().height(), cursor.video().width());
        let there = length.min(cursor.left());
        let frames = if pads { length } else { there };
        let mut shape = Shape::from([frames, height, width, CHANNELS]);
        let (size, frame) = (shape.bytes(1)?, height * width * CHANNELS);
        let (mut buffer, budget) = (memory.take(size)?, Budget::default());
        let mut damage = None;
        let (mut read, bytes) = (0, buffer.bytes_mut().get_mut(..size).unwrap_or_default());
        for target in bytes.chunks_exact_mut(frame).take(there) {
            if !is_wanted() {
                return Err(Error::new(ErrorKind::Cancelled, "nobody waits for the video any more"));
            }
            let number = cursor.next();
            if let Err(error) = cursor.read(&budget, target) {
                damage = Some(error.context(format!("frame {number}")));
                break;
            }
            read += 1;
        }
        if read == 0 {
            return Ok((None, damage));
        }
        // What was in the memory before.
        bytes.get_mut(read * frame..).unwrap_or_default().fill(0);
        if !pads {
            shape = Shape::from([read, height, width, CHANNELS]);
        }
        let size = shape.bytes(1)?;
        Ok((Some((shape, Sample::Pooled(Arc::new(buffer), 0..size))), damage))
    }
}

impl Source for Videos {
    fn infer(&self) -> Result<Vec<ValueType>> {
        let length = self.sequences.pads.then_some(self.sequences.length);
        let dims = Some(vec![length, None, None, Some(CHANNELS)]);
        Ok(vec![ValueType { dtype: Some(DType::U8), dims, layout: Some(layout()) }])
    }

    fn feed(&mut self, input: &Batch<'_>) -> Result<()> {
        let desc = input.desc();
        let ([shape], DType::U8) = (desc.shapes.as_slice(), desc.dtype) else {
            return Err(Error::invalid(format!(
                "expected one video at a time, as uint8, found {} of type {}",
                desc.shapes.len(),
                desc.dtype
            )));
        };
        if shape.len() != 1 {
            return Err(Error::invalid(format!(
                "expected a video of 1 dimension, its bytes, found shape {shape}"
            )));
        }
        self.waiting.push_back(copied_once(input.view(0).bytes));
        Ok(())
    }

    fn next(&mut self, most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
        self.next_while(most, memory, &|| true)
    }

    fn next_while(
        &mut self,
        most: usize,
        memory: &Arc<HostPool>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Pulled>> {
        let sequences = self.sequences;
        let Some(cursor) = self.current()? else { return Ok(None) };
        let (mut shapes, mut samples, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
        let mut damage = None;
        while damage.is_none() && shapes.len() < most && cursor.left() > 0 {
            let (made, error) = Self::sequence(cursor, sequences, memory, is_wanted)?;
            damage = error;
            let Some((shape, sample)) = made else { break };
            bytes = bytes.saturating_add(sample.bytes().len());
            shapes.push(shape);
            samples.push(sample);
            // Room for another one.
            if bytes.saturating_add(bytes / shapes.len()) > limits::MAX_BATCH_BYTES {
                break;
            }
        }
        self.damage = damage;
        if shapes.is_empty() {
            self.current()?;
            return Err(Error::internal("a video without frames that has no end"));
        }
        Ok(Some(vec![Batch::new(BatchDesc::new(DType::U8, layout(), shapes), samples)?].into()))
    }

    fn is_used_up(&self) -> bool {
        let has_ended = self.cursor.as_ref().is_none_or(|cursor| cursor.left() == 0);
        has_ended && self.damage.is_none() && self.waiting.is_empty()
    }
}

fn layout() -> Layout {
    Layout::from_letters(b"FHWC")
}
