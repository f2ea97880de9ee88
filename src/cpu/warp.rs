//! Images and volumes seen through an affine map, images through any: for each pixel written, where it is read. It must
//! not know where the map comes from. Steps and their order are DALI's on a CPU, in float32.

use multiversion::multiversion;

use super::convert::ConvertSat;
use super::places::{MAX_SIDE, PLACES, column_or_row};
use crate::deadline::{Effort, Watch};
use crate::error::Result;

/// Pixels between places that are computed anew; from there each is the last one and a step.
const CHECKPOINT: usize = 256;

/// From a place in the output to the place in the source: coefficients of x, y and z and an offset, for each of x, y
/// and z. Of images the third row and column are not used.
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

/// Channels that are computed together: a vector register of the smallest processors.
pub(super) const LANES: usize = 4;

impl<S: ConvertSat<f32>> Pixels<'_, S> {
    /// The first [`LANES`] elements from each of the four pixels around a place inside of an image, whose pixels have
    /// `channels` of them. `None` when one is outside, when they have more, or when less than that is left of the
    /// image.
    #[inline(always)]
    pub(super) fn corners(&self, [x, y]: [i64; 2], channels: usize) -> Option<[[f32; LANES]; 4]> {
        let [width, height, _] = self.size;
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        if channels > LANES || x + 1 >= width || y + 1 >= height {
            return None;
        }
        let start = (y * width + x) * channels;
        let below = start + width * channels;
        let rows = [
            self.values.get(start..start + channels + LANES)?,
            self.values.get(below..below + channels + LANES)?,
        ];
        let [above, below] = rows;
        let mut corners = [[0.0; LANES]; 4];
        // Plain loops: closures over arrays are not always inlined.
        for lane in 0..LANES {
            corners[0][lane] = above[lane].convert_sat();
            corners[1][lane] = above[channels + lane].convert_sat();
            corners[2][lane] = below[lane].convert_sat();
            corners[3][lane] = below[channels + lane].convert_sat();
        }
        Some(corners)
    }
}

/// The mean of four corners, weighted by the place between them.
#[inline(always)]
fn mixed<const N: usize>([s00, s01, s10, s11]: &[[f32; N]; 4], [qx, qy]: [f32; 2]) -> [f32; N] {
    let px = 1.0 - qx;
    let mut mixed = [0.0; N];
    for c in 0..N {
        let (s0, s1) = (s00[c] * px + s01[c] * qx, s10[c] * px + s11[c] * qx);
        mixed[c] = s0 + (s1 - s0) * qy;
    }
    mixed
}

/// What does not change from pixel to pixel.
struct Reader<'a, S, T> {
    source: Pixels<'a, S>,
    /// The value of pixels outside as elements of the output, and as the source would hold it.
    outside: Option<(T, f32)>,
    sampling: Sampling,
    is_volume: bool,
}

/// Writes to `dst`, of `size` pixels along x, y and z, what `map` finds in `source`. Outside of the source is `fill`,
/// or its edge. A source without pixels has nothing to show: nothing is written.
///
/// # Errors
/// When nobody waits any more.
#[expect(clippy::too_many_arguments, reason = "what a warp is")]
pub fn warp<S, T>(
    source: Pixels<'_, S>,
    dst: &mut [T],
    size: [usize; 3],
    map: &Map,
    sampling: Sampling,
    fill: Option<f32>,
    is_volume: bool,
    watch: &Watch<'_>,
) -> Result<()>
where
    S: ConvertSat<f32> + ConvertSat<T>,
    T: Copy + ConvertSat<S>,
    f32: ConvertSat<T>,
{
    let [width, height, _] = size;
    let (channels, pixels) = (source.channels, source.size.iter().product::<usize>());
    if channels == 0 || width == 0 || source.values.len() < pixels * channels || pixels == 0 {
        return Ok(());
    }
    let outside = fill.map(|fill| {
        let value: T = fill.convert_sat();
        let stored: S = value.convert_sat();
        (value, stored.convert_sat())
    });
    let reader = Reader { source, outside, sampling, is_volume };
    let step = [map[0][0], map[1][0], map[2][0]];
    let mut places = [[0.0; 3]; CHECKPOINT];
    for (line, row) in dst.chunks_exact_mut(width * channels).enumerate() {
        let center = [0.5, (line % height) as f32 + 0.5, (line / height) as f32 + 0.5];
        let mut checkpoint = map.map(|[x, y, z, offset]| {
            let place = offset + x * center[0] + y * center[1];
            if is_volume { place + z * center[2] } else { place }
        });
        for piece in row.chunks_mut(CHECKPOINT * channels) {
            let mut place = checkpoint;
            for to in &mut places[..piece.len() / channels] {
                *to = place;
                place = [place[0] + step[0], place[1] + step[1], place[2] + step[2]];
            }
            read(&reader, &places, piece);
            for (place, step) in checkpoint.iter_mut().zip(step) {
                *place += CHECKPOINT as f32 * step;
            }
            watch.charge(piece.len())?;
        }
    }
    Ok(())
}

