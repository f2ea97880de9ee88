// What every kernel needs: fixed-size types, saturating conversion as DALI's GPU kernels do it. Compiled by NVRTC,
// which brings no headers.
#pragma once

typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;

// IEEE half precision: converted to float to compute, rounded to nearest even to store.
struct half_t {
  uint16_t bits;
};

__device__ inline float to_float(half_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
}

__device__ inline half_t to_half(float f) {
  half_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
}

// Parameters of a kernel that takes none: a struct in C++ has at least a byte, so Rust passes this.
struct NoParams {
  uint32_t unused;
};

// Waits until all kernels ahead in the stream are done, and what they wrote is visible. A kernel that may be launched
// sooner (`KernelSpec::early`), which saves the time between two kernels, must call it. Let K be the kernel ahead.
// Those before K are done, because K lets the next kernel begin only behind its own wait. So before the wait a kernel
// may read what was uploaded and what those before K wrote, as every kernel begins with an empty L1 cache, and may
// write what K does not touch.
__device__ inline void wait_for_earlier() {
#if defined(EARLY) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The same, and then lets the next kernel begin. The blocks of that one take room while they wait. So a kernel that
// takes long calls `wait_for_earlier` alone.
__device__ inline void begin_early() {
  wait_for_earlier();
#if defined(EARLY) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The element at `from`. Any byte but 0 is true: what a request sends as truth values need not be 0 and 1.
template <class T> __device__ inline T load(const T *from) { return *from; }
template <> __device__ inline bool load(const bool *from) { return *(const uint8_t *)from != 0; }

// ---- saturating conversion (DALI's `ConvertSat` on the GPU): floats are rounded to nearest, halves to even; what does
// not fit becomes the nearest value that does; NaN becomes 0; what is 0.5 or more away from 0 is true.

template <class T> struct Range;
#define RANGE(T, LOW, HIGH)                       \
  template <> struct Range<T> {                   \
    static constexpr T low = LOW;                 \
    static constexpr T high = HIGH;               \
  }
RANGE(uint8_t, 0, 255);
RANGE(uint16_t, 0, 65535);
RANGE(uint32_t, 0, 4294967295u);
RANGE(uint64_t, 0, 18446744073709551615ull);
RANGE(int8_t, -128, 127);
RANGE(int16_t, -32768, 32767);
RANGE(int32_t, -2147483647 - 1, 2147483647);
RANGE(int64_t, -9223372036854775807ll - 1, 9223372036854775807ll);

template <class To> __device__ inline To from_real(float v) {
  const float r = rintf(v);
  if (r != r) return 0;
  if (r <= (float)Range<To>::low) return Range<To>::low;
  if (r >= (float)Range<To>::high) return Range<To>::high;
  return (To)r;
}

// The device's own conversion does all of it.
template <> __device__ inline uint8_t from_real<uint8_t>(float v) {
  uint32_t r;
  asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(r) : "f"(v));
  return r;
}

template <class To> __device__ inline To from_real(double v) {
  const double r = rint(v);
  if (r != r) return 0;
  if (r <= (double)Range<To>::low) return Range<To>::low;
  if (r >= (double)Range<To>::high) return Range<To>::high;
  return (To)r;
}

template <class To, class From> __device__ inline To from_integer(From v) {
  if (v < 0) {
    if (Range<To>::low == 0) return 0;
    return (int64_t)v < (int64_t)Range<To>::low ? Range<To>::low : (To)v;
  }
  return (uint64_t)v > (uint64_t)Range<To>::high ? Range<To>::high : (To)v;
}

// The general case: between integers.
template <class To, class From> struct Convert {
  __device__ static To of(From v) { return from_integer<To, From>(v); }
};
template <class To> struct Convert<To, float> {
  __device__ static To of(float v) { return from_real<To>(v); }
};
template <class To> struct Convert<To, double> {
  __device__ static To of(double v) { return from_real<To>(v); }
};
template <class To> struct Convert<To, half_t> {
  __device__ static To of(half_t v) { return from_real<To>(to_float(v)); }
};
template <class To> struct Convert<To, bool> {
  __device__ static To of(bool v) { return (To)v; }
};
template <class From> struct Convert<float, From> {
  __device__ static float of(From v) { return (float)v; }
};
template <class From> struct Convert<double, From> {
  __device__ static double of(From v) { return (double)v; }
};
template <class From> struct Convert<half_t, From> {
  __device__ static half_t of(From v) { return to_half((float)v); }
};
template <class From> struct Convert<bool, From> {
  __device__ static bool of(From v) { return v != 0; }
};
// Between floating point types, and to and from bool: the cases that two of the above would take.
#define CONVERT(To, From, EXPRESSION)                       \
  template <> struct Convert<To, From> {                    \
    __device__ static To of(From v) { return EXPRESSION; }  \
  }
CONVERT(float, float, v);
CONVERT(float, double, (float)v);
CONVERT(float, half_t, to_float(v));
CONVERT(float, bool, v ? 1.0f : 0.0f);
CONVERT(double, float, v);
CONVERT(double, double, v);
CONVERT(double, half_t, to_float(v));
CONVERT(double, bool, v ? 1.0 : 0.0);
CONVERT(half_t, float, to_half(v));
CONVERT(half_t, double, to_half((float)v));
CONVERT(half_t, half_t, v);
CONVERT(half_t, bool, to_half(v ? 1.0f : 0.0f));
CONVERT(bool, float, roundf(v) != 0);
CONVERT(bool, double, round(v) != 0);
CONVERT(bool, half_t, roundf(to_float(v)) != 0);
CONVERT(bool, bool, v);

template <class To, class From> __device__ inline To convert(From v) { return Convert<To, From>::of(v); }

// Fill values are cast as C++ does on x86: a fraction is dropped, integers of 8 bits wrap around.
template <class To> __device__ inline To fill_value(float v) { return (To)(int)fmodf(truncf(v), 256.0f); }
template <> __device__ inline float fill_value<float>(float v) { return v; }
template <> __device__ inline half_t fill_value<half_t>(float v) { return to_half(v); }
