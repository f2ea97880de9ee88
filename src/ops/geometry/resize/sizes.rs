//! The numbers behind a resize: values for all sides or one, the size that a mode makes of the one asked for, and
//! regions, as DALI rounds them. Nothing here knows arguments or samples.

use crate::error::{Error, Result};

/// Largest correction of the source region for a rounded size.
const MAX_SUBPIXEL_CORRECTION: f64 = 10.0;

/// A region of fewer pixels than this is made as large as this, around its middle: so one line of an image is repeated,
/// and nothing is divided by 0.
const MIN_REGION: f64 = 1e-3;

/// What becomes of sides that are not given, and of the ratio of those that are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mode {
    Default,
    Stretch,
    NotLarger,
    NotSmaller,
}

/// One value for each side.
pub(super) fn sides<const N: usize>(name: &str, values: &[f32]) -> Result<[f32; N]> {
    <[f32; N]>::try_from(values)
        .map_err(|_| Error::invalid(format!("argument `{name}` has {} values, expected {N}", values.len())))
}

/// One value for each side, or one for all.
pub(super) fn all_or_each<const N: usize>(name: &str, values: &[f32]) -> Result<[f32; N]> {
    match values {
        [all] => Ok([*all; N]),
        each => sides(name, each),
    }
}

/// A region as wide as [`MIN_REGION`] at least.
pub(super) fn widened(start: f64, end: f64) -> (f32, f32) {
    if (end - start).abs() >= MIN_REGION {
        return (start as f32, end as f32);
    }
    let half = f64::from(if start <= end { 0.5 * MIN_REGION as f32 } else { -0.5 * MIN_REGION as f32 });
    ((start - half) as f32, (end + half) as f32)
}

/// A region whose ends are in order, and which of them changed places.
pub(super) fn swapped<const N: usize>(region: [(f32, f32); N]) -> ([(f32, f32); N], [bool; N]) {
    let turned = region.map(|(start, end)| end < start);
    (region.map(|(start, end)| (start.min(end), start.max(end))), turned)
}

/// A size of dimension `d`, no larger than `max` says; a limit of 0 or less is none.
pub(super) fn bounded<const N: usize>(size: f32, max: Option<[f32; N]>, d: usize) -> f32 {
    match max.map(|max| max[d]) {
        Some(max) if max > 0.0 => size.min(max),
        _ => size,
    }
}

/// The wanted size, still a float and signed, from the requested one (0: not given) and the region's extent.
pub(super) fn adjust<const N: usize>(
    requested: [f32; N],
    extent: [f32; N],
    mode: Mode,
    max_size: Option<[f32; N]>,
) -> [f32; N] {
    let scale = |d: usize| f64::from((requested[d] / extent[d]).abs());
    let scales: Vec<f64> = (0..N).filter(|&d| requested[d] != 0.0).map(scale).collect();
    let Some(first) = scales.first().copied() else { return extent };
    let sign = requested.map(|r| if r < 0.0 { -1.0 } else { 1.0 });
    if let Mode::NotLarger | Mode::NotSmaller = mode {
        let mut all =
            scales.iter().copied().fold(first, if mode == Mode::NotLarger { f64::min } else { f64::max });
        for (max, extent) in max_size.iter().flatten().zip(extent).filter(|(max, _)| **max > 0.0) {
            all = all.min(f64::from(*max) / f64::from(extent));
        }
        // What was asked for stays as it is where it has that scale: no rounding of a product makes it another size.
        return std::array::from_fn(|d| match requested[d] != 0.0 && scale(d) == all {
            true => requested[d],
            false => (f64::from(extent[d]) * all) as f32 * sign[d],
        });
    }
    // The geometric mean of the given scales.
    let missing = match (mode, scales.as_slice()) {
        (Mode::Stretch, _) => 1.0,
        (_, [_]) => first,
        (_, all) => all.iter().product::<f64>().powf(1.0 / all.len() as f64),
    };
    std::array::from_fn(|d| {
        let size = match requested[d] == 0.0 {
            true => (f64::from(extent[d]) * missing) as f32,
            false => requested[d].abs(),
        };
        sign[d] * bounded(size, max_size, d)
    })
}

/// Scales a region around the point that lies `alignment` of the way through it.
pub(super) fn rescale((start, end): (f32, f32), alignment: f64, ratio: f64) -> (f32, f32) {
    let ratio = ratio.clamp(-MAX_SUBPIXEL_CORRECTION, MAX_SUBPIXEL_CORRECTION);
    let (start, end) = (f64::from(start), f64::from(end));
    let fixed = (1.0 - alignment) * start + alignment * end;
    ((fixed + (start - fixed) * ratio) as f32, (fixed + (end - fixed) * ratio) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: [f32; 2] = [600.0, 1200.0];

    #[test]
    fn sizes_follow_the_mode() {
        let adjusted = |requested: [f32; 2], mode, max: Option<[f32; 2]>| {
            adjust(requested, IMAGE, mode, max).map(f32::round)
        };
        assert_eq!(adjusted([256.0, 256.0], Mode::NotSmaller, None), [256.0, 512.0]);
        assert_eq!(adjusted([800.0, 800.0], Mode::NotSmaller, Some([1400.0; 2])), [700.0, 1400.0]);
        assert_eq!(adjusted([100.0, 100.0], Mode::NotSmaller, Some([150.0; 2])), [75.0, 150.0]);
        assert_eq!(adjusted([0.0, 100.0], Mode::Default, Some([40.0; 2])), [40.0, 40.0]);
        assert_eq!(adjusted([0.0, -333.0], Mode::Default, None), [167.0, -333.0]);
        assert_eq!(adjusted([0.0, 300.0], Mode::Stretch, None), [600.0, 300.0]);
        assert_eq!(adjusted([0.0, 0.0], Mode::Default, None), IMAGE);
        let volume =
            |requested: [f32; 3], mode| adjust(requested, [10.0, 20.0, 40.0], mode, None).map(f32::round);
        assert_eq!(volume([0.0, 10.0, 80.0], Mode::Default), [10.0, 10.0, 80.0]);
        assert_eq!(volume([0.0, 0.0, 80.0], Mode::Default), [20.0, 40.0, 80.0]);
        assert_eq!(volume([30.0, 30.0, 30.0], Mode::NotLarger), [8.0, 15.0, 30.0]);
    }

    #[test]
    fn a_size_that_was_asked_for_is_exact() {
        for extent in 1..2000 {
            let extent = extent as f32;
            let size = adjust([256.0, 256.0], [extent, 2.0 * extent], Mode::NotSmaller, None);
            assert_eq!(size[0], 256.0, "{extent}");
        }
    }

    #[test]
    fn regions_without_extent_keep_a_line() {
        let (start, end) = widened(30.0, 30.0);
        assert!(start < 30.0 && 30.0 < end && end - start < 0.002);
        assert_eq!(widened(1.0, 0.5), (1.0, 0.5));
        assert_eq!(bounded(9.0, Some([0.0, 4.0]), 0), 9.0);
        assert_eq!(bounded(9.0, Some([0.0, 4.0]), 1), 4.0);
    }
}
