//! exp, sine and cosine of many float32 at once, to the bit the numbers of glibc 2.28 and later, which calls of the C
//! library's functions one by one give, and so DALI. The arithmetic is theirs (double precision, one rounding to
//! float32 at the end), a lane a number. Processors without fused multiplication, whose C library computes otherwise,
//! call it.

use multiversion::multiversion;
use multiversion::target::target_cfg_f;

/// Added to a number below 2^51 it leaves the nearest whole one in the lowest bits.
const SHIFT: f64 = 6_755_399_441_055_744.0;
/// Numbers computed together.
const LANES: usize = 32;

/// e to the power of each of `values`, into `out`, which has as many.
#[multiversion(targets(
    "x86_64+avx+avx2+fma+avx512f+avx512bw+avx512cd+avx512dq+avx512vl",
    "x86_64+avx+avx2+fma"
))]
pub fn exp(values: &[f32], out: &mut [f32]) {
    let is_fused = target_cfg_f!(target_feature = "fma");
    // Results that are no normal numbers, and what is not a number.
    lanes(values, out, |x| is_fused && x.abs() < 87.0, exp_of, f32::exp);
}

/// The sine of each of `values`, in radians, into `out`, which has as many.
#[multiversion(targets(
    "x86_64+avx+avx2+fma+avx512f+avx512bw+avx512cd+avx512dq+avx512vl",
    "x86_64+avx+avx2+fma"
))]
pub fn sin(values: &[f32], out: &mut [f32]) {
    let is_fused = target_cfg_f!(target_feature = "fma");
    lanes(values, out, |x| is_fused && x.abs() < MANY_TURNS, |x| sin_of(x, reduced(x)), f32::sin);
}

/// The cosine of each of `values`, in radians, into `out`, which has as many.
#[multiversion(targets(
    "x86_64+avx+avx2+fma+avx512f+avx512bw+avx512cd+avx512dq+avx512vl",
    "x86_64+avx+avx2+fma"
))]
pub fn cos(values: &[f32], out: &mut [f32]) {
    let is_fused = target_cfg_f!(target_feature = "fma");
    lanes(values, out, |x| is_fused && x.abs() < MANY_TURNS, |x| cos_of(reduced(x)), f32::cos);
}

/// `common` of lanes whose numbers all are `simple`, `rare` of the others.
#[inline(always)]
fn lanes(
    values: &[f32],
    out: &mut [f32],
    simple: impl Fn(f32) -> bool,
    common: impl Fn(f32) -> f32,
    rare: impl Fn(f32) -> f32,
) {
    let (parts, rest) = values.as_chunks::<LANES>();
    let (outs, out_rest) = out.as_chunks_mut::<LANES>();
    for (out, part) in outs.iter_mut().zip(parts) {
        if part.iter().fold(true, |all, &x| all & simple(x)) {
            for k in 0..LANES {
                out[k] = common(part[k]);
            }
        } else {
            for k in 0..LANES {
                out[k] = rare(part[k]);
            }
        }
    }
    for (out, &x) in out_rest.iter_mut().zip(rest) {
        *out = if simple(x) { common(x) } else { rare(x) };
    }
}

/// Parts of an octave in [`ROOTS`].
const STEPS: f64 = 32.0;
/// The bits of 2 to the power of i / 32, less those that i adds behind the whole exponent.
static ROOTS: [u64; 32] = [
    0x3FF0_0000_0000_0000,
    0x3FEF_D9B0_D315_8574,
    0x3FEF_B558_6CF9_890F,
    0x3FEF_9301_D012_5B51,
    0x3FEF_72B8_3C7D_517B,
    0x3FEF_5487_3168_B9AA,
    0x3FEF_387A_6E75_6238,
    0x3FEF_1E9D_F51F_DEE1,
    0x3FEF_06FE_0A31_B715,
    0x3FEE_F1A7_373A_A9CB,
    0x3FEE_DEA6_4C12_3422,
    0x3FEE_CE08_6061_892D,
    0x3FEE_BFDA_D536_2A27,
    0x3FEE_B42B_569D_4F82,
    0x3FEE_AB07_DD48_5429,
    0x3FEE_A47E_B03A_5585,
    0x3FEE_A09E_667F_3BCD,
    0x3FEE_9F75_E8EC_5F74,
    0x3FEE_A114_73EB_0187,
    0x3FEE_A589_994C_CE13,
    0x3FEE_ACE5_422A_A0DB,
    0x3FEE_B737_B0CD_C5E5,
    0x3FEE_C491_82A3_F090,
    0x3FEE_D503_B23E_255D,
    0x3FEE_E89F_995A_D3AD,
    0x3FEE_FF76_F2FB_5E47,
    0x3FEF_199B_DD85_529C,
    0x3FEF_3720_DCEF_9069,
    0x3FEF_5818_DCFB_A487,
    0x3FEF_7C97_337B_9B5F,
    0x3FEF_A4AF_A2A4_90DA,
    0x3FEF_D076_5B6E_4540,
];

