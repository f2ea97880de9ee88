//! A decoder of FFmpeg's as one of ours, and its pictures.

use std::collections::VecDeque;

use super::options;
use super::stored::Stored;
use super::streams::{Looked, Stream};
use super::sys::{Api, Context, Frame};
use crate::cpu::video::budget::Budget;
use crate::cpu::video::decoder::{Larger, Picture, VideoDecoder, damaged};
use crate::cpu::yuv::{self, Color, Layout, Planes, TakeRow};
use crate::deadline::Watch;
use crate::error::{Error, ErrorKind, Result};

/// Columns and rows beyond a picture's sides that FFmpeg counts with.
const BEYOND: usize = 512;
/// What comes back with pictures that are not shown.
const NOT_SHOWN: i64 = -1;
/// Changes of colours that are remembered: pictures come at most so many packets later.
const COLORS: usize = 64;

pub(super) struct Decoder {
    context: Context,
    stream: Box<dyn Stream>,
    /// From which packet on which colours are meant.
    colors: VecDeque<(usize, Color)>,
    has_begun: bool,
    ended: Ended,
    ready: VecDeque<Box<dyn Picture>>,
}

struct Decoded {
    frame: Frame,
    stored: Stored,
    place: usize,
    color: Color,
}

/// Whether more packets are decoded.
enum Ended {
    No,
    /// One that is damaged ends it; the pictures before it come first.
    By(Error),
    /// One whose picture is larger than the first ones.
    Larger,
    /// That was said.
    Gone,
}

impl Decoder {
    pub(super) fn new(api: &'static Api, stream: Box<dyn Stream>) -> Result<Self> {
        let [width, height] = stream.coded().map(|side| side + BEYOND);
        let context = Context::new(api, stream.name(), &options(stream.name(), width * height))?;
        Ok(Self {
            context,
            stream,
            colors: VecDeque::new(),
            has_begun: false,
            ended: Ended::No,
            ready: VecDeque::new(),
        })
    }

    /// Takes the pictures that are there, but for that of packet `without`.
    fn collect(&mut self, without: Option<usize>) -> Result<()> {
        while let Some(frame) = self.context.receive().map_err(failed)? {
            let Ok(place) = usize::try_from(frame.place()) else { continue };
            if without == Some(place) {
                continue;
            }
            if frame.is_damaged() {
                return Err(damaged("FFmpeg found it incomplete"));
            }
            let Some(stored) = frame.stored() else {
                return Err(Error::unsupported(format!(
                    "a frame whose samples are stored as {}",
                    frame.format()
                )));
            };
            let color = self.colors.iter().rev().find(|(from, _)| *from <= place);
            let color = color.or(self.colors.front()).map(|(_, color)| *color);
            let color = color.ok_or_else(|| Error::internal("a picture of no packet"))?;
            self.ready.push_back(Box::new(Decoded { frame, stored, place, color }));
        }
        Ok(())
    }

    /// Ends with `error` behind the pictures that were decoded before it.
    fn end(&mut self, error: Error, without: Option<usize>) -> Result<()> {
        self.context.end();
        match self.collect(without) {
            Ok(()) if !self.ready.is_empty() => {
                self.ended = Ended::By(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn decode(&mut self, looked: Looked, place: usize) -> Result<()> {
        if self.colors.back().is_none_or(|(_, color)| *color != looked.color) {
            self.colors.push_back((place, looked.color));
            if self.colors.len() > COLORS {
                self.colors.pop_front();
            }
        }
        for (bytes, is_shown) in looked.frames {
            self.context.send(&bytes, if is_shown { place as i64 } else { NOT_SHOWN }).map_err(failed)?;
            self.collect(None)?;
        }
        Ok(())
    }
}

/// FFmpeg's error in our words.
fn failed(text: impl std::fmt::Display) -> Error {
    damaged(format!("FFmpeg: {text}"))
}

/// Whether an error says that somebody does not wait any more, or that there is no room.
fn is_of_waiting(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Unavailable)
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize, budget: &Budget<'_>) -> Result<()> {
        match std::mem::replace(&mut self.ended, Ended::Gone) {
            Ended::No => self.ended = Ended::No,
            Ended::By(error) => return Err(error),
            Ended::Larger | Ended::Gone => {
                return Err(Error::unsupported(
                    "a frame behind one that is larger than its video, or damaged",
                ));
            }
        }
        budget.hold(self.stream.needs())?;
        self.has_begun = true;
        let looked = match self.stream.look(packet, budget) {
            Ok(looked) => looked,
            Err(error) if is_of_waiting(&error) => return Err(error),
            Err(error) => return self.end(error, None),
        };
        if let Some(size) = looked.larger {
            // Those before it come first.
            self.context.end();
            self.collect(None)?;
            self.ready.push_back(Box::new(Larger { place, size }));
            self.ended = Ended::Larger;
            return Ok(());
        }
        self.decode(looked, place).or_else(|error| self.end(error, Some(place)))
    }

    fn passes_over(&mut self, packet: &[u8]) -> bool {
        matches!(self.ended, Ended::No) && self.stream.is_spare(packet)
    }

    fn finish(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.ended, Ended::Gone) {
            Ended::By(error) => return Err(error),
            Ended::Larger | Ended::Gone => return Ok(()),
            Ended::No => {}
        }
        self.context.end();
        self.collect(None)
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        self.ready.pop_front()
    }

    fn held(&self) -> usize {
        if self.has_begun { self.stream.needs() } else { 0 }
    }
}

impl Picture for Decoded {
    fn place(&self) -> usize {
        self.place
    }

    fn size(&self) -> [usize; 2] {
        self.frame.size()
    }

    fn write_rgb(&self, out: &mut [u8], _watch: &Watch<'_>) -> Result<()> {
        yuv::to_rgb(self, self.layout(), self.color, out);
        Ok(())
    }

    fn write_rows(&self, take: &mut TakeRow<'_>) -> Result<bool> {
        yuv::to_rows(self, self.layout(), self.color, take);
        Ok(true)
    }
}

impl Decoded {
    fn layout(&self) -> Layout {
        let [width, height] = self.frame.size();
        let Stored { depth, halved } = self.stored;
        Layout { width, height, depth, halved, spread: true }
    }
}

impl Planes for Decoded {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let samples = self.frame.samples(plane, y);
        if self.stored.depth == 8 {
            row.iter_mut().zip(samples).for_each(|(to, from)| *to = u16::from(*from));
        } else {
            row.iter_mut().zip(samples.as_chunks().0).for_each(|(to, from)| *to = u16::from_le_bytes(*from));
        }
    }
}
