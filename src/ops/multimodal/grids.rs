//! Grids of tiles that an image is cut into: which one a model takes for an image, and what the image is resized to for
//! it. Numbers are doubles in transformers' order of operations, so that choices are the same in every case.

mod idefics3;
mod llama4;
mod minicpm_v;

use crate::error::{Error, Result};
use crate::limits;

/// How a model chooses.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// LLaVA-NeXT's: of listed canvases that which keeps most of the image's pixels, then that which wastes least; the
    /// image keeps its ratio, with a border around it.
    Canvases(Vec<[u64; 2]>),
    /// InternVL's: the ratio of rows and columns that is next to the image's, of which the image fills the canvas; of
    /// equal ones that of more tiles, where the image has pixels for half of them.
    Ratio {
        /// Tiles of the smallest grid.
        least: u64,
        /// Tiles of the largest grid.
        most: u64,
    },
    /// Idefics 3's and SmolVLM's: as many tiles as an image of a given longest side has, with which it is filled.
    LongestSide(u64),
    /// Llama 4's: the canvas that changes the image's scale least; the image is at its top left.
    LeastScaling {
        /// Tiles of the largest grid.
        most: u64,
        /// Whether the image is enlarged to the largest canvas.
        fills: bool,
    },
    /// MiniCPM-V's: slices of about the area of a tile, whose sides are multiples of a unit; none for a small image.
    Slices {
        /// Slices of the largest grid.
        most: u64,
        /// What sides are multiples of.
        unit: u64,
    },
}

/// What is chosen for an image: heights and widths in pixels, rows and columns in tiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// What the image is resized to.
    pub(super) content: [u64; 2],
    /// What is cut into tiles.
    pub(super) canvas: [u64; 2],
    /// Rows and columns of tiles.
    pub(super) grid: [u64; 2],
}

impl Rule {
    /// For an image of that height and width, and tiles of `tile`.
    ///
    /// # Errors
    /// When those are more than [`limits::MAX_IMAGE_TILES`].
    pub(super) fn choose(&self, [height, width]: [u64; 2], tile: [u64; 2]) -> Result<Choice> {
        let found = self.chosen([height, width], tile);
        let [rows, columns] = found.grid;
        if rows.saturating_mul(columns) > limits::MAX_IMAGE_TILES as u64 {
            return Err(Error::invalid(format!(
                "an image of {height} x {width} pixels that becomes {rows} x {columns} tiles, expected at most {} tiles",
                limits::MAX_IMAGE_TILES
            )));
        }
        Ok(found)
    }

    fn chosen(&self, [height, width]: [u64; 2], tile: [u64; 2]) -> Choice {
        match self {
            Rule::Canvases(canvases) => {
                let canvas = most_of([height, width], canvases);
                let content = within([height, width], canvas);
                Choice { content, canvas, grid: [canvas[0] / tile[0], canvas[1] / tile[1]] }
            }
            Rule::Ratio { least, most } => {
                let grid = nearest_ratio([height, width], tile, *least, *most);
                let canvas = [grid[0] * tile[0], grid[1] * tile[1]];
                Choice { content: canvas, canvas, grid }
            }
            Rule::LongestSide(longest) => idefics3::choose([height, width], *longest, tile[0]),
            Rule::LeastScaling { most, fills } => llama4::choose([height, width], tile[0], *most, *fills),
            Rule::Slices { most, unit } => minicpm_v::choose([height, width], tile[0], *unit, *most),
        }
    }
}

/// The canvas that keeps most of the image's pixels.
fn most_of([height, width]: [u64; 2], canvases: &[[u64; 2]]) -> [u64; 2] {
    let (mut best, mut kept_by_best, mut wasted_by_best) = ([0, 0], 0, u64::MAX);
    for &canvas in canvases {
        let scale = (canvas[1] as f64 / width as f64).min(canvas[0] as f64 / height as f64);
        let scaled = (width as f64 * scale) as u64 * (height as f64 * scale) as u64;
        let kept = scaled.min(height * width);
        let wasted = canvas[0] * canvas[1] - kept;
        if kept > kept_by_best || (kept == kept_by_best && wasted < wasted_by_best) {
            (best, kept_by_best, wasted_by_best) = (canvas, kept, wasted);
        }
    }
    best
}

/// The largest size of that ratio within a canvas; fractions become whole pixels.
fn within([height, width]: [u64; 2], canvas: [u64; 2]) -> [u64; 2] {
    let scale = [canvas[0] as f64 / height as f64, canvas[1] as f64 / width as f64];
    if scale[1] < scale[0] {
        [((height as f64 * scale[1]).ceil() as u64).min(canvas[0]), canvas[1]]
    } else {
        [canvas[0], ((width as f64 * scale[0]).ceil() as u64).min(canvas[1])]
    }
}

/// The grid whose ratio is next to the image's.
fn nearest_ratio([height, width]: [u64; 2], tile: [u64; 2], least: u64, most: u64) -> [u64; 2] {
    let mut grids: Vec<[u64; 2]> = (1..=most)
        .flat_map(|columns| (1..=most / columns).map(move |rows| [rows, columns]))
        .filter(|[rows, columns]| rows * columns >= least)
        .collect();
    grids.sort_by_key(|[rows, columns]| rows * columns);
    let (ratio, area) = (width as f64 / height as f64, (height * width) as f64);
    let (mut best, mut difference_of_best) = ([1, 1], f64::INFINITY);
    for grid @ [rows, columns] in grids {
        let difference = (ratio - columns as f64 / rows as f64).abs();
        let tiles = (tile[0] * tile[1]) as f64 * (rows * columns) as f64;
        if difference < difference_of_best {
            (best, difference_of_best) = (grid, difference);
        } else if difference == difference_of_best && area > 0.5 * tiles {
            best = grid;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canvas_keeps_most_and_wastes_least() {
        let canvases = vec![[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];
        let rule = Rule::Canvases(canvases);
        let choose = |height, width| rule.choose([height, width], [336, 336]).unwrap();
        assert_eq!(choose(1080, 1920).canvas, [672, 672]);
        assert_eq!(choose(1080, 1920).content, [378, 672]);
        assert_eq!(choose(200, 600).grid, [1, 2]);
        assert_eq!(choose(1, 1).canvas, [336, 672]);
        assert_eq!(choose(1 << 24, 1).content, [336, 1]);
    }

    #[test]
    fn of_equal_ratios_a_large_image_gets_more_tiles() {
        let rule = Rule::Ratio { least: 1, most: 12 };
        let grid = |height, width| rule.choose([height, width], [448, 448]).unwrap().grid;
        assert_eq!(grid(100, 100), [1, 1]);
        assert_eq!(grid(3000, 3000), [3, 3]);
        assert_eq!(grid(480, 640), [3, 4]);
        assert_eq!(grid(60, 4000), [1, 12]);
        assert_eq!(Rule::Ratio { least: 12, most: 12 }.choose([9, 9], [448, 448]).unwrap().grid, [4, 3]);
    }

    #[test]
    fn ten_thousand_tiles_are_an_error() {
        let error = Rule::LongestSide(4000).choose([300, 300], [40, 40]).unwrap_err().to_string();
        assert!(error.contains("100 x 100 tiles, expected at most 512"), "{error}");
    }
}
