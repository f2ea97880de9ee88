//! From coefficients to samples: dequantisation and libjpeg's accurate inverse cosine transform (ISLOW), to the bit as
//! libjpeg-turbo's vector code computes it. It must not know where coefficients come from or what samples mean.
//!
//! Four neighbouring blocks are a group. A vector's 128-bit part holds numbers of one block, and nothing ever moves
//! between parts. Instructions multiply pairs of numbers and add the products up, so what is multiplied together lies
//! side by side: rows 0 and 4, 7 and 1, 2 and 6, 3 and 5 for the first pass, and columns in the same order, so that the
//! second pass finds its pairs when 4 x 4 of them have been turned.
//!
//! ```text
//! units of a block   0: rows 0, 4, columns 0 4 7 1    00 40 04 44 07 47 01 41       (row, column)
//! (128 bits each)    1: rows 0, 4, columns 2 6 3 5    02 42 06 46 03 43 05 45
//!                    2: rows 7, 1, columns 0 4 7 1    70 10 74 14 77 17 71 11
//!                    ..
//! ```

use bytemuck::{Pod, Zeroable};

use super::vector::{MOST_PARTS, Vector, Vectors, Work};

/// Blocks of a group.
pub(super) const BLOCKS: usize = MOST_PARTS;
/// Coefficients of one unit of a group.
const UNIT: usize = 8 * BLOCKS;
/// Coefficients of four blocks: unit u of block b begins at `32 * u + 8 * b`. They lie as vectors like it: what is
/// loaded across two lines of a cache takes twice as long.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Group(pub(super) [i16; 64 * BLOCKS]);

impl Group {
    pub(super) const ZERO: Self = Self([0; 64 * BLOCKS]);
}

/// Rows and columns in pairs that are multiplied together.
const ORDER: [usize; 8] = [0, 4, 7, 1, 2, 6, 3, 5];

/// Where a coefficient lies in a block: unit and lane as `8 * unit + lane`.
pub(super) const fn place(row: usize, column: usize) -> usize {
    let (mut r, mut c) = (0, 0);
    while ORDER[r] != row {
        r += 1;
    }
    while ORDER[c] != column {
        c += 1;
    }
    8 * (r / 2 * 2 + c / 4) + c % 4 * 2 + r % 2
}

/// A row of groups to samples.
pub(super) struct Transform<'a> {
    /// The groups, left to right.
    pub(super) groups: &'a [Group],
    /// The quantisation table in the order of [`place`].
    pub(super) quant: &'a [i16; 64],
    /// Where the first block's first sample goes; the rows are `stride` apart.
    pub(super) out: &'a mut [u8],
    pub(super) stride: usize,
}

impl Transform<'_> {
    /// Transforms all groups. False: a number has 14 bits or more (15 between the passes), which no encoder makes.
    /// There libjpeg-turbo wraps around where this does not, so it shall decode the file.
    #[must_use]
    pub(super) fn done_by(self, vectors: Vectors) -> bool {
        vectors.run(self)
    }
}

impl Work for Transform<'_> {
    type Out = bool;

    #[inline(always)]
    fn run<V: Vector>(self) -> bool {
        let mut wide = Wide::new();
        let quant = by_units(self.quant);
        let mut rest = self.out;
        let rows: [&mut [u8]; 8] = std::array::from_fn(|_| {
            let row = rest.split_off_mut(..self.stride.min(rest.len()));
            row.unwrap_or_default()
        });
        let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
        for (i, group) in self.groups.iter().enumerate() {
            for part in (0..BLOCKS).step_by(V::PARTS) {
                let units = dequantised::<V>(&group.0[8 * part..], &quant);
                // All at once: checks between the steps would keep the compiler from ordering them.
                let x = 8 * (BLOCKS * i + part);
                let x = x..x + 8 * V::PARTS;
                let upper = [&mut r0[x.clone()], &mut r1[x.clone()], &mut r2[x.clone()], &mut r3[x.clone()]];
                let lower = [&mut r4[x.clone()], &mut r5[x.clone()], &mut r6[x.clone()], &mut r7[x]];
                blocks(units, &mut wide, upper, lower);
            }
        }
        !wide.is_any()
    }
}

/// The units of the blocks that `group` begins with, as many as a vector has parts.
#[inline(always)]
pub(super) fn dequantised<V: Vector>(group: &[i16], quant: &[[i16; 8]; 8]) -> [V; 8] {
    let mut units = [V::splat16(0); 8];
    for (u, unit) in units.iter_mut().enumerate() {
        *unit = V::load(&group[UNIT * u..]).mul16(V::load_each(&quant[u]));
    }
    units
}

