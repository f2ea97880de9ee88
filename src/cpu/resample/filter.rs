//! Filter windows and the weights they give each output coordinate of one axis, in the float32 arithmetic of DALI's CPU
//! resize: same operations in the same order, so weights agree to the last bit. It must not know pixels.

use std::f32::consts::PI;
use std::f64::consts::SQRT_2;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::limits;

/// Interpolation of one axis. Names and order follow DALI's `DALIInterpType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// The nearest source pixel.
    Nearest,
    /// Two taps; with antialiasing the same as [`Filter::Triangular`].
    Linear,
    /// Keys' cubic with a = -0.5 (Catmull-Rom), stretched when antialiasing.
    Cubic,
    /// Lanczos window with three lobes, stretched when antialiasing.
    Lanczos3,
    /// A triangle as wide as the scale factor; without antialiasing the same as [`Filter::Linear`].
    Triangular,
    /// A Gaussian as wide as the scale factor.
    Gaussian,
}

impl Filter {
    const ALL: [Filter; 6] = [
        Filter::Nearest,
        Filter::Linear,
        Filter::Cubic,
        Filter::Lanczos3,
        Filter::Triangular,
        Filter::Gaussian,
    ];

    /// The filter with number `id` in a serialized pipeline; `None` for an unknown number.
    pub fn from_dali(id: i64) -> Option<Self> {
        usize::try_from(id).ok().and_then(|id| Self::ALL.get(id).copied())
    }
}

/// Which filter an axis uses in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterSpec {
    /// When the output is smaller than the region.
    pub min: Filter,
    /// When it is not.
    pub mag: Filter,
    /// Whether `min` is stretched by the scale factor.
    pub antialias: bool,
}

impl Default for FilterSpec {
    /// DALI's defaults: linear with antialiasing.
    fn default() -> Self {
        Self { min: Filter::Linear, mag: Filter::Linear, antialias: true }
    }
}

/// How source pixels are weighed, by how far they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowShape {
    /// The nearest one counts.
    Nearest,
    /// Less and less, in a straight line.
    Triangular,
    /// As a bell.
    Gaussian,
    /// By cubic polynomials.
    Cubic,
    /// As a sine's wave under the arch of a longer one.
    Lanczos3,
}

/// What a device needs to know of one axis to make its weights as `Axis::new` does, but for one rounding (`source_of`
/// in `kernels/resample_axis.cuh`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisParameters {
    /// How source pixels are weighed.
    pub shape: WindowShape,
    /// Weights of an output pixel.
    pub taps: usize,
    /// Source coordinate of the first tap of output 0, not rounded up; for nearest, where output 0 begins.
    pub start: f32,
    /// Source pixels that an output pixel advances.
    pub scale: f32,
    /// Table entries per source pixel.
    pub table_scale: f32,
    /// The source pixel that `start` counts from: it decides how coordinates are rounded.
    pub origin: usize,
}

impl AxisParameters {
    /// The parameters of an axis that shows `roi` of its source in `size` pixels and counts source pixels from `origin`
    /// on.
    pub(super) fn new(window: Option<&Window>, roi: (f32, f32), size: usize, origin: usize) -> Self {
        let scale = (roi.1 - roi.0) / size as f32;
        let start = roi.0 - origin as f32;
        match window {
            None => Self { shape: WindowShape::Nearest, taps: 1, start, scale, table_scale: 0.0, origin },
            Some(window) => Self {
                shape: match window.table.len() {
                    GAUSSIAN_ENTRIES => WindowShape::Gaussian,
                    CUBIC_ENTRIES => WindowShape::Cubic,
                    LANCZOS3_ENTRIES => WindowShape::Lanczos3,
                    _ => WindowShape::Triangular,
                },
                taps: window.taps as usize,
                start: window.start(start, scale),
                scale,
                table_scale: window.scale,
                origin,
            },
        }
    }
}

const GAUSSIAN_ENTRIES: usize = 65;
const CUBIC_ENTRIES: usize = 129;
const LANCZOS3_ENTRIES: usize = 193;

/// A window as a table that spans `taps` source pixels, read with linear interpolation.
pub(super) struct Window {
    table: Vec<f32>,
    /// Table entries per source pixel.
    scale: f32,
    /// Source pixels from the window's start to its centre.
    anchor: f32,
    taps: f32,
}

