//! `SSDRandomCrop`: images cut to random windows that bounding boxes overlap well, with the boxes and labels in them.
//! DALI advises to use `RandomBBoxCrop` in its place.

use super::bbox_window::Region;
use super::{SEED, seed};
use crate::cpu::random::{Philox, Seed, canonical_f32, uniform_int};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::shared::{boxes, dtypes};
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Least overlaps (intersection over union) of which one is drawn that every box must have with the window; the last
/// choice, one more, is the whole image.
const LEAST_OVERLAPS: [f32; 6] = [f32::NEG_INFINITY, 0.1, 0.3, 0.5, 0.7, 0.9];

/// Least side of a window, relative to the image.
const LEAST_SIDE: f32 = 0.3;

struct SsdRandomCrop {
    /// Windows that are drawn for an overlap before another one is.
    attempts: usize,
    seed: Seed,
    /// Per sample, for the batch at hand.
    answers: Vec<Answer>,
}

/// What becomes of one sample.
#[derive(Debug, Default)]
struct Answer {
    /// First column and row of the window in pixels, and how many.
    from: [usize; 2],
    size: [usize; 2],
    boxes: Vec<f32>,
    kept: Vec<usize>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "SSDRandomCrop",
    doc: "Images cut to random windows that boxes overlap well, with the boxes (left, top, right, bottom) and labels in them",
    devices: &[Device::Cpu],
    inputs: (3, 3),
    args: &[
        SEED,
        ArgSpec::int("num_attempts", "windows that are drawn for an overlap before another one is").or_int(1),
    ],
    build: &build,
    outputs: &|_, _| Ok(3),
    reads_in_place: InputSet::First,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let attempts = args.int("num_attempts")?;
    let most = limits::MAX_BOX_COMPARISONS;
    let attempts =
        usize::try_from(attempts).ok().filter(|count| (1..=most).contains(count)).ok_or_else(|| {
            Error::invalid(format!("argument `num_attempts` is {attempts}, expected 1 to {most}"))
        })?;
    Ok(Box::new(SsdRandomCrop { attempts, seed: seed(args)?, answers: Vec::new() }))
}

/// A window that suits `regions`, and which of them have their center in it; `None`: all of the image.
fn find(random: &mut Philox, regions: &[Region<2>], attempts: usize) -> Result<Option<(Window, Vec<usize>)>> {
    let mut compared = 0;
    loop {
        let choice = uniform_int(random, LEAST_OVERLAPS.len() as u32);
        let Some(&least) = LEAST_OVERLAPS.get(choice as usize) else { return Ok(None) };
        for _ in 0..attempts {
            compared += regions.len().max(1);
            if compared > limits::MAX_BOX_COMPARISONS {
                return Err(Error::invalid("no window was found that suits the boxes"));
            }
            let [width, height] = [0, 1].map(|_| canonical_f32(random, LEAST_SIDE, 1.0));
            if !(0.5..=2.0).contains(&(width / height)) {
                continue;
            }
            let left = canonical_f32(random, 0.0, 1.0 - width);
            let top = canonical_f32(random, 0.0, 1.0 - height);
            let region = Region { low: [left, top], high: [left + width, top + height] };
            if !regions.iter().all(|one| region.overlap(one) >= least) {
                continue;
            }
            let window = Window { low: [left, top], size: [width, height] };
            let kept: Vec<usize> =
                (0..regions.len()).filter(|&i| window.has_center_of(&regions[i])).collect();
            if !kept.is_empty() {
                return Ok(Some((window, kept)));
            }
        }
    }
}

/// A window as it was drawn. What follows from it is computed in double precision, as in DALI.
#[derive(Debug)]
struct Window {
    low: [f32; 2],
    size: [f32; 2],
}

impl Window {
    fn span(&self, d: usize) -> [f64; 2] {
        let low = f64::from(self.low[d]);
        [low, low + f64::from(self.size[d])]
    }

    /// Whether a box's center lies in it, its edges included.
    fn has_center_of(&self, one: &Region<2>) -> bool {
        (0..2).all(|d| {
            let ([low, high], center) = (self.span(d), 0.5 * f64::from(one.low[d] + one.high[d]));
            (low..=high).contains(&center)
        })
    }

    /// A box relative to the window, cut at its sides.
    fn relative(&self, one: &Region<2>) -> [f32; 4] {
        let inside = |at: f32, d: usize| {
            let at = (f64::from(at) - f64::from(self.low[d])) / f64::from(self.size[d]);
            (at as f32).clamp(0.0, 1.0)
        };
        [inside(one.low[0], 0), inside(one.low[1], 1), inside(one.high[0], 0), inside(one.high[1], 1)]
    }

    /// First pixel and end along dimension `d` of an image.
    fn pixels(&self, d: usize, extent: usize) -> [usize; 2] {
        self.span(d).map(|at| ((at * extent as f64).round().max(0.0) as usize).min(extent))
    }
}

/// Height, width and elements of a pixel of an image with channels or without.
fn sizes(shape: &Shape) -> Result<[usize; 3]> {
    match shape[..] {
        [height, width] => Ok([height, width, 1]),
        [height, width, channels] => Ok([height, width, channels]),
        _ => Err(Error::invalid(format!("an image of shape {shape}, expected two or three dimensions"))),
    }
}

