//! Fill values as elements: what a window holds outside of its source. It must not know windows.

use half::f16;

use crate::cpu::convert::ConvertSat;
use crate::dispatch;
use crate::tensor::{Bool, DType};

/// An element made from a fill value as DALI makes it: by a cast of C++ on x86, where a value that an integer cannot
/// hold loses its upper bits.
pub trait FillValue: Copy {
    /// The element for `value`.
    fn fill_value(value: f32) -> Self;
}

/// The bytes of the elements of `dtype` for `values`.
pub fn fill_elements(dtype: DType, values: &[f32]) -> Vec<u8> {
    dispatch!(dtype, T => {
        let elements: Vec<T> = values.iter().map(|&value| T::fill_value(value)).collect();
        bytemuck::cast_slice(&elements).to_vec()
    })
}

/// The conversion instructions of x86 answer the lowest integer to NaN and to what is out of range.
fn to_i32(value: f32) -> i32 {
    if (-2_147_483_648.0..2_147_483_648.0).contains(&value) { value as i32 } else { i32::MIN }
}

fn to_i64(value: f32) -> i64 {
    const LIMIT: f32 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

fn to_u64(value: f32) -> u64 {
    const HALF: f32 = 9_223_372_036_854_775_808.0;
    if value >= HALF { to_i64(value - HALF) as u64 ^ (1 << 63) } else { to_i64(value) as u64 }
}

macro_rules! fill_values {
    ($($element:ty: |$value:ident| $cast:expr),* $(,)?) => { $(
        impl FillValue for $element {
            fn fill_value($value: f32) -> Self { $cast }
        }
    )* };
}
fill_values! {
    u8: |x| to_i32(x) as u8,
    i8: |x| to_i32(x) as i8,
    u16: |x| to_i32(x) as u16,
    i16: |x| to_i32(x) as i16,
    u32: |x| to_i64(x) as u32,
    i32: |x| to_i32(x),
    u64: |x| to_u64(x),
    i64: |x| to_i64(x),
    f16: |x| x.convert_sat(),
    f32: |x| x,
    f64: |x| f64::from(x),
    Bool: |x| Bool::new(x != 0.0),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_values_are_cast_as_dali_does() {
        // DALI 2.4's `fn.crop` and `fn.pad` filled with these values.
        let values = [0.5, 1.7, -1.5, 300.7, f32::NAN, 70_000.0, 3e9, -3e9, 5e9, 1e19, 1e20, -1e20];
        assert_eq!(values.map(u8::fill_value), [0, 1, 255, 44, 0, 112, 0, 0, 0, 0, 0, 0]);
        assert_eq!(values.map(i8::fill_value), [0, 1, -1, 44, 0, 112, 0, 0, 0, 0, 0, 0]);
        assert_eq!(values.map(u16::fill_value), [0, 1, 65_535, 300, 0, 4_464, 0, 0, 0, 0, 0, 0]);
        assert_eq!(values.map(i32::fill_value)[3..8], [300, i32::MIN, 70_000, i32::MIN, i32::MIN]);
        assert_eq!(
            values.map(u32::fill_value),
            [0, 1, u32::MAX, 300, 0, 70_000, 3_000_000_000, 1_294_967_296, 705_032_704, 0, 0, 0]
        );
        assert_eq!(
            values.map(i64::fill_value)[7..],
            [-3_000_000_000, 5_000_000_000, i64::MIN, i64::MIN, i64::MIN]
        );
        assert_eq!(
            values.map(u64::fill_value)[4..],
            [
                1 << 63,
                70_000,
                3_000_000_000,
                18_446_744_070_709_551_616,
                5_000_000_000,
                9_999_999_980_506_447_872,
                0,
                1 << 63
            ]
        );
        assert_eq!(f16::fill_value(70_000.0), f16::INFINITY);
        assert_eq!([Bool::fill_value(0.4), Bool::fill_value(0.0)], [Bool::new(true), Bool::new(false)]);
    }
}
