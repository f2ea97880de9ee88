//! From bytes and a type known at run time to the loops of `loops` and to conversions: the one place where types are
//! dispatched.

use crate::cpu::convert::convert_slice;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::ops::math::arithmetic::functions::Real;
use crate::ops::math::arithmetic::loops;
use crate::ops::math::arithmetic::numbers::Float;
use crate::ops::math::arithmetic::promote::Kernel;
use crate::tensor::{DType, elements, elements_mut};

/// Runs `$body` with `$T` bound to the integer type `$dtype`; for another type, what stands behind.
macro_rules! integers {
    ($dtype:expr, $T:ident => $body:expr) => {
        integers!($dtype, $T => $body, return Err(no_loop($dtype)))
    };
    ($dtype:expr, $T:ident => $body:expr, $other:expr) => {
        integers!(@ $dtype, $T => $body, $other, U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64)
    };
    (@ $dtype:expr, $T:ident => $body:expr, $other:expr, $($name:ident $rust:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $T = $rust;
                $body
            })*
            _ => $other,
        }
    };
}

/// The same for the float types that loops compute in.
macro_rules! floats {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            _ => return Err(no_loop($dtype)),
        }
    };
}

/// The same for both.
macro_rules! numbers {
    ($dtype:expr, $T:ident => $body:expr) => {
        integers!($dtype, $T => $body, floats!($dtype, $T => $body))
    };
}

/// Runs the loop `kernel` on operands whose first, and but for comparisons of different types all, is of type `dtype`.
///
/// # Errors
/// Those of the loop; internal for a type that it does not take.
pub(super) fn run_loop(kernel: Kernel, dtype: DType, [a, b, c]: [&[u8]; 3], out: &mut [u8]) -> Result<()> {
    match kernel {
        Kernel::Same(f) => numbers!(dtype, T => loops::same::<T>(f, read(a)?, write(out)?)),
        Kernel::Not => integers!(dtype, T => loops::not::<T>(read(a)?, write(out)?)),
        Kernel::LogicalNot => loops::logical_not(a, out),
        Kernel::Real(f) => floats!(dtype, T => real::<T>(f, read(a)?, write(out)?)),
        Kernel::Binary(f) => numbers!(dtype, T => loops::binary::<T>(f, read(a)?, read(b)?, write(out)?)?),
        Kernel::Atan2 => floats!(dtype, T => loops::atan2::<T>(read(a)?, read(b)?, write(out)?)),
        Kernel::Compare(f) => numbers!(dtype, T => loops::compare::<T>(f, read(a)?, read(b)?, write(out)?)),
        Kernel::CompareSigns(f) => loops::compare_signs(f, read(a)?, read(b)?, write(out)?),
        Kernel::CompareReal(f) => {
            floats!(dtype, T => loops::compare_real::<T>(f, read(a)?, read(b)?, write(out)?));
        }
        Kernel::Bits(f) => integers!(dtype, T => loops::bits::<T>(f, read(a)?, read(b)?, write(out)?)),
        Kernel::Clamp => numbers!(dtype, T => loops::clamp::<T>(read(a)?, read(b)?, read(c)?, write(out)?)),
    }
    Ok(())
}

fn real<F: Float>(function: Real, values: &[F], out: &mut [F]) {
    F::real(function, values, out);
}

fn no_loop(dtype: DType) -> Error {
    Error::internal(format!("there is no loop for {dtype}"))
}

/// Whether an element of one type is read as the other without a conversion. C++ casts `uint64` to `int64` so.
pub(super) fn same_bytes(from: DType, to: DType) -> bool {
    from == to || (from == DType::U64 && to == DType::I64)
}

/// Converts elements; for the pairs that occur this is what C++ does by a cast.
///
/// # Errors
/// Internal, when the bytes do not lie as their types need.
pub(super) fn convert(from: DType, src: &[u8], to: DType, dst: &mut [u8]) -> Result<()> {
    if same_bytes(from, to) {
        dst.copy_from_slice(src);
        return Ok(());
    }
    dispatch!(from, From => dispatch!(to, To => convert_slice::<From, To>(read(src)?, write(dst)?)));
    Ok(())
}

fn read<T: bytemuck::Pod>(bytes: &[u8]) -> Result<&[T]> {
    elements(bytes)
}

fn write<T: bytemuck::Pod>(bytes: &mut [u8]) -> Result<&mut [T]> {
    elements_mut(bytes)
}
