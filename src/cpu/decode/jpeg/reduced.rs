//! Transforms that make 4 x 4, 2 x 2 or one sample of a block: a half, a quarter or an eighth of an image, as libjpeg
//! reduces. It must not know where coefficients come from or what samples mean.

use super::transform::{BLOCKS, Group, Wide, by_units, dequantised, pair};
use super::vector::{Vector, Vectors, Work};

/// A row of groups to `side` x `side` samples a block.
pub(super) struct Reduce<'a> {
    /// 4, 2 or 1.
    pub(super) side: usize,
    /// The rest is as for [`Transform`](super::transform::Transform).
    pub(super) groups: &'a [Group],
    pub(super) quant: &'a [i16; 64],
    pub(super) out: &'a mut [u8],
    pub(super) stride: usize,
}

impl Reduce<'_> {
    /// Transforms all groups. False: numbers are so large that libjpeg-turbo wraps around, and shall decode the file.
    #[must_use]
    pub(super) fn done_by(self, vectors: Vectors) -> bool {
        if self.side == 1 { self.means() } else { vectors.run(self) }
    }

    /// One sample of each block.
    fn means(self) -> bool {
        let mut narrow = true;
        for (group, out) in self.groups.iter().zip(self.out.chunks_mut(BLOCKS)) {
            for (block, out) in out.iter_mut().enumerate() {
                let product = i32::from(group.0[8 * block]) * i32::from(self.quant[0]);
                // Of its table libjpeg uses ten bits to clamp a sample.
                let sample = (product + 4) >> 3;
                narrow &= (-512..512).contains(&sample);
                *out = (sample + 128).clamp(0, 255) as u8;
            }
        }
        narrow
    }

    /// With vectors, for a side that is known.
    #[inline(always)]
    fn each<V: Vector, const SIDE: usize>(self) -> bool {
        let mut wide = Wide::new();
        let quant = by_units(self.quant);
        for (i, group) in self.groups.iter().enumerate() {
            for part in (0..BLOCKS).step_by(V::PARTS) {
                let units = dequantised::<V>(&group.0[8 * part..], &quant);
                let samples = if SIDE == 4 { four(units, &mut wide) } else { two(units, &mut wide) };
                let mut stored = [0; 8 * BLOCKS];
                samples.store(&mut stored);
                let (blocks, _) = bytemuck::cast_slice::<i16, u8>(&stored).as_chunks::<16>();
                for (b, block) in blocks.iter().take(V::PARTS).enumerate() {
                    let x = SIDE * (BLOCKS * i + part + b);
                    for (y, row) in block.chunks_exact(4).take(SIDE).enumerate() {
                        self.out[y * self.stride + x..][..SIDE].copy_from_slice(&row[..SIDE]);
                    }
                }
            }
        }
        !wide.is_any()
    }
}

impl Work for Reduce<'_> {
    type Out = bool;

    #[inline(always)]
    fn run<V: Vector>(self) -> bool {
        if self.side == 4 { self.each::<V, 4>() } else { self.each::<V, 2>() }
    }
}

/// Constants of the transforms, times 2^13.
const F0_211: i16 = 1730;
const F0_509: i16 = 4176;
const F0_601: i16 = 4926;
const F0_720: i16 = 5906;
const F0_765: i16 = 6270;
const F0_850: i16 = 6967;
const F0_899: i16 = 7373;
const F1_061: i16 = 8697;
const F1_272: i16 = 10426;
const F1_451: i16 = 11893;
const F1_847: i16 = 15137;
const F2_172: i16 = 17799;
const F2_562: i16 = 20995;
const F3_624: i16 = 29692;

