//! One image's resize: which passes there are, of which pixels, in which order. It must not know weights or vectors.

use super::alpha;
use super::axis::{Axis, PILLOW_BITS};
use super::filters::{Curve, Line, weights};
use super::libraries::{Arithmetic, Filter, Method};
use super::nearest;
use super::opencv::{self, Kernel};
use super::opencv_area;
use super::passes;
use super::rows::Rows;
use super::{floats, turn::LINES};
use crate::error::{Error, Result};
use crate::limits;
use crate::waiting::{Effort, Watch};

pub(super) const Y: usize = 0;
pub(super) const X: usize = 1;

/// Channels that OpenCV's `INTER_AREA` takes.
const MAX_AREA_CHANNELS: usize = 4;

/// Nanoseconds of one core for each weight that is made, and for each product.
const WEIGHT: f64 = 10.0;
const PRODUCT: f64 = 0.3;

/// Bytes of a weight, in float64 and as it is used, and of a place in a list of them.
const TAP_BYTES: usize = 16;

/// Bytes for each element of a row that OpenCV's passes keep: four rows of sums.
const OPENCV_LINES: f64 = 16.0;

/// What becomes of an image. Pairs are rows, then columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// Whose rules.
    pub arithmetic: Arithmetic,
    /// The filter, by the library's rules.
    pub filter: Filter,
    /// Rows and columns of the image.
    pub image: [usize; 2],
    /// Elements of a pixel. Pillow takes the last of 2 or 4 for alpha.
    pub channels: usize,
    /// The first pixel that is there, and the end: what lies outside takes no part.
    pub crop: [(usize, usize); 2],
    /// The region that is resized, from start to end, in pixels of the crop. Pixels around it take part in Pillow; others resize the whole crop.
    pub region: [(f32, f32); 2],
    /// Rows and columns that the region becomes.
    pub size: [usize; 2],
    /// Those of them that are made: the first and the end.
    pub window: [(usize, usize); 2],
    /// Whether the last row (column) of the window is made first.
    pub mirror: [bool; 2],
}

/// Memory that a [`Task`] needs while it runs. Kept between runs it is allocated once; it holds no state.
#[derive(Default)]
pub struct Scratch {
    /// The image with colours multiplied by their alpha.
    multiplied: Vec<u8>,
    /// Between the passes.
    bytes: Vec<u8>,
    floats: Vec<f32>,
    turned: passes::Turned,
    lines: opencv::Lines,
}

impl Scratch {
    /// Bytes that are kept for the next run.
    pub fn bytes(&self) -> usize {
        self.multiplied.capacity()
            + self.bytes.capacity()
            + self.floats.capacity() * size_of::<f32>()
            + self.turned.bytes()
            + self.lines.bytes()
    }
}

impl Task {
    /// The whole image to `size`.
    pub fn whole(
        arithmetic: Arithmetic,
        filter: Filter,
        image: [usize; 2],
        channels: usize,
        size: [usize; 2],
    ) -> Self {
        Self {
            arithmetic,
            filter,
            image,
            channels,
            crop: image.map(|extent| (0, extent)),
            region: image.map(|extent| (0.0, extent as f32)),
            size,
            window: size.map(|extent| (0, extent)),
            mirror: [false; 2],
        }
    }

    /// Rows and columns that are made.
    pub fn made(&self) -> [usize; 2] {
        self.window.map(|(start, end)| end.saturating_sub(start))
    }

    /// Whether it can be done; cheap, and before any weight is made.
    ///
    /// # Errors
    /// When the library does not have the filter or resizes no such image, a size is 0 or too large, a region or a window does not lie inside, or
    /// it needs more than [`limits::MAX_SAMPLE_BYTES`] of memory.
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
                between + multiplied + LINES as f64 * (row + made_row)
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

    /// Pixels of the crop.
    pub(super) fn extent(&self, d: usize) -> usize {
        self.crop[d].1.saturating_sub(self.crop[d].0)
    }

    /// Whether pixels stay as they are.
    pub(super) fn is_copy(&self) -> bool {
        let is_whole = |d: usize| self.region[d] == (0.0, self.extent(d) as f32);
        (0..2).all(|d| self.extent(d) == self.size[d] && is_whole(d))
    }

