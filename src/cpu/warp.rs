//! Images and volumes seen through an affine map, images through any: for each pixel written, where it is read. It must not
//! know where the map comes from. Steps and their order are DALI's on a CPU, in float32.

use super::convert::ConvertSat;

/// Pixels between places that are computed anew; from there each is the last one and a step.
const CHECKPOINT: usize = 256;

/// From a place in the output to the place in the source: coefficients of x, y and z and an offset, for each of x, y and z. Of
/// images the third row and column are not used.
pub type Map = [[f32; 4]; 3];

/// What surrounds the source: its own edge when there is no value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// The pixel that holds the place.
    Nearest,
    /// The weighted mean of the pixels around the place.
    Linear,
}

/// A volume of interleaved channels, or an image: a volume of one plane.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a, S> {
    /// The elements.
    pub values: &'a [S],
    /// Extents along x, y and z.
    pub size: [usize; 3],
    /// Channels of a pixel.
    pub channels: usize,
}

/// What does not change from pixel to pixel.
struct Reader<'a, S, T> {
    source: Pixels<'a, S>,
    /// The value of pixels outside as elements of the output, and as the source would hold it.
    outside: Option<(T, f32)>,
    is_volume: bool,
}

/// Writes to `dst`, of `size` pixels along x, y and z, what `map` finds in `source`. Outside of the source is `fill`, or its edge.
/// A source without pixels has nothing to show: nothing is written.
pub fn warp<S, T>(
    source: Pixels<'_, S>,
    dst: &mut [T],
    size: [usize; 3],
    map: &Map,
    sampling: Sampling,
    fill: Option<f32>,
    is_volume: bool,
) where
    S: ConvertSat<f32> + ConvertSat<T>,
    T: Copy + ConvertSat<S>,
    f32: ConvertSat<T>,
{
    let [width, height, _] = size;
    let (channels, pixels) = (source.channels, source.size.iter().product::<usize>());
    if channels == 0 || width == 0 || source.values.len() < pixels * channels || pixels == 0 {
        return;
    }
    let outside = fill.map(|fill| {
        let value: T = fill.convert_sat();
        let stored: S = value.convert_sat();
        (value, stored.convert_sat())
    });
    let reader = Reader { source, outside, is_volume };
    let step = [map[0][0], map[1][0], map[2][0]];
    for (line, row) in dst.chunks_exact_mut(width * channels).enumerate() {
        let center = [0.5, (line % height) as f32 + 0.5, (line / height) as f32 + 0.5];
        let mut checkpoint = map.map(|[x, y, z, offset]| {
            let place = offset + x * center[0] + y * center[1];
            if is_volume { place + z * center[2] } else { place }
        });
        for piece in row.chunks_mut(CHECKPOINT * channels) {
            let mut place = checkpoint;
            for pixel in piece.chunks_exact_mut(channels) {
                match sampling {
                    Sampling::Nearest => reader.nearest(place, pixel),
                    Sampling::Linear if is_volume => reader.trilinear(place, pixel),
                    Sampling::Linear => reader.bilinear(place, pixel),
                }
                place = [place[0] + step[0], place[1] + step[1], place[2] + step[2]];
            }
            for (place, step) in checkpoint.iter_mut().zip(step) {
                *place += CHECKPOINT as f32 * step;
            }
        }
    }
}

/// Writes to `dst`, an image as large as `source`, what `source` shows at `place` of each x and y; outside of it is `fill`.
pub fn displace<T>(
    source: Pixels<'_, T>,
    dst: &mut [T],
    sampling: Sampling,
    fill: T,
    place: impl Fn(usize, usize) -> [f32; 2],
) where
    T: ConvertSat<T> + ConvertSat<f32>,
    f32: ConvertSat<T>,
{
    let ([width, ..], channels) = (source.size, source.channels);
    let reader = Reader { source, outside: Some((fill, fill.convert_sat())), is_volume: false };
    for (y, row) in dst.chunks_exact_mut((width * channels).max(1)).enumerate() {
        for (x, pixel) in row.chunks_exact_mut(channels).enumerate() {
            let [x, y] = place(x, y);
            match sampling {
                Sampling::Nearest => reader.nearest([x, y, 0.0], pixel),
                Sampling::Linear => reader.bilinear([x, y, 0.0], pixel),
            }
        }
    }
}

