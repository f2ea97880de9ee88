//! Contrast-limited adaptive histogram equalization as OpenCV does it: every tile of an image has a table of its own,
//! and pixels between the centers of tiles get a mean of theirs. It must not know colours.

use multiversion::multiversion;

/// Values of a pixel.
pub const LEVELS: usize = 256;

/// Tiles of an image, and how far their histograms may rise.
#[derive(Debug, Clone, Copy)]
pub struct Clahe {
    /// Tiles along x and y, at least one.
    pub tiles: [usize; 2],
    /// Largest count of a level, as a multiple of the mean; not limited unless it is positive.
    pub clip_limit: f32,
}

impl Clahe {
    /// Equalizes an image of `size` (x, y) pixels, one level each.
    pub fn run(&self, src: &[u8], dst: &mut [u8], size: [usize; 2]) {
        if size.contains(&0) {
            return;
        }
        let tile = self.tile(size);
        let tables = self.tables(src, size, tile);
        let columns: Vec<Between> = (0..size[0]).map(|x| Between::new(x, tile[0], self.tiles[0])).collect();
        let shares: Vec<f32> = columns.iter().map(|column| column.share).collect();
        // Pixels between the same four tiles share a table of what all four make of a level.
        let mut corners = Vec::new();
        let mut known = None;
        for (y, (from, to)) in src.chunks_exact(size[0]).zip(dst.chunks_exact_mut(size[0])).enumerate() {
            let row = Between::new(y, tile[1], self.tiles[1]);
            if known != Some((row.first, row.second)) {
                known = Some((row.first, row.second));
                corners.clear();
                for run in columns.chunk_by(Between::is_beside) {
                    let table = |row: usize, column: usize| &tables[row * self.tiles[0] + column];
                    let four = [row.first, row.second]
                        .map(|row| [table(row, run[0].first), table(row, run[0].second)]);
                    corners.push((run.len(), Corners::new(four)));
                }
            }
            let mut start = 0;
            for (len, corners) in &corners {
                let run = start..start + len;
                corners.mix(row.share, &shares[run.clone()], &from[run.clone()], &mut to[run.clone()]);
                start = run.end;
            }
        }
    }

    /// Pixels of a tile along x and y. What does not divide into tiles is continued beyond its ends until it does.
    pub fn tile(&self, size: [usize; 2]) -> [usize; 2] {
        let divides = (0..2).all(|d| size[d].is_multiple_of(self.tiles[d]));
        let continued =
            |d: usize| if divides { size[d] } else { size[d] + self.tiles[d] - size[d] % self.tiles[d] };
        [0, 1].map(|d| continued(d) / self.tiles[d])
    }

    /// The largest count of a level in a tile of `area` pixels, if there is one.
    pub fn limit(&self, area: usize) -> Option<usize> {
        (self.clip_limit > 0.0)
            .then(|| ((f64::from(self.clip_limit) * area as f64 / LEVELS as f64) as usize).max(1))
    }

    /// What every level of each tile becomes; tiles row by row.
    fn tables(&self, src: &[u8], size: [usize; 2], tile: [usize; 2]) -> Vec<[u8; LEVELS]> {
        let area = tile[0] * tile[1];
        let limit = self.limit(area);
        let scale = scale(area);
        let mut tables = Vec::with_capacity(self.tiles[0] * self.tiles[1]);
        for row in 0..self.tiles[1] {
            for column in 0..self.tiles[0] {
                let mut counts = [0usize; LEVELS];
                // Neighbours are often equal: counts next to each other need not wait for one another.
                let mut more = [0usize; LEVELS];
                let (start, end) = (column * tile[0], (column + 1) * tile[0]);
                for y in row * tile[1]..(row + 1) * tile[1] {
                    let line = &src[mirrored(y, size[1]) * size[0]..][..size[0]];
                    let (pairs, last) = line[start.min(size[0])..end.min(size[0])].as_chunks::<2>();
                    for [a, b] in pairs {
                        counts[usize::from(*a)] += 1;
                        more[usize::from(*b)] += 1;
                    }
                    let beyond = (start.max(size[0])..end).map(|x| &line[mirrored(x, size[0])]);
                    last.iter().chain(beyond).for_each(|&level| counts[usize::from(level)] += 1);
                }
                counts.iter_mut().zip(&more).for_each(|(count, more)| *count += more);
                if let Some(limit) = limit {
                    clip(&mut counts, limit);
                }
                let mut sum = 0;
                tables.push(counts.map(|count| {
                    sum += count;
                    (sum as f32 * scale).round_ties_even() as u8
                }));
            }
        }
        tables
    }
}

