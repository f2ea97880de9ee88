//! Colours, or grays, from the image of a sensor whose pixels see one colour each, as OpenCV computes them. It must not
//! know operators.

mod gradients;

use std::ops::{Add, Shr, Sub};

use multiversion::multiversion;

use super::pixels::interleave;
use crate::tensor::{DType, Element};

/// How the colours that a pixel lacks are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Means of the neighbours that have them.
    Bilinear,
    /// The same, but green along the direction in which it changes less.
    EdgeAware,
    /// Gray of those means.
    Gray,
    /// By the directions in which the image changes least; of images of 8 bits.
    Gradients,
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

/// Fills in what the pixels of `src` lack: `dst` has [`Algorithm::channels`] for each. `blue` are the row and the
/// column of the first blue pixel. The frame of the image is that of the pixels inside of it; an image without an
/// inside is black.
pub fn debayer<T: Level>(algorithm: Algorithm, src: &[T], dst: &mut [T], size: [usize; 2], blue: [usize; 2]) {
    let mut channels = [const { Vec::new() }; 3];
    match algorithm {
        Algorithm::Gradients if T::DTYPE == DType::U8 && size[0].min(size[1]) >= gradients::LEAST_SIDE => {
            let dst = bytemuck::cast_slice_mut::<T, u8>(dst).as_chunks_mut().0;
            gradients::fill(bytemuck::cast_slice(src), dst, size, blue);
        }
        // As OpenCV does with small images.
        Algorithm::Bilinear | Algorithm::Gradients => {
            fill(src, dst.as_chunks_mut().0, size, blue, |row, to| bilinear_row(row, to, &mut channels));
        }
        Algorithm::EdgeAware => {
            fill(src, dst.as_chunks_mut().0, size, blue, |row, to| edge_aware_row(row, to, &mut channels));
        }
        Algorithm::Gray => fill(src, dst.as_chunks_mut::<1>().0, size, blue, gray_row),
    }
}

/// A row between two others.
#[derive(Clone, Copy)]
struct Row<'a, T> {
    lines: [&'a [T]; 3],
    /// Whether blue is in it, and the column of blue.
    is_blue: bool,
    blue_column: usize,
}

/// Fills rows in by `fill_row`, which gets the pixels between the first and the last of each.
fn fill<T: Element, const N: usize>(
    src: &[T],
    dst: &mut [[T; N]],
    [height, width]: [usize; 2],
    blue: [usize; 2],
    mut fill_row: impl FnMut(Row<'_, T>, &mut [[T; N]]),
) {
    if height <= 2 || width <= 2 {
        return dst.fill([T::default(); N]);
    }
    for (y, row) in dst.chunks_exact_mut(width).enumerate().take(height - 1).skip(1) {
        let lines = [y - 1, y, y + 1].map(|y| &src[y * width..][..width]);
        let around = Row { lines, is_blue: y % 2 == blue[0], blue_column: blue[1] };
        fill_row(around, &mut row[1..width - 1]);
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

#[multiversion(targets("x86_64+avx+avx2"))]
fn bilinear_row<T: Level>(row: Row<'_, T>, dst: &mut [[T; 3]], channels: &mut [Vec<T>; 3]) {
    coloured_row(row, dst, channels, |[above, below, left, right]| {
        (above + below + (left + right) + T::Sum::from(2)) >> 2
    });
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn edge_aware_row<T: Level>(row: Row<'_, T>, dst: &mut [[T; 3]], channels: &mut [Vec<T>; 3]) {
    coloured_row(row, dst, channels, |[above, below, left, right]| {
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

/// Fills in the pixels between the first and the last of a row; `green` finds that of pixels that do not see it, from
/// those above, below, left and right.
#[inline(always)]
fn coloured_row<T: Level>(
    row: Row<'_, T>,
    dst: &mut [[T; 3]],
    channels: &mut [Vec<T>; 3],
    green: impl Fn([T::Sum; 4]) -> T::Sum,
) {
    let len = dst.len();
    for channel in channels.iter_mut() {
        channel.resize(len.max(LANES), T::default());
    }
    let mut first = 0;
    while first < len {
        // The last block ends with the row; a row that is shorter than a block is continued.
        first = first.min(len.saturating_sub(LANES));
        // The first pixel is in the second column.
        let is_coloured = ((first + 1) % 2 == row.blue_column) == row.is_blue;
        let block = |lines| coloured_block(lines, is_coloured, row.is_blue, &green);
        let [above, own, below] = row.lines.map(|line| line[first..].first_chunk());
        let block = match (above, own, below) {
            (Some(above), Some(own), Some(below)) => block([above, own, below]),
            _ => {
                let mut lines = [[T::default(); LANES + 2]; 3];
                for (to, line) in lines.iter_mut().zip(row.lines) {
                    to[..line.len()].copy_from_slice(line);
                }
                block(lines.each_ref())
            }
        };
        for (channel, block) in channels.iter_mut().zip(&block) {
            channel[first..first + LANES].copy_from_slice(block);
        }
        first += LANES;
    }
    let [red, green, blue] = channels;
    interleave([red, green, blue], dst);
}

/// Red, green and blue of the pixels between the first and the last of three lines; whether the first of them is in a
/// column of the colour that the row has beside green.
#[inline(always)]
fn coloured_block<T: Level>(
    lines: [&[T; LANES + 2]; 3],
    is_coloured: bool,
    is_blue: bool,
    green: impl Fn([T::Sum; 4]) -> T::Sum,
) -> [[T; LANES]; 3] {
    let mut rgb = [[T::default(); LANES]; 3];
    for lane in 0..LANES {
        let [a, o, b] = [0, 1, 2].map(|line: usize| move |i: usize| T::Sum::from(lines[line][lane + i]));
        let (beside, upright) = (mean::<T>(o(0), o(2)), mean::<T>(a(1), b(1)));
        let diagonal = (a(0) + a(2) + (b(0) + b(2)) + T::Sum::from(2)) >> 2;
        let green = green([a(1), b(1), o(0), o(2)]);
        // The row's own colour, green, and the other colour.
        let at_colour = [o(1), green, diagonal];
        let at_green = [beside, o(1), upright];
        for c in 0..3 {
            let value = if (lane % 2 == 0) == is_coloured { at_colour[c] } else { at_green[c] };
            rgb[c][lane] = T::from_sum(value);
        }
    }
    let [mine, green, other] = rgb;
    if is_blue { [other, green, mine] } else { [mine, green, other] }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn gray_row<T>(row: Row<'_, T>, dst: &mut [[T; 1]])
where
    T: Element + Into<u32> + TryFrom<u32>,
{
    each_pixel(row, dst, |([a, o, b], in_row, in_column)| {
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
fn each_pixel<T, const N: usize>(row: Row<'_, T>, dst: &mut [[T; N]], pixel: impl Fn(Around) -> [u32; N])
where
    T: Element + Into<u32> + TryFrom<u32>,
{
    let [above, own, below] = row.lines;
    let lines = above.array_windows().zip(own.array_windows()).zip(below.array_windows());
    for (x, (to, ((a, o), b))) in dst.iter_mut().zip(lines).enumerate() {
        let around: [[u32; 3]; 3] = [a, o, b].map(|line: &[T; 3]| line.map(Into::into));
        let in_blue_column = (x + 1) % 2 == row.blue_column;
        *to =
            pixel((around, row.is_blue, in_blue_column)).map(|level| T::try_from(level).unwrap_or_default());
    }
}
