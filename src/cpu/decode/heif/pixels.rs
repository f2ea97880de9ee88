//! A decoded picture to 8 bits, rounded as libavif does; chroma between its samples is interpolated as that of videos.
//! It must not know boxes.

use super::super::Job;
use super::canvas::{Canvas, Grid};
use super::coding::Coding;
use super::items::Item;
use crate::cpu::av1::{self, IDENTITY};
use crate::cpu::video::h265_still;
use crate::cpu::yuv::{self, Color, Layout, Matrix, Planes};
use crate::error::{Context, Error, Result};
use crate::memory::zeroed;

/// A decoded picture and what its samples mean.
pub(super) struct Still {
    planes: Box<dyn Planes>,
    layout: Layout,
    /// The number of its matrix in ISO/IEC 23091-2.
    matrix: u8,
    full_range: bool,
}

impl Still {
    /// Decodes an item, whose size was checked, for as long as somebody waits.
    ///
    /// # Errors
    /// A stream that is damaged, has more frames than layers, or is not what the header says.
    pub(super) fn decode(item: &Item<'_>, job: &Job<'_>) -> Result<Self> {
        match item.parts() {
            0 => Self::coded(item),
            parts => Self::put_together(item, parts, job),
        }
    }

    fn put_together(item: &Item<'_>, parts: usize, job: &Job<'_>) -> Result<Self> {
        let size = item.properties.size;
        let grid = match item.is_grid {
            true => Grid::read(&item.stream()?)?,
            false => Grid { rows: 1, columns: 1, size },
        };
        same_size(grid.size, size)?;
        if grid.rows * grid.columns != parts {
            return Err(Error::invalid(format!(
                "damaged: a grid of {} x {} pictures, of which {parts} are there",
                grid.columns, grid.rows
            )));
        }
        let first = Self::coded(&item.part(0)?)?;
        let (layout, matrix, full_range) = (first.layout, first.matrix, first.full_range);
        let mut canvas = Canvas::new(grid, layout)?;
        canvas.put(&*first.planes, layout, [0, 0]);
        drop(first);
        for place in 1..parts {
            job.conditions.watch.check()?;
            let part = Self::coded(&item.part(place)?).context(|| format!("picture {place} of {parts}"))?;
            let told = |layout: Layout| (layout.width, layout.height, layout.depth, layout.halved);
            if told(part.layout) != told(layout) || (part.matrix, part.full_range) != (matrix, full_range) {
                return Err(Error::unsupported(
                    "a grid of pictures that differ in size, bits, chroma or colours",
                ));
            }
            canvas.put(&*part.planes, layout, [place / grid.columns, place % grid.columns]);
        }
        let (matrix, full_range) = item.properties.colors.unwrap_or((matrix, full_range));
        Ok(Self { layout: canvas.layout(), planes: Box::new(canvas), matrix, full_range })
    }

    fn coded(item: &Item<'_>) -> Result<Self> {
        let said = &item.properties;
        let still = match item.coding {
            Coding::Av1 => Self::av1(item)?,
            Coding::H265 => {
                let still = h265_still::decode(said.config, &item.stream()?, said.size)?;
                let (matrix, full_range) = still.colors;
                let layout = Layout { spread: false, ..still.layout };
                Self { planes: still.planes, layout, matrix, full_range }
            }
        };
        let layout = still.layout;
        same_size([layout.width, layout.height], said.size)?;
        let gray = layout.halved.is_none();
        if (layout.depth as usize, gray) != (said.depth, said.gray) {
            return Err(Error::invalid(format!(
                "damaged: the picture has {} bits and is {}gray, the header says {} bits and {}gray",
                layout.depth,
                if gray { "" } else { "not " },
                said.depth,
                if said.gray { "" } else { "not " }
            )));
        }
        let (matrix, full_range) = said.colors.unwrap_or((still.matrix, still.full_range));
        Ok(Self { matrix, full_range, ..still })
    }

