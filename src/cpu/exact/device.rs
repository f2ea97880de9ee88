//! A [`Task`] as a device does it: two passes, each of sums along one axis, with weights that are made here by the code that the CPU runs.
//! It must not know how a device is told of them.

use super::alpha;
use super::axis::Axis;
use super::libraries::Method;
use super::nearest;
use super::task::{Task, X, Y};
use crate::error::{Error, Result};

/// What a sum is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// Of bytes times integers, with so many bits behind the point; rounded to a byte.
    Integers(u32),
    /// Of bytes or float32 times float32, in order, each product and each sum rounded but for the last products.
    Floats,
}

/// Sums of the elements of lines, with the weights that each output has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// 0: lines are columns, and rows are made of rows; 1: lines are rows.
    pub axis: usize,
    /// How elements are summed up.
    pub sum: Sum,
    /// Outputs of a line.
    pub outputs: usize,
    /// For each output the first element of the line, where its weights begin in this table and where they end; then the weights, as bits.
    pub table: Vec<u32>,
}

/// The two passes of a [`Task`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passes {
    /// The first row and column of the image that the first pass sees.
    pub from: [usize; 2],
    /// Rows and columns between the passes.
    pub between: [usize; 2],
    /// The first pass, then the second, along the other axis.
    pub passes: [Pass; 2],
    /// Whether colours are multiplied by their alpha before, and divided by it afterwards.
    pub has_alpha: bool,
}

/// Words of a table for each output.
const PLACE_WORDS: usize = 3;

impl Passes {
    /// What a device does for `task`, which was checked.
    ///
    /// # Errors
    /// Unsupported for OpenCV's sums, internal for a filter that was not checked.
    pub fn new(task: &Task) -> Result<Self> {
        let Some(method) = task.arithmetic.method(task.filter) else {
            return Err(Error::internal("a filter that was not checked"));
        };
        match method {
            _ if task.is_copy() => {
                let places = task.size.map(|extent| (0..extent).map(Some).collect());
                Self::copy(task, places)
            }
            Method::Nearest(rule) => {
                Self::copy(task, nearest::all_places([Y, X].map(|d| task.line(d)), rule))
            }
            Method::Sums(curve) => {
                let axes = [Y, X].map(|d| task.axis(d, curve));
                let has_alpha = task.arithmetic.is_pillow() && alpha::has_alpha(task.channels);
                let parts =
                    axes.map(|(axis, bits)| Part::new(&axis, Sum::Integers(bits), i32::cast_unsigned));
                Self::of(task, parts, task.rows_first(), has_alpha)
            }
            Method::Floats(cubic) => {
                let axes = [Y, X].map(|d| task.float_axis(d, cubic));
                let parts = axes.map(|axis| Part::new(&axis, Sum::Floats, f32::to_bits));
                Self::of(task, parts, false, false)
            }
            Method::OpenCv(_) | Method::Means => Err(Error::unsupported(
                "OpenCV's sums (`arithmetic` is `opencv`) run on the CPU only: expected the device `cpu`",
            )),
        }
    }

    /// Pixels at `places`: each has the weight 1, one that is not there has none.
    fn copy(task: &Task, places: [Vec<Option<usize>>; 2]) -> Result<Self> {
        const BITS: u32 = 1;
        let [height, width] = task.made();
        let rows_first = height * task.extent(X) <= width * task.extent(Y);
        let mut d = 0;
        let parts = places.map(|places| {
            let mut axis = Axis::with_capacity(places.len(), 1);
            for place in places {
                axis.push(place.unwrap_or(0), place.map(|_| 1_i32 << BITS).into_iter());
            }
            let axis = axis.part(task.window[d], task.mirror[d]);
            d += 1;
            Part::new(&axis, Sum::Integers(BITS), i32::cast_unsigned)
        });
        Self::of(task, parts, rows_first, false)
    }

    fn of(task: &Task, parts: [Part; 2], rows_first: bool, has_alpha: bool) -> Result<Self> {
        let spans = [Y, X].map(|d| parts[d].span);
        let order = if rows_first { [Y, X] } else { [X, Y] };
        let between = [Y, X].map(|d| if d == order[0] { parts[d].outputs } else { spans[d].1 - spans[d].0 });
        let from = [Y, X].map(|d| task.crop[d].0 + spans[d].0);
        let [rows, columns] = parts;
        let (rows, columns) = (rows.pass(Y)?, columns.pass(X)?);
        let passes = if rows_first { [rows, columns] } else { [columns, rows] };
        Ok(Self { from, between, passes, has_alpha })
    }
}

/// The weights of one axis.
struct Part {
    span: (usize, usize),
    sum: Sum,
    outputs: usize,
    places: Vec<[usize; PLACE_WORDS]>,
    weights: Vec<u32>,
}

