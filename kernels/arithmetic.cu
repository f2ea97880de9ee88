// Evaluates an expression for every element of the result. A row of the table is a sample; its operands meet as in
// numpy: an operand has stride 0 along dimensions that it does not have.
//
// EXPRESSION is made from the parsed expression: calls of the functions below, which are DALI's, on operands IN(i, T),
// with conversions in between. RESULT is its type, OPERANDS the number of operands.
#include "common.cuh"

#include "layouts/arithmetic.cuh"

template <class T> constexpr bool is_real = false;
template <> constexpr bool is_real<float> = true;
template <> constexpr bool is_real<double> = true;

// Integers wrap around, which C++ defines only for unsigned ones; small ones are computed in 32 bits.
template <class T, bool = sizeof(T) == 8> struct Word {
  typedef uint32_t bits;
  typedef int32_t shifted;
};
template <class T> struct Word<T, true> {
  typedef uint64_t bits;
  typedef int64_t shifted;
};
template <> struct Word<uint32_t, false> {
  typedef uint32_t bits;
  typedef uint32_t shifted;
};
template <> struct Word<uint64_t, true> {
  typedef uint64_t bits;
  typedef uint64_t shifted;
};
template <class T> using Bits = typename Word<T>::bits;

// ---- functions that keep the type

template <class T> __device__ inline T f_plus(T v) { return v; }
template <class T> __device__ inline T f_minus(T v) {
  if constexpr (is_real<T>) return -v;
  else return (T)(0 - (Bits<T>)v);
}
template <class T> __device__ inline T f_abs(T v) { return v < 0 ? f_minus(v) : v; }
template <class T> __device__ inline T f_bitnot(T v) { return (T)~v; }
__device__ inline uint8_t f_not(uint8_t v) { return v ^ 1; }

// ---- functions of real numbers

#define REAL(NAME)                                                        \
  __device__ inline float f_##NAME(float v) { return NAME##f(v); }        \
  __device__ inline double f_##NAME(double v) { return NAME(v); }
REAL(sqrt)
REAL(rsqrt)
REAL(cbrt)
REAL(exp)
REAL(log)
REAL(log2)
REAL(log10)
REAL(fabs)
REAL(floor)
REAL(ceil)
REAL(sin)
REAL(cos)
REAL(tan)
REAL(asin)
REAL(acos)
REAL(atan)
REAL(sinh)
REAL(cosh)
REAL(tanh)
REAL(asinh)
REAL(acosh)
REAL(atanh)
__device__ inline float f_atan2(float y, float x) { return atan2f(y, x); }
__device__ inline double f_atan2(double y, double x) { return atan2(y, x); }

// ---- functions of two numbers

template <class T> __device__ inline T f_add(T a, T b) {
  if constexpr (is_real<T>) return a + b;
  else return (T)((Bits<T>)a + (Bits<T>)b);
}
template <class T> __device__ inline T f_sub(T a, T b) {
  if constexpr (is_real<T>) return a - b;
  else return (T)((Bits<T>)a - (Bits<T>)b);
}
template <class T> __device__ inline T f_mul(T a, T b) {
  if constexpr (is_real<T>) return a * b;
  else return (T)((Bits<T>)a * (Bits<T>)b);
}

// DALI leaves the division of an integer by zero undefined on a GPU. Here all bits of the quotient are set, and the
// remainder is the dividend. The lowest integer divided by -1 wraps around.
template <class T> __device__ inline T f_div(T a, T b) {
  if constexpr (is_real<T>) {
    return a / b;
  } else {
    if (b == 0) return (T)~(Bits<T>)0;
    if (b == (T)-1 && (T)-1 < 0) return f_minus(a);
    return (T)(a / b);
  }
}
template <class T> __device__ inline T f_mod(T a, T b) {
  if constexpr (is_real<T>) {
    return fmod(a, b);
  } else {
    if (b == 0) return a;
    if (b == (T)-1 && (T)-1 < 0) return 0;
    return (T)(a % b);
  }
}

// With something that is not a number, the right operand.
template <class T> __device__ inline T f_min(T a, T b) { return a < b ? a : b; }
template <class T> __device__ inline T f_max(T a, T b) { return a > b ? a : b; }

// Integers to a negative power are 0.
template <class T> __device__ inline T f_pow(T base, T exponent) {
  if constexpr (sizeof(T) == 4 && is_real<T>) {
    return powf(base, exponent);
  } else if constexpr (is_real<T>) {
    return pow(base, exponent);
  } else {
    if (exponent < 0) return 0;
    T result = 1;
    for (Bits<T> rest = (Bits<T>)exponent; rest > 0; rest >>= 1) {
      if (rest & 1) result = f_mul(result, base);
      base = f_mul(base, base);
    }
    return result;
  }
}

// ---- bits

template <class T> __device__ inline T f_bitand(T a, T b) { return a & b; }
template <class T> __device__ inline T f_bitor(T a, T b) { return a | b; }
template <class T> __device__ inline T f_bitxor(T a, T b) { return a ^ b; }

// As on x86: small integers are shifted as 32 bits, and the amount counts modulo the width.
template <class T> __device__ inline T f_lshift(T a, T b) {
  return (T)((Bits<T>)a << ((Bits<T>)b & (8 * sizeof(Bits<T>) - 1)));
}
template <class T> __device__ inline T f_rshift(T a, T b) {
  return (T)((typename Word<T>::shifted)a >> ((Bits<T>)b & (8 * sizeof(Bits<T>) - 1)));
}

// ---- comparisons: of one type, of unsigned with signed, of real with signed. A negative integer is below every other
// number.

#define COMPARE(NAME, OP, BELOW)                                                                               \
  template <class T> __device__ inline bool f_##NAME(T a, T b) { return a OP b; }                              \
  __device__ inline bool f_##NAME##_signs(uint64_t a, int64_t b) { return b < 0 ? BELOW : a OP(uint64_t) b; } \
  template <class T> __device__ inline bool f_##NAME##_real(T a, int64_t b) { return b < 0 ? BELOW : a OP(T) b; }
COMPARE(eq, ==, false)
COMPARE(neq, !=, true)
COMPARE(lt, <, false)
COMPARE(leq, <=, false)
COMPARE(gt, >, true)
COMPARE(geq, >=, true)

// The upper bound counts when they cross; what is not a number stays.
template <class T> __device__ inline T f_clamp(T v, T low, T high) {
  const T bounded = v < low ? low : v;
  return bounded > high ? high : bounded;
}

#define IN(OPERAND, T) load((const T *)operands[OPERAND].address + at[OPERAND])

extern "C" __global__ void arithmetic(const Row *__restrict__ rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const Operand *__restrict__ operands = row.operands;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    // A sample has at most 2^31 bytes: 32 bits hold a position and are quick to divide.
    uint32_t rest = (uint32_t)i;
    int64_t at[OPERANDS] = {};
    for (uint64_t a = 0; a < row.axes; ++a) {
      const uint32_t extent = (uint32_t)row.extent[a];
      const int64_t position = rest % extent;
      rest /= extent;
#pragma unroll
      for (uint32_t k = 0; k < OPERANDS; ++k) at[k] += position * operands[k].stride[a];
    }
    row.to[i] = EXPRESSION;
  }
}
