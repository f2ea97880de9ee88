//! VP8, by ourselves (RFC 6386): packets in, frames of 4:2:0 out, equal to FFmpeg's. It must not know containers.
//!
//! ```text
//! packet -> header ─┬─> modes, motion ──> how a macroblock is predicted ─┬─> intra, inter ─> transform ─> frame
//!                   └─> tokens ─────────> its coefficients ──────────────┘                                 │
//!                                          a row later, when nothing follows from it any more: loop_filter ┘
//! ```
//!
//! Everything is read by [`bool_decoder`], whose zeros behind the last byte keep loops going; a frame that needs more
//! than one has is an error.

mod bool_decoder;
mod coefficients;
mod frame;
mod header;
mod inter;
mod intra;
mod loop_filter;
mod macroblock;
mod modes;
mod motion;
mod reconstruct;
mod simple_filter;
mod tables;
mod tokens;
mod transform;
#[cfg(target_arch = "x86_64")]
mod vector;

use std::collections::VecDeque;
use std::sync::Arc;

use super::budget::{Budget, Cost};
use super::decoder::{Picture, VideoDecoder, damaged};
use crate::cpu::yuv::{self, Color, Layout, Matrix, Planes, TakeRow};
use crate::deadline::Watch;
use crate::error::{Error, Result};
use frame::Frame;
use header::{State, Update};

/// See [`Cost`].
pub(super) const COST: Cost = Cost { pixel: 3.0, byte: 40.0 };

/// Bytes for each macroblock: of a frame's samples; of what is known of it.
const SAMPLES: usize = 384;
const KNOWN: usize = 64;

/// Frames that are kept to be written to again: three references, the one at hand, pictures that nobody took yet.
const KEPT: usize = 6;

/// The frames that later ones are predicted from.
#[derive(Clone)]
struct References {
    last: Arc<Frame>,
    golden: Arc<Frame>,
    alternative: Arc<Frame>,
}

pub(super) struct Decoder {
    state: State,
    /// Columns and rows of the first picture; a larger one is an error.
    first: [usize; 2],
    /// Columns and rows of the picture.
    size: [usize; 2],
    references: Option<References>,
    /// The segment of each macroblock.
    segments: Vec<u8>,
    /// All frames that there are room for.
    kept: Vec<Arc<Frame>>,
    ready: VecDeque<Decoded>,
}

struct Decoded {
    frame: Arc<Frame>,
    size: [usize; 2],
    full_range: bool,
    place: usize,
}

impl References {
    /// What becomes of them behind `frame`. Copies come first, that of the alternative one before that of the golden
    /// one.
    fn update(&mut self, frame: &Arc<Frame>, golden: Update, alternative: Update, refreshes_last: bool) {
        match alternative {
            Update::Last => self.alternative = self.last.clone(),
            Update::Other => self.alternative = self.golden.clone(),
            Update::Keep | Update::Frame => {}
        }
        match golden {
            Update::Last => self.golden = self.last.clone(),
            Update::Other => self.golden = self.alternative.clone(),
            Update::Keep => {}
            Update::Frame => self.golden = frame.clone(),
        }
        if alternative == Update::Frame {
            self.alternative = frame.clone();
        }
        if refreshes_last {
            self.last = frame.clone();
        }
    }
}

impl Decoder {
    /// A decoder of a stream that begins with packet `first`.
    pub(super) fn new(first: &[u8]) -> Result<Self> {
        Ok(Self {
            state: State::default(),
            first: size(first)?,
            size: [0; 2],
            references: None,
            segments: Vec::new(),
            kept: Vec::new(),
            ready: VecDeque::new(),
        })
    }

