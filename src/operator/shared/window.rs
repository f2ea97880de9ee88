//! Windows of samples: where a window lies, the arguments that place a crop window, and what becomes of a window that
//! leaves its sample. Shapes and numbers only; `cpu::window` moves the elements.
//!
//! ```text
//! args, shape, layout -> CropWindow::place -> OutOfBounds::settle -> Window { anchor, extent }
//! ```

use crate::cpu::window::{Border, Outside};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{Arg, ArgSpec, Args, SampleInputs};
use crate::tensor::{Layout, Shape};

/// A box in a sample: for each of its dimensions the first position, which may lie outside, and the number of
/// positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// Position of the window's first element, one per dimension.
    pub(crate) anchor: Vec<i64>,
    /// Positions in the window, one per dimension.
    pub(crate) extent: Vec<usize>,
}

impl Window {
    /// All of a sample.
    pub(crate) fn whole(shape: &[usize]) -> Self {
        Self { anchor: vec![0; shape.len()], extent: shape.to_vec() }
    }

    /// The window's end along dimension `axis`: one behind its last position.
    fn end(&self, axis: usize) -> i64 {
        let extent = i64::try_from(self.extent[axis]).unwrap_or(i64::MAX);
        self.anchor[axis].saturating_add(extent)
    }
}

/// The layout of an image, volume or sequence that carries none: `HW`, `HWC`, `DHWC` or `FDHWC`, by its rank.
pub(crate) fn image_layout(layout: Layout, ndim: usize) -> Layout {
    let default: &[u8] = match ndim {
        2 => b"HW",
        3 => b"HWC",
        4 => b"DHWC",
        5 => b"FDHWC",
        _ => b"",
    };
    layout.or_default(Layout::from_letters(default), ndim)
}

/// Arguments of every operator that takes a crop window.
pub(crate) const CROP_ARGS: &[ArgSpec] = &[
    ArgSpec::floats(
        "crop",
        "window's size (height, width) or (depth, height, width), fractions dropped, 0: all",
    )
    .tensor(),
    ArgSpec::float("crop_w", "window's width; with `crop_h`, in place of `crop`").tensor().or_float(0.0),
    ArgSpec::float("crop_h", "window's height").tensor().or_float(0.0),
    ArgSpec::float("crop_d", "window's depth, or frames of a sequence; 0: all").tensor().or_float(0.0),
    ArgSpec::float("crop_pos_x", "window's place along W, from 0 (left) to 1 (right)").tensor().or_float(0.5),
    ArgSpec::float("crop_pos_y", "window's place along H, from 0 (top) to 1 (bottom)").tensor().or_float(0.5),
    ArgSpec::float("crop_pos_z", "window's place along D, or F without D, from 0 to 1")
        .tensor()
        .or_float(0.5),
    ArgSpec::string(
        "rounding",
        "of the window's first position: `round` (half away from zero), `even` (half to even, and cut for a window that is larger than the image, \
         as torchvision) or `truncate`",
    )
    .or_string("round"),
];

/// The crop window that [`CROP_ARGS`] describe.
#[derive(Debug)]
pub(crate) struct CropWindow {
    size: CropSize,
    /// Place along W, H, D.
    position: [Arg; 3],
    rounding: fn(f64) -> f64,
}

#[derive(Debug)]
enum CropSize {
    Whole,
    /// (D,) H, W in one argument.
    Together(Arg),
    /// W, H, D in an argument each.
    Apart([Arg; 3]),
}

