//! Masks of objects as COCO has them: polygons and runs of pixels. Pixels are counted column after column. It must not
//! know files.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::limits;

/// Outlines are drawn so many times as fine as pixels.
const FINE: i64 = 5;
/// Runs as text: digits of five bits, the lowest first, in a character each from this one on.
const FIRST_DIGIT: u8 = b'0';
const DIGIT_BITS: u32 = 5;
/// A digit with this bit has another one behind it; the last one with [`SIGN`] is that of a negative number.
const MORE: i64 = 1 << DIGIT_BITS;
const SIGN: i64 = 1 << (DIGIT_BITS - 1);
/// Bits of the largest number that is read.
const MOST_BITS: u32 = 40;

type Result<T> = std::result::Result<T, String>;

/// The masks of one image, by class.
pub(super) struct Masks {
    width: usize,
    height: usize,
    /// Pixels inside of polygons.
    polygons: BTreeMap<i32, Vec<Range<usize>>>,
    /// Pixels of the last mask of runs.
    runs: BTreeMap<i32, Vec<Range<usize>>>,
    /// Steps that may still be done.
    steps_left: u64,
}

impl Masks {
    /// No masks, of an image of this width and height.
    ///
    /// # Errors
    /// An image that is too large.
    pub(super) fn new(size: [u32; 2]) -> Result<Self> {
        let [width, height] = size;
        if u64::from(width) * u64::from(height) > limits::MAX_IMAGE_PIXELS {
            let most = limits::MAX_IMAGE_PIXELS;
            return Err(format!("an image of {width} x {height} pixels, expected at most {most}"));
        }
        let (polygons, runs) = Default::default();
        let steps_left = limits::MAX_MASK_STEPS;
        Ok(Self { width: width as usize, height: height as usize, polygons, runs, steps_left })
    }

    fn spend(&mut self, steps: usize) -> Result<()> {
        let left = self.steps_left.checked_sub(steps as u64);
        let most = limits::MAX_MASK_STEPS;
        self.steps_left = left.ok_or_else(|| format!("the masks of an image take more than {most} steps"))?;
        Ok(())
    }

    /// Adds what is inside of a polygon of `vertices` (x and y) to a class.
    ///
    /// # Errors
    /// Coordinates that are too large; masks that take too long.
    pub(super) fn add_polygon(&mut self, class: i32, vertices: &[[f32; 2]]) -> Result<()> {
        let mut corners = Vec::with_capacity(vertices.len());
        for vertex in vertices {
            let [x, y] = vertex.map(|number| f64::from(number) * FINE as f64 + 0.5);
            if ![x, y].iter().all(|number| number.abs() < limits::MAX_COORDINATE) {
                return Err(format!("a polygon has the vertex {vertex:?}, which is too far away"));
            }
            corners.push([x as i64, y as i64]);
        }
        let mut changes = Vec::new();
        for (number, &start) in corners.iter().enumerate() {
            let end = corners.get(number + 1).or(corners.first()).copied().unwrap_or(start);
            let line = Line::new(start, end);
            let columns = line.columns(self.width);
            self.spend((columns.end - columns.start) as usize + 1)?;
            changes.extend(columns.map(|column| {
                let row = (line.lowest_at(column) as f64 + 0.5) / FINE as f64 - 0.5;
                column as usize * self.height + row.clamp(0.0, self.height as f64).ceil() as usize
            }));
        }
        changes.sort_unstable();
        let pixels = self.width * self.height;
        let parts = changes.chunks(2).map(|part| match *part {
            [start, end] => start..end,
            [start] => start..pixels,
            _ => 0..0,
        });
        self.polygons.entry(class).or_default().extend(parts);
        Ok(())
    }

    /// Makes runs, outside and inside in turn, the mask of a class.
    ///
    /// # Errors
    /// Runs that are not those of as many pixels as there are.
    pub(super) fn set_runs(&mut self, class: i32, counts: &[u32]) -> Result<()> {
        self.spend(counts.len())?;
        let (mut parts, mut end) = (Vec::new(), 0_usize);
        for (number, &count) in counts.iter().enumerate() {
            let start = end;
            end = end.saturating_add(count as usize);
            if number % 2 == 1 {
                parts.push(start..end);
            }
        }
        if end != self.width * self.height {
            let pixels = self.width * self.height;
            return Err(format!("the runs of a mask have {end} pixels, expected {pixels}, as its image has"));
        }
        self.runs.insert(class, parts);
        Ok(())
    }

