// A picture of which the samples of its components are there in place of its pixels: as a JPEG's blocks become them. Who reads them
// makes the pixels that the decoder would have made.
#pragma once
#include "colors.cuh"

struct Planes {
  // 0: the pixels are there after all.
  uint32_t live;
  // 0 gray, 1 YCbCr, 2 RGB.
  uint32_t color;
  uint32_t blue_first, unused;
  const uint8_t *samples[3];
  // From a row to the next: a multiple of 8 bytes.
  uint32_t stride[3];
  // log2 of by how much a component is coarser than the picture.
  uint8_t factor_x[4], factor_y[4];
  uint32_t unused_too;

  // Of a component, what four pixels fall into; x is a multiple of 4.
  __device__ uint32_t four(uint32_t c, uint32_t x, uint32_t y) const {
    const uint32_t factor = factor_x[c], at = x >> factor;
    const uint8_t *const row = samples[c] + (uint64_t)(y >> factor_y[c]) * stride[c];
    const uint32_t word = __ldg((const uint32_t *)(row + (at & ~3u))) >> 8 * (at & 3);
    return factor == 0 ? word : __byte_perm(word, 0, factor == 1 ? 0x1100 : 0x0000);
  }
  // Four pixels, three bytes each, as three words.
  __device__ void pixels(uint32_t x, uint32_t y, uint32_t *to) const {
    const uint32_t first = four(0, x, y);
    if (color == 0) {
      interleave_four(first, first, first, to);
    } else {
      const uint32_t second = four(1, x, y), third = four(2, x, y);
      if (color == 2) interleave_four(blue_first ? third : first, second, blue_first ? first : third, to);
      else if (factor_x[1] && factor_x[2]) convert_four<true>(first, second, third, blue_first, to);
      else convert_four<false>(first, second, third, blue_first, to);
    }
  }
};
