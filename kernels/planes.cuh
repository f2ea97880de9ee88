// A picture of which the samples of its components are there in place of its pixels: as a JPEG's blocks become them.
// Who reads them makes the pixels that the decoder would have made.
#pragma once
#include "colors.cuh"

// Of each component, what four pixels fall into.
struct Fours {
  uint32_t first, second, third;
};

struct Planes {
  // 0 gray, 1 YCbCr, 2 RGB.
  uint32_t color;
  uint32_t blue_first;
  // Of gray, three times the same.
  const uint8_t *samples[3];
  // From a row to the next: a multiple of 8 bytes. No component has 2^32 samples.
  uint32_t stride[3];
  // log2 of by how much a component is coarser than the picture.
  uint8_t factor_x[4], factor_y[4];
  uint32_t unused_too;

  __device__ uint32_t four(uint32_t c, uint32_t x, uint32_t y) const {
    const uint32_t factor = factor_x[c], at = x >> factor;
    const uint32_t word = __ldg((const uint32_t *)(samples[c] + ((y >> factor_y[c]) * stride[c] + (at & ~3u))));
    const uint32_t repeated = factor == 0 ? 0x3210 : factor == 1 ? 0x1100 : 0x0000;
    return __byte_perm(word, 0, repeated + (at & 3) * 0x1111);
  }
  // Whether four pixels, two of two rows from an even one on, have the same chroma, and luma is there for each.
  __device__ bool shares_chroma() const {
    const uint32_t halves = 0x010100, x = *(const uint32_t *)factor_x, y = *(const uint32_t *)factor_y;
    return color == 1 && (x & 0xFFFFFF) == halves && (y & 0xFFFFFF) == halves;
  }
  // For the four pixels from x, a multiple of 4, on.
  __device__ Fours read(uint32_t x, uint32_t y) const { return {four(0, x, y), four(1, x, y), four(2, x, y)}; }
  // These, three bytes each, as three words.
  __device__ void convert(const Fours &v, uint32_t *to) const {
    if (color != 1) interleave_four(blue_first ? v.third : v.first, v.second, blue_first ? v.first : v.third, to);
    else if (factor_x[1] && factor_x[2]) convert_four<true>(v.first, v.second, v.third, blue_first, to);
    else convert_four<false>(v.first, v.second, v.third, blue_first, to);
  }
};
