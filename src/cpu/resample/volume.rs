//! Volumes: three passes, one along each axis, in the order that DALI's estimate of costs finds cheapest. The
//! arithmetic is that of images; between passes is a whole volume of float32.

use super::filter::{Axis, AxisParameters, FilterSpec, Window, check_taps};
use super::footprint;
use super::run::weigh_rows;
use super::store::{Output, Segments};
use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::limits;

const X: usize = 2;

/// The orders in which DALI tries the passes; the first of the cheapest is taken.
const ORDERS: [[usize; 3]; 6] = [[2, 1, 0], [2, 0, 1], [1, 2, 0], [1, 0, 2], [0, 2, 1], [0, 1, 2]];

/// What a resize is made of before any weight is.
pub(super) struct Passes {
    pub(super) windows: [Option<Window>; 3],
    /// The axes in the order of the passes.
    pub(super) order: [usize; 3],
    /// Of each axis the source pixels that it is counted in: the first pass sees all of its axis, of the others what
    /// later passes need.
    pub(super) spans: [(usize, usize); 3],
}

impl Passes {
    pub(super) fn new(
        image: [usize; 3],
        output: [usize; 3],
        roi: [(f32, f32); 3],
        filter: FilterSpec,
    ) -> Self {
        let windows = [0, 1, X].map(|d| Window::new(filter, (roi[d].1 - roi[d].0).abs(), output[d]));
        let reach = [0, 1, X].map(|d| footprint(windows[d].as_ref(), roi[d], image[d]));
        let order = cheapest_order(&windows, reach.map(|(low, high)| high - low), output);
        let spans = [0, 1, X].map(|d| if order[0] == d { (0, image[d]) } else { reach[d] });
        Self { windows, order, spans }
    }
}

/// What a device needs to know of depth, height and width to resize as [`VolumePlan::new`] with the same arguments.
pub fn volume_parameters(
    image: [usize; 3],
    output: [usize; 3],
    roi: [(f32, f32); 3],
    filter: FilterSpec,
) -> [AxisParameters; 3] {
    let Passes { windows, spans, .. } = Passes::new(image, output, roi, filter);
    [0, 1, X].map(|d| AxisParameters::new(windows[d].as_ref(), roi[d], output[d], spans[d].0))
}

/// How volumes of one size, dense (D, H, W, C), become volumes of another size.
pub struct VolumePlan {
    image: [usize; 3],
    channels: usize,
    output: [usize; 3],
    /// The axes in the order of the passes.
    order: [usize; 3],
    /// Whether all axes are nearest neighbour: then there are no passes.
    is_nearest: bool,
    axes: [Axis; 3],
    /// First source coordinate that each axis counts from.
    origin: [usize; 3],
}

impl VolumePlan {
    /// Whether a resize can be planned: cheap, and before any weight is made. Arguments as in [`super::Plan::new`].
    ///
    /// # Errors
    /// When an extent is zero or too large, the region is not finite, or the filters or what is between passes need too
    /// much memory.
    pub fn check(
        image: [usize; 3],
        channels: usize,
        output: [usize; 3],
        roi: [(f32, f32); 3],
        filter: FilterSpec,
    ) -> Result<()> {
        // Every volume between passes has of each axis the extent before or after.
        let largest: [usize; 3] = std::array::from_fn(|d| image[d].max(output[d]));
        let elements = |size: [usize; 3]| size.iter().try_fold(channels, |n, &extent| n.checked_mul(extent));
        let most = limits::MAX_SAMPLE_BYTES / size_of::<f32>();
        let [least, most_needed] =
            [elements(std::array::from_fn(|d| image[d].min(output[d]))), elements(largest)];
        if least.is_none_or(|n| n == 0) || most_needed.is_none_or(|n| n > most) {
            return Err(Error::invalid(format!(
                "cannot resize a volume of {image:?} voxels of {channels} channels to {output:?}, expected 1 to {most} elements"
            )));
        }
        if roi.iter().any(|(start, end)| !(end - start).is_finite()) {
            return Err(Error::invalid(format!(
                "expected a finite region of interest to resize, found {roi:?}"
            )));
        }
        for d in 0..3 {
            let window = Window::new(filter, (roi[d].1 - roi[d].0).abs(), output[d]);
            check_taps(window.as_ref(), output[d])?;
        }
        Ok(())
    }

    /// Plans a resize; see [`VolumePlan::check`].
    ///
    /// # Errors
    /// As there.
    pub fn new(
        image: [usize; 3],
        channels: usize,
        output: [usize; 3],
        roi: [(f32, f32); 3],
        filter: FilterSpec,
    ) -> Result<Self> {
        Self::check(image, channels, output, roi, filter)?;
        let Passes { windows, order, spans } = Passes::new(image, output, roi, filter);
        let axis = |d: usize| {
            let (origin, end) = spans[d];
            let scale = (roi[d].1 - roi[d].0) / output[d] as f32;
            Axis::new(windows[d].as_ref(), end - origin, output[d], roi[d].0 - origin as f32, scale, d != X)
        };
        let origin = spans.map(|(origin, _)| origin);
        let axes = [axis(0)?, axis(1)?, axis(X)?];
        let is_nearest = windows.iter().all(Option::is_none);
        Ok(Self { image, channels, output, order, is_nearest, axes, origin })
    }