    fn av1(item: &Item<'_>) -> Result<Self> {
        let said = &item.properties;
        let stream = item.stream()?;
        let sequence = av1::still_sequence(&stream, said.layers)?;
        if said.layers == 1 {
            same_size(sequence.size, said.size)?;
        }
        let [width, height] = said.size;
        let (mut shown, mut count) = (None, 0);
        let mut take = |picture| {
            // Each layer makes the picture better.
            if said.layer.is_none_or(|layer| layer == count) {
                shown = Some(picture);
            }
            count += 1;
        };
        av1::Decoder::new(width * height)?.send(stream, 0, &mut take)?;
        let picture = shown.ok_or_else(|| Error::invalid("damaged: no frame is shown"))?;
        let layout = Layout { spread: false, ..picture.layout() };
        let (matrix, full_range) = (sequence.matrix, sequence.full_range);
        Ok(Self { planes: Box::new(picture), layout, matrix, full_range })
    }

    /// Writes gray, or red, green and blue, in rows without gaps.
    ///
    /// # Errors
    /// Colours of which it is not known what they mean.
    pub(super) fn write(&self, out: &mut [u8]) -> Result<()> {
        match (self.matrix, self.layout.halved) {
            (_, None) => self.write_levels(0, out, 1),
            (IDENTITY, Some([0, 0])) => {
                // Planes of green, blue and red, and where these are in a pixel.
                for (plane, place) in [1, 2, 0].into_iter().enumerate() {
                    self.write_levels(plane, out.get_mut(place..).unwrap_or_default(), 3);
                }
            }
            (IDENTITY, Some(_)) => {
                return Err(Error::invalid("damaged: blue and red of half the size, which is for chroma"));
            }
            (1 | 2 | 4..=7 | 9, Some(_)) => self.write_rgb(out),
            (other, Some(_)) => {
                return Err(Error::unsupported(format!(
                    "colours of matrix {other}, expected one of 0, 1, 2, 4, 5, 6, 7, 9"
                )));
            }
        }
        Ok(())
    }

    /// Luma alone, a byte for each pixel.
    pub(super) fn levels(&self) -> Result<Vec<u8>> {
        let mut levels = zeroed(self.layout.width * self.layout.height)?;
        self.write_levels(0, &mut levels, 1);
        Ok(levels)
    }

    fn write_levels(&self, plane: usize, out: &mut [u8], step: usize) {
        yuv::to_levels(&*self.planes, plane, self.layout, self.full_range, out, step);
    }

    fn write_rgb(&self, out: &mut [u8]) {
        let color = Color { matrix: Matrix::numbered(self.matrix), full_range: self.full_range };
        if self.full_range && self.layout.depth > 8 {
            let layout = Layout { depth: Widened::BITS, ..self.layout };
            yuv::to_rgb(&Widened { planes: &*self.planes, depth: self.layout.depth }, layout, color, out);
        } else {
            yuv::to_rgb(&*self.planes, self.layout, color, out);
        }
    }
}

/// # Errors
/// When the sizes differ.
fn same_size([width, height]: [usize; 2], [said_width, said_height]: [usize; 2]) -> Result<()> {
    if (width, height) == (said_width, said_height) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "damaged: a frame of {width} x {height} pixels, the header says {said_width} x {said_height}"
    )))
}

/// Samples of more than 8 bits and of full range as if they were 8 bits with bits behind them: the largest becomes
/// exactly 255, which shifting makes nearly 256.
struct Widened<'a> {
    planes: &'a dyn Planes,
    depth: u32,
}

impl Widened<'_> {
    /// Of its samples: the most that are converted.
    const BITS: u32 = 15;
    /// Gray of chroma.
    const GRAY: i32 = 128 << 7;
    /// White.
    const FULL: i32 = 255 << 7;
}

impl Planes for Widened<'_> {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        self.planes.read(plane, y, row);
        let full = (1 << self.depth) - 1;
        // Both are distances from what stays where it is: black, or gray.
        let (from, to) = if plane == 0 { (0, 0) } else { (1 << (self.depth - 1), Self::GRAY) };
        for sample in row {
            let distance = (i32::from(*sample) - from) * Self::FULL;
            *sample = (to + (distance + full / 2).div_euclid(full)).clamp(0, Self::FULL + 127) as u16;
        }
    }
}