impl Window {
    /// The window of `filter` for an axis that maps `extent` source pixels to `size` output pixels; `None` means
    /// nearest neighbour.
    pub(super) fn new(spec: FilterSpec, extent: f32, size: usize) -> Option<Self> {
        let size = size as f32;
        let (filter, antialias) = if size < extent { (spec.min, spec.antialias) } else { (spec.mag, false) };
        let ratio = if antialias { extent / size } else { 1.0 };
        let stretched = |radius: f32| {
            let radius = if antialias { radius.max(radius * extent / size) } else { radius };
            2.0 * radius
        };
        let (table, support) = match filter {
            Filter::Nearest => return None,
            Filter::Linear | Filter::Triangular => (vec![0.0, 1.0, 0.0], (2.0 * ratio).max(1.0)),
            Filter::Gaussian => {
                // Only this order of roundings gives as many taps as DALI has where the ratio is a whole number.
                let sigma = (f64::from(ratio * 0.5) / SQRT_2) as f32;
                (table(GAUSSIAN_ENTRIES, 4.0, gaussian), ((4.0 * SQRT_2) as f32 * sigma).max(1.0))
            }
            Filter::Cubic => (table(CUBIC_ENTRIES, 4.0, cubic), stretched(2.0)),
            Filter::Lanczos3 => (table(LANCZOS3_ENTRIES, 6.0, lanczos3), stretched(3.0)),
        };
        let last = (table.len() - 1) as f32;
        let scale = last / support;
        Some(Self { anchor: last * 0.5 / scale, taps: (last / scale).ceil(), table, scale })
    }

    pub(super) fn taps(window: Option<&Self>) -> f32 {
        window.map_or(1.0, |w| w.taps)
    }

    pub(super) fn anchor(window: Option<&Self>) -> f32 {
        window.map_or(0.0, |w| w.anchor)
    }

    /// The window at table coordinate `t`, zero outside of the table.
    fn at(&self, t: f32) -> f32 {
        if t.is_nan() || t <= -1.0 {
            return 0.0;
        }
        let below = t.floor();
        let entry = |i: f32| if i < 0.0 { 0.0 } else { self.table.get(i as usize).copied().unwrap_or(0.0) };
        if below >= self.table.len() as f32 {
            return 0.0;
        }
        let (low, high) = (entry(below), entry(below + 1.0));
        low + (t - below) * (high - low)
    }
}

/// Samples `window` at `entries` points, `width` apart from the first to the last, around zero.
fn table(entries: usize, width: f32, window: impl Fn(f32) -> f32) -> Vec<f32> {
    let last = (entries - 1) as f32;
    (0..entries).map(|i| window(width * (i as f32 - last * 0.5) / last)).collect()
}

fn gaussian(x: f32) -> f32 {
    (-x * x).exp()
}

fn cubic(x: f32) -> f32 {
    let x = x.abs();
    if x >= 2.0 {
        0.0
    } else if x > 1.0 {
        -0.5 * x * x * x + 2.5 * x * x - 4.0 * x + 2.0
    } else {
        1.5 * x * x * x - 2.5 * x * x + 1.0
    }
}

fn lanczos3(x: f32) -> f32 {
    let sinc = |x: f32| {
        let x = x * PI;
        if x.abs() < 1e-3 { 1.0 - x * x * (1.0 / 6.0) } else { x.sin() / x }
    };
    if x.abs() >= 3.0 { 0.0 } else { sinc(x) * sinc(x / 3.0) }
}

/// How one axis of an image is resampled: `taps` weights for each output coordinate, applied to consecutive source
/// coordinates from `first` on. Coordinates outside of the source repeat its edge.
pub(super) struct Axis {
    /// First tap of each output coordinate; may lie outside of `0..length`.
    pub(super) first: Vec<i64>,
    /// `taps` weights for each output coordinate, in a row.
    pub(super) weights: Vec<f32>,
    pub(super) taps: usize,
    /// Source coordinates.
    pub(super) length: usize,
    /// Output coordinates whose taps all lie inside of the source.
    pub(super) regular: Range<usize>,
    /// The smallest range that holds every source coordinate of every output.
    pub(super) needed: Range<usize>,
}

