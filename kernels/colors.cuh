// Samples of four pixels to their colours.
#pragma once
#include "common.cuh"

// `low` and `next` as bytes, the nearest there are, and `rest` above them.
__device__ inline uint32_t pack(int32_t low, int32_t next, uint32_t rest) {
  uint32_t r;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(next), "r"(low), "r"(rest));
  return r;
}
__device__ inline uint32_t pack(const int32_t *v) { return pack(v[0], v[1], pack(v[2], v[3], 0)); }
__device__ inline uint32_t byte_of(uint32_t v, uint32_t i) { return v >> 8 * i & 255; }

// What chroma adds to luma: for red, or for blue when that is first, for green, and for the last.
struct Tint {
  int32_t first, green, last;

  __device__ Tint() {}
  __device__ Tint(int32_t b, int32_t r, bool blue_first) {
    const int32_t red = (91881 * r + (32768 - 128 * 91881)) >> 16, blue = (116130 * b + (32768 - 128 * 116130)) >> 16;
    green = (-22554 * b - 46802 * r + (32768 + 128 * (22554 + 46802))) >> 16;
    first = blue_first ? blue : red, last = blue_first ? red : blue;
  }
};

// Four pixels of three bytes from luma; one tint for each, or with PAIRS for two.
template <bool PAIRS> __device__ inline void tint_four(uint32_t luma, const Tint *tints, uint32_t *to) {
  int32_t v[12];
#pragma unroll
  for (uint32_t k = 0; k < 4; k++) {
    const Tint &tint = tints[PAIRS ? k / 2 : k];
    const int32_t l = byte_of(luma, k);
    v[3 * k] = l + tint.first, v[3 * k + 1] = l + tint.green, v[3 * k + 2] = l + tint.last;
  }
#pragma unroll
  for (uint32_t i = 0; i < 3; i++) to[i] = pack(v + 4 * i);
}

// The same from luma and chroma. With PAIRS, two neighbours have the same chroma.
template <bool PAIRS> __device__ inline void convert_four(uint32_t luma, uint32_t cb, uint32_t cr, bool blue_first, uint32_t *to) {
  Tint tints[PAIRS ? 2 : 4];
#pragma unroll
  for (uint32_t k = 0; k < (PAIRS ? 2 : 4); k++) tints[k] = Tint(byte_of(cb, PAIRS ? 2 * k : k), byte_of(cr, PAIRS ? 2 * k : k), blue_first);
  tint_four<PAIRS>(luma, tints, to);
}

// The same of samples that are the pixels' bytes.
__device__ inline void interleave_four(uint32_t first, uint32_t second, uint32_t third, uint32_t *to) {
  int32_t v[12];
#pragma unroll
  for (uint32_t k = 0; k < 4; k++) v[3 * k] = byte_of(first, k), v[3 * k + 1] = byte_of(second, k), v[3 * k + 2] = byte_of(third, k);
#pragma unroll
  for (uint32_t i = 0; i < 3; i++) to[i] = pack(v + 4 * i);
}