impl Part {
    fn new<W: Copy>(axis: &Axis<W>, sum: Sum, bits: impl Fn(W) -> u32) -> Self {
        let (first, end) = axis.span();
        // Something lies between the passes although no output has a weight.
        let span = (first, end.max(first + 1));
        let (outputs, mut weights) = (axis.len(), Vec::new());
        let place = |output| {
            let (at, own) = axis.at(output);
            let begin = outputs * PLACE_WORDS + weights.len();
            weights.extend(own.iter().map(|&weight| bits(weight)));
            [at - first, begin, begin + own.len()]
        };
        let places = (0..outputs).map(place).collect();
        Self { span, sum, outputs, places, weights }
    }

    fn pass(self, axis: usize) -> Result<Pass> {
        let mut table = Vec::with_capacity(self.places.len() * PLACE_WORDS + self.weights.len());
        for word in self.places.into_iter().flatten() {
            table.push(u32::try_from(word).map_err(|_| Error::internal("too many weights for a device"))?);
        }
        table.extend(self.weights);
        Ok(Pass { axis, sum: self.sum, outputs: self.outputs, table })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Arithmetic, Filter, Scratch};
    use super::*;
    use crate::waiting::Watch;

    /// What `kernels/exact.cu` computes.
    fn run(pass: &Pass, src: &dyn Fn(usize, usize, usize) -> f32, made: [usize; 2], c: usize) -> Vec<f32> {
        let mut out = Vec::new();
        for (y, x, c) in
            (0..made[Y]).flat_map(|y| (0..made[X]).flat_map(move |x| (0..c).map(move |c| (y, x, c))))
        {
            let output = [y, x][pass.axis];
            let [first, begin, end] = [0, 1, 2].map(|i| pass.table[output * PLACE_WORDS + i] as usize);
            let at = |k| if pass.axis == Y { src(first + k, x, c) } else { src(y, first + k, c) };
            let weights = &pass.table[begin..end];
            out.push(match pass.sum {
                Sum::Integers(bits) => {
                    let products =
                        weights.iter().enumerate().map(|(k, &w)| w.cast_signed().wrapping_mul(at(k) as i32));
                    let sum = products.fold(1 << (bits - 1), i32::wrapping_add);
                    (sum >> bits).clamp(0, 255) as f32
                }
                Sum::Floats => {
                    let rounded = weights.len().saturating_sub(1) / 4 * 4;
                    weights.iter().map(|&w| f32::from_bits(w)).enumerate().fold(0.0, |sum, (k, w)| match k {
                        0 => at(k) * w,
                        _ if k <= rounded => sum + at(k) * w,
                        _ => at(k).mul_add(w, sum),
                    })
                }
            });
        }
        out
    }

    fn of_device(task: &Task, image: &[u8]) -> Vec<u8> {
        let (plan, c) = (Passes::new(task).unwrap(), task.channels);
        let mut pixels = image.to_vec();
        if plan.has_alpha {
            alpha::multiply(image, c, &mut pixels);
        }
        let at = |y, x, channel| {
            f32::from(pixels[((plan.from[Y] + y) * task.image[X] + plan.from[X] + x) * c + channel])
        };
        let between = run(&plan.passes[0], &at, plan.between, c);
        let at = |y, x, channel| between[(y * plan.between[X] + x) * c + channel];
        let made = run(&plan.passes[1], &at, task.made(), c);
        let mut made: Vec<u8> = made.iter().map(|v| v.clamp(0.0, 255.0).round_ties_even() as u8).collect();
        if plan.has_alpha {
            alpha::divide(&mut made, c);
        }
        made
    }

    proptest! {
        #[test]
        fn the_passes_make_what_the_cpu_makes(
            kind in (0..4_usize, any::<prop::sample::Index>()),
            image in (1..40_usize, 1..40_usize),
            channels in 1..5_usize,
            size in (1..40_usize, 1..40_usize),
            region in any::<[prop::sample::Index; 4]>(),
            (fraction, same, mirror) in (0.0..0.9_f32, any::<bool>(), any::<[bool; 2]>()),
            seed in any::<u32>(),
        ) {
            let arithmetic = Arithmetic::ALL[kind.0];
            let filters: Vec<Filter> = arithmetic.filters().map(|(_, filter)| filter).collect();
            let image = [image.0, image.1];
            let size = if same { [image[0], size.1] } else { [size.0, size.1] };
            let mut task = Task::whole(arithmetic, filters[kind.1.index(filters.len())], image, channels, size);
            for d in [Y, X] {
                let first = region[d].index(image[d]);
                let end = first + 1 + region[d + 2].index(image[d] - first);
                if !same {
                    task.crop[d] = (first, end);
                    let start = if arithmetic.is_pillow() { fraction } else { 0.0 };
                    task.region[d] = (start, (end - first) as f32);
                }
                let first = region[d + 2].index(size[d]);
                task.window[d] = (first, first + 1 + region[d].index(size[d] - first));
            }
            task.mirror = mirror;
            let elements = |[height, width]: [usize; 2]| height * width * channels;
            let noise = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) ^ seed).wrapping_mul(40503).to_be_bytes()[1];
            let image: Vec<u8> = (0..elements(image)).map(noise).collect();
            let mut expected = vec![0; elements(task.made())];
            task.run(&image, &mut expected, &mut Scratch::default(), &Watch::forever()).unwrap();
            prop_assert_eq!(of_device(&task, &image), expected);
        }
    }
}
