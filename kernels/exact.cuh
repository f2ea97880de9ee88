// Resizing of bytes by another library's arithmetic (src/cpu/exact): what its two passes share. A pass makes lines of
// weighted sums, by weights that the host made. Whole numbers are exact in any order; floats are added in the order of
// the library, and products are rounded where it rounds them.
#pragma once
#include "common.cuh"

// How sums are made: METHOD.
enum Method {
  BYTES,      // of integers, rounded to bytes in both passes
  INTEGERS,   // of integers, kept as they are between the passes: across only
  FLOATS,     // of float32 as torch adds them
  MEANS,      // of float32, every product rounded
  LINEAR,     // down only, of integers: as OpenCV does it
  CUBIC,      // down only, of integers: as OpenCV does it
  WHOLE,      // down only: means of whole pixels
};

// What Row::alpha says of colours with alpha.
enum Alpha { MULTIPLY = 1, DIVIDE = 2 };

// One image's pass.
struct Row {
  const void *src;          // the first line that is needed
  void *dst;
  // Of each output its first pixel, of each output its number of weights, then of each weight in turn those of all
  // outputs.
  const int32_t *axis;
  uint32_t outputs;         // pixels that are made along the axis
  // Pixels that there are (those beyond the ends are the ones at the ends), and the one with which the source begins.
  int32_t length, origin;
  uint32_t lines;           // across: rows; down: elements of a row
  uint32_t src_pitch, dst_pitch;  // elements from row to row
  uint32_t step;            // elements of a pixel
  uint32_t bits;            // BYTES: behind the point of the weights
  uint32_t alpha;
  // CUBIC: where the first pixel of a row lies in a row of the whole output, how far the next one is from it, and how
  // many elements of that are made of floats.
  int32_t start, direction;
  uint32_t whole;
  float share;              // WHOLE: what a sum is multiplied by, or 0: halves of four pixels are rounded up
  uint32_t unused;
};
CHECK_LAYOUT(Row, NoParams);

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
