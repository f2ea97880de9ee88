// A weight as two halves: a multiple of 2^-11 and, of what is left, one of 2^-22. The first in the low bits, times
// 2^11, the second times 2^22. At an edge it may be more than 1; halves from 2,048 on are even.
#pragma once
#include "common.cuh"

__device__ inline uint32_t split(float weight) {
  const float scaled = weight * 2048.0f, unit = fabsf(scaled) > 2048.0f ? 2.0f : 1.0f;
  const float high = rintf(scaled / unit) * unit, low = rintf((scaled - high) * 2048.0f);
  return to_half(high).bits | (uint32_t)to_half(low).bits << 16;
}
