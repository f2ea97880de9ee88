//! Idefics 3's and SmolVLM's grid: the image gets a longest side, then sides of whole tiles. It must not know other
//! models.

use super::Choice;

/// The largest side that any setting asks for.
const LARGEST: u64 = 4096;

/// For an image of that height and width. It is resized to `content` first, and this to `canvas`.
pub(super) fn choose(size: [u64; 2], longest: u64, tile: u64) -> Choice {
    let content = at_most(with_longest(size, longest), LARGEST);
    let canvas = in_whole_tiles(content, tile);
    Choice { content, canvas, grid: canvas.map(|side| side / tile) }
}

/// The longer side is given, the other one follows in its ratio and becomes even.
fn with_longest([height, width]: [u64; 2], longest: u64) -> [u64; 2] {
    let ratio = width as f64 / height as f64;
    let even = |side: f64| (side as u64).next_multiple_of(2).max(1);
    if width >= height {
        [even(longest as f64 / ratio), longest]
    } else {
        [longest, even(longest as f64 * ratio)]
    }
}

/// A smaller size of the same ratio where a side is larger than `most`.
fn at_most([height, width]: [u64; 2], most: u64) -> [u64; 2] {
    let ratio = width as f64 / height as f64;
    if width >= height && width > most {
        [((most as f64 / ratio) as u64).max(1), most]
    } else if height > width && height > most {
        [most, ((most as f64 * ratio) as u64).max(1)]
    } else {
        [height, width]
    }
}

/// The longer side becomes whole tiles, the other one follows in its ratio and becomes whole tiles, too.
fn in_whole_tiles([height, width]: [u64; 2], tile: u64) -> [u64; 2] {
    let ratio = width as f64 / height as f64;
    if width >= height {
        let width = width.next_multiple_of(tile);
        [((width as f64 / ratio) as u64).next_multiple_of(tile), width]
    } else {
        let height = height.next_multiple_of(tile);
        [height, ((height as f64 * ratio) as u64).next_multiple_of(tile)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_become_even_and_then_whole_tiles() {
        let made = choose([333, 500], 1456, 364);
        assert_eq!(made.content, [970, 1456]);
        assert_eq!((made.canvas, made.grid), ([1092, 1456], [3, 4]));
        assert_eq!(choose([4000, 60], 2048, 512).content, [2048, 30]);
        assert_eq!(choose([1, 1 << 24], 1456, 364).canvas, [364, 1456]);
    }

    #[test]
    fn no_side_is_larger_than_4096() {
        assert_eq!(choose([100, 50], 5000, 512).content, [4096, 2048]);
        assert_eq!(choose([50, 100], 5000, 512).content, [2048, 4096]);
    }
}
