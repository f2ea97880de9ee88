//! The search for a random window that bounding boxes survive, as DALI's `RandomBBoxCrop` does it. It knows boxes and
//! random numbers, no tensors and no layouts.

use crate::cpu::random::standard::shuffle;
use crate::cpu::random::{Philox, canonical_f32, uniform_int};
use crate::error::{Error, Result};
use crate::limits;

/// A box of relative coordinates in `N` dimensions: x, y and perhaps z.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Region<const N: usize> {
    pub(super) low: [f32; N],
    pub(super) high: [f32; N],
}

impl<const N: usize> Region<N> {
    /// All of an image.
    const WHOLE: Self = Self { low: [0.0; N], high: [1.0; N] };

    /// What is left when nothing was found.
    const NOTHING: Self = Self { low: [0.0; N], high: [0.0; N] };

    fn size(&self) -> [f32; N] {
        std::array::from_fn(|d| self.high[d] - self.low[d])
    }

    fn volume(&self) -> f32 {
        self.size().into_iter().product()
    }

    /// The volume of what both have.
    fn shared(&self, other: &Self) -> f32 {
        let mut volume = 1.0;
        for d in 0..N {
            let side = self.high[d].min(other.high[d]) - self.low[d].max(other.low[d]);
            if side.is_nan() || side <= 0.0 {
                return 0.0;
            }
            volume *= side;
        }
        volume
    }

    /// The volume that both have, over that of both together.
    pub(super) fn overlap(&self, other: &Self) -> f32 {
        match self.shared(other) {
            0.0 => 0.0,
            shared => shared / (other.volume() + self.volume() - shared),
        }
    }

    /// Whether a box's center lies in it. On the near edge it does, on the far edge it does not.
    fn has_center_of(&self, other: &Self) -> bool {
        (0..N).all(|d| (self.low[d]..self.high[d]).contains(&(0.5 * (other.low[d] + other.high[d]))))
    }

    /// What is left of `other` in this window, relative to it.
    pub(super) fn cut(&self, other: &Self) -> Self {
        let size = self.size();
        let relative = |at: &[f32; N]| {
            std::array::from_fn(|d| (at[d].min(self.high[d]).max(self.low[d]) - self.low[d]) / size[d])
        };
        Self { low: relative(&other.low), high: relative(&other.high) }
    }
}

/// How well a window covers a box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Metric {
    /// The volume that both have, over that of both together.
    IntersectionOverUnion,
    /// The part of the box that lies in the window.
    Overlap,
}

/// Which windows are drawn, and which of them are good.
#[derive(Debug)]
pub(super) struct Rules {
    /// Least and largest side, relative to the image.
    pub(super) scaling: [f32; 2],
    /// Least and largest ratio of x to y; or of x to y, x to z and y to z.
    pub(super) ratios: Vec<[f32; 2]>,
    /// What is drawn first is which of these a window must reach,
    pub(super) thresholds: Vec<f32>,
    /// or, as one choice more, that the whole image is taken.
    pub(super) may_keep_all: bool,
    /// Windows that are drawn for one of the choices.
    pub(super) attempts: usize,
    /// Windows after which the last one is taken that was best.
    pub(super) total: Option<usize>,
    pub(super) metric: Metric,
    /// Whether all boxes must reach the threshold; else one is enough.
    pub(super) all_boxes: bool,
    /// The part of a box that must lie in the window for the box to stay. Without: its center must.
    pub(super) least_part: Option<f32>,
}

/// Sizes in pixels, as far as they are given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pixels<const N: usize> {
    /// Of the image.
    pub(super) image: Option<[i32; N]>,
    /// Of the window, when it is not drawn.
    pub(super) window: Option<[i32; N]>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found<const N: usize> {
    /// The window, relative to the image.
    pub(super) window: Region<N>,
    /// Where it begins and how large it is: in pixels if its size was given in pixels, else relative.
    pub(super) anchor: [f32; N],
    pub(super) size: [f32; N],
    /// The boxes that stay.
    pub(super) kept: Vec<usize>,
}

impl<const N: usize> Found<N> {
    fn relative(window: Region<N>, kept: Vec<usize>) -> Self {
        Self { window, anchor: window.low, size: window.size(), kept }
    }
}

/// The dimensions that a ratio is of, in the order of ratios.
const PAIRS: [[usize; 2]; 3] = [[0, 1], [0, 2], [1, 2]];

