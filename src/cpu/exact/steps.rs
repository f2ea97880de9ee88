//! What a [`Task`] does, for those who do it elsewhere: tables of weights, and what becomes of sums. It must not know
//! devices.

use super::alpha;
use super::axis::Axis;
use super::filters::{Curve, Line};
use super::floats;
use super::libraries::Method;
use super::nearest::{self, Rule};
use super::opencv::{self, Kernel};
use super::opencv_area;
use super::task::{Task, Way, X, Y, integer_axis};
use crate::error::{Error, Result};

/// How sums of weighted pixels are made and become bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sums {
    /// There are none: pixels are copied.
    Copies,
    /// Of integers with [`Table::bits`] behind the point: each pass makes bytes.
    Bytes,
    /// Of float32, as torch adds them.
    Floats,
    /// Of float32, with every product rounded.
    Means,
    /// Of integers, as OpenCV's linear filter.
    Linear,
    /// Of integers or float32 by where an element lies in a row of the whole output: so many are made as floats.
    Cubic(usize),
    /// Means of whole pixels: what sums are multiplied by. `None`: of four pixels, whose halves are rounded up.
    Whole(Option<f32>),
}

/// The passes of a resize.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps {
    /// How sums are made.
    pub sums: Sums,
    /// What makes the tables of rows and of columns.
    pub axes: [AxisTask; 2],
    /// Whether rows are made of rows first, then columns of columns.
    pub rows_first: bool,
    /// Whether colours are multiplied by alpha, the last element of a pixel, before, and divided by it afterwards.
    pub has_alpha: bool,
}

/// What decides the table of an axis: the same one makes the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AxisTask {
    weighing: Weighing,
    length: usize,
    /// The bits of where the region starts and ends.
    region: [u32; 2],
    outputs: usize,
    window: (usize, usize),
    mirror: bool,
}

/// What an output is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Weighing {
    /// Its own pixel.
    Same,
    Nearest {
        rule: Rule,
        is_small: bool,
    },
    Integers {
        curve: Curve,
        as_pillow: bool,
    },
    Floats {
        cubic: bool,
    },
    /// So many pixels.
    Whole(usize),
    Shares,
    /// OpenCV's weights, across or down.
    Kernel {
        kernel: Kernel,
        across: bool,
    },
}

/// The weights of an axis, or the pixels that are copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Outputs.
    pub outputs: usize,
    /// Pixels of the axis. One beyond an end is the one at that end.
    pub length: usize,
    /// The first pixel that has a weight, and the end of them.
    span: (usize, usize),
    /// Bits behind the point of integers, where sums are rounded to bytes.
    pub bits: u32,
    /// Of each output its first pixel, then of each how many weights it has, then of each weight in turn those of all
    /// outputs: integers or the bits of float32. For copies of each output its pixel, -1: there is none, and it is 0.
    pub words: Vec<i32>,
}

impl Task {
    /// What it does, which was checked.
    ///
    /// # Errors
    /// Internal, for a filter that was not checked.
    pub fn steps(&self) -> Result<Steps> {
        let Some(method) = self.arithmetic.method(self.filter) else {
            return Err(Error::internal("a filter that was not checked"));
        };
        let both = |sums, weighing: Weighing| Steps {
            sums,
            axes: [Y, X].map(|d| self.axis_task(d, weighing)),
            rows_first: false,
            has_alpha: false,
        };
        Ok(match method {
            _ if self.is_copy() => both(Sums::Copies, Weighing::Same),
            Method::Nearest(rule) => {
                let is_small = nearest::is_small([Y, X].map(|d| self.line(d)));
                both(Sums::Copies, Weighing::Nearest { rule, is_small })
            }
            Method::Sums(curve) => {
                let as_pillow = self.arithmetic.is_pillow();
                Steps {
                    rows_first: self.rows_first(),
                    has_alpha: as_pillow && alpha::has_alpha(self.channels),
                    ..both(Sums::Bytes, Weighing::Integers { curve, as_pillow })
                }
            }
            Method::Floats(cubic) => both(Sums::Floats, Weighing::Floats { cubic }),
            Method::OpenCv(_) | Method::Means => match self.opencv_way(method) {
                Way::Whole(scale) => {
                    let share = 1.0 / (scale[Y] * scale[X]) as f32;
                    let rounds_up = opencv_area::rounds_up(scale, self.channels);
                    let axes = [Y, X].map(|d| self.axis_task(d, Weighing::Whole(scale[d])));
                    Steps { axes, ..both(Sums::Whole((!rounds_up).then_some(share)), Weighing::Same) }
                }
                Way::Means => both(Sums::Means, Weighing::Shares),
                Way::Kernel(kernel) => {
                    let row_len = self.size[X] * self.channels;
                    let sums = match kernel {
                        Kernel::Cubic => Sums::Cubic(row_len / opencv::AT_ONCE * opencv::AT_ONCE),
                        Kernel::Linear | Kernel::LinearOfArea => Sums::Linear,
                    };
                    let axes = [Y, X].map(|d| self.axis_task(d, Weighing::Kernel { kernel, across: d == X }));
                    Steps { axes, ..both(sums, Weighing::Same) }
                }
            },
        })
    }

