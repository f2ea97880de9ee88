//! From coefficients to samples: dequantisation and libjpeg's accurate inverse cosine transform (ISLOW), to the bit as
//! libjpeg-turbo's vector code computes it. It must not know where coefficients come from or what samples mean.
//!
//! Four neighbouring blocks are a group, interleaved row by row: a vector's 128-bit part holds a row of one block, and
//! nothing ever moves between parts. The first pass makes columns of a block; turned around, the second one makes rows.

use super::vector::{MOST_PARTS, Vector, Vectors, Work};

/// Blocks of a group.
pub(super) const BLOCKS: usize = MOST_PARTS;
/// Coefficients of one row of a group.
const ROW: usize = 8 * BLOCKS;
/// Coefficients of four blocks: row r of block b begins at `32 * r + 8 * b`.
pub(super) type Group = [i16; 64 * BLOCKS];
/// The last zigzag position of each block of a group that may not be zero.
pub(super) type Lasts = [u8; BLOCKS];

/// The zigzag positions up to here lie in the first four rows and columns.
const LAST_OF_QUARTER: u8 = 9;

/// A row of groups to samples.
pub(super) struct Transform<'a> {
    /// The groups, left to right.
    pub(super) groups: &'a [Group],
    /// Of each group.
    pub(super) lasts: &'a [Lasts],
    /// The quantisation table, row by row.
    pub(super) quant: &'a [i16; 64],
    /// Where the first block's first sample goes; the rows are `stride` apart.
    pub(super) out: &'a mut [u8],
    pub(super) stride: usize,
}

impl Transform<'_> {
    /// Transforms all groups. False: a first row has 14 bits or more, which no encoder makes. There libjpeg-turbo wraps
    /// around where this saturates, so it shall decode the file.
    #[must_use]
    pub(super) fn done_by(self, vectors: Vectors) -> bool {
        vectors.run(self)
    }
}

impl Work for Transform<'_> {
    type Out = bool;

    #[inline(always)]
    fn run<V: Vector>(self) -> bool {
        let mut narrow = true;
        let mut quant = [[0; 8]; 8];
        quant.copy_from_slice(self.quant.as_chunks().0);
        for (i, (group, lasts)) in self.groups.iter().zip(self.lasts).enumerate() {
            for part in (0..BLOCKS).step_by(V::PARTS) {
                let sparse = lasts[part..part + V::PARTS].iter().all(|&last| last <= LAST_OF_QUARTER);
                let group = &group[8 * part..];
                let out = &mut self.out[8 * (BLOCKS * i + part)..];
                let zero = V::splat16(0);
                let mut rows = [zero; 8];
                for (r, row) in rows.iter_mut().enumerate().take(if sparse { 4 } else { 8 }) {
                    *row = V::load(&group[ROW * r..]).mul16(V::load_each(&quant[r]));
                }
                if sparse {
                    blocks::<V, true>(rows, out, self.stride);
                } else {
                    blocks::<V, false>(rows, out, self.stride);
                }
                narrow &= !rows[0].is_wide();
            }
        }
        narrow
    }
}

/// As many blocks side by side as a vector has parts. `HALF`: the lower and the right half of each is zero.
#[inline(always)]
fn blocks<V: Vector, const HALF: bool>(rows: [V; 8], out: &mut [u8], stride: usize) {
    const FIRST_ROUND: i32 = 1 << 10;
    // Samples are stored with an offset of 128.
    const SECOND_ROUND: i32 = (1 << 17) + (128 << 18);
    let columns = turned(pass::<V, HALF, 11>(rows, FIRST_ROUND));
    let [c0, c1, c2, c3, c4, c5, c6, c7] = pass::<V, HALF, 18>(columns, SECOND_ROUND);
    let (upper_left, lower_left) = four_of_rows(c0, c1, c2, c3);
    let (upper_right, lower_right) = four_of_rows(c4, c5, c6, c7);
    let pairs = [
        upper_left.low32(upper_right),
        upper_left.high32(upper_right),
        lower_left.low32(lower_right),
        lower_left.high32(lower_right),
    ];
    for (i, pair) in pairs.into_iter().enumerate() {
        let (first, second) = out[2 * i * stride..].split_at_mut(stride);
        pair.store_halves(first, second);
    }
}

/// Four columns to four samples of each row: of the first four rows, and of the others.
#[inline(always)]
fn four_of_rows<V: Vector>(a: V, b: V, c: V, d: V) -> (V, V) {
    let (ab, cd) = (a.packus16(b), c.packus16(d));
    let (even, odd) = (ab.low8(cd), ab.high8(cd));
    (even.low8(odd), even.high8(odd))
}

/// Constants of the transform, times 2^13.
const F0_298: i16 = 2446;
const F0_390: i16 = 3196;
const F0_541: i16 = 4433;
const F0_765: i16 = 6270;
const F0_899: i16 = 7373;
const F1_175: i16 = 9633;
const F1_501: i16 = 12299;
const F1_847: i16 = 15137;
const F1_961: i16 = 16069;
const F2_053: i16 = 16819;
const F2_562: i16 = 20995;
const F3_072: i16 = 25172;

