//! What a resize is expected to take, from sizes and regions, before any weight is made: enough to tell what takes
//! milliseconds from what takes seconds. It must not resample.
//!
//! The figures are nanoseconds of one core of a Zen 5.

use super::filter::{FilterSpec, Window};
use super::{Order, Passes, X, Y, four, ring_slots, rows_at_once, volume};
use crate::deadline::Effort;

/// For each weight that is made.
const WEIGHT: f64 = 6.0;
/// For each product of the pass over columns, and where most weights lie outside of the image.
const ACROSS: f64 = 0.6;
const ACROSS_OUTSIDE: f64 = 2.5;
/// For each product of the pass over rows.
const DOWN: f64 = 0.4;
/// For each element that is copied: nearest neighbour.
const NEAREST: f64 = 2.0;
/// For each row of a pass over a volume, which may be as short as a voxel, and for each weight of it.
const LINE: f64 = 25.0;
const LINE_WEIGHT: f64 = 2.0;

/// Weights of an axis of `size` pixels, and what they take.
struct Weights {
    taps: f64,
    nanoseconds: f64,
    bytes: f64,
}

impl Weights {
    fn new(window: Option<&Window>, size: usize) -> Self {
        let taps = f64::from(Window::taps(window)).max(1.0);
        let count = taps * size as f64;
        let bytes = count * size_of::<f32>() as f64 + (size * size_of::<i64>()) as f64;
        Self { taps, nanoseconds: count * WEIGHT, bytes }
    }
}

/// What one image takes; arguments as in [`super::Plan::new`].
pub fn effort(
    image: [usize; 2],
    channels: usize,
    output: [usize; 2],
    roi: [(f32, f32); 2],
    filters: [FilterSpec; 2],
) -> Effort {
    let Passes { windows, order, spans } = Passes::new(image, output, roi, filters);
    let [down, across] = [Y, X].map(|d| Weights::new(windows[d].as_ref(), output[d]));
    let row = (output[X] * channels) as f64;
    let [reach_y, reach_x] = spans.map(|(low, high)| (high - low) as f64);
    let each_across = if across.taps > reach_x { ACROSS_OUTSIDE } else { ACROSS };
    let weights = down.nanoseconds + across.nanoseconds;
    let lines = output[Y] as f64;
    let (passes, floats) = match order {
        _ if windows.iter().all(Option::is_none) => (lines * row * NEAREST, row),
        Order::VerticalFirst => {
            let line = reach_x * channels as f64;
            (lines * (line * down.taps * DOWN + row * across.taps * each_across), line + row)
        }
        _ => {
            let horizontal = reach_y * row * across.taps * each_across;
            let group = rows_at_once(order, channels, spans[Y].1 - spans[Y].0);
            let slots = ring_slots(down.taps as usize, spans[Y].1 - spans[Y].0, group) as f64;
            let line = if group == 1 { image[X] * channels } else { four::room::<u8>(image[X]) * 2 } as f64;
            (horizontal + lines * row * down.taps * DOWN, slots * row + line + row)
        }
    };
    // Where the rows that an output row is made of begin.
    let starts = down.taps * size_of::<usize>() as f64;
    let scratch = floats * size_of::<f32>() as f64 + starts + down.bytes + across.bytes;
    Effort::new(weights + passes, scratch as usize)
}

/// What one volume takes; arguments as in [`super::VolumePlan::new`].
pub fn volume_effort(
    image: [usize; 3],
    channels: usize,
    output: [usize; 3],
    roi: [(f32, f32); 3],
    filter: FilterSpec,
) -> Effort {
    let passes = volume::Passes::new(image, output, roi, filter);
    let mut extent = passes.spans.map(|(low, high)| (high - low) as f64);
    let elements = |extent: [f64; 3]| extent.iter().product::<f64>() * channels as f64;
    if passes.windows.iter().all(Option::is_none) {
        return Effort::new(elements(output.map(|extent| extent as f64)) * 2.0 * NEAREST, 0);
    }
    let mut before = elements(extent);
    // What is cut from the source and converted.
    let (mut nanoseconds, mut most, mut tables) = (before, before, 0.0);
    for d in passes.order {
        let weights = Weights::new(passes.windows[d].as_ref(), output[d]);
        extent[d] = output[d] as f64;
        let after = elements(extent);
        let inner = extent[d + 1..].iter().product::<f64>() * channels as f64;
        let lines = after / inner.max(1.0);
        nanoseconds +=
            weights.nanoseconds + lines * (LINE + LINE_WEIGHT * weights.taps) + after * weights.taps * DOWN;
        tables += weights.bytes + weights.taps * size_of::<usize>() as f64;
        most = most.max(before + after);
        before = after;
    }
    Effort::new(nanoseconds, (most * size_of::<f32>() as f64 + tables) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::resample::{Plan, Scratch};

    const WHOLE: [(f32, f32); 2] = [(0.0, 600.0), (0.0, 800.0)];

    fn of(output: [usize; 2], roi: [(f32, f32); 2]) -> (Effort, usize) {
        let filters = [FilterSpec::default(); 2];
        let told = effort([600, 800], 3, output, roi, filters);
        let mut scratch = Scratch::default();
        let (src, mut dst) = (vec![0u8; 600 * 800 * 3], vec![0u8; output[0] * output[1] * 3]);
        Plan::new([600, 800], 3, output, roi, filters).unwrap().run(&src, &mut dst, &mut scratch).unwrap();
        (told, scratch.bytes())
    }

    #[test]
    fn a_region_far_beyond_the_image_takes_long_and_its_memory_is_told() {
        let (usual, taken) = of([200, 200], WHOLE);
        assert!(usual.scratch >= taken * 9 / 10, "{} for {taken}", usual.scratch);
        let (far, taken) = of([20, 20], [(0.0, 20_000.0), (0.0, 20_000.0)]);
        assert!(far.scratch >= taken * 9 / 10, "{} for {taken}", far.scratch);
        let tall = effort([600, 800], 3, [1, 800], [(0.0, 8e6), (0.0, 800.0)], [FilterSpec::default(); 2]);
        assert!(tall.time.as_millis() > 1_000 && tall.scratch > 128 << 20, "{tall:?}");
    }

    #[test]
    fn a_volume_takes_what_is_between_its_passes() {
        let filter = FilterSpec::default();
        let whole = [(0.0, 60.0); 3];
        let told = volume_effort([60; 3], 1, [90; 3], whole, filter);
        assert!(told.scratch >= (90 * 90 * 60 + 90 * 90 * 90) * 4, "{told:?}");
        let far = volume_effort([60; 3], 1, [90; 3], [(0.0, 60_000.0), whole[1], whole[2]], filter);
        assert!(far.time > 10 * told.time, "{far:?} and {told:?}");
    }
}
