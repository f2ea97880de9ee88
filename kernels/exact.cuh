// Resizing of bytes by another library's arithmetic (src/cpu/exact): what its two passes share. A pass makes lines of
// weighted sums, by weights that the host made. Whole numbers are exact in any order; floats are added in the order of
// the library, and products are rounded where it rounds them.
#pragma once
#include "common.cuh"
#include "layouts/exact.cuh"

template <int M> struct Types {
  typedef int32_t Weight;
  typedef uint32_t Sum;     // wraps around as the library's does
};
template <> struct Types<FLOATS> {
  typedef float Weight;
  typedef float Sum;
};
template <> struct Types<MEANS> : Types<FLOATS> {};

__device__ inline uint8_t to_byte(int32_t v) { return v < 0 ? 0 : v > 255 ? 255 : v; }

// Adds product k of `count`. Of floats behind the first one torch rounds four products at a time before it adds them.
// The others it does not.
template <int M> __device__ inline float add(float sum, float weight, float value, int k, int count) {
  if (M == MEANS || k <= (count - 1) / 4 * 4) return sum + value * weight;
  return fmaf(value, weight, sum);
}
template <int M> __device__ inline uint32_t add(uint32_t sum, int32_t weight, uint32_t value, int, int) { return sum + (uint32_t)weight * value; }

// Where pixel i of the axis lies in the source. Only OpenCV's weights go beyond the ends.
template <int M> __device__ inline uint32_t source_index(const Row &row, int32_t i) {
  if (M == INTEGERS || M == LINEAR || M == CUBIC) i = i < 0 ? 0 : i >= row.length ? row.length - 1 : i;
  return i - row.origin;
}

// A colour times alpha, over 255, rounded.
__device__ inline uint32_t multiplied(uint32_t value, uint32_t alpha) {
  const uint32_t product = value * alpha + 128;
  return (product + (product >> 8)) >> 8;
}
// An alpha of 255 changes nothing. It is no case of its own: with it ptxas of CUDA 13.0 leaves other alphas undivided,
// too.
__device__ inline uint32_t divided(uint32_t value, uint32_t alpha) { return alpha == 0 ? value : min(255 * value / alpha, 255u); }