impl CropWindow {
    /// Reads the arguments.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(crate) fn new(args: &Args) -> Result<Self> {
        let (width, height) = (args.given_arg("crop_w")?, args.given_arg("crop_h")?);
        let size = match (args.given_arg("crop")?, width, height, args.has("crop_d")) {
            (None, None, None, false) => CropSize::Whole,
            (Some(size), None, None, false) => CropSize::Together(size),
            (None, Some(w), Some(h), _) => CropSize::Apart([w, h, args.arg("crop_d")?]),
            (Some(_), ..) => {
                return Err(Error::invalid(
                    "argument `crop` is given, expected no `crop_w`, `crop_h`, `crop_d`",
                ));
            }
            (None, ..) => {
                return Err(Error::invalid(
                    "expected both `crop_w` and `crop_h`, or neither of them and no `crop_d`",
                ));
            }
        };
        let rounding = match args.string("rounding")? {
            "round" => f64::round,
            "even" => even,
            "truncate" => f64::trunc,
            other => {
                return Err(Error::invalid(format!(
                    "argument `rounding` is `{other}`, expected `round`, `even` or `truncate`"
                )));
            }
        };
        let position = [args.arg("crop_pos_x")?, args.arg("crop_pos_y")?, args.arg("crop_pos_z")?];
        Ok(Self { size, position, rounding })
    }

    /// Whether the arguments ask for a window; without one it is the whole sample.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.size, CropSize::Whole)
    }

    /// Whether it is the same for all samples of a shape.
    pub(crate) fn is_fixed(&self) -> bool {
        let sizes = match &self.size {
            CropSize::Whole => &[][..],
            CropSize::Together(size) => std::slice::from_ref(size),
            CropSize::Apart(sizes) => sizes,
        };
        sizes.iter().chain(&self.position).all(|arg| arg.known().is_some())
    }

    /// The window of one sample of shape `shape`, with the letters H, W and maybe D or F in `layout`. It may leave the
    /// sample. Its first position is `place * (extent of the sample - extent of the window)`.
    ///
    /// # Errors
    /// A size that is not a number or too large, a place outside of 0 to 1, a layout without H and W.
    pub(crate) fn place(&self, sample: &SampleInputs<'_>, shape: &[usize], layout: Layout) -> Result<Window> {
        let mut window = Window::whole(shape);
        let sizes = match &self.size {
            CropSize::Whole => return Ok(window),
            CropSize::Together(size) => together(&size.floats(sample)?)?,
            CropSize::Apart([w, h, d]) => [w.float(sample)?, h.float(sample)?, d.float(sample)?],
        };
        for ((axis, size), position) in axes(layout, shape.len())?.into_iter().zip(sizes).zip(&self.position)
        {
            let (Some(axis), Some(extent)) = (axis, size_of(size)?) else { continue };
            let place = position.float(sample)?;
            if !(0.0..=1.0).contains(&place) {
                return Err(Error::invalid(format!("a crop window is placed at {place}, expected 0 to 1")));
            }
            let start = f64::from(place) * (shape[axis] as f64 - extent as f64);
            window.anchor[axis] = (self.rounding)(start) as i64;
            window.extent[axis] = extent;
        }
        Ok(window)
    }

    /// The window's extents as far as they are the same for every sample, given those of the samples. `trims`: whether
    /// the window is cut to the sample afterwards.
    ///
    /// # Errors
    /// As for [`CropWindow::place`].
    pub(crate) fn infer(
        &self,
        dims: &[Option<usize>],
        layout: Layout,
        trims: bool,
    ) -> Result<Vec<Option<usize>>> {
        let first = |arg: &Arg| arg.known().map(|v| v.first().copied().unwrap_or_default() as f32);
        let sizes = match &self.size {
            CropSize::Whole => return Ok(dims.to_vec()),
            CropSize::Together(size) => match size.known() {
                Some(size) => together(&size.iter().map(|&v| v as f32).collect::<Vec<_>>())?.map(Some),
                None => [None; 3],
            },
            CropSize::Apart(sizes) => [first(&sizes[0]), first(&sizes[1]), first(&sizes[2])],
        };
        let mut dims = dims.to_vec();
        for (axis, size) in axes(layout, dims.len())?.into_iter().zip(sizes) {
            let Some(dim) = axis.and_then(|axis| dims.get_mut(axis)) else { continue };
            let Some(size) = size else {
                // A two-valued `crop` leaves the depth alone, but only a sample tells.
                *dim = None;
                continue;
            };
            if let Some(extent) = size_of(size)? {
                *dim = Some(extent).filter(|_| !trims);
            }
        }
        Ok(dims)
    }
}

/// As torchvision's `CenterCrop` rounds: halves to even; what it adds around an image that is too small is a half each,
/// with the odd pixel behind.
fn even(start: f64) -> f64 {
    if start < 0.0 { start.trunc() } else { start.round_ties_even() }
}

/// The dimensions of W, H and the depth: D, or F in a sequence.
fn axes(layout: Layout, ndim: usize) -> Result<[Option<usize>; 3]> {
    let find = |letter| layout.find(letter).filter(|&axis| axis < ndim);
    let (w, h) = (find(b'W'), find(b'H'));
    if w.is_none() || h.is_none() {
        return Err(Error::invalid(format!(
            "cannot crop {ndim} dimensions of layout `{layout}`: expected the dimensions `H` and `W`"
        )));
    }
    Ok([w, h, find(b'D').or_else(|| find(b'F'))])
}

/// W, H, D from the argument `crop`.
fn together(size: &[f32]) -> Result<[f32; 3]> {
    match *size {
        [h, w] => Ok([w, h, 0.0]),
        [d, h, w] => Ok([w, h, d]),
        _ => Err(Error::invalid(format!("argument `crop` has {} values, expected 2 or 3", size.len()))),
    }
}

/// Positions in a window of size `size`; `None` for all.
fn size_of(size: f32) -> Result<Option<usize>> {
    if !(-limits::MAX_COORDINATE..=limits::MAX_COORDINATE).contains(&f64::from(size)) {
        return Err(Error::invalid(format!("a crop window has size {size}")));
    }
    Ok(Some(size as usize).filter(|&size| size > 0))
}

/// Arguments of operators whose window may leave the sample.
pub(crate) const OUT_OF_BOUNDS_ARGS: &[ArgSpec] = &[
    ArgSpec::string(
        "out_of_bounds_policy",
        "`error`, `trim_to_shape`, `pad`, `edge`, `reflect`, `reflect_101` or `wrap`",
    )
    .or_string("error"),
    ArgSpec::floats("fill_values", "what policy `pad` writes: one value, or one per channel")
        .or_floats(&[0.0]),
];