    /// The class of each pixel, row after row: 0 outside of all masks, and the highest where some overlap. As in DALI,
    /// runs count only for classes without polygons. Also as in DALI, the lower class stays where two masks reach the
    /// last pixel, behind the place from which no mask so far changes any more.
    ///
    /// # Errors
    /// Masks that take too long.
    pub(super) fn classes(mut self) -> Result<Vec<i32>> {
        let mut parts = std::mem::take(&mut self.runs);
        parts.append(&mut self.polygons);
        let pixels = self.width * self.height;
        let (mut columns, mut last_change) = (vec![0; pixels], 0);
        for (class, ranges) in parts {
            let ranges = merged(ranges);
            let last = ranges.last().cloned().unwrap_or_default();
            let reaches_end = last.end == pixels;
            last_change = last_change.max(if reaches_end { last.start } else { last.end });
            let stays = reaches_end && columns.last().is_some_and(|&lower| lower != 0);
            let end = if stays { last_change } else { pixels };
            for range in ranges {
                let range = range.start..range.end.min(end);
                self.spend(range.len())?;
                columns.get_mut(range).unwrap_or_default().fill(class);
            }
        }
        let rows = 0..self.height;
        let row = |row: usize| columns.iter().skip(row).step_by(self.height).copied();
        Ok(rows.flat_map(row).collect())
    }
}

/// What the ranges cover, as ranges with gaps between them.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut found: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => found.push(range),
        }
    }
    found
}

/// A line of points, from the one end to the other in steps along its longer direction.
struct Line {
    /// Its first point and how many steps there are, along which `slope` is added to the other coordinate.
    start: [i64; 2],
    steps: i64,
    slope: f64,
    /// Whether the steps are along x.
    is_flat: bool,
}

impl Line {
    fn new(start: [i64; 2], end: [i64; 2]) -> Self {
        let distance = |axis: usize| end[axis].abs_diff(start[axis]) as i64;
        let is_flat = distance(0) >= distance(1);
        let (along, across) = if is_flat { (0, 1) } else { (1, 0) };
        let (start, end) = if start[along] > end[along] { (end, start) } else { (start, end) };
        let steps = end[along] - start[along];
        let slope = if steps == 0 { 0.0 } else { (end[across] - start[across]) as f64 / steps as f64 };
        Self { start, steps, slope, is_flat }
    }

    /// The coordinate across the steps behind so many of them.
    fn across(&self, step: i64) -> i64 {
        let first = if self.is_flat { self.start[1] } else { self.start[0] };
        (first as f64 + self.slope * step as f64 + 0.5) as i64
    }

    /// The columns of pixels whose middles it crosses.
    fn columns(&self, width: usize) -> Range<i64> {
        let ends = match self.is_flat {
            true => [self.start[0], self.start[0] + self.steps],
            false => [self.across(0), self.across(self.steps)],
        };
        let (first, last) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        // The middle is between the points `FINE * column + 2` and `+ 3`.
        let begin = (first - 2).div_euclid(FINE) + i64::from((first - 2).rem_euclid(FINE) != 0);
        let end = (last - 3).div_euclid(FINE) + 1;
        let (begin, end) = (begin.max(0), end.min(width as i64));
        begin..end.max(begin)
    }

    /// The lower y of the two points between which it crosses the middle of a column.
    fn lowest_at(&self, column: i64) -> i64 {
        let left = FINE * column + 2;
        if self.is_flat {
            let step = left - self.start[0];
            return self.across(step).min(self.across(step + 1));
        }
        // The last step before it: what is across only grows or only falls.
        let is_before =
            |step| if self.slope > 0.0 { self.across(step) <= left } else { self.across(step) > left };
        let (mut before, mut behind) = (0, self.steps);
        while behind - before > 1 {
            let middle = before + (behind - before) / 2;
            if is_before(middle) { before = middle } else { behind = middle }
        }
        self.start[1] + before
    }
}

