// Two numbers of 16 bits in a word.
#pragma once
#include "common.cuh"

// The sums of both halves, each the nearest from 0 to 255; they are within 1,000 of it.
__device__ inline uint32_t add_to_bytes(uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 900
  uint32_t r;
  asm("{ .reg .b32 sum; add.s16x2 sum, %1, %2; min.relu.s16x2 %0, sum, %3; }" : "=r"(r) : "r"(a), "r"(b), "r"(0x00FF00FF));
  return r;
#else
  const int32_t low = (int16_t)(a + b), high = (int16_t)((a >> 16) + (b >> 16));
  return (uint32_t)min(max(low, 0), 255) | (uint32_t)min(max(high, 0), 255) << 16;
#endif
}

// Byte i of two words.
__device__ inline uint32_t two_bytes(uint32_t low, uint32_t high, uint32_t i) { return __byte_perm(low, high, 0x0400 + 0x0101 * i) & 0xFF00FF; }

// The same number in both halves.
__device__ inline uint32_t twice(int32_t v) { return __byte_perm(v, 0, 0x1010); }