/// Checks that an axis of `size` output pixels does not need too many weights.
///
/// # Errors
/// When there are more than [`limits::MAX_FILTER_TAPS`].
pub(super) fn check_taps(window: Option<&Window>, size: usize) -> Result<()> {
    let taps = Window::taps(window);
    if f64::from(taps) * size as f64 <= limits::MAX_FILTER_TAPS as f64 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "resizing to {size} pixels with {taps} taps each needs more filter weights than the limit of {}",
        limits::MAX_FILTER_TAPS
    )))
}

impl Axis {
    /// Resamples `length` source pixels to `size` so that output `x` has its centre at `origin + (x + 0.5) * scale`.
    /// `accumulate` (nearest neighbour only) adds `scale` up instead of multiplying, as DALI does for rows.
    ///
    /// # Errors
    /// When there are more than [`limits::MAX_FILTER_TAPS`] weights.
    pub(super) fn new(
        window: Option<&Window>,
        length: usize,
        size: usize,
        origin: f32,
        scale: f32,
        accumulate: bool,
    ) -> Result<Self> {
        check_taps(window, size)?;
        let taps = Window::taps(window) as usize;
        let (first, weights) = match window {
            Some(window) => window.weights(taps, size, origin, scale),
            None => (nearest(length, size, origin, scale, accumulate), vec![1.0; size]),
        };
        let inside = |&i: &i64| i >= 0 && i.saturating_add(taps as i64) <= length as i64;
        let start = first.iter().position(inside).unwrap_or(size);
        let end = start + first.iter().skip(start).take_while(|i| inside(i)).count();
        // Sources go up or down all the way.
        let reach =
            |tap: Option<&i64>| tap.map_or(0, |&i| i.clamp(0, length.saturating_sub(1) as i64) as usize);
        let (one, other) = (reach(first.first()), reach(first.last()));
        let last = one.max(other).saturating_add(taps).min(length);
        Ok(Self { first, weights, taps, length, regular: start..end, needed: one.min(other)..last })
    }

    /// Source coordinate of tap `k` of output `x`.
    pub(super) fn source(&self, x: usize, k: usize) -> usize {
        let last = self.length.saturating_sub(1) as i64;
        self.first.get(x).map_or(0, |&i| i.saturating_add(k as i64).clamp(0, last)) as usize
    }

    /// Weights of output `x`.
    pub(super) fn weights_of(&self, x: usize) -> &[f32] {
        self.weights.get(x * self.taps..(x + 1) * self.taps).unwrap_or_default()
    }
}

impl Window {
    /// Source coordinate of the first tap of output 0, before it is rounded up.
    fn start(&self, origin: f32, scale: f32) -> f32 {
        origin + (0.5 * scale - 0.5 - self.anchor)
    }

    fn weights(&self, taps: usize, size: usize, origin: f32, scale: f32) -> (Vec<i64>, Vec<f32>) {
        let start = self.start(origin, scale);
        let mut first = Vec::with_capacity(size);
        let mut weights = Vec::with_capacity(size * taps);
        for x in 0..size {
            let source = x as f32 * scale + start;
            let tap = source.ceil();
            first.push(tap as i64);
            let offset = tap - source;
            let begin = weights.len();
            weights.extend((0..taps).map(|k| self.at((offset + k as f32) * self.scale)));
            let own = &mut weights[begin..];
            let sum = own.iter().fold(0.0, |sum, w| sum + w);
            if sum != 0.0 {
                own.iter_mut().for_each(|w| *w /= sum);
            }
        }
        (first, weights)
    }
}

/// The nearest source coordinate of each output, already inside of the source.
fn nearest(length: usize, size: usize, origin: f32, scale: f32, accumulate: bool) -> Vec<i64> {
    let last = length.saturating_sub(1) as i64;
    let mut running = origin + 0.5 * scale;
    (0..size)
        .map(|x| {
            let source = if accumulate { running } else { origin + (x as f32 + 0.5) * scale };
            running += scale;
            (source.floor() as i64).clamp(0, last)
        })
        .collect()
}