/// Runs of pixels as numbers, of COCO's compressed text: from the fourth on they are differences to the one before the
/// last.
///
/// # Errors
/// Characters that are none of it, a number that ends too early or does not fit.
pub(super) fn runs_of_text(text: &str) -> Result<Vec<u32>> {
    let mut runs: Vec<u32> = Vec::new();
    let (mut value, mut shift) = (0_i64, 0);
    for byte in text.bytes() {
        let digit = i64::from(byte) - i64::from(FIRST_DIGIT);
        if !(0..2 * MORE).contains(&digit) || shift >= MOST_BITS {
            return Err(format!(
                "a mask as text has a number that is none, at its character {:?}",
                byte as char
            ));
        }
        value |= (digit & (MORE - 1)) << shift;
        shift += DIGIT_BITS;
        if digit & MORE != 0 {
            continue;
        }
        if digit & SIGN != 0 {
            value -= 1 << shift;
        }
        let before = if runs.len() > 2 { runs.get(runs.len() - 2).copied().unwrap_or_default() } else { 0 };
        value += i64::from(before);
        runs.push(u32::try_from(value).map_err(|_| format!("a mask as text has a run of {value} pixels"))?);
        (value, shift) = (0, 0);
    }
    if shift != 0 {
        return Err("a mask as text ends within a number".to_owned());
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polygons_cover_what_is_inside_of_them() {
        let mut masks = Masks::new([6, 5]).unwrap();
        masks.add_polygon(3, &[[1.0, 1.0], [4.0, 1.0], [4.0, 3.0], [1.0, 3.0]]).unwrap();
        let inside = |row, column| (1..3).contains(&row) && (1..4).contains(&column);
        let expected = (0..30).map(|i| if inside(i / 6, i % 6) { 3 } else { 0 });
        assert_eq!(masks.classes().unwrap(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn runs_count_where_there_are_no_polygons() {
        let mut masks = Masks::new([2, 3]).unwrap();
        masks.set_runs(1, &[0, 6]).unwrap();
        masks.set_runs(1, &[2, 3, 1]).unwrap();
        masks.set_runs(2, &[0, 6]).unwrap();
        masks.add_polygon(2, &[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]).unwrap();
        assert!(masks.set_runs(2, &[2, 3]).unwrap_err().contains("5 pixels, expected 6"));
        assert!(masks.set_runs(2, &[u32::MAX; 4]).is_err());
        assert_eq!(masks.classes().unwrap(), [2, 1, 0, 1, 1, 0]);
        assert!(Masks::new([0, 3]).unwrap().classes().unwrap().is_empty());
    }

    #[test]
    fn lower_classes_stay_at_the_end() {
        // What DALI 2.4 gives.
        let cases: [(&[&[u32]], &[i32]); 4] = [
            (&[&[2, 2], &[1, 3]], &[0, 2, 1, 1]),
            (&[&[1, 1, 1, 1], &[0, 4]], &[2, 2, 2, 1]),
            (&[&[3, 1], &[2, 1, 1]], &[0, 0, 2, 1]),
            (&[&[0, 3, 1, 1, 1], &[4, 2], &[1, 2, 1, 2], &[1, 5]], &[1, 4, 4, 4, 4, 2]),
        ];
        for (runs, expected) in cases {
            let mut masks = Masks::new([1, expected.len() as u32]).unwrap();
            (1..).zip(runs).for_each(|(class, counts)| masks.set_runs(class, counts).unwrap());
            assert_eq!(masks.classes().unwrap(), expected);
        }
    }

    #[test]
    fn texts_are_runs() {
        assert_eq!(runs_of_text("52203").unwrap(), [5, 2, 2, 2, 5]);
        assert!(runs_of_text("").unwrap().is_empty());
        for wrong in ["5P", "5 ", "5\u{e9}", "55O", "PPPPPPPPPPPPPPP0", "oooooooo0", "0000O"] {
            assert!(runs_of_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn masks_that_are_hostile_are_errors() {
        assert!(Masks::new([1 << 20, 1 << 20]).is_err());
        for far in [f32::MAX, f32::INFINITY, f32::NAN, -1e17] {
            let mut masks = Masks::new([6, 5]).unwrap();
            assert!(masks.add_polygon(1, &[[far, 0.0], [0.0, far]]).is_err(), "{far}");
        }
        let mut masks = Masks::new([1 << 11, 1 << 11]).unwrap();
        masks.add_polygon(1, &[]).unwrap();
        masks.add_polygon(1, &[[-1e14, -1e14], [1e14, 1e14], [1e14, -1e14]]).unwrap();
        let whole = [[0.0, 0.0], [1e4, 0.0], [1e4, 1e4], [0.0, 1e4]];
        (0..100).for_each(|_| masks.add_polygon(1, &whole).unwrap());
        masks.steps_left = 1 << 20;
        assert!(masks.classes().unwrap_err().contains("steps"));
    }
}