/// Levels for each pixel of a tile of `area` pixels.
pub fn scale(area: usize) -> f32 {
    (LEVELS - 1) as f32 / area as f32
}

/// What four tiles make of each level: above first, left before right.
struct Corners(Box<[[f32; 4]; LEVELS]>);

impl Corners {
    fn new([[a, b], [c, d]]: [[&[u8; LEVELS]; 2]; 2]) -> Self {
        let four = |level: usize| [a[level], b[level], c[level], d[level]].map(f32::from);
        Self(Box::new(std::array::from_fn(four)))
    }

    /// Writes pixels of a row, which lies by `share` below the middle of the tiles above, and right of the middle of
    /// those to the left by `shares`.
    fn mix(&self, share: f32, shares: &[f32], src: &[u8], dst: &mut [u8]) {
        mix(&self.0, share, shares, src, dst);
    }
}

/// See [`Corners::mix`].
#[multiversion(targets("x86_64+avx+avx2"))]
fn mix(corners: &[[f32; 4]; LEVELS], share: f32, shares: &[f32], src: &[u8], dst: &mut [u8]) {
    for ((to, &level), &beside) in dst.iter_mut().zip(src).zip(shares) {
        let [a, b, c, d] = corners[usize::from(level)];
        let (above, below) = (a * (1.0 - beside) + b * beside, c * (1.0 - beside) + d * beside);
        *to = (above * (1.0 - share) + below * share).round_ties_even() as u8;
    }
}

/// Where `place` is in a line of `extent` pixels that is mirrored at its last one, and again and again.
fn mirrored(place: usize, extent: usize) -> usize {
    if place < extent {
        return place;
    }
    let period = (2 * extent - 2).max(1);
    let place = place % period;
    place.min(period - place)
}

/// Cuts counts at `limit` and gives what is above to all levels alike, the rest to levels at equal distances.
fn clip(counts: &mut [usize; LEVELS], limit: usize) {
    let above: usize = counts.iter().map(|count| count.saturating_sub(limit)).sum();
    let (each, rest) = (above / LEVELS, above % LEVELS);
    counts.iter_mut().for_each(|count| *count = (*count).min(limit) + each);
    let step = LEVELS.checked_div(rest).unwrap_or(LEVELS);
    counts.iter_mut().step_by(step).take(rest).for_each(|count| *count += 1);
}

/// The two tiles between whose centers a pixel lies, and the share of the second.
#[derive(Debug, Clone, Copy)]
struct Between {
    first: usize,
    second: usize,
    share: f32,
}

impl Between {
    fn new(pixel: usize, tile: usize, tiles: usize) -> Self {
        let place = pixel as f32 * (1.0 / tile as f32) - 0.5;
        let first = place.floor();
        let next = (first + 1.0) as usize;
        Self { first: first.max(0.0) as usize, second: next.min(tiles - 1), share: place - first }
    }

    /// Whether both lie between the same tiles.
    fn is_beside(&self, other: &Self) -> bool {
        (self.first, self.second) == (other.first, other.second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_tiles_than_pixels_are_harmless() {
        let src = [9, 1, 200];
        for tiles in [[1, 1], [7, 5], [3, 1], [64, 64]] {
            let mut dst = [0; 3];
            Clahe { tiles, clip_limit: 2.0 }.run(&src, &mut dst, [3, 1]);
            assert!(dst[1] <= dst[0] && dst[0] <= dst[2], "{tiles:?} {dst:?}");
        }
    }

    #[test]
    fn what_is_cut_off_is_given_back() {
        let mut counts = [0; LEVELS];
        counts[7] = 1_000;
        clip(&mut counts, 100);
        assert_eq!(counts.iter().sum::<usize>(), 1_000);
        assert_eq!((counts[7], counts[0], counts[1]), (104, 4, 4));
    }
}
