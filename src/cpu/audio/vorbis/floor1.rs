//! Floors of Vorbis that are lines between points (kind 1). It must not know residues.

use super::codebook::Codebook;
use super::damaged;
use crate::cpu::audio::bits::LowFirst;
use crate::error::Result;

/// Points of a floor.
const MAX_POINTS: usize = 65;
/// Heights are taken as of 15 bits, as libvorbis takes them.
const HEIGHT: i32 = 0x7fff;

#[derive(Debug)]
pub(crate) struct Floor1 {
    /// For each partition, its class.
    partitions: Vec<usize>,
    classes: Vec<Class>,
    multiplier: i32,
    /// Where points are. The first is at 0, the second at the end.
    xs: Vec<i32>,
    /// For each point from the third on, the points before it that are next to it on either side.
    neighbours: Vec<[usize; 2]>,
    /// The points from left to right.
    order: Vec<usize>,
    /// Factors of heights.
    factors: Vec<f32>,
}

#[derive(Debug)]
struct Class {
    dimensions: usize,
    subclass_bits: u32,
    master: usize,
    books: Vec<Option<usize>>,
}

/// The heights of a block's points.
pub(crate) type Heights = [i32; MAX_POINTS];

impl Floor1 {
    pub(crate) fn read(bits: &mut LowFirst<'_>, books: usize) -> Result<Self> {
        let mut read = |count| bits.read(count).ok_or_else(|| damaged("a floor is cut off"));
        let book = |book: usize| match book {
            book if book < books => Ok(book),
            _ => Err(damaged("a floor names a codebook that there is not")),
        };
        let count = read(5)?;
        let partitions = (0..count).map(|_| Ok(read(4)? as usize)).collect::<Result<Vec<_>>>()?;
        let count = partitions.iter().max().map_or(0, |most| most + 1);
        let mut classes = Vec::new();
        for _ in 0..count {
            let (dimensions, subclass_bits) = (read(3)? as usize + 1, read(2)?);
            let master = if subclass_bits > 0 { book(read(8)? as usize)? } else { 0 };
            let sub = |_| (read(8)? as usize).checked_sub(1).map(book).transpose();
            let books = (0..1 << subclass_bits).map(sub).collect::<Result<_>>()?;
            classes.push(Class { dimensions, subclass_bits, master, books });
        }
        let (multiplier, range) = (read(2)? as i32 + 1, read(4)?);
        let mut xs = vec![0, 1 << range];
        for class in partitions.iter().filter_map(|&class| classes.get(class)) {
            for _ in 0..class.dimensions {
                xs.push(read(range)? as i32);
            }
        }
        if xs.len() > MAX_POINTS {
            return Err(damaged("a floor has too many points"));
        }
        let mut order: Vec<usize> = (0..xs.len()).collect();
        order.sort_by_key(|&point| xs.get(point).copied());
        if order.windows(2).any(|pair| matches!(pair, &[a, b] if xs.get(a) == xs.get(b))) {
            return Err(damaged("a floor has two points at one place"));
        }
        let factors =
            (0..256).map(|height| 10f64.powf(7.0 * f64::from(height - 255) / 256.0) as f32).collect();
        let neighbours = neighbours(&xs);
        Ok(Self { partitions, classes, multiplier, xs, neighbours, order, factors })
    }

    /// Reads what a block's floor is made of. `None` for silence, which the end of the packet is, too.
    pub(crate) fn heights(&self, bits: &mut LowFirst<'_>, books: &[Codebook]) -> Option<Heights> {
        if !bits.flag()? {
            return None;
        }
        let range = self.range();
        let width = (range - 1).ilog2() + 1;
        let mut heights = [0; MAX_POINTS];
        let [first, last, rest @ ..] = &mut heights;
        (*first, *last) = (bits.read(width)? as i32, bits.read(width)? as i32);
        let mut rest = rest.iter_mut();
        for class in self.partitions.iter().filter_map(|&class| self.classes.get(class)) {
            let mut choice = 0;
            if class.subclass_bits > 0 {
                choice = books.get(class.master)?.entry(bits)?;
            }
            let mask = (1 << class.subclass_bits) - 1;
            for to in rest.by_ref().take(class.dimensions) {
                if let Some(book) = *class.books.get(choice & mask)? {
                    *to = books.get(book)?.entry(bits)? as i32;
                }
                choice >>= class.subclass_bits;
            }
        }
        Some(heights)
    }

    fn range(&self) -> i32 {
        match self.multiplier {
            1 => 256,
            2 => 128,
            3 => 86,
            _ => 64,
        }
    }

