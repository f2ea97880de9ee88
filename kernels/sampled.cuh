// The pixel at a place of an image, whose first pixel goes from 0 to 1; outside of the image is one value.
#pragma once
#include "common.cuh"

template <class T> struct Image {
  const T *first;
  int32_t size[2];  // columns, rows
  uint64_t channels;
  T fill;

  __device__ const T *pixel(int x, int y) const {
    const bool inside = x >= 0 && y >= 0 && x < size[0] && y < size[1];
    return inside ? first + ((uint64_t)y * size[0] + x) * channels : nullptr;
  }

  // Writes the pixel that holds the place, or the weighted mean of the four around it.
  __device__ void show(float x, float y, bool is_linear, T *to) const {
    if (!is_linear) {
      const T *from = pixel(cell(x), cell(y));
      for (uint64_t c = 0; c < channels; c++) to[c] = from ? from[c] : fill;
      return;
    }
    const int left = cell(x - 0.5f), top = cell(y - 0.5f);
    const float qx = x - 0.5f - left, qy = y - 0.5f - top;
    const T *corners[4];
    for (int j = 0; j < 4; j++) corners[j] = pixel(left + (j & 1), top + (j >> 1));
    for (uint64_t c = 0; c < channels; c++) {
      float s[4];
      for (int j = 0; j < 4; j++) s[j] = convert<float>(corners[j] ? corners[j][c] : fill);
      const float above = fmaf(s[1], qx, s[0] * (1 - qx)), below = fmaf(s[3], qx, s[2] * (1 - qx));
      to[c] = convert<T>(fmaf(below - above, qy, above));
    }
  }

 private:
  // Up to the largest float below 2^31, so that a neighbour's coordinate does not overflow.
  __device__ static int cell(float place) { return (int)floorf(fminf(fmaxf(place, -2147483520.0f), 2147483520.0f)); }
};
