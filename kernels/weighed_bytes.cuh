// Weighted sums of bytes, four at a time: read as words, and added without an instruction that converts them.
#pragma once
#include "common.cuh"

// The four bytes at `from`, of which `count` are needed: memory is read in words, of which each has a byte that is needed.
__device__ inline uint32_t four_bytes(const uint8_t *from, uint32_t count) {
  const uint32_t misaligned = (uint32_t)(uint64_t)from & 3;
  const uint32_t *words = (const uint32_t *)(from - misaligned);
  const uint32_t low = __ldg(words), high = misaligned + count > 4 ? __ldg(words + 1) : 0;
  return __funnelshift_r(low, high, 8 * misaligned);
}

// Byte i of a word times 2^-133, by its place among the bits of a float: so nothing converts it. Weights of bytes are as much larger
// as floats allow and sums are made larger by the rest, which changes no digit of them.
__device__ inline float tiny_byte(uint32_t word, int i) { return __uint_as_float(__byte_perm(word, 0, 0x4044u + 0x100u * i)); }
constexpr float BYTE_WEIGHT = 0x1p100f, BYTE_SUM = 0x1p33f;

// Adds four bytes, weighed.
__device__ inline void weigh(uint32_t word, float weight, float *sum) {
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] = fmaf(weight, tiny_byte(word, i), sum[i]);
}