/// Cell and fraction of a place along one axis, for pixel centers at integers.
fn cell(place: f32) -> (i64, f32) {
    let place = place - 0.5;
    let first = i64::from(place.floor() as i32);
    (first, place - first as f32)
}

impl<S, T> Reader<'_, S, T>
where
    S: ConvertSat<f32> + ConvertSat<T>,
    T: Copy + ConvertSat<S>,
    f32: ConvertSat<T>,
{
    /// Where the pixel at these coordinates begins; `None` when it is outside and outside has a value.
    fn start(&self, at: [i64; 3]) -> Option<usize> {
        let mut start = 0;
        for (i, extent) in at.into_iter().zip(self.source.size).rev() {
            let inside = i.clamp(0, extent as i64 - 1);
            if inside != i && self.outside.is_some() {
                return None;
            }
            start = start * extent + inside as usize;
        }
        Some(start * self.source.channels)
    }

    /// Channel `c` of the pixel that begins at `start`.
    fn value(&self, start: Option<usize>, c: usize) -> f32 {
        match (start, self.outside) {
            (Some(start), _) => self.source.values[start + c].convert_sat(),
            (None, Some((_, fill))) => fill,
            (None, None) => 0.0,
        }
    }

    fn nearest(&self, place: [f32; 3], pixel: &mut [T]) {
        // What is no number is far outside, as it is in C++ on x86.
        let pixel_of = |place: f32| if place.is_nan() { i32::MIN } else { place.floor() as i32 };
        let [x, y, z] = place.map(|place| i64::from(pixel_of(place)));
        let z = if self.is_volume { z } else { 0 };
        match (self.start([x, y, z]), self.outside) {
            (Some(start), _) => {
                for (to, &from) in pixel.iter_mut().zip(&self.source.values[start..]) {
                    *to = from.convert_sat();
                }
            }
            (None, Some((fill, _))) => pixel.fill(fill),
            (None, None) => {}
        }
    }

    fn bilinear(&self, place: [f32; 3], pixel: &mut [T]) {
        let ((x, qx), (y, qy)) = (cell(place[0]), cell(place[1]));
        let px = 1.0 - qx;
        let corners = [[x, y], [x + 1, y], [x, y + 1], [x + 1, y + 1]].map(|[x, y]| self.start([x, y, 0]));
        for (c, to) in pixel.iter_mut().enumerate() {
            let [s00, s01, s10, s11] = corners.map(|start| self.value(start, c));
            let (s0, s1) = (s00 * px + s01 * qx, s10 * px + s11 * qx);
            *to = (s0 + (s1 - s0) * qy).convert_sat();
        }
    }

    fn trilinear(&self, place: [f32; 3], pixel: &mut [T]) {
        let [(x, qx), (y, qy), (z, qz)] = place.map(cell);
        let (px, py) = (1.0 - qx, 1.0 - qy);
        let plane = |z| [[x, y], [x + 1, y], [x, y + 1], [x + 1, y + 1]].map(|[x, y]| self.start([x, y, z]));
        let planes = [plane(z), plane(z + 1)];
        for (c, to) in pixel.iter_mut().enumerate() {
            let [s0, s1] = planes.map(|corners| {
                let [s00, s01, s10, s11] = corners.map(|start| self.value(start, c));
                (s00 * px + s01 * qx) * py + (s10 * px + s11 * qx) * qy
            });
            *to = (s0 + (s1 - s0) * qz).convert_sat();
        }
    }
}
