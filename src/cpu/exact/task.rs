//! One image's resize: which passes there are, of which pixels, in which order. It must not know weights or vectors.

use super::alpha;
use super::axis::{Axis, PILLOW_BITS};
use super::filters::{Curve, Line, weights};
use super::libraries::{Arithmetic, Elements, Filter, Method};
use super::nearest;
use super::opencv::{self, Kernel};
use super::opencv_area;
use super::passes;
use super::reduce::Reduction;
use super::rows::Rows;
use super::{floats, wide};
use crate::deadline::Watch;
use crate::error::{Error, Result};

pub(super) const Y: usize = 0;
pub(super) const X: usize = 1;

/// What becomes of an image. Pairs are rows, then columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// Whose rules.
    pub arithmetic: Arithmetic,
    /// The filter, by the library's rules.
    pub filter: Filter,
    /// What the image is made of, before and after.
    pub elements: Elements,
    /// Rows and columns of the image.
    pub image: [usize; 2],
    /// Elements of a pixel. Pillow takes the last of 2 or 4 for alpha.
    pub channels: usize,
    /// The first pixel that is there, and the end: what lies outside takes no part.
    pub crop: [(usize, usize); 2],
    /// The region that is resized, from start to end, in pixels of the crop. Pixels around it take part in Pillow;
    /// others resize the whole crop.
    pub region: [(f32, f32); 2],
    /// Rows and columns that the region becomes.
    pub size: [usize; 2],
    /// Those of them that are made: the first and the end.
    pub window: [(usize, usize); 2],
    /// Whether the last row (column) of the window is made first.
    pub mirror: [bool; 2],
    /// Pillow's argument: the image is reduced by whole factors before, as long as it stays so many times larger than
    /// the output. At least 1.
    pub reducing_gap: Option<f32>,
}

/// Memory that a [`Task`] needs while it runs. Kept between runs it is allocated once; it holds no state.
#[derive(Default)]
pub struct Scratch {
    /// The image with colours multiplied by their alpha.
    multiplied: Vec<u8>,
    reduced: Vec<u8>,
    /// Between the passes.
    bytes: Vec<u8>,
    words: Vec<u16>,
    floats: Vec<f32>,
    turned: passes::Turned,
    lines: opencv::Lines,
}

impl Scratch {
    /// Bytes that are kept for the next run.
    pub fn bytes(&self) -> usize {
        self.multiplied.capacity()
            + self.reduced.capacity()
            + self.bytes.capacity()
            + self.words.capacity() * size_of::<u16>()
            + self.floats.capacity() * size_of::<f32>()
            + self.turned.bytes()
            + self.lines.bytes()
    }
}