impl Rules {
    /// Draws windows for `boxes` until one is good.
    ///
    /// # Errors
    /// When that takes too long.
    pub(super) fn find<const N: usize>(
        &self,
        random: &mut Philox,
        boxes: &[Region<N>],
        pixels: Pixels<N>,
    ) -> Result<Found<N>> {
        let choices = self.thresholds.len() + usize::from(self.may_keep_all);
        let (mut taken, mut best) = (Found::relative(Region::NOTHING, Vec::new()), -1.0);
        let mut tried = 0;
        loop {
            let choice = uniform_int(random, choices.saturating_sub(1) as u32) as usize;
            let Some(&threshold) = self.thresholds.get(choice) else {
                return Ok(Found::relative(Region::WHOLE, (0..boxes.len()).collect()));
            };
            // As in DALI: a window is taken that reaches the threshold, or is better than the last one that was taken,
            // and windows are drawn on when one is good.
            let mut is_good = false;
            for _ in 0..self.attempts {
                tried += 1;
                if tried * (boxes.len() + 1) > limits::MAX_BOX_COMPARISONS {
                    return Err(Error::invalid(format!(
                        "no window was found for {} boxes in {tried} attempts",
                        boxes.len()
                    )));
                }
                let Some(mut candidate) = self.draw(random, pixels) else { continue };
                if boxes.is_empty() {
                    (taken, is_good) = (candidate, true);
                    continue;
                }
                let metric = self.worth(&candidate.window, boxes);
                if metric >= threshold || metric > best {
                    candidate.kept = self.kept(&candidate.window, boxes);
                    is_good = metric >= threshold && !candidate.kept.is_empty();
                    (taken, best) = (candidate, metric);
                }
            }
            if is_good || self.total.is_some_and(|total| tried >= total) {
                return Ok(taken);
            }
        }
    }

    /// The next window, with no boxes kept; `None` if its sides have a wrong ratio.
    fn draw<const N: usize>(&self, random: &mut Philox, pixels: Pixels<N>) -> Option<Found<N>> {
        if let (Some(window), Some(image)) = (pixels.window, pixels.image) {
            let anchor: [f32; N] = std::array::from_fn(|d| {
                match i64::from(image[d]) - i64::from(window[d]) {
                    // Nothing is drawn where there is no choice, so that the next dimension gets the number.
                    0 => 0.0,
                    room => (room.min(0) + i64::from(uniform_int(random, room.unsigned_abs() as u32))) as f32,
                }
            });
            let size = window.map(|side| side as f32);
            let low: [f32; N] = std::array::from_fn(|d| anchor[d] / image[d] as f32);
            let high = std::array::from_fn(|d| low[d] + size[d] / image[d] as f32);
            return Some(Found { window: Region { low, high }, anchor, size, kept: Vec::new() });
        }
        let [least, most] = self.scaling;
        let drawn: [f32; N] = std::array::from_fn(|_| canonical_f32(random, least, most));
        let image = pixels.image.map_or([1.0; N], |image| image.map(|side| side as f32));
        let mut sides: [f32; N] = std::array::from_fn(|d| drawn[d] * image[d]);
        let is_changed = self.settle_fixed_ratios(random, &mut sides);
        for (range, [a, b]) in self.pairs::<N>() {
            // A fixed ratio that rounding has changed is a wrong one as well, as in DALI.
            if !(range[0]..=range[1]).contains(&(sides[a] / sides[b])) {
                return None;
            }
        }
        let sides = if is_changed { std::array::from_fn(|d| sides[d] / image[d]) } else { drawn };
        let low: [f32; N] = std::array::from_fn(|d| canonical_f32(random, 0.0, 1.0 - sides[d]));
        let high = std::array::from_fn(|d| low[d] + sides[d]);
        Some(Found::relative(Region { low, high }, Vec::new()))
    }