#[inline(always)]
fn exp_of(x: f32) -> f32 {
    const STEPS_OF_E: f64 = std::f64::consts::LOG2_E * STEPS;
    let x = f64::from(x);
    let shifted = STEPS_OF_E.mul_add(x, SHIFT);
    let whole = shifted.to_bits();
    let rest = STEPS_OF_E.mul_add(x, SHIFT - shifted);
    let root = f64::from_bits(ROOTS[(whole % 32) as usize].wrapping_add(whole << 47));
    let high = (0.055_503_615_593_415_35 / STEPS / STEPS / STEPS)
        .mul_add(rest, 0.240_228_452_244_572_2 / STEPS / STEPS);
    let low = (0.693_147_180_691_620_3 / STEPS).mul_add(rest, 1.0);
    (high.mul_add(rest * rest, low) * root) as f32
}

/// Below this a quarter turn in float64 is exact enough for glibc; from there on its error counts, too.
const FEW_TURNS: f32 = 120.0;
/// From here on quarter turns in two float64 are not exact enough.
const MANY_TURNS: f32 = 1_048_576.0;

/// An angle less quarter turns, and how many these were.
type Reduced = (f64, u64);

#[inline(always)]
fn reduced(x: f32) -> Reduced {
    use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};
    // What FRAC_PI_2 lacks.
    const FRAC_PI_2_REST: f64 = 6.123_233_995_736_766e-17;
    let few = x.abs() < FEW_TURNS;
    let x = f64::from(x);
    let shifted = FRAC_2_PI.mul_add(x, SHIFT);
    let quarters = shifted - SHIFT;
    let angle = quarters.mul_add(-FRAC_PI_2, x);
    let exact = quarters.mul_add(-FRAC_PI_2_REST, angle);
    (if few { angle } else { exact }, shifted.to_bits())
}

#[inline(always)]
fn sin_of(x: f32, (angle, quarters): Reduced) -> f32 {
    let result = wave(angle, quarters);
    if x.abs() < 1.0 / 4096.0 { x } else { result }
}

#[inline(always)]
fn cos_of((angle, quarters): Reduced) -> f32 {
    wave(angle, quarters + 1)
}

/// The sine of an angle between -45 and 45 degrees and so many quarter turns.
#[inline(always)]
fn wave(angle: f64, quarters: u64) -> f32 {
    let square = angle * angle;
    let fourth = square * square;
    let high = 2.439_045_070_356_454_2e-5_f64.mul_add(square, -0.001_388_676_379_437_604);
    let low = (-0.499_999_997_251_082_24_f64).mul_add(square, 1.0);
    let even = (fourth * square).mul_add(high, 0.041_666_623_324_344_516_f64.mul_add(fourth, low));
    let cube = angle * square;
    let high = (-0.000_195_172_989_813_857_25_f64).mul_add(square, 0.008_332_178_146_138_854);
    let odd = (cube * square).mul_add(high, (-0.166_666_549_437_010_84_f64).mul_add(cube, angle));
    let result = if quarters & 1 == 0 { odd } else { even };
    (if quarters & 2 == 0 { result } else { -result }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of which both make something else: of every `step`th run of 4,096 float32.
    fn differing(step: usize, together: fn(&[f32], &mut [f32]), alone: fn(f32) -> f32) -> Option<f32> {
        let mut out = vec![0.0; 1 << 12];
        for first in (0..=u32::MAX).step_by(step << 12) {
            let values: Vec<f32> = (0..1 << 12).map(|k| f32::from_bits(first.wrapping_add(k))).collect();
            together(&values, &mut out);
            let is_other = |(&x, &y): (&f32, &f32)| {
                y.to_bits() != alone(x).to_bits() && !(y.is_nan() && alone(x).is_nan())
            };
            if let Some((&x, _)) = values.iter().zip(&out).find(|&(x, y)| is_other((x, y))) {
                return Some(x);
            }
        }
        None
    }

    #[test]
    fn the_c_library_has_the_same_numbers() {
        assert_eq!(differing(4093, exp, f32::exp), None);
        assert_eq!(differing(4093, sin, f32::sin), None);
        assert_eq!(differing(4093, cos, f32::cos), None);
    }

    #[test]
    #[ignore = "all of them: half a minute when optimised"]
    fn the_c_library_has_all_the_same_numbers() {
        assert_eq!(differing(1, exp, f32::exp), None);
        assert_eq!(differing(1, sin, f32::sin), None);
        assert_eq!(differing(1, cos, f32::cos), None);
    }

    #[test]
    fn lengths_that_no_vector_fills() {
        for length in [0, 1, 31, 33, 70] {
            let values: Vec<f32> = (0..length).map(|i| i as f32 * 0.7 - 20.0).collect();
            let mut out = vec![0.0; length];
            exp(&values, &mut out);
            assert!(values.iter().zip(&out).all(|(x, y)| x.exp() == *y));
        }
    }
}