    /// A frame whose samples are of no account, one that nobody needs any more if there is one.
    fn room(&mut self) -> Frame {
        let macroblocks = self.size.map(|side| side.div_ceil(16));
        let unused = self.kept.iter().position(|frame| Arc::strong_count(frame) == 1);
        let found = unused.and_then(|unused| Arc::into_inner(self.kept.swap_remove(unused)));
        found.filter(|frame| frame.macroblocks() == macroblocks).unwrap_or_else(|| Frame::new(macroblocks))
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize, budget: &Budget<'_>) -> Result<()> {
        let (tag, rest) = header::tag(packet)?;
        if let Some([width, height]) = tag.size.filter(|size| macroblocks(*size) > macroblocks(self.first)) {
            let [first_width, first_height] = self.first;
            return Err(Error::unsupported(format!(
                "a frame of {width} x {height} pixels in a video of {first_width} x {first_height}"
            )));
        }
        let size = tag.size.unwrap_or(self.size);
        budget.hold(held(macroblocks(self.first), self.kept.len() + self.ready.len() + 2))?;
        budget.frame(size, COST.of(size, packet.len()))?;
        if let Some(size) = tag.size {
            self.size = size;
            let [columns, rows] = size.map(|side| side.div_ceil(16));
            // A key frame says which macroblock is in which segment, or that all are in the first.
            self.segments = vec![0; columns * rows];
        } else if self.references.is_none() {
            return Err(damaged("VP8: a frame without the key frame that it needs"));
        }
        let header = header::header(&tag, rest, &mut self.state)?;
        let (golden, alternative, refreshes_last, saved) =
            (header.golden, header.alternative, header.refreshes_last, header.saved.clone());
        let mut frame = self.room();
        reconstruct::decode(
            &mut frame,
            &mut self.segments,
            self.references.as_ref(),
            &tag,
            header,
            &self.state,
        )?;
        let frame = Arc::new(frame);
        if let Some(saved) = saved {
            self.state.probabilities = saved;
        }
        let mut references = self.references.take().unwrap_or_else(|| References {
            last: frame.clone(),
            golden: frame.clone(),
            alternative: frame.clone(),
        });
        references.update(&frame, golden, alternative, refreshes_last);
        self.references = Some(references);
        if tag.is_shown {
            let (size, full_range) = (self.size, self.state.full_range);
            self.ready.push_back(Decoded { frame: frame.clone(), size, full_range, place });
        }
        if self.kept.len() < KEPT {
            self.kept.push(frame);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        self.ready.pop_front().map(|decoded| Box::new(decoded) as Box<dyn Picture>)
    }

    fn held(&self) -> usize {
        // Those that are not kept are referred to, or wait.
        let beside = if self.references.is_some() && self.kept.len() == KEPT { 1 } else { 0 };
        held(macroblocks(self.first), self.kept.len() + beside + self.ready.len())
    }
}

/// Macroblocks of a picture.
fn macroblocks(size: [usize; 2]) -> usize {
    let [columns, rows] = size.map(|side| side.div_ceil(16));
    columns * rows
}

/// Bytes of so many frames.
fn held(macroblocks: usize, frames: usize) -> usize {
    macroblocks * (frames * SAMPLES + KNOWN)
}

impl Picture for Decoded {
    fn place(&self) -> usize {
        self.place
    }

    fn size(&self) -> [usize; 2] {
        self.size
    }

    fn write_rgb(&self, out: &mut [u8], _watch: &Watch<'_>) -> Result<()> {
        yuv::to_rgb(self.frame.as_ref(), self.layout(), self.color(), out);
        Ok(())
    }

    fn write_rows(&self, take: &mut TakeRow<'_>) -> Result<bool> {
        yuv::to_rows(self.frame.as_ref(), self.layout(), self.color(), take);
        Ok(true)
    }
}

impl Decoded {
    fn layout(&self) -> Layout {
        let [width, height] = self.size;
        Layout { width, height, depth: 8, halved: Some([1, 1]), spread: true }
    }

    fn color(&self) -> Color {
        Color { matrix: Matrix::BT601, full_range: self.full_range }
    }
}

impl Planes for Frame {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let Some(plane) = self.planes.get(plane) else { return };
        let samples = plane.samples.get(y * plane.width..).unwrap_or_default();
        row.iter_mut().zip(samples).for_each(|(to, from)| *to = u16::from(*from));
    }
}

/// Columns and rows, from the first packet.
pub(super) fn size(first: &[u8]) -> Result<[usize; 2]> {
    header::tag(first)?.0.size.ok_or_else(|| damaged("VP8: the first frame is no key frame"))
}

/// Bytes of memory that a decoder takes at most.
pub(super) fn needs(first: &[u8]) -> Result<usize> {
    Ok(held(macroblocks(size(first)?), KEPT + 4))
}

/// Whether the samples of a key frame, and of those behind it, take the whole range.
pub(super) fn is_full_range(key: &[u8]) -> Result<bool> {
    let ((tag, rest), mut state) = (header::tag(key)?, State::default());
    header::header(&tag, rest, &mut state)?;
    Ok(state.full_range)
}

/// Whether a packet is a key frame.
pub(super) fn is_key(packet: &[u8]) -> bool {
    packet.first().is_some_and(|head| head & 1 == 0)
}

/// Whether a packet is shown: others are there to be predicted from.
pub(super) fn is_shown(packet: &[u8]) -> bool {
    packet.first().is_none_or(|head| head & 16 != 0)
}
