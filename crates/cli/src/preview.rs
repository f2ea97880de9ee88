//! Outputs that look like images, as PNG: what was normalized is brought back to pixels where the pipeline says how it
//! was, else stretched.

use std::path::Path;

use gesso::cpu::convert::ConvertSat;
use gesso::dispatch;
use gesso::error::{Error, Result};
use gesso::pipeline::{ArgumentValue, Description, OperatorDescription};
use gesso::tensor::{DType, Layout, View};

/// Sides of a picture; without a layout, smaller ones are rather tables of numbers.
const MIN_SIDE: usize = 8;
const MAX_SIDE: usize = 16_384;

/// Frames of a sequence that are shown, on one sheet.
const MAX_FRAMES: usize = 64;

/// Operators that only rename, reorder or convert what they are given.
const PASSED_THROUGH: [&str; 4] = ["Cast", "Copy", "Reshape", "Transpose"];

/// How the pipeline made an output of pixels: `scale * (pixel - mean) / std + shift`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Normalization {
    mean: Vec<f32>,
    std: Vec<f32>,
    scale: f32,
    shift: f32,
}

impl Normalization {
    /// The one that made output `name`, if it is fixed in the file.
    pub(crate) fn of(description: &Description, name: &str) -> Option<Self> {
        let mut edge = name;
        // A file has a finite number of operators, but may have a cycle.
        for _ in 0..PASSED_THROUGH.len() {
            let op =
                description.operators.iter().find(|op| op.outputs.iter().any(|output| output == edge))?;
            if op.name == "CropMirrorNormalize" {
                return Self::given(op);
            }
            edge = op.inputs.first().filter(|_| PASSED_THROUGH.contains(&op.name.as_str()))?;
        }
        None
    }

    fn given(op: &OperatorDescription) -> Option<Self> {
        let floats = |name: &str, default: f32| match op.arguments.get(name) {
            _ if op.argument_inputs.contains_key(name) => None,
            None => Some(vec![default]),
            Some(ArgumentValue::Floats(values)) if !values.is_empty() => Some(values.clone()),
            Some(ArgumentValue::Ints(values)) if !values.is_empty() => {
                Some(values.iter().map(|&v| v as f32).collect())
            }
            Some(_) => None,
        };
        let one = |name: &str, default| floats(name, default).and_then(|values| values.first().copied());
        let (mean, std) = (floats("mean", 0.0)?, floats("std", 1.0)?);
        Some(Self { mean, std, scale: one("scale", 1.0)?, shift: one("shift", 0.0)? })
    }

    fn pixel(&self, value: f64, channel: usize) -> f64 {
        let of =
            |values: &[f32]| f64::from(values.get(channel).or(values.first()).copied().unwrap_or_default());
        (value - f64::from(self.shift)) / f64::from(self.scale) * of(&self.std) + of(&self.mean)
    }
}

/// Where the pixels of a sample are.
#[derive(Debug, PartialEq)]
struct Grid {
    height: usize,
    width: usize,
    channels: usize,
    /// Distance of neighbours: rows, columns, channels.
    strides: [usize; 3],
    /// Pictures of a sequence that are shown, and the distance of neighbours.
    frames: usize,
    step: usize,
}

impl Grid {
    /// `None` when the sample is no image.
    fn of(layout: Layout, shape: &[usize], strides: &[usize]) -> Option<Self> {
        let guessed = match *shape {
            _ if layout.letters().len() == shape.len() => layout,
            _ if !layout.is_none() => return None,
            [h, w, 1 | 3 | 4] if h.min(w) >= MIN_SIDE => Layout::hwc(),
            [1 | 3 | 4, h, w] if h.min(w) >= MIN_SIDE => Layout::from_letters(b"CHW"),
            _ => return None,
        };
        let axis = |letter| {
            let at = guessed.find(letter)?;
            Some((*shape.get(at)?, *strides.get(at)?))
        };
        let ((height, rows), (width, columns)) = (axis(b'H')?, axis(b'W')?);
        let (channels, planes) = axis(b'C').unwrap_or((1, 0));
        let whole = shape.iter().all(|&extent| extent > 0) && height.max(width) <= MAX_SIDE;
        let (frames, step) = axis(b'F').unwrap_or((1, 0));
        let sides = MAX_SIDE / height.max(width).max(1);
        let frames = frames.min(MAX_FRAMES).min(sides * sides);
        whole.then_some(Self { height, width, channels, strides: [rows, columns, planes], frames, step })
    }

    /// The picture has one channel or three; a fourth, of whatever kind, is left out.
    fn shown_channels(&self) -> usize {
        if self.channels >= 3 { 3 } else { 1 }
    }

    /// Frames beside one another and below: a sheet that is as wide as high, or a frame wider.
    fn sheet(&self) -> [usize; 2] {
        let across = (1..=self.frames).find(|across| across * across >= self.frames).unwrap_or(1);
        [across, self.frames.div_ceil(across)]
    }

    /// Columns and rows of the picture.
    fn size(&self) -> [usize; 2] {
        let [across, down] = self.sheet();
        [across * self.width, down * self.height]
    }

    /// The elements that are shown, pixel by pixel, each with its channel: of a sequence all frames, row after row of
    /// the sheet; of a volume the first image. Where the sheet has none, the number is `usize::MAX`, which no element
    /// has.
    fn elements(&self) -> impl Iterator<Item = (usize, usize)> {
        let [rows, columns, planes] = self.strides;
        let (height, width, channels) = (self.height, self.width, self.shown_channels());
        let (frames, step, [across, down]) = (self.frames, self.step, self.sheet());
        (0..down * height).flat_map(move |y| {
            (0..across * width).flat_map(move |x| {
                let frame = y / height * across + x / width;
                let first = frame * step + y % height * rows + x % width * columns;
                (0..channels).map(move |c| (if frame < frames { first + c * planes } else { usize::MAX }, c))
            })
        })
    }
}

