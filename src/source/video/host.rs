//! Sequences whose frames are decoded on the host. It must not know devices.

use std::sync::Arc;

use super::player::{CHANNELS, Player, PullContext, Sequence, is_of_waiting};
use crate::cpu::video::{Cursor, Sequences, Video};
use crate::error::Result;
use crate::memory::Counted;
use crate::tensor::{Sample, Shape};

/// A video that is decoded on the host.
pub(super) struct OnHost {
    cursor: Cursor,
    sequences: Sequences,
    /// Memory of the video and its decoder.
    counted: Counted,
}

impl OnHost {
    /// `video` from frame `frame` on.
    pub(super) fn at(video: &Arc<Video<'static>>, frame: usize, sequences: Sequences) -> Self {
        Self { cursor: Cursor::at(Arc::clone(video), frame), sequences, counted: Counted::default() }
    }
}

impl Player for OnHost {
    fn has_more(&self) -> bool {
        self.cursor.left() > 0
    }

    fn sequence(&mut self, asked: &PullContext<'_>) -> Result<Sequence> {
        let Self { cursor, sequences: Sequences { length, pads }, counted } = self;
        counted.join(asked.memory);
        counted.grow_to(cursor.video().held() + cursor.held())?;
        let (height, width) = (cursor.video().height(), cursor.video().width());
        let there = (*length).min(cursor.left());
        let frames = if *pads { *length } else { there };
        let mut shape = Shape::from([frames, height, width, CHANNELS]);
        let (size, frame) = (shape.bytes(1)?, height * width * CHANNELS);
        let (mut buffer, budget) = (asked.memory.take(size)?, asked.budget(counted));
        let mut damage = None;
        let (mut read, bytes) = (0, buffer.bytes_mut().get_mut(..size).unwrap_or_default());
        for target in bytes.chunks_exact_mut(frame).take(there) {
            asked.check()?;
            let number = cursor.next();
            if let Err(error) = cursor.read(&budget, target) {
                if is_of_waiting(&error) {
                    return Err(error.context(format!("frame {number}")));
                }
                damage = Some(error.context(format!("frame {number}")));
                break;
            }
            read += 1;
        }
        if read == 0 {
            return Ok(Sequence { made: None, damage });
        }
        // What was in the memory before.
        bytes.get_mut(read * frame..).unwrap_or_default().fill(0);
        if !*pads {
            shape = Shape::from([read, height, width, CHANNELS]);
        }
        let size = shape.bytes(1)?;
        Ok(Sequence { made: Some((shape, Sample::Pooled(Arc::new(buffer), 0..size))), damage })
    }
}
