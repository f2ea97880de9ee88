// A weight as two halves: a multiple of 2^-11 and, of what is left, one of 2^-22. The first in the low bits, times 2^11, the second times 2^22.
#pragma once
#include "common.cuh"

__device__ inline uint32_t split(float weight) {
  const float scaled = weight * 2048.0f, high = rintf(scaled), low = rintf((scaled - high) * 2048.0f);
  return to_half(high).bits | (uint32_t)to_half(low).bits << 16;
}