/// What becomes of a window that leaves its sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutOfBounds {
    /// The sample fails.
    Error,
    /// The window is cut to the sample, and may be empty then.
    Trim,
    /// It keeps its size; the operator fills what the sample does not give.
    Outside(Outside),
}

impl OutOfBounds {
    /// Reads `out_of_bounds_policy`, whatever its case.
    ///
    /// # Errors
    /// When there is no such policy.
    pub(crate) fn new(args: &Args) -> Result<Self> {
        let name = args.string("out_of_bounds_policy")?;
        let border = |border| Ok(OutOfBounds::Outside(Outside::Border(border)));
        match name.to_ascii_lowercase().as_str() {
            "error" => Ok(OutOfBounds::Error),
            "trim_to_shape" => Ok(OutOfBounds::Trim),
            "pad" | "const" | "constant" | "fill" => Ok(OutOfBounds::Outside(Outside::Fill)),
            "clamp" | "edge" => border(Border::Clamp),
            "reflect" | "reflect_1001" | "reflect1001" | "1001" => border(Border::Reflect1001),
            "reflect_101" | "reflect101" | "101" => border(Border::Reflect101),
            "wrap" => border(Border::Wrap),
            _ => Err(Error::invalid(format!(
                "argument `out_of_bounds_policy` is `{name}`, expected `error`, `trim_to_shape`, `pad`, `edge`, \
                 `reflect`, `reflect_101` or `wrap`"
            ))),
        }
    }

    /// Whether outputs may be smaller than the window.
    pub(crate) fn trims(self) -> bool {
        self == OutOfBounds::Trim
    }

    /// How what lies outside is made; of no consequence when nothing does.
    pub(crate) fn outside(self) -> Outside {
        match self {
            OutOfBounds::Outside(outside) => outside,
            OutOfBounds::Error | OutOfBounds::Trim => Outside::Fill,
        }
    }

    /// Applies the policy to a window of a sample of shape `shape`.
    ///
    /// # Errors
    /// Under [`OutOfBounds::Error`], when the window leaves the sample.
    pub(crate) fn settle(self, mut window: Window, shape: &[usize]) -> Result<Window> {
        if let OutOfBounds::Outside(_) = self {
            return Ok(window);
        }
        for (axis, &extent) in shape.iter().enumerate() {
            let (start, end, limit) = (window.anchor[axis], window.end(axis), extent as i64);
            if start >= 0 && end <= limit {
                continue;
            }
            if self == OutOfBounds::Error {
                return Err(Error::invalid(format!(
                    "a window of {} from {:?} on leaves a sample of shape {}",
                    Shape::new(window.extent),
                    window.anchor,
                    Shape::new(shape)
                )));
            }
            window.anchor[axis] = start.clamp(0, limit);
            window.extent[axis] = (end.clamp(0, limit) - window.anchor[axis]) as usize;
        }
        Ok(window)
    }
}

/// Reads `fill_values`: never empty, 0 by default.
pub(crate) fn fill_values(args: &Args) -> Result<Vec<f32>> {
    let values = args.floats("fill_values")?;
    Ok(if values.is_empty() { vec![0.0] } else { values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimming_cuts_to_the_sample() {
        let trim = |start, extent| {
            let window = Window { anchor: vec![start], extent: vec![extent] };
            OutOfBounds::Trim.settle(window, &[5]).map(|w| (w.anchor[0], w.extent[0])).unwrap()
        };
        assert_eq!(trim(1, 3), (1, 3));
        assert_eq!(trim(-2, 3), (0, 1));
        assert_eq!(trim(4, 3), (4, 1));
        assert_eq!(trim(-7, 3), (0, 0));
        assert_eq!(trim(9, 3), (5, 0));
        assert_eq!(trim(i64::MIN, usize::MAX), (0, 0));
    }

    #[test]
    fn leaving_the_sample_is_an_error_that_shows_both() {
        let window = Window { anchor: vec![0, -1], extent: vec![2, 2] };
        let error = OutOfBounds::Error.settle(window, &[4, 4]).unwrap_err().to_string();
        assert_eq!(error, "a window of [2, 2] from [0, -1] on leaves a sample of shape [4, 4]");
    }

    #[test]
    fn sizes_that_are_no_sizes_are_errors() {
        assert_eq!(size_of(4.9).unwrap(), Some(4));
        assert_eq!(size_of(0.9).unwrap(), None);
        assert_eq!(size_of(-3.0).unwrap(), None);
        for size in [f32::NAN, f32::INFINITY, 1e30] {
            assert!(size_of(size).is_err(), "{size}");
        }
        assert!(together(&[1.0]).is_err() && together(&[1.0; 4]).is_err());
        assert!(axes(Layout::from_letters(b"HC"), 2).is_err());
    }
}