    /// The ratios with the dimensions that they are of.
    fn pairs<const N: usize>(&self) -> impl Iterator<Item = ([f32; 2], [usize; 2])> + '_ {
        let count = if N == 3 { 3 } else { 1 };
        self.ratios.iter().cycle().copied().zip(PAIRS).take(count)
    }

    /// Gives the sides those ratios that leave no choice; the longest side stays as long. Which side follows from which
    /// is drawn, by numbers that stay with `random` for others, as in DALI. False if there are no such ratios.
    fn settle_fixed_ratios<const N: usize>(&self, random: &Philox, sides: &mut [f32; N]) -> bool {
        let mut fixed = [[None; N]; N];
        for ([least, most], [a, b]) in self.pairs::<N>() {
            if least == most {
                fixed[a][b] = Some(least);
                fixed[b][a] = Some((1.0 / f64::from(least)) as f32);
            }
        }
        if fixed.iter().flatten().all(Option::is_none) {
            return false;
        }
        let mut order: [usize; N] = std::array::from_fn(|d| d);
        shuffle(&mut random.clone(), &mut order);
        let longest = |sides: &[f32; N]| sides.iter().copied().fold(0.0, f32::max);
        let before = longest(sides);
        for (i, &from) in order.iter().enumerate() {
            for &to in &order[i + 1..] {
                if let Some(ratio) = fixed[to][from].filter(|&ratio| ratio > 0.0) {
                    sides[to] = sides[from] * ratio;
                }
            }
        }
        let after = longest(sides);
        *sides = sides.map(|side| before * side / after);
        true
    }

    /// The metric of a window: that of the worst box, or of the best.
    fn worth<const N: usize>(&self, window: &Region<N>, boxes: &[Region<N>]) -> f32 {
        let each = boxes.iter().map(|one| match self.metric {
            Metric::IntersectionOverUnion => window.overlap(one),
            Metric::Overlap => match window.shared(one) {
                0.0 => 0.0,
                shared => shared / one.volume(),
            },
        });
        if self.all_boxes { each.fold(f32::INFINITY, f32::min) } else { each.fold(0.0, f32::max) }
    }

    fn kept<const N: usize>(&self, window: &Region<N>, boxes: &[Region<N>]) -> Vec<usize> {
        let stays = |one: &Region<N>| match self.least_part {
            None => window.has_center_of(one),
            Some(least) => {
                let shared = window.shared(one);
                shared > 0.0 && shared / one.volume() >= least
            }
        };
        (0..boxes.len()).filter(|&i| stays(&boxes[i])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            scaling: [0.1, 1.0],
            ratios: vec![[0.5, 0.5]],
            thresholds: vec![0.0],
            may_keep_all: false,
            attempts: 1,
            total: None,
            metric: Metric::Overlap,
            all_boxes: true,
            least_part: None,
        }
    }

    const FREE: Pixels<2> = Pixels { image: None, window: None };

    #[test]
    fn a_fixed_ratio_is_that_of_the_sides() {
        let boxes = [Region { low: [0.4; 2], high: [0.6; 2] }];
        let found = rules().find(&mut Philox::new(1, 0), &boxes, FREE).unwrap();
        assert!((found.size[0] / found.size[1] - 0.5).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn nothing_is_drawn_where_there_is_no_choice() {
        let place = |window| {
            let pixels = Pixels { image: Some([100, 100]), window: Some(window) };
            rules().draw(&mut Philox::new(1, 0), pixels).unwrap().anchor
        };
        let [x, y] = place([50, 100]);
        assert_eq!((place([100, 50]), y), ([0.0, x], 0.0));
    }

    #[test]
    fn a_center_on_the_far_edge_is_outside() {
        let window = Region { low: [0.0; 2], high: [0.5; 2] };
        let at = |x: f32| window.has_center_of(&Region { low: [x - 0.25, 0.0], high: [x + 0.25, 0.5] });
        assert!(at(0.0) && at(0.25) && !at(0.5));
    }

    #[test]
    fn a_search_without_an_end_ends() {
        let boxes = [Region { low: [0.0; 2], high: [1.0; 2] }];
        let rules = Rules { thresholds: vec![1.0], ..rules() };
        let error = rules.find(&mut Philox::new(1, 0), &boxes, FREE).unwrap_err().to_string();
        assert!(error.contains("no window was found"), "{error}");
    }

    #[test]
    fn the_best_window_is_taken_when_attempts_are_counted() {
        let boxes = [Region { low: [0.0; 2], high: [1.0; 2] }];
        let rules = Rules { thresholds: vec![1.0], total: Some(20), ..rules() };
        let found = rules.find(&mut Philox::new(1, 0), &boxes, FREE).unwrap();
        assert!(found.window.volume() > 0.1, "{found:?}");
    }
}
