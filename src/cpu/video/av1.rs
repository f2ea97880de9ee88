//! AV1 as a video's codec.

use super::decoder::{self, VideoDecoder};
use crate::cpu::av1::{self, IDENTITY};
use crate::cpu::yuv::{self, Color, Matrix};
use crate::error::{Error, Result};
use crate::limits;

pub(super) struct Decoder {
    inner: av1::Decoder,
    /// What the container holds for it, until the first packet has come.
    parameters: Vec<u8>,
    ready: std::collections::VecDeque<av1::Picture>,
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

impl Decoder {
    /// A decoder for packets of a container whose `av1C` is `config`.
    pub(super) fn new(config: &[u8]) -> Result<Self> {
        let inner = av1::Decoder::new(limits::MAX_VIDEO_PIXELS)?;
        Ok(Self { inner, parameters: parameters(config).to_vec(), ready: std::collections::VecDeque::new() })
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize) -> Result<()> {
        let Self { inner, parameters, ready } = self;
        let mut bytes = std::mem::take(parameters);
        bytes.extend_from_slice(packet);
        inner.send(bytes, place, &mut |picture| ready.push_back(picture))
    }

    fn finish(&mut self) -> Result<()> {
        let Self { inner, ready, .. } = self;
        inner.collect(&mut |picture| ready.push_back(picture))
    }

    fn next(&mut self) -> Option<Box<dyn decoder::Picture>> {
        self.ready.pop_front().map(|picture| Box::new(picture) as Box<dyn decoder::Picture>)
    }
}

impl decoder::Picture for av1::Picture {
    fn place(&self) -> usize {
        av1::Picture::place(self)
    }

    fn size(&self) -> [usize; 2] {
        let layout = self.layout();
        [layout.width, layout.height]
    }

    fn write_rgb(&self, out: &mut [u8]) -> Result<()> {
        let matrix = match self.matrix() {
            IDENTITY => return Err(Error::unsupported("AV1 of red, green and blue")),
            number => Matrix::numbered(number),
        };
        yuv::to_rgb(self, self.layout(), Color { matrix, full_range: self.full_range() }, out);
        Ok(())
    }
}
