//! Colours, or grays, from the image of a sensor whose pixels see one colour each, as OpenCV computes them. It must not know
//! operators.

use std::ops::{Add, Shr, Sub};

use multiversion::multiversion;

use crate::tensor::Element;

/// How the colours that a pixel lacks are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Means of the neighbours that have them.
    Bilinear,
    /// The same, but green along the direction in which it changes less.
    EdgeAware,
    /// Gray of those means.
    Gray,
}

impl Algorithm {
    /// Channels of what is made.
    pub fn channels(self) -> usize {
        if self == Algorithm::Gray { 1 } else { 3 }
    }
}

/// What red, green and blue weigh in gray, in parts of 2^14.
const GRAY: [u64; 3] = [4_899, 9_617, 1_868];

/// A pixel in the middle of its neighbours; whether blue is in its row, and in its column.
type Around = ([[u32; 3]; 3], bool, bool);

/// Fills in what the pixels of `src` lack: `dst` has [`Algorithm::channels`] for each. `blue` are the row and the column of the first
/// blue pixel. The frame of the image is that of the pixels inside of it; an image without an inside is black.
pub fn debayer<T: Level>(algorithm: Algorithm, src: &[T], dst: &mut [T], size: [usize; 2], blue: [usize; 2]) {
    match algorithm {
        Algorithm::Bilinear => fill(src, dst.as_chunks_mut::<3>().0, size, blue, bilinear_row),
        Algorithm::EdgeAware => fill(src, dst.as_chunks_mut::<3>().0, size, blue, edge_aware_row),
        Algorithm::Gray => fill(src, dst.as_chunks_mut::<1>().0, size, blue, gray_row),
    }
}

/// Fills rows in by `fill_row`, which gets three rows, the pixels between the first and the last of the second, whether blue is in
/// it, and the column of blue.
fn fill<T: Element, const N: usize>(
    src: &[T],
    dst: &mut [[T; N]],
    [height, width]: [usize; 2],
    blue: [usize; 2],
    fill_row: impl Fn([&[T]; 3], &mut [[T; N]], bool, usize),
) {
    if height <= 2 || width <= 2 {
        return dst.fill([T::default(); N]);
    }
    for (y, row) in dst.chunks_exact_mut(width).enumerate().take(height - 1).skip(1) {
        let lines = [y - 1, y, y + 1].map(|y| &src[y * width..][..width]);
        fill_row(lines, &mut row[1..width - 1], y % 2 == blue[0], blue[1]);
        row[0] = row[1];
        row[width - 1] = row[width - 2];
    }
    dst.copy_within(width..2 * width, 0);
    dst.copy_within((height - 2) * width..(height - 1) * width, (height - 1) * width);
}

/// Pixels of a row that are computed side by side, of both kinds that a row has in turn.
const LANES: usize = 32;

/// What a sensor's pixels are, and numbers that hold the sum of four of them.
pub trait Level: Element + Into<u32> + TryFrom<u32> {
    /// Such numbers.
    type Sum: Copy
        + Default
        + Ord
        + Add<Output = Self::Sum>
        + Sub<Output = Self::Sum>
        + From<u8>
        + From<Self>
        + Shr<u32, Output = Self::Sum>;

    /// Of a mean.
    fn from_sum(sum: Self::Sum) -> Self;
}

macro_rules! levels {
    ($($ty:ident $sum:ident),*) => {
        $(impl Level for $ty {
            type Sum = $sum;
            #[inline(always)]
            fn from_sum(sum: $sum) -> Self {
                sum as $ty
            }
        })*
    };
}
levels!(u8 u16, u16 u32);

#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
fn bilinear_row<T: Level>(lines: [&[T]; 3], dst: &mut [[T; 3]], in_blue_row: bool, blue_column: usize) {
    coloured_row(lines, dst, in_blue_row, blue_column, |[above, below, left, right]| {
        (above + below + (left + right) + T::Sum::from(2)) >> 2
    });
}

#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
fn edge_aware_row<T: Level>(lines: [&[T]; 3], dst: &mut [[T; 3]], in_blue_row: bool, blue_column: usize) {
    coloured_row(lines, dst, in_blue_row, blue_column, |[above, below, left, right]| {
        let change = |a: T::Sum, b: T::Sum| a.max(b) - a.min(b);
        let (upright, beside) = (mean::<T>(above, below), mean::<T>(left, right));
        if change(left, right) > change(above, below) { upright } else { beside }
    });
}

