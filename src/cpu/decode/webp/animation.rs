//! The frames of a moving WebP, laid one over the other as libwebp's `WebPAnimDecoder` does it, to the bit. That one
//! never ends on a damaged frame.

use super::super::frames::{CHANNELS, Take};
use super::{chunks, features, pixels};
use crate::error::{Error, Result};
use crate::memory::zeroed;

/// Bytes of a frame's place, size, time and flags before its own chunks.
const HEADER: usize = 16;

/// Flags: what is under the frame does not show through it; its place is cleared before the next frame.
const REPLACES: u8 = 2;
const IS_CLEARED: u8 = 1;

/// A frame in the picture.
struct Frame<'a> {
    place: Place,
    milliseconds: u32,
    flags: u8,
    image: &'a [u8],
}

/// Where a frame lies.
#[derive(Clone, Copy)]
struct Place {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

impl Place {
    fn holds(&self, x: usize, y: usize) -> bool {
        (self.x..self.x + self.width).contains(&x) && (self.y..self.y + self.height).contains(&y)
    }
}

impl<'a> Frame<'a> {
    /// Reads the headers of a frame of a picture of such a size.
    fn new(body: &'a [u8], (width, height): (usize, usize)) -> Result<Self> {
        let (header, image) = body.split_first_chunk::<HEADER>().ok_or_else(no_frame)?;
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]);
        let [x, y] = [0, 3].map(|at| 2 * number(at) as usize);
        let decoded = features(image)?;
        let place = Place { x, y, width: decoded.width() as usize, height: decoded.height() as usize };
        if [place.width, place.height] != [6, 9].map(|at| number(at) as usize + 1)
            || x + place.width > width
            || y + place.height > height
        {
            return Err(Error::invalid(format!(
                "damaged: a frame of {} x {} pixels at ({x}, {y}) in a picture of {width} x {height}",
                place.width, place.height
            )));
        }
        Ok(Self { place, milliseconds: number(12), flags: header[15], image })
    }

    fn has_alpha(&self) -> Result<bool> {
        Ok(features(self.image)?.has_alpha())
    }
}

fn no_frame() -> Error {
    Error::invalid("truncated: the first frame is not complete")
}

fn bodies(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    chunks(bytes).filter(|(name, _)| *name == b"ANMF").map(|(_, body)| body)
}

/// Frames that are whole; `None` of a file that does not move.
pub(in super::super) fn frame_count(bytes: &[u8]) -> Option<usize> {
    features(bytes).is_ok_and(|features| features.has_animation()).then(|| bodies(bytes).count())
}

/// The picture when the first frame lies in it, RGB or RGBA: 0 and transparent around the frame.
pub(super) fn first_frame(bytes: &[u8], size: (usize, usize), channels: usize) -> Result<Vec<u8>> {
    let mut canvas = Canvas::new(size)?;
    canvas.lay(&Frame::new(bodies(bytes).next().ok_or_else(no_frame)?, size)?, bytes)?;
    if channels < CHANNELS {
        canvas.pixels =
            canvas.pixels.chunks_exact(CHANNELS).flat_map(|pixel| &pixel[..channels]).copied().collect();
    }
    Ok(canvas.pixels)
}

/// All pictures, one after the other.
pub(in super::super) fn animation(bytes: &[u8], size: (usize, usize), take: &mut Take<'_>) -> Result<()> {
    let mut canvas = Canvas::new(size)?;
    for body in bodies(bytes) {
        let frame = Frame::new(body, size)?;
        canvas.lay(&frame, bytes)?;
        take(&canvas.pixels, frame.milliseconds as f32)?;
    }
    Ok(())
}

/// The picture as it is shown.
struct Canvas {
    pixels: Vec<u8>,
    size: (usize, usize),
    /// The frame before: whether nothing of those before it is left, and the place that is cleared behind it.
    before: Option<(bool, Option<Place>)>,
}

impl Canvas {
    fn new(size: (usize, usize)) -> Result<Self> {
        Ok(Self { pixels: zeroed(size.0 * size.1 * CHANNELS)?, size, before: None })
    }

    /// Lays a frame of the file `bytes` over what is there.
    fn lay(&mut self, frame: &Frame<'_>, bytes: &[u8]) -> Result<()> {
        let is_whole = |place: &Place| (place.width, place.height) == self.size;
        let covers = is_whole(&frame.place) && (frame.flags & REPLACES != 0 || !frame.has_alpha()?);
        let (begins, cleared) = match self.before {
            None => (true, None),
            Some((began, cleared)) => {
                (covers || cleared.is_some_and(|place| began || is_whole(&place)), cleared)
            }
        };
        match cleared {
            _ if begins => self.pixels.fill(0),
            Some(place) => self.rows(place).for_each(|row| row.fill(0)),
            None => {}
        }
        let decoded = pixels(frame.image, bytes)?;
        let stored = if decoded.is_alpha() { CHANNELS } else { CHANNELS - 1 };
        let replaces = begins || frame.flags & REPLACES != 0;
        let Place { x, y, width, .. } = frame.place;
        let rows = self.rows(frame.place).zip(decoded.chunks_exact(width * stored));
        for (down, (row, from)) in rows.enumerate() {
            for (across, (to, from)) in
                row.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(from.chunks_exact(stored)).enumerate()
            {
                let [r, g, b, ..] = *from else { continue };
                let over = [r, g, b, from.get(3).copied().unwrap_or(u8::MAX)];
                let is_clear = || cleared.is_some_and(|place| place.holds(x + across, y + down));
                *to = if replaces || over[3] == u8::MAX || is_clear() { over } else { blended(over, *to) };
            }
        }
        self.before = Some((begins, (frame.flags & IS_CLEARED != 0).then_some(frame.place)));
        Ok(())
    }

    /// The rows of a place, which lies in the picture.
    fn rows(&mut self, place: Place) -> impl Iterator<Item = &mut [u8]> {
        let columns = place.x * CHANNELS..(place.x + place.width) * CHANNELS;
        let rows = self.pixels.chunks_exact_mut(self.size.0 * CHANNELS).skip(place.y).take(place.height);
        rows.map(move |row| &mut row[columns.clone()])
    }
}

/// A pixel over another, by libwebp's whole numbers.
fn blended(over: [u8; CHANNELS], under: [u8; CHANNELS]) -> [u8; CHANNELS] {
    let alpha = u32::from(over[3]);
    if alpha == 0 {
        return under;
    }
    let rest = (u32::from(under[3]) * (256 - alpha)) >> 8;
    let sum = alpha + rest;
    let scale = (1 << 24) / sum;
    let channel = |i: usize| {
        let unscaled = u32::from(over[i]) * alpha + u32::from(under[i]) * rest;
        ((u64::from(unscaled) * u64::from(scale)) >> 24) as u8
    };
    [channel(0), channel(1), channel(2), sum as u8]
}