impl SsdRandomCrop {
    fn answer(&self, sample: &SampleInputs<'_>, mut random: Philox) -> Result<Answer> {
        let (image, list, labels) = (sample.input(0)?, sample.input(1)?, sample.input(2)?);
        let [height, width, _] = sizes(image.shape)?;
        let [count, 4] = list.shape[..] else {
            return Err(Error::invalid(format!(
                "boxes of shape {}, expected a list of 4 numbers each",
                list.shape
            )));
        };
        boxes::check_labels(&labels, count)?;
        let numbers = list.as_slice::<f32>()?.as_chunks::<4>().0;
        let regions: Vec<Region<2>> = numbers
            .iter()
            .map(|&[left, top, right, bottom]| Region { low: [left, top], high: [right, bottom] })
            .collect();
        let Some((window, kept)) = find(&mut random, &regions, self.attempts)? else {
            let boxes = numbers.as_flattened().to_vec();
            return Ok(Answer { from: [0, 0], size: [width, height], boxes, kept: (0..count).collect() });
        };
        let [columns, rows] = [window.pixels(0, width), window.pixels(1, height)];
        let (from, to) = ([columns[0], rows[0]], [columns[1], rows[1]]);
        Ok(Answer {
            from,
            size: [to[0] - from[0], to[1] - from[1]],
            boxes: kept.iter().flat_map(|&i| window.relative(&regions[i])).collect(),
            kept,
        })
    }
}

fn check(inputs: [DType; 3]) -> Result<()> {
    dtypes::accepted("images", inputs[0], &[DType::U8])?;
    dtypes::accepted("boxes", inputs[1], &[DType::F32])?;
    dtypes::accepted("labels", inputs[2], &[DType::I32])
}

impl Operator for SsdRandomCrop {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        if let [Some(image), Some(boxes), Some(labels)] = [0, 1, 2].map(|i| inputs[i].dtype) {
            check([image, boxes, labels])?;
        }
        let ty = |dtype, dims, layout| ValueType { dtype: Some(dtype), dims: Some(dims), layout };
        // An image keeps its channels, and whether it has any.
        let dims = inputs[0]
            .dims
            .as_ref()
            .map(|dims| dims.iter().enumerate().map(|(d, &extent)| extent.filter(|_| d >= 2)).collect());
        let image = ValueType { dtype: Some(DType::U8), dims, layout: inputs[0].layout };
        Ok(vec![
            image,
            ty(DType::F32, vec![None, Some(4)], Some(Layout::NONE)),
            ty(DType::I32, vec![None], Some(Layout::NONE)),
        ])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let image = inputs.desc(0)?;
        check([image.dtype, inputs.desc(1)?.dtype, inputs.desc(2)?.dtype])?;
        let batch = self.seed.batch(inputs.first_sample());
        self.answers = inputs.map(|sample| self.answer(&sample, batch.sample(sample.index)));
        let shapes = image.shapes.iter().zip(&self.answers).map(|(shape, answer)| {
            let [width, height] = answer.size;
            let mut dims = vec![height, width];
            dims.extend(shape.get(2..).into_iter().flatten());
            Shape::from(dims)
        });
        let of = |dtype, shape: &dyn Fn(usize) -> Shape| {
            let shapes = self.answers.iter().map(|answer| shape(answer.kept.len())).collect();
            BatchDesc::new(dtype, Layout::NONE, shapes)
        };
        Ok(vec![
            BatchDesc::new(image.dtype, image.layout, shapes.collect()),
            of(DType::F32, &|count| Shape::from([count, 4])),
            of(DType::I32, &|count| Shape::from([count])),
        ])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let Answer { from, size, boxes, kept } = &self.answers[sample.index()];
            let labels = sample.input(2)?;
            let labels = labels.as_slice::<i32>()?;
            for (to, &i) in sample.output(2)?.as_slice_mut::<i32>()?.iter_mut().zip(kept) {
                *to = labels[i];
            }
            sample.output(1)?.as_slice_mut::<f32>()?.copy_from_slice(boxes);
            let (image, output) = sample.unary()?;
            let [_, width, channels] = sizes(image.shape)?;
            let lines = image.bytes.chunks_exact((width * channels).max(1)).skip(from[1]);
            let written = size[0] * channels;
            for (to, line) in output.bytes.chunks_exact_mut(written.max(1)).zip(lines) {
                to.copy_from_slice(&line[from[0] * channels..][..written]);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_without_an_end_ends() {
        // No window has the center of a box that lies outside of the image.
        let outside = [Region { low: [2.0; 2], high: [3.0; 2] }];
        let ends = (0..8).map(|sequence| find(&mut Philox::new(1, sequence), &outside, usize::MAX));
        assert!(ends.into_iter().any(|end| end.is_err_and(|error| error.to_string().contains("no window"))));
    }

    #[test]
    fn boxes_are_cut_at_the_window() {
        let window = Window { low: [0.25; 2], size: [0.5; 2] };
        assert_eq!(window.relative(&Region { low: [0.0, 0.5], high: [0.5, 2.0] }), [0.0, 0.5, 0.5, 1.0]);
    }

    #[test]
    fn images_may_have_no_channels() {
        assert_eq!(sizes(&Shape::from([4, 5])).unwrap(), [4, 5, 1]);
        assert!(sizes(&Shape::from([4])).is_err() && sizes(&Shape::from([1, 4, 5, 3])).is_err());
        let window = Window { low: [0.25; 2], size: [0.5; 2] };
        assert_eq!([window.pixels(0, 10), window.pixels(1, 9)], [[3, 8], [2, 7]]);
    }
}