    fn axis_task(&self, d: usize, weighing: Weighing) -> AxisTask {
        let Line { length, start, end, outputs } = self.line(d);
        let region = [start.to_bits(), end.to_bits()];
        AxisTask { weighing, length, region, outputs, window: self.window[d], mirror: self.mirror[d] }
    }
}

impl AxisTask {
    /// Makes the table.
    pub fn table(&self) -> Table {
        let Self { length, outputs, window, mirror, .. } = *self;
        let [start, end] = self.region.map(f32::from_bits);
        let line = Line { length, start, end, outputs };
        match self.weighing {
            Weighing::Same => self.copies((0..outputs).map(Some)),
            Weighing::Nearest { rule, is_small } => {
                self.copies(nearest::places(&line, rule, is_small).into_iter())
            }
            Weighing::Integers { curve, as_pillow } => {
                let (axis, bits) = integer_axis(&line, curve, as_pillow);
                self.sums(axis, bits, |weight| weight)
            }
            Weighing::Floats { cubic } => self.sums(floats::weights(length, outputs, cubic), 0, bits_of),
            Weighing::Whole(scale) => {
                let mut axis = Axis::with_capacity(outputs, scale);
                for output in 0..outputs {
                    axis.push(output * scale, std::iter::repeat_n(1, scale));
                }
                self.sums(axis, 0, |weight| weight)
            }
            Weighing::Shares => self.sums(opencv_area::shares(length, outputs), 0, bits_of),
            Weighing::Kernel { kernel, across } => {
                let weights = if across { opencv::weights_across } else { opencv::weights };
                let mut made = weights(length, outputs, kernel);
                made.truncate(window.1);
                made.drain(..window.0);
                if mirror {
                    made.reverse();
                }
                let mut table = Table::of_zeros(length, made.len(), kernel.taps());
                for (output, (place, weights)) in made.iter().enumerate() {
                    table.set(output, kernel.first(*place), &weights[..kernel.taps()], |weight| weight);
                }
                table
            }
        }
    }

    fn copies(&self, places: impl Iterator<Item = Option<usize>>) -> Table {
        let (start, end) = self.window;
        let word = |place: Option<usize>| place.map_or(-1, |place| place as i32);
        let mut words: Vec<i32> = places.take(end).skip(start).map(word).collect();
        if self.mirror {
            words.reverse();
        }
        Table { outputs: words.len(), length: self.length, span: (0, self.length), bits: 0, words }
    }

    /// The window of `axis`, the weights of all outputs.
    fn sums<W: Copy>(&self, axis: Axis<W>, bits: u32, word: impl Fn(W) -> i32) -> Table {
        let axis = axis.part(self.window, self.mirror);
        let outputs = axis.len();
        let taps = (0..outputs).map(|output| axis.at(output).1.len()).max().unwrap_or(0);
        let mut table = Table { bits, ..Table::of_zeros(self.length, outputs, taps) };
        for output in 0..outputs {
            let (first, weights) = axis.at(output);
            table.set(output, first as i64, weights, &word);
        }
        table
    }
}

impl Table {
    /// The first pixel that is needed, and the end of them. Something lies between the passes although no output has a
    /// weight.
    pub fn span(&self) -> (usize, usize) {
        (self.span.0, self.span.1.max(self.span.0 + 1))
    }

    fn of_zeros(length: usize, outputs: usize, taps: usize) -> Self {
        Self { outputs, length, span: (length - 1, 0), bits: 0, words: vec![0; outputs * (2 + taps)] }
    }

    fn set<W: Copy>(&mut self, output: usize, first: i64, weights: &[W], word: impl Fn(W) -> i32) {
        let Self { outputs, length, span, words, .. } = self;
        words[output] = first as i32;
        words[*outputs + output] = weights.len() as i32;
        for (k, &weight) in weights.iter().enumerate() {
            words[(2 + k) * *outputs + output] = word(weight);
        }
        if !weights.is_empty() {
            let inside = |place: i64| place.clamp(0, *length as i64 - 1) as usize;
            let (start, last) = (inside(first), inside(first + weights.len() as i64 - 1));
            *span = (span.0.min(start), span.1.max(last + 1));
        }
    }
}

fn bits_of(weight: f32) -> i32 {
    weight.to_bits().cast_signed()
}