/// Nanoseconds of one core of a Zen 5 for each pixel that is written, and for each of its elements.
const PIXEL: f64 = 10.0;
const NEAREST: f64 = 3.0;
const LINEAR: f64 = 10.0;
const TRILINEAR: f64 = 65.0;

/// What writing so many pixels of so many channels is expected to take.
pub fn effort(pixels: usize, channels: usize, sampling: Sampling, is_volume: bool) -> Effort {
    let element = match sampling {
        Sampling::Nearest => NEAREST,
        Sampling::Linear if is_volume => TRILINEAR,
        Sampling::Linear => LINEAR,
    };
    Effort::new(pixels as f64 * (PIXEL + channels as f64 * element), 0)
}

/// Writes to `dst`, an image of rows of `width` pixels, what `source` shows at the places that `places` gives for each
/// row of it; outside of it is `fill`.
///
/// # Errors
/// When nobody waits any more.
pub fn displace<T>(
    source: Pixels<'_, T>,
    dst: &mut [T],
    width: usize,
    sampling: Sampling,
    fill: T,
    watch: &Watch<'_>,
    places: impl Fn(usize, &mut [[f32; 3]]),
) -> Result<()>
where
    T: ConvertSat<T> + ConvertSat<f32>,
    f32: ConvertSat<T>,
{
    let channels = source.channels;
    let reader = Reader { source, outside: Some((fill, fill.convert_sat())), sampling, is_volume: false };
    let mut line = vec![[0.0; 3]; width];
    for (y, row) in dst.chunks_exact_mut((width * channels).max(1)).enumerate() {
        places(y, &mut line);
        read(&reader, &line, row);
        watch.charge(row.len())?;
    }
    Ok(())
}

/// Writes the pixels at `places` to `dst`, as many as it has room for.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn read<S, T>(reader: &Reader<'_, S, T>, places: &[[f32; 3]], dst: &mut [T])
where
    S: ConvertSat<f32> + ConvertSat<T>,
    T: Copy + ConvertSat<S>,
    f32: ConvertSat<T>,
{
    // With a number of channels that the compiler knows, loops over them disappear.
    match (reader.sampling, reader.source.channels) {
        (Sampling::Nearest, 1) if !reader.is_volume => nearest_blocks::<S, T, 1>(reader, places, dst),
        (Sampling::Nearest, 3) if !reader.is_volume => nearest_blocks::<S, T, 3>(reader, places, dst),
        (Sampling::Nearest, n) => each(places, dst, n, |place, pixel| reader.nearest(place, pixel)),
        (Sampling::Linear, n) if reader.is_volume => {
            each(places, dst, n, |place, pixel| reader.trilinear(place, pixel));
        }
        (Sampling::Linear, 1) => each(places, dst, 1, |place, pixel| reader.bilinear(place, pixel)),
        (Sampling::Linear, 3) => each(places, dst, 3, |place, pixel| reader.bilinear(place, pixel)),
        (Sampling::Linear, n) => each(places, dst, n, |place, pixel| reader.bilinear(place, pixel)),
    }
}

