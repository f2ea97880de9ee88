//! The one video track of a file: which codec, which bytes are a frame each, when a frame is shown. It must not know
//! how containers store that, nor how frames are decoded.

use std::ops::Range;

use super::mp4_samples::Samples;
use crate::error::{Error, Result};
use crate::limits;

/// How frames are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    H264,
    H265,
    Vp8,
    Vp9,
    Av1,
    Mjpeg,
    Mpeg4,
}

/// The bytes of one frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    /// Where they are in the file.
    start: usize,
    len: usize,
    /// When the frame is shown, in the track's unit of time.
    pub(super) time: i64,
    /// Whether decoding may begin here.
    pub(super) key: bool,
    /// Whether it is there only for other frames to be made from.
    pub(super) hidden: bool,
}

/// A frame that is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// Its packet.
    pub(super) packet: usize,
    /// When, in the track's unit of time.
    pub(super) time: i64,
}

impl Samples for Track {
    fn push(&mut self, len: usize, range: Range<usize>, time: i64, key: bool) -> Result<()> {
        Self::push(self, len, range, time, key)
    }
}

/// Packets in the order in which they are decoded, and what is needed to decode them.
#[derive(Debug, Clone)]
pub(super) struct Track {
    pub(super) codec: Codec,
    /// What the container holds for the decoder: `avcC` for H.264, `hvcC` for H.265, `av1C` for AV1, parameters for
    /// MPEG-4; empty where the stream has it all.
    pub(super) config: Vec<u8>,
    /// Columns and rows as the container says, 0 where it does not.
    pub(super) size: [usize; 2],
    pub(super) packets: Vec<Packet>,
    /// How many there may be at a time.
    pub(super) most: usize,
    /// Whether the container says when frames are shown. Else only a decoder knows their order, up to the next key
    /// frame.
    pub(super) timed: bool,
    /// The unit of time: so many seconds, divided by so many.
    pub(super) tick: [u32; 2],
    /// The parts of the track's time that are shown, one after the other; empty: all of it.
    pub(super) edits: Vec<Range<i64>>,
}

impl Track {
    pub(super) fn new(codec: Codec) -> Self {
        Self {
            codec,
            config: Vec::new(),
            size: [0; 2],
            packets: Vec::new(),
            most: limits::MAX_VIDEO_FRAMES,
            timed: true,
            tick: [1, 25],
            edits: Vec::new(),
        }
    }

    /// Adds a packet of a file of `len` bytes, after those before it. What does not lie in the file is left out: files
    /// are cut off.
    ///
    /// # Errors
    /// When there are more than `most`.
    pub(super) fn push(&mut self, len: usize, range: Range<usize>, time: i64, key: bool) -> Result<()> {
        if self.packets.len() >= self.most {
            return Err(Error::invalid(format!(
                "a table of more than {} frames, which is the limit",
                self.most
            )));
        }
        if !range.is_empty() && range.end <= len {
            self.packets.push(Packet::new(range.start, range.len(), time, key));
        }
        Ok(())
    }

    /// Lets packets of a whole file of `len` bytes pass before all of them are read.
    ///
    /// # Errors
    /// When they lie over one another more than [`limits::MAX_VIDEO_OVERLAP`] allows.
    pub(super) fn check_overlap(&self, len: usize) -> Result<()> {
        let bytes = self.packets.iter().fold(0_usize, |sum, packet| sum.saturating_add(packet.len));
        if bytes > len.saturating_mul(limits::MAX_VIDEO_OVERLAP) {
            return Err(Error::invalid(format!(
                "frames of more than {} times as many bytes as their file has, which is the limit",
                limits::MAX_VIDEO_OVERLAP
            )));
        }
        Ok(())
    }

    /// Bytes of memory that it takes.
    pub(super) fn held(&self) -> usize {
        self.config.capacity()
            + self.packets.capacity() * size_of::<Packet>()
            + self.edits.capacity() * size_of::<Range<i64>>()
    }

    /// The packets in the order in which they are shown, some of them more than once or not at all, and when.
    ///
    /// # Errors
    /// When that are more than [`limits::MAX_VIDEO_FRAMES`].
    pub(super) fn shown(&self) -> Result<Vec<Shown>> {
        let mut order: Vec<usize> =
            (0..self.packets.len()).filter(|&packet| !self.packets[packet].hidden).collect();
        if !self.timed {
            return Ok(self.as_timed(&order, 0).collect());
        }
        order.sort_by_key(|&packet| self.packets[packet].time);
        if self.edits.is_empty() {
            return Ok(self.as_timed(&order, 0).collect());
        }
        let (mut shown, mut begin) = (Vec::new(), 0_i64);
        for edit in &self.edits {
            let first = order.partition_point(|&packet| self.packets[packet].time < edit.start);
            let end = order.partition_point(|&packet| self.packets[packet].time < edit.end);
            let part = order.get(first..end).unwrap_or_default();
            if shown.len() + part.len() > limits::MAX_VIDEO_FRAMES {
                return Err(Error::invalid("the edit list of a video shows more frames than the limit"));
            }
            shown.extend(self.as_timed(part, begin.saturating_sub(edit.start)));
            begin = begin.saturating_add(edit.end.saturating_sub(edit.start));
        }
        Ok(shown)
    }

    /// Packets that are shown so much later than they say.
    fn as_timed(&self, packets: &[usize], later: i64) -> impl Iterator<Item = Shown> {
        packets
            .iter()
            .map(move |&packet| Shown { packet, time: self.packets[packet].time.saturating_add(later) })
    }
}

impl Packet {
    /// One of `len` bytes from `start` on.
    pub(super) fn new(start: usize, len: usize, time: i64, key: bool) -> Self {
        Self { start, len, time, key, hidden: false }
    }

    /// Where its bytes begin and end.
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start.saturating_add(self.len)
    }

    /// Its bytes in `file`.
    pub(super) fn of<'f>(&self, file: &'f [u8]) -> &'f [u8] {
        file.get(self.range()).unwrap_or_default()
    }
}
