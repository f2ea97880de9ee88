//! Runs of a BMP: pixels of one colour, or of two that take turns. It must not know what numbers of colours mean.

use super::header::File;
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};
use crate::memory::zeroed;

/// Bytes behind a first byte of 0.
const END_OF_ROW: u8 = 0;
const END: u8 = 1;
const MOVE: u8 = 2;

/// Numbers of colours, a byte for each pixel, or its three samples where there is no palette; the uppermost row first.
/// Pixels of which no run tells are 0, and those outside of the picture are left out.
pub(super) fn decode(file: &File<'_>) -> Result<Vec<u8>> {
    let pixels = zeroed(file.width * file.height * file.bits.div_ceil(8))?;
    let mut canvas = Canvas { pixels, file, x: 0, y: 0 };
    canvas.fill().map_err(|_| Error::invalid("truncated: the input ends before the image does"))?;
    Ok(canvas.pixels)
}

struct Canvas<'a> {
    pixels: Vec<u8>,
    file: &'a File<'a>,
    /// Where the next pixel is, and its row in the order of the file.
    x: usize,
    y: usize,
}

impl Canvas<'_> {
    fn fill(&mut self) -> Result<()> {
        let (mut rest, bits) = (Bytes(self.file.pixels), self.file.bits);
        while self.y < self.file.height {
            // What ends the last row may be missing.
            if rest.is_empty() && self.y + 1 == self.file.height && self.x >= self.file.width {
                break;
            }
            let (first, second) = match rest.u8()? {
                0 => (0, rest.u8()?),
                count if bits == 24 => {
                    let color = rest.take(3)?;
                    self.write(usize::from(count), |_| color);
                    continue;
                }
                count => (usize::from(count), rest.u8()?),
            };
            match (first, second) {
                (0, END_OF_ROW) => (self.x, self.y) = (0, self.y + 1),
                (0, END) => break,
                (0, MOVE) => {
                    self.x += usize::from(rest.u8()?);
                    self.y += usize::from(rest.u8()?);
                }
                (0, count) => {
                    let length = (usize::from(count) * bits).div_ceil(8);
                    let stored = rest.take(length)?;
                    // What fills it up to 2 bytes may be missing at the end.
                    rest.0 = rest.0.get(length % 2..).unwrap_or_default();
                    match bits {
                        4 => {
                            let halves: Vec<u8> =
                                stored.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
                            self.write(usize::from(count), |at| &halves[at..=at]);
                        }
                        24 => self.write(usize::from(count), |at| &stored[3 * at..3 * at + 3]),
                        _ => self.write(usize::from(count), |at| &stored[at..=at]),
                    }
                }
                (count, color) if bits == 4 => {
                    let two = [color >> 4, color & 15];
                    self.write(count, |at| &two[at % 2..=at % 2]);
                }
                (count, color) => self.write(count, |_| std::slice::from_ref(&color)),
            }
        }
        Ok(())
    }

    /// Writes so many pixels, as far as they are in the row.
    fn write<'p>(&mut self, count: usize, pixel: impl Fn(usize) -> &'p [u8]) {
        let File { width, height, is_top_down, bits, .. } = *self.file;
        let row = if is_top_down { self.y } else { height - 1 - self.y };
        let size = bits.div_ceil(8);
        let inside = width.saturating_sub(self.x).min(count);
        let start = (row * width + self.x.min(width)) * size;
        let to = self.pixels[start..start + inside * size].chunks_exact_mut(size);
        to.enumerate().for_each(|(at, to)| to.copy_from_slice(pixel(at)));
        self.x += count;
    }
}
