//! A picture of H.265 for the engines of a device: its tiles, each a frame of its own. It must not know devices.

use super::canvas::Grid;
use super::coding::Coding;
use super::items::{Item, Items};
use crate::cpu::video::h265_parameters::{Parameters, colors, is_usual};
use crate::cpu::yuv::{Color, Factors, Layout, Matrix};
use crate::error::{Error, Result};

/// A picture in tiles of one size, row by row, whose chroma is halved along both sides. One that is no grid is a tile.
pub struct Tiles<'a> {
    /// Columns and rows of pixels of all of it.
    pub size: [usize; 2],
    /// Columns and rows of pixels of a tile: the last of a row or column may reach beyond the picture.
    pub tile: [usize; 2],
    /// Tiles of a row.
    pub columns: usize,
    /// How many tiles there are.
    pub count: usize,
    /// Bits of a sample, 8 or more.
    pub depth: u32,
    /// How samples become colours.
    pub factors: Factors,
    item: Item<'a>,
    parameters: &'a [u8],
}

impl<'a> Tiles<'a> {
    /// The tiles of an HEIC; `None` of a kind that only the host decodes, which also says what is wrong with a file.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let Items { color: item, alpha: None, .. } = Items::read(bytes, Coding::H265).ok()? else {
            return None;
        };
        let said = &item.properties;
        if said.window.is_some() || !said.halved_twice || said.size.iter().any(|side| side % 2 != 0) {
            return None;
        }
        let whole = said.size;
        let (grid, first) = match item.parts() {
            0 => (Grid { rows: 1, columns: 1, size: whole }, None),
            1 if !item.is_grid => (Grid { rows: 1, columns: 1, size: whole }, Some(item.part(0).ok()?)),
            _ => (Grid::read(&item.stream().ok()?).ok()?, Some(item.part(0).ok()?)),
        };
        let count = grid.rows * grid.columns;
        let properties = first.as_ref().map_or(&item.properties, |first| &first.properties);
        let (tile, parameters) = (properties.size, properties.config);
        let sps = Parameters::read(parameters, tile).ok()?.sps;
        let shown = (sps.output_size().0 as usize, sps.output_size().1 as usize);
        let depth = u32::from(sps.bit_depth_luma);
        let (matrix, full_range) = said.colors.or(properties.colors).unwrap_or_else(|| colors(&sps));
        let layout = Layout { width: tile[0], height: tile[1], depth, halved: Some([1, 1]), spread: false };
        let is_known = matches!(matrix, 1 | 2 | 4..=7 | 9)
            && is_usual(&sps)
            && shown == (tile[0], tile[1])
            && properties.depth == depth as usize
            // The host makes the largest sample 255 there.
            && !(full_range && depth > 8);
        let is_whole = grid.size == whole && (item.parts() == 0 || item.parts() == count);
        if !is_known || !is_whole || grid.must_fit(layout).is_err() {
            return None;
        }
        let factors = Factors::new(Color { matrix: Matrix::numbered(matrix), full_range });
        Some(Self { size: whole, tile, columns: grid.columns, count, depth, factors, parameters, item })
    }

    /// Replaces what `into` holds by tile `place` as an engine takes it, the first behind the parameters of all.
    ///
    /// # Errors
    /// A tile that is not there, is damaged, or has other parameters than the first.
    pub fn frame(&self, place: usize, into: &mut Vec<u8>) -> Result<()> {
        if place >= self.count {
            return Err(Error::internal(format!("tile {place} of {}", self.count)));
        }
        let part = if self.item.parts() == 0 { None } else { Some(self.item.part(place)?) };
        let item = part.as_ref().unwrap_or(&self.item);
        let said = &item.properties;
        if said.config != self.parameters || said.size != self.tile {
            return Err(Error::unsupported("a grid of pictures that differ"));
        }
        Parameters::read(said.config, said.size)?.frame(&item.stream()?, place == 0, into)
    }
}
