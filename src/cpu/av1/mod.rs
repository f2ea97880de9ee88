//! AV1 by the crate `re_rav1d`: dav1d in Rust, with a safe interface. Inside it are functions that C could call, from
//! which a panic cannot be caught: it works in a thread that is left when it panics. It must not know containers.

mod apart;
mod sequence;

use re_rav1d::dav1d::{
    Decoder as Inner, Error as Cause, PixelLayout, PlanarImageComponent as Plane, Settings, pixel,
};

use super::yuv::{Layout, Planes};
use crate::error::{Error, Result};
use crate::faults;
use apart::Apart;

pub(super) use sequence::{Part, Sequence, is_spare, parts, still_sequence};

/// Matrices by their numbers in ISO/IEC 23091-2: none, as the planes are green, blue and red; and not said.
pub(super) const IDENTITY: u8 = 0;
/// See [`IDENTITY`].
pub(super) const UNSPECIFIED: u8 = 2;

/// The number of a matrix that follows from the primaries, which are its own number here.
const DERIVED: u32 = 12;

/// The number of a matrix; of one that follows from the primaries that of theirs, where it has a number. Primaries that
/// are not said are those of BT.709, as in libavif.
pub(super) fn matrix_of(matrix: u32, primaries: u32) -> u8 {
    match (matrix, primaries) {
        (DERIVED, 1 | 2) => 1,
        (DERIVED, 4) => 6,
        (DERIVED, 6 | 7) => 7,
        (DERIVED, 9) => 9,
        (matrix, _) => u8::try_from(matrix).unwrap_or(u8::MAX),
    }
}

/// A stream's decoder. It begins with a key frame.
pub(super) struct Decoder(Apart<Inner>);

/// A decoded picture.
pub(super) struct Picture(re_rav1d::dav1d::Picture);

/// The crate's error in our words.
fn error(error: Cause) -> Error {
    match error {
        Cause::UnsupportedBitstream => Error::unsupported("AV1 of a kind that is not decoded"),
        Cause::UnknownError(_) => damaged("it is larger than its video, or makes no sense"),
        other => damaged(other),
    }
}

fn damaged(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("a frame cannot be decoded: {what}"))
}

impl Decoder {
    /// One of frames of at most so many `pixels`; larger ones are an error before memory is taken for them.
    pub(super) fn new(pixels: usize) -> Result<Self> {
        let pixels = u32::try_from(pixels).unwrap_or(u32::MAX).max(1);
        let make = move || {
            let mut settings = Settings::new();
            settings.set_n_threads(1);
            settings.set_max_frame_delay(1);
            // 0 would be no limit.
            settings.set_frame_size_limit(pixels);
            Inner::with_settings(&settings).map_err(error)
        };
        Apart::new(make).map(Self)
    }

    /// Takes the bytes of one frame and hands all pictures that are there to `take`; `place` comes back with this
    /// frame's.
    ///
    /// # Errors
    /// Bytes that are damaged, or a way of coding that the crate does not know.
    pub(super) fn send(
        &mut self,
        packet: Vec<u8>,
        place: usize,
        take: &mut dyn FnMut(Picture),
    ) -> Result<()> {
        let (pictures, sent) = self.0.call(move |inner| {
            let mut pictures = Vec::new();
            let sent = send(inner, packet, place, &mut pictures);
            (pictures, sent)
        })?;
        pictures.into_iter().for_each(take);
        sent
    }

    /// Hands all pictures that are there to `take`.
    ///
    /// # Errors
    /// Those of [`Decoder::send`].
    pub(super) fn collect(&mut self, take: &mut dyn FnMut(Picture)) -> Result<()> {
        let (pictures, collected) = self.0.call(|inner| {
            let mut pictures = Vec::new();
            let collected = collect(inner, &mut pictures);
            (pictures, collected)
        })?;
        pictures.into_iter().for_each(take);
        collected
    }
}

fn send(inner: &mut Inner, packet: Vec<u8>, place: usize, pictures: &mut Vec<Picture>) -> Result<()> {
    faults::reach_as_from_c();
    let most = packet.len();
    let mut sent = inner.send_data(packet, None, Some(place as i64), None);
    // What it does not take at once it takes when its pictures are out; it takes some each time.
    for _ in 0..=most {
        collect(inner, pictures)?;
        match sent {
            Ok(()) => return Ok(()),
            Err(Cause::Again) => sent = inner.send_pending_data(),
            Err(cause) => return Err(error(cause)),
        }
    }
    Err(damaged("the decoder does not take a packet"))
}

fn collect(inner: &mut Inner, pictures: &mut Vec<Picture>) -> Result<()> {
    loop {
        match inner.get_picture() {
            Ok(picture) => pictures.push(Picture(picture)),
            Err(Cause::Again) => return Ok(()),
            Err(cause) => return Err(error(cause)),
        }
    }
}

impl Picture {
    /// What was given with its packet.
    pub(super) fn place(&self) -> usize {
        self.0.timestamp().and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX)
    }

    /// How its planes lie.
    pub(super) fn layout(&self) -> Layout {
        let halved = match self.0.pixel_layout() {
            PixelLayout::I400 => None,
            PixelLayout::I420 => Some([1, 1]),
            PixelLayout::I422 => Some([1, 0]),
            PixelLayout::I444 => Some([0, 0]),
        };
        let (width, height) = (self.0.width() as usize, self.0.height() as usize);
        Layout { width, height, depth: self.0.bit_depth() as u32, halved, spread: true }
    }

    /// Whether samples take the whole range of their bits.
    pub(super) fn full_range(&self) -> bool {
        self.0.color_range() == pixel::YUVRange::Full
    }
}

impl Planes for Picture {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let planes = [Plane::Y, Plane::U, Plane::V];
        // One of gray has no planes of chroma, and asking for them is a panic.
        let there = if self.0.pixel_layout() == PixelLayout::I400 { &planes[..1] } else { &planes[..] };
        let Some(&plane) = there.get(plane) else { return };
        let (samples, stride) = (self.0.plane(plane), self.0.stride(plane) as usize);
        let samples = samples.get(y * stride..).unwrap_or_default();
        if self.0.bit_depth() == 8 {
            row.iter_mut().zip(samples).for_each(|(to, from)| *to = u16::from(*from));
        } else {
            row.iter_mut().zip(samples.as_chunks().0).for_each(|(to, from)| *to = u16::from_ne_bytes(*from));
        }
    }
}