/// The pixels that hold the places, of an image; many at once where all of them are inside.
#[inline(always)]
fn nearest_blocks<S, T, const C: usize>(reader: &Reader<'_, S, T>, places: &[[f32; 3]], dst: &mut [T])
where
    S: ConvertSat<f32> + ConvertSat<T>,
    T: Copy + ConvertSat<S>,
    f32: ConvertSat<T>,
{
    for (places, pixels) in places.chunks(PLACES).zip(dst.as_chunks_mut::<C>().0.chunks_mut(PLACES)) {
        let done = match (places.first_chunk(), pixels.first_chunk_mut()) {
            (Some(places), Some(pixels)) => reader.nearest_many(places, pixels),
            _ => false,
        };
        if !done {
            for (&place, pixel) in places.iter().zip(pixels) {
                reader.nearest(place, pixel);
            }
        }
    }
}

#[inline(always)]
fn each<T>(places: &[[f32; 3]], dst: &mut [T], channels: usize, pixel: impl Fn([f32; 3], &mut [T])) {
    for (&place, to) in places.iter().zip(dst.chunks_exact_mut(channels)) {
        pixel(place, to);
    }
}

/// Cell and fraction of a place along one axis, for pixel centers at integers.
#[inline(always)]
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
    #[inline(always)]
    fn start(&self, [x, y, z]: [i64; 3]) -> Option<usize> {
        let [width, height, depth] = self.source.size;
        let place = |i: i64, extent: usize| i.clamp(0, extent as i64 - 1);
        let inside = (place(x, width), place(y, height), place(z, depth));
        if inside != (x, y, z) && self.outside.is_some() {
            return None;
        }
        let (x, y, z) = (inside.0 as usize, inside.1 as usize, inside.2 as usize);
        Some(((z * height + y) * width + x) * self.source.channels)
    }

    /// Channel `c` of the pixel that begins at `start`.
    #[inline(always)]
    fn value(&self, start: Option<usize>, c: usize) -> f32 {
        match (start, self.outside) {
            (Some(start), _) => self.source.values[start + c].convert_sat(),
            (None, Some((_, fill))) => fill,
            (None, None) => 0.0,
        }
    }

    /// Writes the pixels that hold these places; false when some are inside of the image and some are not.
    #[inline(always)]
    fn nearest_many<const C: usize>(
        &self,
        places: &[[f32; 3]; PLACES],
        pixels: &mut [[T; C]; PLACES],
    ) -> bool {
        let [width, height, _] = self.source.size;
        if width.max(height) > MAX_SIDE as usize || i32::try_from(width * height).is_err() {
            return false;
        }
        let (width, height) = (width as i32, height as i32);
        let (mut inside, mut starts) = (0, [0i32; PLACES]);
        for i in 0..PLACES {
            let (x, y) = (column_or_row(places[i][0].floor()), column_or_row(places[i][1].floor()));
            // A negative number is a large one without its sign.
            inside += u32::from((x as u32) < width as u32) & u32::from((y as u32) < height as u32);
            starts[i] = y.wrapping_mul(width).wrapping_add(x);
        }
        match self.outside {
            Some((fill, _)) if inside == 0 => pixels.fill([fill; C]),
            _ if inside < PLACES as u32 => return false,
            _ => {
                let (source, _) = self.source.values.as_chunks::<C>();
                for i in 0..PLACES {
                    let Some(from) = source.get(starts[i] as usize) else { return false };
                    for c in 0..C {
                        pixels[i][c] = from[c].convert_sat();
                    }
                }
            }
        }
        true
    }

    #[inline(always)]
    fn nearest(&self, place: [f32; 3], pixel: &mut [T]) {
        // What is no number is far outside, as it is in C++ on x86.
        let pixel_of = |place: f32| i64::from(if place.is_nan() { i32::MIN } else { place.floor() as i32 });
        let z = if self.is_volume { pixel_of(place[2]) } else { 0 };
        let start = self.start([pixel_of(place[0]), pixel_of(place[1]), z]);
        match (start, self.outside) {
            (Some(start), _) => {
                // As many as a pixel has, which the compiler may know.
                if let Some(from) = self.source.values.get(start..start + pixel.len()) {
                    for c in 0..pixel.len() {
                        pixel[c] = from[c].convert_sat();
                    }
                }
            }
            (None, Some((fill, _))) => pixel.fill(fill),
            (None, None) => {}
        }
    }

    #[inline(always)]
    fn bilinear(&self, place: [f32; 3], pixel: &mut [T]) {
        let ((x, qx), (y, qy)) = (cell(place[0]), cell(place[1]));
        match self.source.corners([x, y], pixel.len()) {
            Some(corners) => {
                let values = mixed(&corners, [qx, qy]);
                // All lanes at once, though a pixel may have less.
                let mut converted = [values[0].convert_sat(); LANES];
                for lane in 1..LANES {
                    converted[lane] = values[lane].convert_sat();
                }
                pixel.copy_from_slice(&converted[..pixel.len()]);
            }
            None => self.bilinear_at_the_edge([x, y], [qx, qy], pixel),
        }
    }

    #[inline(never)]
    fn bilinear_at_the_edge(&self, [x, y]: [i64; 2], part: [f32; 2], pixel: &mut [T]) {
        let [width, height, _] = self.source.size.map(|extent| extent as i64);
        if let (Some((_, fill)), false) =
            (self.outside, (-1..width).contains(&x) && (-1..height).contains(&y))
        {
            let [value] = mixed(&[[fill]; 4], part);
            return pixel.fill(value.convert_sat());
        }
        let starts = [
            self.start([x, y, 0]),
            self.start([x + 1, y, 0]),
            self.start([x, y + 1, 0]),
            self.start([x + 1, y + 1, 0]),
        ];
        for (c, to) in pixel.iter_mut().enumerate() {
            let mut corners = [[0.0]; 4];
            for (corner, &start) in corners.iter_mut().zip(&starts) {
                *corner = [self.value(start, c)];
            }
            let [value] = mixed(&corners, part);
            *to = value.convert_sat();
        }
    }

    #[inline(always)]
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
