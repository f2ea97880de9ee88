// A picture of which the samples of its components are there in place of its pixels, as a JPEG's blocks become them.
// Who reads them makes the pixels that the decoder would have made.
#pragma once
#include "colors.cuh"
#include "layouts/resample.cuh"

// Of each component, what four pixels fall into.
struct Fours {
  uint32_t first, second, third;
};

__device__ inline uint32_t four_of(const Planes &planes, uint32_t c, uint32_t x, uint32_t y) {
  const uint32_t factor = planes.factor_x[c], at = x >> factor;
  const uint32_t word = __ldg((const uint32_t *)(planes.samples[c] + ((y >> planes.factor_y[c]) * planes.stride[c] + (at & ~3u))));
  const uint32_t repeated = factor == 0 ? 0x3210 : factor == 1 ? 0x1100 : 0x0000;
  return __byte_perm(word, 0, repeated + (at & 3) * 0x1111);
}

// Whether four pixels, two of two rows from an even one on, have the same chroma, and luma is there for each.
__device__ inline bool shares_chroma(const Planes &planes) {
  const uint32_t halves = 0x010100, x = *(const uint32_t *)planes.factor_x, y = *(const uint32_t *)planes.factor_y;
  return planes.color == 1 && (x & 0xFFFFFF) == halves && (y & 0xFFFFFF) == halves;
}

// For the four pixels from x, a multiple of 4, on.
__device__ inline Fours fours_of(const Planes &planes, uint32_t x, uint32_t y) {
  return {four_of(planes, 0, x, y), four_of(planes, 1, x, y), four_of(planes, 2, x, y)};
}

// These, three bytes each, as three words.
__device__ inline void convert_fours(const Planes &planes, const Fours &v, uint32_t *to) {
  if (planes.color != 1) interleave_four(planes.blue_first ? v.third : v.first, v.second, planes.blue_first ? v.first : v.third, to);
  else if (planes.factor_x[1] && planes.factor_x[2]) convert_four<true>(v.first, v.second, v.third, planes.blue_first, to);
  else convert_four<false>(v.first, v.second, v.third, planes.blue_first, to);
}
