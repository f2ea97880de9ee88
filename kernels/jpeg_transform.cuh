// Blocks of coefficients to samples, as libjpeg's accurate integer method does, whole or reduced to 4 x 4, 2 x 2 or one
// sample. Eight threads share a block: each has a column, then a row.
#pragma once
#include "colors.cuh"
#include "jpeg.cuh"

// Where the coefficients are that come in zig-zag order, eight a row: row * 9 + column, as they lie in shared memory. A
// byte each.
__constant__ uint2 NATURAL[8] = {
    {0x12090100, 0x0B03020A}, {0x1C241B13, 0x05040C14}, {0x251D150D, 0x262E362D}, {0x060E161E, 0x1F170F07},
    {0x3F372F27, 0x28303840}, {0x19101820, 0x39312921}, {0x323A4241, 0x332B222A}, {0x3C44433B, 0x46453D34}};

// Whether numbers were too wide: those before the first pass for 14 bits, those before the second one for 15. No
// encoder makes such, and libjpeg-turbo, which computes in 16 bits, wraps around where this does not. The host decodes
// those files.
struct Wide {
  uint32_t first = 0, second = 0;

  __device__ void note_first(int32_t v) { first |= v + 8192; }
  __device__ void note_second(int32_t v) { second |= v + 16384; }
  __device__ void tell(uint32_t *status) const {
    if ((first >> 14 | second >> 15) != 0) atomicOr(status, TOO_WIDE);
  }
};

// One dimension of the inverse transform (Loeffler, Ligtenberg, Moschytz 1989) with constants of 13 bits; the result is
// rounded to drop `shift` bits, and `level` is added.
template <uint32_t shift, int32_t level> __device__ inline void transform(int32_t *v) {
  const int32_t z1 = (v[2] + v[6]) * 4433;
  const int32_t even2 = z1 - v[6] * 15137, even3 = z1 + v[2] * 6270;
  // Half of what is dropped rounds; it goes through the first two sums into all results.
  constexpr int32_t bias = (level << shift) + (1 << (shift - 1));
  const int32_t even0 = (v[0] + v[4]) * 8192 + bias, even1 = (v[0] - v[4]) * 8192 + bias;
  const int32_t a0 = even0 + even3, a3 = even0 - even3, a1 = even1 + even2, a2 = even1 - even2;
  const int32_t s5 = (v[7] + v[3] + v[5] + v[1]) * 9633;
  const int32_t s1 = (v[7] + v[1]) * -7373, s2 = (v[5] + v[3]) * -20995;
  const int32_t s3 = (v[7] + v[3]) * -16069 + s5, s4 = (v[5] + v[1]) * -3196 + s5;
  const int32_t b0 = v[7] * 2446 + s1 + s3, b1 = v[5] * 16819 + s2 + s4;
  const int32_t b2 = v[3] * 25172 + s2 + s3, b3 = v[1] * 12299 + s1 + s4;
  v[0] = (a0 + b3) >> shift, v[7] = (a0 - b3) >> shift;
  v[1] = (a1 + b2) >> shift, v[6] = (a1 - b2) >> shift;
  v[2] = (a2 + b1) >> shift, v[5] = (a2 - b1) >> shift;
  v[3] = (a3 + b0) >> shift, v[4] = (a3 - b0) >> shift;
}

// The same to four samples and to two, each the mean of neighbours of the whole transform: `shift` is one and two more
// for them.
template <uint32_t shift, int32_t level> __device__ inline void transform_to_four(int32_t *v) {
  constexpr int32_t bias = (level << shift) + (1 << (shift - 1));
  const int32_t even0 = v[0] * 16384 + bias, even1 = v[2] * 15137 - v[6] * 6270;
  const int32_t odd0 = v[1] * 20995 + v[3] * 7373 - v[5] * 4926 - v[7] * 4176;
  const int32_t odd1 = v[1] * 8697 - v[3] * 17799 + v[5] * 11893 - v[7] * 1730;
  v[0] = (even0 + even1 + odd0) >> shift, v[3] = (even0 + even1 - odd0) >> shift;
  v[1] = (even0 - even1 + odd1) >> shift, v[2] = (even0 - even1 - odd1) >> shift;
}
template <uint32_t shift, int32_t level> __device__ inline void transform_to_two(int32_t *v) {
  constexpr int32_t bias = (level << shift) + (1 << (shift - 1));
  const int32_t even = v[0] * 32768 + bias, odd = v[1] * 29692 - v[3] * 10426 + v[5] * 6967 - v[7] * 5906;
  v[0] = (even + odd) >> shift, v[1] = (even - odd) >> shift;
}

__device__ inline uint32_t byte_of(uint2 v, uint32_t i) { return byte_of(i < 4 ? v.x : v.y, i & 3); }
