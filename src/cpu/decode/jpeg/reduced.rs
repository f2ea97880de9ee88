//! Transforms that make 4 x 4, 2 x 2 or one sample of a block: a half, a quarter or an eighth of an image, as libjpeg reduces.
//! Plain code: of a reduced image little time goes here.

use super::transform::{BLOCKS, Group, place};

/// Constants of the transforms, times 2^13.
const F0_211: i64 = 1730;
const F0_509: i64 = 4176;
const F0_601: i64 = 4926;
const F0_720: i64 = 5906;
const F0_765: i64 = 6270;
const F0_850: i64 = 6967;
const F0_899: i64 = 7373;
const F1_061: i64 = 8697;
const F1_272: i64 = 10426;
const F1_451: i64 = 11893;
const F1_847: i64 = 15137;
const F2_172: i64 = 17799;
const F2_562: i64 = 20995;
const F3_624: i64 = 29692;

/// A row of groups to `SIDE` x `SIDE` samples a block. False: libjpeg-turbo shall decode the file, as for
/// [`Transform`](super::transform::Transform).
#[must_use]
pub(super) fn reduce(
    side: usize,
    groups: &[Group],
    quant: &[i16; 64],
    out: &mut [u8],
    stride: usize,
) -> bool {
    let mut narrow = true;
    for (i, group) in groups.iter().enumerate() {
        for block in 0..BLOCKS {
            let at = |row: usize, column: usize| {
                let place = place(row, column);
                let (value, scale) = (group[place / 8 * 8 * BLOCKS + 8 * block + place % 8], quant[place]);
                i32::from(value.wrapping_mul(scale))
            };
            narrow &= (0..8).all(|column| (-8192..8192).contains(&at(0, column)));
            let out = &mut out[side * (BLOCKS * i + block)..];
            match side {
                4 => quarter(at, out, stride),
                2 => sixteenth(at, out, stride),
                _ => {
                    // Where the others keep 16 bits of a product, libjpeg keeps all of this one.
                    let product = i32::from(group[8 * block]) * i32::from(quant[0]);
                    narrow &= product == at(0, 0);
                    out[0] = sample(product, 3);
                }
            }
        }
    }
    narrow
}

fn rounded(value: i32, bits: u32) -> i32 {
    value.wrapping_add(1 << (bits - 1)) >> bits
}

fn sample(value: i32, bits: u32) -> u8 {
    (rounded(value, bits) + 128).clamp(0, 255) as u8
}

/// Numbers go from the first pass to the second one in 16 bits.
fn kept(value: i32, bits: u32) -> i32 {
    rounded(value, bits).clamp(i32::from(i16::MIN), i32::from(i16::MAX))
}

/// Four places of eight frequencies, not rounded; the fourth frequency has no part in them.
fn four(z: impl Fn(usize) -> i32) -> [i32; 4] {
    let z = |frequency| i64::from(z(frequency));
    let zero = z(0) << 14;
    let even = z(2) * F1_847 - z(6) * F0_765;
    let (e0, e1) = (zero + even, zero - even);
    let o1 = z(1) * F1_061 - z(3) * F2_172 + z(5) * F1_451 - z(7) * F0_211;
    let o0 = z(1) * F2_562 + z(3) * F0_899 - z(5) * F0_601 - z(7) * F0_509;
    // Vectors have 32 bits: what overflows, overflows here too.
    [e0 + o0, e1 + o1, e1 - o1, e0 - o0].map(|v| v as i32)
}

fn quarter(at: impl Fn(usize, usize) -> i32, out: &mut [u8], stride: usize) {
    let columns: [[i32; 4]; 8] =
        std::array::from_fn(|column| four(|row| at(row, column)).map(|v| kept(v, 12)));
    for row in 0..4 {
        let samples = four(|column| columns[column][row]).map(|v| sample(v, 19));
        out[row * stride..][..4].copy_from_slice(&samples);
    }
}

/// Two places of eight frequencies, not rounded; of the even ones only the first has a part in them.
fn two(z: impl Fn(usize) -> i32) -> [i32; 2] {
    let z = |frequency| i64::from(z(frequency));
    let even = z(0) << 15;
    let odd = z(1) * F3_624 - z(3) * F1_272 + z(5) * F0_850 - z(7) * F0_720;
    [even + odd, even - odd].map(|v| v as i32)
}

fn sixteenth(at: impl Fn(usize, usize) -> i32, out: &mut [u8], stride: usize) {
    let columns: [[i32; 2]; 8] =
        std::array::from_fn(|column| two(|row| at(row, column)).map(|v| kept(v, 13)));
    for row in 0..2 {
        let samples = two(|column| columns[column][row]).map(|v| sample(v, 20));
        out[row * stride..][..2].copy_from_slice(&samples);
    }
}
