//! Llama 4's grid: the canvas that needs the least change of scale. Numbers that transformers has in tensors are
//! float32 here, too. It must not know other models.

use super::Choice;

/// A factor from pixels of the image to pixels of the canvas.
#[derive(Debug, Clone, Copy)]
enum Scale {
    /// Of a tensor.
    Single(f32),
    /// Of Python's numbers.
    Double(f64),
}

impl Scale {
    /// Whether it is less than the other one, which are compared as float32 where one of them is.
    fn is_below(self, other: Self) -> bool {
        match (self, other) {
            (Self::Double(one), Self::Double(other)) => one < other,
            (one, other) => one.single() < other.single(),
        }
    }

    fn single(self) -> f32 {
        match self {
            Self::Single(scale) => scale,
            Self::Double(scale) => scale as f32,
        }
    }

    /// A side times this; fractions are cut.
    fn of(self, side: u64) -> u64 {
        match self {
            Self::Single(scale) => (side as f32 * scale) as u64,
            Self::Double(scale) => (side as f64 * scale) as u64,
        }
    }
}

/// For an image of that height and width. The content is at the top left of the canvas.
pub(super) fn choose(size: [u64; 2], tile: u64, most: u64, fills: bool) -> Choice {
    let grid = best_grid(size, tile, most, fills);
    let canvas = grid.map(|tiles| tiles * tile);
    Choice { content: content(size, canvas, tile, fills), canvas, grid }
}

/// Of the grids that enlarge the image that which does so least, or most if it `fills` the canvas; else that which
/// shrinks it least. Of equal ones the smallest.
fn best_grid([height, width]: [u64; 2], tile: u64, most: u64, fills: bool) -> [u64; 2] {
    let scale = |[rows, columns]: [u64; 2]| {
        let down = (rows * tile) as f32 / height as f32;
        let across = (columns * tile) as f32 / width as f32;
        down.min(across)
    };
    let grids = || (1..=most).flat_map(|rows| (1..=most / rows).map(move |columns| [rows, columns]));
    let larger = grids().map(scale).filter(|&scale| scale >= 1.0);
    let chosen = if fills { larger.reduce(f32::max) } else { larger.reduce(f32::min) };
    let chosen = chosen.or_else(|| grids().map(scale).reduce(f32::max)).unwrap_or(1.0);
    let fitting = grids().filter(|&grid| scale(grid) == chosen);
    fitting.min_by_key(|[rows, columns]| rows * columns).unwrap_or([1, 1])
}

/// What the image is resized to, in its ratio: no larger than it is, a tile or, if it `fills` it, the canvas.
fn content(size: [u64; 2], canvas: [u64; 2], tile: u64, fills: bool) -> [u64; 2] {
    let limit = |d: usize| {
        let own = size[d].max(tile);
        if fills || canvas[d] < own {
            (canvas[d], Scale::Single(canvas[d] as f32 / size[d] as f32))
        } else {
            (own, Scale::Double(own as f64 / size[d] as f64))
        }
    };
    let ((height, down), (width, across)) = (limit(0), limit(1));
    if across.is_below(down) {
        [across.of(size[0]).min(height).max(1), width]
    } else {
        [height, down.of(size[1]).min(width).max(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_image_is_a_tile_and_a_large_one_keeps_most() {
        let small = choose([200, 300], 336, 16, false);
        assert_eq!((small.grid, small.content), ([1, 1], [224, 336]));
        let large = choose([1080, 1920], 336, 16, false);
        assert_eq!((large.grid, large.content), ([3, 5], [945, 1680]));
        assert_eq!(choose([5600, 28], 336, 16, false).grid, [16, 1]);
    }

    #[test]
    fn the_largest_canvas_is_filled() {
        let made = choose([300, 300], 336, 16, true);
        assert_eq!((made.grid, made.content), ([4, 4], [1344, 1344]));
    }

    #[test]
    fn hostile_sizes_have_a_content() {
        for size in [[1, 1 << 24], [1 << 24, 1], [1 << 24, 1 << 24], [1, 1]] {
            let made = choose(size, 8192, 512, false);
            assert!(
                made.content.iter().zip(made.canvas).all(|(&side, most)| side >= 1 && side <= most),
                "{made:?}"
            );
        }
    }
}
