// In place of kernels/matrix.cuh: the same by what threads pass to one another.
#pragma once
#include "common.cuh"

inline float half_value(uint32_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  return (bits & 0x8000 ? -1.0f : 1.0f) * (exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24));
}
// Of a whole number of at most 2,048, or an even one of at most 4,096.
inline uint32_t half_bits(float v) {
  if (v == 0) return 0;
  int exponent;
  const float fraction = frexpf(fabsf(v), &exponent);
  return (v < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | ((int)(fraction * 2048) & 1023);
}

// What each thread of a warp has of the matrices.
struct Shown {
  uint32_t a[4], b[2];
};

UNCHECKED static void show_all(const Shown &own, Shown all[32]) {
  static Shown shown[32][32];
  const unsigned warp = current / 32;
  shown[warp][current % 32] = own;
  meet();
  for (int i = 0; i < 32; i++) all[i] = shown[warp][i];
  meet();
}

inline void multiply(const uint4 &a, uint32_t b_low, uint32_t b_high, float d[4]) {
  Shown all[32];
  show_all({{a.x, a.y, a.z, a.w}, {b_low, b_high}}, all);
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (int k = 0; k < 16; k++) {
    const unsigned from = k % 8 / 2, shift = 16 * (k % 2), later = k / 8;
    float rows[2], columns[2];
    for (int i = 0; i < 2; i++) rows[i] = half_value(all[4 * g + from].a[2 * later + i] >> shift & 0xFFFF);
    for (int i = 0; i < 2; i++) columns[i] = half_value(all[4 * (2 * t + i) + from].b[later] >> shift & 0xFFFF);
    for (int i = 0; i < 4; i++) d[i] += rows[i / 2] * columns[i % 2];
  }
}
