//! AV1 by the crate `re_rav1d`: dav1d in Rust, with a safe interface. Inside it are functions that C could call, so a panic there
//! ends the process: unlike those of other decoders it cannot be caught.

use re_rav1d::dav1d::{
    Decoder as Inner, Error as Cause, PixelLayout, PlanarImageComponent as Plane, Settings, pixel,
};

use super::color::{self, Color, Layout, Matrix, Planes};
use super::decoder::{self, VideoDecoder, damaged};
use crate::error::{Error, Result};
use crate::limits;

pub(super) struct Decoder {
    inner: Inner,
    /// What the container holds for it, until the first packet has come.
    parameters: Vec<u8>,
    ready: std::collections::VecDeque<Picture>,
}

struct Picture(re_rav1d::dav1d::Picture);

/// The crate's error in our words.
fn error(error: Cause) -> Error {
    match error {
        Cause::UnsupportedBitstream => Error::unsupported("AV1 of a kind that is not decoded"),
        other => damaged(other),
    }
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
        let mut settings = Settings::new();
        settings.set_n_threads(1);
        settings.set_max_frame_delay(1);
        settings.set_frame_size_limit(limits::MAX_VIDEO_PIXELS as u32);
        let inner = Inner::with_settings(&settings).map_err(error)?;
        Ok(Self { inner, parameters: parameters(config).to_vec(), ready: std::collections::VecDeque::new() })
    }

    /// Takes all pictures that are there.
    fn collect(&mut self) -> Result<()> {
        loop {
            match self.inner.get_picture() {
                Ok(picture) => self.ready.push_back(Picture(picture)),
                Err(Cause::Again) => return Ok(()),
                Err(cause) => return Err(error(cause)),
            }
        }
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.parameters);
        bytes.extend_from_slice(packet);
        let mut sent = self.inner.send_data(bytes, None, Some(place as i64), None);
        // What it does not take at once it takes when its pictures are out; it takes some each time.
        for _ in 0..=packet.len() {
            self.collect()?;
            match sent {
                Ok(()) => return Ok(()),
                Err(Cause::Again) => sent = self.inner.send_pending_data(),
                Err(cause) => return Err(error(cause)),
            }
        }
        Err(damaged("the decoder does not take a packet"))
    }

    fn finish(&mut self) -> Result<()> {
        self.collect()
    }

    fn next(&mut self) -> Option<Box<dyn decoder::Picture>> {
        self.ready.pop_front().map(|picture| Box::new(picture) as Box<dyn decoder::Picture>)
    }
}

impl decoder::Picture for Picture {
    fn place(&self) -> usize {
        self.0.timestamp().and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX)
    }

    fn size(&self) -> [usize; 2] {
        [self.0.width() as usize, self.0.height() as usize]
    }

    fn write_rgb(&self, out: &mut [u8]) -> Result<()> {
        let [width, height] = decoder::Picture::size(self);
        let halved = match self.0.pixel_layout() {
            PixelLayout::I400 => None,
            PixelLayout::I420 => Some([1, 1]),
            PixelLayout::I422 => Some([1, 0]),
            PixelLayout::I444 => Some([0, 0]),
        };
        let layout = Layout { width, height, depth: self.0.bit_depth() as u32, halved };
        let matrix = match self.0.matrix_coefficients() {
            pixel::MatrixCoefficients::Identity => {
                return Err(Error::unsupported("AV1 of red, green and blue"));
            }
            pixel::MatrixCoefficients::BT709 => Matrix::numbered(1),
            pixel::MatrixCoefficients::BT470M => Matrix::numbered(4),
            pixel::MatrixCoefficients::ST240M => Matrix::numbered(7),
            pixel::MatrixCoefficients::BT2020NonConstantLuminance
            | pixel::MatrixCoefficients::BT2020ConstantLuminance => Matrix::numbered(9),
            _ => Matrix::BT601,
        };
        let full_range = self.0.color_range() == pixel::YUVRange::Full;
        let sources = Sources { planes: [Plane::Y, Plane::U, Plane::V], picture: &self.0 };
        color::to_rgb(&sources, layout, Color { matrix, full_range }, out);
        Ok(())
    }
}

struct Sources<'a> {
    planes: [Plane; 3],
    picture: &'a re_rav1d::dav1d::Picture,
}

impl Planes for Sources<'_> {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let Some(&plane) = self.planes.get(plane) else { return };
        let (samples, stride) = (self.picture.plane(plane), self.picture.stride(plane) as usize);
        let samples = samples.get(y * stride..).unwrap_or_default();
        if self.picture.bit_depth() == 8 {
            row.iter_mut().zip(samples).for_each(|(to, from)| *to = u16::from(*from));
        } else {
            row.iter_mut().zip(samples.as_chunks().0).for_each(|(to, from)| *to = u16::from_ne_bytes(*from));
        }
    }
}