/// The mean of two, halves up.
#[inline(always)]
fn mean<T: Level>(a: T::Sum, b: T::Sum) -> T::Sum {
    (a + b + T::Sum::from(1)) >> 1
}

/// Fills in the pixels between the first and the last of a row; `green` finds that of pixels that do not see it, from those above, below,
/// left and right.
#[inline(always)]
fn coloured_row<T: Level>(
    lines: [&[T]; 3],
    dst: &mut [[T; 3]],
    in_blue_row: bool,
    blue_column: usize,
    green: impl Fn([T::Sum; 4]) -> T::Sum,
) {
    // Whether a lane is in a column of the colour that the row has beside green: the first lane is in the second column.
    let is_coloured = |lane: usize| ((lane + 1) % 2 == blue_column) == in_blue_row;
    for (block, to) in dst.chunks_mut(LANES).enumerate() {
        let (first, len) = (block * LANES, to.len());
        let mut around = [[T::default(); LANES + 2]; 3];
        for (part, line) in around.iter_mut().zip(lines) {
            part[..len + 2].copy_from_slice(&line[first..first + len + 2]);
        }
        let [above, own, below] = around.map(|line| line.map(T::Sum::from));
        let mut rgb = [[T::default(); LANES]; 3];
        for lane in 0..LANES {
            let (a, o, b) =
                (|i: usize| above[lane + i], |i: usize| own[lane + i], |i: usize| below[lane + i]);
            let (beside, upright) = (mean::<T>(o(0), o(2)), mean::<T>(a(1), b(1)));
            let diagonal = (a(0) + a(2) + (b(0) + b(2)) + T::Sum::from(2)) >> 2;
            let green = green([a(1), b(1), o(0), o(2)]);
            // The row's own colour, green, and the other colour.
            let three = if is_coloured(lane) { [o(1), green, diagonal] } else { [beside, o(1), upright] };
            for (channel, value) in rgb.iter_mut().zip(three) {
                channel[lane] = T::from_sum(value);
            }
        }
        let [mine, green, other] = &rgb;
        let (red, blue) = if in_blue_row { (other, mine) } else { (mine, other) };
        for (lane, to) in to.iter_mut().enumerate() {
            *to = [red[lane], green[lane], blue[lane]];
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
fn gray_row<T>(lines: [&[T]; 3], dst: &mut [[T; 1]], in_blue_row: bool, blue_column: usize)
where
    T: Element + Into<u32> + TryFrom<u32>,
{
    each_pixel(lines, dst, in_blue_row, blue_column, |([a, o, b], in_row, in_column)| {
        let [a, o, b] = [a, o, b].map(|line| line.map(u64::from));
        let [red, green, blue] = GRAY;
        let (beside, upright) = (o[0] + o[2], a[1] + b[1]);
        let (own, other) = if in_row { (blue, red) } else { (red, blue) };
        // Twice or four times the gray, so that means of two or four pixels lose nothing.
        [if in_row == in_column {
            let diagonal = a[0] + a[2] + b[0] + b[2];
            ((diagonal * other + (beside + upright) * green + 4 * o[1] * own + (1 << 15)) >> 16) as u32
        } else {
            ((beside * own + upright * other + 2 * o[1] * green + (1 << 14)) >> 15) as u32
        }]
    });
}

/// Fills in the pixels between the first and the last of a row, from that row and those above and below it.
#[inline(always)]
fn each_pixel<T, const N: usize>(
    [above, own, below]: [&[T]; 3],
    dst: &mut [[T; N]],
    in_blue_row: bool,
    blue_column: usize,
    pixel: impl Fn(Around) -> [u32; N],
) where
    T: Element + Into<u32> + TryFrom<u32>,
{
    let lines = above.array_windows().zip(own.array_windows()).zip(below.array_windows());
    for (x, (to, ((a, o), b))) in dst.iter_mut().zip(lines).enumerate() {
        let around: [[u32; 3]; 3] = [a, o, b].map(|line: &[T; 3]| line.map(Into::into));
        let in_blue_column = (x + 1) % 2 == blue_column;
        *to =
            pixel((around, in_blue_row, in_blue_column)).map(|level| T::try_from(level).unwrap_or_default());
    }
}
