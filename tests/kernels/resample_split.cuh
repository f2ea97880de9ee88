// In place of kernels/resample_split.cuh.
#pragma once
#include "matrix.cuh"

inline uint32_t split(float weight) {
  const float scaled = weight * 2048.0f, unit = fabsf(scaled) > 2048.0f ? 2.0f : 1.0f;
  const float high = rintf(scaled / unit) * unit, low = rintf((scaled - high) * 2048.0f);
  return half_bits(high) | half_bits(low) << 16;
}
