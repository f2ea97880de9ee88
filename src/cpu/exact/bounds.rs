//! What a resize may take: whether it can be done, its memory and its time. It must not know how it is done.

use super::filters::Curve;
use super::libraries::{Elements, Method};
use super::task::{Task, X, Y};
use super::{alpha, turn::LINES};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::limits;

/// Channels that OpenCV's `INTER_AREA` takes.
const MAX_AREA_CHANNELS: usize = 4;

/// Nanoseconds of one core for each weight that is made, and for each product.
const WEIGHT: f64 = 10.0;
const PRODUCT: f64 = 0.3;

/// Bytes of a weight, in float64 and as it is used, and of a place in a list of them.
const TAP_BYTES: usize = 16;

/// Bytes for each element of a row that OpenCV's passes keep: four rows of sums.
const OPENCV_LINES: f64 = 16.0;

impl Task {
    /// Whether it can be done; cheap, and before any weight is made.
    ///
    /// # Errors
    /// When the library does not have the filter or resizes no such image, a size is 0 or too large, a region or a
    /// window does not lie inside, or it needs more than [`limits::MAX_SAMPLE_BYTES`] of memory.
    pub fn check(&self) -> Result<()> {
        let (name, library) = (self.arithmetic.name(), self.arithmetic.library());
        let Some(method) = self.arithmetic.method(self.filter) else {
            let has: Vec<&str> = self.arithmetic.filters().map(|(name, _)| name).collect();
            return Err(Error::invalid(format!(
                "{library} (`arithmetic` is `{name}`) does not have the filter `{}`, expected one of {}",
                self.filter.name(),
                has.join(", ")
            )));
        };
        if self.elements != Elements::Bytes && self.arithmetic.is_pillow() && self.channels != 1 {
            return Err(Error::unsupported(format!(
                "Pillow (`arithmetic` is `{name}`) has images of {} with one channel only, found {}",
                self.elements.name(),
                self.channels
            )));
        }
        if let Some(gap) = self.reducing_gap
            && !(self.arithmetic.is_pillow() && self.elements == Elements::Bytes && gap >= 1.0)
        {
            return Err(Error::invalid(format!(
                "argument `reducing_gap` is {gap}, expected at least 1, Pillow's arithmetic and uint8 images, found {} and {}",
                library,
                self.elements.name()
            )));
        }
        for (what, [height, width]) in [("image", self.image), ("output", self.size), ("window", self.made())]
        {
            let elements = height.checked_mul(width).and_then(|n| n.checked_mul(self.channels));
            if !elements.is_some_and(|n| (1..=limits::MAX_SAMPLE_BYTES).contains(&n)) {
                return Err(Error::invalid(format!(
                    "cannot resize: the {what} has {height} x {width} pixels of {} channels",
                    self.channels
                )));
            }
        }
        for d in [Y, X] {
            let ((first, end), (start, stop)) = (self.crop[d], self.region[d]);
            let is_inside = first < end && end <= self.image[d] && 0.0 <= start && start < stop;
            if !is_inside || f64::from(stop) > (end - first) as f64 {
                return Err(Error::invalid(format!(
                    "{library} (`arithmetic` is `{name}`) resizes regions inside of the image only: pixels {start} to {stop} of {}",
                    end.saturating_sub(first)
                )));
            }
            if self.window[d].1 > self.size[d] {
                return Err(Error::invalid(format!(
                    "a window of pixels {} to {} leaves the resized image of {}",
                    self.window[d].0, self.window[d].1, self.size[d]
                )));
            }
            if self.taps(method, d).saturating_mul(self.size[d]) > limits::MAX_FILTER_TAPS {
                return Err(Error::invalid(format!(
                    "resizing {} pixels to {} needs more than {} weights",
                    self.image[d],
                    self.size[d],
                    limits::MAX_FILTER_TAPS
                )));
            }
        }
        if method == Method::Means && self.channels > MAX_AREA_CHANNELS {
            return Err(Error::unsupported(format!(
                "OpenCV's filter `area` (`arithmetic` is `opencv`) takes {MAX_AREA_CHANNELS} channels at most, found {}",
                self.channels
            )));
        }
        let memory = self.memory(method);
        if memory > limits::MAX_SAMPLE_BYTES as f64 {
            return Err(Error::invalid(format!(
                "resizing needs {memory} bytes of memory, more than the limit of {}",
                limits::MAX_SAMPLE_BYTES
            )));
        }
        Ok(())
    }

    /// Bytes that it takes at most, beside the image and what is made of it.
    fn memory(&self, method: Method) -> f64 {
        let (rows, c) = (self.extent(Y) as f64, self.channels as f64);
        let [height, width] = self.made().map(|extent| extent as f64);
        let (row, made_row) = (self.extent(X) as f64 * c, width * c);
        let axes: f64 = [Y, X].map(|d| (self.taps(method, d) * self.size[d] * TAP_BYTES) as f64).iter().sum();
        let passes = match method {
            Method::Nearest(_) => 0.0,
            Method::Sums(_) => {
                let between = if self.rows_first() { height * row } else { rows * made_row };
                let multiplied = if alpha::has_alpha(self.channels) { rows * row } else { 0.0 };
                let reduced = if self.reducing_gap.is_some() { rows * row } else { 0.0 };
                between * self.elements.size() as f64 + multiplied + reduced + LINES as f64 * (row + made_row)
            }
            Method::Floats(_) => rows * made_row * size_of::<f32>() as f64,
            Method::OpenCv(_) | Method::Means => {
                let whole_row = self.size[X] as f64 * c;
                (self.size[Y] as f64 + OPENCV_LINES) * whole_row
            }
        };
        axes + passes
    }

    /// Weights of an output, about.
    fn taps(&self, method: Method, d: usize) -> usize {
        match method {
            Method::Sums(curve) => self.line(d).taps(curve).min(self.extent(d)),
            Method::Floats(_) => self.line(d).taps(Curve::Bicubic).min(self.extent(d)),
            Method::Means => self.extent(d) / self.size[d] + 2,
            Method::Nearest(_) | Method::OpenCv(_) => 4,
        }
    }

    /// What it is expected to take.
    pub fn effort(&self) -> Effort {
        let Some(method) = self.arithmetic.method(self.filter) else { return Effort::default() };
        let [height, width] = self.made();
        let taps = [Y, X].map(|d| self.taps(method, d) as f64);
        let (row, rows) = ((width * self.channels) as f64, self.extent(Y) as f64);
        let products = row * rows * taps[X] + row * height as f64 * taps[Y];
        let weights = (taps[Y] * self.size[Y] as f64 + taps[X] * self.size[X] as f64) * WEIGHT;
        Effort::new(weights + products * PRODUCT, self.memory(method) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::libraries::{Arithmetic, Filter};
    use super::*;

    #[test]
    fn what_lies_between_the_passes_is_bounded() {
        // Image and output are small, and what is between them has 120 GB.
        let of = |arithmetic| {
            Task::whole(arithmetic, Filter::Linear, [4_000_000, 1], 1, [1, 30_000])
                .check()
                .unwrap_err()
                .to_string()
        };
        for arithmetic in [Arithmetic::Pillow, Arithmetic::Torchvision, Arithmetic::TorchvisionFloat] {
            assert!(of(arithmetic).contains("bytes of memory, more than the limit"), "{}", of(arithmetic));
        }
        assert!(Task::whole(Arithmetic::Pillow, Filter::Cubic, [4000, 6000], 4, [224, 224]).check().is_ok());
    }
}