    pub(super) fn line(&self, d: usize) -> Line {
        let (start, end) = self.region[d];
        Line { length: self.extent(d), start, end, outputs: self.size[d] }
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

    /// Resizes `src`, a dense image (H, W, C), to `dst`, [`Task::made`] pixels.
    ///
    /// # Errors
    /// Those of [`Task::check`]; internal when a slice has another size; when nobody waits any more.
    pub fn run(&self, src: &[u8], dst: &mut [u8], scratch: &mut Scratch, watch: &Watch<'_>) -> Result<()> {
        self.check()?;
        let elements = |[height, width]: [usize; 2]| height * width * self.channels;
        for (expected, found) in [(elements(self.image), src.len()), (elements(self.made()), dst.len())] {
            if expected != found {
                return Err(Error::internal(format!(
                    "an image to resize has {expected} elements, its buffer has {found}"
                )));
            }
        }
        let Some(method) = self.arithmetic.method(self.filter) else {
            return Err(Error::internal("a filter that was not checked"));
        };
        let (stride, c) = (self.image[X] * self.channels, self.channels);
        let src = Rows::dense(src, stride).part(self.crop[Y], (self.crop[X].0 * c, self.crop[X].1 * c));
        let extent = [Y, X].map(|d| self.extent(d));
        if self.is_copy() {
            let places = extent.map(|extent| (0..extent).map(Some).collect());
            return self.copy(&src, places, dst, watch);
        }
        match method {
            Method::Nearest(rule) => {
                let lines = [Y, X].map(|d| self.line(d));
                let is_small = nearest::is_small(lines);
                let places = lines.map(|line| nearest::places(&line, rule, is_small));
                self.copy(&src, places, dst, watch)
            }
            Method::Sums(curve) if self.arithmetic.is_pillow() && alpha::has_alpha(c) => {
                let mut multiplied = std::mem::take(&mut scratch.multiplied);
                multiplied.resize(extent[Y] * src.len, 0);
                for (y, to) in multiplied.chunks_exact_mut(src.len).enumerate() {
                    alpha::multiply(src.row(y), c, to);
                }
                let result = self.sums(&Rows::dense(&multiplied, src.len), curve, dst, scratch, watch);
                scratch.multiplied = multiplied;
                alpha::divide(dst, c);
                result
            }
            Method::Sums(curve) => self.sums(&src, curve, dst, scratch, watch),
            Method::Floats(cubic) => self.floats(&src, cubic, dst, scratch, watch),
            Method::OpenCv(_) | Method::Means => self.opencv(&src, method, dst, scratch, watch),
        }
    }

    /// Copies the pixels at `places`, of which there are those of the whole output.
    fn copy(
        &self,
        src: &Rows<'_>,
        mut places: [Vec<Option<usize>>; 2],
        dst: &mut [u8],
        watch: &Watch<'_>,
    ) -> Result<()> {
        for (d, places) in places.iter_mut().enumerate() {
            places.truncate(self.window[d].1);
            places.drain(..self.window[d].0);
            if self.mirror[d] {
                places.reverse();
            }
        }
        nearest::copy(src, self.channels, [&places[Y], &places[X]], dst, watch)
    }

    /// The weights of one axis, for the window, and their bits.
    fn axis(&self, d: usize, curve: Curve) -> (Axis<i32>, u32) {
        let (axis, bits) = integer_axis(&self.line(d), curve, self.arithmetic.is_pillow());
        (axis.part(self.window[d], self.mirror[d]), bits)
    }

    fn sums(
        &self,
        src: &Rows<'_>,
        curve: Curve,
        dst: &mut [u8],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let c = self.channels;
        let [(rows, row_bits), (columns, column_bits)] = [Y, X].map(|d| self.axis(d, curve));
        let Scratch { bytes: between, turned, .. } = scratch;
        if self.rows_first() {
            let (first, end) = columns.span();
            let src = src.part((0, src.count), (first * c, end * c));
            between.resize(rows.len() * src.len, 0);
            passes::down(&src, &rows, row_bits, between, watch)?;
            let between = Rows::dense(between, src.len);
            passes::across(&between, c, &columns.from(first), column_bits, dst, turned, watch)
        } else {
            let (first, end) = rows.span();
            let row_len = columns.len() * c;
            between.resize((end - first) * row_len, 0);
            let src = src.part((first, end), (0, src.len));
            passes::across(&src, c, &columns, column_bits, between, turned, watch)?;
            passes::down(&Rows::dense(between, row_len), &rows.from(first), row_bits, dst, watch)
        }
    }

    /// Pillow 13 makes the rows first where the height shrinks by more pixels than twice what the width does.
    pub(super) fn rows_first(&self) -> bool {
        let shrinks = [Y, X].map(|d| self.extent(d) as i64 - self.size[d] as i64);
        self.arithmetic == Arithmetic::Pillow13 && shrinks[Y] > 0 && shrinks[Y] > 2 * shrinks[X]
    }

    fn floats(
        &self,
        src: &Rows<'_>,
        cubic: bool,
        dst: &mut [u8],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let [rows, columns] = [Y, X].map(|d| {
            floats::weights(self.extent(d), self.size[d], cubic).part(self.window[d], self.mirror[d])
        });
        let (first, end) = rows.span();
        let row_len = columns.len() * self.channels;
        let between = &mut scratch.floats;
        between.resize((end - first) * row_len, 0.0);
        let src = src.part((first, end), (0, src.len));
        floats::across(&src, self.channels, &columns, between, watch)?;
        floats::down(between, row_len, &rows.from(first), dst, watch)
    }

    /// OpenCV's passes make the whole output, since where a pixel lies in its row decides how it is rounded.
    fn opencv(
        &self,
        src: &Rows<'_>,
        method: Method,
        dst: &mut [u8],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let is_all = self.made() == self.size && self.mirror == [false; 2];
        if is_all {
            return self.opencv_whole(src, method, dst, &mut scratch.lines, watch);
        }
        let row_len = self.size[X] * self.channels;
        scratch.bytes.resize(self.size[Y] * row_len, 0);
        self.opencv_whole(src, method, &mut scratch.bytes, &mut scratch.lines, watch)?;
        let places = self.size.map(|extent| (0..extent).map(Some).collect());
        self.copy(&Rows::dense(&scratch.bytes, row_len), places, dst, watch)
    }

    fn opencv_whole(
        &self,
        src: &Rows<'_>,
        method: Method,
        dst: &mut [u8],
        lines: &mut opencv::Lines,
        watch: &Watch<'_>,
    ) -> Result<()> {
        match self.opencv_way(method) {
            Way::Whole(scale) => {
                opencv_area::whole_means(src, self.channels, scale, self.size[X], dst, watch)
            }
            Way::Means => opencv_area::means(src, self.channels, self.size, dst, watch),
            Way::Kernel(kernel) => opencv::resize(src, self.channels, self.size, kernel, dst, lines, watch),
        }
    }

    /// How OpenCV resizes to this size with the filter of `method`.
    pub(super) fn opencv_way(&self, method: Method) -> Way {
        let extent = [Y, X].map(|d| self.extent(d));
        let shrinks = (0..2).all(|d| extent[d] >= self.size[d]);
        match (method, opencv_area::whole_scale(extent, self.size)) {
            // Halves are the same for both filters.
            (Method::Means, Some(scale)) if shrinks => Way::Whole(scale),
            (Method::OpenCv(Kernel::Linear), Some([2, 2])) => Way::Whole([2, 2]),
            (Method::Means, _) if shrinks => Way::Means,
            (Method::OpenCv(kernel), _) => Way::Kernel(kernel),
            _ => Way::Kernel(Kernel::LinearOfArea),
        }
    }
}

/// How OpenCV resizes an image.
pub(super) enum Way {
    /// Means of so many whole rows and columns.
    Whole([usize; 2]),
    /// Means of parts of pixels.
    Means,
    Kernel(Kernel),
}

/// The weights of all outputs of a line, and the bits behind their point.
pub(super) fn integer_axis(line: &Line, curve: Curve, as_pillow: bool) -> (Axis<i32>, u32) {
    let is_whole = line.start == 0.0 && line.end == line.outputs as f32;
    let axis = if is_whole && line.outputs == line.length {
        // Such a pass is left out: a weight of 1 changes nothing.
        Axis::identity(line.outputs, 1.0)
    } else {
        weights(line, curve)
    };
    let bits = if as_pillow { PILLOW_BITS } else { axis.torchvision_bits() };
    (axis.fixed(bits), bits)
}

#[cfg(test)]
mod tests {
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
