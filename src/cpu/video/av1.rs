//! AV1 as a video's codec.

use super::decoder::{self, VideoDecoder};
use crate::cpu::av1::{self, IDENTITY};
use crate::cpu::yuv::{self, Color, Matrix};
use crate::error::{Error, Result};
use crate::limits;

pub(super) struct Decoder {
    inner: av1::Decoder,
    ready: std::collections::VecDeque<av1::Picture>,
}

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        let inner = av1::Decoder::new(limits::MAX_VIDEO_PIXELS)?;
        Ok(Self { inner, ready: std::collections::VecDeque::new() })
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize) -> Result<()> {
        let Self { inner, ready } = self;
        inner.send(packet, place, &mut |picture| ready.push_back(picture))
    }

    fn finish(&mut self) -> Result<()> {
        let Self { inner, ready } = self;
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
