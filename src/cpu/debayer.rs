//! Colours, or grays, from the image of a sensor whose pixels see one colour each, as OpenCV computes them. It must not know
//! operators.

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
pub fn debayer<T: Element + Into<u32> + TryFrom<u32>>(
    algorithm: Algorithm,
    src: &[T],
    dst: &mut [T],
    size: [usize; 2],
    blue: [usize; 2],
) {
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

#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
fn bilinear_row<T>(lines: [&[T]; 3], dst: &mut [[T; 3]], in_blue_row: bool, blue_column: usize)
where
    T: Element + Into<u32> + TryFrom<u32>,
{
    each_pixel(lines, dst, in_blue_row, blue_column, |around| {
        let ([a, o, b], ..) = around;
        coloured(around, (a[1] + b[1] + o[0] + o[2] + 2) / 4)
    });
}

#[multiversion(targets("x86_64+avx+avx2", "x86_64+sse4.1"))]
fn edge_aware_row<T>(lines: [&[T]; 3], dst: &mut [[T; 3]], in_blue_row: bool, blue_column: usize)
where
    T: Element + Into<u32> + TryFrom<u32>,
{
    each_pixel(lines, dst, in_blue_row, blue_column, |around| {
        let ([a, o, b], ..) = around;
        let changes_less_upright = o[0].abs_diff(o[2]) > a[1].abs_diff(b[1]);
        coloured(
            around,
            if changes_less_upright { (a[1] + b[1]).div_ceil(2) } else { (o[0] + o[2]).div_ceil(2) },
        )
    });
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

/// Red, green and blue of a pixel, whose green is `green` if it does not see green itself.
#[inline(always)]
fn coloured(([a, o, b], in_blue_row, in_blue_column): Around, green: u32) -> [u32; 3] {
    let diagonal = (a[0] + a[2] + b[0] + b[2] + 2) / 4;
    let (beside, upright) = ((o[0] + o[2]).div_ceil(2), (a[1] + b[1]).div_ceil(2));
    match (in_blue_row, in_blue_column) {
        (true, true) => [diagonal, green, o[1]],
        (true, false) => [upright, o[1], beside],
        (false, true) => [beside, o[1], upright],
        (false, false) => [o[1], green, diagonal],
    }
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