    /// Resizes `src` to `dst`, which have the plan's sizes.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub fn run<S, T>(&self, src: &[S], dst: &mut [T], watch: &Watch<'_>) -> Result<()>
    where
        S: ConvertSat<f32> + ConvertSat<T>,
        T: Output,
    {
        if self.is_nearest {
            return self.nearest(src, dst, watch);
        }
        let mut extent = self.axes.each_ref().map(|axis| axis.length);
        let mut volume = self.cut(src, extent);
        for d in self.order {
            volume = self.pass(d, &volume, &mut extent, watch)?;
        }
        let row = self.output[X] * self.channels;
        let regular = &self.axes[X].regular;
        let segments = if self.order[2] == X {
            let ranges = [0..regular.start, regular.start..regular.end, regular.end..self.output[X]];
            let ranges = ranges.map(|range| range.start * self.channels..range.end * self.channels);
            Segments { ranges, unit: self.channels }
        } else {
            Segments { ranges: [0..row, 0..0, 0..0], unit: 1 }
        };
        for (from, to) in volume.chunks_exact(row).zip(dst.chunks_exact_mut(row)) {
            segments.store(from, to);
        }
        Ok(())
    }

    /// The part of the source that is needed.
    fn cut<S: ConvertSat<f32>>(&self, src: &[S], [depth, height, width]: [usize; 3]) -> Vec<f32> {
        let len = width * self.channels;
        let mut part = vec![0.0; depth * height * len];
        for (line, to) in part.chunks_exact_mut(len).enumerate() {
            let (z, y) = (self.origin[0] + line / height, self.origin[1] + line % height);
            let start = ((z * self.image[1] + y) * self.image[X] + self.origin[X]) * self.channels;
            convert_slice(&src[start..start + len], to);
        }
        part
    }

    /// Resamples along axis `d` of a volume of `extent`, which becomes that of the result.
    fn pass(&self, d: usize, volume: &[f32], extent: &mut [usize; 3], watch: &Watch<'_>) -> Result<Vec<f32>> {
        let axis = &self.axes[d];
        let outer: usize = extent[..d].iter().product();
        let inner = extent[d + 1..].iter().product::<usize>() * self.channels;
        let mut result = vec![0.0; outer * self.output[d] * inner];
        let mut starts = Vec::with_capacity(axis.taps);
        for (line, to) in result.chunks_exact_mut(inner).enumerate() {
            let (block, place) = (line / self.output[d], line % self.output[d]);
            starts.clear();
            starts.extend((0..axis.taps).map(|k| (block * extent[d] + axis.source(place, k)) * inner));
            weigh_rows(volume, &mut starts, axis.weights_of(place), to, watch)?;
        }
        extent[d] = self.output[d];
        Ok(result)
    }

    fn nearest<S: ConvertSat<T>, T>(&self, src: &[S], dst: &mut [T], watch: &Watch<'_>) -> Result<()> {
        let [_, height, width] = self.output;
        for (voxel, to) in dst.chunks_exact_mut(self.channels).enumerate() {
            let place = [voxel / (width * height), voxel / width % height, voxel % width];
            let [z, y, x] = std::array::from_fn(|d| self.axes[d].source(place[d], 0) + self.origin[d]);
            let start = ((z * self.image[1] + y) * self.image[X] + x) * self.channels;
            to.iter_mut().zip(&src[start..]).for_each(|(to, from)| *to = from.convert_sat());
            watch.charge(self.channels)?;
        }
        Ok(())
    }
}

/// DALI's choice: the first order with the smallest estimated cost.
fn cheapest_order(windows: &[Option<Window>; 3], reach: [usize; 3], output: [usize; 3]) -> [usize; 3] {
    const COST_PER_TAP: [f32; 3] = [1.2, 1.0, 1.4];
    const COST_PER_OUTPUT: f32 = 3.0;
    let cost = |passes: [usize; 3]| {
        let mut extent = reach;
        passes.iter().fold(0.0, |cost: f32, &d| {
            extent[d] = output[d];
            let volume = extent.iter().map(|&extent| extent as f32).product::<f32>();
            let taps = Window::taps(windows[d].as_ref()).max(1.0);
            cost + (COST_PER_TAP[d] * taps * volume + COST_PER_OUTPUT * volume)
        })
    };
    let mut best = ORDERS[0];
    for order in ORDERS {
        if cost(order) < cost(best) {
            best = order;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::resample::Filter;

    #[test]
    fn huge_volumes_are_refused_before_anything_is_allocated() {
        let roi = [(0.0, 4.0); 3];
        let check =
            |image, channels, output| VolumePlan::check(image, channels, output, roi, FilterSpec::default());
        assert!(check([4; 3], 2, [5; 3]).is_ok());
        assert!(check([4; 3], 0, [5; 3]).is_err());
        assert!(check([4; 3], 1, [usize::MAX, 2, 2]).is_err());
        // Each volume is small, what is between the passes is not.
        assert!(check([1, 1, 1 << 20], 1, [1 << 10, 1 << 10, 1]).is_err());
    }

    #[test]
    fn a_region_is_sampled_where_it_is() {
        let src: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let nearest = FilterSpec { min: Filter::Nearest, mag: Filter::Nearest, antialias: false };
        let roi = [(1.0, 3.0), (2.0, 4.0), (3.0, 1.0)];
        let mut dst = [0.0f32; 8];
        let forever = Watch::forever();
        VolumePlan::new([4; 3], 1, [2; 3], roi, nearest).unwrap().run(&src, &mut dst, &forever).unwrap();
        assert_eq!(dst, [26.0, 25.0, 30.0, 29.0, 42.0, 41.0, 46.0, 45.0]);
        let linear = VolumePlan::new([4; 3], 1, [2; 3], roi, FilterSpec::default()).unwrap();
        linear.run(&src, &mut dst, &forever).unwrap();
        assert_eq!(dst, [26.0, 25.0, 30.0, 29.0, 42.0, 41.0, 46.0, 45.0]);
    }
}
