// An axis of a resize: which source pixels an output pixel is made of, and how they are weighed. In float32, as the CPU
// does it (src/cpu/resample/filter.rs), but for one rounding (`source_of`).
#pragma once
#include "common.cuh"
#include "layouts/resample.cuh"

__device__ __noinline__ float entry(int filter, int i) {
  switch (filter) {
    case GAUSSIAN: {
      if (i < 0 || i > 64) return 0.0f;
      const float x = 4.0f * ((float)i - 32.0f) / 64.0f;
      return expf(-x * x);
    }
    case CUBIC: {
      const float x = fabsf(4.0f * ((float)i - 64.0f) / 128.0f);
      if (x >= 2.0f) return 0.0f;
      if (x > 1.0f) return -0.5f * x * x * x + 2.5f * x * x - 4.0f * x + 2.0f;
      return 1.5f * x * x * x - 2.5f * x * x + 1.0f;
    }
    default: {
      const float x = 6.0f * ((float)i - 96.0f) / 192.0f;
      if (fabsf(x) >= 3.0f) return 0.0f;
      const float pi = 3.14159265358979f;
      const float a = x * pi, b = x / 3.0f * pi;
      const float sa = fabsf(a) < 1e-3f ? 1.0f - a * a * (1.0f / 6.0f) : sinf(a) / a;
      const float sb = fabsf(b) < 1e-3f ? 1.0f - b * b * (1.0f / 6.0f) : sinf(b) / b;
      return sa * sb;
    }
  }
}

// The window at table coordinate t: between two entries.
__device__ inline float window_at(int filter, float t) {
  if (!(t > -1.0f) || t > 256.0f) return 0.0f;
  const float below = floorf(t);
  const int i = (int)below;
  const bool triangular = filter == TRIANGULAR;
  const float low = triangular ? (i == 1 ? 1.0f : 0.0f) : entry(filter, i);
  const float high = triangular ? (i == 0 ? 1.0f : 0.0f) : entry(filter, i + 1);
  return low + (t - below) * (high - low);
}

// Where taps so far outside of an image begin does not matter: they are its edge. Sums of it and of lengths are no
// overflow.
constexpr float FAR = 1e9f;

// The source coordinate of the first tap of output pixel i, or the nearest, from the axis' origin on and not rounded to
// a pixel. DALI rounds it once on a GPU, where a CPU rounds product and sum: where the exact one lies between two
// pixels, the two may take different ones.
__device__ inline float source_of(const Axis &axis, int i) {
  const float begin = axis.filter == NEAREST ? axis.start + 0.5f * axis.scale : axis.start;
  return fmaf((float)i, axis.scale, begin);
}

__device__ inline int clamp_to(int64_t i, int length) { return i < 0 ? 0 : i >= length ? length - 1 : (int)i; }

__device__ inline int first_tap(const Axis &axis, int i) {
  const float source = source_of(axis, i), tap = axis.filter == NEAREST ? floorf(source) : ceilf(source);
  const int first = (int)fminf(fmaxf(tap, -FAR), FAR) + axis.origin;
  return axis.filter == NEAREST ? clamp_to(first, axis.length) : first;
}

// Weight k of output pixel i before it is divided by the sum of all.
__device__ inline float raw_weight(const Axis &axis, int i, int k) {
  if (axis.filter == NEAREST) return 1.0f;
  const float source = source_of(axis, i);
  return window_at(axis.filter, (ceilf(source) - source + (float)k) * axis.table_scale);
}

__device__ inline int made_first(const Axis &axis, int i) { return ((const int32_t *)axis.made)[i]; }
__device__ inline float made_weight(const Axis &axis, int i, int k) { return axis.made[(uint64_t)(1 + k) * axis.size + i]; }
__device__ inline uint32_t *split_weights(const Axis &axis, int i) {
  return (uint32_t *)axis.made + axis.size + (uint64_t)i * (axis.taps + 2 * SPLIT_PADDING) + SPLIT_PADDING;
}

// Whether all taps from `first` on are in the image.
__device__ inline bool is_inside(const Axis &axis, int first) { return first >= 0 && first <= axis.length - axis.taps; }