/// Four rows of four samples of each part. The order of units is that of the whole transform.
#[inline(always)]
fn four<V: Vector>([u0, u1, u2, u3, u4, u5, u6, u7]: [V; 8], wide: &mut Wide<V>) -> V {
    const ROUND: i32 = 1 << 11;
    wide.note::<0>(u0);
    wide.note::<0>(u1);
    let [a0, a1, a2, a3] = four_places::<V, 12>([u0, u2, u4, u6], ROUND);
    let [b0, b1, b2, b3] = four_places::<V, 12>([u1, u3, u5, u7], ROUND);
    let (a01, a23, b01, b23) = (a0.packs32(a1), a2.packs32(a3), b0.packs32(b1), b2.packs32(b3));
    let pairs = [a01.even32(a23), a01.odd32(a23), b01.even32(b23), b01.odd32(b23)];
    let [c0, c1, c2, c3] = four_places::<V, 19>(pairs, 1 << 18);
    c0.packs32(c1).samples8(c2.packs32(c3)).turned8()
}

/// Four places of eight frequencies in pairs; the fourth one has no part in them.
#[inline(always)]
fn four_places<V: Vector, const DOWN: u32>([z04, z71, z26, z35]: [V; 4], round: i32) -> [V; 4] {
    let zero = z04.madd_to(pair(1 << 14, 0), V::splat32(round));
    let even = z26.madd(pair(F1_847, -F0_765));
    let (e0, e1) = (zero.add32(even), zero.sub32(even));
    let o0 = z71.madd_to(pair(-F0_509, F2_562), z35.madd(pair(F0_899, -F0_601)));
    let o1 = z71.madd_to(pair(-F0_211, F1_061), z35.madd(pair(-F2_172, F1_451)));
    [
        e0.add32(o0).sra32::<DOWN>(),
        e1.add32(o1).sra32::<DOWN>(),
        e1.sub32(o1).sra32::<DOWN>(),
        e0.sub32(o0).sra32::<DOWN>(),
    ]
}

/// Two rows of two samples of each part, four bytes apart.
#[inline(always)]
fn two<V: Vector>([u0, u1, u2, u3, _, _, u6, u7]: [V; 8], wide: &mut Wide<V>) -> V {
    const ROUND: i32 = 1 << 12;
    wide.note::<0>(u0);
    wide.note::<0>(u1);
    let [a0, a1] = two_places::<V, 13>([u0, u2, u6], ROUND);
    let [b0, b1] = two_places::<V, 13>([u1, u3, u7], ROUND);
    let (a, b) = (a0.packs32(a1), b0.packs32(b1));
    let pairs = [a.even32(a), a.odd32(a), b.odd32(b)];
    // Of the first column libjpeg-turbo keeps 32 bits here.
    wide.note::<1>(pairs[0]);
    let [c0, c1] = two_places::<V, 20>(pairs, 1 << 19);
    let both = c0.packs32(c1);
    both.samples8(both).turned8()
}

/// Two places of eight frequencies in pairs; of the even ones only the first has a part in them.
#[inline(always)]
fn two_places<V: Vector, const DOWN: u32>([z04, z71, z35]: [V; 3], round: i32) -> [V; 2] {
    let half = z04.madd(pair(1 << 14, 0));
    let even = half.add32(half).add32(V::splat32(round));
    let odd = z71.madd_to(pair(-F0_720, F3_624), z35.madd(pair(-F1_272, F0_850)));
    [even.add32(odd).sra32::<DOWN>(), even.sub32(odd).sra32::<DOWN>()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From -4100 to 4091 libjpeg clamps a mean; beyond, it takes large ones for small ones.
    #[test]
    fn means_that_libjpeg_wraps_are_not_made() {
        let reduced = |first: i16, scale: i16| {
            let (mut groups, mut quant) = ([Group::ZERO], [1; 64]);
            (groups[0].0[0], quant[0]) = (first, scale);
            let mut out = [7; BLOCKS];
            let reduce = Reduce { side: 1, groups: &groups, quant: &quant, out: &mut out, stride: BLOCKS };
            reduce.done_by(Vectors::best()).then_some(out[0])
        };
        assert_eq!(reduced(8, 10), Some(138));
        assert_eq!((reduced(4091, 1), reduced(4092, 1)), (Some(255), None));
        assert_eq!((reduced(-4100, 1), reduced(-4101, 1)), (Some(0), None));
        // 65,560 is 24 in 16 bits.
        assert_eq!(reduced(596, 110), None);
    }
}