impl Task {
    /// The whole image of bytes to `size`.
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
            elements: Elements::Bytes,
            image,
            channels,
            crop: image.map(|extent| (0, extent)),
            region: image.map(|extent| (0.0, extent as f32)),
            size,
            window: size.map(|extent| (0, extent)),
            mirror: [false; 2],
            reducing_gap: None,
        }
    }

    /// Rows and columns that are made.
    pub fn made(&self) -> [usize; 2] {
        self.window.map(|(start, end)| end.saturating_sub(start))
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

    /// Resizes `src`, a dense image (H, W, C), to `dst`, [`Task::made`] pixels.
    ///
    /// # Errors
    /// Those of [`Task::check`]; internal when a slice has another size; when nobody waits any more.
    pub fn run(&self, src: &[u8], dst: &mut [u8], scratch: &mut Scratch, watch: &Watch<'_>) -> Result<()> {
        let (method, src) = self.begin(src, dst.len(), Elements::Bytes)?;
        let (c, extent) = (self.channels, [Y, X].map(|d| self.extent(d)));
        if self.is_copy() {
            return self.copy(&src, self.all(), dst, watch);
        }
        match method {
            Method::Nearest(rule) => self.copy(&src, self.nearest(rule), dst, watch),
            Method::Sums(curve) if self.arithmetic.is_pillow() && alpha::has_alpha(c) => {
                let mut multiplied = std::mem::take(&mut scratch.multiplied);
                multiplied.resize(extent[Y] * src.len, 0);
                for (y, to) in multiplied.chunks_exact_mut(src.len).enumerate() {
                    alpha::multiply(src.row(y), c, to);
                }
                let result =
                    self.reduced_sums(&Rows::dense(&multiplied, src.len), curve, dst, scratch, watch);
                scratch.multiplied = multiplied;
                alpha::divide(dst, c);
                result
            }
            Method::Sums(curve) => self.reduced_sums(&src, curve, dst, scratch, watch),
            Method::Floats(cubic) => self.floats(&src, cubic, dst, scratch, watch),
            Method::OpenCv(_) | Method::Means => self.opencv(&src, method, dst, scratch, watch),
        }
    }

    /// [`Task::run`] of an image of words: Pillow's mode `I;16`.
    ///
    /// # Errors
    /// As there.
    pub fn run_words(
        &self,
        src: &[u16],
        dst: &mut [u16],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let (method, src) = self.begin(src, dst.len(), Elements::Words)?;
        match method {
            _ if self.is_copy() => self.copy(&src, self.all(), dst, watch),
            Method::Nearest(_) => self.copy(&src, self.nearest(nearest::Rule::PillowWords), dst, watch),
            Method::Sums(curve) => {
                wide::sums(&src, self.passes(curve), self.arithmetic, dst, &mut scratch.words, watch)
            }
            _ => Err(Error::internal("words are resized by Pillow only")),
        }
    }

    /// [`Task::run`] of an image of floats: Pillow's mode `F`, or torchvision's tensors.
    ///
    /// # Errors
    /// As there.
    pub fn run_floats(
        &self,
        src: &[f32],
        dst: &mut [f32],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let (method, src) = self.begin(src, dst.len(), Elements::Floats)?;
        match method {
            _ if self.is_copy() => self.copy(&src, self.all(), dst, watch),
            Method::Nearest(rule) => self.copy(&src, self.nearest(rule), dst, watch),
            Method::Sums(curve) => {
                wide::sums(&src, self.passes(curve), self.arithmetic, dst, &mut scratch.floats, watch)
            }
            Method::Floats(cubic) => self.floats(&src, cubic, dst, scratch, watch),
            _ => Err(Error::internal("floats are resized by Pillow and torchvision only")),
        }
    }

    /// Checks what is asked for; the method, and the pixels of the crop.
    fn begin<'a, T>(&self, src: &'a [T], made: usize, elements: Elements) -> Result<(Method, Rows<'a, T>)> {
        self.check()?;
        let count = |[height, width]: [usize; 2]| height * width * self.channels;
        for (expected, found) in [(count(self.image), src.len()), (count(self.made()), made)] {
            if expected != found || elements != self.elements {
                return Err(Error::internal(format!(
                    "an image to resize has {expected} {}, its buffer has {found} {}",
                    self.elements.name(),
                    elements.name()
                )));
            }
        }
        let Some(method) = self.arithmetic.method(self.filter) else {
            return Err(Error::internal("a filter that was not checked"));
        };
        let (stride, c) = (self.image[X] * self.channels, self.channels);
        let columns = (self.crop[X].0 * c, self.crop[X].1 * c);
        Ok((method, Rows::dense(src, stride).part(self.crop[Y], columns)))
    }

    /// All rows and columns of the crop.
    fn all(&self) -> [Vec<Option<usize>>; 2] {
        [Y, X].map(|d| (0..self.extent(d)).map(Some).collect())
    }

    /// The rows and columns that are the nearest.
    fn nearest(&self, rule: nearest::Rule) -> [Vec<Option<usize>>; 2] {
        let lines = [Y, X].map(|d| self.line(d));
        let is_small = nearest::is_small(lines);
        lines.map(|line| nearest::places(&line, rule, is_small))
    }

    /// Copies the pixels at `places`, of which there are those of the whole output.
    fn copy<T: Copy + Default>(
        &self,
        src: &Rows<'_, T>,
        mut places: [Vec<Option<usize>>; 2],
        dst: &mut [T],
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

    /// The passes of sums of float64, for the window.
    fn passes(&self, curve: Curve) -> wide::Passes {
        let [rows, columns] =
            [Y, X].map(|d| line_weights(&self.line(d), curve).part(self.window[d], self.mirror[d]));
        wide::Passes { rows, columns, rows_first: self.rows_first() }
    }

    /// The weights of one axis, for the window, and their bits.
    fn axis(&self, d: usize, curve: Curve) -> (Axis<i32>, u32) {
        let (axis, bits) = integer_axis(&self.line(d), curve, self.arithmetic.is_pillow());
        (axis.part(self.window[d], self.mirror[d]), bits)
    }

    /// [`Task::sums`] of pixels that are reduced before where Pillow does so.
    fn reduced_sums(
        &self,
        src: &Rows<'_>,
        curve: Curve,
        dst: &mut [u8],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        // Pillow before 13 forgets it where there is alpha.
        let forgets = self.arithmetic == Arithmetic::Pillow && alpha::has_alpha(self.channels);
        let gap = self.reducing_gap.filter(|_| !forgets);
        let lines = [Y, X].map(|d| self.line(d));
        let Some(reduction) = gap.and_then(|gap| Reduction::new(lines, curve, gap)) else {
            return self.sums(src, curve, dst, scratch, watch);
        };
        let (image, c) = (reduction.size(), self.channels);
        let crop = image.map(|extent| (0, extent));
        let rest = Task { image, crop, region: reduction.region(), reducing_gap: None, ..*self };
        let mut reduced = std::mem::take(&mut scratch.reduced);
        reduced.resize(rest.image[Y] * rest.image[X] * c, 0);
        let made = reduction.run(src, c, &mut reduced, watch);
        let rows = Rows::dense(&reduced, rest.image[X] * c);
        let result = made.and_then(|()| rest.sums(&rows, curve, dst, scratch, watch));
        scratch.reduced = reduced;
        result
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

    fn floats<T: floats::Pixel>(
        &self,
        src: &Rows<'_, T>,
        cubic: bool,
        dst: &mut [T],
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

/// The weights of all outputs of a line. A line that stays as it is has weights of 1: such a pass changes nothing.
fn line_weights(line: &Line, curve: Curve) -> Axis<f64> {
    let is_whole = line.start == 0.0 && line.end == line.outputs as f32;
    if is_whole && line.outputs == line.length {
        Axis::identity(line.outputs, 1.0)
    } else {
        weights(line, curve)
    }
}

/// The same in fixed point, and the bits behind their point.
pub(super) fn integer_axis(line: &Line, curve: Curve, as_pillow: bool) -> (Axis<i32>, u32) {
    let axis = line_weights(line, curve);
    let bits = if as_pillow { PILLOW_BITS } else { axis.torchvision_bits() };
    (axis.fixed(bits), bits)
}
