//! A row of samples to a row of pixels: chroma upsampled on the way, then libjpeg's integer conversion, to the bit. It
//! must not know where rows are stored or which of them belong together.

use super::transform::pair;
use super::vector::{Vector, Vectors, Work};

/// Pixels that the widest vectors make at once. Rows of samples are readable so far beyond a multiple of it.
pub(super) const STEP: usize = 64;

/// Chroma of a row.
#[derive(Clone, Copy)]
pub(super) enum Chroma<'a> {
    /// A sample for each pixel.
    Each(&'a [u8]),
    /// A sample for two pixels.
    Two(&'a [u8]),
    /// Sixteenths of what becomes of a sample and its upper or lower neighbour, with a copy of the edge at both ends.
    /// Each makes two pixels together with its left and its right neighbour; then the rounding of the even and of the
    /// odd pixels.
    Smooth(&'a [i16], [i16; 2]),
}

/// A row of luma and chroma to a row of RGB.
pub(super) struct Ycc<'a> {
    pub(super) y: &'a [u8],
    pub(super) cb: Chroma<'a>,
    pub(super) cr: Chroma<'a>,
    /// Three bytes a pixel.
    pub(super) out: &'a mut [u8],
    /// Whether blue comes first.
    pub(super) bgr: bool,
}

impl Ycc<'_> {
    /// Converts the row.
    pub(super) fn done_by(self, vectors: Vectors) {
        vectors.run(self);
    }
}

impl Work for Ycc<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        match self.bgr {
            true => self.row_of::<V, true>(),
            false => self.row_of::<V, false>(),
        }
    }
}

impl Ycc<'_> {
    #[inline(always)]
    fn row_of<V: Vector, const BGR: bool>(self) {
        let Self { y, cb, cr, out, .. } = self;
        match (cb, cr) {
            (Chroma::Each(cb), Chroma::Each(cr)) => row::<V, _, BGR>(y, &[Each(cb), Each(cr)], out),
            (Chroma::Two(cb), Chroma::Two(cr)) => row::<V, _, BGR>(y, &[Two(cb), Two(cr)], out),
            (Chroma::Smooth(cb, round), Chroma::Smooth(cr, _)) => {
                row::<V, _, BGR>(y, &[Smooth(cb, round), Smooth(cr, round)], out);
            }
            // Both have the same sampling, or it was evened out before.
            _ => {}
        }
    }
}

/// Where chroma comes from. What works on vectors must be inlined, which closures of iterators are not.
trait ChromaRows {
    /// What one vector of pixels takes.
    type Piece;

    /// All of it from a pixel on, which is even. An iterator and not a function of the place: then it is found out once
    /// that all pieces are there.
    fn pieces<V: Vector>(&self, x: usize) -> impl Iterator<Item = Self::Piece>;

    /// Of the even and of the odd pixels: twice the distance from the middle.
    fn doubled<V: Vector>(&self, piece: Self::Piece) -> [V; 2];
}

struct Each<'a>(&'a [u8]);
struct Two<'a>(&'a [u8]);
struct Smooth<'a>(&'a [i16], [i16; 2]);

impl<'a> ChromaRows for Each<'a> {
    type Piece = &'a [u8];

    #[inline(always)]
    fn pieces<V: Vector>(&self, x: usize) -> impl Iterator<Item = &'a [u8]> {
        self.0[x..].chunks_exact(16 * V::PARTS)
    }

    #[inline(always)]
    fn doubled<V: Vector>(&self, piece: &[u8]) -> [V; 2] {
        let both = V::load_bytes(piece);
        [centred(both.and(V::splat16(255))), centred(both.srl16::<8>())]
    }
}

impl<'a> ChromaRows for Two<'a> {
    type Piece = &'a [u8];

    #[inline(always)]
    fn pieces<V: Vector>(&self, x: usize) -> impl Iterator<Item = &'a [u8]> {
        self.0[x / 2..].chunks_exact(8 * V::PARTS)
    }

    #[inline(always)]
    fn doubled<V: Vector>(&self, piece: &[u8]) -> [V; 2] {
        [centred(V::widen(piece)); 2]
    }
}

