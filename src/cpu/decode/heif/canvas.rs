//! Pictures side by side as one: their planes are put together before colours are converted, so that no edge is seen
//! where they meet. It must not know how pictures are coded.

use crate::cpu::bytes::Bytes;
use crate::cpu::yuv::{Layout, Planes};
use crate::error::{Error, Result};
use crate::memory::zeroed;

use super::super::check_size;

/// How many pictures there are, and what is seen of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Columns and rows of pixels.
    pub(super) size: [usize; 2],
}

impl Grid {
    /// The one that `bytes`, those of an item, tell of.
    ///
    /// # Errors
    /// Bytes that end too early; a version that is not known.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let mut bytes = Bytes(bytes);
        match bytes.u8()? {
            0 => {}
            other => return Err(Error::unsupported(format!("a grid of version {other}, expected 0"))),
        }
        let is_long = bytes.u8()? & 1 != 0;
        let [rows, columns] = [bytes.u8()?, bytes.u8()?].map(|count| usize::from(count) + 1);
        let mut side = || if is_long { bytes.u32() } else { bytes.u16().map(u32::from) };
        let size = [side()? as usize, side()? as usize];
        Ok(Self { rows, columns, size })
    }

    /// Fails unless pictures that each have `tile` as layout make it.
    ///
    /// # Errors
    /// Pictures that do not cover the grid's size or reach beyond it by a whole row or column; sides with which chroma
    /// of two pictures would share a sample.
    pub(super) fn must_fit(&self, tile: Layout) -> Result<()> {
        let Grid { rows, columns, size: [width, height] } = *self;
        let covered = [columns.saturating_mul(tile.width), rows.saturating_mul(tile.height)];
        check_size(covered[0] as u64, covered[1] as u64)?;
        let covers = |covered: usize, side: usize, tile: usize| covered >= side && covered - side < tile;
        if !covers(covered[0], width, tile.width) || !covers(covered[1], height, tile.height) {
            return Err(Error::invalid(format!(
                "damaged: a grid of {columns} x {rows} pictures of {} x {} pixels each for {width} x {height} pixels",
                tile.width, tile.height
            )));
        }
        let [across, down] = tile.halved.unwrap_or_default();
        let is_cut = |count: usize, side: usize, halved: u32| count > 1 && !side.is_multiple_of(1 << halved);
        if is_cut(columns, tile.width, across) || is_cut(rows, tile.height, down) {
            return Err(Error::unsupported(format!(
                "a grid of pictures of {} x {} pixels, expected even sides where chroma is halved",
                tile.width, tile.height
            )));
        }
        Ok(())
    }
}

/// Planes of a whole picture.
pub(super) struct Canvas {
    layout: Layout,
    /// Columns and rows of each plane.
    sides: [[usize; 2]; 3],
    planes: [Vec<u16>; 3],
}

impl Canvas {
    /// An empty one for pictures that each have `tile` as layout.
    ///
    /// # Errors
    /// Those of [`Grid::must_fit`].
    pub(super) fn new(grid: Grid, tile: Layout) -> Result<Self> {
        grid.must_fit(tile)?;
        let [width, height] = grid.size;
        let chroma = match tile.halved {
            Some([across, down]) => [width.div_ceil(1 << across), height.div_ceil(1 << down)],
            None => [0, 0],
        };
        let sides = [[width, height], chroma, chroma];
        let plane = |[width, height]: [usize; 2]| zeroed(width * height);
        let planes = [plane(sides[0])?, plane(sides[1])?, plane(sides[2])?];
        Ok(Self { layout: Layout { width, height, ..tile }, sides, planes })
    }

