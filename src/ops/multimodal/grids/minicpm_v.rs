//! MiniCPM-V 4.6's grid: as many slices as the image has times the area of one, in the ratio next to its own. It must
//! not know other models.

use super::Choice;

/// For an image of that height and width, slices of about `side` x `side` pixels and sides that are multiples of
/// `unit`. The whole image becomes `content`, and `canvas` is cut; a grid of 0 x 0 is none, the content is all then.
pub(super) fn choose(size: [u64; 2], side: u64, unit: u64, most: u64) -> Choice {
    let sides = size.map(|side| side as f64);
    let Some(grid) = best_grid(sides, side, most) else {
        let content = resized(sides, side, unit, true);
        return Choice { content, canvas: content, grid: [0, 0] };
    };
    let content = resized(sides, side, unit, false);
    let slice = |d: usize| nearest_multiple(sides[d], grid[d]) as f64 / grid[d] as f64;
    let sliced = resized([slice(0), slice(1)], side, unit, true);
    Choice { content, canvas: [sliced[0] * grid[0], sliced[1] * grid[1]], grid }
}

/// Rows and columns of slices; `None`: the image is not cut.
fn best_grid([height, width]: [f64; 2], side: u64, most: u64) -> Option<[u64; 2]> {
    let ratio = (width / height).ln();
    let wanted = ((width * height / (side * side) as f64).ceil() as u64).min(most);
    if wanted <= 1 {
        return None;
    }
    let (mut best, mut error_of_best) = ([1, 1], f64::INFINITY);
    for slices in (wanted - 1..=wanted + 1).filter(|&slices| slices != 1 && slices <= most) {
        for rows in (1..=slices).filter(|rows| slices % rows == 0) {
            let columns = slices / rows;
            let error = (ratio - (columns as f64 / rows as f64).ln()).abs();
            if error < error_of_best || (error == error_of_best && rows > best[0]) {
                (best, error_of_best) = ([rows, columns], error);
            }
        }
    }
    Some(best)
}

/// Sides that are multiples of `unit`: of an area of about `side` x `side` where the image has more, or in any case.
fn resized([mut height, mut width]: [f64; 2], side: u64, unit: u64, always: bool) -> [u64; 2] {
    if height * width > (side * side) as f64 || always {
        let ratio = width / height;
        height = (side as f64 / ratio.sqrt()).trunc();
        width = (height * ratio).trunc();
    }
    [nearest_multiple(height, unit), nearest_multiple(width, unit)]
}

/// The multiple of `of` that is next to a length, one at least; halves to even.
fn nearest_multiple(length: f64, of: u64) -> u64 {
    ((length / of as f64).round_ties_even() as u64 * of).max(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_images_are_cut_and_small_ones_are_enlarged() {
        let small = choose([100, 200], 448, 56, 9);
        assert_eq!((small.content, small.grid), ([336, 616], [0, 0]));
        let large = choose([1080, 1920], 448, 56, 9);
        assert_eq!((large.content, large.canvas, large.grid), ([336, 616], [896, 1792], [2, 4]));
    }

    #[test]
    fn hostile_sizes_have_a_canvas() {
        for size in [[1, 1 << 24], [1 << 24, 1], [1 << 24, 1 << 24], [1, 1]] {
            let made = choose(size, 448, 56, 512);
            assert!(made.canvas.iter().all(|&side| side >= 56), "{made:?}");
        }
    }
}