impl<'a> ChromaRows for Smooth<'a> {
    /// Left neighbours, samples, right neighbours.
    type Piece = ((&'a [i16], &'a [i16]), &'a [i16]);

    #[inline(always)]
    fn pieces<V: Vector>(&self, x: usize) -> impl Iterator<Item = Self::Piece> {
        let from = |first: usize| self.0[x / 2 + first..].chunks_exact(8 * V::PARTS);
        from(0).zip(from(1)).zip(from(2))
    }

    #[inline(always)]
    fn doubled<V: Vector>(&self, ((left, own), right): Self::Piece) -> [V; 2] {
        let (left, own, right) = (V::load(left), V::load(own), V::load(right));
        let own = own.add16(own).add16(own);
        let mut sides = [left, right];
        for (side, round) in sides.iter_mut().zip(self.1) {
            let sixteenths = own.add16(side.add16(V::splat16(round - (128 << 4))));
            *side = sixteenths.sra16::<3>().and(V::splat16(!1));
        }
        sides
    }
}

/// Twice the distance from the middle.
#[inline(always)]
fn centred<V: Vector>(samples: V) -> V {
    let distance = samples.sub16(V::splat16(128));
    distance.add16(distance)
}

/// All of a row.
#[inline(always)]
fn row<V: Vector, S: ChromaRows, const BGR: bool>(y: &[u8], chroma: &[S; 2], out: &mut [u8]) {
    let step = 16 * V::PARTS;
    let whole = out.len() / (3 * step) * step;
    let (out, rest) = out.split_at_mut(3 * whole);
    steps::<V, S, BGR>(y, chroma, 0, out);
    if !rest.is_empty() {
        let mut last = [0; 3 * STEP];
        steps::<V, S, BGR>(&y[whole..], chroma, whole, &mut last[..3 * step]);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// As many pixels as fill whole vectors, with chroma from `x` on.
#[inline(always)]
fn steps<V: Vector, S: ChromaRows, const BGR: bool>(y: &[u8], [cb, cr]: &[S; 2], x: usize, out: &mut [u8]) {
    let step = 16 * V::PARTS;
    let samples = y.chunks_exact(step).zip(cb.pieces::<V>(x).zip(cr.pieces::<V>(x)));
    for (out, (y, (cb_piece, cr_piece))) in out.chunks_exact_mut(3 * step).zip(samples) {
        let both = V::load_bytes(y);
        let (cb, cr) = (cb.doubled::<V>(cb_piece), cr.doubled::<V>(cr_piece));
        let even = rgb(both.and(V::splat16(255)), cb[0], cr[0]);
        let odd = rgb(both.srl16::<8>(), cb[1], cr[1]);
        let mut channels = even;
        for (channel, odd) in channels.iter_mut().zip(odd) {
            *channel = channel.packus16(odd);
        }
        if BGR {
            channels.swap(0, 2);
        }
        V::store_pixels(channels, out);
    }
}

/// Red, green and blue in 16 bits, not clamped, of doubled chroma. The products are rounded as libjpeg's tables are:
/// this was checked for all 65,536 pairs.
#[inline(always)]
fn rgb<V: Vector>(y: V, cb: V, cr: V) -> [V; 3] {
    const RED: i16 = 22970; // 1.402 * 2^14
    const BLUE: i16 = 29033; // 1.772 * 2^14
    const GREEN: [i16; 2] = [-11277, -23401]; // -0.34414 and -0.71414, times 2^15
    let (weights, half) = (pair::<V>(GREEN[0], GREEN[1]), V::splat32(1 << 15));
    let low = cb.low16(cr).madd_to(weights, half).sra32::<16>();
    let high = cb.high16(cr).madd_to(weights, half).sra32::<16>();
    [
        y.add16(cr.mulround16(V::splat16(RED))),
        y.add16(low.packs32(high)),
        y.add16(cb.mulround16(V::splat16(BLUE))),
    ]
}

/// Three quarters of a row and a quarter of the one above or below it, in sixteenths, for [`Chroma::Smooth`].
pub(super) struct Sums<'a> {
    pub(super) near: &'a [u8],
    /// The same as `near` where chroma is smooth along the row only.
    pub(super) far: &'a [u8],
    /// Samples of the row.
    pub(super) width: usize,
    pub(super) out: &'a mut [i16],
}

impl Sums<'_> {
    /// Values of `out` that are written for so many samples.
    pub(super) fn room(width: usize) -> usize {
        (width + 2).next_multiple_of(STEP) + 2 * STEP
    }

    /// Adds the rows up.
    pub(super) fn done_by(self, vectors: Vectors) {
        vectors.run(self);
    }
}

impl Work for Sums<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { near, far, width, out } = self;
        for x in (0..width).step_by(8 * V::PARTS) {
            let (near, far) = (V::widen(&near[x..]), V::widen(&far[x..]));
            near.add16(near).add16(near.add16(far)).store(&mut out[1 + x..]);
        }
        out[0] = out[1];
        out[width + 1] = out[width];
    }
}

/// Red, green and blue to luma, as libjpeg computes it.
pub(super) fn luma([r, g, b]: [u8; 3]) -> u8 {
    let sum = 19595 * u32::from(r) + 38470 * u32::from(g) + 7471 * u32::from(b);
    ((sum + (1 << 15)) >> 16) as u8
}

#[cfg(test)]
mod tests {
    use super::super::vector::Vectors;
    use super::*;

    /// libjpeg's tables, in floating-point-free form.
    fn by_tables(y: u8, cb: u8, cr: u8) -> [u8; 3] {
        let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
        let half = 1 << 15;
        let red = y + ((91881 * cr + half) >> 16);
        let green = y + ((-22554 * cb - 46802 * cr + half) >> 16);
        let blue = y + ((116130 * cb + half) >> 16);
        [red, green, blue].map(|v| v.clamp(0, 255) as u8)
    }

    #[test]
    fn all_chroma_becomes_what_libjpegs_tables_say() {
        for vectors in Vectors::available() {
            for cb in 0..=255_u8 {
                let cr: Vec<u8> = (0..=255).chain([0; STEP]).collect();
                let cb = vec![cb; cr.len()];
                for y in [0, 100, 128, 255] {
                    let y = vec![y; cr.len()];
                    let mut out = vec![0; 3 * 256];
                    let (b, r) = (Chroma::Each(&cb), Chroma::Each(&cr));
                    Ycc { y: &y, cb: b, cr: r, out: &mut out, bgr: false }.done_by(vectors);
                    let expected: Vec<u8> = (0..256).flat_map(|x| by_tables(y[x], cb[x], cr[x])).collect();
                    assert_eq!(out, expected, "{}", vectors.name());
                }
            }
        }
    }
}