    /// How its planes lie.
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// Puts a picture in row `row` and column `column` of the grid.
    pub(super) fn put(&mut self, picture: &dyn Planes, tile: Layout, [row, column]: [usize; 2]) {
        let [across, down] = tile.halved.unwrap_or_default();
        let mut samples = vec![0; tile.width];
        for (plane, ([width, height], to)) in self.sides.into_iter().zip(&mut self.planes).enumerate() {
            let [across, down] = if plane == 0 { [0, 0] } else { [across, down] };
            let (columns, rows) = (tile.width.div_ceil(1 << across), tile.height.div_ceil(1 << down));
            let (left, top) = (column * columns, row * rows);
            let seen = columns.min(width.saturating_sub(left));
            for y in 0..rows.min(height.saturating_sub(top)) {
                let Some(samples) = samples.get_mut(..columns) else { return };
                picture.read(plane, y, samples);
                let start = (top + y) * width + left;
                if let (Some(to), Some(from)) = (to.get_mut(start..start + seen), samples.get(..seen)) {
                    to.copy_from_slice(from);
                }
            }
        }
    }
}

impl Planes for Canvas {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let (Some(samples), Some([width, _])) = (self.planes.get(plane), self.sides.get(plane)) else {
            return;
        };
        let samples = samples.get(y * width..).unwrap_or_default();
        row.iter_mut().zip(samples).for_each(|(to, from)| *to = *from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each sample is the number of its plane, tens are the tile's.
    struct Numbered(u16);

    impl Planes for Numbered {
        fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
            row.fill(self.0 + 10 * plane as u16 + y as u16);
        }
    }

    fn tile(width: usize, height: usize, halved: Option<[u32; 2]>) -> Layout {
        Layout { width, height, depth: 8, halved, spread: false }
    }

    #[test]
    fn pictures_lie_side_by_side_and_are_cut_at_the_edge() {
        let grid = Grid { rows: 2, columns: 2, size: [6, 3] };
        let tile = tile(4, 2, Some([1, 1]));
        let mut canvas = Canvas::new(grid, tile).unwrap();
        for place in 0..4 {
            canvas.put(&Numbered(100 * (place as u16 + 1)), tile, [place / 2, place % 2]);
        }
        let row = |plane, y, length| {
            let mut row = vec![9; length];
            canvas.read(plane, y, &mut row);
            row
        };
        assert_eq!(row(0, 1, 6), [101, 101, 101, 101, 201, 201]);
        assert_eq!(row(0, 2, 6), [300, 300, 300, 300, 400, 400]);
        assert_eq!(row(1, 0, 3), [110, 110, 210]);
        assert_eq!(row(2, 1, 3), [320, 320, 420]);
    }

    #[test]
    fn grids_are_read_and_sides_that_make_no_sense_are_errors() {
        let grid = Grid { rows: 3, columns: 2, size: [258, 4] };
        assert_eq!(Grid::read(&[0, 0, 2, 1, 1, 2, 0, 4]).unwrap(), grid);
        assert_eq!(Grid::read(&[0, 1, 2, 1, 0, 0, 1, 2, 0, 0, 0, 4]).unwrap(), grid);
        assert!(Grid::read(&[0, 1, 2, 1, 0, 0, 1, 2]).is_err());
        assert!(Grid::read(&[1, 0, 2, 1, 1, 2, 0, 4]).unwrap_err().to_string().contains("version 1"));
        let refused = |size, tile| {
            Canvas::new(Grid { rows: 2, columns: 2, size }, tile).err().map(|error| error.to_string())
        };
        assert_eq!(refused([8, 4], tile(4, 2, Some([1, 1]))), None);
        assert!(
            refused([9, 4], tile(4, 2, None))
                .unwrap()
                .contains("2 x 2 pictures of 4 x 2 pixels each for 9 x 4")
        );
        assert!(refused([4, 4], tile(4, 2, None)).unwrap().contains("damaged: a grid"));
        assert!(refused([5, 3], tile(3, 2, Some([1, 1]))).unwrap().contains("expected even sides"));
        assert!(
            refused([1 << 20, 1 << 20], tile(1 << 20, 1 << 20, None))
                .unwrap()
                .contains("larger than the limit")
        );
    }
}