/// Writes `view` as PNG to `path` and says how its values became pixels; `None` when it is no image.
///
/// # Errors
/// What writing fails with.
pub(crate) fn write(
    view: &View<'_>,
    normalization: Option<&Normalization>,
    path: &Path,
) -> Result<Option<&'static str>> {
    let Some(grid) = Grid::of(view.layout, view.shape, &view.shape.strides()) else { return Ok(None) };
    let (pixels, how) = if view.dtype == DType::U8 {
        (grid.elements().map(|(at, _)| view.bytes.get(at).copied().unwrap_or_default()).collect(), "as it is")
    } else {
        shown(&grid, &numbers(view)?, normalization)
    };
    let colour = if grid.shown_channels() == 3 {
        image::ExtendedColorType::Rgb8
    } else {
        image::ExtendedColorType::L8
    };
    let [width, height] = grid.size().map(|side| side as u32);
    image::save_buffer_with_format(path, &pixels, width, height, colour, image::ImageFormat::Png)
        .map_err(|error| Error::invalid(format!("cannot write `{}`: {error}", path.display())))?;
    Ok(Some(how))
}

fn numbers(view: &View<'_>) -> Result<Vec<f64>> {
    dispatch!(view.dtype, T => Ok(view.as_slice::<T>()?.iter().map(|&value| <T as ConvertSat<f64>>::convert_sat(value)).collect()))
}

fn shown(grid: &Grid, values: &[f64], normalization: Option<&Normalization>) -> (Vec<u8>, &'static str) {
    let at = |(at, channel): (usize, usize)| (values.get(at).copied().unwrap_or(f64::NAN), channel);
    // Out of range saturates, and what is no number is black.
    let byte = |value: f64| value.round() as u8;
    if let Some(normalization) = normalization {
        let pixels =
            grid.elements().map(at).map(|(value, channel)| byte(normalization.pixel(value, channel)));
        return (pixels.collect(), "denormalized");
    }
    let finite = || grid.elements().map(at).map(|(value, _)| value).filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let (low, high, how) = match (low, high) {
        _ if low >= 0.0 && high <= 1.0 => (0.0, 1.0, "1 is white"),
        _ if low >= -0.5 && high <= 255.5 => (0.0, 255.0, "255 is white"),
        _ => (low, high, "stretched"),
    };
    let span = if high > low { high - low } else { 1.0 };
    (grid.elements().map(at).map(|(value, _)| byte((value - low) / span * 255.0)).collect(), how)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(layout: &str, shape: &[usize]) -> Option<(usize, usize, usize)> {
        let strides = gesso::tensor::Shape::new(shape).strides();
        let grid = Grid::of(Layout::new(layout).unwrap(), shape, &strides)?;
        Some((grid.height, grid.width, grid.channels))
    }

    #[test]
    fn images_are_told_from_other_tensors() {
        assert_eq!(grid("HWC", &[4, 5, 3]), Some((4, 5, 3)));
        assert_eq!(grid("CHW", &[3, 4, 5]), Some((4, 5, 3)));
        assert_eq!(grid("FHWC", &[2, 4, 5, 1]), Some((4, 5, 1)));
        assert_eq!(grid("HW", &[4, 5]), Some((4, 5, 1)));
        assert_eq!(grid("", &[64, 48, 3]), Some((64, 48, 3)));
        assert_eq!(grid("", &[3, 64, 48]), Some((64, 48, 3)));
        for (layout, shape) in
            [("", &[3, 4, 3][..]), ("", &[1000]), ("", &[64, 64]), ("HWC", &[0, 4, 3]), ("HWC", &[4, 5])]
        {
            assert_eq!(grid(layout, shape), None, "{layout} {shape:?}");
        }
    }

    #[test]
    fn a_sequence_becomes_a_sheet() {
        // Three frames of two columns.
        let shape = [3, 1, 2, 1];
        let strides = gesso::tensor::Shape::new(shape).strides();
        let grid = Grid::of(Layout::new("FHWC").unwrap(), &shape, &strides).unwrap();
        assert_eq!((grid.sheet(), grid.size()), ([2, 2], [4, 2]));
        let elements: Vec<usize> = grid.elements().map(|(at, _)| at).collect();
        assert_eq!(elements, [0, 1, 2, 3, 4, 5, usize::MAX, usize::MAX]);
    }

    #[test]
    fn normalized_values_become_pixels_again() {
        let normalization =
            Normalization { mean: vec![100.0, 50.0, 0.0], std: vec![2.0, 4.0, 1.0], scale: 0.5, shift: 1.0 };
        let strides = [1, 1, 1];
        let grid = Grid::of(Layout::from_letters(b"CHW"), &[3, 1, 1], &strides).unwrap();
        let made = |pixel: f64, mean: f64, std: f64| 0.5 * (pixel - mean) / std + 1.0;
        let values = [made(200.0, 100.0, 2.0), made(7.0, 50.0, 4.0), made(255.0, 0.0, 1.0)];
        assert_eq!(shown(&grid, &values, Some(&normalization)), (vec![200, 7, 255], "denormalized"));
        assert_eq!(shown(&grid, &[0.0, f64::NAN, 1.0], None), (vec![0, 0, 255], "1 is white"));
        assert_eq!(shown(&grid, &[-2.0, 0.0, 2.0], None), (vec![0, 128, 255], "stretched"));
        assert_eq!(shown(&grid, &[f64::NAN; 3], None).0, [0, 0, 0]);
    }
}