/// Two constants for [`Vector::madd`].
#[inline(always)]
pub(super) fn pair<V: Vector>(first: i16, second: i16) -> V {
    V::splat32(i32::from(first as u16) | i32::from(second) << 16)
}

/// One pass: eight vectors, one for each frequency, to eight vectors, one for each place. Each lane is on its own.
#[inline(always)]
fn pass<V: Vector, const HALF: bool, const DOWN: u32>(i: [V; 8], round: i32) -> [V; 8] {
    let mut packed = half::<V, HALF, DOWN, false>(i, round);
    let high = half::<V, HALF, DOWN, true>(i, round);
    for (low, high) in packed.iter_mut().zip(high) {
        *low = low.packs32(high);
    }
    packed
}

/// Lanes of two vectors in turn: the lower or the upper four of each part.
#[inline(always)]
fn zip<V: Vector, const HIGH: bool>(a: V, b: V) -> V {
    if HIGH { a.high16(b) } else { a.low16(b) }
}

/// Numbers times 2^13 in 32 bits, with what rounds them later.
#[inline(always)]
fn scaled<V: Vector, const HIGH: bool>(v: V, round: i32) -> V {
    zip::<V, HIGH>(V::splat16(0), v).sra32::<3>().add32(V::splat32(round))
}

/// The pass for the lower or the upper four lanes of each part, in 32 bits.
#[inline(always)]
fn half<V: Vector, const HALF: bool, const DOWN: u32, const HIGH: bool>(i: [V; 8], round: i32) -> [V; 8] {
    let zero = V::splat16(0);
    // Even frequencies.
    let z26 = zip::<V, HIGH>(i[2], if HALF { zero } else { i[6] });
    let t2 = z26.madd(pair(F0_541, F0_541 - F1_847));
    let t3 = z26.madd(pair(F0_541 + F0_765, F0_541));
    let t0 = scaled::<V, HIGH>(if HALF { i[0] } else { i[0].add16(i[4]) }, round);
    let t1 = if HALF { t0 } else { scaled::<V, HIGH>(i[0].sub16(i[4]), round) };
    let (e0, e3, e1, e2) = (t0.add32(t3), t0.sub32(t3), t1.add32(t2), t1.sub32(t2));
    // Odd frequencies.
    let z34 = match HALF {
        true => zip::<V, HIGH>(i[3], i[1]),
        false => zip::<V, HIGH>(i[7].add16(i[3]), i[5].add16(i[1])),
    };
    let z3 = z34.madd(pair(F1_175 - F1_961, F1_175));
    let z4 = z34.madd(pair(F1_175, F1_175 - F0_390));
    let z17 = zip::<V, HIGH>(if HALF { zero } else { i[7] }, i[1]);
    let z35 = zip::<V, HIGH>(if HALF { zero } else { i[5] }, i[3]);
    let o0 = z17.madd(pair(-F0_899, F1_501 - F0_899)).add32(z4);
    let o1 = z35.madd(pair(-F2_562, F3_072 - F2_562)).add32(z3);
    let o2 = z35.madd(pair(F2_053 - F2_562, -F2_562)).add32(z4);
    let o3 = z17.madd(pair(F0_298 - F0_899, -F0_899)).add32(z3);
    [
        e0.add32(o0).sra32::<DOWN>(),
        e1.add32(o1).sra32::<DOWN>(),
        e2.add32(o2).sra32::<DOWN>(),
        e3.add32(o3).sra32::<DOWN>(),
        e3.sub32(o3).sra32::<DOWN>(),
        e2.sub32(o2).sra32::<DOWN>(),
        e1.sub32(o1).sra32::<DOWN>(),
        e0.sub32(o0).sra32::<DOWN>(),
    ]
}

/// Rows and columns exchanged within each part.
#[inline(always)]
fn turned<V: Vector>(i: [V; 8]) -> [V; 8] {
    let (a0, a1, a2, a3) = (i[0].low16(i[1]), i[0].high16(i[1]), i[2].low16(i[3]), i[2].high16(i[3]));
    let (a4, a5, a6, a7) = (i[4].low16(i[5]), i[4].high16(i[5]), i[6].low16(i[7]), i[6].high16(i[7]));
    let (b0, b1, b2, b3) = (a0.low32(a2), a0.high32(a2), a1.low32(a3), a1.high32(a3));
    let (b4, b5, b6, b7) = (a4.low32(a6), a4.high32(a6), a5.low32(a7), a5.high32(a7));
    [
        b0.low64(b4),
        b0.high64(b4),
        b1.low64(b5),
        b1.high64(b5),
        b2.low64(b6),
        b2.high64(b6),
        b3.low64(b7),
        b3.high64(b7),
    ]
}
