//! AV1 as a video's codec.

use std::collections::VecDeque;

use super::budget::{Budget, Cost};
use super::decoder::{self, VideoDecoder};
use crate::cpu::av1::{self, IDENTITY, Part, Sequence, UNSPECIFIED};
use crate::cpu::yuv::{self, Color, Matrix, TakeRow};
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// See [`Cost`].
pub(super) const COST: Cost = Cost { pixel: 6.0, byte: 80.0 };

/// References that a stream may hold.
const SLOTS: usize = 8;
/// Frames beside them: the one at work, and it with grain.
const BESIDE: usize = 2;
/// Sides are filled up to such a number of pixels.
const ALIGNED: usize = 128;
/// Bytes of a frame beside its samples: for each block of 8 x 8 pixels, and probabilities.
const BLOCK: usize = 16;
const PROBABILITIES: usize = 96 << 10;
/// Bytes that are known of each pixel of the frame at work.
const PIXEL: usize = 2;

pub(super) struct Decoder {
    inner: av1::Decoder,
    /// Columns and rows of the largest frame.
    size: [usize; 2],
    /// What the container holds for it, until the first packet has come.
    parameters: Vec<u8>,
    /// What the sequence header said that came last.
    sequence: Option<Sequence>,
    /// Bytes of two pixels, in the sequence that has the most.
    two_pixels: usize,
    /// Frames that came.
    frames: usize,
    ready: VecDeque<Decoded>,
}

struct Decoded {
    picture: av1::Picture,
    matrix: u8,
}

/// Bytes of `av1C` before what it holds, and the first of them: a marker, and version 1.
const CONFIG_HEADER: usize = 4;
const CONFIG_VERSION: u8 = 0x81;

/// The units in `av1C`: a sequence header, which packets need not repeat.
pub(super) fn parameters(config: &[u8]) -> &[u8] {
    match config.split_at_checked(CONFIG_HEADER) {
        Some((&[CONFIG_VERSION, ..], units)) => units,
        _ => &[],
    }
}

/// Bytes of so many frames, and of what is known of the one at work.
fn held([width, height]: [usize; 2], two_pixels: usize, frames: usize) -> usize {
    let pixels = width.next_multiple_of(ALIGNED) * height.next_multiple_of(ALIGNED);
    frames * (pixels * two_pixels / 2 + pixels / 64 * BLOCK + PROBABILITIES) + pixels * PIXEL
}

/// Bytes of memory that a decoder takes at most, by the first sequence header.
pub(super) fn needs(config: &[u8], size: [usize; 2], first: &[u8]) -> Result<usize> {
    let parts = av1::parts(parameters(config)).chain(av1::parts(first));
    let sequence = parts.map_while(Result::ok).find_map(|part| part.sequence);
    let sequence = sequence.ok_or_else(|| Error::invalid("AV1 without a sequence header"))?;
    Ok(held(size, sequence.two_pixels, SLOTS + BESIDE + 2))
}

impl Decoder {
    /// A decoder for packets of a container whose `av1C` is `config`, of frames of `size` at most.
    pub(super) fn new(config: &[u8], size: [usize; 2]) -> Result<Self> {
        let [width, height] = size;
        Ok(Self {
            inner: av1::Decoder::new(width * height)?,
            size,
            parameters: parameters(config).to_vec(),
            sequence: None,
            two_pixels: 0,
            frames: 0,
            ready: VecDeque::new(),
        })
    }

    /// The number of the matrix, of those that are told apart.
    fn matrix(&self) -> u8 {
        self.sequence.map_or(UNSPECIFIED, |sequence| sequence.matrix)
    }

    /// Takes a part of a packet, which has one frame at most.
    fn part(&mut self, part: &Part<'_>, place: usize, budget: &Budget<'_>) -> Result<()> {
        if let Some(sequence) = part.sequence {
            self.two_pixels = self.two_pixels.max(sequence.two_pixels);
            self.sequence = Some(sequence);
        }
        budget.look(part.bytes.len())?;
        if part.has_frame {
            self.frames += 1;
            budget.hold(self.taken(self.ready.len() + 1))?;
            budget.frame(self.size, COST.of(self.size, part.bytes.len()))?;
        }
        let matrix = self.matrix();
        let Self { inner, ready, .. } = self;
        inner.send(part.bytes.to_vec(), place, &mut |picture| ready.push_back(Decoded { picture, matrix }))
    }

    /// Bytes that it takes beside so many pictures that were not taken.
    fn taken(&self, ready: usize) -> usize {
        held(self.size, self.two_pixels, self.frames.min(SLOTS) + BESIDE + ready)
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize, budget: &Budget<'_>) -> Result<()> {
        let parameters = std::mem::take(&mut self.parameters);
        for part in av1::parts(&parameters).chain(av1::parts(packet)) {
            self.part(&part?, place, budget)?;
        }
        Ok(())
    }

    fn passes_over(&mut self, packet: &[u8]) -> bool {
        self.sequence.is_some_and(|sequence| av1::is_spare(packet, &sequence))
    }

    fn finish(&mut self) -> Result<()> {
        let matrix = self.matrix();
        let Self { inner, ready, .. } = self;
        inner.collect(&mut |picture| ready.push_back(Decoded { picture, matrix }))
    }

    fn next(&mut self) -> Option<Box<dyn decoder::Picture>> {
        self.ready.pop_front().map(|decoded| Box::new(decoded) as Box<dyn decoder::Picture>)
    }

    fn held(&self) -> usize {
        self.taken(self.ready.len())
    }
}

impl decoder::Picture for Decoded {
    fn place(&self) -> usize {
        self.picture.place()
    }

    fn size(&self) -> [usize; 2] {
        let layout = self.picture.layout();
        [layout.width, layout.height]
    }

    fn write_rgb(&self, out: &mut [u8], _watch: &Watch<'_>) -> Result<()> {
        yuv::to_rgb(&self.picture, self.picture.layout(), self.color()?, out);
        Ok(())
    }

    fn write_rows(&self, take: &mut TakeRow<'_>) -> Result<bool> {
        yuv::to_rows(&self.picture, self.picture.layout(), self.color()?, take);
        Ok(true)
    }
}

impl Decoded {
    fn color(&self) -> Result<Color> {
        let matrix = match self.matrix {
            IDENTITY => return Err(Error::unsupported("AV1 of red, green and blue")),
            number => Matrix::numbered(number),
        };
        Ok(Color { matrix, full_range: self.picture.full_range() })
    }
}