    /// Multiplies a spectrum by the floor.
    pub(crate) fn apply(&self, heights: &Heights, spectrum: &mut [f32]) {
        let (mut heights, mut is_used) = (*heights, [false; MAX_POINTS]);
        is_used[..2].fill(true);
        for (i, &[low, high]) in self.neighbours.iter().enumerate() {
            let at = |point: usize| {
                [self.xs.get(point), heights.get(point)].map(|value| value.copied().unwrap_or(0))
            };
            let [x, value] = at(i + 2);
            let predicted = between(at(low), at(high), x);
            let height = if value == 0 { predicted } else { self.height(value, predicted) };
            for point in [low, high, i + 2].into_iter().filter(|_| value != 0) {
                if let Some(flag) = is_used.get_mut(point) {
                    *flag = true;
                }
            }
            if let Some(to) = heights.get_mut(i + 2) {
                *to = height;
            }
        }
        let mut from = [0, 0];
        for &point in self.order.iter().filter(|&&point| is_used.get(point) == Some(&true)) {
            let (Some(&x), Some(&height)) = (self.xs.get(point), heights.get(point)) else { return };
            let to = [x, (height & HEIGHT).saturating_mul(self.multiplier).clamp(0, 255)];
            self.line(from, to, spectrum);
            from = to;
        }
        let [x, y] = from;
        let factor = self.factors.get(y as usize).copied().unwrap_or_default();
        spectrum.iter_mut().skip(x as usize).for_each(|value| *value *= factor);
    }

    /// The height that `value`, not 0, makes of `predicted`.
    fn height(&self, value: i32, predicted: i32) -> i32 {
        let (above, below) = (self.range() - predicted, predicted);
        let change = if value >= 2 * above.min(below) {
            if above > below { value - below } else { above - value - 1 }
        } else if value % 2 == 1 {
            -((value + 1) / 2)
        } else {
            value / 2
        };
        (predicted + change) & HEIGHT
    }

    /// Multiplies what is from one point to before another.
    fn line(&self, [x0, y0]: [i32; 2], [x1, y1]: [i32; 2], spectrum: &mut [f32]) {
        let width = x1 - x0;
        if width <= 0 {
            return;
        }
        let (step, sign) = ((y1 - y0) / width, if y1 < y0 { -1 } else { 1 });
        let rest = (y1 - y0).abs() - step.abs() * width;
        let (mut y, mut error) = (y0, 0);
        for value in spectrum.iter_mut().skip(x0 as usize).take(width as usize) {
            *value *= self.factors.get(y as usize).copied().unwrap_or_default();
            (y, error) = (y + step, error + rest);
            if error >= width {
                (y, error) = (y + sign, error - width);
            }
        }
    }
}

/// For each point from the third on, the points before it that are next to it on either side.
fn neighbours(xs: &[i32]) -> Vec<[usize; 2]> {
    let beside = |(i, &x): (usize, &i32)| {
        let before = || xs.iter().take(i).enumerate();
        let low = before().filter(|&(_, &other)| other < x).max_by_key(|&(_, &other)| other);
        let high = before().filter(|&(_, &other)| other > x).min_by_key(|&(_, &other)| other);
        [low, high].map(|found| found.map_or(0, |(point, _)| point))
    };
    xs.iter().enumerate().skip(2).map(beside).collect()
}

/// The height at `x` of a line between two points.
fn between([x0, y0]: [i32; 2], [x1, y1]: [i32; 2], x: i32) -> i32 {
    let (y0, y1) = (y0 & HEIGHT, y1 & HEIGHT);
    let offset = i64::from((y1 - y0).abs()) * i64::from(x - x0) / i64::from((x1 - x0).max(1));
    if y1 < y0 { y0 - offset as i32 } else { y0 + offset as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_through_their_points() {
        let factors = (0..256).map(|height| height as f32).collect();
        let mut floor = Floor1 {
            partitions: Vec::new(),
            classes: Vec::new(),
            multiplier: 1,
            xs: vec![0, 16, 8],
            neighbours: neighbours(&[0, 16, 8]),
            order: vec![0, 2, 1],
            factors,
        };
        let mut heights = [0; MAX_POINTS];
        // Between 10 and 30 are 20 at 8; an odd 5 takes 3 away.
        heights[..3].copy_from_slice(&[10, 30, 5]);
        let mut spectrum = [1.0; 20];
        floor.apply(&heights, &mut spectrum);
        let expected = [10, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 23, 25, 26, 28, 30, 30, 30, 30];
        assert_eq!(spectrum.map(|value| value as i32), expected);
        floor.multiplier = 4;
        floor.apply(&heights, &mut spectrum);
        assert_eq!((neighbours(&[0, 16, 8, 12]), floor.range()), (vec![[0, 1], [2, 1]], 64));
    }
}