/// A quantisation table unit by unit. A copy, of which the compiler knows that nobody writes to it.
#[inline(always)]
pub(super) fn by_units(quant: &[i16; 64]) -> [[i16; 8]; 8] {
    let mut units = [[0; 8]; 8];
    units.copy_from_slice(quant.as_chunks().0);
    units
}

/// Whether numbers were too wide: those before the first pass for 14 bits, those before the second one for 15.
pub(super) struct Wide<V>([V; 2]);

impl<V: Vector> Wide<V> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self([V::splat16(0); 2])
    }

    /// Notes numbers before a pass.
    #[inline(always)]
    pub(super) fn note<const PASS: usize>(&mut self, numbers: V) {
        let moved = numbers.add16(V::splat16(8192 << PASS));
        self.0[PASS] = self.0[PASS].or(moved);
    }

    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        let [first, second] = self.0;
        !first.and(V::splat16(-1 << 14)).or(second.and(V::splat16(-1 << 15))).is_zero()
    }
}

/// As many blocks side by side as a vector has parts.
#[inline(always)]
fn blocks<V: Vector>(
    [u0, u1, u2, u3, u4, u5, u6, u7]: [V; 8],
    wide: &mut Wide<V>,
    upper: [&mut [u8]; 4],
    lower: [&mut [u8]; 4],
) {
    wide.note::<0>(u0);
    wide.note::<0>(u1);
    // Columns 0 and 4, 7 and 1, then 2 and 6, 3 and 5: of four rows each.
    let [[upper04, upper71], [lower04, lower71]] = two_pairs([u0, u2, u4, u6]);
    let [[upper26, upper35], [lower26, lower35]] = two_pairs([u1, u3, u5, u7]);
    wide.note::<1>(upper04);
    wide.note::<1>(lower04);
    four_rows([upper04, upper71, upper26, upper35], upper);
    four_rows([lower04, lower71, lower26, lower35], lower);
}

/// The first pass, for two pairs of columns: what the second one takes of the upper and of the lower rows.
#[inline(always)]
fn two_pairs<V: Vector>(pairs: [V; 4]) -> [[V; 2]; 2] {
    const ROUND: i32 = 1 << 10;
    let [r0, r1, r2, r3, r4, r5, r6, r7] = pass::<V, 11>(pairs, ROUND);
    let (r01, r23, r45, r67) = (r0.packs32(r1), r2.packs32(r3), r4.packs32(r5), r6.packs32(r7));
    [[r01.even32(r23), r01.odd32(r23)], [r45.even32(r67), r45.odd32(r67)]]
}

/// The second pass, for four rows.
#[inline(always)]
fn four_rows<V: Vector>(pairs: [V; 4], [first, second, third, fourth]: [&mut [u8]; 4]) {
    const ROUND: i32 = 1 << 17;
    let [c0, c1, c2, c3, c4, c5, c6, c7] = pass::<V, 18>(pairs, ROUND);
    let left = c0.packs32(c1).samples8(c2.packs32(c3)).turned8();
    let right = c4.packs32(c5).samples8(c6.packs32(c7)).turned8();
    left.low32(right).store_halves(first, second);
    left.high32(right).store_halves(third, fourth);
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

/// One pass: pairs of four rows (or columns) to eight in 32 bits, one for each place. Each pair of lanes is on its own.
#[inline(always)]
fn pass<V: Vector, const DOWN: u32>([z04, z71, z26, z35]: [V; 4], round: i32) -> [V; 8] {
    const ONE: i16 = 1 << 13;
    // Even frequencies, with what rounds them later.
    let round = V::splat32(round);
    let t0 = z04.madd_to(pair(ONE, ONE), round);
    let t1 = z04.madd_to(pair(ONE, -ONE), round);
    let t2 = z26.madd(pair(F0_541, F0_541 - F1_847));
    let t3 = z26.madd(pair(F0_541 + F0_765, F0_541));
    let (e0, e3, e1, e2) = (t0.add32(t3), t0.sub32(t3), t1.add32(t2), t1.sub32(t2));
    // Odd frequencies.
    let z34 = z71.add16(z35);
    let z3 = z34.madd(pair(F1_175 - F1_961, F1_175));
    let z4 = z34.madd(pair(F1_175, F1_175 - F0_390));
    let o0 = z71.madd_to(pair(-F0_899, F1_501 - F0_899), z4);
    let o1 = z35.madd_to(pair(F3_072 - F2_562, -F2_562), z3);
    let o2 = z35.madd_to(pair(-F2_562, F2_053 - F2_562), z4);
    let o3 = z71.madd_to(pair(F0_298 - F0_899, -F0_899), z3);
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

/// Two constants for [`Vector::madd`].
#[inline(always)]
pub(super) fn pair<V: Vector>(first: i16, second: i16) -> V {
    V::splat32(i32::from(first as u16) | i32::from(second) << 16)
}
